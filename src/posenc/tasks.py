"""Small tasks that cannot be solved without knowing the order of the tokens.

Each task is a frozen dataclass that draws endless batches from a generator and computes its
*ceiling*: the accuracy of the best model that sees which tokens there are (and, where it must
answer, which token stands there) but not in what order. A trained model without any positional
information cannot pass it; a model above it has found out about order.

Tokens are integers. The symbols ``0 … n_symbols − 1`` are drawn uniformly and independently; what
else a task needs (a marker, a question) follows after them. `spell` writes a sequence so that one
can read it.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments


class Batch(NamedTuple):
    """What a model is given and what it should answer.

    Attributes
    ----------
    inputs : dict
        Keyword arguments of the model's `forward`; ``{"tokens": (B, L)}`` for the tasks here.
    targets : ndarray of int, shape (B, L)
        The right token at each position.
    mask : ndarray of bool, shape (B, L)
        ``True`` where the answer counts; elsewhere `targets` means nothing.
    """

    inputs: dict[str, Any]
    targets: NDArray[np.int64]
    mask: NDArray[np.bool_]


class Task(Protocol):
    """What `posenc.training.train` needs to know about a task."""

    @property
    def length(self) -> int:
        """Number of tokens of a sequence when no other length is asked for."""

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences.

        Parameters
        ----------
        rng : numpy.random.Generator
            The only source of chance.
        batch_size : int
            Number of sequences, at least 1.
        length : int, optional
            Number of tokens of each; the task's own when not given.
        """

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order."""


def expected_largest_count(draws: int, symbols: int) -> float:
    """Return how often the most frequent of uniformly drawn symbols occurs, on average.

    Exact: the sequences in which no symbol occurs more than m times are counted one symbol at a
    time, choosing the places of each. E[largest] then is the sum of P(largest > m) over m.

    Parameters
    ----------
    draws, symbols : int
        Number of draws, and of different symbols.

    Returns
    -------
    float
        Between draws / symbols and draws.

    Raises
    ------
    TypeError, ValueError
        If `draws` is not an integer of at least 0, or `symbols` not one of at least 1.

    Examples
    --------
    Two coins: HH and TT have a largest count of 2, HT and TH of 1.

    >>> expected_largest_count(2, 2)
    1.5
    """
    draws = arguments.integer("draws", draws, minimum=0)
    symbols = arguments.integer("symbols", symbols, minimum=1)
    total = symbols**draws
    larger = 0  # sum over m of the number of sequences whose largest count is above m
    for most in range(draws):
        ways = [1] + [0] * draws  # ways[n]: sequences of n draws from the symbols so far
        for _ in range(symbols):
            ways = [
                sum(math.comb(n, k) * ways[n - k] for k in range(min(n, most) + 1))
                for n in range(draws + 1)
            ]
        larger += total - ways[draws]
    return larger / total


def majority_accuracy(cases: Iterable[tuple[Hashable, Hashable]]) -> float:
    """Return the accuracy of always giving the most frequent answer to what is seen.

    Parameters
    ----------
    cases : iterable of (seen, answer)
        All cases, equally likely.

    Returns
    -------
    float
        In 0 … 1.

    Raises
    ------
    ValueError
        If there is no case.

    Examples
    --------
    >>> majority_accuracy([("ab", "a"), ("ab", "b"), ("cc", "c"), ("cc", "c")])
    0.75
    """
    answers: defaultdict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for seen, answer in cases:
        answers[seen][answer] += 1
    if not answers:
        raise ValueError("cases must hold at least one pair (seen, answer), got none")
    right = sum(max(counts.values()) for counts in answers.values())
    return right / sum(counts.total() for counts in answers.values())


@dataclass(frozen=True)
class _Sequences:
    """What all tasks have: a length, names for the tokens, and a way to write a sequence."""

    length: int

    SHORTEST: ClassVar[int]

    def __post_init__(self) -> None:
        self._length(self.length)

    @property
    def names(self) -> list[str]:
        """What the tokens are called."""
        raise NotImplementedError

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""
        return len(self.names)

    def spell(self, tokens: ArrayLike) -> str:
        """Return one sequence of tokens as text."""
        ids = arguments.integer_array("tokens", tokens, ndim=1, minimum=0)
        return " ".join(self.names[token] for token in ids)

    def _length(self, length: int | None) -> int:
        """Return the length asked for, or the task's own."""
        length = self.length if length is None else length
        return arguments.integer("length", length, minimum=self.SHORTEST)


