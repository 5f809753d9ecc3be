"""The pictures of the chapter on shape pitfalls: which number lands on which token."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from posenc.figures import drawing

Shape = tuple[int, ...]

AXES = ("batch", "token", "feature")
MAX_SIZE = 8


def axis_fates(embeddings: Shape, encoding: Shape) -> list[str]:
    """Say for each of the three axes what broadcasting does with the encoding.

    Shapes are written flush right. ``"fits"``: equal sizes. ``"repeated"``: the encoding has size
    1 there, or no such axis, and is copied. ``"grows"``: the embeddings are the ones copied.
    ``"clash"``: NumPy raises.
    """
    fates = []
    for size, other in zip(_padded(embeddings), _padded(encoding), strict=True):
        if size == other or (size == 1 and other is None):
            fates.append("fits")
        elif other in (None, 1):
            fates.append("repeated")
        else:
            fates.append("grows" if size in (None, 1) else "clash")
    return fates


def verdict(embeddings: Shape, encoding: Shape) -> str:
    """Say in a few words what each token gets, read off an encoding of distinct numbers."""
    landed = _landed(embeddings, encoding)
    if landed is None:
        return "NumPy raises"
    if landed.shape != embeddings:
        return "the batch grows"
    per_token, per_feature = (np.ptp(landed, axis=axis).any() for axis in (-2, -1))
    per_sentence = landed.ndim > 2 and np.ptp(landed, axis=0).any()
    if not per_token:
        return "one vector per sentence" if per_sentence else "one vector for all tokens"
    if not per_feature:
        return "one number per token"
    return "a row per token and sentence" if per_sentence else "a row per token"


def _padded(shape: Shape) -> list[int | None]:
    return [None] * (len(AXES) - len(shape)) + list(shape)


def _landed(embeddings: Shape, encoding: Shape) -> NDArray[np.int64] | None:
    """Let NumPy broadcast the entry numbers of the encoding."""
    entries = np.arange(np.prod(encoding, dtype=int)).reshape(encoding)
    try:
        return np.zeros(embeddings, dtype=int) + entries
    except ValueError:
        return None


def parse_shape(text: str) -> Shape:
    """Read a shape such as ``2, 1, 6`` or ``(6,)``: one to three axes, sizes 1 to 8."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"write a shape such as 2, 1, 6; got {text!r}") from error
    shape = value if isinstance(value, tuple) else (value,)
    if not all(type(size) is int and 1 <= size <= MAX_SIZE for size in shape):
        raise ValueError(f"sizes must be integers from 1 to {MAX_SIZE}, got {text!r}")
    if not 1 <= len(shape) <= len(AXES):
        raise ValueError(f"a shape of one to three axes, please; got {text!r}")
    return shape


def _draw_axes(axes: Any, embeddings: Shape, encoding: Shape) -> None:
    """Draw the two shapes under each other, flush right, one box an axis."""
    fates = axis_fates(embeddings, encoding)
    rows = [("embeddings", _padded(embeddings)), ("encoding", _padded(encoding))]
    for level, (name, sizes) in enumerate(rows):
        axes.text(-0.15, -level, name, ha="right", va="center")
        for column, (size, fate) in enumerate(zip(sizes, fates, strict=True)):
            copied = (level == 1 and fate == "repeated") or (level == 0 and fate == "grows")
            clash = fate == "clash"
            edge = drawing.COSINE if clash else drawing.ACCENT if copied else drawing.INK
            axes.add_patch(
                Rectangle(
                    (column + 0.06, -level - 0.38),
                    0.88,
                    0.76,
                    fill=copied or clash,
                    facecolor=(*_rgb(edge), 0.25),
                    edgecolor=edge,
                    linestyle="--" if size is None else "-",
                    linewidth=1.6,
                )
            )
            text = "none" if size is None else str(size)
            axes.text(column + 0.5, -level, text, ha="center", va="center", fontsize=11)
    for column, (name, fate) in enumerate(zip(AXES, fates, strict=True)):
        axes.text(column + 0.5, 0.62, name, ha="center", va="center", fontsize=9)
        note = {"fits": "equal", "repeated": "copied", "grows": "copied", "clash": "clash"}[fate]
        weight = "normal" if fate == "fits" else "bold"
        axes.text(column + 0.5, -1.64, note, ha="center", va="center", fontweight=weight)
    axes.set_xlim(-1.75, 3.05)
    axes.set_ylim(-1.95, 0.95)
    axes.axis("off")


def _rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))


