"""Figures of the chapter on relative position."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing
from posenc.figures.drawing import Drawing
from posenc.sinusoidal import frequencies


def clocks(offset: int, starts: Sequence[int] = (0, 5), d_model: int = 6) -> Drawing:
    """Draw every pair as a clock hand, before and after a shift, for two starting positions.

    The hand of a pair points to (sin, cos), so that it starts at twelve and turns clockwise.

    Parameters
    ----------
    offset : int
        Number of positions to move.
    starts : sequence of int
        Position before the shift, one row of clocks for each.
    d_model : int
        Width of the encoding; one column of clocks for each of its pairs.

    Returns
    -------
    Drawing
        Arrays ``before``, ``after`` and ``turn`` (clockwise angles in radians, taken from the
        drawn hands; ``turn`` in −π … π), each of shape (starts, pairs).

    Examples
    --------
    >>> clocks(3)["turn"].round(3)
    array([[3.   , 0.139, 0.006],
           [3.   , 0.139, 0.006]])
    """
    omega = frequencies(d_model)
    positions = np.asarray(starts)[:, np.newaxis, np.newaxis] + np.array([0, offset])
    hands = np.exp(1j * positions * omega[:, np.newaxis])  # (starts, pairs, before and after)
    before, after = np.angle(hands[..., 0]), np.angle(hands[..., 1])
    turn = np.angle(hands[..., 1] / hands[..., 0])
    rows, columns = turn.shape
    with drawing.canvas(5.2, 1.8 * rows + 0.5, rows, columns, squeeze=False) as (figure, axes):
        figure.suptitle("A shift turns a hand equally, wherever it starts", fontweight="bold")
        rim = np.exp(1j * np.linspace(0, 2 * np.pi, 121))
        for (row, column), ax in np.ndenumerate(axes):
            ax.plot(rim.real, rim.imag, color=drawing.PADDING, linewidth=0.8)
            swept = before[row, column] + np.linspace(0, offset * omega[column], 121)
            ax.plot(0.6 * np.sin(swept), 0.6 * np.cos(swept), color=drawing.ACCENT, linewidth=3)
            for angle, color in ((before, drawing.PADDING), (after, drawing.SINE)):
                tip = angle[row, column]
                ax.plot([0, np.sin(tip)], [0, np.cos(tip)], color=color, linewidth=2.6)
            ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
            ax.spines[:].set_visible(False)
            if row == 0:
                ax.set_title(f"pair {column}", loc="center", fontweight="normal")
            if column == 0:
                ax.set_ylabel(f"{starts[row]} → {starts[row] + offset}")
    turned = ", ".join(f"{angle:.3f}" for angle in offset * omega)
    alt = (
        f"Clock hands of {columns} pairs for the moves "
        f"{' and '.join(f'{start} to {start + offset}' for start in starts)}. In every row the "
        f"hands turn clockwise by the same angles, {turned} radians from pair 0 on."
    )
    return Drawing(figure, alt, {"before": before, "after": after, "turn": turn})


def evaluations(lengths: ArrayLike, direct: ArrayLike, turned: ArrayLike) -> Drawing:
    """Draw how many sines and cosines a table needs, for two ways to build it.

    Parameters
    ----------
    lengths : array_like, shape (n,)
        Numbers of positions.
    direct, turned : array_like, shape (n,)
        Numbers of evaluations of sin and cos.

    Returns
    -------
    Drawing
        Arrays ``lengths``, ``direct``, ``turned``.

    Examples
    --------
    >>> evaluations([64, 128], [512, 1024], [520, 528])["turned"]
    array([520, 528])
    """
    lengths, direct, turned = (np.asarray(array) for array in (lengths, direct, turned))
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        ax.loglog(lengths, direct, "o-", color=drawing.COSINE, label="one by one", base=10)
        ax.loglog(lengths, turned, "s-", color=drawing.SINE, label="one block, turned")
        ax.set(xlabel="length of the table (positions)", ylabel="sines and cosines")
        ax.set_title("Turning needs far fewer sines and cosines")
        ax.legend()
    alt = (
        f"Evaluations of sin and cos against length, both axes logarithmic. One by one they grow "
        f"from {direct[0]} to {direct[-1]}; with one block turned, from {turned[0]} to "
        f"{turned[-1]}."
    )
    return Drawing(figure, alt, {"lengths": lengths, "direct": direct, "turned": turned})


def similarity(d_model: int, max_offset: int = 60) -> Drawing:
    """Draw the dot product of two encodings against their offset, as a share of its peak.

    Parameters
    ----------
    d_model : int
        Width of the encoding.
    max_offset : int
        Offsets run from ``−max_offset`` to ``max_offset``.

    Returns
    -------
    Drawing
        Arrays ``offset``, ``similarity`` (between −1 and 1) and ``first_rise`` (smallest positive
        offset whose similarity is larger than that of the offset before it).

    Examples
    --------
    >>> int(similarity(64)["first_rise"])
    6
    """
    offset = np.arange(-max_offset, max_offset + 1)
    value = np.cos(offset[:, np.newaxis] * frequencies(d_model)).mean(axis=-1)
    ahead = value[max_offset:]
    rises = np.flatnonzero(np.diff(ahead) > 0) + 1
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        ax.axhline(0, color=drawing.PADDING, linewidth=0.8)
        ax.plot(offset, value, color=drawing.SINE)
        ax.set(xlabel="offset (positions)", ylabel="dot product / peak", ylim=(-1.05, 1.1))
        if rises.size:
            first = int(rises[0])
            ax.plot([-first, first], ahead[[first, first]], "o", color=drawing.ACCENT)
            ax.set_title(f"d_model = {d_model}: first rise at offset {first}")
        else:
            ax.set_title(f"d_model = {d_model}: falls up to offset {max_offset}")
    found = f"rises for the first time at offset {rises[0]}" if rises.size else "only falls"
    alt = (
        f"Dot product of two encodings of width {d_model} against their offset: a curve with its "
        f"peak 1 at offset 0, the same to the left and to the right. Going outwards it falls to "
        f"{ahead[(rises[0] if rises.size else len(ahead)) - 1]:.2f} and {found}."
    )
    first_rise = rises[0] if rises.size else np.nan
    arrays = {"offset": offset, "similarity": value, "first_rise": np.asarray(first_rise)}
    return Drawing(figure, alt, arrays)


def attention_maps(
    scales: Sequence[float], weights: Sequence[NDArray[np.floating]], offset: int
) -> Drawing:
    """Draw attention weights side by side, one map for each scale of the scores.

    Parameters
    ----------
    scales : sequence of float
    weights : sequence of ndarray, shape (query, key)
    offset : int
        Positions from the right key to its query, at least 0.

    Returns
    -------
    Drawing
        Array ``weights``, shape (scales, query, key), and ``right``, shape (scales,): the weight
        of the right key, averaged over the queries that have one.

    Examples
    --------
    >>> attention_maps([1.0, 2.0], [np.eye(3), np.full((3, 3), 1 / 3)], 0)["right"].round(2)
    array([1.  , 0.33])
    """
    stack = np.stack(weights)
    right = np.diagonal(stack, -offset, axis1=-2, axis2=-1).mean(axis=-1)
    with drawing.canvas(5.2, 2.4, 1, len(stack), squeeze=False, sharey=True) as (figure, axes):
        figure.suptitle("The right key wins; winning alone takes scale", fontweight="bold")
        for ax, scale, one in zip(axes[0], scales, stack, strict=True):
            image = ax.imshow(one, cmap=drawing.SEQUENTIAL, vmin=0, vmax=1)
            ax.set(xlabel="key position")
            ax.set_title(f"scale {scale:g}", loc="center", fontweight="normal")
        axes[0, 0].set_ylabel("query position")
        figure.colorbar(image, ax=axes[0].tolist(), shrink=0.8, label="weight")
    shares = ", ".join(
        f"{share:.2f} at scale {scale:g}" for scale, share in zip(scales, right, strict=True)
    )
    alt = (
        f"{len(stack)} maps of attention weights with one bright diagonal each. The right key, "
        f"{offset} back, gets a mean weight of {shares}."
    )
    return Drawing(figure, alt, {"weights": stack, "right": right})


def attended_offsets(
    positions: ArrayLike, attended: Mapping[str, ArrayLike], wanted: int
) -> Drawing:
    """Draw how far back each query attends most, for several ways of fitting the projections.

    Parameters
    ----------
    positions : array_like, shape (2, n)
        Query positions: those of the fit, then new ones.
    attended : mapping of str to array_like, shape (2, n)
        For each way, at most three: query position minus the position of the key with the
        largest score.
    wanted : int
        The offset that was asked for.

    Returns
    -------
    Drawing
        One array for each name.

    Examples
    --------
    >>> where = np.arange(8).reshape(2, 4)
    >>> attended_offsets(where, {"free": where % 3, "turn": where * 0 + 2}, 2)["turn"]
    array([[2, 2, 2, 2],
           [2, 2, 2, 2]])
    """
    positions = np.asarray(positions)
    arrays = {name: np.asarray(offsets) for name, offsets in attended.items()}
    looks = (("x", drawing.COSINE), ("+", drawing.ACCENT), (".", drawing.SINE))
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        ax.axvspan(positions[0, 0] - 0.5, positions[0, -1] + 0.5, color=drawing.PADDING, alpha=0.2)
        for (name, offsets), (mark, color) in zip(arrays.items(), looks, strict=False):
            ax.plot(positions.ravel(), offsets.ravel(), mark, color=color, label=name)
        ax.set(xlabel="query position (grey: used for the fit)", ylabel="positions back")
        ax.set_title("A turn holds at new positions, free fits miss")
        ax.legend(loc="upper left")
    shares = "; ".join(
        f"{name}: {(offsets[0] == wanted).mean():.0%} and {(offsets[1] == wanted).mean():.0%}"
        for name, offsets in arrays.items()
    )
    alt = (
        f"Offset that each query attends to most. Share of queries that attend {wanted} back, at "
        f"the positions of the fit, shaded grey, and at new ones: {shares}."
    )
    return Drawing(figure, alt, arrays)


def content_share(norms: ArrayLike, raw: ArrayLike, read: ArrayLike) -> Drawing:
    """Draw the share of queries that find the right key as the embeddings grow.

    Parameters
    ----------
    norms : array_like, shape (n,)
        Length of an embedding, divided by the length of a position encoding.
    raw, read : array_like, shape (n, trials)
        Share of right queries when the shift acts on the sum of both, and when a projection
        reads the position out of the sum first.

    Returns
    -------
    Drawing
        Arrays ``norms``, ``raw``, ``read``.

    Examples
    --------
    >>> content_share([0, 1], [[1, 1], [0.2, 0.4]], [[1, 1], [1, 1]])["raw"].mean(axis=1).round(1)
    array([1. , 0.3])
    """
    norms, raw, read = (np.asarray(array, dtype=float) for array in (norms, raw, read))
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        for shares, color, label in (
            (read, drawing.SINE, "position read out of the sum first"),
            (raw, drawing.COSINE, "shift applied to the sum"),
        ):
            low, high = shares.min(axis=1), shares.max(axis=1)
            ax.fill_between(norms, low, high, color=color, alpha=0.2, linewidth=0)
            ax.plot(norms, shares.mean(axis=1), "o-", color=color, label=label)
        ax.set(xlabel="length of embedding / length of encoding", ylabel="share right")
        ax.set_ylim(-0.05, 1.1)
        ax.set_title("Content drowns the shift, unless removed")
        ax.legend(loc="center right")
    alt = (
        f"Share of queries whose best key is the right one, against the length of the embeddings, "
        f"with bands from the worst to the best draw. With the shift applied to the sum it falls "
        f"from {raw[0].mean():.2f} to {raw[-1].mean():.2f}; with the position read out first it "
        f"ends at {read[-1].mean():.2f}."
    )
    return Drawing(figure, alt, {"norms": norms, "raw": raw, "read": read})


def score_maps(scores: dict[str, NDArray[np.floating]]) -> Drawing:
    """Draw the scores of a sentence that repeats one word, for several ways to give position.

    Parameters
    ----------
    scores : dict of str to ndarray, shape (query, key)
        ``−inf`` is left blank.

    Returns
    -------
    Drawing
        One array for each name, as given.

    Examples
    --------
    >>> score_maps({"a": np.eye(3), "b": np.ones((3, 3))})["a"].shape
    (3, 3)
    """
    columns = 2
    rows = -(-len(scores) // columns)
    with drawing.canvas(5.2, 2.6 * rows, rows, columns, squeeze=False) as (figure, axes):
        figure.suptitle("Relative methods: one colour per diagonal", fontweight="bold")
        for ax, (name, one) in zip(axes.ravel(), scores.items(), strict=True):
            shown = np.ma.masked_invalid(one - np.mean(one[np.isfinite(one)]))
            top = np.abs(shown).max()
            ax.imshow(shown, cmap=drawing.DIVERGING, vmin=-top, vmax=top)
            ax.set_title(name, loc="center", fontweight="normal")
            ax.set(xlabel="key position", ylabel="query position")
    spreads = {
        name: max(np.ptp(np.diagonal(one, k)) for k in range(1 - len(one), 1))
        for name, one in scores.items()
    }
    constant = [name for name, spread in spreads.items() if spread < 1e-9]
    alt = (
        f"Maps of scores between equal words. Every diagonal has one colour for "
        f"{', '.join(constant) or 'none'}, and not for "
        f"{', '.join(name for name in scores if name not in constant) or 'any other'}."
    )
    return Drawing(figure, alt, dict(scores))


def far_out(offsets: ArrayLike, values: dict[str, NDArray[np.floating]]) -> Drawing:
    """Draw dot products against the offset, computed far from position 0 in several precisions.

    Parameters
    ----------
    offsets : array_like, shape (n,)
    values : dict of str to ndarray, shape (n,)
        The first is drawn as a line, the others over it as marks.

    Returns
    -------
    Drawing
        One array for each name, and ``offsets``.

    Examples
    --------
    >>> far_out([0, 1], {"float64": np.array([2.0, 1.0]), "rough": np.array([2.0, 2.0])})["rough"]
    array([2., 2.])
    """
    offsets = np.asarray(offsets)
    looks: tuple[dict[str, Any], ...] = (
        {"color": drawing.REAL, "linestyle": "-"},
        {"color": drawing.SINE, "linestyle": "", "marker": "."},
        {"color": drawing.COSINE, "linestyle": "", "marker": "x", "markersize": 4},
    )
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        for (name, value), look in zip(values.items(), looks, strict=False):
            ax.plot(offsets, value, label=name, **look)
        ax.set(xlabel="offset (positions)", ylabel="dot product")
        ax.set_title("A million positions out, rounding merges")
        ax.legend(loc="center right")
    first = next(iter(values))
    misses = ", ".join(
        f"{name} misses it by up to {np.abs(value - values[first]).max():.2g}"
        for name, value in list(values.items())[1:]
    )
    alt = f"Dot product against offset. {first} gives the falling curve; {misses}."
    return Drawing(figure, alt, {"offsets": offsets, **values})
