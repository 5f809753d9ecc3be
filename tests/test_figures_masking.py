"""The figures of chapter 4 return what they draw, say it in words, and stay small."""

import numpy as np
import pytest

from posenc.figures import masking
from posenc.masks import causal_mask

LIMIT = 60 * 1024


def check(drawing):
    assert len(drawing.alt) > 40
    assert len(drawing.png()) <= LIMIT
    return drawing


def test_four_machines():
    influence = np.ones((2, 2, 4, 4), dtype=bool)
    influence[:, 1] = causal_mask(4)
    drawn = check(masking.four_machines(influence, [[1, 6], [5, 6]], ["a", "b", "c", "d"]))
    assert np.array_equal(drawn["influence"], influence)
    assert drawn["told"].tolist() == [[1, 6], [5, 6]]
    assert "1 with neither, 6 with the mask only, 5 with the encoding only" in drawn.alt
    assert "Without a mask 100%" in drawn.alt
    assert "with a causal mask 0%" in drawn.alt


def test_mask_panels_keep_each_mask_and_count_what_is_seen():
    masks = {"causal": causal_mask(2, 5), "empty": np.zeros((3, 4), dtype=bool)}
    drawn = check(masking.mask_panels(masks, title="Two", queries=["x", "y"]))
    assert np.array_equal(drawn["causal"], masks["causal"])
    assert np.array_equal(drawn["empty"], masks["empty"])
    assert "causal: 2 queries that see 4, 5 of 5 keys" in drawn.alt
    assert "empty: 3 queries that see 0, 0, 0 of 4 keys" in drawn.alt
    first, second = drawn.figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["x", "y"]
    assert [text.get_text() for text in second.texts] == ["sees nothing"] * 3


def test_leak_names_who_changes_before():
    drawn = check(masking.leak({"tight": [0, 0, 1, 2], "leaky": [0, 0.1, 1, 2]}, replaced=2))
    assert drawn["leaky"].tolist() == [0, 0.1, 1, 2]
    assert "tight: no change before position 2" in drawn.alt
    assert "leaky: changes before position 2" in drawn.alt


def test_averaging_draws_the_theory():
    drawn = check(masking.averaging([1, 0.5, 0.4]))
    assert drawn["variance"].tolist() == [1, 0.5, 0.4]
    assert drawn["theory"] == pytest.approx([1, 1 / 2, 1 / 3])
    assert "from 1.00 at position 0 to 0.40 at position 2" in drawn.alt


def test_accuracies_draw_a_dot_for_each_seed():
    scores = {"easy": [[1.0, 0.95, 1.0], [0.25, 0.2, 0.2], [0.5, 0.6, 1.0]]}
    settings = ["with", "without", "late"]
    drawn = check(masking.accuracies(scores, settings, title="T", guess={"easy": 0.25}))
    assert drawn["easy"].tolist() == scores["easy"]
    assert "3 seeds" in drawn.alt
    told = "with above 0.9, without not above the guess, late in between"
    assert f"easy (guess 0.25): {told}" in drawn.alt


def test_attention_map_says_where_each_query_looks():
    weights = np.eye(3)[::-1]
    drawn = check(masking.attention_map(weights, title="Mirror"))
    assert np.array_equal(drawn["weights"], weights)
    assert "0 at 2, 1 at 1, 2 at 0" in drawn.alt


def test_padding_attention_adds_up_the_padding():
    drawn = check(masking.padding_attention([0.5, 0.25, 0.25], [1, 0, 0], ["man", "·", "·"], "man"))
    assert drawn["unmasked"].tolist() == [0.5, 0.25, 0.25]
    assert drawn["masked"].tolist() == [1, 0, 0]
    assert "without a mask 50%" in drawn.alt
    assert "with the padding mask 0%" in drawn.alt


def test_numbered_rows_keep_the_numbers():
    drawn = check(
        masking.numbered_rows(
            {"left": ["·", "dog", "man"], "alone": ["dog", "man"]},
            {"left": [0, 0, 1], "alone": [0, 1]},
            {"left": "off by 0.00", "alone": "itself"},
        )
    )
    assert drawn["left"].tolist() == [0, 0, 1]
    assert drawn["alone"].tolist() == [0, 1]
    assert "left: [0, 0, 1], off by 0.00" in drawn.alt