def aligned_axes(embeddings: Shape, *encodings: Shape) -> drawing.Drawing:
    """Draw several encodings against one shape of embeddings, axis under axis.

    Arrays: ``fates`` of shape (encodings, 3), see `axis_fates`.
    """
    with drawing.canvas(4.8, 1.75 * len(encodings) + 0.1, rows=len(encodings), squeeze=False) as (
        figure,
        panels,
    ):
        for panel, encoding in zip(panels[:, 0], encodings, strict=True):
            _draw_axes(panel, embeddings, encoding)
            panel.set_title(f"{encoding}: {verdict(embeddings, encoding)}")
    fates = np.array([axis_fates(embeddings, encoding) for encoding in encodings])
    told = "; ".join(
        f"{encoding}: " + ", ".join(f"{a} {f}" for a, f in zip(AXES, row, strict=True))
        for encoding, row in zip(encodings, fates, strict=True)
    )
    alt = f"Shapes as boxes, flush right, under embeddings {embeddings}. {told}."
    return drawing.Drawing(figure, alt, {"fates": fates})


def who_gets_what(encoding: Shape, embeddings: Shape = (2, 4, 6)) -> drawing.Drawing:
    """Draw two shapes as boxes and, under them, which entry of the encoding each token gets.

    Arrays: ``landed``, the entry numbers after broadcasting, of size 0 if NumPy raises.
    """
    landed = _landed(embeddings, encoding)
    said = verdict(embeddings, encoding)
    with drawing.canvas(4.8, 3.9, rows=2, height_ratios=(1, 1.15)) as (figure, (top, bottom)):
        _draw_axes(top, embeddings, encoding)
        top.set_title(f"{embeddings} + {encoding}: {said}", fontsize=10)
        bottom.axis("off")
        if landed is None:
            bottom.text(0.5, 0.55, "no sum: nothing is added", ha="center", fontsize=12)
        else:
            _draw_entries(bottom, landed)
    alt = f"Embeddings {embeddings} plus encoding {encoding}: {said}. " + _told(landed)
    shown = np.zeros(0, dtype=int) if landed is None else landed
    return drawing.Drawing(figure, alt, {"landed": shown})


def _draw_entries(axes: Any, landed: NDArray[np.int64]) -> None:
    """Draw the first two sentences side by side; a cell shows which entry landed there."""
    sentences = landed[:2]
    width = landed.shape[-1]
    gap = np.full((landed.shape[-2], 1), np.nan)
    blocks = [block for sentence in sentences for block in (sentence.astype(float), gap)][:-1]
    grid = np.ma.masked_invalid(np.concatenate(blocks, axis=1))
    axes.imshow(grid, cmap=drawing.SEQUENTIAL, vmin=0, vmax=max(landed.max(), 1), aspect="auto")
    shades = axes.images[-1].cmap(axes.images[-1].norm(grid))[..., :3]
    for (row, column), value in np.ndenumerate(grid.filled(np.nan)):
        if np.isfinite(value):
            dark = shades[row, column] @ np.array([0.299, 0.587, 0.114]) < 0.5
            ink = "white" if dark else drawing.INK
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=ink, fontsize=9)
    for number in range(len(sentences)):
        middle = number * (width + 1) + (width - 1) / 2
        axes.text(middle, -0.8, f"sentence {number}", ha="center", fontsize=9)
    for row in range(landed.shape[-2]):
        axes.text(-0.8, row, f"token {row}", ha="right", va="center", fontsize=9)


def _told(landed: NDArray[np.int64] | None) -> str:
    if landed is None:
        return "Nothing is added."
    rows = [f"{row[0]} to {row[-1]}" for row in landed[:2].reshape(-1, landed.shape[-1])]
    return f"Entries that the tokens of the first two sentences get: {', '.join(rows)}."


def score_changes(wrong: NDArray[np.floating], right: NDArray[np.floating]) -> drawing.Drawing:
    """Draw how much a rotation changes the scores, (query, key), over two different axes.

    Arrays: ``wrong`` and ``right``, as given.
    """
    top = float(np.round(right.max(), 1))
    with drawing.canvas(5.2, 2.9, columns=2) as (figure, panels):
        titles = ("Turned along heads", "Turned along tokens")
        for panel, changes, title in zip(panels, (wrong, right), titles, strict=True):
            panel.imshow(changes, cmap=drawing.SEQUENTIAL, vmin=0, vmax=max(top, 1e-9))
            drawing.annotate_cells(panel, np.abs(changes.round(1)), "{:.1f}")
            panel.set_title(title)
            panel.set_xlabel("key (token)")
        panels[0].set_ylabel("query (token)")
    alt = (
        f"Two maps of how much RoPE changes the scores of {len(right)} queries and keys. Turned "
        f"along the heads: at most {wrong.max():.1f} everywhere. Turned along the tokens: zero on "
        f"the diagonal, up to {top:.1f} elsewhere."
    )
    return drawing.Drawing(figure, alt, {"wrong": wrong, "right": right})


