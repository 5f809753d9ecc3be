"""The pictures of chapter 4: which positions a mask hides, and what a model can tell without them.

Filled cells of a grid are *may attend* or *changes*; empty cells are *hidden* or *unchanged*.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing

_HIDDEN_AND_SEEN = ListedColormap(["#e9e6df", drawing.QUERY])
_COLOURS = (drawing.SINE, drawing.COSINE, drawing.REAL, drawing.ACCENT)


def _boolean_grid(axes: Any, grid: NDArray[np.bool_]) -> None:
    """Draw a boolean matrix as filled and empty cells with white lines between them."""
    axes.pcolormesh(grid, cmap=_HIDDEN_AND_SEEN, vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _ticks(axes: Any, labels: Sequence[str], *, axis: str) -> None:
    """Put a label at the middle of every cell along the x or y axis."""
    middle = np.arange(len(labels)) + 0.5
    if axis == "x":
        axes.set_xticks(middle, labels, rotation=90 if max(map(len, labels)) > 5 else 0)
    else:
        axes.set_yticks(middle, labels)


def four_machines(influence: ArrayLike, told: ArrayLike, words: Sequence[str]) -> drawing.Drawing:
    """Draw the 2 × 2 of encoding and causal mask: what changes what, and which orders are told.

    Parameters
    ----------
    influence : array_like, shape (2, 2, length, length), bool
        Axes: encoding off/on, mask off/on, output, word that was replaced.
    told : array_like, shape (2, 2), integers
        Number of orders that each machine tells apart, of six.
    words : sequence of str
        The sentence, one label for each position.

    Returns
    -------
    Drawing
        Arrays ``influence`` and ``told``.
    """
    influence, told = np.asarray(influence, dtype=bool), np.asarray(told)
    with drawing.canvas(5.0, 5.4, 2, 2) as (figure, panels):
        for (encoding, mask), axes in np.ndenumerate(panels):
            _boolean_grid(axes, influence[encoding, mask])
            _ticks(axes, words, axis="x")
            _ticks(axes, words if mask == 0 else [""] * len(words), axis="y")
            axes.set_title(
                f"{'encoding' if encoding else 'no encoding'}, {'mask' if mask else 'no mask'}\n"
                f"tells {told[encoding, mask]} of 6 orders",
                fontsize=10,
            )
        figure.supxlabel("word that was replaced", fontsize=10)
        figure.supylabel("output that changes (blue)", fontsize=10)
        figure.suptitle(
            "Only the mask hides the future,\neither one tells the orders apart",
            fontsize=11,
            fontweight="bold",
        )
    future = [influence[:, mask][:, *np.triu_indices(len(words), 1)] for mask in (0, 1)]
    alt = (
        f"Four grids of output against replaced word. Without a mask {future[0].mean():.0%} of the "
        f"cells above the diagonal are filled, with a causal mask {future[1].mean():.0%}. Orders "
        f"told apart, of 6: {told[0, 0]} with neither, {told[0, 1]} with the mask only, "
        f"{told[1, 0]} with the encoding only, {told[1, 1]} with both."
    )
    return drawing.Drawing(figure, alt, {"influence": influence, "told": told})


def mask_panels(
    masks: Mapping[str, ArrayLike],
    *,
    title: str,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
) -> drawing.Drawing:
    """Draw boolean masks side by side; a query that sees no key is marked.

    Parameters
    ----------
    masks : mapping of str to array_like, shape (query, key), bool
        The panels, by title.
    title : str
        What the figure says.
    queries, keys : sequence of str, optional
        Labels of rows and columns, used in the panels that have as many; numbers otherwise.

    Returns
    -------
    Drawing
        An array for each panel, by its title.
    """
    grids = {name: np.asarray(mask, dtype=bool) for name, mask in masks.items()}
    widths = [grid.shape[1] for grid in grids.values()]
    tallest = max(grid.shape[0] for grid in grids.values())
    labels_beside = 0.5 * len(grids) + 0.2  # inches
    cell = min((6.2 - labels_beside) / sum(widths), 0.62)
    with drawing.canvas(
        cell * sum(widths) + labels_beside,
        cell * tallest + 1.4,
        1,
        len(grids),
        squeeze=False,
        gridspec_kw={"width_ratios": widths},
    ) as (figure, panels):
        for (name, grid), axes in zip(grids.items(), panels[0], strict=True):
            _boolean_grid(axes, grid)
            for side, labels, count in (("y", queries, grid.shape[0]), ("x", keys, grid.shape[1])):
                if labels is None or len(labels) != count:
                    labels = [str(number) for number in range(count)]
                _ticks(axes, labels, axis=side)
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("key")
            for row in np.flatnonzero(~grid.any(axis=1)):
                axes.text(
                    grid.shape[1] / 2, row + 0.5, "sees nothing", ha="center", va="center",
                    fontsize=9, color=drawing.INK,
                )  # fmt: skip
        panels[0, 0].set_ylabel("query")
        figure.suptitle(title, fontsize=11, fontweight="bold")
    parts = []
    for name, grid in grids.items():
        visible = ", ".join(str(count) for count in grid.sum(axis=1))
        parts.append(f"{name}: {grid.shape[0]} queries that see {visible} of {grid.shape[1]} keys")
    return drawing.Drawing(figure, f"Masks as grids. {'; '.join(parts)}.", grids)


def leak(changes: Mapping[str, ArrayLike], replaced: int) -> drawing.Drawing:
    """Draw how much every output changes when one input does, for several ways to mask.

    Parameters
    ----------
    changes : mapping of str to array_like, shape (length,)
        Largest change of each output vector, by the way of masking.
    replaced : int
        Position of the input that was replaced.

    Returns
    -------
    Drawing
        An array for each way, by its name.
    """
    heights = {name: np.asarray(change, dtype=float) for name, change in changes.items()}
    length = len(next(iter(heights.values())))
    with drawing.canvas(5.6, 3.4) as (figure, axes):
        axes.axvspan(-0.5, replaced - 0.5, color=drawing.PADDING, alpha=0.18, linewidth=0)
        width = 0.8 / len(heights)
        for number, (name, height) in enumerate(heights.items()):
            at = np.arange(length) + (number - (len(heights) - 1) / 2) * width
            axes.bar(at, height, width, label=name, color=_COLOURS[number])
            for position in np.flatnonzero(height[:replaced] > 1e-9):
                axes.text(
                    at[position], height[position], f"{height[position]:.2f}",
                    ha="center", va="bottom", fontsize=9,
                )  # fmt: skip
        axes.set_xticks(range(length))
        axes.set_xlim(-0.5, length - 0.5)
        axes.set_xlabel("position of the output")
        axes.set_ylabel("largest change")
        axes.set_title(f"Replace input {replaced}: nothing before it may move")
        top = max(height.max() for height in heights.values())
        axes.set_ylim(0, 1.5 * top)
        axes.text(-0.4, 1.42 * top, "must stay 0", va="top", fontsize=9)
        axes.legend(loc="upper center", ncols=1, fontsize=9, bbox_to_anchor=(0.42, 1.0))
    parts = [
        f"{name}: {'no change' if not (height[:replaced] > 1e-9).any() else 'changes'} before "
        f"position {replaced}"
        for name, height in heights.items()
    ]
    return drawing.Drawing(figure, f"Bars of change by position. {'; '.join(parts)}.", heights)


def averaging(variance: ArrayLike) -> drawing.Drawing:
    """Draw the spread of causal averages against the position, beside 1/(pos + 1).

    Parameters
    ----------
    variance : array_like, shape (length,)
        Variance of the first layer's output at each position, over random texts, divided by that
        at position 0.

    Returns
    -------
    Drawing
        Arrays ``variance`` and ``theory``.
    """
    variance = np.asarray(variance, dtype=float)
    theory = 1 / (np.arange(len(variance)) + 1)
    with drawing.canvas(5.6, 3.2) as (figure, axes):
        axes.plot(theory, color=drawing.PADDING, label="1 / (pos + 1)")
        axes.plot(variance, "o", color=drawing.SINE, markersize=5, label="measured")
        axes.set_xlabel("position")
        axes.set_ylabel("variance, position 0 = 1")
        axes.set_ylim(0, 1.08)
        axes.legend()
        axes.set_title("The later the position, the more it is an average")
    last = len(variance) - 1
    alt = (
        f"Variance of the output falls from {variance[0]:.2f} at position 0 to {variance[last]:.2f}"
        f" at position {last}, close to the curve one over position plus one."
    )
    return drawing.Drawing(figure, alt, {"variance": variance, "theory": theory})


def accuracies(
    scores: Mapping[str, ArrayLike],
    settings: Sequence[str],
    *,
    title: str,
    guess: Mapping[str, float],
) -> drawing.Drawing:
    """Draw the test accuracy of every trained model: a dot a seed, a panel a task.

    Parameters
    ----------
    scores : mapping of str to array_like, shape (settings, seeds)
        Accuracies, by task.
    settings : sequence of str
        Labels of the settings.
    title : str
        What the figure says.
    guess : mapping of str to float
        For each task, what a model that ignores the order can reach.

    Returns
    -------
    Drawing
        An array for each task, by its name.
    """
    points = {task: np.asarray(values, dtype=float) for task, values in scores.items()}
    with drawing.canvas(5.6, 0.42 * len(settings) + 1.9, 1, len(points), sharey=True) as (
        figure,
        panels,
    ):
        for axes, (task, values) in zip(np.atleast_1d(panels), points.items(), strict=True):
            axes.axvline(guess[task], color=drawing.PADDING, linestyle="--", linewidth=1.3)
            for row, seeds in enumerate(values):
                axes.plot([seeds.min(), seeds.max()], [row, row], color=drawing.SINE, linewidth=1.2)
                axes.plot(
                    seeds, [row] * len(seeds), "o", color=drawing.SINE, markersize=7, alpha=0.55
                )
            axes.set_xlim(0, 1.08)
            axes.set_xticks([0, 0.5, 1])
            axes.set_xlabel("accuracy")
            axes.set_title(task, fontsize=10)
            axes.set_yticks(range(len(settings)), settings)
            axes.set_ylim(len(settings) - 0.5, -0.5)
            axes.grid(axis="x", color="#dddad2", linewidth=0.8)
            axes.set_axisbelow(True)
        figure.suptitle(title, fontsize=11, fontweight="bold")
        figure.supxlabel("dashed: what the words allow without their order", fontsize=9)
    parts = []
    for task, values in points.items():
        told = ", ".join(
            f"{setting} {_in_words(seeds, guess[task])}"
            for setting, seeds in zip(settings, values, strict=True)
        )
        parts.append(f"{task} (guess {guess[task]:.2f}): {told}")
    count = next(iter(points.values())).shape[1]
    alt = f"Accuracies of {count} seeds each. {'; '.join(parts)}."
    return drawing.Drawing(figure, alt, points)


def _in_words(seeds: NDArray[np.floating[Any]], guess: float) -> str:
    """Describe accuracies so that the words are the same on every machine."""
    if seeds.min() > 0.9:
        return "above 0.9"
    return "not above the guess" if seeds.max() < guess + 0.05 else "in between"


def attention_map(weights: ArrayLike, *, title: str) -> drawing.Drawing:
    """Draw one head's attention weights.

    Parameters
    ----------
    weights : array_like, shape (length, length)
        Axes query, key.
    title : str
        What the figure says.

    Returns
    -------
    Drawing
        Array ``weights``.
    """
    weights = np.asarray(weights, dtype=float)
    with drawing.canvas(4.8, 4.0) as (figure, axes):
        image = axes.imshow(weights, cmap=drawing.SEQUENTIAL, vmin=0, vmax=1)
        axes.set_xticks(range(weights.shape[1]))
        axes.set_yticks(range(weights.shape[0]))
        axes.set_xlabel("position of the key")
        axes.set_ylabel("position of the query")
        axes.set_title(title)
        figure.colorbar(image, label="attention weight")
    strongest = ", ".join(f"{q} at {k}" for q, k in enumerate(weights.argmax(axis=1)))
    alt = f"Attention map of {len(weights)} positions; query looks most at key: {strongest}."
    return drawing.Drawing(figure, alt, {"weights": weights})


def padding_attention(
    unmasked: ArrayLike, masked: ArrayLike, tokens: Sequence[str], query: str
) -> drawing.Drawing:
    """Draw one query's weights over a padded sentence, without and with the padding mask.

    Parameters
    ----------
    unmasked, masked : array_like, shape (length,)
        Weights of the query.
    tokens : sequence of str
        The padded sentence; ``"·"`` is padding.
    query : str
        The word that asks.

    Returns
    -------
    Drawing
        Arrays ``unmasked`` and ``masked``.
    """
    rows = {
        "unmasked": np.asarray(unmasked, dtype=float),
        "masked": np.asarray(masked, dtype=float),
    }
    colours = [drawing.PADDING if token == "·" else drawing.REAL for token in tokens]
    on_padding = {name: row[[token == "·" for token in tokens]].sum() for name, row in rows.items()}
    with drawing.canvas(5.4, 3.0, 1, 2, sharey=True) as (figure, panels):
        for axes, (name, row) in zip(panels, rows.items(), strict=True):
            axes.bar(range(len(row)), row, color=colours)
            axes.set_xticks(range(len(row)), tokens, rotation=90)
            axes.set_ylim(0, 1)
            label = "no mask" if name == "unmasked" else "keys masked"
            axes.set_title(f"{label}: {on_padding[name]:.0%} on padding", fontsize=10)
            axes.set_xlabel("key")
        panels[0].set_ylabel("attention weight")
        figure.suptitle(f"Where “{query}” looks", fontsize=11, fontweight="bold")
    alt = (
        f"Attention of the query {query} over {len(tokens)} tokens: without a mask "
        f"{on_padding['unmasked']:.0%} of the weight lies on padding, with the padding mask "
        f"{on_padding['masked']:.0%}."
    )
    return drawing.Drawing(figure, alt, rows)


def numbered_rows(
    tokens: Mapping[str, Sequence[str]], ids: Mapping[str, ArrayLike], notes: Mapping[str, str]
) -> drawing.Drawing:
    """Draw padded rows with the position number of every token under it.

    Parameters
    ----------
    tokens : mapping of str to sequence of str
        The rows by name; ``"·"`` is padding.
    ids : mapping of str to array_like, shape (length,), integers
        Their position ids.
    notes : mapping of str to str
        A few words for each row, written beside it.

    Returns
    -------
    Drawing
        The position ids of each row, by its name.
    """
    numbers = {name: np.asarray(row) for name, row in ids.items()}
    longest = max(len(row) for row in tokens.values())
    with drawing.canvas(5.8, 0.7 * len(tokens) + 0.5) as (figure, axes):
        for height, (name, row) in enumerate(tokens.items()):
            for column, (token, number) in enumerate(zip(row, numbers[name], strict=True)):
                real = token != "·"
                colour = drawing.REAL if real else drawing.PADDING
                axes.barh(height, 0.94, 0.72, column + 0.03, color=colour, alpha=0.3)
                axes.text(column + 0.5, height - 0.13, token, ha="center", va="center", fontsize=10)
                axes.text(
                    column + 0.5, height + 0.2, str(number), ha="center", va="center",
                    fontsize=10, weight="bold" if real else "normal",
                )  # fmt: skip
            axes.text(longest + 0.15, height, notes[name], va="center", fontsize=9)
        axes.set_yticks(range(len(tokens)), list(tokens))
        axes.set_xticks([])
        axes.set_xlim(0, longest + 1.6)
        axes.set_ylim(len(tokens) - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title("Number the words, not the columns")
    parts = [f"{name}: {numbers[name].tolist()}, {notes[name]}" for name in tokens]
    return drawing.Drawing(figure, f"Rows with their position ids. {'; '.join(parts)}.", numbers)
