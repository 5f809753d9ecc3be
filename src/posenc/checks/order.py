"""Exercises on order: ids, attention by hand, equivariance, naive encodings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.attention import scaled_dot_product_attention
from posenc.attention import softmax as stable_softmax
from posenc.checks.exercise import Exercise, Mistake

Array = NDArray[Any]

_rng = np.random.default_rng(20170612)

# --- ids of distinct words -------------------------------------------------------------------


def _vocabulary(tokens: Sequence[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(tokens))}


vocabulary = Exercise(
    _vocabulary,
    [(["the", "cat", "saw", "the", "dog"],), (["to", "be", "or", "not", "to", "be"],), (["no"],)],
    [
        Mistake(
            lambda tokens: {word: number for number, word in enumerate(tokens)},
            "A repeated word got the position of its last token as its id, so some ids are past "
            "the last row of a table and others are nobody's. Number the distinct words.",
        ),
        Mistake(
            lambda tokens: {word: tokens.index(word) for word in tokens},
            "Each word got the position of its first token. Where a word repeats, an id is "
            "skipped, and later ids are too large. Drop the repetitions before you number.",
        ),
        Mistake(
            lambda tokens: {word: number for number, word in enumerate(sorted(set(tokens)))},
            "The ids fit the table, but they follow the alphabet. Number the words in the order "
            "in which they first appear.",
        ),
        Mistake(
            lambda tokens: {word: n for n, word in enumerate(dict.fromkeys(tokens), start=1)},
            "Your ids start at 1, so the last word points past the last row. Start at 0.",
        ),
        Mistake(
            lambda tokens: dict(enumerate(dict.fromkeys(tokens))),
            "Your dictionary goes from id to word. Turn it round: from word to id.",
        ),
        Mistake(
            lambda tokens: [list(dict.fromkeys(tokens)).index(word) for word in tokens],
            "These are the ids of the tokens, one for each token. Return the dictionary that "
            "gives every distinct word its id.",
        ),
    ],
    praise="Right: every id is a row of the table, and a repeated word has one id.",
)

# --- softmax over the keys -------------------------------------------------------------------


def _over(axis: int | None, scores: Array, highest: Any) -> Array:
    with np.errstate(all="ignore"):
        shares = np.exp(scores - highest)
        return shares / shares.sum(axis=axis, keepdims=True)


def _plain_shares(scores: Array) -> Array:
    with np.errstate(all="ignore"):
        return scores / scores.sum(axis=-1, keepdims=True)


softmax = Exercise(
    stable_softmax,
    [
        (_rng.normal(size=(5, 7)),),
        (_rng.normal(size=(2, 3, 4)),),
        (np.array([[1000.0, 999.0, 997.0], [1.0, 2.0, 3.0]]),),
    ],
    [
        Mistake(
            lambda scores: stable_softmax(scores, axis=0),
            "Your columns sum to 1, not your rows: you divided by sums over the first axis. Every "
            "query (row) shares out its own weight over the keys, the last axis: axis=-1.",
        ),
        Mistake(
            lambda scores: _over(0, scores, 0),
            "Two things. You divided by sums over the first axis; the keys are the last one. And "
            "scores near 1000 overflow: subtract each row's largest score first.",
        ),
        Mistake(
            lambda scores: stable_softmax(scores, axis=1),
            "Right for one sentence, wrong for a batch: with three axes, axis=1 is the query "
            "axis. Write axis=-1, the keys, whatever stands before them.",
        ),
        Mistake(
            lambda scores: _over(1, scores, 0),
            "Two things. With three axes, axis=1 is the query axis: write axis=-1. And scores "
            "near 1000 overflow: subtract each row's largest score first.",
        ),
        Mistake(
            lambda scores: _over(None, scores, scores.max()),
            "All your weights together sum to 1. Each row must sum to 1 by itself: sum over the "
            "last axis, with keepdims=True.",
        ),
        Mistake(
            lambda scores: _over(-1, scores, 0),
            "Right for small scores, NaN for large ones: exp(1000) overflows. Subtract each row's "
            "largest score before exp; it cancels in the division.",
        ),
        Mistake(
            lambda scores: _over(-1, scores, scores.max()),
            "You subtracted the largest score of the whole array, so a row of small scores turns "
            "into 0/0. Subtract each row's own largest score (axis=-1, keepdims=True).",
        ),
        Mistake(
            _plain_shares,
            "You divided the scores themselves by their sum, which can be negative or 0. Take exp "
            "first: it makes every share positive.",
        ),
    ],
    praise="Right: each row sums to 1, for any number of leading axes and for large scores.",
)

# --- attention in one function ---------------------------------------------------------------


def _mix(
    query: Array, key: Array, value: Array, scale: float | None = None, axis: int = -1
) -> Array:
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    return stable_softmax(query @ key.T * scale, axis=axis) @ value


attention = Exercise(
    _mix,
    [
        (_rng.normal(size=(5, 4)), _rng.normal(size=(7, 4)), _rng.normal(size=(7, 3))),
        (_rng.normal(size=(2, 6)), _rng.normal(size=(3, 6)), _rng.normal(size=(3, 5))),
    ],
    [
        Mistake(
            lambda q, k, v: _mix(q, k, v, scale=1.0),
            "The scores are not scaled. Divide them by the square root of the width, "
            "query.shape[-1].",
        ),
        Mistake(
            lambda q, k, v: _mix(q, k, v, scale=1 / q.shape[-1]),
            "You divided the scores by the width. Divide by its square root.",
        ),
        Mistake(
            lambda q, k, v: _mix(q, k, v, scale=1 / np.sqrt(len(k))),
            "You divided by the root of the number of keys. Divide by the root of the width of a "
            "query, query.shape[-1].",
        ),
        Mistake(
            lambda q, k, v: _mix(q, k, v, scale=1 / np.sqrt(v.shape[-1])),
            "You divided by the root of the width of the values. The scores are sums over the "
            "width of the queries and keys, query.shape[-1].",
        ),
        Mistake(
            lambda q, k, v: _mix(q, k, v, axis=0),
            "You normalised over the queries (axis 0). Each query shares out its own weight over "
            "the keys: axis=-1.",
        ),
        Mistake(
            lambda q, k, v: _mix(q, k, k),
            "You mixed the keys. Keys are for comparing; mix the values.",
        ),
        Mistake(
            lambda q, k, v: q @ k.T / np.sqrt(q.shape[-1]) @ v,
            "You mixed with the raw scores. Turn them into weights with softmax first.",
        ),
        Mistake(
            lambda q, k, v: stable_softmax(q @ k.T / np.sqrt(q.shape[-1])),
            "You returned the weights. One step is left: weights @ value.",
        ),
    ],
    praise="Right, for any number of queries and keys and any width of the values.",
)

# --- which readouts are invariant ------------------------------------------------------------

READOUTS: dict[str, Callable[[Array], Any]] = {
    "the mean over the rows": lambda rows: rows.mean(axis=0),
    "the largest entry of each column": lambda rows: rows.max(axis=0),
    "the first row": lambda rows: rows[0],
    "all rows joined end to end": lambda rows: rows.ravel(),
    "the sum of the squares of all entries": lambda rows: (rows**2).sum(),
}


def _invariant_readouts() -> tuple[bool, ...]:
    """Read the output of attention in every order of four words."""
    words = np.random.default_rng(1).normal(size=(4, 3))
    orders = [list(order) for order in permutations(range(4))]
    outputs = [scaled_dot_product_attention(*[words[order]] * 3)[0] for order in orders]
    return tuple(
        bool(all(np.allclose(read(output), read(outputs[0])) for output in outputs))
        for read in READOUTS.values()
    )


readouts = Exercise(
    _invariant_readouts(),
    mistakes=[
        Mistake(
            (True, True, True, True, True),
            "The rows themselves move when the words move, so not everything read from them can "
            "stand still. Which readouts depend on where a row stands?",
        ),
        Mistake(
            (False, False, False, False, False),
            "Attention returns the same rows in another order. Some readouts give the same result "
            "for the same rows in any order.",
        ),
        Mistake(
            (True, False, False, False, True),
            "Look at the largest entry of a column again: does a maximum depend on the order in "
            "which you look?",
        ),
        Mistake(
            (True, True, True, False, True),
            "The first row belongs to whichever word comes first. Another order, another first "
            "word, another row.",
        ),
        Mistake(
            (True, True, False, True, True),
            "Joined end to end, the same rows in another order are another vector.",
        ),
        Mistake(
            (True, True, False, False, False),
            "A sum over all entries has no order, whatever is done to each entry before.",
        ),
        Mistake(
            (True, False, False, False, False),
            "The mean is not the only one: a maximum and a sum have no order either.",
        ),
    ],
    praise="Right: a readout is invariant when it does not ask where a row stands.",
)

# --- is this function equivariant? -----------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A function on rows that a learner's message can name.

    Parameters
    ----------
    name : str
    function : callable
        Takes and returns an array of shape (length, d_model).
    """

    name: str
    function: Callable[[Array], Array]

    def __call__(self, rows: Array) -> Array:
        """Apply the function."""
        return self.function(rows)

    def __repr__(self) -> str:
        return self.name


