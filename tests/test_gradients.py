"""Every gradient written by hand against one that nobody wrote.

The oracle is HIPS autograd: each layer is written again below, forward only, in its dialect of
NumPy, and differentiated automatically. Where posenc takes a short cut (one matrix product for all
rows, distances summed along diagonals, rotations without matrices) the oracle takes the long way.
One whole model is also compared with finite differences, which know nothing but the loss.
"""

import math

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad as differentiate
from autograd.extend import defvjp, primitive

from posenc.attention import MultiHeadAttention, attention_backward, scaled_dot_product_attention
from posenc.bias import alibi_slopes, clipped_relative_positions, relative_positions, t5_buckets
from posenc.injection import ENCODINGS, Injection, encoding_named
from posenc.layers import Embedding, FeedForward, LayerNorm, Linear
from posenc.masks import causal_mask, padding_mask
from posenc.rotary import rotary_frequencies
from posenc.sinusoidal import sinusoidal_encoding
from posenc.training import cross_entropy
from posenc.transformer import DecoderLayer, Encoder, EncoderLayer, Tagger, Transformer

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12
VOCABULARY, FF = 11, 20


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def all_close(actual, expected):
    assert actual.keys() == expected.keys()
    for name in actual:
        close(actual[name], expected[name])


def shaken(layer, rng):
    """Return `layer` with every parameter moved, so that no zero or one hides a term."""
    for array in layer.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    return layer


# --- the layers once more, for autograd -----------------------------------------------------------


@primitive
def erf(x):
    return np.vectorize(math.erf)(x)


defvjp(erf, lambda _, x: lambda g: g * 2 / np.sqrt(np.pi) * np.exp(-(x**2)))


def within(p, name):
    return {n[len(name) + 1 :]: p[n] for n in p if n.startswith(f"{name}.")}


def linear(p, x):
    return anp.einsum("...i,io->...o", x, p["weight"]) + p["bias"]


def layer_norm(p, x):
    mean = anp.mean(x, axis=-1, keepdims=True)
    variance = anp.var(x, axis=-1, keepdims=True)
    return (x - mean) / anp.sqrt(variance + 1e-5) * p["scale"] + p["shift"]


def feed_forward(p, x, activation="relu"):
    h = linear(within(p, "first"), x)
    bend = anp.maximum(h, 0) if activation == "relu" else h * (1 + erf(h / np.sqrt(2))) / 2
    return linear(within(p, "second"), bend)