@dataclass(frozen=True)
class _Symbols(_Sequences):
    """What the tasks over random symbols have in common."""

    n_symbols: int

    SPECIAL: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.integer("n_symbols", self.n_symbols, minimum=1)

    @property
    def names(self) -> list[str]:
        """What the tokens are called."""
        return [*map(str, range(self.n_symbols)), *self.SPECIAL]

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> NDArray[np.int64]:
        """Draw symbols of shape (batch_size, length)."""
        size = (arguments.integer("batch_size", batch_size, minimum=1), length)
        return arguments.generator("rng", rng).integers(self.n_symbols, size=size)


@dataclass(frozen=True)
class Reverse(_Symbols):
    """Write the sequence backwards: an absolute task, place i needs place L − 1 − i.

    Example: tokens ``3 1 4 1`` have the targets ``1 4 1 3``, and all four count.

    Parameters
    ----------
    length : int, default 16
    n_symbols : int, default 10

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> batch = Reverse().batch(np.random.default_rng(0), 2, length=4)
    >>> batch.inputs["tokens"][0], batch.targets[0]
    (array([8, 6, 5, 2]), array([2, 5, 6, 8]))
    """

    length: int = 16
    n_symbols: int = 10

    SHORTEST = 2

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences."""
        tokens = self._draw(rng, batch_size, self._length(length))
        return Batch({"tokens": tokens}, tokens[:, ::-1].copy(), np.ones(tokens.shape, bool))

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact).

        A token knows itself and which others there are. With an even length its answer is one of
        the others, each as likely, so it says the most frequent of them. With an odd length the
        middle token answers itself, and every token of the sequence is equally likely.

        Examples
        --------
        >>> round(Reverse().ceiling(), 3)
        0.241
        """
        length = self._length(length)
        candidates = length if length % 2 else length - 1
        return expected_largest_count(candidates, self.n_symbols) / candidates


@dataclass(frozen=True)
class ShiftByOne(_Symbols):
    """Say the token before: a relative task, every place needs the one to its left.

    Example: tokens ``3 1 4 1`` have the targets ``– 3 1 4``; the first place does not count.

    Parameters
    ----------
    length : int, default 16
    n_symbols : int, default 10

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> batch = ShiftByOne().batch(np.random.default_rng(0), 2, length=4)
    >>> batch.inputs["tokens"][0], batch.targets[0], batch.mask[0]
    (array([8, 6, 5, 2]), array([2, 8, 6, 5]), array([False,  True,  True,  True]))
    """

    length: int = 16
    n_symbols: int = 10

    SHORTEST = 2

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences."""
        tokens = self._draw(rng, batch_size, self._length(length))
        mask = np.ones(tokens.shape, bool)
        mask[:, 0] = False
        return Batch({"tokens": tokens}, np.roll(tokens, 1, axis=1), mask)

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact).

        Any of the other tokens may be the one before, each as likely: say the most frequent.

        Examples
        --------
        >>> round(ShiftByOne().ceiling(), 3)
        0.241
        """
        others = self._length(length) - 1
        return expected_largest_count(others, self.n_symbols) / others


