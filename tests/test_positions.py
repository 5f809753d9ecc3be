"""Position numbers, and joining encodings with embeddings without a silent broadcast."""

import numpy as np
import pytest

from posenc.positions import add_positions, concat_positions, packed_position_ids, position_ids
from posenc.sinusoidal import sinusoidal_encoding

RNG = np.random.default_rng(7)


class TestPositionIds:
    def test_count_real_tokens_whatever_the_side_of_the_padding(self):
        """Seen in real code: the number of pads on the left must not matter."""
        mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
        expected = [[0, 0, 0, 1, 2], [0, 1, 2, 0, 0], [0, 1, 2, 3, 4]]
        np.testing.assert_array_equal(position_ids(mask), expected)

    def test_start_at_the_offset(self):
        np.testing.assert_array_equal(position_ids(length=4, offset=6), [6, 7, 8, 9])
        np.testing.assert_array_equal(position_ids([[False, True, True]], offset=2), [[0, 2, 3]])

    def test_padding_idx_conventions_are_an_offset_away(self):
        """Seen in real code: fairseq counts from padding_idx + 1 and gives pads padding_idx."""
        ids, pad = np.array([[4, 5, 6], [4, 3, 3]]), 3
        ours = np.where(ids != pad, position_ids(ids != pad, offset=pad + 1), pad)
        np.testing.assert_array_equal(ours, [[4, 5, 6], [4, 3, 3]])

    def test_are_integers_and_may_be_empty(self):
        assert position_ids(length=0).shape == (0,)
        assert position_ids(np.zeros((2, 0), bool)).shape == (2, 0)
        assert position_ids(length=3).dtype == np.int64

    def test_need_exactly_one_of_mask_and_length(self):
        with pytest.raises(TypeError, match="exactly one of mask and length, got neither"):
            position_ids()
        with pytest.raises(TypeError, match="exactly one of mask and length, got both"):
            position_ids([[True]], length=1)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"mask": [[1, 1, 0]]}, TypeError, "mask must be boolean"),
            ({"mask": [True, False]}, ValueError, r"mask must have shape \(batch, length\)"),
            ({"mask": np.ones((1, 2, 3), bool)}, ValueError, "mask must have shape"),
            ({"length": -1}, ValueError, "length must be at least 0, got -1"),
            ({"length": 2.0}, TypeError, "length must be an integer"),
            ({"length": 2, "offset": -1}, ValueError, "offset must be at least 0, got -1"),
            ({"length": 2, "offset": 0.5}, TypeError, "offset must be an integer"),
        ],
    )
    def test_refuse(self, arguments, error, message):
        with pytest.raises(error, match=message):
            position_ids(**arguments)


class TestPackedPositionIds:
    def test_start_again_with_every_document(self):
        np.testing.assert_array_equal(packed_position_ids([3, 4]), [0, 1, 2, 0, 1, 2, 3])
        np.testing.assert_array_equal(packed_position_ids([2, 0, 1]), [0, 1, 0])
        assert packed_position_ids([]).shape == (0,)

    def test_refuse_lengths_that_are_none(self):
        with pytest.raises(ValueError, match="lengths must be at least 0, got -1"):
            packed_position_ids([2, -1])
        with pytest.raises(TypeError, match="lengths must be an array of integers"):
            packed_position_ids([2.5])
        with pytest.raises(ValueError, match="lengths must have 1 axes"):
            packed_position_ids([[2]])


