"""The exercises of the chapter on shape pitfalls: most show broken code and ask for the mended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checks.exercise import Exercise, Mistake
from posenc.positions import packed_position_ids, position_ids
from posenc.rotary import apply_rotary
from posenc.sinusoidal import sinusoidal_encoding

Array = NDArray[Any]

# --- What does NumPy do with these shapes? --------------------------------------------------------

predict_shapes = Exercise(
    [(2, 4, 6), "error", (2, 4, 6), (4, 4, 6), "error"],
    mistakes=[
        Mistake(
            ["error", "error", "error", (4, 4, 6), (4, 6)],
            "You aligned the shapes on the left. NumPy writes them flush right: the last axis of "
            "one meets the last axis of the other.",
        ),
        Mistake(
            [(2, 4, 6), "error", "error", "error", "error"],
            "You let a size 1 clash. A 1 fits every size and is copied, whichever of the two "
            "arrays it belongs to.",
        ),
        Mistake(
            ["error", "error", "error", (4, 4, 6), "error"],
            "You asked for equal numbers of axes. A missing axis on the left counts as size 1.",
        ),
        Mistake(
            [(2, 4, 6), "error", (2, 4, 6), (1, 4, 6), "error"],
            "The sum need not have the shape of its first term: in the fourth pair both arrays "
            "have a 1 where the other has more, so both are copied.",
        ),
        Mistake(
            [(2, 4, 6), (2, 4, 6), (2, 4, 6), (4, 4, 6), "error"],
            "The second pair clashes: flush right, the 2 of (2, 6) stands under the 4 tokens, "
            "not under the 2 sentences.",
        ),
    ],
    praise="Right. Two of the three that add give the tokens something other than their rows.",
)

# --- Slice the table by tokens --------------------------------------------------------------------

_EMBEDDINGS = np.random.default_rng(1).normal(size=(2, 5, 4))
_TIME_FIRST = sinusoidal_encoding(9, 4)[:, np.newaxis]  # (position, 1, d_model)

slice_by_token = Exercise(
    lambda x, table: x + table[: x.shape[1], 0],
    [(_EMBEDDINGS, _TIME_FIRST), (_EMBEDDINGS[:, :3] * 0.5, _TIME_FIRST)],
    [
        Mistake(
            lambda x, table: x + table[: x.shape[0]],
            "Row 0 of the table lands on every token of sentence 0, row 1 on every token of "
            "sentence 1: you still slice by the batch axis.",
        ),
        Mistake(
            lambda x, table: x + table[0],
            "Every token of every sentence gets row 0: the axis of size 1 is copied along the "
            "tokens. Select one row per token.",
        ),
        Mistake(
            lambda x, table: x + table[1 : x.shape[1] + 1, 0],
            "Off by one: the first token gets row 1. Positions are counted from 0 here.",
        ),
        Mistake(
            lambda x, table: x + table[-x.shape[1] :, 0],
            "You take the last rows of the table, so the first token's row depends on how long "
            "the table is. Take the first ones.",
        ),
        Mistake(
            lambda x, table: x + table[: x.shape[1] * 2 : 2, 0][: x.shape[1]],
            "You skip every second row.",
        ),
    ],
    praise="Right: rows by the token axis, and the middle axis is gone before the sum.",
)

# --- Count the real tokens ------------------------------------------------------------------------

_REAL = np.array(
    [
        [False, False, True, True, True],
        [True, True, True, False, False],
        [False, True, True, True, True],
    ]
)

count_real_tokens = Exercise(
    lambda real: position_ids(real),
    [(_REAL,), (_REAL[:2, 1:],)],
    [
        Mistake(
            lambda real: np.broadcast_to(np.arange(real.shape[1]), real.shape),
            "You count slots, so a sentence behind two pads starts at 2. Count real tokens.",
        ),
        Mistake(
            lambda real: np.cumsum(real, axis=1) - 1,
            "Pads on the left get -1. As a table index that is the last row, without an error; "
            "pads should get 0.",
        ),
        Mistake(
            lambda real: np.where(real, np.cumsum(real, axis=1), 0),
            "Off by one: the first real token gets 1.",
        ),
        Mistake(
            lambda real: np.where(real, np.cumsum(real, axis=0) - 1, 0),
            "You count down the batch axis: a token's number depends on the sentences above it.",
        ),
        Mistake(
            lambda real: np.where(real, np.cumsum(~real, axis=1), 0),
            "You count the pads before each token, not the real tokens.",
        ),
        Mistake(
            lambda real: np.maximum(
                np.arange(real.shape[1]) - (~real).sum(axis=1, keepdims=True), 0
            ),
            "You subtract the number of pads wherever they stand. That is right behind left "
            "padding and wrong before right padding.",
        ),
    ],
    praise="Right on both sides of the padding.",
)

# --- A pad has no row -----------------------------------------------------------------------------

_TABLE = sinusoidal_encoding(7, 4) + 10.0  # no row is zero
_IDS = np.array([[-1, -1, 0, 1, 2], [0, 1, 2, 3, -1], [-1, 6, 5, 4, 3]])


def _rows_or_zeros(table: Array, ids: Array) -> Array:
    return np.where((ids >= 0)[..., np.newaxis], table[np.maximum(ids, 0)], 0.0)


look_up = Exercise(
    _rows_or_zeros,
    [(_TABLE, _IDS)],
    [
        Mistake(
            lambda table, ids: table[ids],
            "The pads get the last row of the table: NumPy counts -1 from the end.",
        ),
        Mistake(
            lambda table, ids: table[np.maximum(ids, 0)],
            "The pads get row 0, the row of the first token. They should get zeros.",
        ),
        Mistake(
            lambda table, ids: table[np.abs(ids)],
            "The pads get row 1: the sign is gone, the number is not.",
        ),
        Mistake(
            lambda table, ids: table[ids] * (ids > 0)[..., np.newaxis],
            "The token at position 0 got zeros too: test for ids >= 0.",
        ),
        Mistake(
            lambda table, ids: np.concatenate([np.zeros_like(table[:1]), table])[ids],
            "You put a row of zeros first but did not move the ids, so every token gets the row "
            "before its own.",
        ),
    ],
    praise="Right: a number without a row is caught before it is used as an index.",
)

# --- Packed documents -----------------------------------------------------------------------------

count_packed = Exercise(
    lambda lengths: packed_position_ids(lengths),
    [([3, 5],), ([4, 1, 2],)],
    [
        Mistake(
            lambda lengths: np.arange(sum(lengths)),
            "The second document goes on counting where the first one ended.",
        ),
        Mistake(
            lambda lengths: packed_position_ids(lengths) + 1,
            "Off by one: every document starts at 1.",
        ),
        Mistake(
            lambda lengths: np.arange(sum(lengths)) % lengths[0],
            "You start again after every so many tokens, as if all documents were as long as the "
            "first.",
        ),
        Mistake(
            lambda lengths: np.repeat(np.arange(len(lengths)), lengths),
            "These are the numbers of the documents, the same for all tokens of one.",
        ),
    ],
    praise="Right. To keep the documents apart you also need document_mask.",
)

# --- The clock of a cached decoder ----------------------------------------------------------------

count_cached = Exercise(
    lambda chunks: np.cumsum(chunks) - chunks,
    [(np.array([6, 1, 1, 1]),), (np.array([3, 2, 4]),)],
    [
        Mistake(
            lambda chunks: np.zeros_like(chunks),
            "Every chunk starts at 0: the cached tokens are forgotten.",
        ),
        Mistake(
            lambda chunks: np.cumsum(chunks),
            "You counted the chunk itself. Its first token stands behind the tokens before it.",
        ),
        Mistake(
            lambda chunks: np.cumsum([0, chunks[0], *chunks[:-2]]),
            "You go on by the length of the chunk before, so the prompt is added again after the "
            "second call.",
        ),
        Mistake(
            lambda chunks: np.arange(len(chunks)),
            "You number the calls. A call may bring more than one token.",
        ),
        Mistake(
            lambda chunks: np.arange(len(chunks)) * chunks[0],
            "You add the length of the prompt at every call.",
        ),
    ],
    praise="Right: a chunk starts at the number of tokens that are cached.",
)

# --- A special token takes a position -------------------------------------------------------------


def _prepend(cls: Array, x: Array) -> Array:
    return np.concatenate([np.broadcast_to(cls, (len(x), 1, len(cls))), x], axis=1)


def _plus(x: Array) -> Array:
    return x + sinusoidal_encoding(x.shape[1], x.shape[2])


_CLS = np.random.default_rng(2).normal(size=4)

prepend_special = Exercise(
    lambda cls, x: _plus(_prepend(cls, x)),
    [(_CLS, _EMBEDDINGS), (_CLS, _EMBEDDINGS[:1] * 0.5)],
    [
        Mistake(
            lambda cls, x: _prepend(cls, _plus(x)),
            "The special token got no position, and every other token the row before its own: "
            "join first, then add.",
        ),
        Mistake(
            lambda cls, x: _prepend(cls + sinusoidal_encoding(1, len(cls))[0], _plus(x)),
            "The special token and the first word share row 0.",
        ),
        Mistake(
            lambda cls, x: _plus(np.concatenate([x, _prepend(cls, x)[:, :1]], axis=1)),
            "The special token stands at the end.",
        ),
        Mistake(
            lambda cls, x: (
                _prepend(cls, x) + sinusoidal_encoding(np.arange(x.shape[1] + 1) + 1, x.shape[2])
            ),
            "Off by one: the special token gets row 1.",
        ),
    ],
    praise="Right: the special token takes position 0 and moves the words to 1, 2, …",
)

# --- Turn along the tokens ------------------------------------------------------------------------


def _turn(x: Array, sign: int = 1, pairing: str = "interleaved") -> Array:
    turned = apply_rotary(x.swapaxes(1, 2), sign * np.arange(x.shape[1]), pairing=pairing)
    return turned.swapaxes(1, 2)


_HEADS = np.random.default_rng(3).normal(size=(2, 5, 3, 4))

rotate_tokens = Exercise(
    _turn,
    [(_HEADS,), (_HEADS[:1] * 0.5,)],
    [
        Mistake(
            lambda x: apply_rotary(x, np.arange(x.shape[2])),
            "Each head is turned by its own fixed angle, whatever the token: the positions run "
            "along the head axis.",
        ),
        Mistake(
            lambda x: apply_rotary(x.swapaxes(1, 2), np.arange(x.shape[1])),
            "The turns are right, but the result is (batch, heads, length, head_dim): swap the "
            "two axes back.",
        ),
        Mistake(lambda x: _turn(x, sign=-1), "You turn the other way: the angles are negative."),
        Mistake(
            lambda x: _turn(x, pairing="half"),
            "You turn the pairs (i, i + head_dim/2). The broken code turned neighbours.",
        ),
        Mistake(
            lambda x: apply_rotary(
                x.reshape(len(x), x.shape[2], x.shape[1], -1), np.arange(x.shape[1])
            ).reshape(x.shape),
            "reshape does not swap axes, it only cuts the same numbers elsewhere. Use swapaxes.",
        ),
    ],
    praise="Right: swap, turn, swap back.",
)

# --- A probe for others' code ---------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """Code to be probed: a function from embeddings (batch, length, d_model) to their sum.

    Parameters
    ----------
    name : str
        What the code does, shown in the feedback.
    function : callable
        Takes and returns an array of shape (batch, length, d_model).
    """

    name: str
    function: Callable[[Array], Array]

    def __call__(self, x: Array) -> Array:
        """Run the code."""
        return self.function(x)

    def __repr__(self) -> str:
        return self.name


def _running_on(x: Array) -> Array:
    ids = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2])
    return x + sinusoidal_encoding(ids, x.shape[2])


_PLANTED = [
    Planted("right", _plus),
    Planted(
        "rows by sentence",
        lambda x: x + sinusoidal_encoding(len(x), x.shape[2])[:, np.newaxis],
    ),
    Planted(
        "counted from 1", lambda x: x + sinusoidal_encoding(np.arange(x.shape[1]) + 1, x.shape[2])
    ),
    Planted("added twice", lambda x: _plus(_plus(x))),
    Planted("dropped", lambda x: x.copy()),
    Planted("row 0 for all", lambda x: x + sinusoidal_encoding(1, x.shape[2])[0]),
    Planted("counting on in the next sentence", _running_on),
]


def _zeros_in_rows_out(embed: Callable[[Array], Array], batch: int = 2) -> bool:
    got = embed(np.zeros((batch, 5, 4)))
    return bool(np.allclose(got, np.broadcast_to(sinusoidal_encoding(5, 4), got.shape)))


def _order_matters(embed: Callable[[Array], Array]) -> bool:
    reversed_ = _EMBEDDINGS[:, ::-1]
    return not np.allclose(embed(reversed_), embed(_EMBEDDINGS)[:, ::-1])


write_probe = Exercise(
    _zeros_in_rows_out,
    [(planted,) for planted in _PLANTED],
    [
        Mistake(
            lambda embed: embed(_EMBEDDINGS).shape == _EMBEDDINGS.shape,
            "Your probe passes everything: each of these faults returns the right shape.",
        ),
        Mistake(
            lambda embed: not np.allclose(embed(_EMBEDDINGS), _EMBEDDINGS),
            "Your probe only sees that something was added. It passes rows by sentence, a count "
            "from 1 and an encoding added twice.",
        ),
        Mistake(
            _order_matters,
            "Your probe sees whether order matters. It passes a count from 1 and an encoding "
            "added twice, where order does matter.",
        ),
        Mistake(
            lambda embed: _zeros_in_rows_out(embed, batch=1),
            "Your probe uses one sentence, so it cannot see that the second one starts at the "
            "wrong number. Use two.",
        ),
        Mistake(
            lambda embed: bool(
                np.allclose(embed(np.zeros((2, 5, 4)))[0, 0], sinusoidal_encoding(1, 4)[0])
            ),
            "Your probe looks at the first token of the first sentence alone. Row 0 lands there "
            "in several of the faults.",
        ),
    ],
    praise="Your probe passes the right code and stops six faults.",
)
