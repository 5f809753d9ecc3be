"""A course folder with a toy assignment, and a made class graded in it, once for all tests."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from course_tools import CELL_SECONDS, HERE, new_course, run
from made_class import CLASS, Student, first, snoop


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.coursework)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, sandbox) -> Path:
    """A course whose assignments are released and known to the gradebook; to be copied."""
    root = tmp_path_factory.mktemp("prepared")
    (root / "nobody").mkdir()
    course = new_course(root / "course")
    run(course, "grade", root / "nobody")
    return course


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skip where there is no bubblewrap, but never in CI."""
    if shutil.which("bwrap") is None and not os.environ.get("CI"):
        pytest.skip("bubblewrap is not installed")


@pytest.fixture(scope="session")
def perfect() -> nbformat.NotebookNode:
    """The toy notebook with every answer filled in."""
    return nbformat.read(HERE / "toy" / "source" / "toy" / "toy.ipynb", as_version=4)


@pytest.fixture(scope="session")
def graded(tmp_path_factory, prepared, perfect) -> tuple[Path, Path, str]:
    """The made class, graded: the course, the submissions, and what the grader printed."""
    root = tmp_path_factory.mktemp("class")
    course, submissions = root / "course", root / "submissions"
    shutil.copytree(prepared, course)
    everyone = CLASS | {"snoop": Student(first(snoop(course, submissions)))}
    for name, student in everyone.items():
        student.hand_in(submissions / name / "toy", perfect)
    text = run(course, "grade", submissions, "--cell-seconds", CELL_SECONDS)
    return course, submissions, text


@pytest.fixture(scope="session")
def small_class(perfect) -> Callable[[Path], Path]:
    """Hand in the work of three students in a folder."""

    def make(folder: Path) -> Path:
        for name in ("perfect", "half", "bad json"):
            CLASS[name].hand_in(folder / name / "toy", perfect)
        return folder

    return make
