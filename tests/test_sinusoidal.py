"""The formula: its values, its whole tables, its shifts, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.sinusoidal import (
    BLOCK_ROWS,
    frequencies,
    shift_matrix,
    sinusoidal_encoding,
    wavelengths,
)

WIDTHS = st.integers(1, 40)
EVEN_WIDTHS = st.integers(1, 20).map(lambda pairs: 2 * pairs)
POSITIONS = st.floats(-1e4, 1e4, allow_nan=False)


def by_the_book(position, d_model, base=10000.0):
    """One row of the formula, entry by entry, as the paper writes it."""
    row = []
    for column in range(d_model):
        angle = position / base ** (2 * (column // 2) / d_model)
        row.append(np.sin(angle) if column % 2 == 0 else np.cos(angle))
    return np.array(row)


class TestFrequencies:
    def test_are_powers_of_the_base(self):
        np.testing.assert_allclose(frequencies(6), [1, 10000 ** (-1 / 3), 10000 ** (-2 / 3)])
        np.testing.assert_allclose(frequencies(6, base=8.0), [1, 1 / 2, 1 / 4])

    def test_an_odd_width_has_one_more_sine(self):
        np.testing.assert_allclose(frequencies(5), 10000.0 ** (-np.array([0, 2, 4]) / 5))
        np.testing.assert_array_equal(frequencies(1), [1.0])

    @pytest.mark.parametrize(("d_model", "longest"), [(512, 60611), (6, 2916), (4, 628)])
    def test_the_longest_wavelength_stays_below_two_pi_times_the_base(self, d_model, longest):
        assert round(wavelengths(d_model)[-1]) == longest

    def test_wavelengths_undo_frequencies(self):
        np.testing.assert_allclose(wavelengths(10, 50.0) * frequencies(10, 50.0), 2 * np.pi)

    @pytest.mark.parametrize("d_model", [0, -2])
    def test_refuse_a_width_below_one(self, d_model):
        with pytest.raises(ValueError, match=f"d_model must be at least 1, got {d_model}"):
            frequencies(d_model)

    @pytest.mark.parametrize("d_model", [4.0, "4", None, True, [4]])
    def test_refuse_a_width_that_is_no_integer(self, d_model):
        with pytest.raises(TypeError, match="d_model must be an integer"):
            frequencies(d_model)

    @pytest.mark.parametrize("base", [0, -1.0, 0.5, np.nan, np.inf])
    def test_refuse_a_base_that_would_not_slow_the_hands(self, base):
        with pytest.raises(ValueError, match="base must be a finite number"):
            frequencies(4, base)

    def test_refuse_a_base_that_is_no_number(self):
        with pytest.raises(TypeError, match="base must be a real number, got '10000'"):
            wavelengths(4, "10000")


class TestValues:
    @pytest.mark.parametrize(
        ("d_model", "row_of_one"),
        [
            (6, [0.841471, 0.540302, 0.046399, 0.998923, 0.002154, 0.999998]),
            (5, [0.841471, 0.540302, 0.025116, 0.999685, 0.000631]),
            (4, [0.841471, 0.540302, 0.01, 0.99995]),
            (3, [0.841471, 0.540302, 0.002154]),
            (2, [0.841471, 0.540302]),
            (1, [0.841471]),
        ],
    )
    def test_row_of_position_one(self, d_model, row_of_one):
        np.testing.assert_allclose(sinusoidal_encoding([1], d_model)[0], row_of_one, atol=5e-7)

    @given(POSITIONS, WIDTHS, st.floats(1, 1e5))
    def test_any_real_position_follows_the_formula(self, position, d_model, base):
        row = sinusoidal_encoding([position], d_model, base=base)[0]
        np.testing.assert_allclose(row, by_the_book(position, d_model, base), atol=1e-9)

    def test_a_negative_position_is_a_function_value_not_an_index(self):
        row = sinusoidal_encoding([-5], 6)[0]
        expected = [0.958924, 0.283662, -0.230002, 0.97319, -0.010772, 0.999942]
        np.testing.assert_allclose(row, expected, atol=5e-7)

    def test_position_10001_is_not_position_1(self):
        one, far = sinusoidal_encoding([1, 10001], 512)
        assert np.linalg.norm(one - far) == pytest.approx(23.34, abs=0.005)

    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 1, 4), (0, 5)])
    def test_result_appends_the_width_to_the_shape(self, shape):
        assert sinusoidal_encoding(np.zeros(shape), 6).shape == (*shape, 6)

    def test_rows_may_have_positions_of_their_own(self):
        encoding = sinusoidal_encoding([[0, 1], [5, 6]], 8)
        np.testing.assert_array_equal(encoding[1, 0], sinusoidal_encoding([5], 8)[0])

    @pytest.mark.parametrize("positions", [range(5), (0, 1, 2, 3, 4), [0, 1, 2, 3, 4]])
    def test_takes_anything_like_an_array(self, positions):
        np.testing.assert_array_equal(
            sinusoidal_encoding(positions, 4), sinusoidal_encoding(np.arange(5), 4)
        )

    def test_does_not_touch_its_input(self):
        positions = np.arange(4.0)
        sinusoidal_encoding(positions, 4)
        np.testing.assert_array_equal(positions, np.arange(4.0))


class TestLayout:
    @pytest.mark.parametrize("d_model", [1, 2, 5, 8])
    @pytest.mark.parametrize("positions", [70, np.arange(70)])
    def test_split_is_a_column_permutation(self, d_model, positions):
        columns = [*range(0, d_model, 2), *range(1, d_model, 2)]
        interleaved = sinusoidal_encoding(positions, d_model)
        split = sinusoidal_encoding(positions, d_model, layout="split")
        np.testing.assert_array_equal(split, interleaved[:, columns])

    def test_permuted_columns_leave_dot_products_alone_but_not_a_trained_product(self):
        """A false alarm: the layouts agree for a model trained with one of them, no further."""
        rng = np.random.default_rng(0)
        embeddings, weight = rng.normal(size=(6, 8)), rng.normal(size=(8, 5))
        table = sinusoidal_encoding(6, 8)
        columns = [0, 2, 4, 6, 1, 3, 5, 7]
        split = sinusoidal_encoding(6, 8, layout="split")
        np.testing.assert_allclose(split @ split.T, table @ table.T)
        trained = (embeddings + table) @ weight
        assert np.abs((embeddings + split) @ weight - trained).max() > 1
        moved = (embeddings[:, columns] + split) @ weight[columns]
        np.testing.assert_allclose(moved, trained)

    def test_refuses_an_unknown_layout(self):
        with pytest.raises(ValueError, match="layout must be one of 'interleaved', 'split', got"):
            sinusoidal_encoding(3, 4, layout="halves")
        with pytest.raises(TypeError, match="layout must be a string"):
            sinusoidal_encoding(3, 4, layout=None)


class TestWholeTables:
    @pytest.mark.parametrize("d_model", [1, 2, 3, 8, 65, 128])
    @pytest.mark.parametrize("layout", ["interleaved", "split"])
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_equal_the_rows_to_rounding(self, d_model, layout, dtype):
        length = 3 * BLOCK_ROWS + 7
        table = sinusoidal_encoding(length, d_model, layout=layout, dtype=dtype)
        rows = sinusoidal_encoding(np.arange(length), d_model, layout=layout)
        assert table.dtype == dtype
        np.testing.assert_allclose(table, rows, atol=max(1e-12, np.finfo(dtype).eps))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("d_model", [1, 7, 64])
    def test_a_short_table_is_the_beginning_of_a_long_one(self, dtype, d_model):
        longest = sinusoidal_encoding(5 * BLOCK_ROWS, d_model, dtype=dtype)
        for length in (0, 1, 2, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 200):
            table = sinusoidal_encoding(length, d_model, dtype=dtype)
            np.testing.assert_array_equal(table, longest[:length])

    @pytest.mark.parametrize("length", [0, np.int64(3), np.uint8(3)])
    def test_a_length_may_be_zero_or_a_numpy_integer(self, length):
        assert sinusoidal_encoding(length, 4).shape == (int(length), 4)

    def test_every_pair_has_length_one(self):
        table = sinusoidal_encoding(300, 10)
        np.testing.assert_allclose(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, 1)


class TestShift:
    @given(st.floats(-300, 300), st.floats(-300, 300), EVEN_WIDTHS)
    def test_moves_every_position_by_the_offset(self, position, offset, d_model):
        for layout in ("interleaved", "split"):
            here, there = sinusoidal_encoding([position, position + offset], d_model, layout=layout)
            moved = shift_matrix(offset, d_model, layout=layout) @ here
            np.testing.assert_allclose(moved, there, atol=1e-9)

    @given(st.floats(-300, 300), EVEN_WIDTHS)
    def test_is_a_rotation(self, offset, d_model):
        matrix = shift_matrix(offset, d_model)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(d_model), atol=1e-12)
        assert np.linalg.det(matrix) == pytest.approx(1)

    def test_shifts_add_up(self):
        np.testing.assert_allclose(
            shift_matrix(3, 8) @ shift_matrix(4, 8), shift_matrix(7, 8), atol=1e-12
        )

    def test_follows_the_base(self):
        table = sinusoidal_encoding(9, 6, base=7.0)
        np.testing.assert_allclose(table[:-2] @ shift_matrix(2, 6, base=7.0).T, table[2:])

    def test_exists_only_when_pairs_share_a_frequency(self):
        """Seen in real code: with unpaired exponents no matrix moves the table."""
        position, column = np.arange(200)[:, None], np.arange(8)
        angle = position * 10000.0 ** (-2 * column / 8)
        unpaired = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
        paired = sinusoidal_encoding(200, 8)
        for table, low, high in ((unpaired, 0.1, 1.0), (paired, 0.0, 1e-12)):
            fit = np.linalg.lstsq(table[:-3], table[3:], rcond=None)[0]
            assert low <= np.abs(table[:-3] @ fit - table[3:]).max() <= high

    @given(st.integers(0, 10**4), st.integers(0, 500), EVEN_WIDTHS)
    def test_dot_products_depend_on_the_offset_and_not_on_its_sign(self, start, offset, d_model):
        here, there, origin, ahead = sinusoidal_encoding(
            [start, start + offset, 0, -offset], d_model
        )
        assert here @ there == pytest.approx(origin @ ahead, abs=1e-9)
        assert here @ here == pytest.approx(d_model / 2)

    def test_refuses_an_odd_width(self):
        with pytest.raises(ValueError, match="d_model must be even"):
            shift_matrix(1, 5)

    @pytest.mark.parametrize(("offset", "error"), [(np.nan, ValueError), ("1", TypeError)])
    def test_refuses_an_offset_that_is_no_number(self, offset, error):
        with pytest.raises(error, match="offset must be a"):
            shift_matrix(offset, 4)


class TestRefusals:
    @pytest.mark.parametrize("positions", [2.5, True, np.bool_(False), np.float64(3.0), 1j])
    def test_a_bare_number_that_is_no_length(self, positions):
        with pytest.raises(TypeError, match=r"positions must be a length .* write one position as"):
            sinusoidal_encoding(positions, 4)

    def test_a_negative_length(self):
        with pytest.raises(ValueError, match="positions must be at least 0, got -1"):
            sinusoidal_encoding(-1, 4)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_positions_that_are_not_finite(self, bad):
        with pytest.raises(ValueError, match=r"positions must be finite, got .* at index \(1, 0\)"):
            sinusoidal_encoding([[0.0], [bad]], 4)

    @pytest.mark.parametrize("positions", [None, "12", ["a"], [True, False], [1j], [None]])
    def test_positions_that_are_no_numbers(self, positions):
        with pytest.raises(TypeError, match="positions must be an array of real numbers"):
            sinusoidal_encoding(positions, 4)

    def test_ragged_positions(self):
        with pytest.raises(ValueError, match=r"positions must be .* got a ragged sequence"):
            sinusoidal_encoding([[0, 1], [2]], 4)

    def test_integers_that_float64_cannot_hold(self):
        with pytest.raises(ValueError, match="exact in float64"):
            sinusoidal_encoding([2**53 + 1], 4)

    @pytest.mark.parametrize("dtype", [int, np.int32, bool, complex])
    def test_a_table_of_anything_but_floats(self, dtype):
        with pytest.raises(TypeError, match="dtype must be a floating-point dtype"):
            sinusoidal_encoding(4, 4, dtype=dtype)
