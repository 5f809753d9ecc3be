import numpy as np
import pytest

from posenc.figures import inside as figures
from posenc.rotary import NTKScaling, YarnScaling, rotary_frequencies
from posenc.sinusoidal import sinusoidal_encoding


def check(drawing):
    assert drawing.alt
    assert len(drawing.png()) <= 60_000


def test_effects_say_which_curves_change():
    offsets = np.arange(-2, 3)
    same, other = offsets**2, offsets + 5.0
    curves = {
        "alone": [same, same, same],
        "asked": [same, other, same],
        "both": [same, other, other],
    }
    drawn = figures.effects(offsets, curves)
    check(drawn)
    np.testing.assert_array_equal(drawn["asked"], curves["asked"])
    assert (
        "alone: with neither; asked: with the query; both: with the query and the key" in drawn.alt
    )


def test_slopes_count_what_is_shared():
    drawn = figures.slopes(3, [0.5, 0.25, 0.125], [0.5, 0.2, 0.4])
    check(drawn)
    np.testing.assert_array_equal(drawn["released"], [0.5, 0.2, 0.4])
    assert (
        "gives 1 of the heads the slope of the formula, though 1 slopes occur in both" in drawn.alt
    )
    assert "starts again at 0.4" in drawn.alt


def test_buckets_measure_their_widths():
    relative = np.arange(-6, 3)
    encoder = np.array([3, 3, 3, 2, 2, 1, 0, 5, 6])
    decoder = np.array([4, 4, 3, 3, 2, 1, 0, 0, 0])
    drawn = figures.buckets(relative, encoder, decoder)
    check(drawn)
    np.testing.assert_array_equal(drawn["encoder widths"], [1, 1, 2, 3])
    np.testing.assert_array_equal(drawn["decoder widths"], [1, 1, 1, 2, 2])
    assert "begins at distance 4 in the encoder and 5 in the decoder" in drawn.alt


def test_pairings_hold_every_dimension_once():
    drawn = figures.pairings(10)
    check(drawn)
    for name in ("interleaved", "half"):
        assert drawn[name].shape == (5, 2)
        np.testing.assert_array_equal(np.sort(drawn[name].ravel()), np.arange(10))
    np.testing.assert_array_equal(np.ptp(drawn["interleaved"], axis=1), 1)
    np.testing.assert_array_equal(np.ptp(drawn["half"], axis=1), 5)


def test_task_scores_keep_every_seed():
    results = {
        "RoPE": {"a": [0.2, 0.4, 0.9], "b": [1.0, 1.0, 0.7]},
        "own": {"a": [0, 0, 0], "b": [1, 1, 1]},
    }
    drawn = figures.task_scores({"a": 0.25, "b": 0.5}, results)
    check(drawn)
    np.testing.assert_array_equal(drawn["RoPE"], [[0.2, 0.4, 0.9], [1.0, 1.0, 0.7]])
    np.testing.assert_array_equal(drawn["ceiling"], [0.25, 0.5])
    assert "a: RoPE 0.50, own 0.00, ceiling without order 0.25" in drawn.alt


def test_by_length_names_the_mean_at_the_longest():
    found = {"shift": {"RoPE": [[1.0, 0.6], [0.8, 0.2]]}, "first": {"T5": [[1.0, 0.7], [1.0, 0.7]]}}
    drawn = figures.by_length([8, 32], 8, found, "A title")
    check(drawn)
    np.testing.assert_array_equal(drawn["shift: RoPE"], [[1.0, 0.6], [0.8, 0.2]])
    assert "Mean at length 32: shift: RoPE 0.40; first: T5 0.70" in drawn.alt


@pytest.mark.parametrize("factor", [1.0, 4.0, 32.0])
def test_slowed_pairs_are_those_of_the_scalings(factor):
    drawn = figures.slowed_pairs(factor, original_length=512, head_dim=32)
    check(drawn)
    before = 2 * np.pi / rotary_frequencies(32)
    np.testing.assert_allclose(drawn["before"], before)
    np.testing.assert_allclose(drawn["linear"], factor * before)
    for name, scaling in (("NTK", NTKScaling(factor)), ("YaRN", YarnScaling(factor, 512))):
        np.testing.assert_allclose(drawn[name], 2 * np.pi / rotary_frequencies(32, scaling=scaling))
    assert f"within which {(before < 512).sum()} pairs turn" in drawn.alt


def test_patch_similarity_is_one_at_the_patch():
    table = sinusoidal_encoding(15, 16)
    drawn = figures.patch_similarity(3, 5, (2, 1), {"numbered": table})
    check(drawn)
    np.testing.assert_allclose(drawn["numbered"].ravel(), table @ table[11] / 8)
    assert drawn["numbered"][2, 1] == 1


def test_stored_numbers_are_those_given():
    drawn = figures.stored_numbers([8, 16], {"square": [64, 256], "line": [15, 31]})
    check(drawn)
    np.testing.assert_array_equal(drawn["line"], [15, 31])
    assert "square 2.6e+02" in drawn.alt
