"""Figures of the chapter on position inside attention."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Arc
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing
from posenc.figures.drawing import Drawing
from posenc.rotary import (
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    Scaling,
    YarnScaling,
    rotary_frequencies,
)

# One colour and one mark for each method, in every figure of the chapter.
LOOKS = {
    "none": (drawing.PADDING, "v"),
    "sinusoidal": (drawing.INK, "s"),
    "Shaw": (drawing.ACCENT, "D"),
    "T5": (drawing.COSINE, "^"),
    "ALiBi": (drawing.REAL, "X"),
    "RoPE": (drawing.SINE, "o"),
}


def effects(offsets: ArrayLike, curves: Mapping[str, ArrayLike]) -> Drawing:
    """Draw what an offset does to the score, for one query and key, a new query, and a new key.

    Parameters
    ----------
    offsets : array_like, shape (n,)
        Relative positions, key minus query.
    curves : mapping of str to array_like, shape (3, n)
        For each method the score minus that at the first offset: of the first query and key, of
        another query, of another key.

    Returns
    -------
    Drawing
        Array ``offsets`` and one array for each method.

    Examples
    --------
    >>> effects([0, 1], {"T5": [[0, 1], [0, 1], [0, 1]]})["T5"].shape
    (3, 2)
    """
    offsets = np.asarray(offsets)
    arrays = {name: np.asarray(curve, dtype=float) for name, curve in curves.items()}
    rows = -(-len(arrays) // 2)
    looks = (
        (drawing.INK, "-", 3.4, "first query and key"),
        (drawing.QUERY, "--", 1.8, "new query"),
        (drawing.KEY, ":", 2.2, "new key"),
    )
    with drawing.canvas(6.4, 2.3 * rows + 0.6, rows, 2, squeeze=False, sharex=True) as (
        figure,
        axes,
    ):
        figure.suptitle("What an offset does, and to whom", fontweight="bold")
        for ax, (name, curve) in zip(axes.ravel(), arrays.items(), strict=False):
            for values, (color, style, width, label) in zip(curve, looks, strict=True):
                ax.plot(offsets, values, style, color=color, linewidth=width, label=label)
            ax.set_title(name, loc="center", fontweight="normal")
        ticks = offsets[:: max(1, len(offsets) // 4)]
        for ax in axes[-1]:
            ax.set_xticks(ticks, labels=[str(tick) for tick in ticks])
            ax.set_xlabel("key − query (positions)")
        for ax in axes[:, 0]:
            ax.set_ylabel("change of score")
        lines, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=3)
    said = []
    for name, (first, query, key) in arrays.items():
        same = [np.allclose(first, query), np.allclose(first, key)]
        moved = [
            word for word, equal in zip(("the query", "the key"), same, strict=True) if not equal
        ]
        said.append(f"{name}: with {' and '.join(moved) if moved else 'neither'}")
    alt = (
        f"Change of a score against the offset, one panel for each method, three curves for "
        f"different contents. The curve changes for {'; '.join(said)}."
    )
    return Drawing(figure, alt, {"offsets": offsets, **arrays})


def slopes(n_heads: int, formula: ArrayLike, released: ArrayLike) -> Drawing:
    """Draw ALiBi's slopes for each head, by the formula of the paper and by the released rule.

    Parameters
    ----------
    n_heads : int
    formula, released : array_like, shape (n_heads,)

    Returns
    -------
    Drawing
        Arrays ``formula``, ``released``.

    Examples
    --------
    >>> slopes(2, [0.0625, 0.00390625], [0.0625, 0.00390625])["formula"].shape
    (2,)
    """
    formula, released = np.asarray(formula), np.asarray(released)
    head = np.arange(1, n_heads + 1)
    with drawing.canvas(6.4, 3.0) as (figure, ax):
        ax.semilogy(head, formula, "o--", color=drawing.PADDING, base=2, label="paper's formula")
        ax.semilogy(
            head, released, "X", color=drawing.REAL, base=2, markersize=9, label="released code"
        )
        ax.set(xlabel="head", ylabel="slope (score per position)", xticks=head)
        ax.set_title(f"{n_heads} heads: the code does not follow the formula")
        ax.legend(loc="lower left")
    equal = np.isclose(formula, released).sum()
    shared = np.isclose(released[:, np.newaxis], formula).any(axis=1).sum()
    alt = (
        f"Slope of each of {n_heads} heads on a logarithmic axis. The formula falls in a straight "
        f"line. The released code gives {equal or 'none'} of the heads the slope of the formula, "
        f"though {shared} slopes occur in both; it falls faster and starts again "
        f"at {released[1 << (n_heads.bit_length() - 1) :].max(initial=0):g} after the first power "
        f"of two."
    )
    return Drawing(figure, alt, {"formula": formula, "released": released})


def buckets(relative: ArrayLike, encoder: ArrayLike, decoder: ArrayLike) -> Drawing:
    """Draw the T5 bucket of every relative position, for an encoder and for a decoder.

    Parameters
    ----------
    relative : array_like of int, shape (n,)
        Key position minus query position.
    encoder, decoder : array_like of int, shape (n,)
        Bucket when there are buckets for both directions, and for the past alone.

    Returns
    -------
    Drawing
        Arrays ``relative``, ``encoder``, ``decoder``, and ``encoder widths`` and ``decoder
        widths``: number of distances in each bucket that serves the past, nearest first, as far as
        `relative` reaches.

    Examples
    --------
    >>> buckets([-2, -1, 0], [1, 1, 0], [2, 1, 0])["encoder widths"]
    array([1, 2])
    """
    relative, encoder, decoder = (np.asarray(array) for array in (relative, encoder, decoder))
    arrays = {"relative": relative, "encoder": encoder, "decoder": decoder}
    with drawing.canvas(6.4, 3.4) as (figure, ax):
        for name, color, serves in (
            ("encoder", drawing.COSINE, "two directions"),
            ("decoder", drawing.SINE, "the past only"),
        ):
            values = arrays[name]
            ax.step(relative, values, where="mid", color=color, label=f"{name}: {serves}")
            arrays[f"{name} widths"] = np.unique(values[relative <= 0], return_counts=True)[1]
            merged = relative[values == values[0]]
            ax.hlines(values[0], merged.min(), merged.max(), color=color, linewidth=6, alpha=0.5)
        ax.set(xlabel="key − query (positions)", ylabel="bucket", ylim=(-1, 40))
        ax.set_title("Near distances have a bucket each, far ones share")
        ax.legend(loc="upper center", ncols=2, fontsize=9)
    last = [-relative[arrays[name] == arrays[name][0]].max() for name in ("encoder", "decoder")]
    alt = (
        f"Bucket against relative position: steps of width 1 near zero that grow wider outwards. "
        f"The last bucket of the past begins at distance {last[0]} in the encoder and "
        f"{last[1]} in the decoder, and takes everything beyond."
    )
    return Drawing(figure, alt, arrays)


def pairings(head_dim: int) -> Drawing:
    """Draw which two dimensions of a head form a pair, for the two pairings.

    Parameters
    ----------
    head_dim : int
        Even.

    Returns
    -------
    Drawing
        Arrays ``interleaved`` and ``half``, each of shape (pairs, 2): the dimensions of a pair.

    Examples
    --------
    >>> pairings(6)["half"]
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    dimension = np.arange(head_dim)
    arrays = {"interleaved": dimension.reshape(-1, 2), "half": dimension.reshape(2, -1).T}
    colors = (drawing.SINE, drawing.COSINE, drawing.REAL, drawing.ACCENT)
    with drawing.canvas(6.4, 2.5, 1, 2) as (figure, axes):
        figure.suptitle("The same pairs, from different places", fontweight="bold")
        for ax, (name, pairs) in zip(axes, arrays.items(), strict=True):
            for number, (left, right) in enumerate(pairs):
                color = colors[number % len(colors)]
                span = right - left
                arc = Arc(
                    ((left + right) / 2, 0),
                    span,
                    0.5 * span,
                    theta1=0,
                    theta2=180,
                    color=color,
                    linewidth=2.2,
                )
                ax.add_patch(arc)
                ax.plot([left, right], [0, 0], "o", color=color, markersize=8)
            ax.set(xlim=(-0.6, head_dim - 0.4), ylim=(-0.3, head_dim / 7), yticks=[])
            ax.set_xticks(dimension)
            ax.set_xlabel("dimension of the head")
            ax.spines["left"].set_visible(False)
            ax.set_title(name, loc="center", fontweight="normal")
    listed = "; ".join(
        f"{name} {', '.join(f'{a} with {b}' for a, b in pairs)}" for name, pairs in arrays.items()
    )
    alt = f"Arcs that join the two dimensions of a pair, of {head_dim} dimensions: {listed}."
    return Drawing(figure, alt, arrays)


