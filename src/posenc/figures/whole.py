"""Figures of chapter 8: a made language, a whole Transformer, its faults and its maps."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing

_COLOURS = [drawing.SINE, drawing.COSINE, drawing.REAL, drawing.ACCENT]
_MARKERS = "osD^"


def alignments(pairs: Sequence[tuple[str, str]], dictionary: Mapping[str, str]) -> drawing.Drawing:
    """Draw sentences over their translations, with a line from each word to its translation.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Each word may occur once in its sentence.
    dictionary : mapping of str to str
        Translations of single words.

    Returns
    -------
    Drawing
        For each pair, by its number ``"0"``, ``"1"``, …: the target place of every source word.
    """
    places, parts = {}, []
    with drawing.canvas(6.4, 1.35 * len(pairs) + 0.35, len(pairs), squeeze=False) as (
        figure,
        panels,
    ):
        for number, (axes, (source, target)) in enumerate(zip(panels[:, 0], pairs, strict=True)):
            words, translated = source.split(), target.split()
            at = np.array([translated.index(dictionary[word]) for word in words])
            for start, end in enumerate(at):
                axes.plot([start, end], [0.83, 0.17], color=drawing.PADDING, linewidth=1.6)
            for row, texts, colour in (
                (1, words, drawing.KEY),
                (0, translated, drawing.QUERY),
            ):
                for column, text in enumerate(texts):
                    axes.text(
                        column, row, text, ha="center", va="center", color=colour,
                        fontsize=12, weight="bold",
                    )  # fmt: skip
            axes.set_xlim(-0.5, 5.5)
            axes.set_ylim(-0.25, 1.25)
            axes.axis("off")
            places[str(number)] = at
            parts.append(f"{source} becomes {target}")
        title = "One word for one word; the order is the rest"
        figure.suptitle(title, fontsize=11, fontweight="bold", x=0.02, ha="left")
    return drawing.Drawing(
        figure, f"Lines join words with their translations. {'; '.join(parts)}.", places
    )


def forcing(read: Sequence[str], answers: Sequence[str]) -> drawing.Drawing:
    """Draw what the decoder reads and what it must answer, place by place.

    Parameters
    ----------
    read, answers : sequence of str, of equal lengths

    Returns
    -------
    Drawing
        Arrays ``read`` and ``answers``.
    """
    rows = {"read": np.array(read), "answers": np.array(answers)}
    with drawing.canvas(6.4, 1.9) as (figure, axes):
        for height, (name, words) in zip((1, 0), rows.items(), strict=True):
            colour = drawing.KEY if name == "read" else drawing.QUERY
            for column, word in enumerate(words):
                axes.barh(height, 0.92, 0.46, column + 0.04, color=colour, alpha=0.25)
                axes.text(column + 0.5, height, word, ha="center", va="center", fontsize=10)
        for column in range(len(read)):
            axes.annotate(
                "", (column + 0.5, 0.3), (column + 0.5, 0.7), arrowprops={"arrowstyle": "->"}
            )
        for column in range(len(read) - 1):  # what is answered here is read at the next place
            axes.plot(
                [column + 0.75, column + 1.25],
                [0.3, 0.7],
                ":",
                color=drawing.PADDING,
                linewidth=1.4,
            )
        axes.set_yticks([1, 0], ["reads", "must answer"])
        axes.set_xticks(np.arange(len(read)) + 0.5, range(len(read)))
        axes.set_xlabel("position in the target")
        axes.set_xlim(0, len(read))
        axes.set_ylim(-0.4, 1.4)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title("The decoder reads the right answer, one place late")
    alt = f"Two rows of words. Read: {' '.join(read)}. To be answered: {' '.join(answers)}."
    return drawing.Drawing(figure, alt, rows)


def parameter_counts(parameters: Mapping[str, ArrayLike], side: str) -> dict[str, int]:
    """Count the parameters of one stack of a `Transformer` by part, from the bottom up.

    Parameters
    ----------
    parameters : mapping of str to array_like
        From the model's `parameters()`.
    side : {"encoder", "decoder"}

    Returns
    -------
    dict from str to int
        Parts of all layers together, each sub-layer with its norm. The sinusoid has none, and the
        read-out counts as part of the decoder.
    """
    places = {"embedding": "embedding.", "encoding": "encoding.", "last norm": "last_norm."}
    kinds = ("self_attention", "cross_attention", "feed_forward")
    counts = dict.fromkeys(["embedding", "encoding"], 0)
    counts |= {
        kind.replace("_", "-"): 0 for kind in kinds if side == "decoder" or "cross" not in kind
    }
    counts["last norm"] = 0
    if side == "decoder":
        counts["read-out"] = 0
    for name, array in parameters.items():
        owner, _, rest = name.partition(".")
        if owner == "read_out" and side == "decoder":
            counts["read-out"] += np.size(array)
        if owner != side:
            continue
        part = next((part for part, start in places.items() if rest.startswith(start)), None)
        if part is None:  # layers.0.self_attention_norm.scale
            part = rest.split(".")[2].removesuffix("_norm").replace("_", "-")
        counts[part] += np.size(array)
    return counts


def anatomy(parameters: Mapping[str, ArrayLike]) -> drawing.Drawing:
    """Draw both stacks as boxes from the bottom up, each with its number of parameters.

    Parameters
    ----------
    parameters : mapping of str to array_like
        From the `parameters()` of a `Transformer`.

    Returns
    -------
    Drawing
        Arrays ``encoder`` and ``decoder``, the numbers.
    """
    encoder = parameter_counts(parameters, "encoder")
    decoder = parameter_counts(parameters, "decoder")
    tallest = max(len(encoder), len(decoder))
    with drawing.canvas(6.4, 0.5 * tallest + 0.9) as (figure, axes):
        for left, (name, parts) in ((0.0, ("encoder", encoder)), (1.25, ("decoder", decoder))):
            for height, (part, count) in enumerate(parts.items()):
                fixed = count == 0
                colour = drawing.PADDING if fixed else drawing.QUERY if left else drawing.KEY
                axes.barh(height, 1, 0.72, left, color=colour, alpha=0.28)
                axes.text(left + 0.04, height, part, va="center", fontsize=9)
                axes.text(
                    left + 0.97, height, f"{count:,}", va="center", ha="right", fontsize=9,
                    weight="bold",
                )  # fmt: skip
            axes.text(left + 0.5, -0.75, name, ha="center", va="center", fontsize=11, weight="bold")
        top = len(encoder) - 1
        across = list(decoder).index("cross-attention")
        axes.annotate(
            "", (1.24, across), (1.01, top),
            arrowprops={"arrowstyle": "->", "color": drawing.INK, "linewidth": 1.4},
        )  # fmt: skip
        axes.set_xlim(-0.02, 2.27)
        axes.set_ylim(-1.1, tallest - 0.4)
        axes.axis("off")
        axes.set_title("Where the parameters are: none in the encoding")
    described = [
        f"{name}, from the bottom up: "
        + ", ".join(f"{part} {count:,}" for part, count in stack.items())
        for name, stack in (("Encoder", encoder), ("Decoder", decoder))
    ]
    arrays = {
        "encoder": np.array(list(encoder.values())),
        "decoder": np.array(list(decoder.values())),
    }
    return drawing.Drawing(figure, f"Two stacks of boxes. {'. '.join(described)}.", arrays)


def smoothed(losses: ArrayLike, width: int = 10) -> NDArray[np.floating]:
    """Return the mean of each loss and the ones before it, at most `width` of them in all.

    Parameters
    ----------
    losses : array_like, shape (seeds, steps)
    width : int, default 10

    Returns
    -------
    ndarray, shape (seeds, steps)
    """
    sums = np.cumsum(np.asarray(losses, dtype=float), axis=-1)
    earlier = np.zeros_like(sums)
    earlier[:, width:] = sums[:, :-width]
    return (sums - earlier) / np.minimum(np.arange(1, sums.shape[-1] + 1), width)


def losses(runs: Mapping[str, ArrayLike]) -> drawing.Drawing:
    """Draw training losses: a line for the mean over seeds, a band from the lowest to the highest.

    Parameters
    ----------
    runs : mapping of str to array_like, shape (seeds, steps)

    Returns
    -------
    Drawing
        For each run, by its name, the smoothed losses.
    """
    curves = {name: smoothed(values) for name, values in runs.items()}
    with drawing.canvas(6.4, 3.3) as (figure, axes):
        for number, (name, values) in enumerate(curves.items()):
            steps, colour = np.arange(values.shape[1]), _COLOURS[number]
            axes.fill_between(
                steps, values.min(0), values.max(0), color=colour, alpha=0.25, linewidth=0
            )
            axes.plot(values.mean(0), color=colour, linestyle=["-", "--", "-.", ":"][number])
            axes.plot([], [], color=colour, linestyle=["-", "--", "-.", ":"][number], label=name)
        axes.set_yscale("log")
        axes.set_xlabel("training step")
        axes.set_ylabel("loss in nats per token")
        axes.legend(fontsize=9)
        axes.set_title("The loss gives only one of three faults away")
    ends = ", ".join(f"{name} {values[:, -1].mean():.3f}" for name, values in curves.items())
    seeds = len(next(iter(curves.values())))
    alt = f"Training losses over {seeds} seeds on a logarithmic axis. At the end: {ends}."
    return drawing.Drawing(figure, alt, curves)


def outcomes(
    seen: Mapping[str, ArrayLike], alone: Mapping[str, ArrayLike], *, guess: float
) -> drawing.Drawing:
    """Draw what training sees beside what translating gives: a dot a seed.

    Parameters
    ----------
    seen : mapping of str to array_like, shape (seeds,)
        Share of right next words, by setting.
    alone : mapping of str to array_like, shape (seeds,)
        Share of right translations, by setting; its order is that of the rows.
    guess : float
        The share of whole translations that the words allow without their order.

    Returns
    -------
    Drawing
        Arrays ``seen`` and ``alone``, shape (settings, seeds).
    """
    settings = list(alone)
    points = {
        "seen": np.array([seen[name] for name in settings], dtype=float),
        "alone": np.array([alone[name] for name in settings], dtype=float),
    }
    titles = {"seen": "next word, given the right ones", "alone": "whole translations"}
    with drawing.canvas(6.4, 0.42 * len(settings) + 1.5, 1, 2, sharey=True) as (figure, panels):
        for number, (axes, (name, values)) in enumerate(zip(panels, points.items(), strict=True)):
            if number:
                axes.axvline(guess, color=drawing.PADDING, linestyle="--", linewidth=1.3)
            for row, seeds in enumerate(values):
                colour = drawing.COSINE if number else drawing.SINE
                axes.plot([seeds.min(), seeds.max()], [row, row], color=colour, linewidth=1.2)
                axes.plot(seeds, [row] * len(seeds), "o", color=colour, markersize=7, alpha=0.55)
            axes.set_xlim(-0.05, 1.05)
            axes.set_title(titles[name], fontsize=10)
            axes.set_yticks(range(len(settings)), settings)
            axes.set_ylim(len(settings) - 0.5, -0.5)
            axes.grid(axis="x", color="#dddad2", linewidth=0.8)
            axes.set_axisbelow(True)
        figure.suptitle(
            "Good in training says little about writing", fontsize=11, fontweight="bold"
        )
        figure.supxlabel("dashed: what the words allow without their order", fontsize=9)
    parts = [
        f"{titles[name]}: "
        + ", ".join(f"{s} {row.mean():.2f}" for s, row in zip(settings, values, strict=True))
        for name, values in points.items()
    ]
    return drawing.Drawing(figure, f"Means over seeds. {'; '.join(parts)}.", points)


def against(
    curves: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    title: str,
    x_label: str,
    y_label: str,
    level: float | None = None,
    legend: str = "best",
) -> drawing.Drawing:
    """Draw measures of several models against one setting: a dot a seed, a line for the mean.

    Parameters
    ----------
    curves : mapping of str to array_like, shape (seeds, len(x))
    x : array_like
        The setting.
    title, x_label, y_label : str
    level : float, optional
        A value to compare with, drawn as a broken line.
    legend : str, default "best"
        Where the legend stands, as in Matplotlib.

    Returns
    -------
    Drawing
        An array for each curve, by its name.
    """
    x = np.asarray(x)
    values = {name: np.asarray(curve, dtype=float) for name, curve in curves.items()}
    with drawing.canvas(6.4, 3.2) as (figure, axes):
        for number, (name, seeds) in enumerate(values.items()):
            colour, marker = _COLOURS[number], _MARKERS[number]
            axes.plot(x, seeds.mean(axis=0), color=colour, marker=marker, label=name, markersize=5)
            for seed in seeds:
                axes.plot(x, seed, marker, color=colour, markersize=5, alpha=0.35)
        if level is not None:
            axes.axhline(level, color=drawing.PADDING, linestyle="--", linewidth=1.3)
        axes.set_ylim(-0.04, 1.08 * max(1.0, *(seeds.max() for seeds in values.values())))
        if len(x) < 10:
            axes.set_xticks(x)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.legend(fontsize=9, loc=legend)
        axes.set_title(title)
    parts = [
        f"{name}: from {seeds[:, 0].mean():.2f} at {x[0]} to {seeds[:, -1].mean():.2f} at {x[-1]}"
        for name, seeds in values.items()
    ]
    return drawing.Drawing(figure, f"{y_label} against {x_label}. {'; '.join(parts)}.", values)


def attention_map(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str,
    axis_names: tuple[str, str] = ("query", "key"),
    shown: int | None = None,
) -> drawing.Drawing:
    """Draw one attention map with its words; the strongest key of each query gets a frame.

    Parameters
    ----------
    weights : array_like, shape (len(queries), len(keys))
    queries, keys : sequence of str
    title : str
    axis_names : (str, str)
        What rows and columns are.
    shown : int, optional
        Number of rows to show; the others are left empty.

    Returns
    -------
    Drawing
        Arrays ``weights`` (the rows that are shown) and ``strongest`` (their strongest keys).
    """
    weights = np.asarray(weights, dtype=float)
    shown = len(weights) if shown is None else shown
    visible = np.where(np.arange(len(weights))[:, np.newaxis] < shown, weights, np.nan)
    strongest = weights[:shown].argmax(axis=1)
    height = 0.38 * len(queries) + 1.5
    with drawing.canvas(6.0, height) as (figure, axes):
        image = axes.imshow(visible, cmap=drawing.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        for row, column in enumerate(strongest):
            corner = (column - 0.47, row - 0.45)
            axes.add_patch(
                Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=drawing.COSINE, linewidth=2)
            )
        axes.set_xticks(range(len(keys)), [f"{n}:{word}" for n, word in enumerate(keys)])
        axes.tick_params(axis="x", rotation=35)
        labels = [f"{n}:{word}" if n < shown else "" for n, word in enumerate(queries)]
        axes.set_yticks(range(len(queries)), labels)
        axes.set_ylabel(axis_names[0])
        axes.set_xlabel(axis_names[1])
        axes.set_title(title)
        figure.colorbar(image, label="weight")
    parts = [f"{queries[row]} at {keys[column]}" for row, column in enumerate(strongest)]
    alt = f"Attention map, {title}. Strongest: {', '.join(parts)}."
    return drawing.Drawing(figure, alt, {"weights": weights[:shown], "strongest": strongest})


def hiding(shares: Mapping[str, ArrayLike]) -> drawing.Drawing:
    """Draw how often hiding a source word changes what is written: a dot a seed, bars for means.

    Parameters
    ----------
    shares : mapping of str to array_like, shape (seeds,)
        By the choice of the hidden word.

    Returns
    -------
    Drawing
        An array for each choice, by its name.
    """
    values = {name: np.asarray(share, dtype=float) for name, share in shares.items()}
    with drawing.canvas(6.4, 2.9) as (figure, axes):
        for place, seeds in enumerate(values.values()):
            axes.bar(place, seeds.mean(), 0.6, color=drawing.SINE, alpha=0.35)
            axes.plot([place] * len(seeds), seeds, "o", color=drawing.SINE, markersize=6)
        axes.set_xticks(range(len(values)), list(values))
        axes.set_ylim(0, 1)
        axes.set_xlabel("source word that is hidden")
        axes.set_ylabel("share of changed words")
        axes.set_title("What has no weight is not needed")
    parts = ", ".join(f"{name} {seeds.mean():.2f}" for name, seeds in values.items())
    alt = f"Share of written words that change when one source word is hidden: {parts}."
    return drawing.Drawing(figure, alt, values)
