"""Checks for the exercises on the formula: frequencies, the table, its layouts, scale and width.

Every mistake is written the way it is made, so that the feedback can name it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checks.exercise import Exercise, Mistake
from posenc.sinusoidal import frequencies as _frequencies
from posenc.sinusoidal import sinusoidal_encoding as _encoding
from posenc.sinusoidal import wavelengths as _wavelengths

Array = NDArray[Any]


def _table(
    length: int,
    d_model: int,
    sine_exponents: Array,
    cosine_exponents: Array,
    *,
    base: float = 10000.0,
    start: int = 0,
) -> Array:
    """Build an interleaved table from the exponents of its sines and of its cosines."""
    positions = np.arange(start, start + length)[:, np.newaxis]
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(positions * base**-sine_exponents)
    table[:, 1::2] = np.cos(positions * base**-cosine_exponents)
    return table


def _even(d_model: int) -> Array:
    return np.arange(0, d_model, 2) / d_model


def _odd(d_model: int) -> Array:
    return np.arange(1, d_model, 2) / d_model


def _swapped(length: int, d_model: int) -> Array:
    table = _encoding(length, d_model)
    return table.reshape(length, -1, 2)[:, :, ::-1].reshape(length, d_model)


def _truncated(length: int, d_model: int) -> Array:
    table = np.zeros((length, d_model), dtype=np.int64)
    table[:] = _encoding(length, d_model)
    return table


def _growing(length: int, d_model: int) -> Array:
    return _table(length, d_model, -_even(d_model), -_even(d_model))


_DOUBLED = (
    "The exponent is doubled: arange(0, d_model, 2) already holds 2i, so it must not be "
    "multiplied by 2 again. Your slowest hand is far too slow, as if the base were 10000²."
)
_UNPAIRED = (
    "Sine and cosine of one pair turn at different speeds: you used the column as the pair index. "
    "Columns 2i and 2i + 1 share the exponent 2i / d_model."
)

frequencies = Exercise(
    solution=lambda d_model, base: base ** (-np.arange(0, d_model, 2) / d_model),
    cases=[(8, 10000.0), (6, 100.0), (10, 10000.0)],
    mistakes=[
        Mistake(
            lambda d_model, base: base ** (-np.arange(d_model // 2) / d_model),
            "The exponent is halved: with the pair index i it is 2i / d_model, not i / d_model.",
        ),
        Mistake(lambda d_model, base: base ** (-2 * np.arange(0, d_model, 2) / d_model), _DOUBLED),
        Mistake(
            lambda d_model, base: base ** (np.arange(0, d_model, 2) / d_model),
            "Your hands get faster from pair to pair: the power stands under the fraction line, so "
            "the exponent needs a minus sign.",
        ),
        Mistake(
            lambda d_model, base: 2 * np.pi * base ** (np.arange(0, d_model, 2) / d_model),
            "These are wavelengths, positions for one turn. A frequency is the angle for one "
            "position: 2π over the wavelength.",
        ),
        Mistake(
            lambda d_model, base: base ** (-2 * np.arange(d_model) / d_model),
            "You gave one frequency for every column. There is one for every pair of columns, "
            "d_model / 2 in all.",
        ),
        Mistake(
            lambda d_model, base: base ** (-np.arange(d_model // 2) / (d_model // 2 - 1)),
            "Your last frequency is exactly 1 / base: you divided by d_model/2 − 1. Some libraries "
            "do so; the paper divides by d_model/2 and stops one step earlier.",
        ),
    ],
    praise="Right: one fixed factor, base ** (−2 / d_model), between each hand and the next.",
)

table = Exercise(
    solution=lambda length, d_model: _encoding(length, d_model),
    cases=[(7, 4), (5, 6), (11, 8)],
    mistakes=[
        Mistake(lambda n, d: _table(n, d, 2 * _even(d), 2 * _odd(d)), _UNPAIRED),
        Mistake(
            lambda n, d: _table(n, d, _even(d), _odd(d)),
            "The cosine of each pair is slower than its sine: arange(1, d_model, 2) gives the "
            "cosines exponents of their own. Use arange(0, d_model, 2) for both.",
        ),
        Mistake(lambda n, d: _table(n, d, 2 * _even(d), 2 * _even(d)), _DOUBLED),
        Mistake(
            _swapped,
            "Sine and cosine are swapped: row 0 must read 0, 1, 0, 1, …, sines in the even "
            "columns and cosines in the odd ones.",
        ),
        Mistake(
            lambda n, d: _encoding(n, d, layout="split"),
            "This is the split layout, all sines and then all cosines. The exercise asks for the "
            "interleaved one: sin, cos, sin, cos.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d), _even(d), start=1),
            "Your first row belongs to position 1. Positions are counted from 0, so row 0 must "
            "read 0, 1, 0, 1, ….",
        ),
        Mistake(
            lambda n, d: _encoding(n, d).T,
            "The table lies on its side: positions run along the rows, so the shape is "
            "(length, d_model).",
        ),
        Mistake(
            _truncated,
            "All values are whole numbers: you wrote sines into an integer array, which cuts off "
            "everything after the point. Make the table with a floating-point dtype.",
        ),
        Mistake(
            _growing,
            "Your hands get faster from pair to pair: divide the position by the power instead of "
            "multiplying.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d), _even(d), base=1000.0),
            "The base is 1000 here; the paper's is 10000.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d) / 2, _even(d) / 2),
            "The exponent is halved: with the pair index i it is 2i / d_model, not i / d_model.",
        ),
    ],
    praise="Right, and without a loop: one outer product of positions and frequencies.",
)

finished_pairs = Exercise(
    solution=lambda d_model, length: int(np.sum(_wavelengths(d_model) <= length)),
    cases=[(512, 512), (64, 50), (6, 200), (128, 7), (64, 40000)],
    mistakes=[
        Mistake(
            lambda d_model, length: int(np.sum(1 / _frequencies(d_model) <= length)),
            "You compared 1 / ω with the length. After 1 / ω positions a hand has made one radian; "
            "a whole turn takes 2π / ω.",
        ),
        Mistake(
            lambda d_model, length: int(np.sum(_wavelengths(d_model) > length)),
            "You counted the pairs that do not finish a turn.",
        ),
        Mistake(
            lambda d_model, length: 2 * int(np.sum(_wavelengths(d_model) <= length)),
            "You counted columns. A sine and its cosine are one pair, and one hand.",
        ),
        Mistake(
            lambda d_model, length: int(
                np.sum(2 * np.pi * 10000.0 ** (np.arange(d_model // 2) / d_model) <= length)
            ),
            "Your wavelengths grow too slowly: the exponent of pair i is 2i / d_model.",
        ),
        Mistake(
            lambda d_model, length: float(np.mean(_wavelengths(d_model) <= length)),
            "This is the share of the pairs; the exercise asks for their number.",
        ),
    ],
    praise="Right. The rest of the pairs never come round in a text of that length.",
)


def _inverse(table: Array) -> Array:
    half = table.shape[-1] // 2
    return np.stack([table[..., :half], table[..., half:]], axis=-1).reshape(table.shape)


to_split = Exercise(
    solution=lambda table: np.concatenate([table[..., 0::2], table[..., 1::2]], axis=-1),
    cases=[
        (np.arange(30.0).reshape(5, 6),),
        (np.arange(70.0).reshape(7, 10),),
        (np.arange(48.0).reshape(2, 3, 8),),
    ],
    mistakes=[
        Mistake(
            _inverse,
            "You went the other way: this reads the table as split and interleaves it. It looks "
            "right for d_model = 4 only, where the permutation undoes itself.",
        ),
        Mistake(
            lambda table: np.concatenate([table[..., 1::2], table[..., 0::2]], axis=-1),
            "The cosines come first in yours. Split means sines, then cosines.",
        ),
        Mistake(
            lambda table: np.concatenate([table[0::2], table[1::2]], axis=0),
            "You sorted the first axis, so positions changed places. The columns are the last "
            "axis: index with [..., 0::2].",
        ),
        Mistake(
            lambda table: np.stack([table[..., 0::2], table[..., 1::2]], axis=-2),
            "np.stack made a new axis of size 2. np.concatenate along the last axis keeps the "
            "shape.",
        ),
        Mistake(
            lambda table: table,
            "Nothing moved: this is still the interleaved table.",
        ),
    ],
    praise="Right: the same numbers, columns in another order, rows untouched.",
)

_RNG = np.random.default_rng(3)

scaled_sum = Exercise(
    solution=lambda embeddings, encoding: np.sqrt(embeddings.shape[-1]) * embeddings + encoding,
    cases=[
        (_RNG.normal(size=(2, 5, 4)), _encoding(5, 4)),
        (_RNG.normal(size=(7, 8)), _encoding(7, 8)),
    ],
    mistakes=[
        Mistake(
            lambda embeddings, encoding: embeddings + encoding,
            "The embeddings are not scaled: multiply them by √d_model before you add.",
        ),
        Mistake(
            lambda embeddings, encoding: embeddings / np.sqrt(embeddings.shape[-1]) + encoding,
            "You divided by √d_model, as attention does with its scores. Here it multiplies.",
        ),
        Mistake(
            lambda embeddings, encoding: np.sqrt(embeddings.shape[-1]) * (embeddings + encoding),
            "You scaled the sum. Only the embeddings are scaled; scaling both leaves their "
            "proportion as it was.",
        ),
        Mistake(
            lambda embeddings, encoding: embeddings + np.sqrt(embeddings.shape[-1]) * encoding,
            "You scaled the encoding; the factor belongs to the embeddings.",
        ),
        Mistake(
            lambda embeddings, encoding: embeddings.shape[-1] * embeddings + encoding,
            "You multiplied by d_model; the factor is its square root.",
        ),
        Mistake(
            lambda embeddings, encoding: np.sqrt(embeddings.shape[-2]) * embeddings + encoding,
            "Your factor is the square root of the length, the axis before the last one. d_model "
            "is the last axis.",
        ),
    ],
    praise="Right: content first lifted to the size of the encoding, then added.",
)

mended_loop = Exercise(
    solution=lambda length, d_model: _encoding(length, d_model),
    cases=[(5, 4), (7, 6), (3, 10)],
    mistakes=[
        Mistake(
            lambda n, d: _table(n, d, 2 * _even(d), 2 * _odd(d)),
            "Both faults are still there. Print the exponents that the two lines use for "
            "d_model = 4 and compare them with 0, 0, 0.5, 0.5.",
        ),
        Mistake(
            lambda n, d: _table(n, d, 2 * _even(d), 2 * _even(d)),
            "The pairs agree now, but the exponent is still doubled: i already steps by 2. A test "
            "of the rotation property does not see this; a test of one value does.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d), _odd(d)),
            "The doubling is gone, but the cosine still has an exponent of its own: use i, not "
            "i + 1, in both lines.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d), 2 * _odd(d)),
            "The sine line is right now. The cosine line still has both faults.",
        ),
        Mistake(
            lambda n, d: _table(n, d, _even(d) / 2, _even(d) / 2),
            "Now the exponent is halved: if i counts pairs, it is 2i / d_model; if i steps by 2, "
            "it is i / d_model.",
        ),
    ],
    praise="Right: one exponent for both lines, and i steps by 2 or is doubled, never both.",
)


def _pad_with_zeros(length: int, d_model: int) -> Array:
    table = np.zeros((length, d_model))
    even = d_model - d_model % 2
    if even:
        table[:, :even] = _encoding(length, even)
    return table


def _last_is_cosine(length: int, d_model: int) -> Array:
    table = _encoding(length, d_model)
    if d_model % 2:
        table[:, -1] = np.cos(np.arange(length) * _frequencies(d_model)[-1])
    return table


def _last_sine_repeats(length: int, d_model: int) -> Array:
    table = _encoding(length, d_model)
    if d_model % 2 and d_model > 1:
        table[:, -1] = table[:, -3]
    return table


odd_width = Exercise(
    solution=lambda length, d_model: _encoding(length, d_model),
    cases=[(5, 7), (4, 6), (6, 3), (3, 1)],
    mistakes=[
        Mistake(
            lambda n, d: _encoding(n, d + d % 2)[:, :d],
            "You built the next even width and cut a column off. That changes every frequency "
            "but the first, since the exponents are divided by d_model.",
        ),
        Mistake(
            _pad_with_zeros,
            "The last column is zero and the frequencies are those of d_model − 1. Some libraries "
            "pad so; here the last pair keeps its sine.",
        ),
        Mistake(
            _last_is_cosine,
            "The last column holds a cosine. Even columns hold sines, and the last column of an "
            "odd width is an even column.",
        ),
        Mistake(
            lambda n, d: _encoding(n, d)[:, : d - d % 2],
            "One column is missing: the last sine was dropped with its cosine, so the result "
            "cannot be added to embeddings of width d_model.",
        ),
        Mistake(
            _last_sine_repeats,
            "The last sine repeats the pair before it. It has its own frequency: there are "
            "⌈d_model / 2⌉ of them.",
        ),
    ],
    praise="Right, down to d_model = 1: the last sine stands alone.",
)

base_for_length = Exercise(
    solution=lambda d_model, length: (length / (2 * np.pi)) ** (d_model / (d_model - 2)),
    cases=[(64, 4096), (6, 500), (512, 100000)],
    mistakes=[
        Mistake(
            lambda d_model, length: length / (2 * np.pi),
            "With this base the slowest hand is too fast: the longest wavelength is "
            "2π · base^((d_model − 2) / d_model), not 2π · base.",
        ),
        Mistake(
            lambda d_model, length: (length / (2 * np.pi)) ** ((d_model - 2) / d_model),
            "The exponent is upside down: solve length = 2π · base^((d_model − 2) / d_model) "
            "for base.",
        ),
        Mistake(
            lambda d_model, length: float(length) ** (d_model / (d_model - 2)),
            "The 2π is missing: a turn is 2π radians, not one.",
        ),
        Mistake(
            lambda d_model, length: float(length),
            "The base is not the longest wavelength. Start from "
            "length = 2π · base^((d_model − 2) / d_model).",
        ),
    ],
    praise="Right. Changing the base moves every frequency but the first.",
    tolerance=1e-6,
)


def _read_hand(row: Array, pair: int) -> int:
    omega = _frequencies(len(row))[pair]
    angle = np.arctan2(row[2 * pair], row[2 * pair + 1]) % (2 * np.pi)
    return round(angle / omega)


def _noisy_row(position: int, d_model: int) -> Array:
    return _encoding([position], d_model)[0] + 0.1 * _RNG.normal(size=d_model)


read_position = Exercise(
    solution=lambda row, length: int(np.argmax(_encoding(length, len(row)) @ row)),
    cases=[(_noisy_row(p, 64), 500) for p in (3, 77, 401, 498)],
    mistakes=[
        Mistake(
            lambda row, length: _read_hand(row, len(row) // 2 - 1),
            "You read the slowest hand only. It knows the region, but an error of 0.1 in its angle "
            "is hundreds of positions.",
        ),
        Mistake(
            lambda row, length: _read_hand(row, 0),
            "You read the fastest hand only. It knows where it stands within one turn, not how "
            "many turns it has made.",
        ),
        Mistake(
            lambda row, length: int(np.argmin(_encoding(length, len(row)) @ row)),
            "You took the smallest dot product: the row pointing farthest away. Take the largest.",
        ),
        Mistake(
            lambda row, length: int(np.argmax(_encoding(length, len(row)) @ row)) + 1,
            "Off by one: row 0 of the table is position 0.",
        ),
    ],
    praise="Right: all hands together say what no single one can.",
)