def dot_product(q, k, v, mask=None, bias=None):
    scores = anp.einsum("bhqc,bhkc->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else anp.where(mask, scores, -1e30)
    weights = anp.exp(scores - anp.max(scores, axis=-1, keepdims=True))
    weights = weights / anp.sum(weights, axis=-1, keepdims=True)
    return anp.einsum("bhqk,bhkc->bhqc", weights, v)


def attention(p, x, key, value, mask=None, places=None, encoding="none", table=None):
    def heads(name, y):
        y = linear(within(p, name), y)
        return anp.transpose(anp.reshape(y, (*y.shape[:2], HEADS, -1)), (0, 2, 1, 3))

    q, k, v = heads("query", x), heads("key", key), heads("value", value)
    if encoding == "rotary":
        turns = rotation_matrices(places, q.shape[-1])  # (B, L, c, c)
        q, k = (anp.einsum("blde,bhle->bhld", turns, y) for y in (q, k))
    y = dot_product(q, k, v, mask, score_bias(encoding, table, q, k.shape[2]))
    y = anp.transpose(y, (0, 2, 1, 3))
    return linear(within(p, "output"), anp.reshape(y, (*y.shape[:2], -1)))


def rotation_matrices(places, head_dim):
    angles = places[..., None] * rotary_frequencies(head_dim)
    matrices = np.zeros((*places.shape, head_dim, head_dim))
    for i in range(head_dim // 2):
        c, s = np.cos(angles[..., i]), np.sin(angles[..., i])
        matrices[..., 2 * i, 2 * i], matrices[..., 2 * i + 1, 2 * i + 1] = c, c
        matrices[..., 2 * i, 2 * i + 1], matrices[..., 2 * i + 1, 2 * i] = -s, s
    return matrices


def score_bias(encoding, table, q, keys):
    queries = q.shape[2]
    if encoding == "t5":
        buckets = t5_buckets(relative_positions(queries, keys), num_buckets=len(table))
        return anp.transpose(table[buckets], (2, 0, 1))
    if encoding == "alibi":
        return -alibi_slopes(HEADS)[:, None, None] * np.abs(relative_positions(queries, keys))
    if encoding == "shaw":
        most = len(table) // 2
        vectors = table[clipped_relative_positions(queries, keys, most) + most]  # (Q, K, c)
        return anp.einsum("bhqc,qkc->bhqk", q, vectors) / np.sqrt(q.shape[-1])
    return None


def around(p, name, x, norm, sublayer):
    q = within(p, f"{name}_norm")
    if norm == "pre":
        return x + sublayer(within(p, name), layer_norm(q, x))
    return layer_norm(q, x + sublayer(within(p, name), x))


def layer(p, x, memory=None, norm="pre", activation="relu", memory_mask=None, **options):
    x = around(p, "self_attention", x, norm, lambda q, y: attention(q, y, y, y, **options))
    if memory is not None:
        cross = lambda q, y: attention(q, y, memory, memory, memory_mask)  # noqa: E731
        x = around(p, "cross_attention", x, norm, cross)
    return around(p, "feed_forward", x, norm, lambda q, y: feed_forward(q, y, activation))


def stack(p, tokens, places, reached, encoding, memory=None, norm="pre", **options):
    x = p["embedding.table"][tokens] * np.sqrt(WIDTH)
    table = p.get("encoding.table")
    for index in range(1 + max(int(n.split(".")[1]) for n in p if n.startswith("layers."))):
        here = encoding if index in reached else "none"
        if here == "sinusoidal":
            x = x + sinusoidal_encoding(places, WIDTH)
        if here == "learned":
            x = x + np.sqrt(WIDTH) * table[places]
        inside = {"places": places, "encoding": here, "table": table}
        x = layer(within(p, f"layers.{index}"), x, memory, norm, **inside, **options)
    return layer_norm(within(p, "last_norm"), x) if norm == "pre" else x


def negative_log_likelihood(scores, targets, mask):
    highest = anp.max(scores, axis=-1, keepdims=True)
    log_total = anp.log(anp.sum(anp.exp(scores - highest), axis=-1)) + highest[..., 0]
    right = anp.sum(scores * np.eye(scores.shape[-1])[targets], axis=-1)
    return anp.sum((log_total - right) * mask) / mask.sum()


# --- one layer at a time --------------------------------------------------------------------------


def check_plain_layer(module, oracle, rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH))
    parameters = module.parameters()
    y, tape = module.forward(x)
    close(y, oracle(parameters, x))
    up = rng.standard_normal(y.shape)
    expected = differentiate(lambda p, x: anp.sum(oracle(p, x) * up), (0, 1))(parameters, x)
    grad_x, gradients = module.backward(tape, up)
    close(grad_x, expected[1])
    all_close(gradients, expected[0])


def test_linear(rng):
    check_plain_layer(shaken(Linear(WIDTH, FF, rng=rng), rng), linear, rng)


def test_linear_without_bias(rng):
    module = shaken(Linear(WIDTH, FF, rng=rng, bias=False), rng)
    check_plain_layer(module, lambda p, x: linear({**p, "bias": np.zeros(FF)}, x), rng)


def test_layer_norm(rng):
    check_plain_layer(shaken(LayerNorm(WIDTH), rng), layer_norm, rng)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward(activation, rng):
    module = shaken(FeedForward(WIDTH, FF, rng=rng, activation=activation), rng)
    check_plain_layer(module, lambda p, x: feed_forward(p, x, activation), rng)


def test_embedding(rng):
    module = Embedding(VOCABULARY, WIDTH, rng=rng)
    tokens = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    tokens[0, :2] = 4  # a token that occurs twice collects both gradients
    up = rng.standard_normal((BATCH, QUERIES, WIDTH))
    expected = differentiate(lambda t: anp.sum(t[tokens] * np.sqrt(WIDTH) * up))(module.table)
    close(module.backward(tokens, up)["table"], expected)


def test_scaled_dot_product_attention(rng):
    q = rng.standard_normal((BATCH, HEADS, QUERIES, 4))
    k = rng.standard_normal((BATCH, HEADS, KEYS, 4))
    v = rng.standard_normal((BATCH, HEADS, KEYS, 6))
    bias = rng.standard_normal((BATCH, HEADS, QUERIES, KEYS))
    mask = causal_mask(QUERIES, KEYS)
    output, weights = scaled_dot_product_attention(q, k, v, mask=mask, bias=bias)
    up = rng.standard_normal(output.shape)
    loss = lambda q, k, v, bias: anp.sum(dot_product(q, k, v, mask, bias) * up)  # noqa: E731
    expected = differentiate(loss, (0, 1, 2, 3))(q, k, v, bias)
    for actual, wanted in zip(attention_backward(up, q, k, v, weights), expected, strict=True):
        close(actual, wanted)


def test_no_gradient_reaches_a_query_without_keys(rng):
    q, k, v = (rng.standard_normal((BATCH, HEADS, n, 4)) for n in (QUERIES, KEYS, KEYS))
    mask = np.ones((QUERIES, KEYS), bool)
    mask[2] = False
    _, weights = scaled_dot_product_attention(q, k, v, mask=mask)
    grads = attention_backward(rng.standard_normal(q.shape), q, k, v, weights)
    assert all(np.isfinite(g).all() for g in grads)
    assert (grads[0][:, :, 2] == 0).all()
    assert (grads[0][:, :, 1] != 0).any()


@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention(bias, rng):
    module = shaken(MultiHeadAttention(WIDTH, HEADS, rng=rng, bias=bias), rng)
    parameters = module.parameters()
    zeros = {f"{n}.bias": np.zeros(WIDTH) for n in ("query", "key", "value", "output")}
    inputs = [rng.standard_normal((BATCH, n, WIDTH)) for n in (QUERIES, KEYS, KEYS)]
    heads, project_tape = module.project(*inputs)
    y, attend_tape = module.attend(*heads)
    up = rng.standard_normal(y.shape)

    def loss(p, query, key, value):
        return anp.sum(attention({**zeros, **{n: p[n] for n in p}}, query, key, value) * up)

    expected = differentiate(loss, (0, 1, 2, 3))(parameters, *inputs)
    (*grad_heads, _), after = module.attend_backward(attend_tape, up)
    grad_inputs, before = module.project_backward(project_tape, grad_heads)
    all_close(before | after, expected[0])
    for actual, wanted in zip(grad_inputs, expected[1:], strict=True):
        close(actual, wanted)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e not in ("sinusoidal", "learned")])
