"""Feedback on the exercises of chapter 8: the pieces of a Transformer, and decoding."""

import numpy as np
from numpy.typing import NDArray

from posenc.attention import softmax
from posenc.checks.exercise import Exercise, Mistake

_rng = np.random.default_rng(8)


def _shift(tokens: NDArray, start: int, end: int) -> tuple[NDArray, NDArray]:
    return np.concatenate([[start], tokens]), np.concatenate([tokens, [end]])


shift_target = Exercise(
    _shift,
    [(np.array([5, 3, 7, 4]), 1, 2), (np.array([9, 9, 6]), 2, 0)],
    [
        Mistake(
            lambda t, start, end: (np.concatenate([[start], t, [end]]),) * 2,
            "What is read equals what is to be answered: at every place the answer stands in the "
            "input. The answers must be one place ahead, so drop the end on one side and the start "
            "on the other.",
        ),
        Mistake(
            lambda t, start, end: _shift(t, start, end)[::-1],
            "You shifted the wrong way: the decoder would read a word and answer the one before.",
        ),
        Mistake(
            lambda t, start, end: (np.concatenate([[start], t[:-1]]), t),
            "Nobody learns to stop: the last answer must be the end token, with the whole sentence "
            "read before it.",
        ),
        Mistake(
            lambda t, start, end: (t, np.concatenate([t[1:], [end]])),
            "The first word is never asked for. Before anything is written, the decoder reads the "
            "start token alone.",
        ),
    ],
    praise="Right: place by place, the decoder has read everything before its answer.",
)


def _layer_parameters(biases: bool = True, norms: int = 2, projections: int = 4) -> int:
    d_model, d_ff = 512, 2048
    attention = projections * (d_model * d_model + biases * d_model)
    feed_forward = 2 * d_model * d_ff + biases * (d_ff + d_model)
    return attention + feed_forward + norms * 2 * d_model


count_layer = Exercise(
    _layer_parameters(),
    mistakes=[
        Mistake(
            _layer_parameters(biases=False),
            "The matrices and norms are right. Each linear map adds a vector, too.",
        ),
        Mistake(
            _layer_parameters(norms=0),
            "Both norms are missing: each has a scale and a shift of d_model numbers.",
        ),
        Mistake(
            _layer_parameters(norms=1),
            "There is a norm for each of the two sub-layers, with a scale and a shift each.",
        ),
        Mistake(
            _layer_parameters(projections=3),
            "Query, key and value are there. What mixes the heads at the end is missing.",
        ),
        Mistake(
            _layer_parameters() + 7 * 4 * (512 * 512 + 512),
            "You counted the projections once for every head. The heads share one matrix: each has "
            "64 of its 512 columns.",
        ),
    ],
    praise="Right: two thirds of it are the feed-forward network.",
)


def _norm(
    x: NDArray, scale: NDArray, shift: NDArray, eps: float = 1e-5, *, axis: int = -1, ddof: int = 0
) -> NDArray:
    mean = x.mean(axis=axis, keepdims=True)
    variance = x.var(axis=axis, keepdims=True, ddof=ddof)
    return (x - mean) / np.sqrt(variance + eps) * scale + shift


layer_norm = Exercise(
    _norm,
    [
        (
            _rng.normal(3, 0.02, (2, 5, 6)),
            _rng.normal(1, 0.3, 6),
            _rng.normal(size=6),
            1e-5,
        ),
        (np.full((3, 4), 2.0), np.ones(4), np.arange(4.0), 1e-5),
    ],
    [
        Mistake(
            lambda x, g, b, eps: _norm(x, g, b, eps, axis=-2),
            "You normalised along the axis of the tokens: now a word depends on its neighbours. "
            "Each vector is normalised alone, along the last axis.",
        ),
        Mistake(
            lambda x, g, b, eps: _norm(x, g, b, eps, axis=0),
            "You normalised along the first axis, across the batch. That is batch norm.",
        ),
        Mistake(
            lambda x, g, b, eps: (x - x.mean()) / np.sqrt(x.var() + eps) * g + b,
            "One mean and one variance for all vectors together. Give each vector its own: "
            "axis=-1, keepdims=True.",
        ),
        Mistake(
            lambda x, g, b, eps: _norm(x, g, b, eps, ddof=1),
            "Divide the squares by d_model, not by d_model − 1: this is a size, not an estimate.",
        ),
        Mistake(
            lambda x, g, b, eps: (
                (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) * g + b
            ),
            "eps belongs under the root, beside the variance. Outside, it is much smaller.",
        ),
        Mistake(
            lambda x, g, b, eps: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * g + b,
            "The mean was not taken out. That is the RMS norm.",
        ),
        Mistake(
            lambda x, g, b, eps: (
                ((x - x.mean(-1, keepdims=True)) * g + b) / np.sqrt(x.var(-1, keepdims=True) + eps)
            ),
            "Scale and shift come last, or the shift is scaled as well.",
        ),
    ],
    praise="Right, and a constant vector gives the shift instead of a division by zero.",
)


