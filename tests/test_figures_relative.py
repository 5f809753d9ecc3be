import numpy as np
import pytest

from posenc.figures import relative as figures
from posenc.sinusoidal import frequencies, sinusoidal_encoding


def check(drawing):
    assert drawing.alt
    assert len(drawing.png()) <= 60_000


@pytest.mark.parametrize("offset", [0, 3, -2])
def test_clocks_turn_alike_from_every_start(offset):
    drawn = figures.clocks(offset, starts=(1, 4, 9), d_model=4)
    check(drawn)
    assert drawn["turn"].shape == (3, 2)
    np.testing.assert_allclose(
        np.exp(1j * drawn["turn"]), np.exp(1j * offset * frequencies(4)) * np.ones((3, 1))
    )
    table = sinusoidal_encoding([1, 4, 9], 4)
    np.testing.assert_allclose(np.sin(drawn["before"]), table[:, 0::2])
    np.testing.assert_allclose(np.cos(drawn["before"]), table[:, 1::2])
    moved = sinusoidal_encoding(np.array([1, 4, 9]) + offset, 4)
    np.testing.assert_allclose(np.sin(drawn["after"]), moved[:, 0::2], atol=1e-12)


def test_evaluations_are_those_given():
    drawn = figures.evaluations([64, 128, 512], [640, 1280, 5120], [650, 660, 720])
    check(drawn)
    np.testing.assert_array_equal(drawn["direct"] - drawn["turned"], [-10, 620, 4400])
    assert "5120" in drawn.alt
    assert "720" in drawn.alt


def test_similarity_is_the_dot_product_divided_by_its_peak():
    drawn = figures.similarity(64, max_offset=20)
    check(drawn)
    table = sinusoidal_encoding(21, 64)
    np.testing.assert_allclose(drawn["similarity"][20:], table @ table[0] / 32, atol=1e-12)
    np.testing.assert_array_equal(drawn["offset"], np.arange(-20, 21))
    assert drawn["first_rise"] == 6


def test_similarity_says_when_nothing_rises():
    drawn = figures.similarity(512, max_offset=43)
    check(drawn)
    assert np.isnan(drawn["first_rise"])
    assert "only falls" in drawn.alt
    assert figures.similarity(512, max_offset=44)["first_rise"] == 44


def test_attention_maps_average_the_weight_of_the_right_key():
    weights = [np.full((5, 7), 1 / 7), np.eye(5, 7, k=-2)]
    drawn = figures.attention_maps([1, 9], weights, offset=2)
    check(drawn)
    np.testing.assert_array_equal(drawn["weights"], weights)
    np.testing.assert_allclose(drawn["right"], [1 / 7, 1])
    assert "2 back, gets a mean weight of 0.14 at scale 1, 1.00 at scale 9" in drawn.alt


def test_attended_offsets_are_counted_in_the_text():
    positions = np.array([[3, 4, 5, 6], [13, 14, 15, 16]])
    free = np.array([[3, 3, 3, 1], [0, -4, 3, 9]])
    drawn = figures.attended_offsets(positions, {"free": free, "turn": np.full((2, 4), 3)}, 3)
    check(drawn)
    np.testing.assert_array_equal(drawn["free"], free)
    np.testing.assert_array_equal(drawn["turn"], 3)
    assert "free: 75% and 25%; turn: 100% and 100%" in drawn.alt


def test_content_share_keeps_every_draw():
    raw = [[1.0, 1.0, 0.7], [0.2, 0.3, 0.1]]
    drawn = figures.content_share([0, 2], raw, np.ones((2, 3)))
    check(drawn)
    np.testing.assert_array_equal(drawn["raw"], raw)
    assert "from 0.90 to 0.20" in drawn.alt


def test_score_maps_name_the_methods_that_are_constant_along_diagonals():
    relative = np.arange(6) - np.arange(6)[:, np.newaxis]
    scores = {"even": np.cos(relative), "uneven": np.random.default_rng(0).normal(size=(6, 6))}
    drawn = figures.score_maps(scores)
    check(drawn)
    np.testing.assert_array_equal(drawn["even"], scores["even"])
    assert "one colour for even, and not for uneven" in drawn.alt


def test_far_out_says_how_far_each_format_is_off():
    exact = np.linspace(4, 1, 5)
    drawn = figures.far_out(np.arange(5), {"float64": exact, "float16": exact + 0.25})
    check(drawn)
    np.testing.assert_array_equal(drawn["float16"] - drawn["float64"], 0.25)
    assert "float16 misses it by up to 0.25" in drawn.alt