def test_encoder_layer(norm, encoding, rng):
    module = shaken(EncoderLayer(WIDTH, HEADS, FF, rng=rng, norm=norm, activation="gelu"), rng)
    plugged = shaken(encoding_named(encoding, WIDTH, HEADS, rng=rng), rng)
    x = rng.standard_normal((BATCH, QUERIES, WIDTH))
    places = rng.integers(9, size=(BATCH, QUERIES))
    mask = padding_mask([3, QUERIES])[:, None, None, :]
    context = {"mask": mask, "positions": places, "cache": None}
    y, tape = module.forward(x, encoding=plugged, **context)
    up = rng.standard_normal(y.shape)

    def loss(p, q, x):
        options = {"mask": mask, "places": places, "encoding": encoding, "table": q.get("table")}
        return anp.sum(layer(p, x, norm=norm, activation="gelu", **options) * up)

    grad_x, of_encoding, gradients = module.backward(tape, up)
    expected = differentiate(loss, (0, 1, 2))(module.parameters(), plugged.parameters(), x)
    all_close(gradients, expected[0])
    all_close(of_encoding, expected[1])
    close(grad_x, expected[2])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_layer(norm, rng):
    module = shaken(DecoderLayer(WIDTH, HEADS, FF, rng=rng, norm=norm), rng)
    x, memory = (rng.standard_normal((BATCH, n, WIDTH)) for n in (QUERIES, KEYS))
    memory_mask = padding_mask([4, KEYS])[:, None, None, :]
    context = {"mask": None, "positions": np.arange(QUERIES), "cache": None}
    y, tape = module.forward(x, memory, memory_mask=memory_mask, encoding=Injection(), **context)
    up = rng.standard_normal(y.shape)

    def loss(p, x, memory):
        mask = causal_mask(QUERIES)
        return anp.sum(layer(p, x, memory, norm, memory_mask=memory_mask, mask=mask) * up)

    expected = differentiate(loss, (0, 1, 2))(module.parameters(), x, memory)
    grad_x, grad_memory, _, gradients = module.backward(tape, up)
    all_close(gradients, expected[0])
    close(grad_x, expected[1])
    close(grad_memory, expected[2])


