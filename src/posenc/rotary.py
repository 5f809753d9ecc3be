"""Rotary position embedding (RoPE): turn queries and keys by their position.

Su et al., *RoFormer* (2021), section 3.2. Nothing is added to the embeddings. Two numbers of a
query form a point in the plane, and pair ``i`` of the query at position ``pos`` is turned by the
angle ``pos · ω_i``. A key is turned in the same way. When the two are multiplied, only the
difference of the angles is left, so a score depends on ``key position − query position`` alone.

A point in the plane is a complex number and a turn is a multiplication by ``e^{i pos ω}``. This
module works in that order: the frequencies ``ω``, five ways to slow them down for texts longer
than the model was trained on, the turns, and the rotation of ``x``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arguments as arguments
from posenc.sinusoidal import frequencies

PAIRINGS = ("interleaved", "half")

# Turns at evenly spaced positions are made in blocks of this many rows (see `rotary_turns`).
BLOCK_ROWS = 64


@dataclass(frozen=True)
class LinearScaling:
    """Slow every pair by one factor, as if positions stood `factor` times closer together.

    Parameters
    ----------
    factor : float
        How many times longer the text may become, at least 1.

    Raises
    ------
    TypeError, ValueError
        If `factor` is not a finite number of at least 1.

    Notes
    -----
    Position interpolation: Chen et al., *Extending Context Window of Large Language Models via
    Positional Interpolation* (2023), section 2.3.

    Examples
    --------
    >>> rotary_frequencies(4, scaling=LinearScaling(4.0))
    array([0.25  , 0.0025])
    """

    factor: float

    def __post_init__(self) -> None:
        arguments.real("factor", self.factor, minimum=1)

    def scaled_frequencies(
        self, head_dim: int, base: float, length: int | None
    ) -> NDArray[np.float64]:
        """Give ``ω_i / factor``, shape (head_dim / 2,)."""
        return frequencies(head_dim, base) / self.factor


@dataclass(frozen=True)
class NTKScaling:
    """Keep the fastest pair, slow the slowest by `factor`, and the others in between.

    Parameters
    ----------
    factor : float
        How many times slower the slowest pair becomes, at least 1.

    Raises
    ------
    TypeError, ValueError
        If `factor` is not a finite number of at least 1.

    Notes
    -----
    The same as a larger base, ``base · factor^(d / (d − 2))``: bloc97, *NTK-aware scaled RoPE*
    (2023); Peng et al., *YaRN* (2023), section 3.1.

    Examples
    --------
    >>> rotary_frequencies(4) / rotary_frequencies(4, scaling=NTKScaling(4.0))
    array([1., 4.])
    """

    factor: float

    def __post_init__(self) -> None:
        arguments.real("factor", self.factor, minimum=1)

    def scaled_frequencies(
        self, head_dim: int, base: float, length: int | None
    ) -> NDArray[np.float64]:
        """Give ``ω_i / factor^(i / (n_pairs − 1))``, shape (head_dim / 2,)."""
        pair = np.arange(head_dim // 2)
        last = max(pair[-1], 1)  # a single pair has ω = 1 and keeps it
        return frequencies(head_dim, base) / self.factor ** (pair / last)


@dataclass(frozen=True)
class DynamicNTKScaling:
    """Scale as `NTKScaling` does, by as much as the current length needs.

    Up to `original_length` nothing changes. Beyond it the frequencies depend on the length of the
    text, so keys that were turned at one length do not fit queries turned at another: a cache
    must store keys that are not yet rotated.

    Parameters
    ----------
    factor : float
        Growth of the scale per original length, at least 1.
    original_length : int
        Length the model was trained on, at least 1.

    Raises
    ------
    TypeError, ValueError
        If `factor` is not a finite number of at least 1, or `original_length` not an integer of
        at least 1.

    Notes
    -----
    emozilla, *Dynamically scaled RoPE* (2023); Peng et al., *YaRN* (2023), section 3.3.

    Examples
    --------
    >>> scaling = DynamicNTKScaling(2.0, original_length=2048)
    >>> [float(rotary_frequencies(4, scaling=scaling, length=n)[1]) for n in (2048, 4096)]
    [0.01, 0.0033333333333333335]
    """

    factor: float
    original_length: int

    def __post_init__(self) -> None:
        arguments.real("factor", self.factor, minimum=1)
        arguments.integer("original_length", self.original_length, minimum=1)

    def scaled_frequencies(
        self, head_dim: int, base: float, length: int | None
    ) -> NDArray[np.float64]:
        """Give the frequencies of ``NTKScaling(factor · stretch − (factor − 1))``."""
        stretch = max(1, (length or 0) / self.original_length)
        scale = self.factor * stretch - (self.factor - 1)
        return NTKScaling(scale).scaled_frequencies(head_dim, base, length)


@dataclass(frozen=True)
class YarnScaling:
    """Keep the pairs that turn often, slow those that turn less than once, blend between.

    Parameters
    ----------
    factor : float
        How many times longer the text may become, at least 1.
    original_length : int
        Length the model was trained on, at least 1.
    beta_fast, beta_slow : float
        Pairs that make more than `beta_fast` turns within `original_length` are kept, those that
        make fewer than `beta_slow` are slowed by `factor`. ``beta_fast > beta_slow > 0``.
    attention_factor : float, optional
        Number above 0 that the rotated vector is multiplied by, so that a score is multiplied by
        its square. ``0.1 ln(factor) + 1`` when not given.
    truncate : bool
        Round the two ends of the blend outwards to whole pairs, as the released code does.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or outside its range.

    Notes
    -----
    Peng et al., *YaRN* (2023), section 3.2 for the blend and 3.4 for the factor. The blend is
    linear in the pair index, not in the number of turns; the released code does so.

    Examples
    --------
    >>> scaling = YarnScaling(4.0, original_length=64)
    >>> rotary_frequencies(8) / rotary_frequencies(8, scaling=scaling)
    array([1. , 1.6, 4. , 4. ])
    >>> round(scaling.gain, 3)
    1.139
    """

    factor: float
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        arguments.real("factor", self.factor, minimum=1)
        arguments.integer("original_length", self.original_length, minimum=1)
        beta_slow = arguments.real("beta_slow", self.beta_slow, above=0)
        arguments.real("beta_fast", self.beta_fast, above=beta_slow)
        if self.attention_factor is not None:
            arguments.real("attention_factor", self.attention_factor, above=0)
        arguments.boolean("truncate", self.truncate)

    @property
    def gain(self) -> float:
        """What the rotated vector is multiplied by."""
        if self.attention_factor is None:
            return float(0.1 * np.log(self.factor) + 1)
        return float(self.attention_factor)

    def scaled_frequencies(
        self, head_dim: int, base: float, length: int | None
    ) -> NDArray[np.float64]:
        """Give the blend of ``ω_i`` and ``ω_i / factor``, shape (head_dim / 2,)."""
        base = arguments.real("base", base, above=1)  # pairs of one speed have nothing to blend
        n_pairs = head_dim // 2

        def pair_that_makes(turns: float) -> float:
            return n_pairs * np.log(self.original_length / (2 * np.pi * turns)) / np.log(base)

        low, high = pair_that_makes(self.beta_fast), pair_that_makes(self.beta_slow)
        if self.truncate:
            low, high = np.floor(low), np.ceil(high)
        low, high = max(low, 0), min(high, head_dim - 1)
        slowed = np.clip((np.arange(n_pairs) - low) / max(high - low, 0.001), 0, 1)
        return _blend(frequencies(head_dim, base), self.factor, slowed)


@dataclass(frozen=True)
class Llama3Scaling:
    """Blend as YaRN does, but by the number of turns a pair makes within the original length.

    Parameters
    ----------
    factor : float
        How many times longer the text may become, at least 1.
    original_length : int
        Length the model was trained on, at least 1.
    low_freq_factor, high_freq_factor : float
        Pairs that make fewer than `low_freq_factor` turns within `original_length` are slowed by
        `factor`, those that make more than `high_freq_factor` are kept.
        ``high_freq_factor > low_freq_factor > 0``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or outside its range.

    Notes
    -----
    The rule in the code released with Llama 3.1: Grattafiori et al., *The Llama 3 Herd of Models*
    (2024). It multiplies the rotated vectors by nothing.

    Examples
    --------
    >>> scaling = Llama3Scaling(8.0, original_length=64)
    >>> (rotary_frequencies(8) / rotary_frequencies(8, scaling=scaling)).round(2)
    array([1.  , 7.67, 8.  , 8.  ])
    """

    factor: float
    original_length: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        arguments.real("factor", self.factor, minimum=1)
        arguments.integer("original_length", self.original_length, minimum=1)
        low = arguments.real("low_freq_factor", self.low_freq_factor, above=0)
        arguments.real("high_freq_factor", self.high_freq_factor, above=low)

    def scaled_frequencies(
        self, head_dim: int, base: float, length: int | None
    ) -> NDArray[np.float64]:
        """Give the blend of ``ω_i`` and ``ω_i / factor``, shape (head_dim / 2,)."""
        omega = frequencies(head_dim, base)
        turns = self.original_length * omega / (2 * np.pi)
        width = self.high_freq_factor - self.low_freq_factor
        slowed = np.clip((self.high_freq_factor - turns) / width, 0, 1)
        return _blend(omega, self.factor, slowed)


Scaling = LinearScaling | NTKScaling | DynamicNTKScaling | YarnScaling | Llama3Scaling


def _blend(
    omega: NDArray[np.float64], factor: float, slowed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mix kept and slowed frequencies: `slowed` is 0 where a pair is kept, 1 where it is slowed."""
    return (1 - slowed) * omega + slowed * omega / factor