def _feed_forward(x: NDArray, w1: NDArray, w2: NDArray) -> NDArray:
    return np.maximum(x @ w1, 0) @ w2


def _plain_norm(x: NDArray) -> NDArray:
    return _norm(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))


sublayer = Exercise(
    lambda x, w1, w2: x + _feed_forward(_plain_norm(x), w1, w2),
    [(2 * _rng.normal(size=(2, 5, 4)), _rng.normal(size=(4, 7)), _rng.normal(size=(7, 4)))],
    [
        Mistake(
            lambda x, w1, w2: _plain_norm(x + _feed_forward(x, w1, w2)),
            "That is the norm of the original paper, after the sum. Before means: only what the "
            "sub-layer reads is normalised.",
        ),
        Mistake(
            lambda x, w1, w2: _plain_norm(x) + _feed_forward(_plain_norm(x), w1, w2),
            "You added the normalised vectors. The skip path carries x itself, untouched.",
        ),
        Mistake(
            lambda x, w1, w2: _feed_forward(_plain_norm(x), w1, w2),
            "The residual connection is missing: add x.",
        ),
        Mistake(
            lambda x, w1, w2: x + _feed_forward(x, w1, w2),
            "The norm is missing.",
        ),
        Mistake(
            lambda x, w1, w2: x + _plain_norm(_feed_forward(x, w1, w2)),
            "You normalised what the sub-layer gives. Normalise what it reads.",
        ),
        Mistake(
            lambda x, w1, w2: x + _plain_norm(x) @ w1 @ w2,
            "Without the bend the two matrices are one. Put max(0, ·) between them.",
        ),
    ],
    praise="Right: x goes through unchanged, and the sub-layer adds its part.",
)


def _attend(query: NDArray, key: NDArray, value: NDArray, scale: float, axis: int = -1) -> NDArray:
    return softmax(query @ key.T / scale, axis=axis) @ value


cross_attention = Exercise(
    lambda x, memory, w_q, w_k, w_v: _attend(x @ w_q, memory @ w_k, memory @ w_v, 2.0),
    [
        (
            _rng.normal(size=(5, 6)),
            _rng.normal(size=(7, 6)),
            *_rng.normal(size=(2, 6, 4)),
            _rng.normal(size=(6, 3)),
        )
    ],
    [
        Mistake(
            lambda x, m, q, k, v: _attend(m @ q, x @ k, x @ v, 2.0),
            "Your queries come from the memory: the source would look at the target. The target "
            "asks, the source answers.",
        ),
        Mistake(
            lambda x, m, q, k, v: _attend(x @ q, x @ k, x @ v, 2.0),
            "This is self-attention: memory is not used at all.",
        ),
        Mistake(
            lambda x, m, q, k, v: _attend(m @ q, m @ k, m @ v, 2.0),
            "This is the self-attention of the source: x is not used at all.",
        ),
        Mistake(
            lambda x, m, q, k, v: _attend(x @ q, m @ k, m @ v, 6**0.5),
            "Divide by √head_dim, the width of queries and keys, which is 4 here; not by √d_model.",
        ),
        Mistake(
            lambda x, m, q, k, v: _attend(x @ q, m @ k, m @ v, 1.0),
            "The scores are not divided by √head_dim.",
        ),
        Mistake(
            lambda x, m, q, k, v: _attend(x @ q, m @ k, m @ v, 2.0, axis=0),
            "Your softmax runs over the queries. Each query spreads a weight of 1 over the keys: "
            "the last axis.",
        ),
    ],
    praise="Right: five queries from one sentence, seven keys from another.",
)


def _exact(written: NDArray, answers: NDArray, end: int) -> float:
    upto = np.arange(answers.shape[1]) <= (answers == end).argmax(axis=1)[:, np.newaxis]
    return float(np.where(upto, written == answers, True).all(axis=1).mean())


_answers = np.array([[3, 4, 7, 2, 0], [5, 3, 2, 0, 0], [6, 9, 4, 8, 2], [3, 9, 4, 2, 0]])
_written = np.array([[3, 4, 7, 2, 9], [5, 3, 3, 2, 0], [6, 9, 4, 5, 2], [3, 9, 4, 2, 0]])

exact_match = Exercise(
    _exact,
    [(_written, _answers, 2)],
    [
        Mistake(
            lambda w, a, end: float((w == a).mean()),
            "That is the share of tokens. A translation counts when all of it is right.",
        ),
        Mistake(
            lambda w, a, end: float((w == a).all(axis=1).mean()),
            "You compared the padding, too. What is written after the end says nothing.",
        ),
        Mistake(
            lambda w, a, end: float(
                np.where(np.arange(a.shape[1]) < (a == end).argmax(axis=1)[:, None], w == a, True)
                .all(axis=1)
                .mean()
            ),
            "You stop before the end token. A translation that goes on talking is wrong: compare "
            "the end token as well.",
        ),
        Mistake(
            lambda w, a, end: int(_exact(w, a, end) * len(a)),
            "That is a number of sentences. Divide by how many there are.",
        ),
        Mistake(
            lambda w, a, end: float((w == a)[np.cumsum(a == end, axis=1) == 0].mean()),
            "That is the share of words, without the padding. Ask of each row whether all of it is "
            "right, then take the mean over rows.",
        ),
    ],
    praise="Right: two of the four. One row goes on after its end, another has a wrong word.",
)

