"""Relative position biases: values by hand, properties, gradients, wrong calls, and reports."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.attention import softmax
from posenc.bias import (
    alibi_bias,
    alibi_slopes,
    clipped_relative_positions,
    relative_key_scores,
    relative_positions,
    relative_table_gradient,
    relative_value_output,
    t5_bias,
    t5_bias_gradient,
    t5_buckets,
)

BATCH, HEADS, QUERIES, KEYS, HEAD_DIM = 2, 3, 5, 7, 4
LENGTHS = [(5, 7), (7, 5), (5, 5), (1, 7), (7, 1), (1, 1), (0, 3), (3, 0), (0, 0)]
lengths = st.integers(0, 9)


def random(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def by_loop(value, query_length, key_length):
    """Fill (query, key) from a function of ``key − query``, aligned at the bottom right."""
    table = np.zeros((query_length, key_length))
    for i, j in np.ndindex(query_length, key_length):
        table[i, j] = value(j - (i + key_length - query_length))
    return table


# --- relative positions ---------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_relative_positions_are_key_minus_query_from_the_bottom_right(queries, keys):
    ours = relative_positions(queries, keys)
    assert ours.dtype == np.int64
    np.testing.assert_array_equal(ours, by_loop(lambda relative: relative, queries, keys))
    if queries and keys:
        assert ours[-1, -1] == 0


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
@pytest.mark.parametrize("max_distance", [0, 1, 3, 20])
def test_clipped_relative_positions(queries, keys, max_distance):
    ours = clipped_relative_positions(queries, keys, max_distance)
    expected = by_loop(lambda r: max(-max_distance, min(max_distance, r)), queries, keys)
    np.testing.assert_array_equal(ours, expected)
    ours += max_distance  # a new array, ready to become an index
    assert ours.size == 0 or (ours.min() >= 0 and ours.max() <= 2 * max_distance)


# --- ALiBi ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16, 64])
def test_slopes_of_a_power_of_two_are_the_formula_of_the_paper(n_heads):
    expected = [2 ** (-8 * h / n_heads) for h in range(1, n_heads + 1)]
    np.testing.assert_allclose(alibi_slopes(n_heads), expected, rtol=1e-15)


@pytest.mark.parametrize("n_heads", range(1, 70))
def test_slopes_of_other_numbers_are_those_of_two_powers(n_heads):
    slopes = alibi_slopes(n_heads)
    power = 1
    while 2 * power <= n_heads:
        power *= 2
    np.testing.assert_array_equal(slopes[:power], alibi_slopes(power))
    np.testing.assert_array_equal(slopes[power:], alibi_slopes(2 * power)[::2][: n_heads - power])
    assert slopes.shape == (n_heads,)
    assert len(set(slopes)) == n_heads
    assert slopes.dtype == np.float64


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_alibi_bias_entry_by_entry(queries, keys, causal):
    ours = alibi_bias(HEADS, queries, keys, causal=causal)
    assert ours.shape == (HEADS, queries, keys)
    for head, slope in enumerate([2.0**-4, 2.0**-8, 2.0**-2]):

        def value(relative, slope=slope):
            return -np.inf if causal and relative > 0 else -slope * abs(relative)

        np.testing.assert_array_equal(ours[head], by_loop(value, queries, keys))


def test_alibi_gives_no_negative_zero():
    bias = alibi_bias(2, 3, 3, causal=False)
    assert not np.signbit(bias[bias == 0]).any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_alibi_dtype(dtype):
    assert alibi_bias(HEADS, QUERIES, KEYS, dtype=dtype).dtype == dtype


@given(st.integers(1, 20), lengths, lengths, lengths, lengths, st.booleans())
@settings(deadline=None)
def test_alibi_of_fewer_queries_or_keys_is_the_bottom_right_corner(n, q, k, more_q, more_k, causal):
    small = alibi_bias(n, q, k, causal=causal)
    large = alibi_bias(n, q + more_q, k + more_k, causal=causal)
    np.testing.assert_array_equal(large[:, more_q:, more_k:], small)


# --- T5 -------------------------------------------------------------------------------------------


def test_t5_buckets_of_the_reference():
    relative = [-200, -128, -64, -16, -8, -7, -1, 0, 1, 7, 8, 64, 128]
    np.testing.assert_array_equal(
        t5_buckets(relative), [15, 15, 14, 10, 8, 7, 1, 0, 17, 23, 24, 30, 31]
    )
    np.testing.assert_array_equal(
        t5_buckets(relative, bidirectional=False), [31, 31, 26, 16, 8, 7, 1, 0, 0, 0, 0, 0, 0]
    )


bucket_rules = st.tuples(st.integers(2, 40), st.integers(1, 300)).map(
    lambda pair: {"num_buckets": 2 * pair[0], "max_distance": pair[0] + pair[1]}
)


@given(bucket_rules, st.booleans(), st.integers(0, 10**9))
@settings(deadline=None)
def test_t5_buckets_grow_with_the_distance_and_fill_their_range(rule, bidirectional, far):
    past = t5_buckets(-np.arange(rule["max_distance"] + 2), bidirectional=bidirectional, **rule)
    n_buckets = rule["num_buckets"] // (2 if bidirectional else 1)
    n_single = n_buckets // 2
    np.testing.assert_array_equal(past[:n_single], np.arange(n_single))
    assert (np.diff(past) >= 0).all()
    assert past[rule["max_distance"]] == past[-1] == n_buckets - 1
    future = t5_buckets([1, far + rule["max_distance"]], bidirectional=bidirectional, **rule)
    at_one = past[1] + n_buckets
    np.testing.assert_array_equal(
        future, [at_one, rule["num_buckets"] - 1] if bidirectional else [0, 0]
    )


def test_t5_buckets_keep_the_shape_and_take_any_integers():
    relative = relative_positions(QUERIES, KEYS).astype(np.int8)
    ours = t5_buckets(relative)
    assert ours.shape == (QUERIES, KEYS)
    assert ours.dtype == np.int64
    assert t5_buckets([-128], num_buckets=8, max_distance=16)[0] == 3
    assert t5_buckets(np.int8([-128]), num_buckets=8, max_distance=16)[0] == 3  # |−128| overflows
    assert t5_buckets([]).shape == (0,)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("queries", "keys"), [*LENGTHS, (150, 170)])
def test_t5_bias_is_the_gather_from_the_table(queries, keys, bidirectional):
    table = random(8, HEADS, dtype=np.float32)
    rule = {"bidirectional": bidirectional, "max_distance": 20}
    ours = t5_bias(table, queries, keys, **rule)
    buckets = t5_buckets(relative_positions(queries, keys), num_buckets=8, **rule)
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours, table[buckets].transpose(2, 0, 1))


@given(lengths, lengths, lengths, lengths, st.booleans())
@settings(deadline=None)
def test_t5_bias_of_fewer_queries_or_keys_is_the_bottom_right_corner(q, k, more_q, more_k, both):
    table = random(8, HEADS)
    rule = {"bidirectional": both, "max_distance": 6}
    small = t5_bias(table, q, k, **rule)
    large = t5_bias(table, q + more_q, k + more_k, **rule)
    np.testing.assert_array_equal(large[:, more_q:, more_k:], small)


@pytest.mark.parametrize(
    "make", [lambda n: t5_bias(random(32, HEADS), n, n), lambda n: alibi_bias(HEADS, n, n)]
)
def test_biases_are_read_only_views_of_one_number_per_diagonal(make):
    bias = make(6)
    np.testing.assert_array_equal(bias[:, 1:, 1:], bias[:, :-1, :-1])
    with pytest.raises(ValueError, match="read-only"):
        bias[0, 0, 0] = 1
    bias.copy()[0, 0, 0] = 1
    tracemalloc.start()
    large = make(1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < large.nbytes / 50


def test_changing_the_table_afterwards_does_not_change_the_bias():
    table = random(8, HEADS)
    bias = t5_bias(table, QUERIES, KEYS, max_distance=20)
    before = bias.copy()
    table += 1
    np.testing.assert_array_equal(bias, before)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_t5_gradient_is_the_lookup_turned_round(queries, keys, bidirectional):
    """⟨g, bias(table)⟩ = ⟨gradient(g), table⟩ for all tables defines the gradient."""
    rule = {"bidirectional": bidirectional, "max_distance": 5}
    grad = random(BATCH, 2, HEADS, queries, keys)
    table = random(8, HEADS, seed=1)
    ours = t5_bias_gradient(grad, 8, **rule)
    assert ours.shape == table.shape
    forward = np.vdot(grad, np.broadcast_to(t5_bias(table, queries, keys, **rule), grad.shape))
    np.testing.assert_allclose(np.vdot(ours, table), forward, rtol=1e-12, atol=1e-12)


def test_t5_gradient_by_loop_and_its_dtype():
    grad = random(BATCH, HEADS, QUERIES, KEYS, dtype=np.float32)
    buckets = t5_buckets(relative_positions(QUERIES, KEYS), num_buckets=8, max_distance=5)
    expected = np.zeros((8, HEADS))
    for b, h, i, j in np.ndindex(*grad.shape):
        expected[buckets[i, j], h] += grad[b, h, i, j]
    ours = t5_bias_gradient(grad, 8, max_distance=5)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)
    without_batch = t5_bias_gradient(grad.sum(axis=0), 8, max_distance=5)
    np.testing.assert_allclose(without_batch, expected, rtol=0, atol=1e-5)


# --- Shaw et al. ----------------------------------------------------------------------------------


def relative_vectors(table, queries, keys):
    """Give the (query, key, head_dim) array that the functions under test never make."""
    max_distance = len(table) // 2
    return table[clipped_relative_positions(queries, keys, max_distance) + max_distance]


@pytest.mark.parametrize("max_distance", [0, 2, 10])
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_relative_key_scores(queries, keys, max_distance):
    table = random(2 * max_distance + 1, HEAD_DIM)
    query = random(BATCH, HEADS, queries, HEAD_DIM, seed=1)
    vectors = relative_vectors(table, queries, keys)
    expected = np.einsum("bhqd,qkd->bhqk", query, vectors)
    np.testing.assert_allclose(relative_key_scores(query, table, keys), expected, atol=1e-14)


@pytest.mark.parametrize("max_distance", [0, 2, 10])
@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
def test_relative_value_output(queries, keys, max_distance):
    table = random(2 * max_distance + 1, HEAD_DIM)
    weights = random(BATCH, HEADS, queries, keys, seed=1)
    vectors = relative_vectors(table, queries, keys)
    expected = np.einsum("bhqk,qkd->bhqd", weights, vectors)
    np.testing.assert_allclose(relative_value_output(weights, table), expected, atol=1e-14)


def test_relative_terms_keep_float32_and_work_without_batch_and_heads():
    table = random(5, HEAD_DIM, dtype=np.float32)
    query = random(QUERIES, HEAD_DIM, dtype=np.float32)
    scores = relative_key_scores(query, table, KEYS)
    assert scores.dtype == relative_value_output(scores, table).dtype == np.float32
    assert relative_table_gradient(scores, query, 2).dtype == np.float32


@pytest.mark.parametrize("max_distance", [1, 10])
def test_gradients_of_the_relative_terms(max_distance):
    table = random(2 * max_distance + 1, HEAD_DIM)
    query = random(BATCH, HEADS, QUERIES, HEAD_DIM, seed=1)
    weights = random(BATCH, HEADS, QUERIES, KEYS, seed=2)
    vectors = relative_vectors(table, QUERIES, KEYS)

    def onto_table(over_pairs_and_dims):
        expected = np.zeros_like(table)
        rows = clipped_relative_positions(QUERIES, KEYS, max_distance) + max_distance
        for i, j in np.ndindex(QUERIES, KEYS):
            expected[rows[i, j]] += over_pairs_and_dims[i, j]
        return expected

    # scores = query · table
    grad = random(BATCH, HEADS, QUERIES, KEYS, seed=3)
    np.testing.assert_allclose(
        relative_value_output(grad, table),
        np.einsum("bhqk,qkd->bhqd", grad, vectors),
        atol=1e-13,
    )
    np.testing.assert_allclose(
        relative_table_gradient(grad, query, max_distance),
        onto_table(np.einsum("bhqk,bhqd->qkd", grad, query)),
        atol=1e-13,
    )
    # output = weights · table
    grad = random(BATCH, HEADS, QUERIES, HEAD_DIM, seed=4)
    np.testing.assert_allclose(
        relative_key_scores(grad, table, KEYS),
        np.einsum("bhqd,qkd->bhqk", grad, vectors),
        atol=1e-13,
    )
    np.testing.assert_allclose(
        relative_table_gradient(weights, grad, max_distance),
        onto_table(np.einsum("bhqk,bhqd->qkd", weights, grad)),
        atol=1e-13,
    )


def test_relative_terms_make_no_array_over_query_key_and_dimension():
    length, head_dim = 128, 64
    table, query = random(9, head_dim), random(1, length, head_dim)
    tracemalloc.start()
    relative_value_output(relative_key_scores(query, table, length), table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * length * length * head_dim / 4


# --- wrong calls ----------------------------------------------------------------------------------

TABLE = np.zeros((32, HEADS))
QUERY = np.zeros((BATCH, HEADS, QUERIES, HEAD_DIM))
PAIRS = np.zeros((BATCH, HEADS, QUERIES, KEYS))
VECTORS = np.zeros((5, HEAD_DIM))


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (ValueError, "query_length .*got -1", lambda: relative_positions(-1, 2)),
        (TypeError, "key_length", lambda: relative_positions(1, 2.0)),
        (TypeError, "key_length", lambda: relative_positions(1, None)),
        (ValueError, "max_distance .*got -1", lambda: clipped_relative_positions(2, 2, -1)),
        (TypeError, "max_distance", lambda: clipped_relative_positions(2, 2, 1.5)),
        (ValueError, "n_heads .*got 0", lambda: alibi_slopes(0)),
        (TypeError, "n_heads", lambda: alibi_slopes(8.0)),
        (TypeError, "n_heads", lambda: alibi_slopes(True)),
        (ValueError, "n_heads", lambda: alibi_bias(-1, 2, 2)),
        (ValueError, "query_length", lambda: alibi_bias(2, -2, 2)),
        (TypeError, "key_length", lambda: alibi_bias(2, 2, "2")),
        (TypeError, "causal", lambda: alibi_bias(2, 2, 2, causal=1)),
        (TypeError, "dtype", lambda: alibi_bias(2, 2, 2, dtype=np.int32)),
        (TypeError, "relative_positions", lambda: t5_buckets([0.5])),
        (TypeError, "relative_positions", lambda: t5_buckets([True])),
        (TypeError, "relative_positions", lambda: t5_buckets(None)),
        (TypeError, "bidirectional", lambda: t5_buckets([1], bidirectional="yes")),
        (ValueError, "num_buckets .*got 2", lambda: t5_buckets([1], num_buckets=2)),
        (ValueError, "even .*got 7", lambda: t5_buckets([1], num_buckets=7)),
        (
            ValueError,
            "num_buckets .*got 1",
            lambda: t5_buckets([1], num_buckets=1, bidirectional=False),
        ),
        (TypeError, "num_buckets", lambda: t5_buckets([1], num_buckets=32.0)),
        (ValueError, "max_distance .*9, got 8", lambda: t5_buckets([1], max_distance=8)),
        (
            ValueError,
            "max_distance .*17, got 16",
            lambda: t5_buckets([1], max_distance=16, bidirectional=False),
        ),
        (TypeError, "max_distance", lambda: t5_buckets([1], max_distance=128.0)),
        (ValueError, r"table .*got \(32,\)", lambda: t5_bias(TABLE[:, 0], 2, 2)),
        (ValueError, r"table .*got \(1, 32, 3\)", lambda: t5_bias(TABLE[None], 2, 2)),
        (ValueError, "table must be finite", lambda: t5_bias(TABLE + np.nan, 2, 2)),
        (TypeError, "table", lambda: t5_bias(TABLE + 1j, 2, 2)),
        (ValueError, "num_buckets .*got 3", lambda: t5_bias(TABLE[:3], 2, 2)),
        (ValueError, "query_length", lambda: t5_bias(TABLE, -2, 2)),
        (TypeError, "bidirectional", lambda: t5_bias(TABLE, 2, 2, bidirectional=None)),
        (ValueError, "max_distance", lambda: t5_bias(TABLE, 2, 2, max_distance=1)),
        (ValueError, r"grad_bias .*got \(5, 7\)", lambda: t5_bias_gradient(PAIRS[0, 0], 32)),
        (ValueError, "grad_bias must be finite", lambda: t5_bias_gradient(PAIRS - np.inf, 32)),
        (ValueError, "num_buckets", lambda: t5_bias_gradient(PAIRS, 0)),
        (ValueError, "max_distance", lambda: t5_bias_gradient(PAIRS, 32, max_distance=8)),
        (ValueError, r"query must have shape", lambda: relative_key_scores([1.0], VECTORS, 2)),
        (ValueError, r"odd .*got \(4, 4\)", lambda: relative_key_scores(QUERY, VECTORS[:4], 2)),
        (ValueError, r"table .*got \(4,\)", lambda: relative_key_scores(QUERY, VECTORS[0], 2)),
        (
            ValueError,
            r"table .*got \(5, 3\)",
            lambda: relative_key_scores(QUERY, VECTORS[:, :3], 2),
        ),
        (ValueError, "key_length", lambda: relative_key_scores(QUERY, VECTORS, -1)),
        (TypeError, "query", lambda: relative_key_scores(QUERY > 0, VECTORS, 2)),
        (ValueError, "weights must have shape", lambda: relative_value_output([1.0], VECTORS)),
        (ValueError, "odd number", lambda: relative_value_output(PAIRS, VECTORS[1:])),
        (ValueError, "weights must be finite", lambda: relative_value_output(PAIRS / 0, VECTORS)),
        (ValueError, "equal axes", lambda: relative_table_gradient(PAIRS, QUERY[:, :2], 2)),
        (ValueError, "equal axes", lambda: relative_table_gradient(PAIRS, QUERY[0], 2)),
        (ValueError, "over_pairs", lambda: relative_table_gradient([1.0], QUERY, 2)),
        (ValueError, "max_distance", lambda: relative_table_gradient(PAIRS, QUERY, -2)),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_wrong_calls_name_the_argument_and_what_it_was(error, says, call):
    with pytest.raises(error, match=says):
        call()


# --- reports from real code -----------------------------------------------------------------------


def test_silent_alibi_slopes_of_six_heads():
    ours = alibi_slopes(6)
    np.testing.assert_allclose(ours, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125], rtol=1e-15)
    by_formula = 2 ** (-8 * np.arange(1, 7) / 6)
    np.testing.assert_allclose(by_formula[:3], [0.39685, 0.15749, 0.0625], atol=5e-6)
    assert np.abs(np.sort(ours) - np.sort(by_formula)).max() > 0.05


def test_not_a_bug_one_row_of_biases_for_all_queries_under_a_causal_mask():
    scores = random(1, 4, 4)
    slope, hidden = alibi_slopes(1)[0], np.triu(np.full((4, 4), -np.inf), 1)
    one_row = slope * np.arange(-3, 1)
    np.testing.assert_allclose(
        softmax(scores + one_row + hidden), softmax(scores + alibi_bias(1, 4, 4)), atol=1e-15
    )
    both_sides = softmax(scores + alibi_bias(1, 4, 4, causal=False))
    assert np.abs(softmax(scores + one_row) - both_sides).max() > 1e-3


def test_spec_the_future_is_in_the_upper_half_of_the_t5_buckets():
    assert t5_buckets([1])[0] == 17
    assert t5_buckets([-1])[0] == 1
    table = np.arange(32.0)[:, None]
    np.testing.assert_array_equal(t5_bias(table, 2, 2)[0], [[0, 17], [1, 0]])


def test_crash_of_a_relative_table_read_past_its_end():
    ours = clipped_relative_positions(13, 13, 4) + 4
    np.testing.assert_array_equal(ours[6], [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8])
    assert relative_key_scores(np.ones((50, 1)), np.ones((9, 1)), 50).shape == (50, 50)


def test_shape_of_a_table_of_all_offsets():
    """L positions have 2L − 1 offsets, not L."""
    assert len(np.unique(relative_positions(5, 5))) == 9
    np.testing.assert_array_equal(clipped_relative_positions(5, 5, 4), relative_positions(5, 5))


def test_silent_top_left_alignment_while_decoding():
    """The last of many queries, asked alone, must get the row it had among them."""
    table = random(32, HEADS)
    np.testing.assert_array_equal(t5_bias(table, 1, 9)[:, 0], t5_bias(table, 9, 9)[:, -1])
    np.testing.assert_array_equal(alibi_bias(HEADS, 1, 9)[:, 0], alibi_bias(HEADS, 9, 9)[:, -1])
    visible = np.isfinite(alibi_bias(1, 2, 5)[0])
    np.testing.assert_array_equal(visible, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    np.testing.assert_array_equal(np.isfinite(alibi_bias(1, 5, 2)[0]).sum(axis=1), [0, 0, 0, 1, 2])