def rotary_frequencies(
    head_dim: int,
    *,
    base: float = 10000.0,
    scaling: Scaling | None = None,
    length: int | None = None,
) -> NDArray[np.float64]:
    """Give the angle that each pair of a head turns per position.

    Without scaling they are the frequencies of the sinusoidal encoding of width `head_dim`.

    Parameters
    ----------
    head_dim : int
        Number of dimensions that are rotated, even and at least 2.
    base : float
        Number of at least 1 whose powers space the frequencies.
    scaling : scaling dataclass, optional
        How to slow the frequencies for texts longer than the model was trained on.
    length : int, optional
        Length of the current text, at least 1. Only `DynamicNTKScaling` looks at it; without it,
        the text is taken to be no longer than the original length.

    Returns
    -------
    ndarray, shape (head_dim / 2,), float64
        Radians per position.

    Raises
    ------
    TypeError, ValueError
        If `head_dim` is odd or an argument is of the wrong kind or outside its range.

    Notes
    -----
    Su et al. (2021), section 3.2.2, equation 15.

    Examples
    --------
    >>> rotary_frequencies(4)
    array([1.  , 0.01])
    """
    head_dim = _even("head_dim", head_dim)
    base = arguments.real("base", base, minimum=1)
    if length is not None:
        length = arguments.integer("length", length, minimum=1)
    if scaling is None:
        return frequencies(head_dim, base)
    if not isinstance(scaling, Scaling):
        raise TypeError(
            f"scaling must be None or one of the scaling dataclasses of posenc.rotary, such as "
            f"LinearScaling(4.0), got {scaling!r}"
        )
    return scaling.scaled_frequencies(head_dim, base, length)


