"""Masks: True may attend, aligned at the bottom right, joined only where shapes say how."""

import numpy as np
import pytest

from posenc.masks import causal_mask, combine, document_mask, padding_mask


class TestCausal:
    def test_shows_each_query_its_past(self):
        np.testing.assert_array_equal(causal_mask(3), np.tril(np.ones((3, 3), bool)))

    def test_more_keys_than_queries_are_the_past(self):
        expected = [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
        np.testing.assert_array_equal(causal_mask(2, 5), np.array(expected, bool))

    def test_fewer_keys_than_queries_leave_the_first_queries_without_any(self):
        mask = causal_mask(5, 2)
        np.testing.assert_array_equal(mask.any(axis=1), [False, False, False, True, True])

    def test_is_boolean_and_may_be_empty(self):
        assert causal_mask(0).shape == (0, 0)
        assert causal_mask(2, 0).shape == (2, 0)
        assert causal_mask(4).dtype == np.bool_

    @pytest.mark.parametrize(("arguments", "name"), [((-1,), "query"), ((2, -3), "key")])
    def test_refuses_a_negative_length(self, arguments, name):
        with pytest.raises(ValueError, match=f"{name}_length must be at least 0"):
            causal_mask(*arguments)

    @pytest.mark.parametrize("length", [2.0, "2", None, True])
    def test_refuses_a_length_that_is_no_integer(self, length):
        with pytest.raises(TypeError, match="query_length must be an integer"):
            causal_mask(length)


class TestPadding:
    def test_marks_real_tokens(self):
        expected = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], bool)
        np.testing.assert_array_equal(padding_mask([2, 0, 3], 4), expected)

    def test_is_as_long_as_the_longest(self):
        assert padding_mask([2, 3, 1]).shape == (3, 3)
        assert padding_mask([]).shape == (0, 0)

    def test_refuses_a_sequence_longer_than_the_padded_length(self):
        with pytest.raises(ValueError, match="lengths must not exceed max_length 3, got 4"):
            padding_mask([1, 4], 3)

    @pytest.mark.parametrize("lengths", [[1.0, 2.0], [True], ["a"]])
    def test_refuses_lengths_that_are_no_integers(self, lengths):
        with pytest.raises(TypeError, match="lengths must be an array of integers"):
            padding_mask(lengths)

    def test_refuses_negative_lengths_and_a_bare_number(self):
        with pytest.raises(ValueError, match="lengths must be at least 0, got -1"):
            padding_mask([2, -1])
        with pytest.raises(ValueError, match=r"lengths must have 1 axes, got shape \(\)"):
            padding_mask(3)


class TestDocuments:
    def test_are_blocks_on_the_diagonal(self):
        mask = document_mask([3, 4])
        np.testing.assert_array_equal(mask[3], [0, 0, 0, 1, 1, 1, 1])
        np.testing.assert_array_equal(mask, mask.T)
        assert mask.sum() == 3 * 3 + 4 * 4

    def test_with_a_causal_mask_keep_the_past_of_the_same_document(self):
        """Seen in real code."""
        mask = combine(document_mask([3, 4]), causal_mask(7))
        np.testing.assert_array_equal(mask[3], [0, 0, 0, 1, 0, 0, 0])

    def test_may_be_empty(self):
        assert document_mask([]).shape == (0, 0)
        np.testing.assert_array_equal(document_mask([1, 0, 1]), np.eye(2, dtype=bool))


class TestCombine:
    def test_is_a_logical_and(self):
        joined = combine(causal_mask(5, 7), padding_mask([6, 3], 7)[:, None, None, :])
        assert joined.shape == (2, 1, 5, 7)
        for batch, length in enumerate((6, 3)):
            by_hand = causal_mask(5, 7) & (np.arange(7) < length)
            np.testing.assert_array_equal(joined[batch, 0], by_hand)

    def test_of_one_mask_is_that_mask_and_a_new_array(self):
        mask = causal_mask(3)
        joined = combine(mask)
        np.testing.assert_array_equal(joined, mask)
        joined[0, 0] = False
        assert mask[0, 0]

    def test_leading_axes_of_size_one_mean_the_same_for_all(self):
        a, b = np.ones((2, 1, 5, 7), bool), np.ones((1, 3, 1, 7), bool)
        assert combine(a, b).shape == (2, 3, 5, 7)

    @pytest.mark.parametrize(
        "shapes",
        [
            [(4, 4), (2, 4)],  # (length, length) with (batch, length)
            [(4, 4), (1, 4)],  # the same with a batch of one, which NumPy would broadcast
            [(4, 4), (4, 1)],
            [(4, 4), (2, 1, 4, 1)],  # a mask over queries instead of keys
            [(4, 4), (2, 1, 4, 5)],
            [(1, 4), (2, 1, 4, 4)],
            [(2, 4, 4), (2, 1, 4, 4)],
            [(2, 1, 4, 4), (3, 1, 4, 4)],
        ],
    )
    def test_refuses_shapes_that_do_not_belong_together(self, shapes):
        masks = [np.ones(shape, bool) for shape in shapes]
        with pytest.raises(ValueError, match=r"masks must have shape \(query, key\) or one common"):
            combine(*masks)
        with pytest.raises(ValueError, match="masks must have shape"):
            combine(*masks[::-1])

    def test_refuses_anything_but_boolean_masks(self):
        with pytest.raises(TypeError, match=r"masks\[1\] must be boolean with True = may attend"):
            combine(causal_mask(2), np.ones((2, 2), int))
        with pytest.raises(TypeError, match="dtype float64"):
            combine(np.zeros((2, 2)))

    def test_refuses_nothing_and_too_few_axes(self):
        with pytest.raises(TypeError, match="at least one mask"):
            combine()
        with pytest.raises(ValueError, match=r"masks\[0\] must have shape"):
            combine(np.ones(3, bool))