class TestAddPositions:
    def test_adds_row_by_row(self):
        embeddings, table = RNG.normal(size=(2, 5, 4)), sinusoidal_encoding(5, 4)
        sums = add_positions(embeddings, table)
        for batch in range(2):
            for token in range(5):
                np.testing.assert_array_equal(
                    sums[batch, token], embeddings[batch, token] + table[token]
                )

    def test_takes_positions_that_differ_from_row_to_row(self):
        embeddings, encoding = RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 4))
        np.testing.assert_array_equal(add_positions(embeddings, encoding), embeddings + encoding)

    def test_takes_one_sequence_and_more_leading_axes(self):
        """A false alarm: (length, d_model) beside (batch, length, d_model) is right."""
        table = sinusoidal_encoding(5, 4)
        np.testing.assert_array_equal(add_positions(np.zeros((5, 4)), table), table)
        assert add_positions(np.zeros((2, 3, 5, 4)), table).shape == (2, 3, 5, 4)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_keeps_the_dtype_of_the_embeddings(self, dtype):
        """Seen in real code."""
        sums = add_positions(np.zeros((2, 5, 4), dtype), sinusoidal_encoding(5, 4))
        assert sums.dtype == dtype

    def test_returns_a_new_array(self):
        embeddings = np.zeros((5, 4))
        add_positions(embeddings, sinusoidal_encoding(5, 4))
        assert not embeddings.any()

    @pytest.mark.parametrize("batch", [2, 1, 5])
    @pytest.mark.parametrize(
        "axes", ["L 1", "B 1 d", "d", "L 1 d", "1 1 d", "1 d", "d L", "B 1 L d", ""]
    )
    def test_refuses_every_other_shape_that_numpy_might_broadcast(self, batch, axes):
        """Seen in real code: also where batch and length happen to agree."""
        sizes = {"B": batch, "L": 5, "d": 4, "1": 1}
        shape = tuple(sizes[axis] for axis in axes.split())
        embeddings = np.zeros((batch, 5, 4))
        with pytest.raises(ValueError, match=r"add_positions: encoding must have shape \(5, 4\)"):
            add_positions(embeddings, np.ones(shape))

    def test_names_both_shapes_and_the_usual_cause(self):
        embeddings = np.zeros((3, 5, 4))
        causes = {
            (10, 1, 4): "time-first table",
            (4, 5): "transposed",
            (9, 4): r"use encoding\[:5\]",
            (3, 4): "It has rows for 3 positions, the sequence has 5",
            (1, 5, 4): r"encoding\[0\]",
        }
        for shape, cause in causes.items():
            both = rf"embeddings \(3, 5, 4\), got {str(shape).replace('(', '.')[:-1]}.*{cause}"
            with pytest.raises(ValueError, match=both):
                add_positions(embeddings, np.zeros(shape))

    def test_refuses_integers_on_either_side(self):
        with pytest.raises(TypeError, match=r"embeddings must be floating point, got dtype int64"):
            add_positions(np.zeros((5, 4), int), np.zeros((5, 4)))
        with pytest.raises(TypeError, match="encoding must be floating point"):
            add_positions(np.zeros((5, 4)), np.zeros((5, 4), int))
        with pytest.raises(ValueError, match="embeddings must have shape"):
            add_positions(np.zeros(4), np.zeros(4))


class TestConcatPositions:
    def test_puts_the_encoding_beside_the_embedding(self):
        embeddings, encoding = RNG.normal(size=(2, 5, 4)), RNG.normal(size=(5, 3))
        joined = concat_positions(embeddings, encoding)
        np.testing.assert_array_equal(joined[..., :4], embeddings)
        np.testing.assert_array_equal(joined[1, :, 4:], encoding)

    def test_takes_equal_leading_axes_and_keeps_the_dtype(self):
        joined = concat_positions(np.zeros((2, 5, 4), np.float32), np.ones((2, 5, 3)))
        assert joined.shape == (2, 5, 7)
        assert joined.dtype == np.float32

    @pytest.mark.parametrize("shape", [(4, 3), (1, 3), (2, 1, 3), (5, 1, 3), (1, 5, 3), (3,), ()])
    def test_refuses_leading_axes_that_do_not_agree(self, shape):
        with pytest.raises(ValueError, match="concat_positions: encoding must have shape"):
            concat_positions(np.zeros((2, 5, 4)), np.ones(shape))

    def test_refuses_integers(self):
        with pytest.raises(TypeError, match="concat_positions: embeddings must be floating"):
            concat_positions(np.zeros((5, 4), int), np.zeros((5, 3)))
