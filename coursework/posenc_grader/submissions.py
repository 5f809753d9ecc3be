"""Which notebook is whose: reads a folder of submissions as it comes from a class."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 150 * 2**20
UNUSABLE = re.compile(r"[*?\[\]+\x00-\x1f]|^\.")  # nbgrader looks for files by pattern


@dataclass(frozen=True)
class Submission:
    """A student's work on one assignment, or why there is none to grade."""

    student: str
    assignment: str
    path: Path | None
    problem: str = ""
    note: str = ""

    @property
    def slips(self) -> dict[str, str]:
        """What nbgrader's exchange put beside the notebook: the time, a key for feedback."""
        files = [self.path.parent / name for name in ("timestamp.txt", "submission_secret.txt")]
        return {f.name: f.read_text().strip() for f in files if f.is_file() and not f.is_symlink()}

    @property
    def timestamp(self) -> str | None:
        """When it was handed in, if the collecting tool wrote it down."""
        return self.slips.get("timestamp.txt")


def find_submissions(folder: Path, cells: dict[str, set[str]]) -> list[Submission]:
    """List the submissions in a folder.

    Two layouts are read: ``student/assignment/assignment.ipynb``, which is what nbgrader's
    exchange and ``nbgrader zip_collect`` leave, and ``student/assignment.ipynb``.

    Parameters
    ----------
    folder : Path
    cells : dict
        The ids of the cells of every assignment, to recognise a notebook by its content.
    """
    found = []
    for student in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
        inner = sorted(p for p in student.iterdir() if p.is_dir() and not p.name.startswith("."))
        for assignment in inner:
            found.append(_from_folder(student.name, assignment.name, assignment, cells))
        for path in sorted(student.glob("*.ipynb")):
            assignment = path.stem if path.stem in cells else _owner(path, cells) or path.stem
            found.append(_check(Submission(student.name, assignment, path), cells))
        if not inner and not list(student.glob("*.ipynb")):
            found.append(Submission(student.name, "?", None, "the folder holds no notebook"))
    return _without_doubles(found)


def _from_folder(
    student: str, assignment: str, folder: Path, cells: dict[str, set[str]]
) -> Submission:
    notebooks = sorted(folder.glob("*.ipynb"))
    named = [path for path in notebooks if path.stem == assignment]
    if len(named) != 1 and len(notebooks) != 1:
        names = ", ".join(path.name for path in notebooks) or "none"
        problem = f"one notebook was expected in the folder {assignment}, found: {names}"
        return Submission(student, assignment, None, problem)
    path = (named or notebooks)[0]
    note = "" if named else f"handed in as {path.name}"
    return _check(Submission(student, assignment, path, note=note), cells)


def _check(submission: Submission, cells: dict[str, set[str]]) -> Submission:
    """Refuse what cannot be a notebook of this assignment, with the reason."""
    problem = _problem(submission, cells)
    if not problem:
        return submission
    return Submission(submission.student, submission.assignment, submission.path, problem)


def _problem(submission: Submission, cells: dict[str, set[str]]) -> str | None:
    path, assignment = submission.path, submission.assignment
    if UNUSABLE.search(submission.student):
        return "the name of the student's folder has characters that nbgrader cannot use"
    if assignment not in cells:
        return f"there is no assignment of this name; there are {', '.join(sorted(cells))}"
    if path.is_symlink() or not path.is_file():
        return f"{path.name} is a link or no file"
    if path.stat().st_size == 0:
        return f"{path.name} is empty"
    if path.stat().st_size > LARGEST:
        return f"{path.name} is larger than {LARGEST // 2**20} MB"
    try:
        names = _cell_names(path)
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        return f"{path.name} is no notebook: {type(error).__name__}: {error}"[:300]
    if not names & cells[assignment]:
        owner = next((other for other, theirs in cells.items() if names & theirs), None)
        if owner:
            return f"{path.name} is the notebook of {owner}, not of {assignment}"
        return f"{path.name} holds none of the cells of {assignment}"
    return None


def _owner(path: Path, cells: dict[str, set[str]]) -> str | None:
    try:
        names = _cell_names(path)
    except (OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return None
    return next((assignment for assignment, theirs in cells.items() if names & theirs), None)


def _cell_names(path: Path) -> set[str]:
    """Read the ids that nbgrader gave to the cells of a notebook."""
    notebook: Any = json.loads(path.read_bytes().decode("utf-8"))
    if not isinstance(notebook.get("cells"), list):
        raise ValueError("it has no list of cells")
    about = [cell.get("metadata", {}).get("nbgrader", {}) for cell in notebook["cells"]]
    return {str(entry["grade_id"]) for entry in about if "grade_id" in entry}


def _without_doubles(found: list[Submission]) -> list[Submission]:
    """Refuse to choose where a student handed in the same assignment twice."""
    by_key: dict[tuple[str, str], list[Submission]] = {}
    for submission in found:
        by_key.setdefault((submission.student, submission.assignment), []).append(submission)
    single = []
    for (student, assignment), several in by_key.items():
        if len(several) > 1:
            names = ", ".join(str(s.path) for s in several)
            single.append(Submission(student, assignment, None, f"handed in twice: {names}"))
        else:
            single += several
    return single