def task_scores(
    tasks: Mapping[str, float], results: Mapping[str, Mapping[str, Sequence[float]]]
) -> Drawing:
    """Draw the accuracy of every seed of every method, one panel for each task.

    Parameters
    ----------
    tasks : mapping of str to float
        Best accuracy without order, for each task.
    results : mapping of method to mapping of task to sequence of float
        One accuracy for each seed.

    Returns
    -------
    Drawing
        One array for each method, of shape (tasks, seeds), and ``ceiling``, of shape (tasks,).

    Examples
    --------
    >>> drawn = task_scores({"shift": 0.3}, {"RoPE": {"shift": [1.0, 0.98]}})
    >>> drawn["RoPE"]
    array([[1.  , 0.98]])
    """
    arrays = {name: np.array([found[task] for task in tasks]) for name, found in results.items()}
    ceiling = np.array(list(tasks.values()))
    names = list(arrays)
    with drawing.canvas(
        6.4, 0.34 * len(names) + 1.4, 1, len(tasks), squeeze=False, sharey=True
    ) as (
        figure,
        axes,
    ):
        figure.suptitle("Each score formula has its own blind spot", fontweight="bold")
        for column, (ax, task) in enumerate(zip(axes[0], tasks, strict=True)):
            ax.axvline(ceiling[column], color=drawing.PADDING, linestyle="--", linewidth=1.2)
            for row, name in enumerate(names):
                color, mark = LOOKS.get(name, (drawing.INK, "o"))
                found = arrays[name][column]
                ax.plot(found, [row] * len(found), mark, color=color, markersize=7, alpha=0.75)
            ax.set(xlim=(0, 1.08), xlabel="accuracy")
            ax.set_xticks([0, 0.5, 1], labels=["0", "½", "1"])
            ax.set_yticks(range(len(names)), labels=names)
            ax.set_title(task, loc="center", fontweight="normal", fontsize=10)
        axes[0, 0].invert_yaxis()
    listed = "; ".join(
        f"{task}: "
        + ", ".join(f"{name} {arrays[name][column].mean():.2f}" for name in names)
        + f", ceiling without order {ceiling[column]:.2f}"
        for column, task in enumerate(tasks)
    )
    alt = f"Accuracy of every method on {len(tasks)} tasks, mean over seeds. {listed}."
    return Drawing(figure, alt, arrays | {"ceiling": ceiling})


