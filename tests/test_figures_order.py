"""The figures of chapter 01 return the arrays they are said to draw."""

import io

import numpy as np
import pytest
from PIL import Image

from posenc.attention import scaled_dot_product_attention
from posenc.figures import order as figures

WORDS = ["dog", "bites", "man"]
E = np.array([[2.0, 1, 0, 1], [0, 0, 2, 1], [2, 0, 1, 0]])
VECTORS = dict(zip(WORDS, E, strict=True))
POSITIONS = np.arange(16.0)[:, np.newaxis]
BITS = np.arange(16)[:, np.newaxis] >> np.arange(6) & 1
NORMALISED = (np.tile(POSITIONS[:6] / 5, 6), np.tile(POSITIONS / 15, 6))

DRAWINGS = {
    "lookup": figures.lookup(WORDS, E, [2, 0, 1]),
    "attention_weights": figures.attention_weights(WORDS, [[0.7, 0.2, 0.1]] * 3),
    "reordered": figures.reordered("man bites dog", VECTORS),
    "pooling": figures.pooling([3.0, 0.0, 2.0], [0.0, 0.5, 0.0]),
    "influence": figures.influence({"past": np.tri(5), "all": np.ones((5, 5))}),
    "sums": figures.sums(["dog at 0", "dog at 2"], E[[0, 0]], [[1.0, 0, 0, 0], [0, -1, 0, 0]]),
    "gap": figures.gap([0.0, 0.5, 1.0], [0.0, 0.3, 0.9], "dog"),
    "faults": figures.faults(
        np.tile(POSITIONS, 6), NORMALISED, [np.eye(4), np.eye(16)], BITS, d_model=6
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_picture_is_small_and_not_blank(name):
    png = DRAWINGS[name].png()
    assert len(png) <= 60_000
    assert len(Image.open(io.BytesIO(png)).convert("RGB").getcolors(1 << 20)) > 3


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lookup", "in the order man, dog, bites"),
        ("attention_weights", "dog takes 0.70 from dog, 0.20 from bites, 0.10 from man"),
        ("reordered", "For “man bites dog”"),
        ("pooling", "from 0.0 up to 3.0, the change of their mean is at most 0.5"),
        ("influence", "past: 15 of 25 pairs. all: 25 of 25 pairs"),
        ("sums", "Their sums: dog at 0 (3.0, 1.0, 0.0, 1.0), dog at 2 (2.0, 0.0, 0.0, 1.0)"),
        ("gap", "0.00 at strength 0, 0.90 at strength 1"),
        ("faults", "position 5 is coded 1.00 in a sentence of 6 words and 0.33 in one of 16"),
    ],
)
def test_alt_text_is_made_from_the_arrays(name, told):
    assert told in DRAWINGS[name].alt


def test_lookup_reorders_rows():
    drawn = DRAWINGS["lookup"]
    np.testing.assert_array_equal(drawn["sentence"], E)
    np.testing.assert_array_equal(drawn["reordered"], E[[2, 0, 1]])


def test_weights_are_those_given():
    np.testing.assert_array_equal(DRAWINGS["attention_weights"]["weights"][1], [0.7, 0.2, 0.1])


def test_reordered_runs_attention_on_the_sentence_as_written():
    drawn = DRAWINGS["reordered"]
    np.testing.assert_array_equal(drawn["inputs"], E[::-1])
    want, _ = scaled_dot_product_attention(E[::-1], E[::-1], E[::-1])
    np.testing.assert_allclose(drawn["outputs"], want)
    np.testing.assert_allclose(drawn["mean"], want.mean(axis=0))


@pytest.mark.parametrize("sentence", ["", "dog bites cat"])
def test_reordered_refuses_unknown_sentences(sentence):
    with pytest.raises(ValueError, match="dog, bites, man, got"):
        figures.reordered(sentence, VECTORS)


def test_pooling_sorts_both_by_the_rows():
    np.testing.assert_array_equal(DRAWINGS["pooling"]["rows"], [0, 2, 3])
    np.testing.assert_array_equal(DRAWINGS["pooling"]["mean"], [0.5, 0, 0])


def test_influence_keeps_each_map_under_its_name():
    assert DRAWINGS["influence"]["past"].dtype == bool
    np.testing.assert_array_equal(DRAWINGS["influence"]["past"], np.tri(5, dtype=bool))
    assert DRAWINGS["influence"]["all"].all()


def test_sums_adds():
    drawn = DRAWINGS["sums"]
    np.testing.assert_array_equal(drawn["H"], drawn["E"] + drawn["P"])
    np.testing.assert_array_equal(drawn["P"], [[1, 0, 0, 0], [0, -1, 0, 0]])


def test_gap_is_the_curve_given():
    np.testing.assert_array_equal(DRAWINGS["gap"]["strength"], [0, 0.5, 1])
    np.testing.assert_array_equal(DRAWINGS["gap"]["gap"], [0, 0.3, 0.9])


def test_faults_shows_each_fault():
    drawn = DRAWINGS["faults"]
    np.testing.assert_array_equal(drawn["integer"], np.arange(16))
    np.testing.assert_allclose(drawn["short"], np.arange(6) / 5)
    np.testing.assert_allclose(drawn["long"], np.arange(16) / 15)
    np.testing.assert_array_equal(drawn["widths"], [4, 16])
    # The square of a step is the number of bits that flip.
    flips = [1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3, 1, 2, 1]
    np.testing.assert_allclose(drawn["steps"] ** 2, flips)
