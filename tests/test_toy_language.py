"""The made language: its grammar, its batches, and the ceiling of a model that sees no order."""

from collections import Counter

import numpy as np
import pytest

from posenc.toy_language import END, PADDING, START, ToyLanguage, bag_of_words

LANGUAGE = ToyLanguage()


# --- the grammar ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "translation"),
    [
        ("dog bites man", "kelo taru nak"),
        ("man bites dog", "taru kelo nak"),
        ("old dog bites man", "kelo sen taru nak"),
        ("dog bites old man", "kelo taru sen nak"),
        ("today small cat sees big bird", "misu tib pion gor oya vey"),
        ("small cat sees big bird today", "misu tib pion gor oya vey"),
    ],
)
def test_translates_by_order(sentence, translation):
    assert LANGUAGE.translate(sentence) == translation


@pytest.mark.parametrize(
    "sentence",
    [
        "dog man",
        "dog old bites man",
        "dog bites bites man",
        "dog bites man old",
        "dog today bites man",
        "today dog bites man today",
        "big old dog bites man",
        "",
    ],
)
def test_refuses_what_is_no_sentence(sentence):
    with pytest.raises(ValueError, match=r"sentence must read .*verb"):
        LANGUAGE.translate(sentence)


def test_refuses_an_unknown_word():
    with pytest.raises(ValueError, match="'fish'"):
        LANGUAGE.translate("dog bites fish")


def test_lists_every_sentence_once():
    sentences = [sentence for sentence, _ in LANGUAGE.pairs()]
    # subjects, objects, verbs, adjectives on either side, places of "today"
    assert len(set(sentences)) == len(sentences) == 4 * 3 * 3 * 4 * 4 * 3


def test_translation_keeps_the_words():
    for sentence, translation in LANGUAGE.pairs():
        words = sorted(LANGUAGE.dictionary[word] for word in sentence.split())
        assert words == sorted(translation.split())


# --- the split and the ceiling --------------------------------------------------------------------


def test_split_keeps_all_orders_of_the_same_words_together():
    learn, test = LANGUAGE.split(7, rng=np.random.default_rng(3))
    assert sorted(learn + test) == sorted(LANGUAGE.pairs())
    bags = {bag_of_words(sentence) for sentence, _ in test}
    assert len(bags) == 7
    assert not bags & {bag_of_words(sentence) for sentence, _ in learn}


def test_split_is_drawn():
    first, second = (LANGUAGE.split(7, rng=np.random.default_rng(seed))[1] for seed in (0, 1))
    assert first != second


@pytest.mark.parametrize(
    ("held_out", "error"), [(361, ValueError), (-1, ValueError), (1.5, TypeError)]
)
def test_split_refuses(held_out, error):
    with pytest.raises(error, match="held_out"):
        LANGUAGE.split(held_out, rng=np.random.default_rng(0))


def test_ceiling_is_what_the_most_frequent_answer_gets():
    answers = {}
    for sentence, translation in LANGUAGE.pairs():
        answers.setdefault(bag_of_words(sentence), Counter())[translation] += 1
    right = sum(max(counts.values()) for counts in answers.values())
    assert LANGUAGE.ceiling(LANGUAGE.pairs()) == right / 1728


@pytest.mark.parametrize(
    ("words", "readings"),
    [("dog bites man", 2), ("old dog bites man", 4), ("old dog bites big man", 4),
     ("old dog bites old man", 2)],
)  # fmt: skip
def test_ceiling_of_one_collection_of_words(words, readings):
    same = [pair for pair in LANGUAGE.pairs() if bag_of_words(pair[0]) == bag_of_words(words)]
    assert LANGUAGE.ceiling(same) == 1 / readings


# --- tokens ---------------------------------------------------------------------------------------


def test_tokens_on_either_side():
    sentences = ["dog bites man", "today old dog bites man"]
    right, right_real = LANGUAGE.source_tokens(sentences)
    left, left_real = LANGUAGE.source_tokens(sentences, side="left")
    assert right.shape == left.shape == (2, 5)
    np.testing.assert_array_equal(right_real[0], [True] * 3 + [False] * 2)
    np.testing.assert_array_equal(left_real[0], [False] * 2 + [True] * 3)
    np.testing.assert_array_equal(left[left_real], right[right_real])
    assert not right[~right_real].any()
    assert not left[~left_real].any()
    names = LANGUAGE.source_names
    assert [names[token] for token in left[1]] == sentences[1].split()


def test_batch_reads_the_answer_one_place_late():
    pairs = [LANGUAGE.pairs()[n] for n in (0, 40)]
    batch = LANGUAGE.batch(pairs)
    names = np.array(LANGUAGE.target_names)
    for row, (_, translation) in enumerate(pairs):
        words, real = translation.split(), batch.mask[row]
        assert names[batch.inputs["target"][row][real]].tolist() == [START, *words]
        assert names[batch.targets[row][real]].tolist() == [*words, END]
        assert set(names[batch.targets[row][~real]]) <= {PADDING}
    np.testing.assert_array_equal(batch.inputs["target_mask"], batch.mask)


def test_spelling_stops_at_the_end():
    batch = LANGUAGE.batch(LANGUAGE.pairs())
    assert [LANGUAGE.spell(row) for row in batch.targets] == [t for _, t in LANGUAGE.pairs()]


def test_alignment_points_at_the_translated_word():
    pairs = [("today old dog bites man", "kelo sen taru oya nak"),
             ("old dog bites old man", "kelo sen taru sen nak")]  # fmt: skip
    place, clear = LANGUAGE.alignment(pairs)
    assert place.shape == (2, 6)
    assert place[0, :5].tolist() == [2, 1, 4, 0, 3]
    assert clear[0].tolist() == [True] * 5 + [False]
    assert clear[1].tolist() == [True, False, True, False, True, False]
