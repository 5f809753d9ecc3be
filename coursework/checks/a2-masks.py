"""Assignment A2: what each task asks, on which inputs, for how many points."""

import numpy as np

from posenc import masks, positions
from posenc.attention import scaled_dot_product_attention, softmax, split_heads
from posenc_grader.tasks import Aspect, Mistake, Task

ORDER = "chapters/01-why-order-matters.ipynb"
MASKING = "chapters/04-encoding-vs-masking.ipynb"


def attend(query, key, value, mask=None, scale=None):
    """Give the output of attention without its weights."""
    return scaled_dot_product_attention(query, key, value, mask=mask, scale=scale)[0]


def attention_inputs(rng, *front):
    """Make queries, keys and values of unequal sizes."""
    queries, keys, head_dim, width = 5, 7, int(rng.integers(2, 5)), int(rng.integers(6, 9))
    shapes = (queries, head_dim), (keys, head_dim), (keys, width)
    return tuple(2 * rng.normal(size=(*front, *shape)) for shape in shapes)


def masked_inputs(rng, *front, empty=False):
    """Make inputs and a mask in which every query sees something, or some see nothing."""
    query, key, value = attention_inputs(rng, *front)
    mask = rng.random((5, 7)) < 0.5
    mask[:, 3] = True
    if empty:
        mask[rng.choice(5, 2, replace=False)] = False
    return query, key, value, mask


def filled(query, key, value, mask, fill):
    """Fill hidden scores with a constant, whatever the rest of the row holds."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    with np.errstate(invalid="ignore"):
        scores = np.where(mask, scores, fill)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True) @ value


def multiplied(query, key, value, mask):
    """Multiply the weights with the mask and do not make them sum to 1 again."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    return softmax(scores) * mask @ value


def layer_outputs(rng, blind):
    """Make the outputs of a layer on shuffled and on unshuffled input."""
    x, order = rng.normal(size=(6, 3)), rng.permutation(6)
    while (order[order] == np.arange(6)).all():  # an order that is its own inverse hides a mistake
        order = rng.permutation(6)

    def layer(x):
        return np.tanh(x) if blind else np.cumsum(x, axis=0)

    return layer(x[order]), layer(x), order


def order_gap(shuffled_output, output, order):
    """Give the largest difference after undoing the permutation."""
    return float(np.abs(shuffled_output - output[order]).max())


def window_mask(length, width):
    """Give the mask of a sliding window."""
    return masks.causal_mask(length) & ~np.tri(length, k=-width, dtype=bool)


def decoder_mask(lengths, max_length):
    """Give the padding and causal mask for attention."""
    real = masks.padding_mask(lengths, max_length)[:, None, None, :]
    return masks.combine(real, masks.causal_mask(max_length))


def padded_lengths(rng):
    """Make a batch of lengths, one of them full."""
    longest = int(rng.integers(5, 8))
    return np.append(rng.integers(1, longest, 3), longest), longest + 2


def packed_mask(lengths):
    """Give the causal document mask."""
    return masks.document_mask(lengths) & masks.causal_mask(sum(lengths))


def causal_means(value):
    """Give the running means."""
    return np.cumsum(value, axis=-2) / np.arange(1, value.shape[-2] + 1)[:, None]


CAUSAL_MISTAKES = [
    Mistake(
        lambda q, k: ~masks.causal_mask(q, k),
        "The mask is upside down: True means may attend.",
    ),
    Mistake(
        lambda q, k: np.tri(q, k, k - q - 1, dtype=bool),
        "No query sees the key at its own place.",
    ),
]