@dataclass(frozen=True)
class WhichCameFirst(_Symbols):
    """Two special tokens A and B stand somewhere; say at the end which one stood first.

    Example: tokens ``7 B 2 2 A 9 ?`` have the answer ``B`` at the last place, the only one that
    counts. The order is all that decides: the same tokens can have the answer A.

    Parameters
    ----------
    length : int, default 16
        With the question mark at the end.
    n_symbols : int, default 10

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> task = WhichCameFirst(length=6)
    >>> batch = task.batch(np.random.default_rng(0), 2)
    >>> task.spell(batch.inputs["tokens"][0]), task.spell(batch.targets[0, -1:])
    ('A 6 B 2 3 ?', 'A')
    """

    length: int = 16
    n_symbols: int = 10

    SHORTEST = 3
    SPECIAL = ("A", "B", "?")

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences."""
        tokens = self._draw(rng, batch_size, self._length(length))
        first, second, question = self.n_symbols + np.arange(3)
        rows = np.arange(len(tokens))
        places = rng.permuted(np.tile(np.arange(tokens.shape[1] - 1), (len(tokens), 1)), axis=1)
        tokens[rows, places[:, 0]] = first
        tokens[rows, places[:, 1]] = second
        tokens[:, -1] = question
        return _answered_at_the_end(tokens, np.where(places[:, 0] < places[:, 1], first, second))

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact: all places of A and B are tried).

        Examples
        --------
        >>> WhichCameFirst().ceiling()
        0.5
        """
        places = range(self._length(length) - 1)
        pairs = itertools.permutations(places, 2)
        return majority_accuracy(("A and B", "A" if a < b else "B") for a, b in pairs)


@dataclass(frozen=True)
class DogBitesMan(_Sequences):
    """Somewhere among dots stands a sentence of three words; say at the end who does it.

    Example: tokens ``. . dog bites man . . who?`` have the answer ``dog`` at the last place, the
    only one that counts; with the same words, ``man bites dog`` has the answer ``man``.

    Parameters
    ----------
    length : int, default 8
        With the question at the end.

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> task = DogBitesMan()
    >>> batch = task.batch(np.random.default_rng(1), 2)
    >>> task.spell(batch.inputs["tokens"][0]), task.spell(batch.targets[0, -1:])
    ('. . . man hears bird . who?', 'man')
    """

    length: int = 8

    SHORTEST = 4
    NOUNS = ("dog", "man", "cat", "bird")
    VERBS = ("bites", "sees", "hears")

    @property
    def names(self) -> list[str]:
        """What the tokens are called."""
        return [*self.NOUNS, *self.VERBS, ".", "who?"]

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sentences and the places where they start."""
        length = self._length(length)
        arguments.integer("batch_size", batch_size, minimum=1)
        sentences = np.array(list(self._sentences()))
        chosen = sentences[
            arguments.generator("rng", rng).integers(len(sentences), size=batch_size)
        ]
        start = rng.integers(length - 3, size=(batch_size, 1))
        tokens = np.full((batch_size, length), self.vocab_size - 2)
        np.put_along_axis(tokens, start + np.arange(3), chosen, axis=1)
        tokens[:, -1] = self.vocab_size - 1
        return _answered_at_the_end(tokens, chosen[:, 0])

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact: all sentences are tried).

        Examples
        --------
        >>> DogBitesMan().ceiling()
        0.5
        """
        self._length(length)  # where the sentence stands changes nothing in the words
        return majority_accuracy((tuple(sorted(words)), words[0]) for words in self._sentences())

    def _sentences(self) -> Iterable[tuple[int, int, int]]:
        """Go through all of subject, verb, object; nobody does it to himself."""
        nouns = range(len(self.NOUNS))
        verbs = range(len(self.NOUNS), len(self.NOUNS) + len(self.VERBS))
        return ((s, v, o) for s, o in itertools.permutations(nouns, 2) for v in verbs)


