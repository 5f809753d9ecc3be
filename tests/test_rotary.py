"""Rotary embedding: values by hand, properties, wrong calls, and reports from real code."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.rotary import (
    BLOCK_ROWS,
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    YarnScaling,
    apply_rotary,
    convert_pairing,
    rotary_frequencies,
    rotary_turns,
    rotate,
)

BATCH, HEADS, LENGTH, HEAD_DIM = 2, 3, 5, 8
SCALINGS = [
    None,
    LinearScaling(4.0),
    NTKScaling(4.0),
    DynamicNTKScaling(2.0, 3),
    YarnScaling(4.0, 64),
    Llama3Scaling(8.0, 64),
]
# The dynamic one looks at the largest position, so its scores depend on more than the offset.
FIXED_SCALINGS = [s for s in SCALINGS if not isinstance(s, DynamicNTKScaling)]
PAIRINGS = ["interleaved", "half"]
pairings = st.sampled_from(PAIRINGS)
positions = st.integers(-(10**6), 10**6)
seeds = st.integers(0, 2**32 - 1)


def vectors(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((BATCH, HEADS, LENGTH, HEAD_DIM)).astype(dtype)


def by_loop(x, where, *, base=10000.0, pairing="interleaved", rotary_dim=None):
    """Rotate one pair at a time; `where` is (batch, length). The formula, read off the paper."""
    rotary_dim = rotary_dim or x.shape[-1]
    out = x.copy()
    for b, h, t in np.ndindex(*x.shape[:-1]):
        for i in range(rotary_dim // 2):
            angle = where[b, t] * base ** (-2 * i / rotary_dim)
            m, n = (2 * i, 2 * i + 1) if pairing == "interleaved" else (i, i + rotary_dim // 2)
            u, v = x[b, h, t, m], x[b, h, t, n]
            out[b, h, t, m] = u * np.cos(angle) - v * np.sin(angle)
            out[b, h, t, n] = u * np.sin(angle) + v * np.cos(angle)
    return out


# --- the rotation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("rotary_dim", [None, 2, 6])
def test_shared_positions_rotate_every_head_and_item_alike(pairing, rotary_dim):
    x, where = vectors(), np.array([0, 1, 2, 30, 4])
    ours = apply_rotary(x, where, pairing=pairing, rotary_dim=rotary_dim)
    expected = by_loop(x, np.stack([where, where]), pairing=pairing, rotary_dim=rotary_dim)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("rotary_dim", [None, 2, 6])
def test_each_batch_item_may_have_positions_of_its_own(pairing, rotary_dim):
    x, where = vectors(), np.array([[0, 1, 2, 3, 4], [7, 7, 9, -2, 40]])
    ours = apply_rotary(x, where, pairing=pairing, rotary_dim=rotary_dim, base=500.0)
    expected = by_loop(x, where, pairing=pairing, rotary_dim=rotary_dim, base=500.0)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-14)


def test_batch_positions_serve_x_of_three_and_five_axes():
    x, where = vectors(), np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])
    whole = apply_rotary(x, where)
    np.testing.assert_array_equal(apply_rotary(x[:, 1], where), whole[:, 1])
    grouped = x.reshape(BATCH, HEADS, 1, LENGTH, HEAD_DIM)
    np.testing.assert_array_equal(apply_rotary(grouped, where)[:, :, 0], whole)


def test_two_axes_and_lists_are_enough():
    np.testing.assert_allclose(
        apply_rotary([[1, 0], [0, 2]], [np.pi / 2, np.pi]), [[0, 1], [0, -2]], atol=1e-15
    )


def test_position_zero_changes_nothing():
    x = vectors()
    np.testing.assert_array_equal(apply_rotary(x, np.zeros(LENGTH)), x)


@pytest.mark.parametrize("length", [0, 1])
def test_short_texts(length):
    x = vectors()[:, :, :length]
    for pairing in PAIRINGS:
        assert apply_rotary(x, np.arange(length), pairing=pairing).shape == x.shape


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("rotary_dim", [None, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_the_angle_is_float64_whatever_it_is(pairing, rotary_dim, dtype):
    x = vectors(dtype=dtype)
    where = np.arange(LENGTH) + 100_000  # an angle of 10^5 in float32 would be off by 4e-3
    ours = apply_rotary(x, where, pairing=pairing, rotary_dim=rotary_dim)
    exact = apply_rotary(x.astype(np.float64), where, pairing=pairing, rotary_dim=rotary_dim)
    assert ours.dtype == dtype
    # Two products, their sum and the result are rounded once each; entries stay below 8.
    np.testing.assert_allclose(ours, exact, rtol=0, atol=8 * np.finfo(dtype).eps)


def test_integers_become_float64():
    ours = apply_rotary(np.array([[1, 2, 3, 4]]), [1])
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, [[-1.14264, 1.922076, 2.959851, 4.0298]], atol=5e-7)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("rotary_dim", [None, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_any_memory_layout_gives_the_same_new_array(pairing, rotary_dim, dtype):
    x, where = vectors(dtype=dtype), np.arange(LENGTH)
    options = {"pairing": pairing, "rotary_dim": rotary_dim}
    expected = apply_rotary(x, where, **options)
    wide = np.zeros((*x.shape[:-1], 2 * HEAD_DIM), dtype)
    wide[..., ::2] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    layouts = {
        "heads after length": np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
        "columns first": np.asfortranarray(x),
        "every other column": wide[..., ::2],
        "backwards": np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        "read-only": read_only,
    }
    for name, layout in layouts.items():
        before = layout.copy()
        ours = apply_rotary(layout, where, **options)
        np.testing.assert_array_equal(ours, expected, err_msg=name)
        np.testing.assert_array_equal(layout, before, err_msg=name)
        assert not np.shares_memory(ours, layout), name
        assert ours.flags.writeable, name


def test_one_array_seen_by_all_heads_is_rotated_for_all():
    x = np.broadcast_to(vectors()[:, :1], (BATCH, HEADS, LENGTH, HEAD_DIM))
    ours = apply_rotary(x, np.arange(LENGTH))
    np.testing.assert_array_equal(ours, apply_rotary(x.copy(), np.arange(LENGTH)))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_nan_stays_in_its_pair(pairing):
    x = vectors()
    x[1, 2, 3, 5] = np.nan
    ours = apply_rotary(x, np.arange(LENGTH), pairing=pairing)
    pair = [4, 5] if pairing == "interleaved" else [1, 5]
    expected = np.zeros(x.shape, bool)
    expected[1, 2, 3, pair] = True
    np.testing.assert_array_equal(np.isnan(ours), expected)


# --- properties -----------------------------------------------------------------------------------


@given(seeds, st.lists(positions, min_size=LENGTH, max_size=LENGTH), pairings)
@settings(deadline=None)
def test_norms_are_kept(seed, where, pairing):
    x = vectors(seed)
    ours = apply_rotary(x, where, pairing=pairing)
    np.testing.assert_allclose(
        np.linalg.norm(ours, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-14
    )


@given(seeds, st.integers(-1000, 1000), pairings, st.sampled_from(FIXED_SCALINGS))
@settings(deadline=None)
def test_scores_depend_on_the_offset_only(seed, shift, pairing, scaling):
    query, key = vectors(seed), vectors(seed + 1)
    where = np.arange(LENGTH)

    def scores(first):
        turned = [
            apply_rotary(x, where + first, pairing=pairing, scaling=scaling) for x in (query, key)
        ]
        return turned[0] @ turned[1].swapaxes(-1, -2)

    # Angles up to 1000 in float64 are off by 1e-13; a score sums 8 products of numbers below 5.
    np.testing.assert_allclose(scores(shift), scores(0), rtol=0, atol=2e-11)


@given(seeds, positions, positions, pairings)
@settings(deadline=None)
def test_turning_by_a_then_b_is_turning_by_their_sum(seed, a, b, pairing):
    x, where = vectors(seed), np.arange(LENGTH)
    twice = apply_rotary(apply_rotary(x, a + where, pairing=pairing), b - where, pairing=pairing)
    once = apply_rotary(x, np.full(LENGTH, a + b), pairing=pairing)
    np.testing.assert_allclose(twice, once, rtol=0, atol=5e-9)  # angles up to 2·10^6


@given(seeds, st.sampled_from([None, 2, 6]))
@settings(deadline=None)
def test_half_is_interleaved_with_permuted_dimensions(seed, rotary_dim):
    x, where = vectors(seed), np.arange(LENGTH)
    options = {"rotary_dim": rotary_dim}
    interleaved = apply_rotary(x, where, **options)
    reordered = convert_pairing(x, HEAD_DIM, to="half", **options)
    half = apply_rotary(reordered, where, pairing="half", **options)
    expected = convert_pairing(interleaved, HEAD_DIM, to="half", **options)
    np.testing.assert_allclose(half, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_negative_positions_carry_gradients_back(scaling, pairing):
    """⟨g, rotate(x)⟩ = ⟨rotate_back(g), x⟩ for all g and x defines the gradient of a linear map."""
    x, g = vectors(1), vectors(2)
    where = np.array([[0, 1, 2, 3, 4], [9, 8, 70, 6, 5]])
    options = {"scaling": scaling, "pairing": pairing, "rotary_dim": 6}
    forward = np.vdot(g, apply_rotary(x, where, **options))
    backward = np.vdot(apply_rotary(g, -where, **options), x)
    np.testing.assert_allclose(forward, backward, rtol=1e-13)
    turns = rotary_turns(where, 6, scaling=scaling)
    np.testing.assert_allclose(
        rotate(g, turns.conj(), pairing=pairing), apply_rotary(g, -where, **options), atol=1e-14
    )


@pytest.mark.parametrize("scaling", SCALINGS)
def test_negative_positions_undo_the_rotation_up_to_the_squared_gain(scaling):
    x, where = vectors(), np.array([3, 1, 4, 1, 59])
    there_and_back = apply_rotary(apply_rotary(x, where, scaling=scaling), -where, scaling=scaling)
    gain = scaling.gain if isinstance(scaling, YarnScaling) else 1.0
    np.testing.assert_allclose(there_and_back, gain**2 * x, rtol=0, atol=1e-13)


# --- turns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(
    "where",
    [
        np.arange(2 * BLOCK_ROWS),
        np.arange(2 * BLOCK_ROWS + 1) + 1000,
        -np.arange(3 * BLOCK_ROWS - 1),
        np.arange(0, 1000, 5),
        np.arange(200) / 4,
        np.full(150, 7),
        np.delete(np.arange(200), 100),
        np.arange(200).reshape(2, 100),
    ],
    ids=[
        "whole blocks",
        "ragged end",
        "backwards",
        "strides",
        "quarters",
        "same",
        "gap",
        "two axes",
    ],
)
def test_turns_are_the_exponential_however_they_are_built(where, scaling):
    length = int(np.ceil(np.abs(where).max())) + 1
    omega = rotary_frequencies(6, scaling=scaling, length=length)
    gain = scaling.gain if isinstance(scaling, YarnScaling) else 1.0
    angles = where[..., None] * omega
    turns = rotary_turns(where, 6, scaling=scaling)
    assert turns.shape == (*where.shape, 3)
    expected = gain * (np.cos(angles) + 1j * np.sin(angles))
    np.testing.assert_allclose(turns, expected, rtol=0, atol=5e-13)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(np.float16, np.complex64), (np.float32, np.complex64), (np.float64, np.complex128)],
)
def test_turns_have_the_complex_kind_of_the_vectors(dtype, kind):
    for where in (np.arange(3), np.arange(500)):
        assert rotary_turns(where, 4, dtype=dtype).dtype == kind
        yarn = rotary_turns(where, 4, dtype=dtype, scaling=YarnScaling(2.0, 64))
        assert yarn.dtype == kind


def test_long_and_short_rows_are_rotated_alike():
    where = np.arange(5 * BLOCK_ROWS)
    x = np.random.default_rng(0).standard_normal((where.size, HEAD_DIM))
    whole = apply_rotary(x, where)
    for start in (0, 70, 319):
        part = slice(start, start + 3)
        np.testing.assert_allclose(
            apply_rotary(x[part], where[part]), whole[part], rtol=0, atol=1e-13
        )


# --- scaling --------------------------------------------------------------------------------------


def slowdown(scaling, head_dim, base=10000.0, length=None):
    plain = rotary_frequencies(head_dim, base=base)
    return plain / rotary_frequencies(head_dim, base=base, scaling=scaling, length=length)


def test_without_scaling_they_are_the_sinusoidal_frequencies():
    np.testing.assert_allclose(rotary_frequencies(6, base=1000.0), [1, 0.1, 0.01], rtol=1e-15)


def test_linear_slows_all_by_the_factor():
    np.testing.assert_allclose(slowdown(LinearScaling(4.0), 8), 4 * np.ones(4), rtol=1e-15)
    x = vectors()
    np.testing.assert_allclose(
        apply_rotary(x, np.arange(LENGTH) * 4, scaling=LinearScaling(4.0)),
        apply_rotary(x, np.arange(LENGTH)),
        rtol=0,
        atol=1e-14,
    )


@pytest.mark.parametrize("head_dim", [4, 8, 128])
def test_ntk_is_a_larger_base(head_dim):
    larger = 10000 * 4.0 ** (head_dim / (head_dim - 2))
    np.testing.assert_allclose(
        rotary_frequencies(head_dim, scaling=NTKScaling(4.0)),
        rotary_frequencies(head_dim, base=larger),
        rtol=1e-13,
    )


def test_ntk_keeps_the_fastest_pair_and_slows_the_slowest_by_the_factor():
    np.testing.assert_allclose(slowdown(NTKScaling(9.0), 6), [1, 3, 9], rtol=1e-14)
    np.testing.assert_array_equal(rotary_frequencies(2, scaling=NTKScaling(9.0)), [1])


@pytest.mark.parametrize(
    ("length", "base"), [(1, 1e4), (2048, 1e4), (4096, 30527.74), (4097, 30537.83)]
)
def test_dynamic_ntk_raises_the_base_beyond_the_original_length(length, base):
    omega = rotary_frequencies(128, scaling=DynamicNTKScaling(2.0, 2048), length=length)
    np.testing.assert_allclose(omega[1] ** -64, base, rtol=2e-7)


def test_dynamic_ntk_without_a_length_is_unscaled():
    omega = rotary_frequencies(8, scaling=DynamicNTKScaling(2.0, 16))
    np.testing.assert_array_equal(omega, rotary_frequencies(8))


def test_dynamic_ntk_takes_its_length_from_the_largest_position_of_the_call():
    scaling, where = DynamicNTKScaling(2.0, 16), np.array([[0, 1, 2, 3, 4], [20, 35, 39, 22, 1]])
    omega = rotary_frequencies(HEAD_DIM, scaling=scaling, length=40)
    expected = rotate(vectors(), np.exp(1j * where[..., None] * omega))
    np.testing.assert_allclose(
        apply_rotary(vectors(), where, scaling=scaling), expected, rtol=0, atol=1e-14
    )
    # 15 is the last position of 16: nothing is scaled yet. 15.5 needs a seventeenth.
    x = vectors()
    for last, scaled in ((15, False), (15.5, True), (16, True)):
        at = [0, 1, 2, 3, last]
        differs = (apply_rotary(x, at, scaling=scaling) != apply_rotary(x, at)).any()
        assert differs == scaled


def test_yarn_blends_between_two_pair_indices():
    # Pair 20 makes 32 turns in 4096 positions and pair 46 makes one, each rounded outwards.
    slow = slowdown(YarnScaling(16.0, 4096), 128)
    np.testing.assert_allclose(slow[:21], 1, rtol=1e-14)
    np.testing.assert_allclose(slow[46:], 16, rtol=1e-14)
    assert (np.diff(slow[20:47]) > 0).all()
    np.testing.assert_allclose(1 / slow[33], 0.5 + 0.5 / 16, rtol=1e-14)  # half way


def test_yarn_without_truncation_blends_from_where_the_turns_are_reached():
    scaling = YarnScaling(16.0, 4096, truncate=False)
    ends = 64 * np.log(4096 / (2 * np.pi * np.array([32, 1]))) / np.log(10000)
    slowed = np.clip((np.arange(64) - ends[0]) / (ends[1] - ends[0]), 0, 1)
    np.testing.assert_allclose(1 / slowdown(scaling, 128), 1 - slowed * 15 / 16, rtol=1e-13)


def test_yarn_of_a_tiny_original_length_slows_all_but_what_the_code_keeps():
    for truncate in (True, False):
        slow = slowdown(YarnScaling(4.0, 2, truncate=truncate), 8)
        np.testing.assert_allclose(slow, [1, 4, 4, 4], rtol=1e-14)


def test_yarn_ends_its_blend_at_the_last_dimension_at_the_latest():
    # Base 10 and 4 pairs: one turn in 4096 positions would be reached at pair 11.3, past
    # dimension 7; more than 1000 turns are made by no pair, so the blend starts at pair 0.
    scaling = YarnScaling(8.0, 4096, beta_fast=1000)
    slowed = np.arange(4) / 7
    np.testing.assert_allclose(1 / slowdown(scaling, 8, base=10.0), 1 - slowed * 7 / 8, rtol=1e-14)


def test_yarn_multiplies_the_vector_once_and_the_score_twice():
    default, given_factor = YarnScaling(4.0, 64), YarnScaling(4.0, 64, attention_factor=3.0)
    assert default.gain == pytest.approx(0.1 * np.log(4) + 1, rel=1e-15)
    assert YarnScaling(1.0, 64).gain == 1
    assert given_factor.gain == 3
    x = vectors()
    for scaling in (default, given_factor):
        ours = apply_rotary(x, np.arange(LENGTH), scaling=scaling, rotary_dim=6)
        norms = [np.linalg.norm(a[..., :6], axis=-1) for a in (ours, x)]
        np.testing.assert_allclose(norms[0], scaling.gain * norms[1], rtol=1e-14)
        np.testing.assert_array_equal(ours[..., 6:], x[..., 6:])  # what is not rotated is kept


def test_llama3_blends_by_the_number_of_turns():
    # Base 500000, head width 128, original length 8192: 29 pairs kept, 6 blended, 29 slowed.
    slow = slowdown(Llama3Scaling(8.0, 8192), 128, base=500000.0)
    assert (slow == 1).sum() == 29
    assert np.isclose(slow, 8, rtol=1e-14).sum() == 29
    turns = 8192 * rotary_frequencies(128, base=500000.0) / (2 * np.pi)
    blended = (turns > 1) & (turns < 4)
    assert blended.sum() == 6
    kept = (turns[blended] - 1) / 3
    np.testing.assert_allclose(1 / slow[blended], kept + (1 - kept) / 8, rtol=1e-14)


@pytest.mark.parametrize("scaling", [s for s in SCALINGS if s is not None])
def test_scalings_are_plain_frozen_values(scaling):
    assert dataclasses.replace(scaling) == scaling
    assert hash(dataclasses.replace(scaling)) == hash(scaling)
    with pytest.raises(dataclasses.FrozenInstanceError):
        scaling.factor = 2.0


@pytest.mark.parametrize("scaling", [LinearScaling(1), NTKScaling(1), Llama3Scaling(1, 64)])
def test_factor_one_changes_nothing(scaling):
    np.testing.assert_allclose(slowdown(scaling, 8), np.ones(4), rtol=1e-15)


# --- between the pairings -------------------------------------------------------------------------


def test_projections_of_several_heads_are_converted_head_by_head():
    rng = np.random.default_rng(0)
    d_model, n_heads, head_dim = 7, 3, 4
    x = rng.standard_normal((5, d_model))
    query, key = (rng.standard_normal((d_model, n_heads * head_dim)) for _ in range(2))

    def scores(w_query, w_key, pairing):
        turned = [
            apply_rotary(
                (x @ w).reshape(5, n_heads, head_dim).swapaxes(0, 1), np.arange(5), pairing=pairing
            )
            for w in (w_query, w_key)
        ]
        return turned[0] @ turned[1].swapaxes(-1, -2)

    expected = scores(query, key, "interleaved")
    converted = [convert_pairing(w, head_dim, to="half") for w in (query, key)]
    np.testing.assert_allclose(scores(*converted, "half"), expected, rtol=0, atol=1e-13)
    assert np.abs(scores(query, key, "half") - expected).max() > 0.1
    # Weights stored (output, input), as torch stores them, have the heads along the first axis.
    stored = convert_pairing(query.T, head_dim, to="half", axis=0)
    np.testing.assert_array_equal(stored, converted[0].T)


@pytest.mark.parametrize("rotary_dim", [None, 2, 6])
def test_conversion_there_and_back(rotary_dim):
    x = vectors(dtype=np.float32)
    there = convert_pairing(x, HEAD_DIM, to="half", rotary_dim=rotary_dim)
    back = convert_pairing(there, HEAD_DIM, to="interleaved", rotary_dim=rotary_dim)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, x)


def test_conversion_order():
    dims = np.arange(8.0)
    half = convert_pairing(dims, 8, to="half", rotary_dim=6)
    np.testing.assert_array_equal(half, [0, 2, 4, 1, 3, 5, 6, 7])
    interleaved = convert_pairing(dims, 8, to="interleaved", rotary_dim=6)
    np.testing.assert_array_equal(interleaved, [0, 3, 1, 4, 2, 5, 6, 7])


# --- wrong calls ----------------------------------------------------------------------------------

X = np.zeros((BATCH, HEADS, LENGTH, HEAD_DIM))
AT = np.arange(LENGTH)


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (TypeError, "x must be an array of real", lambda: apply_rotary(X + 1j, AT)),
        (TypeError, "x must be an array of real", lambda: apply_rotary(X > 0, AT)),
        (TypeError, "x must be an array of real", lambda: apply_rotary("text", AT)),
        (ValueError, r"x must have shape .*got \(8,\)", lambda: apply_rotary(X[0, 0, 0], [1])),
        (ValueError, "ragged", lambda: apply_rotary([[1.0, 2.0], [3.0]], [0, 1])),
        (TypeError, "positions", lambda: apply_rotary(X, None)),
        (TypeError, "positions", lambda: apply_rotary(X, AT > 2)),
        (TypeError, "positions", lambda: apply_rotary(X, AT * 1j)),
        (ValueError, r"positions .*got nan", lambda: apply_rotary(X, [0, 1, np.nan, 3, 4])),
        (ValueError, r"positions .*got inf", lambda: apply_rotary(X, [0, 1, np.inf, 3, 4])),
        (ValueError, r"positions .*got \(\)", lambda: apply_rotary(X, LENGTH)),
        (ValueError, r"positions .*\(5,\).*got \(4,\)", lambda: apply_rotary(X, AT[:4])),
        (ValueError, r"positions .*got \(1,\)", lambda: apply_rotary(X, [3])),
        (ValueError, r"positions .*got \(1, 5\)", lambda: apply_rotary(X, AT[None])),
        (ValueError, r"positions .*got \(3, 5\)", lambda: apply_rotary(X, np.zeros((3, 5)))),
        (ValueError, r"positions .*got \(2, 1\)", lambda: apply_rotary(X, np.zeros((2, 1)))),
        (ValueError, r"positions .*got \(5, 2\)", lambda: apply_rotary(X, np.zeros((5, 2)))),
        (ValueError, r"positions .*got", lambda: apply_rotary(X, np.zeros((2, 3, 5)))),
        (ValueError, r"positions .*got \(5, 8\)", lambda: apply_rotary(X[0, 0], np.zeros((5, 8)))),
        (TypeError, "base", lambda: apply_rotary(X, AT, base="big")),
        (ValueError, "base", lambda: apply_rotary(X, AT, base=0.5)),
        (ValueError, "base", lambda: apply_rotary(X, AT, base=np.inf)),
        (ValueError, "pairing .*'halves'", lambda: apply_rotary(X, AT, pairing="halves")),
        (TypeError, "pairing", lambda: apply_rotary(X, AT, pairing=2)),
        (ValueError, "head_dim must be even.*got 7", lambda: apply_rotary(X[..., :7], AT)),
        (ValueError, "head_dim .*got 0", lambda: apply_rotary(X[..., :0], AT)),
        (ValueError, "rotary_dim must be even.*got 3", lambda: apply_rotary(X, AT, rotary_dim=3)),
        (ValueError, "rotary_dim .*got 0", lambda: apply_rotary(X, AT, rotary_dim=0)),
        (ValueError, "at most head_dim 8, got 10", lambda: apply_rotary(X, AT, rotary_dim=10)),
        (TypeError, "rotary_dim", lambda: apply_rotary(X, AT, rotary_dim=0.5)),
        (TypeError, "scaling .*got 4", lambda: apply_rotary(X, AT, scaling=4.0)),
        (TypeError, "scaling", lambda: apply_rotary(X, AT, scaling=LinearScaling)),
        (TypeError, "scaling", lambda: rotary_frequencies(8, scaling="linear")),
        (ValueError, "head_dim must be even.*got 5", lambda: rotary_frequencies(5)),
        (TypeError, "head_dim", lambda: rotary_frequencies(8.0)),
        (TypeError, "head_dim", lambda: rotary_frequencies(True)),
        (ValueError, "length", lambda: rotary_frequencies(8, length=0)),
        (TypeError, "length", lambda: rotary_frequencies(8, length=2.5)),
        (ValueError, "base", lambda: rotary_frequencies(8, base=1, scaling=YarnScaling(2.0, 8))),
        (ValueError, "rotary_dim", lambda: rotary_turns(AT, 5)),
        (TypeError, "dtype", lambda: rotary_turns(AT, 4, dtype=np.int64)),
        (ValueError, "positions", lambda: rotary_turns([np.nan], 4)),
        (TypeError, "turns must be complex", lambda: rotate(X, np.ones((LENGTH, 4)))),
        (ValueError, r"turns .*got \(4,\)", lambda: rotate(X, np.ones(4) + 0j)),
        (ValueError, r"turns .*got \(4,\)", lambda: rotate(X, np.ones((4, 4)) + 0j)),
        (ValueError, "rotary_dim .*got 10", lambda: rotate(X, np.ones((LENGTH, 5)) + 0j)),
        (ValueError, "x must have shape", lambda: rotate(X[0, 0, 0], np.ones((1, 4)) + 0j)),
        (ValueError, "pairing", lambda: rotate(X, np.ones((LENGTH, 4)) + 0j, pairing="")),
        (ValueError, "to must be one of", lambda: convert_pairing(X, 8, to="split")),
        (ValueError, "head_dim must divide", lambda: convert_pairing(X, 6, to="half")),
        (ValueError, "must be even", lambda: convert_pairing(X[..., :5], 5, to="half")),
        (ValueError, "rotary_dim", lambda: convert_pairing(X, 8, to="half", rotary_dim=10)),
        (ValueError, "axis .*got 4", lambda: convert_pairing(X, 8, to="half", axis=4)),
        (ValueError, "axis .*got -5", lambda: convert_pairing(X, 8, to="half", axis=-5)),
        (TypeError, "axis", lambda: convert_pairing(X, 8, to="half", axis=None)),
        (TypeError, "weights", lambda: convert_pairing(X * 1j, 8, to="half")),
        (TypeError, "factor", lambda: LinearScaling("4")),
        (TypeError, "factor", lambda: LinearScaling(True)),
        (ValueError, "factor .*got 0.5", lambda: LinearScaling(0.5)),
        (ValueError, "factor .*got nan", lambda: NTKScaling(np.nan)),
        (ValueError, "factor .*got -2", lambda: NTKScaling(-2)),
        (ValueError, "factor .*got 0", lambda: DynamicNTKScaling(0, 16)),
        (ValueError, "original_length .*got 0", lambda: DynamicNTKScaling(2.0, 0)),
        (TypeError, "original_length", lambda: DynamicNTKScaling(2.0, 16.0)),
        (ValueError, "factor", lambda: YarnScaling(0.9, 64)),
        (TypeError, "original_length", lambda: YarnScaling(2.0, None)),
        (ValueError, "beta_slow .*got 0", lambda: YarnScaling(2.0, 64, beta_slow=0)),
        (ValueError, "beta_fast .*got 1", lambda: YarnScaling(2.0, 64, beta_fast=1)),
        (TypeError, "beta_fast", lambda: YarnScaling(2.0, 64, beta_fast="32")),
        (ValueError, "attention_factor", lambda: YarnScaling(2.0, 64, attention_factor=0)),
        (TypeError, "attention_factor", lambda: YarnScaling(2.0, 64, attention_factor="1")),
        (TypeError, "truncate", lambda: YarnScaling(2.0, 64, truncate=1)),
        (ValueError, "factor", lambda: Llama3Scaling(0.0, 64)),
        (ValueError, "original_length", lambda: Llama3Scaling(8.0, -1)),
        (ValueError, "low_freq_factor", lambda: Llama3Scaling(8.0, 64, low_freq_factor=0)),
        (ValueError, "high_freq_factor", lambda: Llama3Scaling(8.0, 64, high_freq_factor=1)),
    ],
)
def test_wrong_calls_name_the_argument_and_what_it_was(error, says, call):
    with pytest.raises(error, match=says):
        call()


# --- reports from real code -----------------------------------------------------------------------


def test_silent_interleaved_rotation_of_weights_made_for_halves():
    x, order = np.array([[1.0, 2.0, 3.0, 4.0]]), [0, 2, 1, 3]
    half = apply_rotary(x, [1], pairing="half")
    interleaved = apply_rotary(x, [1], pairing="interleaved")
    np.testing.assert_allclose(half, [[-1.984111, 1.959901, 2.462378, 4.0198]], atol=5e-7)
    np.testing.assert_allclose(interleaved, [[-1.14264, 1.922076, 2.959851, 4.0298]], atol=5e-7)
    np.testing.assert_allclose(
        apply_rotary(x[:, order], [1], pairing="half"), interleaved[:, order], atol=1e-15
    )
    # The first token is at position 0 and looks right either way, which hides the mistake.
    np.testing.assert_array_equal(
        apply_rotary(x, [0], pairing="half"), apply_rotary(x, [0], pairing="interleaved")
    )


def test_silent_rotation_over_the_heads_axis_is_refused_or_shown():
    query, key = (np.random.default_rng(n).standard_normal((1, 5, 3, 8)) for n in (0, 1))
    with pytest.raises(ValueError, match="swap its length and heads axes"):
        apply_rotary(query, np.arange(5))  # (batch, length, heads, head_dim)
    # Positions along the heads leave every score of a head alone; along the length they do not.
    heads_first = [x.swapaxes(1, 2) for x in (query, key)]
    plain = heads_first[0] @ heads_first[1].swapaxes(-1, -2)
    wrong = [apply_rotary(x, np.arange(3)).swapaxes(1, 2) for x in (query, key)]
    np.testing.assert_allclose(wrong[0] @ wrong[1].swapaxes(-1, -2), plain, rtol=0, atol=1e-14)
    right = [apply_rotary(x, np.arange(5)) for x in heads_first]
    assert np.abs(right[0] @ right[1].swapaxes(-1, -2) - plain).max() > 0.5


def test_silent_first_offset_used_for_the_whole_batch():
    x = np.broadcast_to([1.0, 0.0], (2, 2, 2))
    ours = apply_rotary(x, [[0, 1], [5, 6]])
    assert ours.shape == (2, 2, 2)
    np.testing.assert_allclose(ours[1, 0], [np.cos(5), np.sin(5)], atol=1e-15)


def test_silent_loss_of_accuracy_in_half_precision():
    """Positions beyond 2048 are not exact in float16; ours never are float16."""
    x = np.ones((1, 128), np.float16)
    exact = apply_rotary(x.astype(np.float64), [4095])
    np.testing.assert_allclose(apply_rotary(x, [4095]), exact, rtol=0, atol=2e-3)
    rounded = np.float64(np.float16(4095))
    assert rounded == 4096
    assert np.abs(apply_rotary(x.astype(np.float64), [rounded]) - exact).max() > 0.5


def test_silent_mixed_bases_of_dynamic_ntk_in_a_cache():
    scaling = DynamicNTKScaling(2.0, 16)
    query, key = np.random.default_rng(0).standard_normal((2, 1, 64))
    together = apply_rotary(np.concatenate([key, query]), [3, 20], scaling=scaling)
    cached_early = apply_rotary(key, [3], scaling=scaling)  # turned when the text was short
    consistent, mixed = together[1] @ together[0], together[1] @ cached_early[0]
    assert abs(consistent - mixed) > 0.1
    # A short text after a long one is not scaled: no state is kept between calls.
    np.testing.assert_array_equal(cached_early, apply_rotary(key, [3]))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_crash_of_a_cache_shorter_than_the_extended_context(scaling):
    x = vectors()
    beyond = apply_rotary(x, np.arange(LENGTH) + 10_000, scaling=scaling)
    assert np.isfinite(beyond).all()


def test_not_a_bug_negative_positions():
    x = np.array([[1.0, 0.0]])
    np.testing.assert_allclose(apply_rotary(x, [-5]), [[np.cos(5), -np.sin(5)]], atol=1e-15)


def test_silent_query_rotated_at_zero_while_decoding():
    query, key = (np.random.default_rng(n).standard_normal((5, 64)) for n in (0, 1))
    where = np.arange(5)
    full = apply_rotary(query, where) @ apply_rotary(key, where).T
    cached = apply_rotary(query[-1:], [4]) @ apply_rotary(key, where).T
    np.testing.assert_allclose(cached[0], full[-1], rtol=0, atol=1e-13)
    wrong = apply_rotary(query[-1:], [0]) @ apply_rotary(key, where).T
    assert np.abs(wrong[0] - full[-1]).max() > 1


def test_not_a_bug_packed_documents_need_no_reset_for_rotary():
    """With documents kept apart by a mask, shifting one of them changes none of its scores."""
    query, key = (np.random.default_rng(n).standard_normal((4, 64)) for n in (0, 1))
    scores = [
        apply_rotary(query, where) @ apply_rotary(key, where).T
        for where in (np.arange(4), np.arange(4) + 1000)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-11)