def shared_positions(
    positions: NDArray[np.floating], rounded: NDArray[np.floating]
) -> drawing.Drawing:
    """Draw the number that is stored for each position, against the position.

    Arrays: ``rounded``, and ``shared``, true where a neighbour has the same number.
    """
    same = np.diff(rounded) == 0
    shared = np.append(same, False) | np.insert(same, 0, False)
    first = int(positions[shared][0])
    with drawing.canvas(4.8, 3.0) as (figure, axes):
        axes.plot(positions, positions, color=drawing.PADDING, linewidth=1, label="exact")
        for chosen, color, label in (
            (~shared, drawing.SINE, "a number of its own"),
            (shared, drawing.COSINE, "shared with a neighbour"),
        ):
            axes.plot(positions[chosen], rounded[chosen], "o", color=color, label=label, ms=4.5)
        axes.set_title(f"bfloat16 merges positions from {first} on")
        axes.set_xlabel("position")
        axes.set_ylabel("stored position")
        axes.legend()
    alt = (
        f"Stored against true position from {positions[0]:.0f} to {positions[-1]:.0f}. Up to "
        f"{first - 1} every position keeps its own number; from {first} on "
        f"{int(shared.sum())} positions share {np.unique(rounded[shared]).size} numbers."
    )
    return drawing.Drawing(figure, alt, {"rounded": rounded, "shared": shared})


def numberings(rows: Mapping[str, NDArray[np.integer]], real: NDArray[np.bool_]) -> drawing.Drawing:
    """Draw the table row that each token slot gets under several rules of counting.

    Arrays: ``rows`` of shape (rules, length), ``first``, the row of the first real token.
    """
    table = np.array(list(rows.values()))
    first = table[:, int(np.argmax(real))]
    with drawing.canvas(4.8, 0.42 * len(table) + 0.9) as (figure, axes):
        for (row, column), number in np.ndenumerate(table):
            color = drawing.REAL if real[column] else drawing.PADDING
            axes.add_patch(
                Rectangle((column, row), 1, 1, facecolor=(*_rgb(color), 0.3), edgecolor="white")
            )
            axes.text(column + 0.5, row + 0.5, str(number), ha="center", va="center")
        axes.set_xlim(0, table.shape[1])
        axes.set_ylim(len(table), 0)
        axes.set_yticks(np.arange(len(table)) + 0.5, list(rows))
        words = ["token" if is_real else "pad" for is_real in real]
        axes.set_xticks(np.arange(table.shape[1]) + 0.5, words)
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title(f"One sentence, {len(table)} ways to count")
    told = "; ".join(f"{name}: {' '.join(map(str, numbers))}" for name, numbers in rows.items())
    slots = " ".join(words)
    alt = f"Table rows for the slots {slots}. {told}."
    return drawing.Drawing(figure, alt, {"rows": table, "first": first})


def drift(distance: NDArray[np.floating]) -> drawing.Drawing:
    """Draw how far a stored table has moved from its formula, step by step.

    Arrays: ``distance``, as given.
    """
    with drawing.canvas(4.8, 2.6) as (figure, axes):
        axes.plot(distance, color=drawing.COSINE, label="stored among the weights")
        axes.plot(np.zeros_like(distance), color=drawing.SINE, label="computed when needed")
        axes.set_title("A stored table drifts from its formula")
        axes.set_xlabel("update step")
        axes.set_ylabel("largest difference")
        axes.legend()
    alt = (
        f"Largest difference between a table and its formula over {len(distance) - 1} update "
        f"steps: it grows from {distance[0]:.2f} to {distance[-1]:.2f} for the table stored among "
        f"the weights and stays 0 for the one that is computed when needed."
    )
    return drawing.Drawing(figure, alt, {"distance": distance})


def probe_matrix(
    caught: NDArray[np.bool_], faults: Sequence[str], probes: Sequence[str]
) -> drawing.Drawing:
    """Draw which probe catches which fault.

    Arrays: ``caught`` of shape (faults, probes).
    """
    with drawing.canvas(4.8, 0.33 * len(faults) + 1.0) as (figure, axes):
        for (row, column), hit in np.ndenumerate(caught):
            color = (*_rgb(drawing.REAL), 0.35) if hit else "#eeeeea"
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white"))
            axes.text(column + 0.5, row + 0.5, "caught" if hit else "–", ha="center", va="center")
        axes.set_xlim(0, len(probes))
        axes.set_ylim(len(faults), 0)
        axes.set_yticks(np.arange(len(faults)) + 0.5, faults)
        axes.set_xticks(np.arange(len(probes)) + 0.5, probes)
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title("No single probe catches every fault")
    told = "; ".join(
        f"{name} catches {int(column.sum())}" for name, column in zip(probes, caught.T, strict=True)
    )
    missed = "; ".join(
        f"{name}: " + (", ".join(np.array(probes)[row]) or "none")
        for name, row in zip(faults, caught, strict=True)
    )
    alt = f"Of {len(faults)} faults, {told}. Caught by: {missed}."
    return drawing.Drawing(figure, alt, {"caught": caught})
