"""The exercises of the chapter on shape pitfalls: most show broken code and ask for the mended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checks.exercise import Exercise, Mistake
from posenc.positions import packed_position_ids
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

# --- Which axes did the encoding go to? -----------------------------------------------------------

_AXES = ("batch", "token", "feature")
_TIE = 1e-9  # differences below are rounding


def _names(varies: Callable[[Array, int], Any]) -> Callable[[Array, Array], tuple[str, ...]]:
    """Name the axes along which what was added varies, as `varies` sees it."""
    return lambda x, total: tuple(
        name for axis, name in enumerate(_AXES) if varies(total - x, axis)
    )


def _spread(added: Array, axis: int | tuple[int, ...]) -> float:
    return float(np.ptp(added, axis=axis).max())


def _first_two_differ(added: Array, axis: int) -> bool:
    return float(np.abs(added.take(0, axis) - added.take(1, axis)).max()) > _TIE


def _corner_spread(added: Array, axis: int) -> float:
    return float(np.ptp(np.moveaxis(added, axis, 0)[:, 0, 0]))


_X = np.random.default_rng(4).normal(size=(3, 5, 4))
_BEHIND_PADS = np.array([[0, 1, 2, 3, 4], [0, 0, 1, 2, 3], [0, 0, 0, 1, 2]])
_ADDED = [
    sinusoidal_encoding(5, 4),  # a row for each token
    sinusoidal_encoding(3, 4)[:, np.newaxis],  # a row for each sentence
    np.linspace(0, 1, 5)[:, np.newaxis],  # one number per token
    sinusoidal_encoding([2], 4),  # one row for all
    sinusoidal_encoding([0, 0, 0, 1, 2], 4),  # the same rows, behind pads
    sinusoidal_encoding(_BEHIND_PADS, 4),  # rows that differ between sentences
]

name_axes = Exercise(
    _names(lambda added, axis: _spread(added, axis) > _TIE),
    [(_X, _X.copy()), *((_X, _X + added) for added in _ADDED)],
    [
        Mistake(
            lambda x, total: tuple(
                name for axis, name in enumerate(_AXES) if _spread(total, axis) > _TIE
            ),
            "You looked at the sum. The embeddings differ along every axis and hide what was "
            "added: subtract them first.",
        ),
        Mistake(
            _names(lambda added, axis: _spread(added, axis) > 0),
            "Rounding fooled you: x + encoding - x is the encoding only up to the last digits, so "
            "you found differences along axes where there are none. Compare with 1e-9, not 0.",
        ),
        Mistake(
            _names(lambda added, axis: _spread(added, axis) <= _TIE),
            "You named the axes along which nothing changes, those that were copied. Name the "
            "others.",
        ),
        Mistake(
            _names(_first_two_differ),
            "You compared the first two entries of each axis. Behind pads the first rows are "
            "equal and the difference comes later: compare all of them.",
        ),
        Mistake(
            _names(lambda added, axis: _corner_spread(added, axis) > _TIE),
            "You followed one line along each axis, through the first entry of the others. The "
            "first token can have the same row in every sentence while later ones differ: look "
            "at all lines.",
        ),
        Mistake(
            _names(
                lambda added, axis: _spread(added, tuple(a for a in range(3) if a != axis)) > _TIE
            ),
            "You measured the spread over the two other axes. `axis` names the axis that is "
            "walked along and disappears: np.ptp(added, axis=1) compares tokens.",
        ),
        Mistake(
            lambda x, total: tuple(
                name for axis, name in enumerate(_AXES[::-1]) if _spread(total - x, axis) > _TIE
            ),
            "The names are the wrong way round: axis 0 is the batch, axis 2 the features.",
        ),
    ],
    praise="Right. It needs no table, so it works on any encoding, learned ones too.",
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
    Planted("embeddings added twice", lambda x: x + _plus(x)),
]


def _adds_the_table(embed: Callable[[Array], Array], x: Array) -> bool:
    added = embed(x) - x
    return bool(np.allclose(added, np.broadcast_to(sinusoidal_encoding(5, 4), added.shape)))


_ZEROS = np.zeros((2, 5, 4))


def _order_matters(embed: Callable[[Array], Array]) -> bool:
    reversed_ = _EMBEDDINGS[:, ::-1]
    return not np.allclose(embed(reversed_), embed(_EMBEDDINGS)[:, ::-1])


write_probe = Exercise(
    lambda embed: _adds_the_table(embed, _EMBEDDINGS),
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
            lambda embed: _adds_the_table(embed, _ZEROS),
            "Your probe feeds zeros. Twice zero is zero, so it passes code that doubles the "
            "embeddings. Feed something else and look at what came out minus what went in.",
        ),
        Mistake(
            lambda embed: _adds_the_table(embed, _EMBEDDINGS[:1]),
            "Your probe uses one sentence, so it cannot see that the second one starts at the "
            "wrong number. Use two.",
        ),
        Mistake(
            lambda embed: _adds_the_table(embed, _ZEROS[:1]),
            "Your probe feeds one sentence of zeros. It passes code that doubles the embeddings "
            "and code that counts on in the next sentence.",
        ),
        Mistake(
            lambda embed: bool(np.allclose(embed(_ZEROS)[0, 0], sinusoidal_encoding(1, 4)[0])),
            "Your probe looks at the first token of the first sentence alone. Row 0 lands there "
            "in several of the faults.",
        ),
    ],
    praise="Your probe passes the right code and stops seven faults.",
)
