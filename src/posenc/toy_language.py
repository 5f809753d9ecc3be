"""A made language to translate into, small enough to list every sentence of it.

The source is a sliver of English: subject, verb, object, an adjective or none before either noun,
and sometimes *today*, which may stand at the beginning or at the end. The target is invented. It
puts the verb last, an adjective after its noun, and its word for *today* always before the verb::

    old dog bites man today    →    kelo sen taru oya nak
    man bites old dog          →    taru kelo sen nak

Words are translated one by one; everything else is order. Who bites whom, and which noun an
adjective belongs to, cannot be told from the words alone, and `ToyLanguage.ceiling` computes how
far one gets without their order.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc.masks import padding_mask
from posenc.tasks import Batch, majority_accuracy

Pair = tuple[str, str]  # a sentence and its translation

PADDING, START, END = "·", "<start>", "<end>"


@dataclass(frozen=True)
class ToyLanguage:
    """The words of both languages, and the grammar that joins them.

    Token 0 is padding on either side; the target also has a token for the start and one for the
    end of a sentence.

    Attributes
    ----------
    nouns, verbs, adjectives, particles : tuple of (str, str)
        Words of the source with their translations.

    Examples
    --------
    >>> language = ToyLanguage()
    >>> len(language.source_names), len(language.target_names), len(language.pairs())
    (12, 14, 1728)
    >>> language.translate("big bird hears old cat today")
    'pion gor misu sen oya lum'
    """

    nouns: tuple[Pair, ...] = (
        ("dog", "kelo"),
        ("man", "taru"),
        ("cat", "misu"),
        ("bird", "pion"),
    )
    verbs: tuple[Pair, ...] = (("bites", "nak"), ("sees", "vey"), ("hears", "lum"))
    adjectives: tuple[Pair, ...] = (("big", "gor"), ("small", "tib"), ("old", "sen"))
    particles: tuple[Pair, ...] = (("today", "oya"),)

    @property
    def dictionary(self) -> dict[str, str]:
        """Translations of single words."""
        return dict(self.nouns + self.verbs + self.adjectives + self.particles)

    @property
    def source_names(self) -> list[str]:
        """What the tokens of the source are called."""
        return [PADDING, *self.dictionary]

    @property
    def target_names(self) -> list[str]:
        """What the tokens of the target are called."""
        return [PADDING, START, END, *self.dictionary.values()]

    def translate(self, sentence: str) -> str:
        """Return the translation of a source sentence by the rules of the grammar.

        Raises
        ------
        ValueError
            If a word is unknown, or the words are not in the order of a sentence.
        """
        words = sentence.split()
        kinds = self._kinds()
        for word in words:
            if word not in kinds:
                raise ValueError(f"sentence must use the words {sorted(kinds)}, got {word!r}")
        core = [word for word in words if kinds[word] != "particle"]
        particles = [word for word in words if kinds[word] == "particle"]
        verbs = [place for place, word in enumerate(core) if kinds[word] == "verb"]
        place = verbs[0] if verbs else 0
        phrases = core[:place], core[place + 1 :]
        at_an_edge = not particles or particles[0] in (words[0], words[-1])
        well_formed = all(
            [kinds[word] for word in phrase] in (["noun"], ["adjective", "noun"])
            for phrase in phrases
        )
        if not (well_formed and len(particles) <= 1 and at_an_edge):
            raise ValueError(
                f"sentence must read [today] [adjective] noun verb [adjective] noun [today], got "
                f"{sentence!r}"
            )
        order = [*reversed(phrases[0]), *reversed(phrases[1]), *particles, core[place]]
        return " ".join(self.dictionary[word] for word in order)

    def pairs(self) -> list[Pair]:
        """Return every sentence with its translation; nobody does anything to himself.

        Examples
        --------
        >>> ToyLanguage().pairs()[0]
        ('dog bites man', 'kelo taru nak')
        """
        nouns, verbs, adjectives, particles = (
            [word for word, _ in words]
            for words in (self.nouns, self.verbs, self.adjectives, self.particles)
        )
        edges = [("", ""), *((p, "") for p in particles), *(("", p) for p in particles)]
        sentences = (
            " ".join(f"{first} {one} {subject} {verb} {other} {thing} {last}".split())
            for subject, thing in itertools.permutations(nouns, 2)
            for verb in verbs
            for one, other in itertools.product(["", *adjectives], repeat=2)
            for first, last in edges
        )
        return [(sentence, self.translate(sentence)) for sentence in sentences]

    def split(self, held_out: int, *, rng: np.random.Generator) -> tuple[list[Pair], list[Pair]]:
        """Return the sentences to learn from and those to be tested on.

        All sentences of the same words stay together, so a tested sentence was never met in
        training, nor was any other order of its words.

        Parameters
        ----------
        held_out : int
            Number of word collections to keep for the test.
        rng : numpy.random.Generator
            Chooses them.

        Examples
        --------
        >>> learn, test = ToyLanguage().split(60, rng=np.random.default_rng(0))
        >>> len(learn) + len(test)
        1728
        """
        pairs = self.pairs()
        bags = sorted({bag_of_words(sentence) for sentence, _ in pairs})
        held_out = arguments.integer("held_out", held_out, minimum=0)
        if held_out > len(bags):
            raise ValueError(f"held_out must be at most {len(bags)}, got {held_out}")
        rng = arguments.generator("rng", rng)
        chosen = {bags[index] for index in rng.permutation(len(bags))[:held_out]}
        learn = [pair for pair in pairs if bag_of_words(pair[0]) not in chosen]
        return learn, [pair for pair in pairs if bag_of_words(pair[0]) in chosen]

    def ceiling(self, pairs: Iterable[Pair]) -> float:
        """Return the best share of right translations without order (exact).

        Examples
        --------
        >>> language = ToyLanguage()
        >>> language.ceiling(language.pairs())
        0.3125
        """
        return majority_accuracy((bag_of_words(source), target) for source, target in pairs)

    def source_tokens(
        self, sentences: Sequence[str], *, side: str = "right"
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the tokens of source sentences (B, S), padded at one side, and the real ones.

        Parameters
        ----------
        sentences : sequence of str
        side : {"right", "left"}, default "right"
            Where the padding goes.

        Returns
        -------
        tokens : ndarray of int64, shape (B, S)
        real : ndarray of bool, shape (B, S)
            ``True`` at words.

        Examples
        --------
        >>> tokens, real = ToyLanguage().source_tokens(["dog bites man", "big dog sees man"])
        >>> tokens
        array([[1, 5, 2, 0],
               [8, 1, 6, 2]])
        >>> real[0]
        array([ True,  True,  True, False])
        """
        arguments.one_of("side", side, ["right", "left"])
        tokens, real = _padded([sentence.split() for sentence in sentences], self.source_names)
        if side == "left":
            for row, length in enumerate(real.sum(axis=1)):
                tokens[row] = np.roll(tokens[row], -length)
                real[row] = np.roll(real[row], -length)
        return tokens, real

    def batch(self, pairs: Sequence[Pair]) -> Batch:
        """Return a batch for teacher forcing: what the decoder reads is the answer, one place late.

        Examples
        --------
        >>> batch = ToyLanguage().batch([("dog bites man", "kelo taru nak")])
        >>> batch.inputs["target"], batch.targets
        (array([[1, 3, 4, 7]]), array([[3, 4, 7, 2]]))
        """
        source, source_real = self.source_tokens([sentence for sentence, _ in pairs])
        whole = [[START, *translation.split(), END] for _, translation in pairs]
        names = self.target_names
        read, real = _padded([words[:-1] for words in whole], names)
        answers, _ = _padded([words[1:] for words in whole], names)
        tokens = {"source": source, "target": read}
        masks = {"source_mask": source_real, "target_mask": real}
        return Batch(tokens | masks, answers, real)

    def alignment(self, pairs: Sequence[Pair]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return which source word each target word translates, over the places of `batch`.

        Returns
        -------
        place : ndarray of int64, shape (B, L)
            Place of the source word; 0 for the end token and padding.
        clear : ndarray of bool, shape (B, L)
            ``True`` where exactly one source word can be meant.

        Examples
        --------
        >>> place, clear = ToyLanguage().alignment([("dog bites man", "kelo taru nak")])
        >>> place, clear
        (array([[0, 2, 1, 0]]), array([[ True,  True,  True, False]]))
        """
        shape = self.batch(pairs).targets.shape
        place, clear = np.zeros(shape, np.int64), np.zeros(shape, bool)
        for row, (sentence, translation) in enumerate(pairs):
            translated = [self.dictionary[word] for word in sentence.split()]
            for column, word in enumerate(translation.split()):
                place[row, column] = translated.index(word)
                clear[row, column] = translated.count(word) == 1
        return place, clear

    def spell(self, tokens: ArrayLike) -> str:
        """Return the words of one target sequence (L,), up to the end of the sentence.

        Examples
        --------
        >>> ToyLanguage().spell([3, 4, 7, 2, 9, 9])
        'kelo taru nak'
        """
        ids = arguments.integer_array("tokens", tokens, ndim=1, minimum=0)
        words = (self.target_names[token] for token in ids)
        return " ".join(itertools.takewhile(lambda word: word != END, words))

    def _kinds(self) -> dict[str, str]:
        kinds = {"noun": self.nouns, "verb": self.verbs}
        kinds |= {"adjective": self.adjectives, "particle": self.particles}
        return {word: kind for kind, words in kinds.items() for word, _ in words}


def bag_of_words(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence without their order: sorted, and as often as they occur.

    Examples
    --------
    >>> bag_of_words("man bites dog") == bag_of_words("dog bites man")
    True
    """
    return tuple(sorted(sentence.split()))


def _padded(
    sentences: Sequence[Sequence[str]], names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the tokens (B, L) of sentences, padded at the right, and which are real."""
    number = {name: token for token, name in enumerate(names)}
    real = padding_mask([len(words) for words in sentences])
    tokens = np.zeros(real.shape, np.int64)
    tokens[real] = [number[word] for words in sentences for word in words]
    return tokens, real