@dataclass(frozen=True)
class KthToken(_Symbols):
    """The last token is a number k; say the token at place k: content points to a position.

    Example: tokens ``3 1 4 1 #2`` have the answer ``4`` at the last place, the only one that
    counts; places are counted from 0.

    Parameters
    ----------
    length : int, default 12
        With the number at the end. It is also the longest that can be asked for, because there is
        one token ``#k`` for each of the length − 1 places.
    n_symbols : int, default 10

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> task = KthToken(length=6)
    >>> batch = task.batch(np.random.default_rng(0), 2)
    >>> task.spell(batch.inputs["tokens"][0]), task.spell(batch.targets[0, -1:])
    ('8 6 5 2 3 #2', '5')
    """

    length: int = 12
    n_symbols: int = 10

    SHORTEST = 2

    @property
    def names(self) -> list[str]:
        """What the tokens are called."""
        return [*super().names, *(f"#{k}" for k in range(self.length - 1))]

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences and numbers."""
        length = self._within(length)
        tokens = self._draw(rng, batch_size, length)
        k = rng.integers(length - 1, size=len(tokens))
        answers = tokens[np.arange(len(tokens)), k]
        tokens[:, -1] = self.n_symbols + k
        return _answered_at_the_end(tokens, answers)

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact).

        The number says nothing without places: say the most frequent symbol.

        Examples
        --------
        >>> round(KthToken().ceiling(), 3)
        0.266
        """
        symbols = self._within(length) - 1
        return expected_largest_count(symbols, self.n_symbols) / symbols

    def _within(self, length: int | None) -> int:
        length = self._length(length)
        if length > self.length:
            raise ValueError(
                f"length must be at most {self.length}, the task has no numbers for more places, "
                f"got {length}"
            )
        return length


@dataclass(frozen=True)
class AfterMarker(_Symbols):
    """Somewhere stands a marker; say which token comes right after it: a task of two steps.

    To find that token one must first know where the marker is, or who stands before whom.

    Example: tokens ``3 ! 4 1 5`` have the targets ``– – – 4 4``. All places after the answer
    count, so that a causal model has seen what it needs.

    Parameters
    ----------
    length : int, default 12
    n_symbols : int, default 10

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer or too small.

    Examples
    --------
    >>> task = AfterMarker(length=6)
    >>> batch = task.batch(np.random.default_rng(0), 2)
    >>> task.spell(batch.inputs["tokens"][0]), batch.targets[0], batch.mask[0].astype(int)
    ('8 6 ! 2 3 0', array([2, 2, 2, 2, 2, 2]), array([0, 0, 0, 0, 1, 1]))
    """

    length: int = 12
    n_symbols: int = 10

    SHORTEST = 3
    SPECIAL = ("!",)

    def batch(self, rng: np.random.Generator, batch_size: int, length: int | None = None) -> Batch:
        """Draw sequences and the place of the marker, at least two places before the end."""
        tokens = self._draw(rng, batch_size, self._length(length))
        n_rows, length = tokens.shape
        place = rng.integers(length - 2, size=(n_rows, 1))
        np.put_along_axis(tokens, place, self.n_symbols, axis=1)
        answers = np.take_along_axis(tokens, place + 1, axis=1)
        mask = np.arange(length) > place + 1
        return Batch({"tokens": tokens}, np.broadcast_to(answers, tokens.shape).copy(), mask)

    def ceiling(self, length: int | None = None) -> float:
        """Return the best accuracy without order (exact).

        Where it counts, the answer is one of the other symbols, each as likely: say the most
        frequent.

        Examples
        --------
        >>> round(AfterMarker().ceiling(), 3)
        0.275
        """
        others = self._length(length) - 2
        return expected_largest_count(others, self.n_symbols) / others


def _answered_at_the_end(tokens: NDArray[np.int64], answers: NDArray[np.int64]) -> Batch:
    """Make a batch in which only the last place counts."""
    mask = np.zeros(tokens.shape, bool)
    mask[:, -1] = True
    return Batch({"tokens": tokens}, np.where(mask, answers[:, np.newaxis], 0), mask)
