"""Checks for the exercises on position inside attention."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from posenc.bias import alibi_slopes, relative_positions
from posenc.checks.exercise import Exercise, Mistake
from posenc.rotary import (
    DynamicNTKScaling,
    Scaling,
    apply_rotary,
    convert_pairing,
    rotary_frequencies,
)
from posenc.sinusoidal import frequencies

_RNG = np.random.default_rng(77)

# --- Rows of a relative table ---------------------------------------------------------------------
rows_read = Exercise(
    lambda length, max_distance: 2 * min(length - 1, max_distance) + 1,
    cases=[(5, 16), (100, 16), (17, 16), (1, 4)],
    mistakes=[
        Mistake(
            lambda length, max_distance: 2 * max_distance + 1,
            "These are the rows the table has. A text of 5 tokens has no distance of 16: which "
            "rows does it read?",
        ),
        Mistake(
            lambda length, max_distance: 2 * length - 1,
            "A text has that many different offsets, but those beyond max_distance share a row.",
        ),
        Mistake(
            lambda length, max_distance: min(length, max_distance + 1),
            "You counted one direction. Keys stand before and after a query.",
        ),
        Mistake(
            lambda length, max_distance: 2 * min(length, max_distance) + 1,
            "The largest distance in a text of `length` tokens is length − 1, not length.",
        ),
        Mistake(
            lambda length, max_distance: 2 * min(length - 1, max_distance),
            "Offset 0, the query's own position, has a row too.",
        ),
    ],
    praise="Right: offsets run from −(length − 1) to length − 1, and clipping caps both ends.",
)


# --- Where ALiBi halves a weight ------------------------------------------------------------------
half_distance = Exercise(
    lambda slopes: np.log(2) / slopes,
    cases=[(alibi_slopes(8),), (alibi_slopes(3),)],
    mistakes=[
        Mistake(
            lambda slopes: 1 / slopes,
            "There the weight has fallen to 1/e. Ask for exp(−slope·distance) = 1/2.",
        ),
        Mistake(
            lambda slopes: 0.5 / slopes,
            "That would be right if the weight fell in a straight line. The score does; the "
            "weight is its exponential.",
        ),
        Mistake(
            lambda slopes: 2 / slopes,
            "There the score has lost 2. A weight halves when its score loses ln 2.",
        ),
        Mistake(
            lambda slopes: np.log2(2) * slopes,
            "A steeper head halves sooner, so the slope belongs in the denominator.",
        ),
        Mistake(
            lambda slopes: -np.log(2) / slopes,
            "The size is right, but a distance is not negative: ln(1/2) has a minus sign that "
            "cancels the one of the penalty.",
        ),
    ],
    praise="Right: the heads of ALiBi are a ladder of half-lives.",
)


# --- Shaw's scores without a big array ------------------------------------------------------------
def _shaw(
    query: NDArray,
    table: NDArray,
    key_length: int,
    *,
    relative: NDArray | None = None,
    clip: bool = True,
    first: int | None = None,
) -> NDArray:
    reach = len(table) // 2
    if relative is None:
        relative = relative_positions(query.shape[-2], key_length)
    row = relative.clip(-reach, reach) if clip else relative
    row = row + (reach if first is None else first)
    products = query @ table.T
    return products[..., np.arange(query.shape[-2])[:, np.newaxis], row]


def _shaw_from_the_left(query: NDArray, table: NDArray, key_length: int) -> NDArray:
    relative = np.arange(key_length) - np.arange(query.shape[-2])[:, np.newaxis]
    return _shaw(query, table, key_length, relative=relative)


shaw_scores = Exercise(
    _shaw,
    cases=[
        (_RNG.normal(size=(3, 5, 4)), _RNG.normal(size=(7, 4)), 7),
        (_RNG.normal(size=(2, 4, 6)), _RNG.normal(size=(5, 6)), 6),
    ],
    mistakes=[
        Mistake(
            lambda query, table, key_length: _shaw(query, table, key_length, first=0),
            "Row 0 of the table is distance −max_distance, and you read it for offset 0. Worse, "
            "negative offsets were counted from the end of the table without a word: add "
            "max_distance after clipping.",
        ),
        Mistake(
            lambda query, table, key_length: _shaw(query, table, key_length, clip=False),
            "The offsets were not clipped: those beyond max_distance leave the table, on one side "
            "with an error and on the other by wrapping round.",
        ),
        Mistake(
            lambda query, table, key_length: _shaw(
                query, table, key_length, relative=-relative_positions(query.shape[-2], key_length)
            ),
            "Past and future are swapped: the offset is key minus query.",
        ),
        Mistake(
            _shaw_from_the_left,
            "Query 0 was put at key 0. The queries are the last positions: query i stands at "
            "i + (key_length − query_length).",
        ),
        Mistake(
            lambda query, table, key_length: (
                _shaw(query, table, key_length) / np.sqrt(query.shape[-1])
            ),
            "The values are right up to a factor: asked is the plain product, before the division "
            "by the square root of head_dim.",
        ),
    ],
    praise="Right: multiply once with the short table, then hand the products out.",
)


# --- Slopes for any number of heads ---------------------------------------------------------------
def _ladder(n: int) -> NDArray:
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def _power(n: int) -> int:
    return 2 ** int(np.log2(n))


slopes = Exercise(
    alibi_slopes,
    cases=[(6,), (8,), (12,), (3,)],
    mistakes=[
        Mistake(
            _ladder,
            "This is the paper's formula. It agrees with the released code at powers of two only; "
            "weights trained with the code expect its slopes.",
        ),
        Mistake(
            lambda n: _ladder(n if _power(n) == n else 2 * _power(n))[:n],
            "You cut the ladder of the next higher power of two. The code starts from the lower "
            "one and fills up from twice that.",
        ),
        Mistake(
            lambda n: np.sort(alibi_slopes(n))[::-1],
            "The right slopes, but sorted. Head h has its own weights: the order belongs to them.",
        ),
        Mistake(
            lambda n: np.concatenate([_ladder(_power(n)), _ladder(2 * _power(n))[1::2]])[:n],
            "The extra heads repeat slopes that are there already: every other slope from the "
            "first one on lies between them, every other from the second does not.",
        ),
        Mistake(
            lambda n: np.concatenate(
                [_ladder(2 * _power(n))[0::2][: n - _power(n)], _ladder(_power(n))]
            ),
            "The extra slopes come after the others, not before them.",
        ),
    ],
    praise="Right: not elegant, but it is what the released weights were trained with.",
)


# --- Columns for the other pairing ----------------------------------------------------------------
def _split_order(size: int) -> NDArray:
    return np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])


def _whole_width(weight: NDArray, n_heads: int) -> NDArray:
    return weight[:, _split_order(weight.shape[1])]


def _rows(weight: NDArray, n_heads: int) -> NDArray:
    return convert_pairing(weight, weight.shape[0] // n_heads, to="half", axis=0)


def _heads_mixed(weight: NDArray, n_heads: int) -> NDArray:
    width = weight.shape[1]
    order = _split_order(width // n_heads)
    heads = weight.reshape(len(weight), width // n_heads, n_heads)
    return heads[:, order].reshape(weight.shape)


to_half = Exercise(
    lambda weight, n_heads: convert_pairing(weight, weight.shape[1] // n_heads, to="half"),
    cases=[(_RNG.normal(size=(12, 24)), 3), (_RNG.normal(size=(24, 20)), 2)],
    mistakes=[
        Mistake(
            _whole_width,
            "The order runs over the whole width, so dimensions move from one head to another. "
            "Each head keeps its own columns: reorder inside the heads.",
        ),
        Mistake(
            lambda weight, n_heads: convert_pairing(
                weight, weight.shape[1] // n_heads, to="interleaved"
            ),
            "This is the way back. To serve the pairing (i, i + d/2), dimensions 0, 2, 4, … come "
            "first.",
        ),
        Mistake(
            _rows,
            "You reordered the rows, which are the dimensions of the input. With x @ W, those of "
            "the query are the columns.",
        ),
        Mistake(
            lambda weight, n_heads: weight.copy(),
            "Nothing has moved: reshaping to pairs and back is the identity unless you transpose "
            "in between.",
        ),
        Mistake(
            _heads_mixed,
            "The heads were taken apart the wrong way: head 0 has the first head_dim columns, so "
            "reshape to (…, n_heads, head_dim).",
        ),
    ],
    praise="Right: one fixed order per head, applied to W_q and W_k alike, and to nothing else.",
)


# --- One frequency map ----------------------------------------------------------------------------
def _blend(omega: NDArray, factor: float, slowed: NDArray) -> NDArray:
    return (1 - slowed) * omega + slowed * omega / factor


def _slowed(omega: NDArray, length: int, low: float, high: float) -> NDArray:
    turns = length * omega / (2 * np.pi)
    return np.clip((high - turns) / (high - low), 0, 1)


def _blended_waves(omega: NDArray, factor: float, length: int, low: float, high: float) -> NDArray:
    slowed = _slowed(omega, length, low, high)
    return omega / ((1 - slowed) + slowed * factor)


def _angles_for_turns(
    omega: NDArray, factor: float, length: int, low: float, high: float
) -> NDArray:
    return _blend(omega, factor, _slowed(2 * np.pi * omega, length, low, high))


by_turns = Exercise(
    lambda omega, factor, length, low, high: _blend(
        omega, factor, _slowed(omega, length, low, high)
    ),
    cases=[
        (frequencies(32), 4.0, 512, 1.0, 4.0),
        (frequencies(24, 500000.0), 8.0, 2048, 1.0, 32.0),
    ],
    mistakes=[
        Mistake(
            lambda omega, factor, length, low, high: _blend(
                omega, factor, 1 - _slowed(omega, length, low, high)
            ),
            "Fast and slow are swapped: pairs that turn often know all their angles and are kept; "
            "pairs that turn seldom are slowed.",
        ),
        Mistake(
            _angles_for_turns,
            "You compared angles with numbers of turns. A turn is 2π radians: divide.",
        ),
        Mistake(
            lambda omega, factor, length, low, high: _blend(
                omega,
                factor,
                (high - length * omega / (2 * np.pi)) / (high - low),
            ),
            "The ramp runs on beyond its ends, and fast pairs come out faster than they were: "
            "clip it to 0 … 1.",
        ),
        Mistake(
            lambda omega, factor, length, low, high: omega / factor,
            "This slows every pair, the fast ones too, and neighbours become hard to tell apart.",
        ),
        Mistake(
            _blended_waves,
            "You blended wavelengths. The rule blends frequencies; halfway between 1 and 4 times "
            "as slow, the two differ.",
        ),
        Mistake(
            lambda omega, factor, length, low, high: _blend(
                omega, factor, 1.0 * (length * omega / (2 * np.pi) < low)
            ),
            "A pair is either kept or slowed in your version. Between `low` and `high` turns it "
            "is a mixture of both.",
        ),
    ],
    praise="Right: low = 1 and high = 4 is Llama 3; low = 1 and high = 32 is YaRN as its paper "
    "writes it (its released code draws the line over the pairs).",
)


# --- Two axes -------------------------------------------------------------------------------------
def _two_axes(
    x: NDArray, first: NDArray, second: NDArray, turn: Callable[..., NDArray] = apply_rotary
) -> NDArray:
    half = x.shape[-1] // 2
    return np.concatenate([turn(x[..., :half], first), turn(x[..., half:], second)], axis=-1)


def _grid(rows: int, columns: int) -> tuple[NDArray, NDArray]:
    return np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)


def _one_ladder(x: NDArray, rows: int, columns: int) -> NDArray:
    row, column = _grid(rows, columns)
    quarter = x.shape[-1] // 4
    omega = frequencies(x.shape[-1])
    angles = np.concatenate(
        [np.outer(row, omega[:quarter]), np.outer(column, omega[quarter:])], axis=-1
    )
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


rotary_2d = Exercise(
    lambda x, rows, columns: _two_axes(x, *_grid(rows, columns)),
    cases=[(_RNG.normal(size=(2, 15, 8)), 3, 5), (_RNG.normal(size=(3, 8, 12)), 4, 2)],
    mistakes=[
        Mistake(
            lambda x, rows, columns: _two_axes(x, *_grid(rows, columns)[::-1]),
            "The first half of the head turned by the column. Asked is the row first; a model "
            "trained one way reads the other as a mirrored image.",
        ),
        Mistake(
            lambda x, rows, columns: _two_axes(x, np.arange(rows * columns), np.arange(len(x[0]))),
            "Both halves turned by the patch's number. Split the number into row and column.",
        ),
        Mistake(
            _one_ladder,
            "One ladder of frequencies was cut in two, so rows turn fast and columns slowly. Each "
            "half is a head of its own, with the whole ladder.",
        ),
        Mistake(
            lambda x, rows, columns: _two_axes(
                x, np.tile(np.arange(rows), columns), np.repeat(np.arange(columns), rows)
            ),
            "Your patches are numbered down the columns. Here the column changes fastest: patch 1 "
            "is to the right of patch 0.",
        ),
        Mistake(
            lambda x, rows, columns: _two_axes(x, _grid(rows, columns)[0], _grid(rows, columns)[0]),
            "Both halves turned by the row: patches of one row cannot be told apart.",
        ),
    ],
    praise="Right: half of the head knows how far up or down, the other half how far across.",
)


# --- Spot the bug: cached keys and a growing base -------------------------------------------------
def _turned(x: NDArray, positions: NDArray | int, omega: NDArray) -> NDArray:
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * np.multiply.outer(positions, omega))
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def _last_scores(
    query: NDArray,
    keys: NDArray,
    scaling: Scaling | None,
    *,
    query_scaling: Scaling | None = None,
    turned_when_stored: bool = False,
    turn_keys: bool = True,
    query_at: int | None = None,
) -> NDArray:
    length, width = keys.shape
    omega = rotary_frequencies(width, scaling=scaling, length=length)
    at = np.arange(length)
    stored = keys
    if turned_when_stored:
        stored = np.stack(
            [
                _turned(key, n, rotary_frequencies(width, scaling=scaling, length=n + 1))
                for n, key in enumerate(keys)
            ]
        )
    if turn_keys:
        stored = _turned(stored, at, omega)
    of_query = omega if query_scaling is None else rotary_frequencies(width)
    turned_query = _turned(query, length - 1 if query_at is None else query_at, of_query)
    return stored @ turned_query


_DYNAMIC = DynamicNTKScaling(2.0, original_length=6)
last_scores = Exercise(
    _last_scores,
    cases=[
        (_RNG.normal(size=8), _RNG.normal(size=(11, 8)), _DYNAMIC),
        (_RNG.normal(size=12), _RNG.normal(size=(15, 12)), _DYNAMIC),
        (_RNG.normal(size=8), _RNG.normal(size=(5, 8)), _DYNAMIC),
    ],
    mistakes=[
        Mistake(
            lambda query, keys, scaling: _last_scores(
                query, keys, scaling, turned_when_stored=True, turn_keys=False
            ),
            "The keys are still turned when they are stored, each with the frequencies of its own "
            "moment, and the query with those of the last one. Their angles do not fit together.",
        ),
        Mistake(
            lambda query, keys, scaling: _last_scores(
                query, keys, scaling, turned_when_stored=True
            ),
            "The stored keys were turned already, and you turned them a second time. Store them "
            "as they come.",
        ),
        Mistake(
            lambda query, keys, scaling: _last_scores(query, keys, scaling, turn_keys=False),
            "Now the keys are never turned: store them plain, and turn them when they are read.",
        ),
        Mistake(
            lambda query, keys, scaling: _last_scores(query, keys, None),
            "Consistent, but without the scaling: beyond the original length the frequencies must "
            "be those of the current length.",
        ),
        Mistake(
            lambda query, keys, scaling: _last_scores(query, keys, scaling, query_at=0),
            "The query was turned by 0. It stands at the last position, length − 1.",
        ),
        Mistake(
            lambda query, keys, scaling: _last_scores(query, keys, scaling, query_scaling=scaling),
            "The keys turn with the scaled frequencies, the query with the old ones: use one set.",
        ),
    ],
    praise="Right: what is stored must not depend on how long the text will become.",
)


# --- Angles that training never showed ------------------------------------------------------------
def _unseen(
    before: NDArray, after: NDArray, trained: int, length: int, *, wraps: bool = True
) -> NDArray:
    seen = (trained - 1) * before
    new = (length - 1) * after > seen * (1 + 1e-9)
    return new & (seen < 2 * np.pi) if wraps else new


_LADDER = frequencies(32)
unseen_pairs = Exercise(
    _unseen,
    cases=[
        (_LADDER, _LADDER, 65, 257),
        (_LADDER, _LADDER, 65, 65),
        (_LADDER, _LADDER / 4, 65, 257),
        (_LADDER, _LADDER / 4 ** np.linspace(0, 1, 16), 65, 257),
        (_LADDER, np.where(np.arange(16) < 5, _LADDER, _LADDER / 3), 65, 200),
    ],
    mistakes=[
        Mistake(
            lambda before, after, trained, length: _unseen(
                before, after, trained, length, wraps=False
            ),
            "A pair that went round once in training has met every direction; a larger angle "
            "shows it nothing new.",
        ),
        Mistake(
            lambda before, after, trained, length: (trained - 1) * before < 2 * np.pi,
            "These are the pairs that did not go round in training. They meet something new only "
            "if they now turn further than they did then.",
        ),
        Mistake(
            lambda before, after, trained, length: _unseen(after, after, trained, length),
            "Training was done with the frequencies `before`; you used `after` for it.",
        ),
        Mistake(
            lambda before, after, trained, length: _unseen(before, before, trained, length),
            "You left out the scaling: on the long text the pairs turn with `after`.",
        ),
        Mistake(
            lambda before, after, trained, length: ~_unseen(before, after, trained, length),
            "True and false are swapped: mark the pairs that meet new angles.",
        ),
    ],
    praise="Right: every long-context method is a way to empty this list.",
)
