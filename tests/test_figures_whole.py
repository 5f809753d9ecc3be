"""The figures of the chapter on the whole Transformer hold the numbers that they show."""

import numpy as np
import pytest

from posenc.figures import whole
from posenc.transformer import Transformer

MODEL = Transformer(5, 7, 12, 3, 20, 2, rng=np.random.default_rng(0))
RUNS = {"right": np.geomspace(2, 0.01, 30) * [[1], [2], [3]], "wrong": np.full((3, 30), 1.5)}
WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
DICTIONARY = {"dog": "kelo", "bites": "nak", "man": "taru"}

DRAWINGS = {
    "alignments": whole.alignments([("dog bites man", "kelo taru nak")], DICTIONARY),
    "forcing": whole.forcing(["<start>", "kelo", "nak"], ["kelo", "nak", "<end>"]),
    "anatomy": whole.anatomy(MODEL.parameters()),
    "losses": whole.losses(RUNS),
    "outcomes": whole.outcomes(
        {"b": [0.9, 1.0, 0.8], "a": [1, 1, 1]}, {"a": [0, 0.1, 0], "b": [0.3] * 3}, guess=0.3
    ),
    "against": whole.against(
        {"added": [[1, 0.5], [0.9, 0.4]]}, [0, 3], title="Title", x_label="shift", y_label="share",
        level=0.7,
    ),
    "attention_map": whole.attention_map(WEIGHTS, ["kelo", "nak"], ["a", "b", "c"], title="Title"),
    "hiding": whole.hiding({"most": [0.5, 0.7, 0.6], "least": [0, 0, 0.1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWINGS)
def test_is_small_and_has_a_text_alternative(name):
    assert len(DRAWINGS[name].png()) <= 60 * 1024
    assert len(DRAWINGS[name].alt) >= 40


def test_alignments_give_the_target_place_of_every_source_word():
    assert DRAWINGS["alignments"]["0"].tolist() == [0, 2, 1]


def test_forcing_gives_both_rows():
    assert DRAWINGS["forcing"]["read"].tolist() == ["<start>", "kelo", "nak"]
    assert DRAWINGS["forcing"]["answers"].tolist() == ["kelo", "nak", "<end>"]


def test_anatomy_counts_every_parameter_once():
    encoder, decoder = DRAWINGS["anatomy"]["encoder"], DRAWINGS["anatomy"]["decoder"]
    total = sum(array.size for array in MODEL.parameters().values())
    assert encoder.sum() + decoder.sum() == total
    assert whole.parameter_counts(MODEL.parameters(), "decoder")["read-out"] == 12 * 7 + 7
    assert encoder[:2].tolist() == [5 * 12, 0]


def test_anatomy_counts_a_learned_table():
    rng = np.random.default_rng(0)
    learned = Transformer(5, 7, 12, 3, 20, 2, rng=rng, encoding="learned", max_length=9)
    assert whole.parameter_counts(learned.parameters(), "encoder")["encoding"] == 9 * 12


def test_losses_are_means_over_the_last_steps():
    drawn = DRAWINGS["losses"]
    np.testing.assert_allclose(drawn["right"][2, 29], RUNS["right"][2, 20:].mean())
    np.testing.assert_allclose(drawn["right"][1, 3], RUNS["right"][1, :4].mean())


def test_outcomes_has_the_rows_in_one_order():
    drawn = DRAWINGS["outcomes"]
    assert drawn["seen"].tolist() == [[1, 1, 1], [0.9, 1.0, 0.8]]
    assert drawn["alone"].tolist() == [[0, 0.1, 0], [0.3, 0.3, 0.3]]


def test_against_and_hiding_give_what_they_got():
    assert DRAWINGS["against"]["added"].tolist() == [[1, 0.5], [0.9, 0.4]]
    assert DRAWINGS["hiding"]["least"].tolist() == [0, 0, 0.1]


def test_attention_map_frames_the_strongest_key():
    assert DRAWINGS["attention_map"]["strongest"].tolist() == [0, 2]
    part = whole.attention_map(WEIGHTS, ["kelo", "nak"], ["a", "b", "c"], title="T", shown=1)
    assert part["weights"].tolist() == WEIGHTS[:1].tolist()
    assert "nak" not in part.alt
