"""Exercise feedback: stubs fail politely, solutions pass, every usual mistake gets its message."""

import importlib
import pkgutil

import numpy as np
import pytest

from posenc import checks
from posenc.checks.exercise import Exercise, Feedback, Mistake

EXERCISES = {
    f"{module.name}.{name}": exercise
    for module in pkgutil.iter_modules(checks.__path__)
    for name, exercise in vars(importlib.import_module(f"posenc.checks.{module.name}")).items()
    if isinstance(exercise, Exercise)
}


def stub(*arguments):
    """Stand for the learner's unfinished function."""


@pytest.fixture(params=EXERCISES.values(), ids=EXERCISES.keys())
def exercise(request):
    return request.param


class TestEveryExercise:
    def test_fails_an_unfinished_answer(self, exercise):
        for unfinished in (None, ..., stub):
            feedback = exercise(unfinished)
            assert not feedback
            assert "Not started" in feedback.message or "Pass" in feedback.message

    def test_passes_its_solution(self, exercise):
        feedback = exercise(exercise.solution)
        assert feedback.passed, feedback.message

    def test_gives_each_usual_mistake_its_own_message(self, exercise):
        messages = [mistake.message for mistake in exercise.mistakes]
        assert len(set(messages)) == len(messages)
        for mistake in exercise.mistakes:
            feedback = exercise(mistake.answer)
            assert not feedback
            assert feedback.message == mistake.message


def double(x):
    return 2 * x


CASE = (np.arange(6.0).reshape(2, 3),)


class TestFeedback:
    def check(self, answer, **settings):
        mistakes = [Mistake(lambda x: x + 2, "You added 2 instead of doubling.")]
        return Exercise(double, [CASE], mistakes, **settings)(answer)

    def test_is_true_only_when_right(self):
        assert self.check(double)
        assert not self.check(lambda x: 3 * x)
        assert repr(Feedback(True, "Right.")) == "✓ Right."
        assert repr(Feedback(False, "No.")) == "✗ No."

    def test_names_a_usual_mistake(self):
        assert self.check(lambda x: x + 2).message == "You added 2 instead of doubling."

    def test_otherwise_names_the_first_wrong_entry(self):
        message = self.check(lambda x: np.where(x == 4, 0, 2 * x)).message
        assert "1 of 6 entries differ; the first is [1, 1]: yours is 0, expected 8" in message

    def test_names_a_wrong_shape(self):
        assert "the shape is (3, 2), expected (2, 3)" in self.check(lambda x: 2 * x.T).message

    def test_reports_an_exception_with_its_text(self):
        message = self.check(lambda x: x @ x).message
        assert message.startswith("For the arguments ([[0. 1. 2.]")
        assert "your answer raised ValueError: matmul" in message

    def test_names_a_usual_mistake_that_raises(self):
        mistakes = [Mistake(lambda x: x @ x, "A product of matrices is not a doubling.")]
        feedback = Exercise(double, [CASE], mistakes)(lambda x: np.matmul(x, x))
        assert feedback.message == "A product of matrices is not a doubling."

    def test_notices_a_changed_input(self):
        def in_place(x):
            x *= 2
            return x

        assert "in place" in self.check(in_place).message
        assert CASE[0][1, 2] == 5

    def test_wants_the_function_not_its_result(self):
        assert "Pass the function itself" in self.check(np.zeros((2, 3))).message

    def test_of_a_raised_not_implemented_error_is_that_of_a_stub(self):
        def unfinished(x):
            raise NotImplementedError

        assert "Not started yet" in self.check(unfinished).message

    def test_values_are_checked_without_calling(self):
        exercise = Exercise(3, mistakes=[Mistake(4, "One too many.")])
        assert exercise(3)
        assert exercise(4).message == "One too many."
        assert exercise(7).message == "got 7, which is not it."

    def test_booleans_are_not_numbers(self):
        mask = Exercise(lambda n: np.tri(n, dtype=bool), [(3,)])
        assert not mask(lambda n: np.tri(n))
        assert mask(lambda n: np.tri(n) > 0)

    def test_tuples_and_strings_are_compared_item_by_item(self):
        assert Exercise(("a", np.arange(3)))(("a", np.arange(3)))
        assert not Exercise(("a", np.arange(3)))(("b", np.arange(3)))
        assert "expected a tuple of 2 items" in Exercise((1, 2))((1, 2, 3)).message
        assert "item 1 of the tuple: got 3" in Exercise((1, 2))((1, 3)).message
        assert "unequal length" in Exercise(np.eye(2))([[1, 0], [0]]).message
        assert Exercise({"a": 1})({"a": 1})
        assert not Exercise({"a": 1})({"b": 1})
