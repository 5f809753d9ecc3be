"""The pictures of the chapter on the formula hold the arrays that they are said to show."""

import numpy as np
import pytest

from posenc.figures import drawing, waves
from posenc.sinusoidal import frequencies, sinusoidal_encoding, wavelengths


def shifted(table):
    changed = table.copy()
    changed[3, 2] += 0.5
    return changed


ALL = {
    "ambiguous_sine": lambda: waves.ambiguous_sine(),
    "clock_hand": lambda: waves.clock_hand(),
    "near_repeats": lambda: waves.near_repeats(),
    "counter_and_waves": lambda: waves.counter_and_waves(),
    "clocks": lambda: waves.clocks(40),
    "heat_map": lambda: waves.heat_map(),
    "pair_wave": lambda: waves.pair_wave(8),
    "wavelength_range": lambda: waves.wavelength_range(),
    "verdicts": lambda: waves.verdicts(
        [[True, False, True], [True, True, True]], ["a", "b"], ["x", "y", "z"], "title"
    ),
    "difference": lambda: waves.difference(
        shifted(sinusoidal_encoding(4, 6)), sinusoidal_encoding(4, 6)
    ),
    "distance_by_offset": lambda: waves.distance_by_offset(),
    "norms": lambda: waves.norms([64, 128], {"embedding": [1.0, 1.0], "position": [4.0, 8.0]}),
    "recovery": lambda: waves.recovery(
        [10, 20, 40], {"word": np.ones((2, 3)), "position": np.eye(2, 3)}, 64
    ),
    "odd_width": lambda: waves.odd_width(),
    "layouts": lambda: waves.layouts(),
}


@pytest.fixture(params=ALL, scope="module")
def drawn(request):
    return ALL[request.param]()


def test_every_figure_is_small_and_has_a_text_alternative(drawn):
    assert isinstance(drawn, drawing.Drawing)
    assert len(drawn.alt) > 40
    assert "\n" not in drawn.alt
    assert len(drawn.png()) <= 60_000


def test_no_figure_function_is_left_out():
    public = {
        name
        for name, thing in vars(waves).items()
        if callable(thing) and getattr(thing, "__module__", "") == waves.__name__
    }
    assert {name for name in public if not name.startswith("_")} == set(ALL)


def test_sine_and_cosine_of_the_marked_positions():
    drawn = waves.ambiguous_sine(8, 14, 20)
    np.testing.assert_allclose(drawn["sine"], np.sin(np.arange(20)))
    np.testing.assert_allclose(drawn["cosine"], np.cos(np.arange(20)))


def test_hand_starts_upright_and_turns_clockwise():
    tips = waves.clock_hand(omega=0.5, count=4)["tips"]
    np.testing.assert_allclose(tips[0], [0, 1])
    assert (np.diff(tips[:, 0]) > 0).all()
    np.testing.assert_allclose(np.hypot(*tips.T), 1)


def test_records_of_the_near_repeats():
    drawn = waves.near_repeats(1.0, 1000)
    assert drawn["records"].tolist() == [1, 6, 19, 25, 44, 333, 710]
    assert drawn["distance"][43] == pytest.approx(0.0177, abs=5e-5)


def test_bits_are_the_signs_of_the_waves():
    drawn = waves.counter_and_waves(3)
    assert drawn["bits"].shape == (8, 3)
    assert (drawn["bits"] @ [1, 2, 4]).tolist() == list(range(8))
    assert ((drawn["waves"] > 0) == (drawn["bits"] == 1)).all()


def test_clocks_show_one_row_of_the_table():
    drawn = waves.clocks(40, d_model=6)
    np.testing.assert_allclose(drawn["row"], sinusoidal_encoding(41, 6)[40])
    np.testing.assert_allclose(drawn["angles"], 40 * frequencies(6))


def test_heat_map_shows_the_table():
    drawn = waves.heat_map(30, 8)
    np.testing.assert_allclose(drawn["table"], sinusoidal_encoding(30, 8))
    assert drawn["sign_changes"][0] > drawn["sign_changes"][-1]


def test_pair_wave_shows_one_pair_and_refuses_another():
    drawn = waves.pair_wave(3, d_model=64, length=100)
    table = sinusoidal_encoding(drawn["positions"], 64)
    np.testing.assert_allclose(drawn["sine"], table[:, 6])
    np.testing.assert_allclose(drawn["cosine"], table[:, 7])
    assert drawn["wavelength"] == pytest.approx(wavelengths(64)[3])
    with pytest.raises(ValueError, match="pair must be from 0 to 31, got 32"):
        waves.pair_wave(32)


def test_longest_wavelengths_stay_below_the_limit():
    drawn = waves.wavelength_range((4, 6, 512))
    assert drawn["longest"].round().tolist() == [628, 2916, 60611]
    assert (drawn["longest"] < drawn["limit"]).all()


def test_verdicts_keep_their_place():
    drawn = ALL["verdicts"]()
    assert drawn["passed"].tolist() == [[True, False, True], [True, True, True]]
    assert "a fails y; b fails none" in drawn.alt


def test_difference_finds_the_changed_number():
    drawn = ALL["difference"]()
    assert np.argwhere(drawn["difference"]).tolist() == [[3, 2]]
    assert "row 3, column 2" in drawn.alt


def test_distances_equal_those_of_the_rows():
    drawn = waves.distance_by_offset((2, 6), limit=50)
    table = sinusoidal_encoding(50, 6)
    np.testing.assert_allclose(drawn["distances"][1], np.linalg.norm(table[1:] - table[0], axis=1))
    np.testing.assert_allclose(drawn["nearest"], drawn["distances"].min(axis=1))


def test_given_arrays_are_the_drawn_ones():
    assert ALL["norms"]()["position"].tolist() == [4.0, 8.0]
    assert ALL["recovery"]()["position"].tolist() == [[1, 0, 0], [0, 1, 0]]


def test_tables_of_the_last_two_figures():
    np.testing.assert_allclose(waves.odd_width(5, 8)["table"], sinusoidal_encoding(8, 5))
    drawn = waves.layouts(6, 8)
    np.testing.assert_array_equal(drawn["split"], drawn["interleaved"][:, [0, 2, 4, 6, 1, 3, 5, 7]])
