"""Figures of the chapter on fixed and learned encodings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing
from posenc.figures.drawing import Drawing

# An encoding keeps its colour and its mark through the chapter.
LOOKS: dict[str, dict[str, Any]] = {
    "sinusoidal": {"color": drawing.SINE, "marker": "o"},
    "learned": {"color": drawing.COSINE, "marker": "s"},
    "learned, quiet start": {"color": drawing.COSINE, "linestyle": "--"},
    "learned, no factor": {"color": drawing.ACCENT, "marker": "^"},
    "learned, no factor, loud start": {"color": drawing.ACCENT, "linestyle": "--"},
}


def lookup(selector: ArrayLike, table: ArrayLike) -> Drawing:
    """Draw a lookup as a product: a matrix of zeros and ones, a table, and the rows it selects.

    Parameters
    ----------
    selector : array_like, shape (length, rows)
        One-hot rows.
    table : array_like, shape (rows, d_model)

    Returns
    -------
    Drawing
        Arrays ``selector``, ``table`` and ``product``, shape (length, d_model).

    Examples
    --------
    >>> lookup([[0, 1], [0, 1], [1, 0]], [[1.0], [2.0]])["product"].ravel()
    array([2., 2., 1.])
    """
    selector, table = np.asarray(selector), np.asarray(table, dtype=float)
    product = selector @ table
    top = np.abs(table).max()
    panels: tuple[tuple[str, NDArray[Any], str, str], ...] = (
        ("one-hot", selector, "row of the table", "token"),
        ("× table", table, "dimension", "row of the table"),
        ("= looked up", product, "dimension", "token"),
    )
    with drawing.canvas(6.0, 2.9, 1, 3) as (figure, axes):
        figure.suptitle("A lookup is a product with zeros and ones", fontweight="bold")
        for ax, (name, matrix, across, down) in zip(axes, panels, strict=True):
            if name == "one-hot":
                ax.imshow(matrix, cmap="Greys", vmin=0, vmax=1.3)
            else:
                ax.imshow(matrix, cmap=drawing.DIVERGING, vmin=-top, vmax=top)
            ax.set_title(name, loc="center", fontweight="normal")
            ax.set(xlabel=across, ylabel=down)
            ax.set_xticks(range(matrix.shape[1]))
            ax.set_yticks(range(matrix.shape[0]))
    chosen = ", ".join(str(row) for row in selector.argmax(axis=1))
    alt = (
        f"A matrix with a single one in each of its {len(selector)} rows, in the columns {chosen}; "
        f"a table of {len(table)} rows; and their product, which repeats those rows of the table."
    )
    return Drawing(figure, alt, {"selector": selector, "table": table, "product": product})


def losses(curves: Mapping[str, ArrayLike], threshold: float, title: str) -> Drawing:
    """Draw training losses, with bands from the lowest to the highest seed.

    Parameters
    ----------
    curves : mapping of str to array_like, shape (seeds, steps)
        Loss in nats.
    threshold : float
        A loss to cross, drawn as a line.
    title : str

    Returns
    -------
    Drawing
        One array for each curve, and ``crossed: name``, shape (seeds,): the first step whose loss
        is below `threshold`.

    Examples
    --------
    >>> losses({"learned": [[3.0, 2.0, 0.5], [3.0, 0.9, 0.5]]}, 1.0, "A title")["crossed: learned"]
    array([2, 1])
    """
    arrays = {name: np.asarray(curve, dtype=float) for name, curve in curves.items()}
    crossed = {name: (curve < threshold).argmax(axis=1) for name, curve in arrays.items()}
    with drawing.canvas(5.6, 3.4) as (figure, ax):
        ax.axhline(threshold, color=drawing.PADDING, linestyle="--", linewidth=1.2)
        for name, curve in arrays.items():
            steps, color = np.arange(curve.shape[1]), LOOKS[name]["color"]
            style = LOOKS[name].get("linestyle", "-")
            low, high = curve.min(axis=0), curve.max(axis=0)
            ax.fill_between(steps, low, high, color=color, alpha=0.25, linewidth=0)
            ax.plot(steps, curve.mean(axis=0), color=color, linestyle=style, label=name)
        ax.set(xlabel="training step", ylabel="loss", ylim=(0, None), title=title)
        ax.legend(loc="upper right")
    told = "; ".join(
        f"{name} between steps {at.min()} and {at.max()}" for name, at in crossed.items()
    )
    alt = f"Training loss against step. It falls below {threshold:g} for {told}."
    return Drawing(figure, alt, arrays | {f"crossed: {name}": at for name, at in crossed.items()})


def cosines(table: ArrayLike) -> NDArray[np.floating]:
    """Give the cosine of the angle between all rows of a table.

    Parameters
    ----------
    table : array_like, shape (rows, d_model)

    Returns
    -------
    ndarray, shape (rows, rows)
        Between −1 and 1; rows that point the same way have 1.

    Examples
    --------
    >>> cosines([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])[0]
    array([1., 1., 0.])
    """
    rows = np.asarray(table, dtype=float)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def similarity_maps(tables: Mapping[str, ArrayLike], title: str) -> Drawing:
    """Draw how alike the rows of tables are: the cosine of each pair of positions.

    Parameters
    ----------
    tables : mapping of str to array_like, shape (rows, d_model)
        One panel for each.
    title : str

    Returns
    -------
    Drawing
        One array of cosines for each table, shape (rows, rows), by its name.

    Examples
    --------
    >>> similarity_maps({"a": np.eye(3), "b": np.ones((3, 2))}, "A title")["b"][0].round(6)
    array([1., 1., 1.])
    """
    arrays = {name: cosines(table) for name, table in tables.items()}
    width = 6.4 if len(arrays) > 1 else 4.2
    with drawing.canvas(width, 2.7 if len(arrays) > 1 else 3.6, 1, len(arrays), squeeze=False) as (
        figure,
        axes,
    ):
        figure.suptitle(title, fontweight="bold")
        for ax, (name, one) in zip(axes[0], arrays.items(), strict=True):
            image = ax.imshow(one, cmap=drawing.DIVERGING, vmin=-1, vmax=1)
            ax.set_title(name, loc="center", fontweight="normal", fontsize=10)
            ticks = range(0, len(one), 5 if len(one) <= 30 else 20)
            ax.set(xlabel="position", xticks=ticks, yticks=ticks)
        axes[0, 0].set_ylabel("position")
        figure.colorbar(image, ax=axes[0].tolist(), shrink=0.8, label="cosine")
    told = "; ".join(
        f"{name} {np.diagonal(one, 1).mean():.2f} between neighbours and "
        f"{one[0, -1]:.2f} between first and last"
        for name, one in arrays.items()
    )
    alt = f"Cosines between the rows of {len(arrays)} table(s), as maps: {told}."
    return Drawing(figure, alt, arrays)


def along_axis(scores: ArrayLike, shares: ArrayLike) -> Drawing:
    """Draw where each row lies on the one direction in which its table varies most.

    Parameters
    ----------
    scores : array_like, shape (seeds, rows)
        Coordinate of each row on that direction.
    shares : array_like, shape (seeds,)
        Share of the table's variance along it.

    Returns
    -------
    Drawing
        Arrays ``scores`` and ``shares``.

    Examples
    --------
    >>> along_axis([[-1.0, 0.0, 1.0]], [0.7])["scores"].shape
    (1, 3)
    """
    scores, shares = np.asarray(scores, dtype=float), np.asarray(shares, dtype=float)
    marks = "os^Dv"
    with drawing.canvas(5.2, 3.0) as (figure, ax):
        ax.axhline(0, color=drawing.PADDING, linewidth=0.8)
        for seed, line in enumerate(scores):
            ax.plot(
                line, marker=marks[seed % 5], color=drawing.COSINE, alpha=0.7, label=f"seed {seed}"
            )
        ax.set(xlabel="position", ylabel="place on the main axis")
        ax.set_title("Asked for order, the rows line up in order")
        ax.legend(loc="lower right")
    rising = (np.diff(scores, axis=1) > 0).mean(axis=1)
    alt = (
        f"Place of each row on the direction of largest variance, which holds {shares.min():.0%} "
        f"to {shares.max():.0%} of it. The lines rise with position at {rising.min():.0%} to "
        f"{rising.max():.0%} of the steps."
    )
    return Drawing(figure, alt, {"scores": scores, "shares": shares})


def spectrum(power: ArrayLike, rows: int, title: str) -> Drawing:
    """Draw how much of a table each wave accounts for.

    Parameters
    ----------
    power : array_like, shape (n,)
        Share of the wave that turns 1, 2, …, n times over the table.
    rows : int
        Length of the table in positions.
    title : str

    Returns
    -------
    Drawing
        With arrays ``wavelengths``, in positions, and ``power``, both of shape (n,).

    Examples
    --------
    >>> spectrum([0.5, 0.25, 0.25], 6, "A title")["wavelengths"]
    array([6., 3., 2.])
    """
    power = np.asarray(power, dtype=float)
    wavelengths = rows / np.arange(1, len(power) + 1)
    with drawing.canvas(5.6, 3.0) as (figure, ax):
        ax.vlines(wavelengths, 0, power, color=drawing.SINE, linewidth=1.6)
        ax.set(xscale="log", ylim=(0, None), title=title)
        ax.set(xlabel="positions a turn (logarithmic)", ylabel="share of the table")
    top = wavelengths[np.argsort(power)[::-1][:3]]
    alt = (
        f"Share of each wave, against its length from {wavelengths[-1]:.0f} to "
        f"{wavelengths[0]:.0f} positions. The tallest lines stand at "
        f"{', '.join(f'{one:.0f}' for one in top)} positions; most waves have almost nothing."
    )
    return Drawing(figure, alt, {"wavelengths": wavelengths, "power": power})


def moved(distance: ArrayLike, visits: ArrayLike) -> Drawing:
    """Draw how far each row of a table moved in training, above how often it was looked up.

    Parameters
    ----------
    distance : array_like, shape (seeds, rows)
        Length of the difference between the trained row and the row as drawn.
    visits : array_like, shape (rows,)
        Share of the batches that contain the position.

    Returns
    -------
    Drawing
        Arrays ``distance`` and ``visits``.

    Examples
    --------
    >>> moved([[1.0, 0.5, 0.0]], [1.0, 0.5, 0.0])["visits"]
    array([1. , 0.5, 0. ])
    """
    distance, visits = np.asarray(distance, dtype=float), np.asarray(visits, dtype=float)
    rows = np.arange(distance.shape[1])
    with drawing.canvas(5.6, 4.0, 2, 1, sharex=True) as (figure, (above, below)):
        figure.suptitle("A row that is never looked up never moves", fontweight="bold")
        for line in distance:
            above.plot(rows, line, "o", color=drawing.COSINE, markersize=4.5, alpha=0.6)
        above.set_ylabel("distance moved")
        below.bar(rows, visits, color=drawing.PADDING)
        below.set(xlabel="row of the table", ylabel="share of batches")
    still = np.flatnonzero((distance == 0).all(axis=0))
    told = f"rows {still[0]} to {still[-1]} have not moved at all" if still.size else "all moved"
    alt = (
        f"Above, how far each row moved, for {len(distance)} seeds: between "
        f"{distance[distance > 0].min():.2f} and {distance.max():.2f}, but {told}. Below, the "
        f"share of batches that contain each position: it falls from {visits[0]:.2f} to "
        f"{visits[-1]:.2f}."
    )
    return Drawing(figure, alt, {"distance": distance, "visits": visits})


def beyond(
    lengths: Sequence[int],
    trained: int,
    results: Mapping[str, Mapping[str, ArrayLike]],
    guess: Mapping[str, ArrayLike],
) -> Drawing:
    """Draw accuracy against length, for texts longer than any in training.

    Parameters
    ----------
    lengths : sequence of int
    trained : int
        Longest length of the training.
    results : mapping of task to mapping of encoding to array_like, shape (seeds, lengths)
    guess : mapping of task to array_like, shape (lengths,)
        Best accuracy of a model that ignores the order.

    Returns
    -------
    Drawing
        One array ``"task: encoding"`` for each curve.

    Examples
    --------
    >>> found = {"shift": {"learned": [[1.0, 0.5], [1.0, 0.4]]}}
    >>> beyond([16, 32], 16, found, {"shift": [0.2, 0.2]})["shift: learned"].shape
    (2, 2)
    """
    arrays = {
        f"{task}: {name}": np.asarray(values, dtype=float)
        for task, one in results.items()
        for name, values in one.items()
    }
    with drawing.canvas(6.2, 3.5, 1, len(results), squeeze=False, sharey=True) as (figure, axes):
        figure.suptitle("Beyond the trained length, both fall", fontweight="bold")
        for ax, (task, one) in zip(axes[0], results.items(), strict=True):
            ax.axvspan(lengths[0] * 0.9, trained, color=drawing.PADDING, alpha=0.2)
            ax.plot(lengths, guess[task], color=drawing.PADDING, linestyle="--", label="guess")
            for name in one:
                values, look = arrays[f"{task}: {name}"], LOOKS[name]
                low, high = values.min(axis=0), values.max(axis=0)
                ax.fill_between(lengths, low, high, color=look["color"], alpha=0.25, linewidth=0)
                ax.plot(lengths, values.mean(axis=0), label=name, **look)
            ax.set_xscale("log", base=2)
            ax.set_xticks(lengths, labels=[str(length) for length in lengths])
            ax.minorticks_off()
            ax.set(xlabel="length (tokens)", ylim=(0, 1.05))
            ax.set_title(task, loc="center", fontweight="normal", fontsize=10)
        axes[0, 0].set_ylabel("accuracy")
        lines, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=3)
    told = "; ".join(
        f"{name} {' '.join(f'{value:.2f}' for value in values.mean(axis=0))}"
        for name, values in arrays.items()
    )
    alt = (
        f"Mean accuracy at the lengths {', '.join(map(str, lengths))} after training on lengths up "
        f"to {trained}: {told}."
    )
    return Drawing(figure, alt, arrays)


def stretched(table: ArrayLike, new_length: int, dimensions: Sequence[int] = (0, 1)) -> Drawing:
    """Draw columns of a table before and after it was stretched by interpolation.

    Parameters
    ----------
    table : array_like, shape (rows, d_model)
    new_length : int
        Number of rows afterwards.
    dimensions : sequence of int
        Columns to draw.

    Returns
    -------
    Drawing
        Arrays ``old``, shape (rows, dimensions), ``new``, shape (new_length, dimensions), and
        ``where``, shape (new_length,): the place of each new row among the old ones.

    Examples
    --------
    >>> stretched([[0.0, 1.0], [2.0, 1.0]], 3)["new"]
    array([[0., 1.],
           [1., 1.],
           [2., 1.]])
    """
    old = np.asarray(table, dtype=float)[:, list(dimensions)]
    where = np.linspace(0, len(old) - 1, new_length)
    new = np.stack([np.interp(where, np.arange(len(old)), column) for column in old.T], axis=1)
    colors = (drawing.COSINE, drawing.SINE, drawing.REAL)
    with drawing.canvas(5.6, 3.2) as (figure, ax):
        for column, (dimension, color) in enumerate(zip(dimensions, colors, strict=False)):
            ax.plot(old[:, column], "-", color=color, linewidth=1)
            ax.plot(where, new[:, column], "|", color=color, markersize=9, label="new rows")
            ax.plot(
                old[:, column], "o", color=color, markersize=5, label=f"dimension {dimension}, old"
            )
        ax.set(xlabel="old position", ylabel="entry of the row")
        ax.set_title(f"{len(old)} rows stretched to {new_length}")
        ax.legend(loc="best", fontsize=8, ncols=2)
    step = (len(old) - 1) / max(new_length - 1, 1)
    alt = (
        f"Columns of a table of {len(old)} rows as dots, and its {new_length} new rows as ticks on "
        f"the straight lines between them. Neighbours are now {step:.2f} old positions apart."
    )
    return Drawing(figure, alt, {"old": old, "new": new, "where": where})