TASKS = [
    Task(
        cell="a2-softmax-check",
        answer="softmax",
        title="1 Softmax that survives large scores",
        objective="turn scores into weights, stably",
        section=f"{ORDER}#Attention is a weighted mean",
        exercise="ex-order-softmax",
        aspects=[
            Aspect(
                "moderate scores",
                2,
                softmax,
                lambda rng: [(rng.normal(size=(2, 5, 7)),), (rng.normal(size=4),)],
                [
                    Mistake(
                        lambda s: softmax(s, axis=0),
                        "The weights sum to 1 over the first axis, not over the last, the keys.",
                    ),
                    Mistake(
                        lambda s: np.exp(s) / np.exp(s).sum(),
                        "All weights together sum to 1; each row must.",
                    ),
                    Mistake(lambda s: np.exp(s), "The exponentials are not divided by their sum."),
                ],
            ),
            Aspect(
                "scores in the thousands",
                1,
                softmax,
                lambda rng: [(1e4 * rng.normal(size=(3, 4)),), (-1e4 + rng.normal(size=5),)],
            ),
        ],
    ),
    Task(
        cell="a2-attention-check",
        answer="attention",
        title="2 Attention",
        objective="implement scaled dot-product attention",
        section=f"{ORDER}#Attention is a weighted mean",
        exercise="ex-order-attention",
        aspects=[
            Aspect(
                "one sentence",
                3,
                attend,
                lambda rng: [attention_inputs(rng) for _ in range(3)],
                [
                    Mistake(
                        lambda q, k, v: attend(q, k, v, scale=1.0), "The scores are not scaled."
                    ),
                    Mistake(
                        lambda q, k, v: attend(q, k, v, scale=1 / q.shape[-1]),
                        "The scores are divided by head_dim, not by its square root.",
                    ),
                    Mistake(
                        lambda q, k, v: attend(q, k, v, scale=k.shape[-2] ** -0.5),
                        "The scores are divided by the square root of the number of keys.",
                    ),
                    Mistake(
                        lambda q, k, v: softmax(q @ k.T / q.shape[-1] ** 0.5, axis=0) @ v,
                        "The weights sum to 1 over the queries; they must over the keys.",
                    ),
                ],
            ),
            Aspect(
                "batch and heads in front",
                1,
                attend,
                lambda rng: [attention_inputs(rng, 2), attention_inputs(rng, 2, 3)],
            ),
        ],
    ),
    Task(
        cell="a2-blind-check",
        answer="order_gap",
        title="3 Is this layer blind to order?",
        objective="test whether a layer is permutation equivariant",
        section=f"{ORDER}#Swap the words, and the outputs swap with them",
        exercise="ex-order-equivariant",
        aspects=[
            Aspect(
                "layers that are blind, and others",
                3,
                order_gap,
                lambda rng: [layer_outputs(rng, blind) for blind in (True, False, False, True)],
                [
                    Mistake(
                        lambda b, a, order: float(np.abs(b - a).max()),
                        "The output on `x` must be shuffled before you compare.",
                    ),
                    Mistake(
                        lambda b, a, order: float(np.abs(b[order] - a).max()),
                        "The wrong one of the two was shuffled.",
                    ),
                    Mistake(
                        lambda b, a, order: float((b - a[order]).max()),
                        "Take absolute values: a large negative difference is a difference.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a2-causal-check",
        answer="causal_mask",
        title="4 Nobody sees the future",
        objective="build a causal mask, aligned at the last key",
        section=f"{MASKING}#The newest query stands at the end",
        exercise="ex-masking-causal",
        aspects=[
            Aspect(
                "as many queries as keys",
                1,
                masks.causal_mask,
                lambda rng: [(n, n) for n in map(int, rng.integers(4, 9, 2))],
                [
                    *CAUSAL_MISTAKES,
                    Mistake(
                        lambda q, k: masks.causal_mask(k, q).T,
                        "The axes are exchanged: rows are queries. As it is, everyone sees the "
                        "future only.",
                    ),
                ],
            ),
            Aspect(
                "fewer queries than keys",
                2,
                masks.causal_mask,
                lambda rng: [(int(rng.integers(2, 5)), int(rng.integers(6, 9))) for _ in range(2)],
                [
                    *CAUSAL_MISTAKES,
                    Mistake(
                        lambda q, k: np.tri(q, k, dtype=bool),
                        "The first query was put at the first key; the last query stands at the "
                        "last key.",
                    ),
                ],
            ),
            Aspect(
                "more queries than keys",
                1,
                masks.causal_mask,
                lambda rng: [(int(rng.integers(6, 9)), int(rng.integers(2, 5)))],
            ),
        ],
    ),
    Task(
        cell="a2-window-check",
        answer="window_mask",
        title="5 The last few only",
        objective="build a sliding-window mask",
        section=f"{MASKING}#Replace the future, and nothing before may move",
        exercise="ex-masking-count",
        aspects=[
            Aspect(
                "windows shorter than the text",
                2,
                window_mask,
                lambda rng: [(int(rng.integers(6, 9)), int(rng.integers(2, 5))) for _ in range(3)],
                [
                    Mistake(
                        lambda n, w: window_mask(n, w + 1),
                        "The window is one too wide: the query itself counts.",
                    ),
                    Mistake(
                        lambda n, w: window_mask(n, w) | window_mask(n, w).T,
                        "The window reaches into the future.",
                    ),
                    Mistake(
                        lambda n, w: masks.causal_mask(n),
                        "This is a causal mask without a window.",
                    ),
                ],
            ),
            Aspect(
                "windows of one, and longer than the text",
                1,
                window_mask,
                lambda rng: [(int(rng.integers(4, 9)), 1), (int(rng.integers(4, 9)), 20)],
            ),
        ],
    ),
    Task(
        cell="a2-combined-check",
        answer="decoder_mask",
        title="6 Padding and future together",
        objective="combine a padding mask with a causal one on the right axes",
        section=f"{MASKING}#Padding is hidden as a key, not as a query",
        exercise="ex-masking-keys",
        aspects=[
            Aspect(
                "the shape",
                1,
                decoder_mask,
                lambda rng: [padded_lengths(rng)],
                view=lambda mask: tuple(np.shape(mask)),
            ),
            Aspect(
                "who sees whom",
                3,
                decoder_mask,
                lambda rng: [padded_lengths(rng) for _ in range(2)],
                [
                    Mistake(
                        lambda lengths, n: (
                            masks.padding_mask(lengths, n)[:, None, :, None] & masks.causal_mask(n)
                        ),
                        "Padding queries are hidden, and padding keys are seen by everyone: the "
                        "padding mask belongs on the last axis.",
                    ),
                    Mistake(
                        lambda lengths, n: (
                            masks.padding_mask(lengths, n)[:, None, None, :] | masks.causal_mask(n)
                        ),
                        "The masks were joined with *or*: a key must be real *and* not ahead.",
                    ),
                    Mistake(
                        lambda lengths, n: ~decoder_mask(lengths, n),
                        "The mask is upside down: True means may attend.",
                    ),
                    Mistake(
                        lambda lengths, n: np.repeat(
                            masks.padding_mask(lengths, n)[:, None, None, :], n, axis=2
                        ),
                        "The future is not hidden.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a2-masked-check",
        answer="masked_attention",
        title="7 Attention with a mask",
        objective="hide keys exactly, also where none is left",
        section=f"{MASKING}#A query that sees nothing must not answer NaN",
        exercise="ex-masking-softmax",
        aspects=[
            Aspect(
                "every query sees a key",
                2,
                attend,
                lambda rng: [masked_inputs(rng) for _ in range(2)],
                [
                    Mistake(
                        lambda q, k, v, mask: attend(q, k, v),
                        "The mask is not used.",
                    ),
                    Mistake(
                        lambda q, k, v, mask: attend(q, k, v, ~mask),
                        "The mask is used upside down: True means may attend.",
                    ),
                    Mistake(
                        multiplied,
                        "The weights of the visible keys do not sum to 1: hide keys before the "
                        "softmax, not after.",
                    ),
                    Mistake(
                        lambda q, k, v, mask: filled(q, k, v, mask, 0.0),
                        "A hidden key keeps weight: a score of 0 is a score like any other.",
                    ),
                ],
            ),
            Aspect(
                "batch and heads in front",
                1,
                attend,
                lambda rng: [masked_inputs(rng, 2, 3)],
            ),
            Aspect(
                "queries that see no key",
                2,
                attend,
                lambda rng: [masked_inputs(rng, empty=True), masked_inputs(rng, 2, empty=True)],
                [
                    Mistake(
                        lambda q, k, v, mask: filled(q, k, v, mask, -np.inf),
                        "A query that sees no key gives NaN: its weights are 0 divided by 0.",
                    ),
                    Mistake(
                        lambda q, k, v, mask: filled(q, k, v, mask, -1e9),
                        "A query that sees no key gets the mean of all values: −1e9 everywhere is "
                        "as good as 0 everywhere.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a2-ids-check",
        answer="position_ids",
        title="8 Count the tokens, not the padding",
        objective="number real tokens under padding on any side",
        section=f"{MASKING}#Number the words, not the columns",
        exercise="ex-masking-ids",
        aspects=[
            Aspect(
                "padding on the right",
                1,
                positions.position_ids,
                lambda rng: [(masks.padding_mask(rng.integers(1, 7, 3), 8),)],
            ),
            Aspect(
                "padding on the left and in the middle",
                2,
                positions.position_ids,
                lambda rng: [
                    (masks.padding_mask(rng.integers(1, 7, 3), 8)[:, ::-1].copy(),),
                    (rng.random((3, 9)) < 0.6,),
                ],
                [
                    Mistake(
                        lambda mask: np.where(mask, np.arange(mask.shape[1]), 0),
                        "Padding was counted: the first real token is number 0 wherever it stands.",
                    ),
                    Mistake(
                        lambda mask: np.where(mask, np.cumsum(mask, axis=1), 0),
                        "Tokens are counted from 1; positions count from 0.",
                    ),
                    Mistake(
                        lambda mask: np.cumsum(mask, axis=1) - 1,
                        "Real tokens are right; padding must get 0. A −1 reads the last row of "
                        "a table.",
                    ),
                    Mistake(
                        lambda mask: np.where(mask, np.cumsum(mask, axis=0) - 1, 0),
                        "Counted down the batch; each row is a sentence of its own.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a2-packed-check",
        answer="packed_mask",
        title="9 Two documents in one row",
        objective="keep packed documents apart",
        section=f"{MASKING}#Packing needs a mask and fresh numbers",
        exercise="ex-shapes-packed",
        aspects=[
            Aspect(
                "several documents",
                2,
                packed_mask,
                lambda rng: [(rng.integers(1, 5, n).tolist(),) for n in (2, 3, 4)],
                [
                    Mistake(masks.document_mask, "A token sees the future of its own document."),
                    Mistake(
                        lambda lengths: masks.causal_mask(sum(lengths)),
                        "A token sees the documents before its own.",
                    ),
                    Mistake(
                        lambda lengths: ~packed_mask(lengths),
                        "The mask is upside down: True means may attend.",
                    ),
                ],
            ),
            Aspect(
                "one document, and an empty one between",
                1,
                packed_mask,
                lambda rng: [([int(rng.integers(2, 6))],), ([2, 0, int(rng.integers(2, 6))],)],
            ),
        ],
    ),
    Task(
        cell="a2-heads-check",
        answer="split_heads",
        title="10 A head for each slice",
        objective="split heads without mixing tokens",
        section=f"{ORDER}#Attention is a weighted mean",
        exercise="ex-relative-heads",
        aspects=[
            Aspect(
                "the right numbers in the right head",
                3,
                split_heads,
                lambda rng: [(rng.normal(size=(2, 5, 12)), 3), (rng.normal(size=(3, 4, 10)), 2)],
                [
                    Mistake(
                        lambda x, n: x.reshape(len(x), n, x.shape[1], -1),
                        "Tokens and heads are mixed up: reshape to (batch, length, n_heads, "
                        "head_dim) first, then move the axis of the heads.",
                    ),
                    Mistake(
                        lambda x, n: x.reshape(*x.shape[:2], n, -1),
                        "The axis of the heads stands behind the tokens; it must stand before.",
                    ),
                    Mistake(
                        lambda x, n: x.reshape(*x.shape[:2], -1, n).transpose(0, 3, 1, 2),
                        "A head gets every n_heads-th number; it must get a slice of neighbours.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a2-mean-check",
        answer="causal_means",
        title="11 What a causal mask knows of order",
        objective="compute what a causal mask alone tells about position",
        section=f"{MASKING}#One causal head can count",
        exercise="ex-masking-count-by-mask",
        aspects=[
            Aspect(
                "one sentence and a batch",
                2,
                causal_means,
                lambda rng: [(rng.normal(size=(6, 3)),), (rng.normal(size=(2, 5, 4)),)],
                [
                    Mistake(
                        lambda value: np.cumsum(value, axis=-2),
                        "These are sums: query t has t + 1 keys to take the mean of.",
                    ),
                    Mistake(
                        lambda value: np.cumsum(value, axis=-2) / value.shape[-2],
                        "Divided by the whole length; query t sees t + 1 keys.",
                    ),
                    Mistake(
                        lambda value: np.ones_like(value) * value.mean(axis=-2, keepdims=True),
                        "Every query got the mean of all values, of the future as well.",
                    ),
                ],
            ),
            Aspect(
                "texts of 20,000 tokens",
                1,
                causal_means,
                lambda rng: [(np.eye(1, 20_000)[0][:, None] * float(rng.integers(1, 9)),)],
                tolerance=1e-7,
            ),
        ],
    ),
]
