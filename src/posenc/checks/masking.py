"""Feedback on the exercises of chapter 4: masks, padding, cached steps and the leak test."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.attention import scaled_dot_product_attention, softmax
from posenc.checks.exercise import Exercise, Mistake
from posenc.masks import causal_mask, combine, padding_mask
from posenc.positions import position_ids

_rng = np.random.default_rng(4)

count_pairs = Exercise(
    int(combine(causal_mask(5), padding_mask([3, 5])[:, np.newaxis, np.newaxis, :]).sum()),
    mistakes=[
        Mistake(30, "That is the causal mask twice: keys 3 and 4 of the short sentence are gone."),
        Mistake(
            21,
            "You also emptied the padding's own rows. A padding mask hides keys; the queries 3 and "
            "4 of the short sentence still see its three words.",
        ),
        Mistake(40, "That is the padding mask without the causal one: 3 · 5 + 5 · 5."),
        Mistake(19, "That allows a word only what comes before it; it may also see itself."),
        Mistake(23, "You hid what is allowed: 27 entries remain, 23 are forbidden."),
    ],
    praise="Right: 15 for the full sentence, and 1 + 2 + 3 + 3 + 3 = 12 for the short one.",
)


def _top_left(n_queries: int, n_keys: int) -> NDArray[np.bool_]:
    return np.tri(n_queries, n_keys, dtype=bool)


def _additive_causal(n_queries: int, n_keys: int) -> NDArray[np.floating]:
    return np.where(causal_mask(n_queries, n_keys), 0.0, -np.inf)


causal = Exercise(
    causal_mask,
    [(5, 7), (3, 3), (1, 4), (4, 2)],
    [
        Mistake(
            _top_left,
            "Your mask is aligned at the top left: with cached keys, the newest query would see "
            "only the oldest. Query i stands at key position i + (n_keys − n_queries).",
        ),
        Mistake(
            lambda q, k: ~causal_mask(q, k),
            "Your mask is inverted: it is True where attending is forbidden. Here True means may "
            "attend.",
        ),
        Mistake(
            lambda q, k: np.tri(q, k, k - q - 1, dtype=bool),
            "No query may see itself in your mask. The comparison is <=, not <.",
        ),
        Mistake(
            lambda q, k: np.arange(k) >= np.arange(q)[:, np.newaxis] + (k - q),
            "Your mask shows the future and hides the past: turn the comparison round.",
        ),
        Mistake(
            lambda q, k: causal_mask(q, k).T,
            "Your mask has the axes (key, query). Queries are the rows.",
        ),
        Mistake(
            _additive_causal,
            "This is an additive mask of 0 and −∞. Return Booleans: True = may attend.",
        ),
        Mistake(
            lambda q, k: causal_mask(q, k).astype(int),
            "These are the right numbers, but integers. Return Booleans, so that nobody multiplies "
            "or adds them by accident.",
        ),
    ],
    praise="Right, and the newest query sees everything, however many keys are cached.",
)


def _with_empty_row(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = _rng.random(shape) < 0.6
    mask[..., 0] = True
    mask[0, :, 1] = False
    return mask


def _naive(scores: NDArray, mask: NDArray) -> NDArray:
    scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)


def _rescaled_everything(scores: NDArray, mask: NDArray) -> NDArray:
    return softmax(np.where(mask, scores, -np.inf), axis=-2)


masked_softmax = Exercise(
    lambda scores, mask: softmax(np.where(mask, scores, -np.inf)),
    [
        (_rng.normal(size=(2, 3, 5, 7)), _with_empty_row((2, 3, 5, 7))),
        (3 * _rng.normal(size=(1, 2, 3, 4)), _with_empty_row((1, 2, 3, 4))),
    ],
    [
        Mistake(
            lambda scores, mask: softmax(np.where(mask, -np.inf, scores)),
            "Your mask is inverted: the weight lies on the forbidden keys. True means may attend.",
        ),
        Mistake(
            lambda scores, mask: softmax(scores) * mask,
            "The rows do not sum to 1: you took the softmax first and masked afterwards, so the "
            "forbidden scores are still in the denominator. Mask the scores.",
        ),
        Mistake(
            lambda scores, mask: softmax(scores * mask),
            "You multiplied the scores by the mask. A score of 0 is not forbidden, exp(0) is 1. "
            "It must be −∞.",
        ),
        Mistake(
            _naive,
            "A row with no allowed key comes out as NaN: its maximum is −∞, and −∞ − (−∞) is NaN. "
            "Such a row must be all zeros.",
        ),
        Mistake(
            lambda scores, mask: softmax(np.where(mask, scores, -1e9)),
            "A row with no allowed key is uniform over forbidden keys: your large negative number "
            "cancels in the softmax. Such a row must be all zeros.",
        ),
        Mistake(
            lambda scores, mask: np.exp(np.where(mask, scores, -np.inf)),
            "The exponentials are right, but nothing divides them by their sum.",
        ),
        Mistake(
            _rescaled_everything,
            "Your columns sum to 1 instead of your rows: the softmax runs over the last axis, the "
            "keys.",
        ),
    ],
    praise="Right: forbidden keys get nothing, and a query that sees nothing gets zeros.",
)


def _hide(scores: NDArray, lengths: NDArray, axes: Any, fill: float = -np.inf) -> NDArray:
    real = np.arange(scores.shape[-1]) < np.asarray(lengths)[:, np.newaxis]
    return np.where(real[axes], scores, fill)


_KEYS = np.s_[:, np.newaxis, np.newaxis, :]


def _hide_queries(scores: NDArray, lengths: NDArray) -> NDArray:
    real = np.arange(scores.shape[-2]) < np.asarray(lengths)[:, np.newaxis]
    return np.where(real[:, np.newaxis, :, np.newaxis], scores, -np.inf)


def _hide_queries_and_keys(scores: NDArray, lengths: NDArray) -> NDArray:
    return np.where(
        _hide_queries(scores, lengths) > -np.inf, _hide(scores, lengths, _KEYS), -np.inf
    )


def _hide_real(scores: NDArray, lengths: NDArray) -> NDArray:
    real = np.arange(scores.shape[-1]) < np.asarray(lengths)[:, np.newaxis]
    return np.where(real[_KEYS], -np.inf, scores)


def _hide_first_length_everywhere(scores: NDArray, lengths: NDArray) -> NDArray:
    return _hide(scores, np.full(len(scores), lengths[0]), _KEYS)


hide_padding = Exercise(
    lambda scores, lengths: _hide(scores, lengths, _KEYS),
    [
        (_rng.normal(size=(2, 3, 5, 7)), np.array([4, 6])),
        (_rng.normal(size=(3, 2, 4, 6)), np.array([6, 1, 3])),
    ],
    [
        Mistake(
            _hide_queries,
            "You hid queries instead of keys: the padding is still read by every word. The mask "
            "must be (batch, 1, 1, key).",
        ),
        Mistake(
            _hide_queries_and_keys,
            "You hid the padding's rows as well as its columns. Those rows lose every key, which "
            "ends in NaN; hide the keys only.",
        ),
        Mistake(_hide_real, "Your mask is inverted: the words are hidden and the padding is read."),
        Mistake(
            lambda scores, lengths: _hide(scores, np.asarray(lengths) + 1, _KEYS),
            "One padding key too many is visible in each row: key j is real when j < length.",
        ),
        Mistake(
            lambda scores, lengths: _hide(scores, lengths, _KEYS, 0.0),
            "You set the hidden scores to 0. exp(0) is 1, so they would still get weight; use −∞.",
        ),
        Mistake(
            _hide_first_length_everywhere,
            "Every batch item got the length of the first one. Keep the batch axis of the mask.",
        ),
    ],
    praise="Right: one mask for all heads and all queries, another for every batch item.",
)


def _cumulative_over_batch(real: NDArray) -> NDArray:
    return np.where(real, real.cumsum(axis=0) - 1, 0)


word_positions = Exercise(
    position_ids,
    [
        (np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]], dtype=bool),),
        (np.array([[0, 1, 1], [1, 1, 1], [1, 0, 0], [0, 0, 1]], dtype=bool),),
    ],
    [
        Mistake(
            lambda real: np.tile(np.arange(real.shape[1]), (len(real), 1)),
            "You numbered the columns. A sentence padded on the left must start at 0 too: count "
            "the words.",
        ),
        Mistake(
            lambda real: np.where(real, np.arange(real.shape[1]), 0),
            "The padding has its zeros, but the words still have the numbers of their columns. "
            "Count the words.",
        ),
        Mistake(
            lambda real: np.where(real, real.cumsum(axis=1), 0),
            "You count from 1: the sum includes the word itself. Positions start at 0.",
        ),
        Mistake(
            lambda real: real.cumsum(axis=1) - 1,
            "The words are right; the padding is not. On the left it gets −1, which as an index "
            "means the last row of a table. Set it to 0.",
        ),
        Mistake(
            _cumulative_over_batch,
            "You count down the batch: the numbers of one sentence depend on the others. The "
            "length is axis 1.",
        ),
        Mistake(
            lambda real: np.where(real, real[:, ::-1].cumsum(axis=1)[:, ::-1] - 1, 0),
            "You count from the end of each sentence. The first word is 0.",
        ),
    ],
    praise="Right, whatever the side of the padding.",
)


def _multiplied(mask: NDArray) -> NDArray:
    with np.errstate(invalid="ignore"):
        return (1 - mask.astype(int)) * -np.inf


additive = Exercise(
    lambda mask: np.where(mask, 0.0, -np.inf),
    [(causal_mask(3, 5),), (padding_mask([2, 4], 4)[:, np.newaxis, np.newaxis, :],)],
    [
        Mistake(
            _multiplied,
            "Allowed places are NaN, because 0 · −∞ is. Choose with np.where instead of "
            "multiplying.",
        ),
        Mistake(
            lambda mask: np.where(mask, -np.inf, 0.0),
            "Inverted: True means may attend, so it becomes 0 and False becomes −∞.",
        ),
        Mistake(
            lambda mask: np.where(mask, 0.0, np.inf),
            "Forbidden scores would become +∞, the largest of all. The sign is missing.",
        ),
        Mistake(
            lambda mask: np.where(mask, 1.0, -np.inf),
            "Allowed scores get 1 added. The softmax would not notice, but a second mask on top "
            "would; add 0.",
        ),
        Mistake(
            lambda mask: np.where(mask, 0.0, -1e9),
            "A large negative number hides almost as well, but an empty row becomes uniform and "
            "float16 cannot hold it. Use −∞ here.",
        ),
        Mistake(
            lambda mask: np.where(mask, 0.0, -1.0),
            "Minus one only makes a key a little less likely. Use −∞.",
        ),
    ],
    praise="Right: choose, do not multiply.",
)


def _masked_sum(x: NDArray, real: NDArray) -> NDArray:
    return np.where(real[:, :, np.newaxis], x, 0).sum(axis=1)


pool = Exercise(
    lambda x, real: _masked_sum(x, real) / real.sum(axis=1, keepdims=True),
    [
        (_rng.normal(size=(2, 5, 4)), padding_mask([3, 5])),
        (_rng.normal(size=(3, 4, 2)), padding_mask([1, 4, 2])[:, ::-1].copy()),
    ],
    [
        Mistake(
            lambda x, real: _masked_sum(x, real) / real.shape[1],
            "The padding adds nothing to the sum, but it is still counted: you divide by the "
            "padded length. Divide by the number of words of each sentence.",
        ),
        Mistake(
            lambda x, real: x.mean(axis=1),
            "The padding is in the mean. Leave it out of the sum and out of the count.",
        ),
        Mistake(
            lambda x, real: x.sum(axis=1) / real.sum(axis=1, keepdims=True),
            "The count is right, but the padding's vectors are still in the sum.",
        ),
        Mistake(
            _masked_sum,
            "That is the sum of the words. Divide by how many there are.",
        ),
        Mistake(
            lambda x, real: _masked_sum(x, real) / real.sum(),
            "You divide by the number of words in the whole batch: the answer for one sentence "
            "depends on the others. Sum the mask along axis 1 only.",
        ),
        Mistake(
            lambda x, real: _masked_sum(x, ~real) / np.maximum(1, (~real).sum(1, keepdims=True)),
            "Inverted: this is the mean of the padding.",
        ),
    ],
    praise="Right: what is left out of the sum is left out of the count.",
)


def _prepare(n_cached: int, n_new: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return n_cached + np.arange(n_new), causal_mask(n_new, n_cached + n_new)


prepare = Exercise(
    _prepare,
    [(3, 2), (0, 3), (4, 1)],
    [
        Mistake(
            lambda n_cached, n_new: (np.arange(n_new), _top_left(n_new, n_cached + n_new)),
            "Unchanged: both the positions and the mask treat the new tokens as the first ones.",
        ),
        Mistake(
            lambda n_cached, n_new: (np.arange(n_new), causal_mask(n_new, n_cached + n_new)),
            "The mask is right. The positions still start at 0, although the cache holds tokens "
            "with these numbers.",
        ),
        Mistake(
            lambda n_cached, n_new: (
                n_cached + np.arange(n_new),
                _top_left(n_new, n_cached + n_new),
            ),
            "The positions are right. The mask is aligned at the top left, so the newest token "
            "sees only the oldest keys.",
        ),
        Mistake(
            lambda n_cached, n_new: (
                n_cached + 1 + np.arange(n_new),
                causal_mask(n_new, n_cached + n_new),
            ),
            "One too far: cached tokens have the positions 0 … n_cached − 1, so the first new one "
            "gets n_cached.",
        ),
        Mistake(
            lambda n_cached, n_new: (n_cached + np.arange(n_new), causal_mask(n_new)),
            "The mask covers the new keys only. It needs a column for every cached key as well.",
        ),
        Mistake(
            lambda n_cached, n_new: (
                n_cached + np.arange(n_new),
                np.ones((n_new, n_cached + n_new), dtype=bool),
            ),
            "The positions are right, but the new tokens see one another's future. Within the new "
            "block the mask must still be causal.",
        ),
    ],
    praise="Right: the new tokens are the last ones, in their numbers and in their mask.",
)

_Model = Callable[[NDArray], NDArray]


def _causal_model(x: NDArray) -> NDArray:
    return np.cumsum(x, axis=0)[:, :2]


def _model_of_the_next(x: NDArray) -> NDArray:
    """Read the input of the next position: the leak that a shifted target hides."""
    return np.vstack([x[1:], x[-1:]]) * np.array([1.0, 0.0, -2.0])


def _model_in_balance(x: NDArray) -> NDArray:
    """Change two outputs by opposite amounts, so that a sum over them sees nothing."""
    return np.column_stack([x.sum(axis=1), -x.sum(axis=1) + x[0, 0]])


def _influence(model: _Model, x: NDArray, *, copies: bool = True, total: bool = False) -> NDArray:
    before = model(x)
    columns = []
    other = x.copy()
    for j in range(len(x)):
        other = x.copy() if copies else other
        other[j] += 1
        change = model(other) - before
        columns.append(change.sum(axis=1) != 0 if total else (change != 0).any(axis=1))
    return np.stack(columns, axis=1)


def _only_the_row_itself(model: _Model, x: NDArray) -> NDArray:
    return np.diag(np.diag(_influence(model, x)))


influence = Exercise(
    _influence,
    [
        (model, np.arange(12.0).reshape(4, 3) ** 2)
        for model in (_causal_model, _model_of_the_next, _model_in_balance)
    ],
    [
        Mistake(
            lambda model, x: _influence(model, x).T,
            "Transposed: entry [i, j] is about output i and input j, so every replaced input fills "
            "a column.",
        ),
        Mistake(
            lambda model, x: ~_influence(model, x),
            "Inverted: True must mean that the output changes.",
        ),
        Mistake(
            lambda model, x: _influence(model, x, copies=False),
            "The changes pile up: at column j all rows before j are changed as well. Start from a "
            "fresh copy of x for each column.",
        ),
        Mistake(
            lambda model, x: _influence(model, x, total=True),
            "You add up the changes of a row, and opposite changes cancel. Ask whether any entry "
            "of the row differs.",
        ),
        Mistake(
            _only_the_row_itself,
            "You look only at the output of the replaced position. The leak is at the others.",
        ),
    ],
    praise="Right. Run it on every model with a mask, once, before you train it.",
)


def _counted(tokens: NDArray, mask: NDArray[np.bool_] | None) -> NDArray[np.floating]:
    blank = np.zeros((len(tokens), 1))
    is_start = (np.asarray(tokens) == 0)[:, np.newaxis].astype(float)
    head, _ = scaled_dot_product_attention(blank, blank, is_start, mask=mask)
    return head[:, 0]


positions_by_attention = Exercise(
    lambda tokens: 1 / _counted(tokens, causal_mask(len(tokens))) - 1,
    [(np.array([0, 3, 1, 4, 1]),), (np.array([0, 2, 2, 2]),), (np.array([0]),)],
    [
        Mistake(
            lambda tokens: 1 / _counted(tokens, causal_mask(len(tokens))),
            "You count from 1: the number of visible keys includes the token itself.",
        ),
        Mistake(
            lambda tokens: _counted(tokens, causal_mask(len(tokens))),
            "That is the head's output, 1/(pos + 1). Turn it into pos.",
        ),
        Mistake(
            lambda tokens: 1 / _counted(tokens, None) - 1,
            "Every token gets the same number: without the causal mask all of them see the whole "
            "text.",
        ),
        Mistake(
            lambda tokens: np.asarray(tokens, dtype=float),
            "These are the tokens. A position does not depend on which word stands there.",
        ),
    ],
    praise="Right: one head, equal scores, a start token and a mask count the words.",
)
