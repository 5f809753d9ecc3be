"""The learned encoding: a table with one trainable row per position.

Gehring et al. (2017), section 3.1, and Devlin et al. (BERT, 2019), section 3. A row is found by
its number, so there is no row for a position the table was not made for: not after its end, not
before its start, not between two rows.
"""

import numbers
from copy import copy

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arguments as arguments

# Standard deviation of new rows, as in BERT: small beside embeddings of size 1.
INITIAL_SCALE = 0.02


class LearnedEncoding:
    """A table of position vectors, to be trained like any other weight.

    Parameters
    ----------
    max_length : int
        Number of rows, at least 1: the longest sequence the table can serve.
    d_model : int
        Width of a row, at least 1.
    rng : numpy.random.Generator
        Source of the initial rows, drawn from N(0, 0.02²).
    dtype : dtype
        Floating-point dtype of the table.

    Attributes
    ----------
    table : ndarray, shape (max_length, d_model)
        The weights. Training changes them in place.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or outside its range.

    Notes
    -----
    The initial scale is that of Devlin et al. (2019) in their released code.

    Examples
    --------
    >>> encoding = LearnedEncoding(8, 4, rng=np.random.default_rng(0))
    >>> encoding([[0, 1, 2], [5, 6, 7]]).shape
    (2, 3, 4)
    >>> encoding(9)
    Traceback (most recent call last):
        ...
    IndexError: positions must be in 0 … 7, since the table has 8 rows, got 8
    """

    def __init__(
        self,
        max_length: int,
        d_model: int,
        *,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float64,
    ) -> None:
        shape = (
            arguments.integer("max_length", max_length, minimum=1),
            arguments.integer("d_model", d_model, minimum=1),
        )
        rng = arguments.generator("rng", rng)
        dtype = arguments.float_dtype("dtype", dtype)
        self.table: NDArray[np.floating] = rng.normal(0, INITIAL_SCALE, shape).astype(dtype)

    def __call__(self, positions: int | ArrayLike) -> NDArray[np.floating]:
        """Look up the rows of positions.

        Parameters
        ----------
        positions : int or array_like of integers
            A length ``L`` (short for the positions ``0 … L − 1``) or an array of any shape.

        Returns
        -------
        ndarray, shape positions.shape + (d_model,), dtype of the table
            ``(L, d_model)`` for a length. A copy: writing to it does not train the table.

        Raises
        ------
        TypeError
            If a position is not an integer.
        ValueError
            If a length is negative.
        IndexError
            If a position has no row. A negative one has none either: it is not counted from the
            end.

        Examples
        --------
        >>> encoding = LearnedEncoding(8, 4, rng=np.random.default_rng(0))
        >>> bool((encoding(3) == encoding.table[:3]).all())
        True
        """
        return self.table[self._rows(positions)]

    def gradient(self, positions: int | ArrayLike, grad_output: ArrayLike) -> NDArray[np.floating]:
        """Carry the gradient of looked-up rows back to the table.

        A row that was looked up several times collects the sum of its gradients; a row that was
        not looked up gets zero.

        Parameters
        ----------
        positions : int or array_like of integers
            As in the lookup.
        grad_output : array_like, shape positions.shape + (d_model,), or with leading axes
            Gradient of the loss with respect to the rows. Leading axes, such as the batch when
            one lookup served all its items, are summed.

        Returns
        -------
        ndarray, shape and dtype of the table

        Raises
        ------
        TypeError, ValueError, IndexError
            As in the lookup, and `ValueError` if `grad_output` does not end in the shape of the
            looked-up rows.

        Examples
        --------
        >>> encoding = LearnedEncoding(3, 1, rng=np.random.default_rng(0))
        >>> encoding.gradient([1, 1, 2], [[1.0], [2.0], [4.0]])
        array([[0.],
               [3.],
               [4.]])
        """
        rows = self._rows(positions)
        grad_output = arguments.float_array("grad_output", grad_output)
        looked_up = (*rows.shape, self.table.shape[1])
        n_leading = grad_output.ndim - len(looked_up)
        if n_leading < 0 or grad_output.shape[n_leading:] != looked_up:
            raise ValueError(
                f"grad_output must have shape {looked_up} = positions.shape + (d_model,), or that "
                f"after leading axes, got {grad_output.shape}"
            )
        gradient = np.zeros_like(self.table)
        np.add.at(gradient, rows, grad_output.sum(axis=tuple(range(n_leading))))
        return gradient

    def resized(self, new_length: int) -> "LearnedEncoding":
        """Stretch or shrink the table to another number of rows.

        The first and the last row are kept and the new rows are spaced evenly between them, each
        on the straight line between its two neighbours in the old table. The model was trained
        on neither the new rows nor their distances, so train it further before relying on them.

        Parameters
        ----------
        new_length : int
            Number of rows, at least 1. A single row is the first one.

        Returns
        -------
        LearnedEncoding
            A new object; this one is unchanged.

        Raises
        ------
        TypeError, ValueError
            If `new_length` is not an integer of at least 1.

        Notes
        -----
        Dosovitskiy et al. (ViT, 2021), section 3.2, resize a grid in this manner.

        Examples
        --------
        >>> encoding = LearnedEncoding(2, 1, rng=np.random.default_rng(0))
        >>> encoding.table[:] = [[0.0], [3.0]]
        >>> encoding.resized(4).table.ravel()
        array([0., 1., 2., 3.])
        """
        new_length = arguments.integer("new_length", new_length, minimum=1)
        last = len(self.table) - 1
        where = np.linspace(0, last, new_length)  # each new row's place among the old ones
        before = where.astype(np.int64)
        after = np.minimum(before + 1, last)
        part = (where - before)[:, np.newaxis]
        table = (1 - part) * self.table[before] + part * self.table[after]
        other = copy(self)
        other.table = table.astype(self.table.dtype)
        return other

    def _rows(self, positions: int | ArrayLike) -> NDArray[np.int64]:
        """Give positions as row numbers, every one of them checked."""
        if isinstance(positions, numbers.Number | np.bool_):
            rows = np.arange(arguments.integer("positions", positions, minimum=0))
        else:
            rows = arguments.integer_array("positions", positions)
        missing = rows[(rows < 0) | (rows >= len(self.table))]
        if missing.size:
            raise IndexError(
                f"positions must be in 0 … {len(self.table) - 1}, since the table has "
                f"{len(self.table)} rows, got {missing[0]}"
            )
        return rows