_W = _rng.normal(size=(2, 3, 3)) / 2


def _recurrent(rows: Array) -> Array:
    state, states = np.zeros(3), []
    for row in rows:
        state = np.tanh(row @ _W[0] + state @ _W[1])
        states.append(state)
    return np.array(states)


def _self_attention(rows: Array) -> Array:
    return scaled_dot_product_attention(rows, rows, rows)[0]


def _plus_total(rows: Array) -> Array:
    # Summed one after the other, so that another order rounds differently.
    return rows + np.cumsum(rows, axis=0)[-1]


def _mean_everywhere(rows: Array) -> Array:
    return np.zeros_like(rows) + rows.mean(axis=0)


def _equivariant(f: Callable[[Array], Array], x: Array, order: Array) -> bool:
    return bool(np.allclose(f(x[order]), f(x)[order]))


_five = _rng.normal(size=(5, 3))
_cycle = np.array([3, 0, 4, 1, 2])
_tenths = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])

equivariant = Exercise(
    _equivariant,
    [
        (Named("self-attention", _self_attention), _five, _cycle),
        (Named("a recurrent network", _recurrent), _five, _cycle),
        (Named("np.sin", np.sin), _five, _cycle),
        (Named("a sort of each column", lambda rows: np.sort(rows, axis=0)), _five, _cycle),
        (Named("the mean in every row", _mean_everywhere), _five, _cycle),
        (Named("row + total of all rows", _plus_total), _tenths, np.array([2, 1, 0])),
    ],
    [
        Mistake(
            lambda f, x, order: bool(np.allclose(f(x[order]), f(x))),
            "You tested invariance, f(x[order]) = f(x). Equivariance lets the outputs move with "
            "the inputs: compare with f(x)[order].",
        ),
        Mistake(
            lambda f, x, order: bool(np.allclose(f(x[order]), f(x)[np.argsort(order)])),
            "You undid the order on one side and applied it on the other. Both sides take the "
            "same order: f(x[order]) against f(x)[order].",
        ),
        Mistake(
            lambda f, x, order: np.array_equal(f(x[order]), f(x)[order]),
            "Exact equality is too strict: another order of a sum rounds differently in the last "
            "digit. Use np.allclose.",
        ),
        Mistake(
            lambda f, x, order: np.shape(f(x[order])) == np.shape(f(x)[order]),
            "Your check says True for a recurrent network too, so it cannot fail. Compare the "
            "numbers of f(x[order]) with those of f(x)[order].",
        ),
        Mistake(
            lambda f, x, order: bool(np.allclose(f(x[order]).mean(axis=0), f(x).mean(axis=0))),
            "You compared the pooled means. A function can keep its mean and still mix up its "
            "rows, as a sort does. Compare row by row.",
        ),
        Mistake(
            lambda f, x, order: not np.allclose(f(x[order]), f(x)[order]),
            "Your answer is the wrong way round: return True where the outputs moved with the "
            "inputs.",
        ),
    ],
    praise="Right: it accepts attention, refuses the recurrent network, and forgives rounding.",
)

