"""Multi-head attention: the definition, what a mask hides, the border."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.attention import MultiHeadAttention, merge_heads, split_heads
from posenc.masks import causal_mask, combine, padding_mask

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def attention_with(rng, **options):
    attention = MultiHeadAttention(WIDTH, HEADS, rng=rng, **options)
    for array in attention.parameters().values():
        array += 0.2 * rng.standard_normal(array.shape)
    return attention


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def attention(rng):
    return attention_with(rng)


@pytest.fixture
def inputs(rng):
    return [rng.standard_normal((BATCH, n, WIDTH)) for n in (QUERIES, KEYS, KEYS)]


def test_it_is_what_the_paper_writes_one_head_and_one_query_at_a_time(attention, inputs):
    query, key, value = inputs
    p, width = attention.parameters(), WIDTH // HEADS
    output, weights = attention(query, key, value)
    for b in range(BATCH):
        for i in range(QUERIES):
            heads = []
            for h in range(HEADS):
                columns = slice(h * width, (h + 1) * width)
                q = query[b, i] @ p["query.weight"][:, columns] + p["query.bias"][columns]
                k = key[b] @ p["key.weight"][:, columns] + p["key.bias"][columns]
                v = value[b] @ p["value.weight"][:, columns] + p["value.bias"][columns]
                e = np.exp(k @ q / np.sqrt(width))
                np.testing.assert_allclose(weights[b, h, i], e / e.sum(), atol=1e-12)
                heads.append(e / e.sum() @ v)
            expected = np.concatenate(heads) @ p["output.weight"] + p["output.bias"]
            np.testing.assert_allclose(output[b, i], expected, atol=1e-12)


def test_shapes_and_rows_that_sum_to_one_over_the_keys(attention, inputs):
    output, weights = attention(*inputs)
    assert output.shape == (BATCH, QUERIES, WIDTH)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)


def test_key_and_value_default_to_what_was_given(attention, inputs):
    query, key, _ = inputs
    np.testing.assert_array_equal(attention(query)[0], attention(query, query, query)[0])
    np.testing.assert_array_equal(attention(query, key)[0], attention(query, key, key)[0])


def test_parameters(rng):
    with_bias = MultiHeadAttention(WIDTH, HEADS, rng=rng).parameters()
    assert sum(array.size for array in with_bias.values()) == 4 * (WIDTH**2 + WIDTH)
    assert all((with_bias[name] == 0).all() for name in with_bias if name.endswith("bias"))
    without = MultiHeadAttention(WIDTH, HEADS, rng=rng, bias=False)
    assert sum(array.size for array in without.parameters().values()) == 4 * WIDTH**2
    assert without(np.ones((1, 2, WIDTH)))[0].shape == (1, 2, WIDTH)


def test_the_same_seed_gives_the_same_weights():
    one, two = (MultiHeadAttention(WIDTH, HEADS, rng=np.random.default_rng(5)) for _ in range(2))
    for name, array in one.parameters().items():
        np.testing.assert_array_equal(array, two.parameters()[name])


def test_float32_stays_float32(attention, inputs):
    output, weights = attention(*(x.astype(np.float32) for x in inputs))
    assert output.dtype == weights.dtype == np.float32
    np.testing.assert_allclose(output, attention(*inputs)[0], rtol=1e-4, atol=1e-5)


def test_split_heads_gives_each_head_a_block_of_columns(rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH))
    heads = split_heads(x, HEADS)
    assert heads.shape == (BATCH, HEADS, QUERIES, 4)
    np.testing.assert_array_equal(heads[:, 1], x[:, :, 4:8])
    np.testing.assert_array_equal(merge_heads(heads), x)


# --- order ----------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 8))
def test_permuting_the_rows_permutes_the_outputs(seed, length):
    rng = np.random.default_rng(seed)
    attention, x = attention_with(rng), rng.standard_normal((BATCH, length, WIDTH))
    order = rng.permutation(length)
    output, weights = attention(x)
    permuted, permuted_weights = attention(x[:, order])
    np.testing.assert_allclose(permuted, output[:, order], atol=1e-12)
    expected = weights[:, :, order][..., order]
    np.testing.assert_allclose(permuted_weights, expected, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_query_does_not_notice_the_order_of_the_memory(seed):
    rng = np.random.default_rng(seed)
    attention = attention_with(rng)
    query, key, value = (rng.standard_normal((BATCH, n, WIDTH)) for n in (QUERIES, KEYS, KEYS))
    order = rng.permutation(KEYS)
    permuted, _ = attention(query, key[:, order], value[:, order])
    np.testing.assert_allclose(permuted, attention(query, key, value)[0], atol=1e-12)


# --- masks and biases -----------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), now=st.integers(0, QUERIES - 2))
def test_a_causal_mask_leaks_nothing_from_the_future(seed, now):
    rng = np.random.default_rng(seed)
    attention, x = attention_with(rng), rng.standard_normal((BATCH, QUERIES, WIDTH))
    other = x.copy()
    other[:, now + 1 :] = rng.standard_normal(other[:, now + 1 :].shape)
    before, after = (attention(y, mask=causal_mask(QUERIES))[0] for y in (x, other))
    np.testing.assert_allclose(after[:, : now + 1], before[:, : now + 1], atol=1e-12)
    assert np.abs(after[:, now + 1] - before[:, now + 1]).max() > 1e-6


def test_padding_hides_keys_from_every_query_even_from_padding(attention, rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH))
    real = padding_mask([3, QUERIES])
    output, weights = attention(x, mask=real[:, None, None, :])
    assert (weights[0, :, :, 3:] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1)  # the rows of padding queries too
    np.testing.assert_allclose(output[0, :3], attention(x[:1, :3])[0][0], atol=1e-12)


def test_the_output_is_as_long_as_the_input_when_the_whole_batch_ends_in_padding(attention, rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH))
    output, _ = attention(x, mask=padding_mask([3, 2], QUERIES)[:, None, None, :])
    assert output.shape == x.shape


def test_left_padding_and_a_causal_mask_leave_some_queries_without_a_key(attention, rng):
    x = rng.standard_normal((1, 4, WIDTH))
    real = np.array([[False, False, True, True]])
    mask = combine(causal_mask(4), real[:, None, None, :])
    output, weights = attention(x, mask=mask)
    assert np.isfinite(output).all()
    assert (weights[0, :, :2] == 0).all()
    expected = np.broadcast_to(attention.output.bias, (2, WIDTH))  # W_o of nothing
    np.testing.assert_array_equal(output[0, :2], expected)
    np.testing.assert_allclose(output[:, 2:], attention(x[:, 2:], mask=causal_mask(2))[0])


def test_an_inverted_mask_shows_the_future_only(attention, rng):
    """The usual mistake: torch.nn.MultiheadAttention means blocked where we mean allowed."""
    blocked = np.triu(np.ones((3, 3), bool), 1)
    x = rng.standard_normal((1, 3, WIDTH))
    wrong, right = (attention(x, mask=mask)[1][0] for mask in (blocked, ~blocked))
    assert (np.tril(wrong) == 0).all()
    assert (np.triu(right, 1) == 0).all()


def test_a_bias_for_each_head(attention, inputs, rng):
    bias = rng.standard_normal((HEADS, QUERIES, KEYS))
    _, weights = attention(*inputs, bias=bias)
    plain = attention(*inputs)[1] * np.exp(bias)
    np.testing.assert_allclose(weights, plain / plain.sum(axis=-1, keepdims=True), atol=1e-12)


# --- border ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((12, 5), {}, ValueError, r"n_heads must divide d_model = 12, got 5"),
        ((0, 1), {}, ValueError, r"d_model must be at least 1, got 0"),
        ((12, 0), {}, ValueError, r"n_heads must be at least 1, got 0"),
        ((12.0, 3), {}, TypeError, r"d_model must be an integer, got 12\.0"),
        ((12, True), {}, TypeError, r"n_heads must be an integer, got True"),
        ((12, 3), {"bias": 1}, TypeError, r"bias must be True or False, got 1"),
        ((12, 3), {"rng": 0}, TypeError, r"rng must be a numpy\.random\.Generator"),
    ],
)
def test_constructor_refuses(arguments, options, error, message):
    with pytest.raises(error, match=message):
        MultiHeadAttention(*arguments, **({"rng": np.random.default_rng(0)} | options))


X = np.ones((BATCH, QUERIES, WIDTH))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X[0],), {}, ValueError, r"query must have shape \(batch, length, d_model = 12\)"),
        ((X[..., :8],), {}, ValueError, r"query must have shape .*got \(2, 5, 8\)"),
        ((X, X[:1]), {}, ValueError, r"must share their batch.*\(2, 5, 12\), \(1, 5, 12\)"),
        ((X, X, X[:, :4]), {}, ValueError, r"key and value their length"),
        ((X, None, X), {}, TypeError, r"value must come with key"),
        ((X * np.nan,), {}, ValueError, r"query must be finite, got nan"),
        (([["a"]],), {}, TypeError, r"query must be an array of real numbers"),
        ((X,), {"mask": np.ones((5, 5), int)}, TypeError, r"mask must be boolean"),
        ((X,), {"mask": np.ones((5, 5))}, TypeError, r"mask must be boolean"),
        ((X,), {"mask": np.ones((2, 5), bool)}, ValueError, r"mask\[:, None, None, :\]"),
        ((X,), {"bias": np.ones((2, 5, 5))}, ValueError, r"bias must have shape"),
        ((X,), {"bias": np.full((5, 5), np.nan)}, ValueError, r"bias must not hold NaN"),
    ],
)
def test_call_refuses(attention, arguments, options, error, message):
    with pytest.raises(error, match=message):
        attention(*arguments, **options)
