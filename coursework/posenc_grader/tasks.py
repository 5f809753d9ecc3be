"""What a task asks, on which inputs, and for how many points.

A task of an assignment is one graded cell. Its points are split over *aspects*: things an answer
may get right or wrong on its own. Each aspect has cases, made from random numbers that come from
the teacher's secret, a solution, and the usual mistakes; it is judged as `posenc.checks` judges
an exercise of the book, only that the answer has been run before, in the student's kernel.
"""

import hashlib
import hmac
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from posenc.checks.exercise import Exercise, Feedback, Mistake
from posenc_grader import wire

__all__ = ["Aspect", "Feedback", "Mistake", "Task", "load_tasks"]

Cases = Callable[[np.random.Generator], Sequence[tuple[Any, ...]]]


@dataclass(frozen=True)
class Aspect:
    """One thing an answer may get right, with its points.

    Parameters
    ----------
    name : str
        What is looked at, as the student and the teacher read it.
    points : float
    solution : callable or value
        A right answer, as in `posenc.checks.exercise.Exercise`.
    cases : callable
        Makes the inputs from a random generator; None where the answer is a value.
    mistakes : sequence of Mistake
    view : callable
        What of a result is compared, for example its dtype; the whole of it by default.
    raises : type
        The error that every case must raise, in place of a solution.
    judge : callable
        Judges the value of an answer that may be right in several ways, in place of a solution.
    tolerance : float
    """

    name: str
    points: float
    solution: Any = None
    cases: Cases | None = None
    mistakes: Sequence[Mistake] = ()
    view: Callable[[Any], Any] | None = None
    raises: type[Exception] | None = None
    judge: Callable[[Any], Feedback] | None = None
    tolerance: float = 1e-8

    def feedback(self, inputs: Sequence[tuple[Any, ...] | None], results: list[Any]) -> Feedback:
        """Judge what an answer gave on these inputs."""
        if any(isinstance(result, wire.NotDefined) for result in results):
            return Feedback(False, "The name that the task asks for is not defined.")
        if any(result is None for result in results):
            return Feedback(False, "This did not come to an end, or ended the kernel.")
        if unknown := [result for result in results if isinstance(result, wire.Unknown)]:
            return Feedback(False, f"Gave {unknown[0]}, not numbers or arrays of numbers.")
        if self.raises is not None:
            return self._refusal(results)
        if self.judge is not None:
            return self.judge(results[0])
        exercise = Exercise(
            solution=self._seen(self.solution),
            cases=[()] if self.cases is None else list(inputs),
            mistakes=[Mistake(self._seen(m.answer), m.message) for m in self.mistakes],
            tolerance=self.tolerance,
        )
        return exercise(self._seen(_replay(results)) if self.cases else results[0])

    def _refusal(self, results: list[Any]) -> Feedback:
        wanted = self.raises.__name__
        for result in results:
            if not isinstance(result, wire.Raised):
                return Feedback(False, f"A wrong input was accepted; it should raise {wanted}.")
            if result.lineage[0] == "NotImplementedError":
                return Feedback(False, Exercise(None).stub)
            if wanted not in result.lineage:
                return Feedback(False, f"Raised {result.lineage[0]} in place of {wanted}.")
        return Feedback(True, "Right.")

    def _seen(self, answer: Any) -> Any:
        if self.view is None or not callable(answer):
            return answer
        return lambda *arguments: self.view(answer(*arguments))


def _replay(results: list[Any]) -> Callable[..., Any]:
    """Make a function that returns, call by call, what the student's function returned."""
    remaining = iter(results)

    def answer(*arguments: Any) -> Any:
        result = next(remaining)
        if isinstance(result, wire.Raised):
            raise type(result.lineage[0], _base(result), {})(result.text)
        return result

    return answer


def _base(raised: wire.Raised) -> tuple[type[Exception], ...]:
    return (NotImplementedError,) if "NotImplementedError" in raised.lineage else (Exception,)


@dataclass(frozen=True)
class Task:
    """One graded cell of an assignment.

    Parameters
    ----------
    cell : str
        The ``grade_id`` of the graded cell.
    answer : str
        The name that the student defines; empty for a written answer, which a person reads.
    title : str
    objective : str
        What the student shows to be able to do.
    section : str
        Where the book teaches it: ``chapters/02-the-formula.ipynb#Heading``.
    exercise : str
        The label of the exercise in that chapter which prepares for the task.
    aspects : sequence of Aspect
    written : float
        The points of a written answer.
    """

    cell: str
    answer: str
    title: str
    objective: str
    section: str
    exercise: str
    aspects: Sequence[Aspect] = ()
    written: float = 0

    @property
    def points(self) -> float:
        """The most that an answer can earn."""
        return self.written or sum(aspect.points for aspect in self.aspects)

    def inputs(self, seed: int) -> list[list[tuple[Any, ...] | None]]:
        """Make the inputs of every aspect; None stands for looking up a value."""
        rng = np.random.default_rng(seed)
        return [[None] if a.cases is None else list(a.cases(rng)) for a in self.aspects]

    def judge(self, seed: int, outputs: list[dict[str, Any]]) -> list[tuple[Aspect, Feedback]]:
        """Judge the outcomes that a probe left in a cell's outputs, aspect by aspect."""
        inputs = self.inputs(seed)
        results = iter(wire.outcomes(outputs, sum(map(len, inputs))))
        return [
            (aspect, aspect.feedback(cases, [next(results) for _ in cases]))
            for aspect, cases in zip(self.aspects, inputs, strict=True)
        ]


def seed(secret: str, *about: str) -> int:
    """Derive a seed from the teacher's secret: without it nobody can tell the inputs."""
    digest = hmac.new(secret.encode(), "\0".join(about).encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:16], "big")


def load_tasks(path: Path) -> dict[str, Task]:
    """Load an assignment's tasks from its file in ``checks/``, by the id of their cell."""
    spec = importlib.util.spec_from_file_location(f"checks_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {task.cell: task for task in module.TASKS}