# --- naive encodings -------------------------------------------------------------------------

one_hot = Exercise(
    lambda positions, length: np.eye(length)[positions],
    [(np.array([2, 0, 3, 2]), 5), (np.array([1, 4]), 6)],
    [
        Mistake(
            lambda positions, length: np.eye(length)[: len(positions)],
            "Row n of yours has its 1 in column n, whatever positions[n] is. Use the positions to "
            "pick rows of the identity matrix.",
        ),
        Mistake(
            lambda positions, length: np.eye(length)[positions - 1],
            "Your 1 is one column too far left: positions count from 0. (For position 0 the index "
            "−1 wrapped round to the last column without a word.)",
        ),
        Mistake(
            lambda positions, length: np.eye(length)[:, positions],
            "Yours has a column for each position. Turn it: a row for each position.",
        ),
        Mistake(
            lambda positions, length: np.tri(length)[positions],
            "Yours has a 1 in every column up to the position. One-hot has a single 1.",
        ),
        Mistake(
            lambda positions, length: positions[:, np.newaxis] * np.eye(length)[positions],
            "The entry should be 1, not the position: yours loses position 0 altogether.",
        ),
    ],
    praise="Right: one row for each position, a single 1 in each.",
)


def _binary(length: int, d_model: int) -> Array:
    return np.arange(length)[:, np.newaxis] >> np.arange(d_model) & 1