def by_length(
    lengths: Sequence[int],
    trained: int,
    results: Mapping[str, Mapping[str, ArrayLike]],
    title: str,
) -> Drawing:
    """Draw accuracy against length, one panel for each task, with bands from worst to best seed.

    Parameters
    ----------
    lengths : sequence of int
    trained : int
        Longest length of the training.
    results : mapping of task to mapping of method to array_like, shape (seeds, lengths)
    title : str

    Returns
    -------
    Drawing
        One array ``"task: method"`` for each curve.

    Examples
    --------
    >>> found = {"shift": {"RoPE": [[1.0, 0.9], [1.0, 0.8]]}}
    >>> by_length([16, 32], 16, found, "A title")["shift: RoPE"].shape
    (2, 2)
    """
    arrays = {
        f"{task}: {name}": np.asarray(found, dtype=float)
        for task, methods in results.items()
        for name, found in methods.items()
    }
    with drawing.canvas(6.4, 3.7, 1, len(results), squeeze=False, sharey=True) as (figure, axes):
        figure.suptitle(title, fontweight="bold")
        for ax, (task, methods) in zip(axes[0], results.items(), strict=True):
            for name in methods:
                found = arrays[f"{task}: {name}"]
                color, mark = LOOKS.get(name, (drawing.INK, "o"))
                low, high = found.min(axis=0), found.max(axis=0)
                ax.fill_between(lengths, low, high, color=color, alpha=0.18, linewidth=0)
                ax.plot(lengths, found.mean(axis=0), color=color, marker=mark, label=name)
            ax.axvline(trained, color=drawing.PADDING, linestyle="--", linewidth=1.2)
            ax.set_xscale("log", base=2)
            ax.set_xticks(lengths, labels=[str(length) for length in lengths])
            ax.minorticks_off()
            ax.set(xlabel="length (tokens)", ylim=(0, 1.05))
            ax.set_title(task, loc="center", fontweight="normal")
        axes[0, 0].set_ylabel("accuracy")
        lines, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=3)
    listed = "; ".join(
        f"{task}: "
        + ", ".join(f"{name} {arrays[f'{task}: {name}'].mean(axis=0)[-1]:.2f}" for name in methods)
        for task, methods in results.items()
    )
    alt = (
        f"Accuracy against length for models trained up to length {trained}, with bands from the "
        f"worst to the best seed. Mean at length {lengths[-1]}: {listed}."
    )
    return Drawing(figure, alt, arrays)


