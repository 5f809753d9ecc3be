"""Checks for the exercises on relative position."""

import numpy as np
from numpy.typing import NDArray

from posenc.attention import softmax
from posenc.bias import alibi_slopes
from posenc.checks.exercise import Exercise, Mistake
from posenc.masks import causal_mask
from posenc.sinusoidal import frequencies, shift_matrix, sinusoidal_encoding


# --- The block of one pair ------------------------------------------------------------------------
def _block(angle: float) -> NDArray:
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


shift_block = Exercise(
    lambda omega, k: _block(-k * omega),
    cases=[(0.3, 2), (0.07, 5), (1.0, -3)],
    mistakes=[
        Mistake(
            lambda omega, k: _block(k * omega),
            "This is the block for pairs stored as (sin, cos). With the cosine first, the two "
            "off-diagonal entries change places, and the minus goes with them.",
        ),
        Mistake(
            lambda omega, k: _block(-omega),
            "This turns by one position whatever k is: the angle of a shift by k is k·omega.",
        ),
        Mistake(
            lambda omega, k: np.abs([[1, 1], [-1, 1]]) * _block(k * omega) * [[1, 1], [-1, 1]],
            "Both sines have the same sign, so this is not a rotation: one of the two needs a "
            "minus.",
        ),
        Mistake(
            lambda omega, k: _block(-k * omega)[::-1] * [[1], [-1]],
            "Sine and cosine are swapped: for k = 0 the block must be the identity, so the "
            "cosines stand on the diagonal.",
        ),
    ],
    praise="Right: the same turn in the other order of columns. It never asks for a position.",
)


# --- The dot product at an offset -----------------------------------------------------------------
def _cosines(offset: int, d_model: int) -> NDArray:
    return np.cos(offset * frequencies(d_model))


dot_at_offset = Exercise(
    lambda offset, d_model: _cosines(offset, d_model).sum(),
    cases=[(3, 6), (-5, 8), (7, 10)],
    mistakes=[
        Mistake(
            lambda offset, d_model: 2 * _cosines(offset, d_model).sum(),
            "Twice too large: a pair has two columns, but sin·sin + cos·cos is one cosine. Sum "
            "over pairs, not over columns.",
        ),
        Mistake(
            lambda offset, d_model: _cosines(offset, d_model).mean(),
            "This is the mean over the pairs; the dot product is their sum, d_model / 2 at "
            "offset 0.",
        ),
        Mistake(
            lambda offset, d_model: np.sin(offset * frequencies(d_model)).sum(),
            "You summed sines, which would give 0 at offset 0: a vector's dot product with itself "
            "is its squared length.",
        ),
        Mistake(
            lambda offset, d_model: offset * np.cos(frequencies(d_model)).sum(),
            "The offset multiplies the angle, inside the cosine, not the sum.",
        ),
        Mistake(
            lambda offset, d_model: np.cos(offset * frequencies(d_model) ** 2).sum(),
            "The frequencies fall off twice as fast as they should: the exponent was doubled.",
        ),
    ],
    praise="Right: only the offset is left. No position appears in it.",
)


# --- Moving a table -------------------------------------------------------------------------------
def _shift_halves(table: NDArray, k: int) -> NDArray:
    return table @ shift_matrix(k, table.shape[1], layout="split").T