# --- whole stacks ---------------------------------------------------------------------------------

PLACES = [("none", None), ("sinusoidal", None), ("sinusoidal", "every"), ("learned", "input")]
PLACES += [("learned", "every"), ("learned", 1), ("rotary", None), ("rotary", 1), ("t5", None)]
PLACES += [("t5", 1), ("alibi", None), ("shaw", None), ("shaw", 1)]


@pytest.mark.parametrize(("encoding", "where"), PLACES)
def test_encoder(encoding, where, rng):
    module = Encoder(
        VOCABULARY, WIDTH, HEADS, FF, 2, rng=rng, encoding=encoding, where=where, max_length=9
    )
    shaken(module, rng)
    tokens = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    places = rng.integers(9, size=(BATCH, QUERIES))
    y, tape = module.forward(tokens, positions=places)
    up = rng.standard_normal(y.shape)

    def loss(p):
        return anp.sum(stack(p, tokens, places, module.reached, encoding) * up)

    all_close(module.backward(tape, up)[1], differentiate(loss)(module.parameters()))


@pytest.mark.parametrize(("encoding", "norm"), [("learned", "post"), ("t5", "pre")])
def test_transformer(encoding, norm, rng):
    sizes = (WIDTH, HEADS, FF, 2)
    options = {"encoding": encoding, "norm": norm, "causal": False, "max_length": 9}
    module = shaken(Transformer(9, VOCABULARY, *sizes, rng=rng, **options), rng)
    source = rng.integers(9, size=(BATCH, KEYS))
    target = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    source_mask = padding_mask([4, KEYS])
    scores, tape = module.forward(source, target, source_mask=source_mask)
    up = rng.standard_normal(scores.shape)
    over_source = source_mask[:, None, None, :]
    source_places = np.where(source_mask, np.arange(KEYS), 0)
    target_places = np.tile(np.arange(QUERIES), (BATCH, 1))

    def loss(p):
        shared = {"encoding": encoding, "norm": norm, "reached": module.encoder.reached}
        memory = stack(within(p, "encoder"), source, source_places, mask=over_source, **shared)
        shared |= {"memory": memory, "memory_mask": over_source}
        x = stack(within(p, "decoder"), target, target_places, **shared)
        return anp.sum(linear(within(p, "read_out"), x) * up)

    all_close(module.backward(tape, up), differentiate(loss)(module.parameters()))


def test_cross_entropy(rng):
    scores = 3 * rng.standard_normal((BATCH, QUERIES, VOCABULARY))
    targets = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    mask = padding_mask([3, QUERIES])
    loss, grad = cross_entropy(scores, targets, mask)
    close(loss, negative_log_likelihood(scores, targets, mask))
    close(grad, differentiate(negative_log_likelihood)(scores, targets, mask))


def test_finite_differences_of_a_whole_model(rng):
    model = Tagger(VOCABULARY, WIDTH, HEADS, FF, 2, rng=rng, encoding="shaw", causal=True)
    shaken(model, rng)
    tokens = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    targets = rng.integers(VOCABULARY, size=(BATCH, QUERIES))
    scores, tape = model.forward(tokens)
    gradients = model.backward(tape, cross_entropy(scores, targets)[1])
    for name, array in model.parameters().items():
        at = np.unravel_index(np.abs(gradients[name]).argmax(), array.shape)
        before, step = array[at], 1e-6
        losses = []
        for array[at] in (before - step, before + step):
            losses.append(cross_entropy(model.forward(tokens)[0], targets)[0])
        array[at] = before
        slope = (losses[1] - losses[0]) / (2 * step)
        np.testing.assert_allclose(gradients[name][at], slope, rtol=1e-5, atol=1e-9)