def rotary_turns(
    positions: ArrayLike,
    rotary_dim: int,
    *,
    base: float = 10000.0,
    scaling: Scaling | None = None,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.complexfloating]:
    """Give the complex numbers ``e^{i pos ω}`` whose multiplication turns each pair.

    One table serves the queries and keys of every layer, so a model makes it once and calls
    `rotate` with it. The complex conjugate is the table that carries gradients back.

    Parameters
    ----------
    positions : array_like of real numbers, any shape
        Negative and fractional positions are legal.
    rotary_dim : int
        Number of dimensions that are rotated, even and at least 2.
    base : float
        Number of at least 1 whose powers space the frequencies.
    scaling : scaling dataclass, optional
        As for `rotary_frequencies`. The current length is the largest position + 1, where the
        sign of positions is ignored: turning back by ``−positions`` uses the same frequencies.
    dtype : dtype
        Floating-point dtype of the vectors to be rotated. Angles are computed in float64 whatever
        it is, and only the finished turns are rounded.

    Returns
    -------
    ndarray, shape positions.shape + (rotary_dim / 2,)
        complex64 for float16 and float32, complex128 for float64. All have length 1, except with
        `YarnScaling`: there the length is its attention factor.

    Raises
    ------
    TypeError, ValueError
        If a position is not a finite real number, or another argument is wrong.

    Notes
    -----
    Su et al. (2021), section 3.2.2. Many positions at equal distances are built from blocks, with
    ``e^{i(a + b)ω} = e^{iaω} e^{ibω}``, as the sinusoidal table is.

    Examples
    --------
    >>> rotary_turns([0, 1], 2).round(2)
    array([[1.  +0.j  ],
           [0.54+0.84j]])
    """
    where = arguments.float_array("positions", positions).astype(np.float64)
    rotary_dim = _even("rotary_dim", rotary_dim)
    kind = np.result_type(arguments.float_dtype("dtype", dtype), np.complex64)
    length = int(np.ceil(np.abs(where).max(initial=0))) + 1
    omega = rotary_frequencies(rotary_dim, base=base, scaling=scaling, length=length)
    step = _even_step(where)
    if step is None:
        turns = np.exp(1j * where[..., np.newaxis] * omega)
    else:
        starts = np.exp(1j * where[::BLOCK_ROWS, np.newaxis] * omega)
        block = np.exp(1j * step * np.arange(BLOCK_ROWS)[:, np.newaxis] * omega)
        turns = (starts[:, np.newaxis] * block).reshape(-1, omega.size)[: where.size]
    if isinstance(scaling, YarnScaling):
        turns = turns * scaling.gain
    return turns.astype(kind, copy=False)


