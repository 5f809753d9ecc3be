"""The learned table: lookup, gradient, resizing, wrong calls, and reports from real code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.learned import LearnedEncoding
from posenc.sinusoidal import sinusoidal_encoding

ROWS, D_MODEL = 10, 6


def learned(rows=ROWS, d_model=D_MODEL, seed=0, **options):
    return LearnedEncoding(rows, d_model, rng=np.random.default_rng(seed), **options)


def test_initial_rows_are_normal_with_the_scale_of_bert():
    table = learned(2000, 50).table
    assert table.shape == (2000, 50)
    assert table.dtype == np.float64
    # 100,000 draws: mean within 5 standard errors, spread within 1 %.
    assert abs(table.mean()) < 5 * 0.02 / np.sqrt(table.size)
    assert table.std() == pytest.approx(0.02, rel=0.01)
    assert (np.abs(table) > 0.04).mean() == pytest.approx(0.0455, abs=0.003)  # not uniform


def test_the_generator_decides_the_table():
    np.testing.assert_array_equal(learned(seed=3).table, learned(seed=3).table)
    assert (learned(seed=3).table != learned(seed=4).table).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype(dtype):
    encoding = learned(dtype=dtype)
    assert encoding.table.dtype == dtype
    assert encoding(3).dtype == dtype
    assert encoding.resized(7).table.dtype == dtype
    assert encoding.gradient(3, np.ones((3, D_MODEL))).dtype == dtype


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 1, 3), (0,), ()])
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_lookup_of_any_shape(shape, kind):
    encoding = learned()
    where = np.random.default_rng(1).integers(0, ROWS, shape).astype(kind)
    ours = encoding(where)
    assert ours.shape == (*shape, D_MODEL)
    for index in np.ndindex(shape):
        np.testing.assert_array_equal(ours[index], encoding.table[int(where[index])])


@pytest.mark.parametrize("length", [0, 1, 4, ROWS])
def test_a_length_is_short_for_the_first_positions(length):
    encoding = learned()
    np.testing.assert_array_equal(encoding(length), encoding.table[:length])
    np.testing.assert_array_equal(encoding(np.int32(length)), encoding.table[:length])


def test_the_result_is_a_copy_and_the_table_can_be_trained_in_place():
    encoding = learned()
    before = encoding.table.copy()
    for rows in (encoding(3), encoding(ROWS), encoding([0, 1])):
        rows += 1
    np.testing.assert_array_equal(encoding.table, before)
    encoding.table -= 0.5
    np.testing.assert_array_equal(encoding([2]), before[[2]] - 0.5)


# --- gradient -------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, ROWS - 1), min_size=3, max_size=3), max_size=4))
@settings(deadline=None)
def test_gradient_is_the_lookup_turned_round(where):
    """⟨g, lookup(table)⟩ = ⟨gradient(g), table⟩ for all tables defines the gradient."""
    encoding = learned()
    where = np.array(where, dtype=np.int64).reshape(-1, 3)
    grad = np.random.default_rng(1).standard_normal((*where.shape, D_MODEL))
    ours = encoding.gradient(where, grad)
    np.testing.assert_allclose(
        np.vdot(ours, encoding.table), np.vdot(grad, encoding(where)), rtol=1e-12, atol=1e-15
    )
    unused = np.setdiff1d(np.arange(ROWS), where)
    np.testing.assert_array_equal(ours[unused], 0)


def test_gradients_of_a_repeated_position_add_up():
    grad = np.arange(1.0, 5.0)[:, None] * np.ones(D_MODEL)
    ours = learned().gradient([7, 2, 7, 7], grad)
    np.testing.assert_array_equal(ours[7], 1 + 3 + 4)
    np.testing.assert_array_equal(ours[2], 2)


def test_gradient_of_one_lookup_that_served_a_batch():
    encoding = learned()
    grad = np.random.default_rng(1).standard_normal((2, 3, 4, D_MODEL))
    expected = np.zeros_like(encoding.table)
    expected[:4] = grad.sum(axis=(0, 1))
    np.testing.assert_allclose(encoding.gradient(4, grad), expected, rtol=0, atol=1e-14)
    per_item = np.broadcast_to(np.arange(4), (2, 3, 4))
    np.testing.assert_allclose(encoding.gradient(per_item, grad), expected, rtol=0, atol=1e-14)


# --- resizing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("new_length", [2, 3, 9, 10, 11, 19, 64])
def test_resizing_keeps_both_ends_and_interpolates_each_column(new_length):
    encoding = learned()
    before = encoding.table.copy()
    ours = encoding.resized(new_length)
    assert isinstance(ours, LearnedEncoding)
    where = np.arange(new_length) * (ROWS - 1) / (new_length - 1)
    expected = np.stack([np.interp(where, np.arange(ROWS), column) for column in before.T], axis=1)
    np.testing.assert_allclose(ours.table, expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(ours.table[[0, -1]], before[[0, -1]])
    np.testing.assert_array_equal(encoding.table, before)


def test_resizing_to_odd_multiples_keeps_every_old_row():
    encoding = learned()
    np.testing.assert_allclose(
        encoding.resized(3 * (ROWS - 1) + 1).table[::3], encoding.table, rtol=0, atol=1e-16
    )


def test_resizing_to_the_same_length_is_a_copy():
    encoding = learned()
    same = encoding.resized(ROWS)
    assert same is not encoding
    np.testing.assert_array_equal(same.table, encoding.table)
    assert not np.shares_memory(same.table, encoding.table)


def test_resizing_from_and_to_one_row():
    np.testing.assert_array_equal(learned().resized(1).table, learned().table[:1])
    one = learned(rows=1)
    np.testing.assert_array_equal(one.resized(4).table, np.repeat(one.table, 4, axis=0))


def test_a_resized_encoding_serves_its_new_positions_and_no_others():
    longer = learned().resized(15)
    assert longer(15).shape == (15, D_MODEL)
    with pytest.raises(IndexError, match="15 rows, got 15"):
        longer([15])
    assert longer.gradient([14], np.ones((1, D_MODEL))).shape == (15, D_MODEL)


# --- wrong calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (ValueError, "max_length .*got 0", lambda: learned(0)),
        (TypeError, "max_length", lambda: learned(4.0)),
        (ValueError, "d_model .*got -1", lambda: learned(4, -1)),
        (TypeError, "d_model", lambda: learned(4, True)),
        (TypeError, "rng .*got 0", lambda: LearnedEncoding(4, 4, rng=0)),
        (TypeError, "rng", lambda: LearnedEncoding(4, 4, rng=np.random)),
        (TypeError, "dtype", lambda: learned(dtype=np.int64)),
        (TypeError, "positions .*got 2.5", lambda: learned()(2.5)),
        (TypeError, "positions", lambda: learned()(True)),
        (TypeError, "positions", lambda: learned()(None)),
        (TypeError, "positions", lambda: learned()("3")),
        (TypeError, "positions .*float64", lambda: learned()([0.0, 1.0])),
        (TypeError, "positions .*bool", lambda: learned()([True, False])),
        (ValueError, "positions .*ragged", lambda: learned()([[0, 1], [2]])),
        (ValueError, "positions .*got -3", lambda: learned()(-3)),
        (IndexError, "10 rows, got 10", lambda: learned()([3, 10, 99])),
        (IndexError, "10 rows, got 10", lambda: learned()(12)),
        (IndexError, "10 rows, got -1", lambda: learned()([3, -1])),
        (IndexError, "10 rows, got 10", lambda: learned().gradient([10], np.ones((1, 6)))),
        (TypeError, "positions", lambda: learned().gradient([0.5], np.ones((1, 6)))),
        (ValueError, r"got \(6,\)", lambda: learned().gradient([1], np.ones(6))),
        (ValueError, r"got \(2, 6\)", lambda: learned().gradient([1], np.ones((2, 6)))),
        (ValueError, r"got \(1, 5\)", lambda: learned().gradient([1], np.ones((1, 5)))),
        (ValueError, "finite", lambda: learned().gradient([1], np.full((1, 6), np.nan))),
        (TypeError, "grad_output", lambda: learned().gradient([1], np.ones((1, 6)) > 0)),
        (ValueError, "new_length .*got 0", lambda: learned().resized(0)),
        (TypeError, "new_length", lambda: learned().resized(20.0)),
    ],
)
def test_wrong_calls_name_the_argument_and_what_it_was(error, says, call):
    with pytest.raises(error, match=says):
        call()


# --- reports from real code -----------------------------------------------------------------------


def test_silent_negative_position_used_as_an_index():
    """As a function of the position, PE(−5) exists; as a row number, −5 would wrap to row 5."""
    table = sinusoidal_encoding(10, 6)
    np.testing.assert_allclose(table[-5, :2], [-0.958924, 0.283662], atol=5e-7)
    np.testing.assert_allclose(
        sinusoidal_encoding([-5], 6),
        [[0.958924, 0.283662, -0.230002, 0.97319, -0.010772, 0.999942]],
        atol=5e-7,
    )
    with pytest.raises(IndexError, match="got -5"):
        learned()([-5])


def test_crash_past_the_end_of_the_table_names_position_and_rows():
    encoding = learned(100, 4)
    assert encoding([99]).shape == (1, 4)
    with pytest.raises(IndexError, match=r"100 rows, got 100"):
        encoding([99, 100])


def test_silent_first_row_used_for_the_whole_batch():
    encoding = learned()
    ours = encoding([[0, 1], [5, 6]])
    assert ours.shape == (2, 2, D_MODEL)
    np.testing.assert_array_equal(ours[1, 0], encoding.table[5])
