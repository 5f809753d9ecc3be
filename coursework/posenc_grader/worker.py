"""Grade one submission in a process of its own, in a course folder of its own.

nbgrader works in a scratch folder with a copy of the gradebook in which no student stands yet.
Whatever a submission does, it cannot reach the course's gradebook or another student's work; the
result appears in one step, or not at all.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.orm import configure_mappers
from traitlets.config import Config

from posenc_grader.grading import grade_id, restore_layout
from posenc_grader.kernel import SubmissionError
from posenc_grader.sandbox import Limits
from posenc_grader.settings import configure

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # from <sys/prctl.h>

# Done once, before the processes that grade are forked from this one.
configure_mappers()
nbformat.validate(nbformat.v4.new_notebook())


@dataclass(frozen=True)
class Job:
    """What a worker needs to know."""

    course: Path
    student: str
    assignment: str
    notebook: Path
    slips: dict[str, str]
    template: Path
    destination: Path
    sandboxed: bool
    limits: Limits

    @property
    def scratch(self) -> Path:
        """The folder to work in, on the same disk as the destination."""
        return self.destination.with_name(f"{self.destination.name}.part-{os.getpid()}")


@dataclass
class Result:
    """What grading a submission gave: scores, or a problem and no scores at all."""

    student: str
    assignment: str
    scores: dict[str, float | None] = field(default_factory=dict)
    blank: list[str] = field(default_factory=list)
    verdicts: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    late_penalty: float | None = None
    problem: str = ""
    cpu_seconds: float = 0.0

    def write(self, folder: Path) -> None:
        """Write the result into a folder."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / "result.json").write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Result":
        """Read a result that was written."""
        return cls(**json.loads((folder / "result.json").read_text(encoding="utf-8")))


def work(job: Job, grader: int, log: Path) -> None:
    """Grade `job` and leave the result in its destination; the target of a worker process.

    No worker outlives the process `grader` that started it, however that ends.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != grader:
        return
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    with log.open("w", buffering=1) as file:
        sys.stdout = sys.stderr = file
        for descriptor in (1, 2):  # for what the kernel manager starts
            os.dup2(file.fileno(), descriptor)
        scratch = job.scratch
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        result = Result(job.student, job.assignment)
        try:
            _grade(job, scratch, result)
        except SubmissionError as error:
            result = Result(job.student, job.assignment, problem=str(error))
        _wait_for_kernels()
        result.cpu_seconds = round(sum(os.times()[:4]), 2)
        result.write(scratch)
        shutil.rmtree(job.destination, ignore_errors=True)
        scratch.rename(job.destination)


def _wait_for_kernels() -> None:
    """Wait until the sandboxes are gone, whose first processes are ours since bwrap has ended."""
    patience = time.monotonic() + 10
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < patience:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)


class _Autograde(Autograde):
    """nbgrader's autograder, which remembers why it failed."""

    cause: Exception | None = None

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        with self._remembered():
            super().init_assignment(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        with self._remembered():
            super().convert_single_notebook(notebook_filename)

    @contextlib.contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.cause = error
            raise


def _grade(job: Job, scratch: Path, result: Result) -> None:
    submitted = scratch / "submitted" / job.student / job.assignment
    submitted.mkdir(parents=True)
    notebook = _read(job.notebook)
    released = nbformat.read(
        job.course / "release" / job.assignment / f"{job.assignment}.ipynb", as_version=4
    )
    result.notes = restore_layout(notebook, released)
    nbformat.write(notebook, submitted / f"{job.assignment}.ipynb")
    for name, text in job.slips.items():
        (submitted / name).write_text(text)
    shutil.copy(job.template, scratch / "gradebook.db")

    config = _scratch_config(job, scratch)
    course = CourseDirectory(config=config)
    grader = _Autograde(coursedir=course, config=config)
    try:
        grader.start()
    except Exception as error:
        raise SubmissionError(_text(grader.cause or error)) from error
    with Gradebook(course.db_url) as gradebook:
        graded = gradebook.find_submission_notebook(job.assignment, job.assignment, job.student)
        result.scores = {grade.name: grade.auto_score for grade in graded.grades}
        result.blank = [c.name for c in graded.comments if c.auto_comment]
        result.late_penalty = graded.late_submission_penalty
    GenerateFeedback(coursedir=course, config=config).start()
    autograded = scratch / "autograded" / job.student / job.assignment / f"{job.assignment}.ipynb"
    for cell in nbformat.read(autograded, as_version=4).cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            result.verdicts[grade_id(cell)] = cell.outputs[0].text.split("\n")
    os.remove(scratch / "gradebook.db")


def _read(path: Path) -> nbformat.NotebookNode:
    """Read a student's notebook, keeping nothing of it but the sources and the ids of its cells."""
    try:
        raw = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        clean = nbformat.v4.new_notebook()
        for cell in raw.cells:
            about = cell.get("metadata", {}).get("nbgrader")
            kept = {"grade_id": about["grade_id"]} if about and "grade_id" in about else {}
            new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
            clean.cells.append(
                new(_joined(cell.source), metadata={"nbgrader": kept} if kept else {})
            )
    except Exception as error:
        raise SubmissionError(f"{path.name} is no notebook: {_text(error)}") from error
    return clean


def _joined(source: Any) -> str:
    return source if isinstance(source, str) else "".join(map(str, source))


def _text(error: Exception) -> str:
    known = isinstance(error, SubmissionError)
    return str(error) if known else f"{type(error).__name__}: {error}"[:300]


def _scratch_config(job: Job, scratch: Path) -> Config:
    config = configure(Config(), job.course, sandboxed=job.sandboxed, limits=job.limits)
    config.CourseDirectory.root = str(scratch)
    config.CourseDirectory.source_directory = str(job.course / "source")
    config.CourseDirectory.assignment_id = job.assignment
    config.CourseDirectory.student_id = job.student
    config.CourseDirectory.db_url = f"sqlite:///{scratch / 'gradebook.db'}"
    config.BaseConverter.permissions = 644
    return config