next_positions = Exercise(
    lambda real: real.sum(axis=1),
    [
        (
            np.array(
                [
                    [False, False, True, True, True],
                    [True, True, True, False, False],
                    [False, True, True, True, True],
                ]
            ),
        )
    ],
    [
        Mistake(
            lambda real: np.full(len(real), real.shape[1]),
            "You count slots. The padding has no place in the text: count the real tokens.",
        ),
        Mistake(
            lambda real: real.sum(axis=1) - 1,
            "That is the position of the last token that was read; the new one comes after it.",
        ),
        Mistake(
            lambda real: real.shape[1] - real[:, ::-1].argmax(axis=1),
            "That is the slot after the last real token. It is right only if no padding stands on "
            "the left.",
        ),
        Mistake(
            lambda real: np.full(len(real), real.sum(axis=1).max()),
            "All rows got the position of the longest. Each row counts for itself.",
        ),
        Mistake(
            lambda real: np.zeros(len(real), int),
            "Position 0, because the step holds one token: but the tokens before it are cached.",
        ),
        Mistake(
            lambda real: real.sum(axis=0),
            "You summed over the batch: axis 0. Rows are sentences, so sum along axis 1.",
        ),
    ],
    praise="Right: the number of real tokens before it, row by row.",
)


def _merge(x: NDArray) -> NDArray:
    batch, heads, length, head_dim = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * head_dim)


merge_heads = Exercise(
    _merge,
    [(np.arange(2 * 3 * 5 * 4.0).reshape(2, 3, 5, 4),)],
    [
        Mistake(
            lambda x: x.reshape(x.shape[0], x.shape[2], -1),
            "The shape is right and the numbers are mixed up: a token gets pieces of other tokens. "
            "Bring the heads beside their columns first, then reshape.",
        ),
        Mistake(
            lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),
            "Tokens are right, but the columns of the heads alternate. Each head keeps its block: "
            "the heads' axis goes before head_dim.",
        ),
        Mistake(
            lambda x: x.transpose(0, 2, 1, 3),
            "The order of the axes is right. Now lay the last two side by side.",
        ),
        Mistake(
            lambda x: x.mean(axis=1),
            "You averaged the heads. They are laid side by side, and W_o mixes them.",
        ),
    ],
    praise="Right: the two axes that become one must be neighbours before the reshape.",
)


def _join(first: tuple, second: tuple) -> tuple:
    highest = max(first[0], second[0])
    grow = [np.exp(part[0] - highest) for part in (first, second)]
    return (
        highest,
        grow[0] * first[1] + grow[1] * second[1],
        grow[0] * first[2] + grow[1] * second[2],
    )


def _part(scores: NDArray, value: NDArray) -> tuple:
    return scores.max(), np.exp(scores - scores.max()).sum(), np.exp(scores - scores.max()) @ value


_scores, _value = _rng.normal(scale=2, size=12), _rng.normal(size=(12, 3))

join_blocks = Exercise(
    _join,
    [
        (_part(_scores[:5], _value[:5]), _part(_scores[5:], _value[5:])),
        (_part(_scores[7:], _value[7:]), _part(_scores[:7], _value[:7])),
        (_part(_scores[:5] - 9, _value[:5]), _part(_scores[5:], _value[5:])),
    ],
    [
        Mistake(
            lambda a, b: (max(a[0], b[0]), a[1] + b[1], a[2] + b[2]),
            "The two sums are measured against different maxima. Bring both to the common one "
            "first: multiply by exp(old maximum − new maximum).",
        ),
        Mistake(
            lambda a, b: (
                max(a[0], b[0]),
                a[1] * np.exp(a[0] - max(a[0], b[0])) + b[1],
                a[2] * np.exp(a[0] - max(a[0], b[0])) + b[2],
            ),
            "You rescale the first block only. The second may have the smaller maximum.",
        ),
        Mistake(
            lambda a, b: (
                max(a[0], b[0]),
                sum(p[1] * np.exp(max(a[0], b[0]) - p[0]) for p in (a, b)),
                sum(p[2] * np.exp(max(a[0], b[0]) - p[0]) for p in (a, b)),
            ),
            "The factor is upside down: exp(old − new) shrinks the block with the smaller maximum.",
        ),
        Mistake(
            lambda a, b: (*_join(a, b)[:2], a[2] + b[2]),
            "The totals are right. The mixed values need the same factors.",
        ),
        Mistake(
            lambda a, b: (*_join(a, b)[:2], _join(a, b)[2] / _join(a, b)[1]),
            "You divided already. Keep the sum, so that a third block can be joined; the division "
            "comes once, at the end.",
        ),
    ],
    praise="Right: the whole softmax, without ever holding all the scores.",
)
