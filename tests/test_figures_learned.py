"""The figures of chapter 06 show the arrays they were given, and say in words what they show."""

import numpy as np
import pytest

from posenc.figures import learned as figures
from posenc.learned import LearnedEncoding


def check(drawing):
    assert drawing.alt
    assert len(drawing.png()) <= 60_000


def test_lookup_multiplies():
    table = np.arange(12.0).reshape(4, 3)
    drawn = figures.lookup(np.eye(4)[[2, 0, 2, 1, 3]], table)
    check(drawn)
    np.testing.assert_array_equal(drawn["product"], table[[2, 0, 2, 1, 3]])
    assert "in the columns 2, 0, 2, 1, 3" in drawn.alt


def test_losses_find_the_first_step_below_the_threshold():
    curves = {"learned": [[3, 2, 0.9, 2, 0.1], [3, 0.5, 0.4, 0.3, 0.2]]}
    drawn = figures.losses(curves, 1.0, "A title")
    check(drawn)
    np.testing.assert_array_equal(drawn["learned"], curves["learned"])
    np.testing.assert_array_equal(drawn["crossed: learned"], [2, 1])
    assert "learned between steps 1 and 2" in drawn.alt


@pytest.mark.parametrize("names", [["one"], ["one", "another", "third"]])
def test_similarity_maps_are_cosines(names):
    rng = np.random.default_rng(0)
    tables = {name: rng.normal(size=(6, 4)) for name in names}
    drawn = figures.similarity_maps(tables, "A title")
    check(drawn)
    for name, table in tables.items():
        a, b = table[1], table[4]
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        np.testing.assert_allclose(drawn[name][1, 4], cosine)
        np.testing.assert_allclose(np.diagonal(drawn[name]), 1)
        assert f"{name} {np.diagonal(drawn[name], 1).mean():.2f} between neighbours" in drawn.alt


def test_along_axis_says_how_much_the_lines_rise():
    scores = [[-1, 0, 1, 2, 3], [0, 1, 0, 1, 2]]
    drawn = figures.along_axis(scores, [0.7, 0.81])
    check(drawn)
    np.testing.assert_array_equal(drawn["scores"], scores)
    assert "70% to 81%" in drawn.alt
    assert "at 75% to 100% of the steps" in drawn.alt


def test_moved_names_the_rows_that_did_not():
    drawn = figures.moved([[0.5, 0.25, 0, 0, 0], [0.4, 0.3, 0, 0, 0]], [1, 0.5, 0, 0, 0])
    check(drawn)
    assert drawn["distance"].shape == (2, 5)
    assert "between 0.25 and 0.50, but rows 2 to 4 have not moved at all" in drawn.alt
    assert "all moved" in figures.moved([[0.5, 0.25]], [1, 0.5]).alt


def test_beyond_keeps_every_seed():
    found = {"shift": {"learned": [[1, 0.5, 0.2], [1, 0.6, 0.4]], "sinusoidal": [[1, 0.7, 0.6]]}}
    drawn = figures.beyond([16, 24, 64], 16, found, {"shift": [0.2, 0.2, 0.1]})
    check(drawn)
    np.testing.assert_array_equal(drawn["shift: learned"], found["shift"]["learned"])
    assert "shift: learned 1.00 0.55 0.30" in drawn.alt


@pytest.mark.parametrize("new_length", [3, 11])
def test_stretched_draws_what_resized_gives(new_length):
    encoding = LearnedEncoding(5, 4, rng=np.random.default_rng(0))
    drawn = figures.stretched(encoding.table, new_length, dimensions=(3, 1))
    check(drawn)
    np.testing.assert_allclose(drawn["new"], encoding.resized(new_length).table[:, [3, 1]])
    np.testing.assert_array_equal(drawn["old"], encoding.table[:, [3, 1]])
    assert f"its {new_length} new rows" in drawn.alt
