"""The figures of the chapter on shape pitfalls hold the numbers that they show."""

import numpy as np
import pytest

from posenc.figures import shapes

REAL = np.array([False, True, True])
DRAWINGS = {
    "aligned_axes": shapes.aligned_axes((2, 4, 6), (4, 6), (4, 1, 6)),
    "who_gets_what": shapes.who_gets_what((2, 1, 6)),
    "score_changes": shapes.score_changes(np.zeros((3, 3)), 1.0 - np.eye(3)),
    "shared_positions": shapes.shared_positions(np.arange(4.0), np.array([0.0, 1.0, 2.0, 2.0])),
    "numberings": shapes.numberings({"slots": np.arange(3), "tokens": np.arange(3) - 1}, REAL),
    "drift": shapes.drift(np.array([0.0, 0.1, 0.3])),
    "probe_matrix": shapes.probe_matrix(np.eye(3, 2) > 0, ["a", "b", "c"], ["first", "second"]),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_is_small_and_has_a_text_alternative(name):
    assert len(DRAWINGS[name].png()) <= 60 * 1024
    assert len(DRAWINGS[name].alt) >= 40


@pytest.mark.parametrize(
    ("embeddings", "encoding", "said"),
    [
        ((2, 4, 6), (4, 6), "a row per token"),
        ((2, 4, 6), (2, 4, 6), "a row per token and sentence"),
        ((2, 4, 6), (2, 1, 6), "one vector per sentence"),
        ((2, 4, 6), (6,), "one vector for all tokens"),
        ((2, 4, 6), (4, 1), "one number per token"),
        ((1, 4, 6), (4, 1, 6), "the batch grows"),
        ((2, 4, 6), (2, 6), "NumPy raises"),
        ((2, 4, 6), (3, 1, 6), "NumPy raises"),
    ],
)
def test_verdict_is_read_off_the_broadcast_sum(embeddings, encoding, said):
    assert shapes.verdict(embeddings, encoding) == said


@pytest.mark.parametrize(
    ("embeddings", "encoding"),
    [((2, 4, 6), (4, 6)), ((2, 4, 6), (2, 6)), ((1, 4, 6), (5, 1, 6)), ((2, 4, 6), (3, 1, 6))],
)
def test_an_axis_clashes_exactly_where_numpy_raises(embeddings, encoding):
    try:
        np.broadcast_shapes(embeddings, encoding)
        adds = True
    except ValueError:
        adds = False
    assert ("clash" not in shapes.axis_fates(embeddings, encoding)) == adds


def test_aligned_axes_gives_the_fate_of_each_axis():
    fates = DRAWINGS["aligned_axes"]["fates"]
    assert fates.tolist() == [["repeated", "fits", "fits"], ["clash", "repeated", "fits"]]


def test_who_gets_what_gives_the_entries_that_land_on_each_token():
    landed = DRAWINGS["who_gets_what"]["landed"]
    assert landed.shape == (2, 4, 6)
    np.testing.assert_array_equal(landed[1, 3], np.arange(6, 12))
    assert shapes.who_gets_what((2, 6))["landed"].size == 0


@pytest.mark.parametrize(("text", "shape"), [("2, 1, 6", (2, 1, 6)), ("(6,)", (6,)), ("4", (4,))])
def test_a_shape_is_read_from_text(text, shape):
    assert shapes.parse_shape(text) == shape


@pytest.mark.parametrize("text", ["", "a", "0, 6", "9", "1, 2, 3, 4", "2.5", "True, 2"])
def test_what_is_not_a_small_shape_is_refused(text):
    with pytest.raises(ValueError, match=r"shape|sizes"):
        shapes.parse_shape(text)


def test_score_changes_gives_both_maps():
    drawn = DRAWINGS["score_changes"]
    np.testing.assert_array_equal(drawn["right"], 1.0 - np.eye(3))
    assert not drawn["wrong"].any()


def test_shared_positions_marks_neighbours_with_one_number():
    assert DRAWINGS["shared_positions"]["shared"].tolist() == [False, False, True, True]


def test_numberings_gives_the_row_of_the_first_real_token():
    assert DRAWINGS["numberings"]["first"].tolist() == [1, 0]


def test_drift_and_probe_matrix_give_what_they_got():
    np.testing.assert_array_equal(DRAWINGS["drift"]["distance"], [0.0, 0.1, 0.3])
    np.testing.assert_array_equal(DRAWINGS["probe_matrix"]["caught"], np.eye(3, 2) > 0)
    assert "c: none" in DRAWINGS["probe_matrix"].alt
