"""Our encodings against arrays made by other libraries and by high-precision arithmetic.

tests/golden/README.md says who made which array. Where a library follows another convention, the
test says which and maps it onto ours. A tolerance is what the library's own arithmetic allows:

- float32 tables whose *angles* were computed in float32 carry the rounding of the angle, so their
  error grows with the angle. `float32_angle_error` bounds it entry by entry.
- tables computed in float64 and rounded once differ from ours by at most one unit in the last
  place of float32.
- float64 tables differ by a few roundings of an angle in float64.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from posenc import bias, positions, rotary
from posenc.sinusoidal import frequencies, sinusoidal_encoding

GOLDEN = Path(__file__).parent / "golden"
HALF_ULP = 2.0**-24  # relative error of one rounding to float32


@cache
def golden(name):
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        return dict(arrays)


def float32_angle_error(angles):
    """Bound the error of sines and cosines of `angles` computed wholly in float32.

    The frequency comes from a power (two roundings of relative size 2^-24 and one of the
    quotient), the angle from a product (a fourth); the sine itself is rounded and may be off by
    another unit.
    """
    return 4 * HALF_ULP * np.abs(angles) + 2 * HALF_ULP


def assert_within_one_ulp(actual, exact):
    """Assert that float32 `actual` is at most one step of float32 from `exact`, rounded."""
    assert actual.dtype == np.float32
    rounded = exact.astype(np.float32)
    steps = np.abs(actual.astype(np.float64) - rounded) / np.spacing(np.abs(rounded))
    assert steps.max() <= 1


# --- sinusoidal.npz: the high-precision reference -------------------------------------------------

REFERENCE_WIDTHS = [7, 8, 64]


def reference(d_model):
    """Give positions and the interleaved table of the 140-bit reference, rounded to float64."""
    arrays = golden("sinusoidal")
    sines, cosines = arrays[f"ref_sin_d{d_model}"], arrays[f"ref_cos_d{d_model}"]
    table = np.stack([sines, cosines], axis=-1).reshape(len(sines), -1)[:, :d_model]
    return arrays[f"ref_pos_d{d_model}"], table


def assert_exact(actual32, actual64, exact):
    visible = np.abs(exact) > 1e-3
    assert visible.any()
    assert_within_one_ulp(actual32[visible], exact[visible])
    np.testing.assert_allclose(actual64, exact, rtol=0, atol=2e-10)


@pytest.mark.parametrize("d_model", REFERENCE_WIDTHS)
def test_rows_are_exact_up_to_position_1048575(d_model):
    where, exact = reference(d_model)
    assert where.max() == 1_048_575
    assert_exact(
        sinusoidal_encoding(where, d_model, dtype=np.float32),
        sinusoidal_encoding(where, d_model),
        exact,
    )


@pytest.mark.parametrize(("d_model", "length"), [(7, 1_048_576), (8, 1_048_576), (64, 100_001)])
def test_whole_tables_are_exact(d_model, length):
    where, exact = reference(d_model)
    inside = where < length
    assert where[inside].max() == length - 1
    assert_exact(
        sinusoidal_encoding(length, d_model, dtype=np.float32)[where[inside]],
        sinusoidal_encoding(length, d_model)[where[inside]],
        exact[inside],
    )


@pytest.mark.parametrize("d_model", REFERENCE_WIDTHS)
def test_split_layout_is_exact(d_model):
    where, exact = reference(d_model)
    split = np.concatenate([exact[:, 0::2], exact[:, 1::2]], axis=1)
    assert_exact(
        sinusoidal_encoding(where, d_model, layout="split", dtype=np.float32),
        sinusoidal_encoding(where, d_model, layout="split"),
        split,
    )


@pytest.mark.parametrize("d_model", [8, 64])
def test_rotary_turns_are_exact_up_to_position_1048575(d_model):
    where, exact = reference(d_model)
    turns = rotary.rotary_turns(where, d_model)
    np.testing.assert_allclose(turns.real, exact[:, 1::2], rtol=0, atol=2e-10)
    np.testing.assert_allclose(turns.imag, exact[:, 0::2], rtol=0, atol=2e-10)


# --- sinusoidal.npz: other libraries --------------------------------------------------------------


def test_the_archive_holds_what_these_tests_read():
    assert {name: len(golden(name)) for name in ("sinusoidal", "rope", "alibi", "t5")} == {
        "sinusoidal": 25,
        "rope": 132,
        "alibi": 52,
        "t5": 14,
    }


def assert_float32_table(theirs, ours, angles):
    """Compare a float32 table whose angles were computed in float32; `angles` lie over columns."""
    assert theirs.dtype == np.float32
    assert theirs.shape == ours.shape
    assert (np.abs(theirs - ours) <= float32_angle_error(angles)).all()


@pytest.mark.parametrize(("length", "d_model"), [(64, 32), (128, 64)])
def test_pytorch_tutorial(length, d_model):
    ours = sinusoidal_encoding(length, d_model)
    angles = np.repeat(np.arange(length)[:, None] * frequencies(d_model), 2, axis=1)
    arrays = golden("sinusoidal")
    assert_float32_table(arrays[f"torch_tutorial_f32_L{length}_d{d_model}"], ours, angles)
    theirs = arrays[f"torch_tutorial_f64_L{length}_d{d_model}"]
    # Three roundings of an angle below 128 in float64.
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=3 * 128 * 2.0**-53)


@pytest.mark.parametrize(("length", "d_model"), [(64, 32), (20, 7)])
def test_marian_is_the_split_layout_rounded_once(length, d_model):
    theirs = golden("sinusoidal")[f"hf_marian_L{length}_d{d_model}"]
    # A column that is zero in exact arithmetic does not occur: sin 0 is exactly 0 in both.
    assert_within_one_ulp(theirs, sinusoidal_encoding(length, d_model, layout="split"))


def test_xlm_is_the_interleaved_layout_rounded_once():
    theirs = golden("sinusoidal")["hf_xlm_L64_d32"]
    assert_within_one_ulp(theirs, sinusoidal_encoding(64, 32))


def test_gptj_is_the_split_layout():
    angles = np.tile(np.arange(64)[:, None] * frequencies(32), 2)
    ours = sinusoidal_encoding(64, 32, layout="split")
    assert_float32_table(golden("sinusoidal")["hf_gptj_L64_d32"], ours, angles)


def m2m100(rows, d_model):
    """Map the tensor2tensor and fairseq rule onto ours.

    Their frequencies are ``10000^(−i / (h − 1))`` for ``h = d_model // 2`` pairs. Those are ours
    for the base ``10000^(h / (h − 1))``. Sines come first, and an odd width gets a zero column.
    """
    n_pairs = d_model // 2
    base = 10000 ** (n_pairs / (n_pairs - 1))
    table = sinusoidal_encoding(rows, 2 * n_pairs, base=base, layout="split")
    angles = np.tile(np.asarray(rows)[..., None] * frequencies(2 * n_pairs, base), 2)
    odd = [(0, 0)] * (table.ndim - 1) + [(0, d_model % 2)]
    return np.pad(table, odd), np.pad(angles, odd)


@pytest.mark.parametrize("d_model", [32, 7])
def test_m2m100_spaces_its_frequencies_differently_and_zeroes_the_padding_row(d_model):
    ours, angles = m2m100(np.arange(64), d_model)
    ours[1] = 0
    assert_float32_table(golden("sinusoidal")[f"hf_m2m100_L64_d{d_model}_pad1"], ours, angles)


def test_m2m100_counts_real_tokens_from_the_row_after_the_padding_row():
    padding_idx = 1
    ids = golden("sinusoidal")["hf_m2m100_ids"]
    rows = positions.position_ids(ids != padding_idx, offset=padding_idx + 1)
    ours, angles = m2m100(rows, 32)
    ours[ids == padding_idx] = 0
    assert_float32_table(golden("sinusoidal")["hf_m2m100_forward_d32"], ours, angles)


def test_positional_encodings_1d():
    angles = np.repeat(np.arange(20)[:, None] * frequencies(10), 2, axis=1)
    ours = sinusoidal_encoding(20, 10)
    assert_float32_table(golden("sinusoidal")["posenc1d_L20_d10"], ours, angles)


def test_positional_encodings_1d_odd_width_cuts_the_next_even_one():
    angles = np.repeat(np.arange(20)[:, None] * frequencies(8), 2, axis=1)[:, :7]
    ours = sinusoidal_encoding(20, 8)[:, :7]
    theirs = golden("sinusoidal")["posenc1d_L20_d7"]
    assert_float32_table(theirs, ours, angles)
    # The paper's rule for width 7 is a different table, not a tolerance away.
    assert np.abs(theirs - sinusoidal_encoding(20, 7)).max() > 0.1


@pytest.mark.parametrize(
    ("name", "sizes"), [("posenc2d_5x6_d8", (5, 6)), ("posenc3d_3x4x5_d12", (3, 4, 5))]
)
def test_positional_encodings_on_a_grid_put_one_axis_beside_the_other(name, sizes):
    width = 4  # columns per axis
    grid = np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")
    ours = np.concatenate([sinusoidal_encoding(axis, width) for axis in grid], axis=-1)
    angles = np.concatenate(
        [np.repeat(axis[..., None] * frequencies(width), 2, axis=-1) for axis in grid], axis=-1
    )
    assert_float32_table(golden("sinusoidal")[name], ours, angles)


# --- rope.npz -------------------------------------------------------------------------------------

LENGTH, HEAD_DIM = 12, 16
WHERE = {"short": np.arange(12), "long": np.arange(100, 112)}


def deepseek_gain(factor, mscale, mscale_all_dim):
    """Map the two fields `mscale` and `mscale_all_dim` onto one attention factor."""
    return (0.1 * mscale * np.log(factor) + 1) / (0.1 * mscale_all_dim * np.log(factor) + 1)


# name: base, scaling
LLAMA = {
    "default": (1e4, None),
    "theta500k": (5e5, None),
    "linear4": (1e4, rotary.LinearScaling(4.0)),
    "dynamic2": (1e4, rotary.DynamicNTKScaling(2.0, 64)),
    "yarn4": (1e4, rotary.YarnScaling(4.0, 64)),
    "yarn8_beta": (1e4, rotary.YarnScaling(8.0, 64, beta_fast=16, beta_slow=2)),
    "yarn4_notrunc": (1e4, rotary.YarnScaling(4.0, 64, truncate=False)),
    "yarn40_mscale": (
        1e4,
        rotary.YarnScaling(40.0, 64, attention_factor=deepseek_gain(40, 0.707, 1.0)),
    ),
    "llama3_8": (5e5, rotary.Llama3Scaling(8.0, 64)),
}


def rotation_error(x, angles, gain=1.0):
    """Bound the error of a float32 rotation: that of cos and sin, times the size of the pair.

    `x` has its pairs ``(x[..., i], x[..., i + pairs])``. Two products and their sum are rounded
    in theirs, and as often in ours.
    """
    first, second = np.split(np.abs(x.astype(np.float64)), 2, axis=-1)
    size = np.tile(first + second, 2)
    return gain * size * (float32_angle_error(np.tile(angles, 2)) + 6 * HALF_ULP)


@pytest.mark.parametrize("span", WHERE)
@pytest.mark.parametrize("name", LLAMA)
def test_llama_rotary_in_every_scaling(name, span):
    arrays, where = golden("rope"), WHERE[span]
    base, scaling = LLAMA[name]
    theirs = {
        key: arrays[f"{name}_{span}_{key}"]
        for key in ("inv_freq", "attention_scaling", "cos", "sin", "q_rot_half", "k_rot_half")
    }
    omega = rotary.rotary_frequencies(
        HEAD_DIM, base=base, scaling=scaling, length=int(where.max()) + 1
    )
    # A power, a quotient and at most five more roundings for a blend.
    np.testing.assert_allclose(omega, theirs["inv_freq"], rtol=8 * HALF_ULP)

    gain = scaling.gain if isinstance(scaling, rotary.YarnScaling) else 1.0
    np.testing.assert_allclose(gain, theirs["attention_scaling"], rtol=4 * 2.0**-52)

    # Theirs repeats each column, [cos | cos], and computes the angle in float32.
    turns = rotary.rotary_turns(where, HEAD_DIM, base=base, scaling=scaling)
    angles = where[:, None] * omega
    allowed = gain * float32_angle_error(np.tile(angles, 2))
    assert (np.abs(np.tile(turns.real, 2) - theirs["cos"]) <= allowed).all()
    assert (np.abs(np.tile(turns.imag, 2) - theirs["sin"]) <= allowed).all()

    for key in ("q", "k"):
        x = arrays[key]
        ours = rotary.apply_rotary(x, where, base=base, pairing="half", scaling=scaling)
        assert ours.dtype == np.float32
        allowed = rotation_error(x, angles, gain)
        assert (np.abs(ours - theirs[f"{key}_rot_half"]) <= allowed).all()


@pytest.mark.parametrize("span", WHERE)
def test_longrope_divides_each_frequency_by_a_number_of_its_own(span):
    """LongRoPE is not one of our scalings; its table is ours with the divided frequencies."""
    arrays, where = golden("rope"), WHERE[span]
    per_pair = 0.05 if span == "short" else 0.5  # long factors beyond 64 positions
    divisor = 1 + per_pair * np.arange(8)
    omega = rotary.rotary_frequencies(HEAD_DIM) / divisor
    np.testing.assert_allclose(omega, arrays[f"longrope_{span}_inv_freq"], rtol=8 * HALF_ULP)
    gain = np.sqrt(1 + np.log(4) / np.log(64))
    np.testing.assert_allclose(
        gain, arrays[f"longrope_{span}_attention_scaling"], rtol=4 * 2.0**-52
    )
    turns = gain * np.exp(1j * where[:, None] * omega)
    angles = where[:, None] * omega
    for part, name in ((turns.real, "cos"), (turns.imag, "sin")):
        theirs = arrays[f"longrope_{span}_{name}"]
        allowed = gain * float32_angle_error(np.tile(angles, 2))
        assert (np.abs(np.tile(part, 2) - theirs) <= allowed).all()
    for key in ("q", "k"):
        ours = rotary.rotate(arrays[key], turns, pairing="half")
        allowed = rotation_error(arrays[key], angles, gain)
        assert (np.abs(ours - arrays[f"longrope_{span}_{key}_rot_half"]) <= allowed).all()


def assert_interleaved(theirs, x, where, **options):
    """Compare an interleaved float32 rotation, entry by entry."""
    ours = rotary.apply_rotary(x, where, **options)
    assert ours.dtype == theirs.dtype == np.float32
    rotary_dim = options.get("rotary_dim") or HEAD_DIM
    omega = rotary.rotary_frequencies(rotary_dim, scaling=options.get("scaling"))
    as_half = rotary.convert_pairing(x[..., :rotary_dim], rotary_dim, to="half")
    allowed = rotation_error(as_half, where[:, None] * omega)
    allowed = rotary.convert_pairing(allowed, rotary_dim, to="interleaved")
    assert (np.abs(ours - theirs)[..., :rotary_dim] <= allowed).all()
    np.testing.assert_array_equal(ours[..., rotary_dim:], theirs[..., rotary_dim:])


@pytest.mark.parametrize(
    ("name", "key", "first", "options"),
    [
        ("gptj_q_rot_interleaved", "q", 0, {}),
        ("roformer_q_rot_interleaved", "q", 0, {}),
        ("roformer_k_rot_interleaved", "k", 0, {}),
        ("lucidrains_q_rot_interleaved", "q", 0, {}),
        ("lucidrains_q_rot_interleaved_offset5", "q", 5, {}),
        ("lucidrains_q_rot_partial8", "q", 0, {"rotary_dim": 8}),
        ("lucidrains_q_rot_interp2", "q", 0, {"scaling": rotary.LinearScaling(2.0)}),
        ("lucidrains_q_rot_ntk4", "q", 0, {"scaling": rotary.NTKScaling(4.0)}),
    ],
)
def test_interleaved_rotations(name, key, first, options):
    arrays = golden("rope")
    assert_interleaved(arrays[name], arrays[key], first + np.arange(LENGTH), **options)


@pytest.mark.parametrize(("key", "sign"), [("q", 1), ("k", -1)])
def test_xpos_is_our_rotation_times_a_decay(key, sign):
    """XPos multiplies queries by ``ζ_i^(t/512)`` and divides keys by it, t = 0 in the middle."""
    arrays, where = golden("rope"), np.arange(LENGTH)
    zeta = (np.arange(0, HEAD_DIM, 2) + 0.4 * HEAD_DIM) / (1.4 * HEAD_DIM)
    decay = zeta ** (sign * (where[:, None] - LENGTH // 2) / 512)
    ours = rotary.rotate(arrays[key], decay * rotary.rotary_turns(where, HEAD_DIM))
    as_half = rotary.convert_pairing(arrays[key], HEAD_DIM, to="half")
    angles = where[:, None] * rotary.rotary_frequencies(HEAD_DIM)
    # The decay is a float32 power: two roundings more, within the factor of two on the angle.
    allowed = rotation_error(as_half, 2 * angles, decay.max())
    allowed = rotary.convert_pairing(allowed, HEAD_DIM, to="interleaved")
    assert (np.abs(ours - arrays[f"lucidrains_xpos_{key}"]) <= allowed).all()


# --- alibi.npz ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_heads", range(1, 25))
def test_bloom_slopes(n_heads):
    # BLOOM rounds 2^(−8/n) to float32 and raises it to the power h: h times that rounding, and two
    # roundings of the power and the product with the position 1.
    power = 2 ** int(np.log2(n_heads))
    exponent = np.concatenate([np.arange(1, power + 1), np.arange(1, 2 * power, 2)])[:n_heads]
    ours, theirs = bias.alibi_slopes(n_heads), golden("alibi")[f"bloom_slopes_h{n_heads}"]
    assert (np.abs(theirs / ours - 1) <= (exponent + 2) * HALF_ULP).all()


@pytest.mark.parametrize("n_heads", range(1, 25))
def test_mpt_bias_is_our_last_row_with_the_heads_in_another_order(n_heads):
    """MPT takes the slopes of the next *higher* power of two, every second one first."""
    theirs = golden("alibi")[f"mpt_bias_h{n_heads}_L6"]
    upper = 2 ** int(np.ceil(np.log2(n_heads)))
    slopes = bias.alibi_slopes(upper)
    if upper != n_heads:
        slopes = np.concatenate([slopes[1::2], slopes[::2]])[:n_heads]
    np.testing.assert_allclose(np.sort(slopes), np.sort(bias.alibi_slopes(n_heads)), rtol=1e-15)
    order = [int(np.abs(bias.alibi_slopes(n_heads) - slope).argmin()) for slope in slopes]
    last_row = bias.alibi_bias(n_heads, 1, 6)[order]
    np.testing.assert_allclose(theirs, last_row, rtol=2 * HALF_ULP)


def test_bloom_bias_differs_from_ours_by_a_constant_per_query():
    """BLOOM counts real tokens upwards: slope · position, the same row for all queries."""
    arrays = golden("alibi")
    mask = arrays["bloom_mask"].astype(bool)
    theirs = arrays["bloom_alibi_masked_h4"].reshape(2, 4, 1, 6)
    for row, real in enumerate(mask):
        n_real = int(real.sum())
        ours = bias.alibi_bias(4, n_real, n_real, causal=False)
        difference = theirs[row][..., real] - ours
        seen = np.tri(n_real, dtype=bool)
        for query in range(n_real):
            constant = difference[:, query, seen[query]]
            np.testing.assert_array_equal(constant, constant[:, :1] * np.ones(query + 1))


@pytest.mark.parametrize("n_heads", [8, 12])
def test_x_transformers_bias_is_ours_without_the_causal_mask(n_heads):
    theirs = golden("alibi")[f"xtransformers_bias_h{n_heads}_5x7"]
    ours = bias.alibi_bias(n_heads, 5, 7, causal=False, dtype=np.float32)
    np.testing.assert_allclose(theirs, ours, rtol=2 * HALF_ULP)


# --- t5.npz ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (16, 64), (8, 20), (64, 256)])
def test_t5_buckets(num_buckets, max_distance, bidirectional):
    arrays = golden("t5")
    direction = "bi" if bidirectional else "uni"
    ours = bias.t5_buckets(
        arrays["rel"],
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    theirs = arrays[f"buckets_{direction}_nb{num_buckets}_md{max_distance}"]
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("part", "bidirectional"), [("encoder", True), ("decoder", False)])
def test_t5_bias(part, bidirectional):
    arrays = golden("t5")
    ours = bias.t5_bias(arrays[f"{part}_weight"], 9, 9, bidirectional=bidirectional)
    np.testing.assert_array_equal(ours, arrays[f"{part}_bias_9x9"][0])  # a lookup: no rounding
