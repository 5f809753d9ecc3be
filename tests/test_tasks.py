"""The tasks: right answers, and ceilings that are really the best one can do without order."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.tasks import (
    AfterMarker,
    DogBitesMan,
    KthToken,
    Reverse,
    ShiftByOne,
    WhichCameFirst,
    expected_largest_count,
    majority_accuracy,
)

TASKS = [Reverse, ShiftByOne, WhichCameFirst, DogBitesMan, KthToken, AfterMarker]


def drawn(task, batch_size=40, seed=0, length=None):
    batch = task.batch(np.random.default_rng(seed), batch_size, length)
    return batch.inputs["tokens"].tolist(), batch.targets.tolist(), batch.mask.tolist()


# --- the right answers ----------------------------------------------------------------------------


def test_reverse():
    for tokens, targets, mask in zip(*drawn(Reverse(length=5)), strict=True):
        assert targets == tokens[::-1]
        assert all(mask)


def test_shift_by_one():
    for tokens, targets, mask in zip(*drawn(ShiftByOne(length=5)), strict=True):
        assert targets[1:] == tokens[:-1]
        assert mask == [False, True, True, True, True]


def test_which_came_first():
    task = WhichCameFirst(length=6, n_symbols=4)
    answers = Counter()
    for tokens, targets, mask in zip(*drawn(task), strict=True):
        assert tokens[-1] == 6
        assert tokens.count(4) == tokens.count(5) == 1
        assert targets[-1] == (4 if tokens.index(4) < tokens.index(5) else 5)
        assert mask == [False] * 5 + [True]
        answers[targets[-1]] += 1
    assert min(answers.values()) > 10


def test_dog_bites_man():
    task = DogBitesMan()
    for tokens, targets, mask in zip(*drawn(task, 200), strict=True):
        words = task.spell(tokens).split()
        start = min(i for i, word in enumerate(words) if word != ".")
        subject, verb, obj = words[start : start + 3]
        assert subject in task.NOUNS
        assert verb in task.VERBS
        assert obj in task.NOUNS
        assert subject != obj
        assert words == ["."] * start + [subject, verb, obj] + ["."] * (4 - start) + ["who?"]
        assert task.spell(targets[-1:]) == subject
        assert mask == [False] * 7 + [True]
    assert len({tuple(tokens) for tokens in drawn(task, 2000)[0]}) == 5 * 4 * 3 * 3


def test_kth_token():
    task = KthToken(length=6, n_symbols=4)
    asked = Counter()
    for tokens, targets, mask in zip(*drawn(task), strict=True):
        k = tokens[-1] - 4
        assert targets[-1] == tokens[k]
        assert mask == [False] * 5 + [True]
        asked[k] += 1
    assert asked.keys() == {0, 1, 2, 3, 4}


def test_after_marker():
    task = AfterMarker(length=6, n_symbols=4)
    places = Counter()
    for tokens, targets, mask in zip(*drawn(task, 200), strict=True):
        place = tokens.index(4)
        assert set(targets) == {tokens[place + 1]}
        assert mask == [i > place + 1 for i in range(6)]
        assert any(mask)
        places[place] += 1
    assert places.keys() == {0, 1, 2, 3}


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_is_what_it_says(task):
    task = task()
    batch = task.batch(np.random.default_rng(0), 7)
    shape = (7, task.length)
    assert batch.inputs.keys() == {"tokens"}
    assert batch.inputs["tokens"].shape == batch.targets.shape == batch.mask.shape == shape
    assert batch.mask.dtype == bool
    assert batch.inputs["tokens"].max() < task.vocab_size
    assert batch.targets.max() < task.vocab_size
    assert min(batch.inputs["tokens"].min(), batch.targets.min()) >= 0
    assert len(task.spell(batch.inputs["tokens"][0]).split()) == task.length


@pytest.mark.parametrize("task", TASKS)
def test_batches_depend_on_the_generator_alone(task):
    assert drawn(task(), seed=3) == drawn(task(), seed=3)
    assert drawn(task(), seed=3) != drawn(task(), seed=4)
    assert len(drawn(task(), length=5)[0][0]) == 5


# --- ceilings -------------------------------------------------------------------------------------


def what_is_seen(tokens, i):
    """What a model without order knows at place i: the token there, and which ones there are."""
    return (tokens[i], tuple(sorted(tokens)))


@pytest.mark.parametrize(
    "task",
    [
        Reverse(length=4, n_symbols=3),
        Reverse(length=5, n_symbols=3),
        ShiftByOne(length=4, n_symbols=3),
        WhichCameFirst(length=4, n_symbols=2),
        DogBitesMan(length=5),
        KthToken(length=5, n_symbols=3),
        AfterMarker(length=5, n_symbols=3),
    ],
    ids=repr,
)
def test_the_ceiling_is_what_the_best_guesser_gets_on_drawn_batches(task):
    """An independent route: learn the best answer to everything seen in many drawn sequences."""
    rows = zip(*drawn(task, 20_000), strict=True)
    cases = [
        (what_is_seen(tokens, i), targets[i])
        for tokens, targets, mask in rows
        for i in range(len(tokens))
        if mask[i]
    ]
    assert abs(majority_accuracy(cases) - task.ceiling()) < 0.02


def test_the_ceiling_of_reversing_by_trying_all_sequences():
    for length, symbols in ((2, 3), (3, 3), (4, 2), (5, 3)):
        cases = [
            (what_is_seen(tokens, i), tokens[-1 - i])
            for tokens in itertools.product(range(symbols), repeat=length)
            for i in range(length)
        ]
        expected = Reverse(length=length, n_symbols=symbols).ceiling()
        assert abs(majority_accuracy(cases) - expected) < 1e-12


@pytest.mark.parametrize("task", TASKS)
def test_a_ceiling_belongs_to_a_length(task):
    task = task(length=9)
    shorter, own = task.ceiling(5), task.ceiling()
    assert task.ceiling(9) == own
    assert (shorter == own == 0.5) or shorter > own


@given(draws=st.integers(1, 6), symbols=st.integers(1, 3))
def test_expected_largest_count(draws, symbols):
    sequences = list(itertools.product(range(symbols), repeat=draws))
    largest = [max(Counter(s).values()) for s in sequences]
    assert abs(expected_largest_count(draws, symbols) - np.mean(largest)) < 1e-12


def test_expected_largest_count_of_nothing_is_zero():
    assert expected_largest_count(0, 4) == 0


# --- border ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Reverse(length=1), ValueError, "length must be at least 2, got 1"),
        (lambda: ShiftByOne(n_symbols=0), ValueError, "n_symbols must be at least 1"),
        (lambda: WhichCameFirst(length=2), ValueError, "length must be at least 3"),
        (lambda: DogBitesMan(length=3), ValueError, "length must be at least 4"),
        (lambda: KthToken(length=2.0), TypeError, "length must be an integer, got 2.0"),
        (lambda: AfterMarker(length=2), ValueError, "length must be at least 3"),
        (lambda: Reverse().batch(0, 4), TypeError, "rng must be a numpy"),
        (lambda: DogBitesMan().batch(0, 4), TypeError, "rng must be a numpy"),
        (lambda: Reverse().batch(RNG, 0), ValueError, "batch_size must be at least 1"),
        (lambda: DogBitesMan().batch(RNG, 0), ValueError, "batch_size must be at least 1"),
        (lambda: Reverse().batch(RNG, 4, 1), ValueError, "length must be at least 2"),
        (lambda: KthToken().batch(RNG, 4, 13), ValueError, "length must be at most 12"),
        (lambda: KthToken().ceiling(13), ValueError, "length must be at most 12"),
        (lambda: AfterMarker().ceiling(2), ValueError, "length must be at least 3"),
        (lambda: Reverse().spell([[1]]), ValueError, "tokens must have 1 axes"),
        (lambda: majority_accuracy([]), ValueError, "cases must hold at least one pair"),
        (lambda: expected_largest_count(-1, 2), ValueError, "draws must be at least 0"),
        (lambda: expected_largest_count(1, 0), ValueError, "symbols must be at least 1"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
