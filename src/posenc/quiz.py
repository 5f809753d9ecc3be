"""A short quiz at the end of a chapter: written as data, answered in the page without a kernel."""

import html
import json
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple


class Choice(NamedTuple):
    """One answer a reader may pick: its text, whether it is right, and why."""

    text: str
    right: bool
    why: str


class Question:
    """A question with its choices, exactly one of which is right.

    Parameters
    ----------
    prompt : str
    *choices : tuple of (str, bool, str)
        Text, whether it is right, and the feedback shown when it is picked.

    Raises
    ------
    ValueError
        If not exactly one of at least two choices is right, or one has no feedback.
    """

    def __init__(self, prompt: str, *choices: tuple[str, bool, str]) -> None:
        self.prompt = prompt
        self.choices = [Choice(*choice) for choice in choices]
        if len(choices) < 2 or sum(choice.right for choice in self.choices) != 1:
            raise ValueError(f"one of at least two choices must be right in question {prompt!r}")
        if not all(choice.why for choice in self.choices):
            raise ValueError(f"every choice needs its feedback in question {prompt!r}")


@dataclass(frozen=True)
class Quiz:
    """Questions shown together; each says at once whether the picked answer is right, and why.

    Parameters
    ----------
    name : str
        Unique in the book, such as the chapter's short name: it makes the element ids.
    questions : list of Question

    Examples
    --------
    >>> Quiz("demo", [Question("Is 2 even?", ("Yes", True, "2 = 2·1."), ("No", False, "It is."))])
    Quiz 'demo' with 1 question
    """

    name: str
    questions: list[Question]

    def __repr__(self) -> str:
        plural = "" if len(self.questions) == 1 else "s"
        return f"Quiz {self.name!r} with {len(self.questions)} question{plural}"

    def _repr_html_(self) -> str:
        identity = f"quiz-{html.escape(self.name)}"
        parts = [self._question(f"{identity}-{n}", n, q) for n, q in enumerate(self.questions, 1)]
        script = resources.files("posenc").joinpath("quiz.js").read_text(encoding="utf-8")
        call = f"({script.strip().rstrip(';')})({json.dumps(identity)});"
        return (
            f'<form class="posenc-quiz" id="{identity}">{"".join(parts)}</form>'
            f"<script>{call}</script>"
        )

    def _question(self, identity: str, number: int, question: Question) -> str:
        choices = "".join(
            f'<label><input type="radio" name="{identity}" data-right="{str(c.right).lower()}" '
            f'data-why="{html.escape(c.why)}"> <span>{html.escape(c.text)}</span></label>'
            for c in question.choices
        )
        return (
            f"<fieldset><legend>{number}. {html.escape(question.prompt)}</legend>{choices}"
            f'<p class="posenc-quiz-feedback" aria-live="polite"></p></fieldset>'
        )
