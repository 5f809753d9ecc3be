"""Exercise feedback: say *what* is wrong with an answer, not only that it is wrong.

An exercise knows its solution and the usual mistakes, each written out as code. An answer is run
on the same inputs as all of them. If it agrees with a mistake, the feedback names that mistake;
otherwise it shows the first place where the answer differs from the solution.
"""

import copy
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Feedback:
    """The outcome of a check: true when the answer is right.

    Parameters
    ----------
    passed : bool
    message : str
        One or two sentences for the learner.
    """

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        sign = "✓" if self.passed else "✗"
        return textwrap.fill(f"{sign} {self.message}", width=76, subsequent_indent="  ")


@dataclass(frozen=True)
class Mistake:
    """A usual wrong answer, as code, with what to tell the learner who gave it."""

    answer: Any
    message: str


@dataclass(frozen=True)
class Exercise:
    """A task whose answer can be checked by running it.

    Calling the exercise with an answer gives `Feedback`.

    Parameters
    ----------
    solution : callable or value
        A right answer. If it is a function, the learner answers with a function of the same
        arguments; otherwise with a value (an array, a number, a string, a tuple of these).
    cases : sequence of tuples
        Arguments on which answers are compared; chosen so that no two axes have equal sizes.
    mistakes : sequence of Mistake
    praise : str
        What the learner should take from having solved it.
    tolerance : float
        Absolute and relative tolerance for numbers.
    """

    solution: Any
    cases: Sequence[tuple[Any, ...]] = ((),)
    mistakes: Sequence[Mistake] = ()
    praise: str = "Right."
    tolerance: float = 1e-8
    stub: str = field(default="Not started yet: replace the `...` by your answer.", repr=False)

    def __call__(self, answer: Any) -> Feedback:
        """Check an answer: a function where the solution is one, otherwise a value."""
        if answer is None or answer is ...:
            return Feedback(False, self.stub)
        if callable(self.solution) and not callable(answer):
            return Feedback(
                False, f"Pass the function itself, without calling it; got {_show(answer)}."
            )
        results = []
        for arguments in self.cases:
            given = copy.deepcopy(arguments)
            results.append(_run(answer, given))
            if results[-1] is None or results[-1] is ...:
                return Feedback(False, self.stub)
            if isinstance(results[-1], NotImplementedError):
                return Feedback(False, self.stub)
            if not _same(given, arguments, 0):
                return Feedback(
                    False, "Your answer changes its input in place. Work on a copy instead."
                )
        wanted = self._outcomes(self.solution)
        if _same(results, wanted, self.tolerance):
            return Feedback(True, self.praise)
        for mistake in self.mistakes:
            if _same(results, self._outcomes(mistake.answer), self.tolerance):
                return Feedback(False, mistake.message)
        for arguments, result, want in zip(self.cases, results, wanted, strict=True):
            difference = _difference(result, want, self.tolerance)
            if difference:
                call = f"For {_show_call(arguments)}: " if arguments else ""
                return Feedback(False, call + difference)
        raise AssertionError("an answer differs from the solution nowhere")

    def _outcomes(self, answer: Any) -> list[Any]:
        # Copied, since a mistake may be one that writes into its input.
        return [_run(answer, copy.deepcopy(arguments)) for arguments in self.cases]


def _run(answer: Any, arguments: tuple[Any, ...]) -> Any:
    """Call an answer; what it raises is its outcome, as a usual mistake may be one that raises."""
    if not callable(answer):
        return answer
    try:
        return answer(*arguments)
    except Exception as error:
        return error


def _difference(result: Any, want: Any, tolerance: float) -> str:
    """Say where a result first differs from what is wanted, or nothing."""
    if _same(result, want, tolerance):
        return ""
    if isinstance(result, Exception):
        return f"your answer raised {type(result).__name__}: {result}"
    if isinstance(want, tuple):
        if not isinstance(result, tuple) or len(result) != len(want):
            return f"expected a tuple of {len(want)} items, got {_show(result)}."
        for number, (item, wanted) in enumerate(zip(result, want, strict=True)):
            difference = _difference(item, wanted, tolerance)
            if difference:
                return f"item {number} of the tuple: {difference}"
    try:
        got, should = np.asarray(result), np.asarray(want)
    except ValueError:
        return f"got {_show(result)}, which has rows of unequal length."
    if got.shape != should.shape:
        return f"the shape is {got.shape}, expected {should.shape}."
    if (got.dtype == np.bool_) != (should.dtype == np.bool_):
        return f"the dtype is {got.dtype}, expected {should.dtype}."
    if should.ndim == 0:
        return f"got {_show(result)}, which is not it."
    wrong = [i for i in np.ndindex(should.shape) if not _same(got[i], should[i], tolerance)]
    place = ", ".join(map(str, wrong[0]))
    return (
        f"{len(wrong)} of {should.size} entries differ; the first is [{place}]: "
        f"yours is {_show(got[wrong[0]])}, expected {_show(should[wrong[0]])}."
    )


def _same(a: Any, b: Any, tolerance: float) -> bool:
    """Compare nested tuples and lists, numbers, strings and arrays; shapes must be equal."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a) is type(b) and str(a) == str(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k], tolerance) for k in a)
    try:
        a, b = np.asarray(a), np.asarray(b)
    except ValueError:  # rows of unequal length
        return False
    if a.shape != b.shape or (a.dtype == np.bool_) != (b.dtype == np.bool_):
        return False
    if np.issubdtype(a.dtype, np.number) and np.issubdtype(b.dtype, np.number):
        return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))
    return bool(np.array_equal(a, b))


def _show(value: Any) -> str:
    text = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else repr(value)
    if isinstance(value, float | np.floating):
        text = f"{value:.6g}"
    if len(text) <= 60:
        return text
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    return f"{type(value).__name__}{shape}"


def _show_call(arguments: tuple[Any, ...]) -> str:
    return f"the arguments ({', '.join(_show(argument) for argument in arguments)})"