binary = Exercise(
    _binary,
    [(11, 5), (6, 3)],
    [
        Mistake(
            lambda length, d_model: _binary(length, d_model)[:, ::-1],
            "Your bits are right and stand in the opposite order. Column 0 is the fastest bit, "
            "worth 1; column j is worth 2**j.",
        ),
        Mistake(
            lambda length, d_model: _binary(length + 1, d_model)[1:],
            "Your first row is the code of position 1. Positions count from 0.",
        ),
        Mistake(
            lambda length, d_model: np.arange(length)[:, np.newaxis] // 2 ** np.arange(d_model),
            "You divided by 2**j but kept the whole quotient. Its last bit is what counts: take "
            "it modulo 2.",
        ),
        Mistake(
            lambda length, d_model: np.arange(length)[:, np.newaxis] & 2 ** np.arange(d_model),
            "You kept the value of each bit (1, 2, 4, …). The code has 0 or 1 in every column: "
            "shift right by j before you take the last bit.",
        ),
        Mistake(
            lambda length, d_model: (
                np.arange(length)[:, np.newaxis] // 10 ** np.arange(d_model) % 10
            ),
            "These are decimal digits. Divide by powers of 2, and take the remainder by 2.",
        ),
        Mistake(
            lambda length, d_model: _binary(length, d_model).T,
            "Yours has a row for each bit. Turn it: a row for each position.",
        ),
        Mistake(
            lambda length, d_model: (
                np.arange(length)[:, np.newaxis] % 2 ** np.arange(1, d_model + 1)
            ),
            "You took the remainder by 2**(j+1) and stopped. Divide it by 2**j to get the bit.",
        ),
    ],
    praise="Right: column j changes every 2**j positions.",
)

# --- spot the bug: positions are not ids -----------------------------------------------------


def _add_order(ids: Array, table: Array, codes: Array) -> Array:
    return table[ids] + codes[: len(ids)]


add_order = Exercise(
    _add_order,
    [
        (np.array([3, 1, 6, 3, 0]), _rng.normal(size=(9, 4)), _rng.normal(size=(12, 4))),
        (np.array([2, 2, 0]), _rng.normal(size=(4, 6)), _rng.normal(size=(5, 6))),
    ],
    [
        Mistake(
            lambda ids, table, codes: table[ids] + codes[ids],
            "Tokens 0 and 3 of the first case are the same word, and their rows are still equal: "
            "the codes were picked by id. What the word is says nothing about where it stands.",
        ),
        Mistake(
            lambda ids, table, codes: table[ids] + codes[1 : len(ids) + 1],
            "The first token got the code of position 1. Positions count from 0.",
        ),
        Mistake(
            lambda ids, table, codes: table[ids] + codes[0],
            "Every token got the code of position 0: one row was added to all. Take as many rows "
            "of codes as there are tokens.",
        ),
        Mistake(
            lambda ids, table, codes: table[: len(ids)] + codes[: len(ids)],
            "Now the codes are right and the embeddings are not: those are picked by id.",
        ),
        Mistake(
            lambda ids, table, codes: table[ids] + codes[np.argsort(ids, kind="stable")],
            "You gave the tokens the order of their ids. Their positions are 0, 1, 2, … as they "
            "stand.",
        ),
        Mistake(
            lambda ids, table, codes: codes[: len(ids)],
            "You returned the codes alone. Add them to the embeddings table[ids].",
        ),
        Mistake(
            lambda ids, table, codes: 2 * table[ids] + codes[: len(ids)],
            "The embeddings are in your sum twice.",
        ),
    ],
    praise="Right: the word picks its embedding, the place picks its code.",
)

# --- how many layers until everybody has heard everybody -------------------------------------


def _layers(distance: int, reach: int) -> int:
    return -(-distance // reach)


layers_needed = Exercise(
    lambda length, width: _layers(length - 1, (width - 1) // 2),
    [(16, 3), (16, 5), (9, 5), (50, 7), (2, 3), (41, 9)],
    [
        Mistake(
            lambda length, width: _layers(length - 1, width),
            "A window of `width` words is centred: it reaches only (width − 1) / 2 words to each "
            "side.",
        ),
        Mistake(
            lambda length, width: _layers(length - 1, width - 1),
            "You counted both sides of the window. News from the first word travels to one side, "
            "(width − 1) / 2 words a layer.",
        ),
        Mistake(
            lambda length, width: _layers(length, (width - 1) // 2),
            "From the first word to the last it is length − 1 steps, not length.",
        ),
        Mistake(
            lambda length, width: (length - 1) // ((width - 1) // 2),
            "You rounded down. If a word is left over, one more layer is needed.",
        ),
        Mistake(
            lambda length, width: _layers(length - 1, (width + 1) // 2),
            "The middle word of the window is the row itself: to one side it reaches "
            "(width − 1) / 2 words.",
        ),
        Mistake(
            lambda length, width: int(np.ceil(np.log(length) / np.log(width))),
            "A logarithm is right for windows with gaps that widen from layer to layer. These have "
            "none: every layer adds the same reach.",
        ),
    ],
    praise="Right: the reach of a stack of windows grows by the same step in every layer.",
)