def _even_step(positions: NDArray[np.float64]) -> float | None:
    """Give the common distance of a long row of positions, or None if there is none."""
    if positions.ndim != 1 or positions.size < 2 * BLOCK_ROWS:
        return None
    steps = np.diff(positions)
    return float(steps[0]) if (steps == steps[0]).all() else None


def rotate(x: ArrayLike, turns: ArrayLike, *, pairing: str = "interleaved") -> NDArray[np.floating]:
    """Turn each pair of numbers in `x`: one complex multiplication per pair.

    Parameters
    ----------
    x : array_like, shape (..., length, head_dim)
        Usually queries or keys, ``(batch, heads, length, head_dim)``.
    turns : array_like, complex, shape (length, pairs) or (batch, length, pairs)
        From `rotary_turns`. With a batch axis, row ``b`` turns ``x[b]``, all heads alike. The
        first ``2 · pairs`` dimensions of a head are rotated, the others are kept.
    pairing : {"interleaved", "half"}
        Which two dimensions form pair ``i``: ``(2i, 2i + 1)``, or ``(i, i + pairs)``.

    Returns
    -------
    ndarray, shape and dtype of `x` (float64 for integers)

    Raises
    ------
    TypeError
        If `x` does not hold real numbers or `turns` complex ones.
    ValueError
        If the shapes do not fit or there is no such pairing.

    Notes
    -----
    Su et al. (2021), section 3.4.2, equation 34, which pairs neighbours. A NaN in `x` stays in
    its own pair.

    Examples
    --------
    >>> rotate([[1.0, 0.0]], [[1j]])
    array([[0., 1.]])
    """
    x = arguments.float_array("x", x, finite=False)
    arguments.with_axes("x", x, 2, "(..., length, head_dim)")
    pairing = arguments.one_of("pairing", pairing, PAIRINGS)
    turns = np.asarray(turns)
    if not np.iscomplexobj(turns):
        raise TypeError(f"turns must be complex, as from rotary_turns, got dtype {turns.dtype}")
    arguments.with_axes("turns", turns, 2, "(length, pairs) or (batch, length, pairs)")
    _check_rows("turns", turns.shape[:-1], x.shape)
    rotary_dim = _rotary_dim(2 * turns.shape[-1], x.shape[-1])
    if turns.ndim == 3:  # (batch, length, pairs) → (batch, 1, …, length, pairs)
        turns = turns.reshape(turns.shape[0], *[1] * (x.ndim - 3), *turns.shape[1:])

    kind = np.result_type(x.dtype, np.complex64)
    turns = turns.astype(kind, copy=False)
    plain = x[..., :rotary_dim].astype(turns.real.dtype, copy=False)
    rotated = np.empty(plain.shape, plain.dtype)
    if pairing == "interleaved":
        # A complex number in memory is a real part followed by an imaginary part, so neighbours
        # are complex numbers already: nothing is moved, only read under another name.
        if plain.strides[-1] != plain.itemsize:
            plain = np.ascontiguousarray(plain)
        np.multiply(plain.view(kind), turns, out=rotated.view(kind))
    else:
        pairs = np.empty((*plain.shape[:-1], rotary_dim // 2), kind)
        pairs.real, pairs.imag = np.split(plain, 2, axis=-1)
        pairs *= turns
        np.concatenate([pairs.real, pairs.imag], axis=-1, out=rotated)
    rotated = rotated.astype(x.dtype, copy=False)
    if rotary_dim == x.shape[-1]:
        return rotated
    return np.concatenate([rotated, x[..., rotary_dim:]], axis=-1)


def apply_rotary(
    x: ArrayLike,
    positions: ArrayLike,
    *,
    base: float = 10000.0,
    pairing: str = "interleaved",
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
) -> NDArray[np.floating]:
    """Turn queries or keys by their positions.

    Parameters
    ----------
    x : array_like, shape (..., length, head_dim)
        Usually ``(batch, heads, length, head_dim)``.
    positions : array_like of real numbers, shape (length,) or (batch, length)
        One position per row of `x`, the same for all, or different in each batch item. While
        decoding with a cache the first query has the position *number of cached keys*, not 0.
        Negative and fractional positions are legal.
    base : float
        Number of at least 1 whose powers space the frequencies.
    pairing : {"interleaved", "half"}
        Which two dimensions form pair ``i``: ``(2i, 2i + 1)``, or ``(i, i + rotary_dim / 2)``.
        Weights trained with one need `convert_pairing` to be used with the other.
    rotary_dim : int, optional
        Rotate only the first `rotary_dim` dimensions of a head, an even number; all of them when
        not given. The frequencies are those of a head of that width.
    scaling : scaling dataclass, optional
        How to slow the frequencies for long texts. `DynamicNTKScaling` takes the largest position
        in this call + 1 as the current length, so rotate queries and keys of one text by calls
        that see the same largest position.

    Returns
    -------
    ndarray, shape and dtype of `x` (float64 for integers)
        A new array. Angles are computed in float64 whatever the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` or `positions` does not hold real numbers.
    ValueError
        If the shapes do not fit, a position is NaN or infinite, the rotated width is odd or wider
        than the head, or another argument is outside its range.

    Notes
    -----
    Su et al. (2021), section 3.4.2. Gradients go back by turning the other way: if
    ``y = apply_rotary(x, positions, …)`` and ``g`` is the gradient of a loss with respect to
    ``y``, then ``apply_rotary(g, −positions, …)`` with the same arguments is its gradient with
    respect to ``x``, for every scaling. It is also the inverse of the rotation, except with
    `YarnScaling`: there both directions multiply by the attention factor, as a gradient must, and
    the inverse needs a division by its square.

    Examples
    --------
    >>> apply_rotary([[1.0, 2.0, 3.0, 4.0]], [1]).round(3)
    array([[-1.143,  1.922,  2.96 ,  4.03 ]])
    >>> apply_rotary([[1.0, 2.0, 3.0, 4.0]], [1], pairing="half").round(3)
    array([[-1.984,  1.96 ,  2.462,  4.02 ]])
    """
    x = arguments.float_array("x", x, finite=False)
    arguments.with_axes("x", x, 2, "(..., length, head_dim)")
    positions = arguments.float_array("positions", positions)
    _check_rows("positions", positions.shape, x.shape)
    rotary_dim = _rotary_dim(rotary_dim, x.shape[-1])
    turns = rotary_turns(positions, rotary_dim, base=base, scaling=scaling, dtype=x.dtype)
    return rotate(x, turns, pairing=pairing)


def convert_pairing(
    weights: ArrayLike,
    head_dim: int,
    *,
    to: str,
    rotary_dim: int | None = None,
    axis: int = -1,
) -> NDArray[np.floating]:
    """Reorder vectors or weights made for one pairing so that they serve the other.

    The two pairings are one rotation of differently ordered dimensions. Reorder the dimensions
    of queries and keys alike, by reordering the weights that produce them, and every score stays
    what it was.

    Parameters
    ----------
    weights : array_like
        Vectors, biases or projection matrices. Along `axis` lie the dimensions of one head or of
        several heads side by side.
    head_dim : int
        Number of dimensions of one head; it divides the length of `axis`.
    to : {"interleaved", "half"}
        The pairing to serve; `weights` are made for the other one.
    rotary_dim : int, optional
        Number of rotated dimensions of a head, even; the others keep their places.
    axis : int
        The axis to reorder: the last one for ``x @ W``, the first for weights stored as
        ``(output, input)``.

    Returns
    -------
    ndarray, shape and dtype of `weights` (float64 for integers)
        A new array.

    Raises
    ------
    TypeError, ValueError
        If `head_dim` does not divide the axis, the rotated width is odd or wider than the head,
        or there is no such pairing or axis.

    Examples
    --------
    >>> convert_pairing([0.0, 1.0, 2.0, 3.0], 4, to="half")
    array([0., 2., 1., 3.])
    """
    weights = arguments.float_array("weights", weights, finite=False)
    head_dim = arguments.integer("head_dim", head_dim, minimum=2)
    to = arguments.one_of("to", to, PAIRINGS)
    rotary_dim = _rotary_dim(rotary_dim, head_dim)
    axis = arguments.integer("axis", axis)
    if not -weights.ndim <= axis < weights.ndim:
        raise ValueError(f"axis must be an axis of weights {weights.shape}, got {axis}")
    if weights.shape[axis] % head_dim:
        raise ValueError(
            f"head_dim must divide axis {axis} of weights {weights.shape}, got {head_dim}"
        )
    order = np.arange(head_dim)
    order[:rotary_dim] = order[:rotary_dim].reshape(-1, 2).T.ravel()  # 0 2 4 … 1 3 5 …
    if to == "interleaved":
        order = np.argsort(order)
    first_of_head = np.arange(0, weights.shape[axis], head_dim)
    return np.take(weights, (first_of_head[:, np.newaxis] + order).ravel(), axis=axis)


def _even(name: str, value: object) -> int:
    number = arguments.integer(name, value, minimum=2)
    if number % 2:
        raise ValueError(f"{name} must be even, since dimensions turn in pairs, got {number}")
    return number


def _rotary_dim(rotary_dim: int | None, head_dim: int) -> int:
    """Give the number of rotated dimensions of a head, checked against its width."""
    if rotary_dim is None:
        return _even("head_dim", head_dim)
    rotary_dim = _even("rotary_dim", rotary_dim)
    if rotary_dim > head_dim:
        raise ValueError(f"rotary_dim must be at most head_dim {head_dim}, got {rotary_dim}")
    return rotary_dim


def _check_rows(name: str, rows: tuple[int, ...], x: tuple[int, ...]) -> None:
    """Refuse rows of positions that are neither (length,) nor (batch, length) of `x`."""
    length = x[-2]
    per_item = len(x) >= 3 and rows == (x[0], length)
    if rows == (length,) or per_item:
        return
    wanted = f"({length},) = (length,)"
    if len(x) >= 3:
        wanted += f" or ({x[0]}, {length}) = (batch, length)"
    hint = ""
    if len(x) >= 3 and rows[-1:] == x[-3:-2]:
        hint = "; x must be (..., length, head_dim): swap its length and heads axes first"
    raise ValueError(f"{name} must have rows {wanted} for x of shape {x}, got {rows}{hint}")
