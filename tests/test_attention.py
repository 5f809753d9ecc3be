"""Softmax and scaled dot-product attention: values, masks, bias, and rows that see nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.attention import scaled_dot_product_attention, softmax
from posenc.masks import causal_mask, combine, padding_mask

RNG = np.random.default_rng(11)
B, H, Q, K, D, V = 2, 3, 5, 7, 4, 6


def arrays(dtype=np.float64):
    """Queries, keys and values in which no two axes have the same size."""
    query = RNG.normal(size=(B, H, Q, D)).astype(dtype)
    key = RNG.normal(size=(B, H, K, D)).astype(dtype)
    value = RNG.normal(size=(B, H, K, V)).astype(dtype)
    return query, key, value


def by_loops(query, key, value, mask=None, bias=None):
    """Attention as its definition reads, one query and one key at a time."""
    output = np.zeros((*query.shape[:-1], value.shape[-1]))
    for b, h, q in np.ndindex(query.shape[:-1]):
        exponentials = np.zeros(key.shape[-2])
        for k in range(key.shape[-2]):
            if mask is None or mask[b, h, q, k]:
                score = query[b, h, q] @ key[b, h, k] / np.sqrt(query.shape[-1])
                exponentials[k] = np.exp(score + (0 if bias is None else bias[b, h, q, k]))
        if exponentials.any():
            output[b, h, q] = exponentials @ value[b, h] / exponentials.sum()
    return output


class TestSoftmax:
    def test_normalises_the_chosen_axis(self):
        """Seen in real code: over any other axis the weights of a query do not sum to one."""
        scores = np.array([[[0.0, 1.0], [2.0, 3.0]]])
        np.testing.assert_allclose(softmax(scores).sum(axis=-1), 1)
        np.testing.assert_allclose(softmax(scores, axis=1).sum(axis=-1), [[0.2384, 1.7616]], 1e-4)

    def test_survives_large_scores_and_constants(self):
        np.testing.assert_allclose(softmax([1e4, 1e4 + 1]), softmax([0.0, 1.0]))
        np.testing.assert_allclose(softmax([-1e4, -1e4]), [0.5, 0.5])

    def test_with_nothing_to_choose_from_gives_zeros(self):
        np.testing.assert_array_equal(softmax([-np.inf] * 3), [0, 0, 0])
        assert softmax(np.zeros((2, 0))).shape == (2, 0)

    def test_keeps_the_dtype_and_the_input(self):
        scores = np.zeros(3, np.float32)
        assert softmax(scores).dtype == np.float32
        assert softmax([1, 2]).dtype == np.float64
        np.testing.assert_array_equal(scores, 0)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_refuses_scores_without_a_meaning(self, bad):
        with pytest.raises(ValueError, match="scores must be below"):
            softmax([0.0, bad])

    @pytest.mark.parametrize(
        ("axis", "error"), [(2, ValueError), (-3, ValueError), (0.0, TypeError)]
    )
    def test_refuses_an_axis_that_is_none(self, axis, error):
        with pytest.raises(error, match="axis must be an"):
            softmax(np.zeros((2, 3)), axis=axis)

    def test_refuses_booleans(self):
        with pytest.raises(TypeError, match="scores must be an array of real numbers"):
            softmax([True, False])


class TestAttention:
    def test_is_its_definition(self):
        query, key, value = arrays()
        output, weights = scaled_dot_product_attention(query, key, value)
        np.testing.assert_allclose(output, by_loops(query, key, value))
        assert weights.shape == (B, H, Q, K)
        np.testing.assert_allclose(weights.sum(axis=-1), 1)

    def test_with_mask_and_bias_is_its_definition(self):
        query, key, value = arrays()
        mask = RNG.random((B, H, Q, K)) < 0.6
        mask[0, 1, 2] = False
        bias = RNG.normal(size=(B, H, Q, K))
        output, weights = scaled_dot_product_attention(query, key, value, mask=mask, bias=bias)
        np.testing.assert_allclose(output, by_loops(query, key, value, mask, bias))
        assert not weights[~mask].any()

    @pytest.mark.parametrize("shape", [(Q, K), (B, 1, 1, K), (1, H, Q, K), (1, 1, Q, K)])
    def test_takes_masks_that_lie_over_the_scores(self, shape):
        query, key, value = arrays()
        mask = RNG.random(shape) < 0.7
        mask[..., 0] = True
        output, _ = scaled_dot_product_attention(query, key, value, mask=mask)
        full = np.broadcast_to(mask, (B, H, Q, K))
        np.testing.assert_allclose(output, by_loops(query, key, value, full))

    @pytest.mark.parametrize("shape", [(Q, K), (H, Q, K), (1, H, Q, K), (B, 1, 1, K)])
    def test_takes_biases_that_lie_over_the_scores(self, shape):
        query, key, value = arrays()
        bias = RNG.normal(size=shape)
        output, _ = scaled_dot_product_attention(query, key, value, bias=bias)
        full = np.broadcast_to(bias, (B, H, Q, K))
        np.testing.assert_allclose(output, by_loops(query, key, value, bias=full))

    def test_a_mask_and_a_bias_of_minus_infinity_hide_alike(self):
        query, key, value = arrays()
        mask = causal_mask(Q, K)
        hidden, _ = scaled_dot_product_attention(query, key, value, mask=mask)
        bias = np.where(mask, 0, -np.inf)
        also, _ = scaled_dot_product_attention(query, key, value, bias=bias)
        np.testing.assert_allclose(hidden, also)

    def test_a_query_that_sees_nothing_gets_zeros(self):
        """Seen in real code: left padding under a causal mask makes such rows."""
        query, key, value = RNG.normal(size=(3, 1, 1, 4, 5))
        padding = np.array([False, False, True, True])[None, None, None, :]
        mask = combine(causal_mask(4), padding)
        output, weights = scaled_dot_product_attention(query, key, value, mask=mask)
        assert not output[..., :2, :].any()
        assert not weights[..., :2, :].any()
        np.testing.assert_allclose(weights[..., 2:, :].sum(axis=-1), 1)
        hidden = scaled_dot_product_attention(query, key, value, bias=np.full((4, 4), -np.inf))
        assert not hidden[0].any()

    def test_a_padding_mask_hides_keys_from_every_query(self):
        """Seen in real code: keys are hidden; the rows of padding queries are unused."""
        scores_all_zero = np.zeros((1, 1, 4, 2))
        padding = padding_mask([2], 4)[:, None, None, :]
        _, weights = scaled_dot_product_attention(
            scores_all_zero, scores_all_zero, scores_all_zero, mask=padding
        )
        np.testing.assert_array_equal(weights[0, 0], np.tile([0.5, 0.5, 0, 0], (4, 1)))

    def test_the_scale_can_be_chosen(self):
        query, key, value = arrays()
        plain, _ = scaled_dot_product_attention(query, key, value, scale=1.0)
        scaled, _ = scaled_dot_product_attention(query * np.sqrt(D), key, value)
        np.testing.assert_allclose(plain, scaled)

    @given(st.permutations(range(K)))
    def test_does_not_know_the_order_of_its_keys(self, order):
        query, key, value = arrays()
        output, _ = scaled_dot_product_attention(query, key, value)
        moved, _ = scaled_dot_product_attention(query, key[..., order, :], value[..., order, :])
        np.testing.assert_allclose(output, moved)

    def test_works_without_batch_and_heads_and_without_keys(self):
        query, key, value = RNG.normal(size=(5, 4)), RNG.normal(size=(7, 4)), np.ones((7, 2))
        output, weights = scaled_dot_product_attention(query, key, value, mask=causal_mask(5, 7))
        assert output.shape == (5, 2)
        assert weights.shape == (5, 7)
        nothing, _ = scaled_dot_product_attention(query, key[:0], value[:0])
        np.testing.assert_array_equal(nothing, np.zeros((5, 2)))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_keeps_the_dtype(self, dtype):
        query, key, value = arrays(dtype)
        bias = np.zeros((Q, K))
        output, weights = scaled_dot_product_attention(query, key, value, bias=bias)
        assert output.dtype == weights.dtype == dtype


class TestRefusals:
    @pytest.mark.parametrize("dtype", [int, float, np.int8])
    def test_a_mask_that_is_not_boolean(self, dtype):
        """Seen in real code: integers and floats do not say which value means *may attend*."""
        with pytest.raises(
            TypeError, match=r"mask must be boolean with True = may attend.*torch's"
        ):
            scaled_dot_product_attention(*arrays(), mask=np.ones((Q, K), dtype))

    @pytest.mark.parametrize(
        "shape",
        [(K,), (B, K), (K, Q), (Q, 1), (B, 1, Q, 1), (1, K), (H, Q, K), (B, Q, K), (3, 1, Q, K)],
    )
    def test_a_mask_whose_axes_would_have_to_be_guessed(self, shape):
        with pytest.raises(ValueError, match=r"mask must have shape \(query, key\) = \(5, 7\)"):
            scaled_dot_product_attention(*arrays(), mask=np.ones(shape, bool))

    def test_a_bias_that_does_not_lie_over_the_scores(self):
        with pytest.raises(ValueError, match="bias must have shape"):
            scaled_dot_product_attention(*arrays(), bias=np.zeros((B, Q, K)))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_bias_without_a_meaning(self, bad):
        with pytest.raises(ValueError, match="bias must not hold NaN"):
            scaled_dot_product_attention(*arrays(), bias=np.full((Q, K), bad))

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_numbers_that_are_not_finite(self, position):
        given_arrays = list(arrays())
        given_arrays[position][1, 2, 3, 0] = np.nan
        name = ("query", "key", "value")[position]
        with pytest.raises(
            ValueError, match=rf"{name} must be finite, got nan at index \(1, 2, 3, 0"
        ):
            scaled_dot_product_attention(*given_arrays)

    def test_shapes_that_do_not_fit(self):
        query, key, value = arrays()
        with pytest.raises(ValueError, match="query and key must share head_dim"):
            scaled_dot_product_attention(query, key[..., :3], value)
        with pytest.raises(ValueError, match="key and value must share their length"):
            scaled_dot_product_attention(query, key, value[..., :6, :])
        with pytest.raises(ValueError, match="equal leading axes"):
            scaled_dot_product_attention(query, key[:1], value[:1])
        with pytest.raises(ValueError, match=r"query must have shape \(..., length, head_dim\)"):
            scaled_dot_product_attention(query[0, 0, 0], key, value)

    def test_arrays_that_are_no_numbers_and_a_scale_that_is_none(self):
        query, key, value = arrays()
        with pytest.raises(TypeError, match="query must be an array of real numbers"):
            scaled_dot_product_attention(query > 0, key, value)
        with pytest.raises(ValueError, match="scale must be a finite number"):
            scaled_dot_product_attention(query, key, value, scale=np.nan)
