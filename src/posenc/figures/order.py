"""Figures on order: what attention does to sentences made of the same words."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike, NDArray

from posenc.attention import scaled_dot_product_attention
from posenc.figures import drawing
from posenc.figures.drawing import Drawing

# Narrower than the page, so that the numbers in a table stay legible on a phone.
WIDTH = 5.2


def lookup(words: Sequence[str], embeddings: ArrayLike, order: Sequence[int]) -> Drawing:
    """Draw the embeddings of a sentence beside those of the same words in another order.

    Parameters
    ----------
    words : sequence of str, length L
    embeddings : array_like, shape (L, d_model)
    order : sequence of int
        The second sentence takes the words in this order.

    Returns
    -------
    Drawing
        With arrays ``sentence`` and ``reordered``, both (L, d_model).

    Examples
    --------
    >>> lookup(["dog", "bites"], [[2.0, 1.0], [0.0, 3.0]], [1, 0])["reordered"]
    array([[0., 3.],
           [2., 1.]])
    """
    sentence = np.asarray(embeddings, dtype=float)
    order = list(order)
    reordered, other = sentence[order], [words[n] for n in order]
    limit = np.abs(sentence).max()
    with drawing.canvas(WIDTH, 2.3, columns=2) as (figure, axes):
        _table(axes[0], sentence, words, " ".join(words), limit, "{:.0f}")
        _table(axes[1], reordered, other, " ".join(other), limit, "{:.0f}")
        _headline(figure, "The same rows, in another order")
    alt = (
        f"Two tables of numbers. {_rows(words, sentence)} make “{' '.join(words)}”; the same rows "
        f"in the order {', '.join(other)} make “{' '.join(other)}”."
    )
    return Drawing(figure, alt, {"sentence": sentence, "reordered": reordered})


def attention_weights(words: Sequence[str], weights: ArrayLike) -> Drawing:
    """Draw how much each word (a row) takes from each word (a column).

    Parameters
    ----------
    words : sequence of str, length L
    weights : array_like, shape (L, L)
        Rows are queries, columns keys; each row sums to 1.

    Returns
    -------
    Drawing
        With the array ``weights``, shape (L, L).

    Examples
    --------
    >>> attention_weights(["a", "b"], [[0.9, 0.1], [0.3, 0.7]])
    Attention weights. a takes 0.90 from a, 0.10 from b; b takes 0.30 from a, 0.70 from b.
    """
    weights = np.asarray(weights, dtype=float)
    with drawing.canvas(4.4, 3.0) as (figure, axes):
        axes.imshow(weights, cmap=drawing.SEQUENTIAL, vmin=0, vmax=1)
        drawing.annotate_cells(axes, weights)
        axes.set_xticks(range(len(words)), words)
        axes.set_yticks(range(len(words)), words)
        axes.set_xlabel("takes from")
        axes.set_ylabel("the new row of")
        best = weights[0].argmax()
        axes.set_title(f"{words[0]} takes {weights[0, best]:.0%} of its mean from {words[best]}")
    takes = "; ".join(
        f"{word} takes {', '.join(f'{w:.2f} from {k}' for k, w in zip(words, row, strict=True))}"
        for word, row in zip(words, weights, strict=True)
    )
    return Drawing(figure, f"Attention weights. {takes}.", {"weights": weights})


def reordered(sentence: str, vectors: Mapping[str, ArrayLike]) -> Drawing:
    """Draw a sentence's embeddings, what self-attention makes of them, and the mean of that.

    Parameters
    ----------
    sentence : str
        Words with blanks between them.
    vectors : mapping of str to array_like, shape (d_model,)
        The embedding of every known word.

    Returns
    -------
    Drawing
        With arrays ``inputs`` and ``outputs``, (L, d_model), and ``mean``, (d_model,).

    Raises
    ------
    ValueError
        If the sentence is empty or holds an unknown word.

    Examples
    --------
    >>> vectors = {"dog": [2.0, 1.0], "bites": [0.0, 3.0]}
    >>> one, two = reordered("dog bites", vectors), reordered("bites dog", vectors)
    >>> np.allclose(one["outputs"], two["outputs"][::-1]), np.allclose(one["mean"], two["mean"])
    (True, True)
    """
    words = sentence.split()
    unknown = [word for word in words if word not in vectors]
    if not words or unknown:
        raise ValueError(
            f"sentence must be made of the words {', '.join(vectors)}, got {sentence!r}"
        )
    inputs = np.array([vectors[word] for word in words], dtype=float)
    outputs, _ = scaled_dot_product_attention(inputs, inputs, inputs)
    mean = outputs.mean(axis=0)
    limit = max(np.abs(np.array(list(vectors.values()), dtype=float)).max(), 1e-9)
    ratios = {"height_ratios": [len(words), 1]}
    with drawing.canvas(WIDTH, 3.1, rows=2, columns=2, gridspec_kw=ratios) as (figure, axes):
        _table(axes[0, 0], inputs, words, "embeddings", limit, "{:.0f}")
        _table(axes[0, 1], outputs, words, "after attention", limit)
        _table(axes[1, 1], mean[np.newaxis], ["mean"], "", limit)
        axes[1, 0].axis("off")
        _headline(figure, f"“{sentence}”: rows follow words, the mean stands still")
    alt = (
        f"For “{sentence}”, attention gives {_rows(words, outputs)}. The mean of these rows is "
        f"{_numbers(mean)}."
    )
    return Drawing(figure, alt, {"inputs": inputs, "outputs": outputs, "mean": mean})


def pooling(rows: ArrayLike, mean: ArrayLike) -> Drawing:
    """Draw how far every reordering moves the output's rows, and how far their mean.

    Parameters
    ----------
    rows : array_like, shape (orders,)
        Distance of the output from that of the first order, all rows together.
    mean : array_like, shape (orders,)
        The same for the mean over the rows.

    Returns
    -------
    Drawing
        With arrays ``rows`` and ``mean``, both sorted by `rows`.

    Examples
    --------
    >>> pooling([0.0, 2.0, 1.0], [0.0, 0.0, 0.0])["rows"]
    array([0., 1., 2.])
    """
    rows, mean = np.asarray(rows, dtype=float), np.asarray(mean, dtype=float)
    ranking = np.argsort(rows, kind="stable")
    rows, mean = rows[ranking], mean[ranking]
    with drawing.canvas(WIDTH, 3.0) as (figure, axes):
        axes.plot(rows, "o", ms=3, color=drawing.QUERY)
        axes.plot(mean, "o", ms=3, color=drawing.KEY)
        middle = len(rows) // 2
        axes.text(middle, rows[middle] * 0.72, "the rows", color=drawing.QUERY, va="top")
        axes.text(middle, rows.max() * 0.05, "their mean", color=drawing.KEY, va="bottom")
        axes.set_xlabel("order of the words (sorted by change)")
        axes.set_ylabel("change of the output")
        axes.set_title("Reordering moves the rows, never the mean")
    alt = (
        f"For {len(rows)} orders of the same words: the change of the output's rows goes from "
        f"{rows[0]:.1f} up to {rows[-1]:.1f}, the change of their mean is at most "
        f"{mean.max():.1f}."
    )
    return Drawing(figure, alt, {"rows": rows, "mean": mean})


def influence(maps: Mapping[str, ArrayLike]) -> Drawing:
    """Draw, for several networks, which output rows change when one word is changed.

    Parameters
    ----------
    maps : mapping of str to array_like, shape (L, L), bool
        ``True`` where a change of the word (column) changes the output (row).

    Returns
    -------
    Drawing
        With one (L, L) array for each name.

    Examples
    --------
    >>> influence({"attention": np.ones((3, 3), bool), "RNN": np.tri(3, dtype=bool)})
    Which output rows one changed word reaches. attention: 9 of 9 pairs. RNN: 6 of 9 pairs.
    """
    arrays = {name: np.asarray(seen, dtype=bool) for name, seen in maps.items()}
    two_tones = ListedColormap(["white", drawing.SINE])
    with drawing.canvas(WIDTH, 2.4, columns=len(arrays), squeeze=False) as (figure, axes):
        for column, (name, seen) in zip(axes[0], arrays.items(), strict=True):
            column.imshow(seen, cmap=two_tones, vmin=0, vmax=1)
            column.set_xticks([0, len(seen) - 1])
            column.set_yticks([0, len(seen) - 1])
            column.set_xlabel("changed word")
            column.set_title(name, fontweight="normal")
            for side in ("top", "right"):
                column.spines[side].set_visible(True)
        axes[0, 0].set_ylabel("output row")
        _headline(figure, "How far one changed word reaches in one layer")
    counts = " ".join(f"{n}: {seen.sum()} of {seen.size} pairs." for n, seen in arrays.items())
    return Drawing(figure, f"Which output rows one changed word reaches. {counts}", arrays)


def sums(labels: Sequence[str], embeddings: ArrayLike, codes: ArrayLike) -> Drawing:
    """Draw the sum ``H = E + P`` as three tables with a row for each word at a position.

    Parameters
    ----------
    labels : sequence of str, length n
        Such as "dog at 0".
    embeddings : array_like, shape (n, d_model)
    codes : array_like, shape (n, d_model)

    Returns
    -------
    Drawing
        With arrays ``E``, ``P`` and ``H``, all (n, d_model).

    Examples
    --------
    >>> sums(["dog at 0", "dog at 1"], [[2.0, 1.0], [2.0, 1.0]], [[0.5, 0.0], [0.1, 0.2]])["H"]
    array([[2.5, 1. ],
           [2.1, 1.2]])
    """
    E, P = np.asarray(embeddings, dtype=float), np.asarray(codes, dtype=float)
    H = E + P
    limit = max(np.abs(E).max(), np.abs(H).max())
    titles = ["E, from the word", "+ P, from the position", "= H, from both"]
    with drawing.canvas(4.4, 4.9, rows=3) as (figure, axes):
        for panel, array, title in zip(axes, (E, P, H), titles, strict=True):
            _table(panel, array, labels, title, limit, "{:.1f}")
        axes[-1].set_xlabel("dimension")
        _headline(figure, "Only the sum tells all of them apart")
    alt = (
        f"Three tables. Embeddings: {_rows(labels, E, 1)}. Position codes: {_rows(labels, P, 1)}. "
        f"Their sums: {_rows(labels, H, 1)}."
    )
    return Drawing(figure, alt, {"E": E, "P": P, "H": H})


def gap(strength: ArrayLike, gaps: ArrayLike, word: str) -> Drawing:
    """Draw how far apart a word's outputs in two orders are, against the strength of the code.

    Parameters
    ----------
    strength : array_like, shape (n,)
        Factor of the position code; 0 means no code.
    gaps : array_like, shape (n,)
        Distance between the word's two outputs.
    word : str

    Returns
    -------
    Drawing
        With arrays ``strength`` and ``gap``.

    Examples
    --------
    >>> gap([0.0, 1.0], [0.0, 0.7], "dog")
    Distance between the two outputs of dog: 0.00 at strength 0, 0.70 at strength 1.
    """
    strength, gaps = np.asarray(strength, dtype=float), np.asarray(gaps, dtype=float)
    with drawing.canvas(WIDTH, 2.8) as (figure, axes):
        axes.plot(strength, gaps, color=drawing.ACCENT)
        axes.plot(strength[:1], gaps[:1], "o", color=drawing.ACCENT)
        axes.set_xlabel("strength of the position code")
        axes.set_ylabel(f"distance of {word} to {word}")
        axes.set_title("With no code the two headlines are one")
    alt = (
        f"Distance between the two outputs of {word}: {gaps[0]:.2f} at strength {strength[0]:g}, "
        f"{gaps[-1]:.2f} at strength {strength[-1]:g}."
    )
    return Drawing(figure, alt, {"strength": strength, "gap": gaps})


def faults(
    integer: ArrayLike,
    normalised: Sequence[ArrayLike],
    one_hot: Sequence[ArrayLike],
    binary: ArrayLike,
    d_model: int,
) -> Drawing:
    """Draw the fault of each of four naive encodings.

    Parameters
    ----------
    integer, binary : array_like, shape (L, d_model)
    normalised : sequence of two array_like, each (its length, d_model)
        The encoding of a short sentence and of a long one.
    one_hot : sequence of array_like, each (its length, its length)
    d_model : int
        The width that an encoding must have.

    Returns
    -------
    Drawing
        With arrays ``integer`` (L,), ``short`` and ``long`` (the normalised values), ``widths``
        (of the one-hot codes) and ``steps`` (L − 1,), the distance of binary neighbours.

    Examples
    --------
    >>> positions = np.arange(4.0)[:, None]
    >>> bits = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> short, long = positions[:3] / 2, positions / 3
    >>> faults(positions, [short, long], [np.eye(3), np.eye(4)], bits, 2)["steps"].round(2)
    array([1.  , 1.41, 1.  ])
    """
    values = np.asarray(integer, dtype=float)[:, 0]
    short, long = (np.asarray(codes, dtype=float)[:, 0] for codes in normalised)
    lengths, widths = np.array([np.shape(codes) for codes in one_hot]).T
    steps = np.linalg.norm(np.diff(np.asarray(binary, dtype=float), axis=0), axis=1)
    with drawing.canvas(WIDTH, 4.8, rows=2, columns=2) as (figure, axes):
        (counting, dividing), (columns, bits) = axes
        counting.axhspan(-1, 1, color=drawing.PADDING, alpha=0.4, lw=0)
        counting.plot(values, ".", color=drawing.KEY)
        counting.set_title("integer: grows", fontweight="normal")
        counting.set_ylabel("entry")
        dividing.plot(short, ".", color=drawing.KEY)
        dividing.plot(long, ".", color=drawing.QUERY)
        dividing.text(len(short) - 1, 1.04, f"{len(short)} words", color=drawing.KEY, ha="center")
        dividing.text(len(long) - 1, 1.04, f"{len(long)} words", color=drawing.QUERY, ha="right")
        dividing.set_ylim(-0.05, 1.2)
        dividing.set_title("normalised: shifts", fontweight="normal")
        columns.bar([str(n) for n in lengths], widths, color=drawing.KEY, width=0.4)
        columns.axhline(d_model, color=drawing.INK, ls="--", lw=1.2)
        columns.text(0.5, d_model, "d_model", ha="center", va="bottom")
        columns.set_title("one-hot: widens", fontweight="normal")
        columns.set_ylabel("columns")
        columns.set_xlabel("words")
        bits.bar(np.arange(len(steps)), steps, color=drawing.KEY, width=0.6)
        bits.set_title("binary: jumps", fontweight="normal")
        bits.set_ylabel("step to the next")
        for panel in (counting, dividing, bits):
            panel.set_xlabel("position")
        _headline(figure, "Four naive codes, four faults")
    alt = (
        f"Integer codes grow to {values.max():.0f}. Normalised, position {len(short) - 1} is coded "
        f"{short[-1]:.2f} in a sentence of {len(short)} words and {long[len(short) - 1]:.2f} in "
        f"one of {len(long)}. One-hot codes have {' and '.join(map(str, widths))} columns where "
        f"{d_model} are wanted. From one binary code to the next the distance jumps between "
        f"{steps.min():.2f} and {steps.max():.2f}."
    )
    arrays = {"integer": values, "short": short, "long": long, "widths": widths, "steps": steps}
    return Drawing(figure, alt, arrays)


def _table(
    axes: Any,
    values: NDArray[np.floating],
    rows: Sequence[str],
    title: str,
    limit: float,
    form: str = "{:.2f}",
) -> None:
    """Draw a matrix as coloured numbers, a labelled row for each word."""
    axes.imshow(values, cmap=drawing.DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    drawing.annotate_cells(axes, values, form)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontweight="normal")


def _headline(figure: Any, message: str) -> None:
    figure.suptitle(message, fontsize=11, fontweight="bold", x=0.01, ha="left")


def _numbers(values: NDArray[np.floating], digits: int = 2) -> str:
    return "(" + ", ".join(f"{value:.{digits}f}" for value in values) + ")"


def _rows(labels: Sequence[str], values: NDArray[np.floating], digits: int = 2) -> str:
    named = zip(labels, values, strict=True)
    return ", ".join(f"{label} {_numbers(row, digits)}" for label, row in named)