def _maps(factor: float, original_length: int) -> dict[str, Scaling]:
    """Give the four ways to slow the pairs by `factor` that `slowed_pairs` compares."""
    return {
        "linear": LinearScaling(factor),
        "NTK": NTKScaling(factor),
        "YaRN": YarnScaling(factor, original_length),
        "Llama 3": Llama3Scaling(factor, original_length),
    }


def slowed_pairs(factor: float, original_length: int = 2048, head_dim: int = 64) -> Drawing:
    """Draw the wavelength of every pair, before and after scaling, for four frequency maps.

    Parameters
    ----------
    factor : float
        How many times longer the text may become, at least 1.
    original_length : int
        Length of the training.
    head_dim : int
        Width of the head.

    Returns
    -------
    Drawing
        Array ``before`` and one for each map, of shape (head_dim / 2,): positions per turn.

    Examples
    --------
    >>> drawn = slowed_pairs(4.0)
    >>> (drawn["linear"] / drawn["before"])[[0, -1]]
    array([4., 4.])
    """
    before = 2 * np.pi / rotary_frequencies(head_dim)
    after = {
        name: 2 * np.pi / rotary_frequencies(head_dim, scaling=scaling)
        for name, scaling in _maps(factor, original_length).items()
    }
    looks = (
        (drawing.PADDING, "-"),
        (drawing.SINE, "--"),
        (drawing.COSINE, "-"),
        (drawing.REAL, ":"),
    )
    pair = np.arange(head_dim // 2)
    with drawing.canvas(6.4, 3.9, 2, 1, sharex=True, height_ratios=[3, 2]) as (figure, axes):
        axes[0].semilogy(pair, before, color=drawing.INK, label="before")
        for (name, wave), (color, style) in zip(after.items(), looks, strict=True):
            axes[0].semilogy(pair, wave, style, color=color, linewidth=2.2, label=name)
            axes[1].plot(pair, wave / before, style, color=color, linewidth=2.2)
        axes[0].axhline(original_length, color=drawing.ACCENT, linewidth=1.2)
        axes[0].text(pair[-1], original_length / 1.3, "trained length", ha="right", va="top")
        axes[0].set(ylabel="positions per turn", ylim=(3, 3e6))
        axes[0].set_title(f"Factor {factor:g}: who is slowed, and by how much")
        axes[0].legend(ncols=2, loc="upper left", fontsize=9)
        axes[1].set(xlabel="pair", ylabel="slowed by", ylim=(0.5, max(factor, 2) * 1.1))
    within = before < original_length
    alt = (
        f"Positions per turn of {head_dim // 2} pairs on a logarithmic axis, and below it how much "
        f"slower each pair became, for factor {factor:g}. Linear slows all pairs alike; NTK from 1 "
        f"at the first pair to {factor:g} at the last; YaRN keeps "
        f"{int(np.isclose(after['YaRN'], before).sum())} pairs and Llama 3 "
        f"{int(np.isclose(after['Llama 3'], before).sum())}. A line marks the trained length "
        f"{original_length}, within which {int(within.sum())} pairs turn at least once."
    )
    return Drawing(figure, alt, {"before": before, **after})


def patch_similarity(
    rows: int, columns: int, patch: tuple[int, int], encodings: Mapping[str, ArrayLike]
) -> Drawing:
    """Draw how similar one patch of an image is to all others, for several encodings of the grid.

    Parameters
    ----------
    rows, columns : int
        Size of the grid.
    patch : tuple of int
        Row and column of the patch that is compared.
    encodings : mapping of str to array_like, shape (rows * columns, width)
        Row-major.

    Returns
    -------
    Drawing
        One array for each encoding, of shape (rows, columns): dot products divided by the largest.

    Examples
    --------
    >>> from posenc.sinusoidal import sinusoidal_encoding
    >>> table = sinusoidal_encoding(6, 8)
    >>> float(patch_similarity(2, 3, (1, 2), {"numbered": table})["numbered"][1, 2])
    1.0
    """
    arrays = {}
    for name, encoding in encodings.items():
        table = np.asarray(encoding, dtype=float).reshape(rows, columns, -1)
        dots = table @ table[patch]
        arrays[name] = dots / dots.max()
    lowest = min(dots.min() for dots in arrays.values())
    with drawing.canvas(6.4, 2.7, 1, len(arrays), squeeze=False, sharey=True) as (figure, axes):
        figure.suptitle("Two axes need two positions", fontweight="bold")
        for ax, (name, dots) in zip(axes[0], arrays.items(), strict=True):
            image = ax.imshow(dots, cmap=drawing.SEQUENTIAL, vmin=lowest, vmax=1)
            ax.plot(
                patch[1], patch[0], "x", color=drawing.COSINE, markersize=9, markeredgewidth=2.5
            )
            ax.set(xlabel="column (x)")
            ax.set_title(name, loc="center", fontweight="normal")
        axes[0, 0].set_ylabel("row (y)")
        figure.colorbar(image, ax=axes[0].tolist(), shrink=0.75, label="similarity")
    up = "; ".join(
        f"{name} {dots[patch[0] - 1, patch[1]]:.2f} to the patch above and "
        f"{dots[patch[0], patch[1] - 1]:.2f} to the one on the left"
        for name, dots in arrays.items()
    )
    alt = f"Similarity of the patch in row {patch[0]}, column {patch[1]} to all others: {up}."
    return Drawing(figure, alt, arrays)


def stored_numbers(lengths: ArrayLike, counts: Mapping[str, ArrayLike]) -> Drawing:
    """Draw how many numbers a method keeps besides the scores, against the length of the text.

    Parameters
    ----------
    lengths : array_like, shape (n,)
    counts : mapping of str to array_like, shape (n,)

    Returns
    -------
    Drawing
        Array ``lengths`` and one for each name.

    Examples
    --------
    >>> stored_numbers([16, 32], {"view": [31, 63]})["view"]
    array([31, 63])
    """
    lengths = np.asarray(lengths)
    arrays: dict[str, NDArray] = {name: np.asarray(count) for name, count in counts.items()}
    colors = (drawing.ACCENT, drawing.INK, drawing.COSINE, drawing.SINE, drawing.REAL)
    with drawing.canvas(6.4, 3.4) as (figure, ax):
        for (name, count), color, mark in zip(arrays.items(), colors, "Dsx^o", strict=False):
            ax.loglog(lengths, count, color=color, marker=mark, label=name)
        ax.set(xlabel="length of the text (positions)", ylabel="numbers stored")
        ax.set_title("Never store a diagonal more than once")
        ax.legend(loc="upper left", fontsize=9)
    listed = "; ".join(f"{name} {count[-1]:.1e}" for name, count in arrays.items())
    alt = f"Numbers stored against length, both axes logarithmic. At {lengths[-1]}: {listed}."
    return Drawing(figure, alt, {"lengths": lengths, **arrays})