shift_table = Exercise(
    lambda table, k: table @ shift_matrix(k, table.shape[1]).T,
    cases=[(sinusoidal_encoding(5, 8), 3), (sinusoidal_encoding(7, 6), -2)],
    mistakes=[
        Mistake(
            lambda table, k: table @ shift_matrix(-k, table.shape[1]).T,
            "Your rows are PE(pos − k): the turn goes the wrong way. For rows the matrix is "
            "transposed, table @ M.T.",
        ),
        Mistake(
            lambda table, k: np.roll(table, -k, axis=0),
            "You moved rows inside the table, so its beginning came back at its end. Position "
            "length + k has an encoding of its own: turn each row.",
        ),
        Mistake(
            _shift_halves,
            "You paired column i with column i + d/2. This table is interleaved: the pairs are "
            "columns 0 and 1, 2 and 3, and so on.",
        ),
        Mistake(
            lambda table, k: table @ np.kron(np.eye(table.shape[1] // 2), _block(k)).T,
            "Every pair was turned by the angle k. Pair i turns by k·ω_i, slower and slower.",
        ),
        Mistake(
            lambda table, k: table + sinusoidal_encoding([k], table.shape[1]),
            "Adding PE(k) does not move a position: PE(pos) + PE(k) is not PE(pos + k). Angles "
            "add; their sines do not.",
        ),
    ],
    praise="Right: the table moved, and you never needed to know which positions it held.",
)


# --- Doubling a table -----------------------------------------------------------------------------
def _doubled(table: NDArray, offset: int) -> NDArray:
    return np.concatenate([table, table @ shift_matrix(offset, table.shape[1]).T])


double_table = Exercise(
    lambda table: _doubled(table, len(table)),
    cases=[(sinusoidal_encoding(5, 8),), (sinusoidal_encoding(3, 10),)],
    mistakes=[
        Mistake(
            lambda table: _doubled(table, len(table) - 1),
            "The last row came twice: the first new position is length, so turn by length and "
            "not by length − 1.",
        ),
        Mistake(
            lambda table: _doubled(table, -len(table)),
            "The new rows are the encodings of negative positions: the turn goes the wrong way.",
        ),
        Mistake(
            lambda table: np.concatenate([table, table]),
            "The second half repeats the first, so two positions share a row. Turn it.",
        ),
        Mistake(
            lambda table: _doubled(table, len(table))[len(table) :],
            "These are the new rows alone: put the old ones before them.",
        ),
        Mistake(
            lambda table: np.repeat(table, 2, axis=0),
            "Every row came twice. The new rows continue the count: they belong after the old "
            "ones, turned.",
        ),
    ],
    praise="Right: ten doublings make a thousand rows, and each needs the sines of one row only.",
)


# --- Heads that go several steps back -------------------------------------------------------------
def _heads(
    length: int,
    offsets: NDArray,
    d_model: int,
    scale: float,
    *,
    mask: NDArray | None = None,
    axis: int = -1,
    move_keys: bool = False,
) -> NDArray:
    table = sinusoidal_encoding(length, d_model)
    query = np.stack([table @ shift_matrix(k, d_model) for k in offsets])
    key = query if move_keys else table
    scores = scale * query @ np.swapaxes(key, -1, -2) / np.sqrt(d_model)
    visible = causal_mask(length) if mask is None else mask
    return softmax(np.where(visible, scores, -np.inf), axis=axis)


heads_back = Exercise(
    _heads,
    cases=[(7, np.array([1, 3]), 16, 4.0), (9, np.array([4, 0, 2]), 32, 8.0)],
    mistakes=[
        Mistake(
            lambda length, offsets, d_model, scale: _heads(length, -offsets, d_model, scale),
            "Your queries look ahead, where the mask hides the keys. A row times shift_matrix(k) "
            "moves back by k; times its transpose, it moves forward.",
        ),
        Mistake(
            lambda length, offsets, d_model, scale: _heads(
                length, offsets, d_model, scale, move_keys=True
            ),
            "Queries and keys were moved alike, so each query finds itself: W_q and W_k must "
            "differ to give a direction.",
        ),
        Mistake(
            lambda length, offsets, d_model, scale: _heads(
                length, offsets, d_model, scale, axis=-2
            ),
            "Your columns sum to one. Each query shares its weight out over the keys: softmax "
            "over the last axis.",
        ),
        Mistake(
            lambda length, offsets, d_model, scale: _heads(length, offsets, d_model, 1.0),
            "The scale is missing: the right key wins, but far from alone.",
        ),
        Mistake(
            lambda length, offsets, d_model, scale: _heads(
                length, offsets, d_model, scale, mask=np.ones((length, length), bool)
            ),
            "The future is open: a query may see its own position and earlier ones only.",
        ),
        Mistake(
            lambda length, offsets, d_model, scale: _heads(
                length, offsets, d_model, scale, mask=causal_mask(length).T
            ),
            "The mask is inverted: the past is hidden and the future open.",
        ),
    ],
    praise="Right: one shift matrix per head, and every head has its own reach.",
)


# --- ALiBi ----------------------------------------------------------------------------------------
def _alibi(
    slopes: NDArray, query_length: int, key_length: int, first: int | None = None
) -> NDArray:
    first = key_length - query_length if first is None else first
    relative = np.arange(key_length) - (np.arange(query_length) + first)[:, np.newaxis]
    bias = slopes[:, np.newaxis, np.newaxis] * -np.abs(relative)
    return np.where(relative > 0, -np.inf, bias)


alibi = Exercise(
    _alibi,
    cases=[(alibi_slopes(3), 5, 7), (alibi_slopes(4), 2, 6)],
    mistakes=[
        Mistake(
            lambda slopes, query_length, key_length: _alibi(
                slopes, query_length, key_length, first=0
            ),
            "Query 0 was put at key position 0. The queries are the last positions: query i "
            "stands at i + (key_length − query_length).",
        ),
        Mistake(
            lambda slopes, query_length, key_length: np.where(
                np.isinf(_alibi(slopes, query_length, key_length)),
                -np.inf,
                -_alibi(slopes, query_length, key_length),
            ),
            "Far keys gain score here. Distance is a penalty: minus slope times distance.",
        ),
        Mistake(
            lambda slopes, query_length, key_length: (
                slopes[:, np.newaxis, np.newaxis]
                * -np.abs(
                    np.arange(key_length)
                    - np.arange(key_length - query_length, key_length)[:, np.newaxis]
                )
            ),
            "Keys after the query can still be read: they need −inf.",
        ),
        Mistake(
            lambda slopes, query_length, key_length: np.broadcast_to(
                _alibi(slopes[:1], query_length, key_length),
                (len(slopes), query_length, key_length),
            ),
            "All heads have the first head's slope. Give each head its own: "
            "slopes[:, np.newaxis, np.newaxis].",
        ),
        Mistake(
            lambda slopes, query_length, key_length: np.swapaxes(
                _alibi(slopes, key_length, key_length), 1, 2
            )[:, -query_length:],
            "Query and key are swapped: the past is hidden and the future open.",
        ),
    ],
    praise="Right: no table, no parameter, and any length.",
)


# --- RoPE -----------------------------------------------------------------------------------------
def _turn_pairs(x: NDArray, angles: NDArray) -> NDArray:
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def _turn_halves(x: NDArray, positions: NDArray) -> NDArray:
    half = x.shape[-1] // 2
    angles = np.outer(positions, frequencies(x.shape[-1]))
    pairs = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


def _turn_by_head(x: NDArray, positions: NDArray) -> NDArray:
    angles = np.outer(positions[: x.shape[0]], frequencies(x.shape[-1]))
    return _turn_pairs(x, angles[:, np.newaxis, :])


_X = np.random.default_rng(5).normal(size=(3, 5, 8))
rotate = Exercise(
    lambda x, positions: _turn_pairs(x, np.outer(positions, frequencies(x.shape[-1]))),
    cases=[(_X, np.arange(2, 7)), (_X[..., :4], np.array([9, 0, 4, 1, 30]))],
    mistakes=[
        Mistake(
            lambda x, positions: _turn_pairs(x, -np.outer(positions, frequencies(x.shape[-1]))),
            "Your pairs turn the other way. Queries and keys among themselves still agree, but "
            "not with weights trained by others: multiply by e^(+i·pos·ω).",
        ),
        Mistake(
            _turn_halves,
            "You paired dimension i with i + head_dim / 2, the convention of GPT-NeoX and LLaMA "
            "in Hugging Face. Asked here are the pairs (0, 1), (2, 3), …",
        ),
        Mistake(
            lambda x, positions: _turn_pairs(x, np.outer(positions + 1, frequencies(x.shape[-1]))),
            "Every row was turned by one position too many: use the positions as they are given.",
        ),
        Mistake(
            _turn_by_head,
            "The angles follow the head axis: every token of a head is turned equally, so scores "
            "know nothing of position. Angles belong to the length axis, the last but one.",
        ),
        Mistake(
            lambda x, positions: _turn_pairs(x, np.outer(positions, np.ones(x.shape[-1] // 2))),
            "All pairs turn at one speed. Pair i turns by pos·ω_i.",
        ),
    ],
    praise="Right: the shift matrix of this chapter, applied to content.",
)


# --- Spot the bug: a table in bfloat16 ------------------------------------------------------------
def _bfloat16(x: NDArray) -> NDArray[np.float32]:
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32)


def _cosine_table(length: int, head_dim: int, *rounded: str) -> NDArray:
    def cast(name: str, x: NDArray) -> NDArray:
        return _bfloat16(x).astype(np.float64) if name in rounded else x

    positions = cast("positions", np.arange(length, dtype=np.float64))
    omega = cast("frequencies", frequencies(head_dim))
    angles = cast("angles", positions[:, np.newaxis] * omega)
    return cast("result", np.cos(angles))


rounded_table = Exercise(
    lambda length, head_dim: _cosine_table(length, head_dim, "result"),
    cases=[(600, 8), (300, 6)],
    mistakes=[
        Mistake(
            lambda length, head_dim: _cosine_table(
                length, head_dim, "positions", "frequencies", "result"
            ),
            "Positions and frequencies are still rounded before they are multiplied: from "
            "position 256 on, neighbours share a row.",
        ),
        Mistake(
            lambda length, head_dim: _cosine_table(length, head_dim, "positions", "result"),
            "The positions are still rounded: 257 becomes 256, and two tokens share a row.",
        ),
        Mistake(
            lambda length, head_dim: _cosine_table(length, head_dim, "frequencies", "result"),
            "The frequencies are still rounded: every hand runs at a slightly wrong speed, and "
            "the error grows with the position.",
        ),
        Mistake(
            lambda length, head_dim: _cosine_table(length, head_dim, "angles", "result"),
            "The angle is still rounded before the cosine: at an angle of 300 radians, bfloat16 "
            "steps by 2, a third of a turn.",
        ),
        Mistake(
            _cosine_table,
            "The angles are right, but the table is to be stored in bfloat16: round the cosines.",
        ),
    ],
    praise="Right: compute the angle exactly and round last. The error stays below 1/256 for ever.",
    tolerance=1e-9,
)


# --- The best block -------------------------------------------------------------------------------
def _rows_to_evaluate(length: int) -> NDArray:
    rows = np.arange(1, length + 1)
    return rows + -(-length // rows)


fewest_rows = Exercise(
    lambda length: int(_rows_to_evaluate(length).min()),
    cases=[(100,), (1000,), (4097,)],
    mistakes=[
        Mistake(
            lambda length: int(_rows_to_evaluate(length).argmin()) + 1,
            "This is the best block size; asked is how many rows of sines and cosines it needs.",
        ),
        Mistake(
            lambda length: min(rows + length // rows for rows in range(1, length + 1)),
            "The last, partly filled block was forgotten: round length / rows up.",
        ),
        Mistake(
            lambda length: 64 + -(-length // 64),
            "This is the count for blocks of 64 rows. Try every block size and take the best.",
        ),
        Mistake(
            lambda length: min(-(-length // rows) for rows in range(1, length + 1)),
            "You counted only the rows that start the blocks. The first block's own rows must be "
            "computed as well.",
        ),
    ],
    praise="Right: the best block has about √length rows, and the count is about 2·√length.",
)


# --- The pairs a narrow head should keep ----------------------------------------------------------
best_pairs = Exercise(
    "fastest",
    mistakes=[
        Mistake(
            "slowest",
            "Slow hands hardly move in one position: the right key's neighbours score almost the "
            "same. Compute the margins and look again.",
        ),
        Mistake(
            "spread",
            "Pairs spread over all speeds tell far from near, but only one of them tells "
            "neighbours apart. Compute the margins and look again.",
        ),
    ],
    praise=(
        "Right, for these lengths: telling neighbours apart is the hard part, and only fast hands "
        "do it. Four fast hands of different speeds do not come together again within 64 positions."
    ),
)
