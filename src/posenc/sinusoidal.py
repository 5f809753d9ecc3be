"""The sinusoidal encoding: a row of clock hands, each slower than the last by one fixed factor.

Vaswani et al., *Attention Is All You Need* (2017), section 3.5. For pair index
``i = 0 … d_model/2 − 1`` and frequency ``ω_i = base ** (−2i / d_model)``::

    PE(pos, 2i)     = sin(pos · ω_i)
    PE(pos, 2i + 1) = cos(pos · ω_i)

`i` numbers *pairs* of columns: the sine and the cosine of one pair share one frequency.
"""

import numbers
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arguments as arguments

LAYOUTS = ("interleaved", "split")

# A whole table is made of blocks of this many rows, each the first block turned by an angle.
# It is a constant because the rounding of a row depends on it: with one block size for all
# lengths, a short table is bit for bit the beginning of a long one.
BLOCK_ROWS = 64


def frequencies(d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    """Give the angle each pair turns per position: every pair slower by one fixed factor.

    Parameters
    ----------
    d_model : int
        Width of the encoding, at least 1. An odd width has one more sine than cosines, so there
        are ``ceil(d_model / 2)`` pairs.
    base : float
        Number of at least 1 whose powers space the frequencies; 10000 in the paper.

    Returns
    -------
    ndarray, shape (ceil(d_model / 2),), float64
        ``base ** (−2i / d_model)`` in radians per position, starting at 1.

    Raises
    ------
    TypeError, ValueError
        If `d_model` is not an integer of at least 1, or `base` not a finite number of at least 1.

    Notes
    -----
    Vaswani et al. (2017), section 3.5. Some libraries divide by ``d_model/2 − 1`` instead of
    ``d_model/2`` (tensor2tensor, fairseq); their tables differ from the paper's.

    Examples
    --------
    >>> frequencies(4)
    array([1.  , 0.01])
    """
    d_model = arguments.integer("d_model", d_model, minimum=1)
    base = arguments.real("base", base, minimum=1)
    return base ** (-np.arange(0, d_model, 2) / d_model)


def wavelengths(d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    """Give the number of positions in which each pair turns once: 2π over its frequency.

    Parameters
    ----------
    d_model : int
        Width of the encoding, at least 1.
    base : float
        Number of at least 1 whose powers space the frequencies.

    Returns
    -------
    ndarray, shape (ceil(d_model / 2),), float64
        Wavelengths in positions. The longest is ``2π · base ** ((d_model − 2) / d_model)`` for
        an even width, which stays below the often quoted ``2π · base``.

    Raises
    ------
    TypeError, ValueError
        As `frequencies`.

    Notes
    -----
    Vaswani et al. (2017), section 3.5.

    Examples
    --------
    >>> wavelengths(4).round(2)
    array([  6.28, 628.32])
    """
    return 2 * np.pi / frequencies(d_model, base)


def sinusoidal_encoding(
    positions: int | ArrayLike,
    d_model: int,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
    dtype: DTypeLike = np.float64,
) -> NDArray[np.floating]:
    """Encode positions as the sines and cosines of angles that grow with the position.

    Parameters
    ----------
    positions : int or array_like
        A length ``L`` (a non-negative integer, short for the positions ``0 … L − 1``) or an array
        of positions of any shape. Fractional and negative positions are legal: the encoding is a
        function of a real number. One position is written as an array, ``[2.5]``.
    d_model : int
        Width of the encoding, at least 1. If it is odd, the last pair keeps only its sine.
    base : float
        Number of at least 1 whose powers space the frequencies.
    layout : {"interleaved", "split"}
        Column order: ``sin, cos, sin, cos, …`` as in the paper, or all sines, then all cosines.
    dtype : dtype
        Floating-point dtype of the result. Angles are computed in float64 whatever it is.

    Returns
    -------
    ndarray, shape positions.shape + (d_model,)
        ``(L, d_model)`` for a length.

    Raises
    ------
    TypeError
        If `positions` is a bare float or a bool, or holds anything but real numbers; if `dtype`
        is not a floating-point dtype.
    ValueError
        If a position is NaN or infinite, or an argument is out of range.

    Notes
    -----
    Vaswani et al. (2017), section 3.5. The table for a length is built by turning a small block of
    rows (see `shift_matrix`), so that its entries equal those of the row-by-row formula to
    rounding. ``sinusoidal_encoding(n, d)`` is bit for bit the beginning of every longer table.

    Examples
    --------
    >>> sinusoidal_encoding(2, 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    >>> sinusoidal_encoding([[0, 1], [7, 8]], 6).shape
    (2, 2, 6)
    """
    omega = frequencies(d_model, base)
    layout = arguments.one_of("layout", layout, LAYOUTS)
    dtype = arguments.float_dtype("dtype", dtype)
    length, where = _length_or_positions(positions)
    shape = (length,) if where is None else where.shape
    n_sines, n_cosines = (d_model + 1) // 2, d_model // 2
    encoding = np.empty((*shape, n_sines + n_cosines), dtype)
    if layout == "interleaved":
        sines, cosines = encoding[..., 0::2], encoding[..., 1::2]
    else:
        sines, cosines = encoding[..., :n_sines], encoding[..., n_sines:]

    if where is not None:
        angles = where[..., np.newaxis] * omega
        sines[...] = np.sin(angles)
        cosines[...] = np.cos(angles[..., :n_cosines])
        return encoding

    if layout == "interleaved" and n_sines == n_cosines and dtype in (np.float32, np.float64):
        # A complex number in memory is a real part followed by an imaginary part, so a complex
        # view of the table *is* the interleaved layout and takes a block in one pass.
        pairs = encoding.view(np.result_type(dtype, np.complex64))

        def write(rows: slice, block: NDArray[np.complex128]) -> None:
            pairs[rows] = block
    else:

        def write(rows: slice, block: NDArray[np.complex128]) -> None:
            sines[rows] = block.real
            cosines[rows] = block.imag[:, :n_cosines]

    _fill_by_turning(length, omega, write)
    return encoding


def _length_or_positions(positions: int | ArrayLike) -> tuple[int, NDArray[np.float64] | None]:
    if not isinstance(positions, numbers.Number | np.bool_):
        return 0, arguments.float_array("positions", positions).astype(np.float64)
    try:
        return arguments.integer("positions", positions, minimum=0), None
    except TypeError as error:
        raise TypeError(
            f"positions must be a length (a non-negative integer) or an array of positions, got "
            f"{positions!r} ({type(positions).__name__}); write one position as a list: [2.5]"
        ) from error


def _fill_by_turning(
    length: int,
    omega: NDArray[np.float64],
    write: Callable[[slice, NDArray[np.complex128]], None],
) -> None:
    """Write rows ``sin θ + i cos θ`` for positions 0 … length − 1, block by block.

    With ``z(θ) = i e^{−iθ} = sin θ + i cos θ``, turning by α is one multiplication:
    ``z(θ + α) = z(θ) · e^{−iα}``. So only the first block and one row per block need sin and cos.
    """
    first = 1j * np.exp(-1j * np.arange(BLOCK_ROWS)[:, np.newaxis] * omega)
    block = np.empty_like(first)
    for start in range(0, length, BLOCK_ROWS):
        np.multiply(first, np.exp(-1j * start * omega), out=block)
        rows = slice(start, min(start + BLOCK_ROWS, length))
        write(rows, block[: rows.stop - start])


def shift_matrix(
    offset: float,
    d_model: int,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> NDArray[np.float64]:
    """Give the one matrix that moves every encoding by `offset`: a rotation of each pair.

    ``PE(pos + offset) = M @ PE(pos)`` for every `pos`; for a table of rows, ``P @ M.T``.

    Parameters
    ----------
    offset : float
        Number of positions to move; negative and fractional offsets are legal.
    d_model : int
        Width of the encoding; must be even, since a sine alone cannot be turned.
    base : float
        Number of at least 1 whose powers space the frequencies.
    layout : {"interleaved", "split"}
        Column order of the encoding to be moved.

    Returns
    -------
    ndarray, shape (d_model, d_model), float64
        An orthogonal matrix. In the interleaved layout it is block diagonal with the blocks
        ``[[cos kω, sin kω], [−sin kω, cos kω]]`` for ``k = offset``.

    Raises
    ------
    TypeError, ValueError
        If `d_model` is odd or not a positive integer, or `offset` is not a finite number.

    Notes
    -----
    Vaswani et al. (2017), section 3.5, state that such a matrix exists; it follows from the
    angle-addition identities.

    Examples
    --------
    >>> table = sinusoidal_encoding(10, 6)
    >>> np.allclose(table[:-3] @ shift_matrix(3, 6).T, table[3:])
    True
    """
    offset = arguments.real("offset", offset)
    layout = arguments.one_of("layout", layout, LAYOUTS)
    omega = frequencies(d_model, base)
    if d_model % 2:
        raise ValueError(f"d_model must be even to be shifted by a matrix, got {d_model}")
    sine = np.arange(0, d_model, 2) if layout == "interleaved" else np.arange(d_model // 2)
    cosine = sine + (1 if layout == "interleaved" else d_model // 2)
    matrix = np.zeros((d_model, d_model))
    matrix[sine, sine] = matrix[cosine, cosine] = np.cos(offset * omega)
    matrix[sine, cosine] = np.sin(offset * omega)
    matrix[cosine, sine] = -np.sin(offset * omega)
    return matrix
