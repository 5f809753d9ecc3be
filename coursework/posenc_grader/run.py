"""Grade a class: what is new is graded, what is graded is recorded, what failed is named.

A submission is known by its fingerprint: what was handed in, and everything that decides its
score. Its result is a folder of that name, which appears whole or not at all; it is then copied
into the gradebook in one transaction. The command can be stopped at any moment and started again.
"""

import contextlib
import csv
import fcntl
import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from traitlets.config import Config

from posenc_grader import publish
from posenc_grader.grading import grade_id
from posenc_grader.sandbox import Limits
from posenc_grader.settings import secret
from posenc_grader.submissions import Submission, find_submissions
from posenc_grader.tasks import load_tasks
from posenc_grader.worker import Job, Result, work

COLUMNS = [
    *("student", "assignment", "status", "score", "max_score", "automatic", "to_read"),
    *("seconds_late", "late_penalty", "message"),
]


@dataclass(frozen=True)
class Grader:
    """Everything one run of the grader works with."""

    course: Path
    jobs: int
    sandboxed: bool
    limits: Limits

    @property
    def gradebook(self) -> Gradebook:
        """Open the course's gradebook."""
        return Gradebook(f"sqlite:///{self.course / 'gradebook.db'}")

    @property
    def results(self) -> Path:
        """The folder of all results, one for each submission."""
        return self.course / "results"

    def released(self, assignment: str) -> Path:
        """Return the student notebook of an assignment."""
        return self.course / "release" / assignment / f"{assignment}.ipynb"


def grade(grader: Grader, folder: Path) -> list[Submission]:
    """Grade the submissions in `folder`, record them, and write ``scores.csv`` and the report."""
    with _only_one(grader.course):
        publish.release(grader.course)
        assignments = publish.assignments(grader.course)
        cells = {name: _cells(grader.released(name)) for name in assignments}
        _forget_halves(grader)
        found = find_submissions(folder, cells)
        problems = {(s.student, s.assignment): s.problem for s in found if s.problem}
        fingerprints = _Fingerprints(grader)
        templates = {name: _template(grader, name) for name in assignments}
        todo, done = [], {}
        for submission in (s for s in found if not s.problem):
            place = grader.results / submission.assignment / submission.student
            place = place / fingerprints.of(submission)
            if (place / "result.json").exists() and not Result.read(place).problem:
                done[submission] = place
            else:
                todo.append((submission, place))
        _say(
            f"{len(found)} submissions: {len(done)} graded before, {len(todo)} to grade, "
            f"{len(problems)} that cannot be graded"
        )
        known = _in_gradebook(grader)
        for submission, place in done.items():
            if (submission.student, submission.assignment) not in known:
                (place / "recorded").unlink(missing_ok=True)  # the gradebook is a new one
            _record(grader, submission, place)
        for count, (submission, place) in enumerate(_graded(grader, todo, templates), 1):
            problem = _outcome(grader, submission, place)
            if problem:
                problems[submission.student, submission.assignment] = problem
            else:
                done[submission] = place
            points = "not graded: " + problem if problem else _points(place)
            _say(f"[{count}/{len(todo)}] {submission.student} {submission.assignment} {points}")
        _withdraw(grader, problems)
        rows = _scores(grader, problems)
        _write_csv(grader.course / "scores.csv", rows)
        _write_report(grader, rows, done)
        _say(
            f"scores: {grader.course / 'scores.csv'}, feedback: {grader.course / 'feedback'}, "
            f"report: {grader.course / 'report.md'}"
        )
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _only_one(course: Path) -> Iterator[None]:
    """Let one grader work in a course folder at a time."""
    with (course / ".lock").open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by the workers
        except (BlockingIOError, PermissionError):
            raise SystemExit(f"another grader is at work in {course}") from None
        yield


def _cells(released: Path) -> set[str]:
    return {
        name for cell in nbformat.read(released, as_version=4).cells if (name := grade_id(cell))
    }


def _forget_halves(grader: Grader) -> None:
    """Remove what a run that was stopped left half done."""
    for half in grader.results.glob("*/*/*.part-*"):
        shutil.rmtree(half, ignore_errors=True)
    for folder in Path("/tmp").glob("posenc-*-*"):  # a kernel's sockets, named after its grader
        if not Path("/proc", folder.name.split("-")[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)


class _Fingerprints:
    """Names a submission's result by all that its score depends on."""

    def __init__(self, grader: Grader) -> None:
        self.grader = grader
        self.common = hashlib.sha256(secret(grader.course).encode())
        about = (version("posenc"), grader.sandboxed, grader.limits)
        self.common.update(repr(about).encode())
        for name in ("grading", "kernel", "sandbox", "tasks", "wire", "in_kernel/posenc_probe"):
            self.common.update((Path(__file__).parent / f"{name}.py").read_bytes())

    def of(self, submission: Submission) -> str:
        digest = self.common.copy()
        name = submission.assignment
        digest.update(
            f"{submission.student}\0{name}\0{sorted(submission.slips.items())}\0".encode()
        )
        checks = self.grader.course / "checks" / f"{name}.py"
        for path in (checks, self.grader.released(name), submission.path):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:24]


def _template(grader: Grader, assignment: str) -> Path:
    """Make the gradebook that a worker starts from: one assignment, no student."""
    source = grader.course / "source" / assignment / f"{assignment}.ipynb"
    version = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    path = grader.results / f"{assignment}.{version}.db"
    if not path.exists():
        part = grader.results / "template"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        config = Config()
        config.CourseDirectory.db_url = f"sqlite:///{part / 'gradebook.db'}"
        config.CourseDirectory.release_directory = str(part)
        publish.generate(grader.course, assignment, config)
        (part / "gradebook.db").rename(path)
        shutil.rmtree(part)
    with grader.gradebook as gradebook, Gradebook(f"sqlite:///{path}") as template:
        due = gradebook.find_assignment(assignment).duedate
        template.update_or_create_assignment(assignment, duedate=due)
    return path


def _graded(
    grader: Grader, todo: list[tuple[Submission, Path]], templates: dict[str, Path]
) -> Iterator[tuple[Submission, Path]]:
    """Grade in parallel, each submission in a process of its own; yield each when it is over."""
    context = multiprocessing.get_context(
        "fork"
    )  # nbgrader takes seconds to import: once is enough
    running: dict[int, tuple[BaseProcess, Submission, Path, float]] = {}
    waiting = list(reversed(todo))
    longest = grader.limits.notebook_seconds + 90
    while waiting or running:
        while waiting and len(running) < grader.jobs:
            submission, place = waiting.pop()
            place.parent.mkdir(parents=True, exist_ok=True)
            job = Job(
                grader.course,
                submission.student,
                submission.assignment,
                submission.path,
                submission.slips,
                templates[submission.assignment],
                place,
                grader.sandboxed,
                grader.limits,
            )
            process = context.Process(target=work, args=(job, os.getpid(), _log(place)))
            process.start()
            running[process.sentinel] = process, submission, place, time.monotonic()
        wait(list(running), timeout=1)
        for sentinel, (process, submission, place, started) in list(running.items()):
            if process.is_alive() and time.monotonic() - started > longest:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
            if not process.is_alive():
                process.join()
                del running[sentinel]
                yield submission, place


def _log(place: Path) -> Path:
    return place.with_name(f"{place.name}.log")


def _outcome(grader: Grader, submission: Submission, place: Path) -> str:
    """Record a result that is there; return the problem if there is none."""
    if not (place / "result.json").exists():
        return f"the grader itself failed; see {_log(place)}"
    result = Result.read(place)
    if not result.problem:
        _log(place).unlink(missing_ok=True)
        _record(grader, submission, place)
    return result.problem


def _points(place: Path) -> str:
    scores = Result.read(place).scores.values()
    unread = sum(score is None for score in scores)
    points = f"{sum(score or 0 for score in scores):g} points"
    return points + (f", {unread} answers to read" if unread else "")


def _in_gradebook(grader: Grader) -> set[tuple[str, str]]:
    """List what the gradebook holds, by student and assignment."""
    with grader.gradebook as gradebook:
        return {(s.student.id, a.name) for a in gradebook.assignments for s in a.submissions}


def _record(grader: Grader, submission: Submission, place: Path) -> None:
    """Copy a result into the course: files first, then the gradebook, then the mark of it."""
    recorded = place / "recorded"
    if recorded.exists():
        return
    student, assignment = submission.student, submission.assignment
    received = grader.course / "submitted" / student / assignment
    if submission.path.parent.resolve() != received.resolve():
        _replace(received, {f"{assignment}.ipynb": submission.path})
        for name, text in submission.slips.items():
            (received / name).write_text(text)
    for step in ("autograded", "feedback"):
        target = grader.course / step / student / assignment
        _replace(target, {p.name: p for p in (place / step / student / assignment).iterdir()})
    _into_gradebook(grader, submission, Result.read(place))
    for other in place.parent.iterdir():
        if other.is_dir() and other != place:
            shutil.rmtree(other)
    recorded.touch()


def _replace(folder: Path, files: dict[str, Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in files.items():
        shutil.copyfile(path, folder / name)


def _into_gradebook(grader: Grader, submission: Submission, result: Result) -> None:
    """Write the scores into nbgrader's gradebook, all of them or none."""
    student, assignment = submission.student, submission.assignment
    with grader.gradebook as gradebook:
        session = gradebook.db
        session.autoflush = False
        commit, session.commit = session.commit, session.flush  # one transaction, not several
        gradebook.update_or_create_student(student)
        when = {"timestamp": submission.timestamp} if submission.timestamp else {}
        gradebook.update_or_create_submission(assignment, student, **when)
        graded = gradebook.find_submission_notebook(assignment, assignment, student)
        graded.late_submission_penalty = result.late_penalty
        for entry in graded.grades:
            entry.auto_score = result.scores[entry.name]
            read_before = entry.manual_score is not None
            entry.needs_manual_grade = entry.auto_score is None or read_before
        for comment in graded.comments:
            comment.auto_comment = "No response." if comment.name in result.blank else None
        session.commit = commit
        session.commit()


def _withdraw(grader: Grader, problems: dict[tuple[str, str], str]) -> None:
    """Take back what was recorded of an earlier version of work that now cannot be graded."""
    with grader.gradebook as gradebook:
        for student, assignment in problems:
            with contextlib.suppress(MissingEntry):
                gradebook.remove_submission(assignment, student)
            for step in ("autograded", "feedback"):
                shutil.rmtree(grader.course / step / student / assignment, ignore_errors=True)
            for mark in (grader.results / assignment / student).glob("*/recorded"):
                mark.unlink()


def _scores(grader: Grader, problems: dict[tuple[str, str], str]) -> list[dict[str, object]]:
    """Read every score from the gradebook, where people's marks are as well."""
    rows = []
    with grader.gradebook as gradebook:
        students = {student.id for student in gradebook.students} | {s for s, _ in problems}
        for assignment in gradebook.assignments:
            if not assignment.submissions and assignment.name not in {a for _, a in problems}:
                continue  # nobody has handed it in, so nobody misses it
            for student in sorted(students):
                row = {"student": student, "assignment": assignment.name}
                if (student, assignment.name) not in problems:
                    try:
                        submission = gradebook.find_submission(assignment.name, student)
                    except MissingEntry:
                        row |= {"status": "missing"}
                    else:
                        row |= _row(submission)
                    rows.append(row)
    for (student, assignment), problem in problems.items():
        row = {"student": student, "assignment": assignment, "status": "error", "message": problem}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["assignment"], row["student"]))


def _row(submission) -> dict[str, object]:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    unread = [grade for grade in grades if grade.needs_manual_grade]
    penalty = submission.late_submission_penalty or 0
    return {
        "status": "to read" if unread else "graded",
        "score": "" if unread else f"{max(0.0, submission.score - penalty):g}",
        "max_score": f"{submission.max_score:g}",
        "automatic": f"{sum(grade.auto_score or 0 for grade in grades):g}",
        "to_read": f"{sum(grade.max_score for grade in unread):g}",
        "seconds_late": f"{submission.total_seconds_late:.0f}",
        "late_penalty": f"{penalty:g}",
    }


def _write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows({k: _inert(v) for k, v in row.items()} for row in rows)
    part.replace(path)


def _inert(value: object) -> object:
    """Keep a spreadsheet from taking a student's text for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@" and value[:1] else value


def _write_report(
    grader: Grader, rows: list[dict[str, object]], done: dict[Submission, Path]
) -> None:
    """Write what a teacher wants to know after a run: errors first, then what was found hard."""
    lines = ["# Grading report", ""]
    for status, count in sorted(Counter(row["status"] for row in rows).items()):
        lines.append(f"- {count} {status}")
    if not grader.sandboxed:
        lines += ["", "**Student code ran without a sandbox.**"]
    errors = [row for row in rows if row["status"] == "error"]
    if errors:
        lines += ["", "## Not graded", ""]
        lines += [f"- {r['student']}, {r['assignment']}: {_line(r['message'])}" for r in errors]
    results = [(s, Result.read(place)) for s, place in done.items()]
    notes = [(s, note) for s, r in results for note in [s.note, *r.notes] if note]
    if notes:
        lines += ["", "## Put right before grading", ""]
        lines += [f"- {s.student}, {s.assignment}: {_line(note)}" for s, note in notes]
    for assignment in sorted({s.assignment for s, _ in results}):
        of_this = [r for s, r in results if s.assignment == assignment]
        lines += ["", f"## {assignment}", "", *_by_task(grader, assignment, of_this)]
    cpu = [r.cpu_seconds for _, r in results]
    if cpu:
        lines += ["", f"{sum(cpu) / len(cpu):.1f} CPU-seconds per submission."]
    part = grader.course / "report.part"
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(grader.course / "report.md")


def _by_task(grader: Grader, assignment: str, results: list[Result]) -> Iterator[str]:
    """Tell for each task how well it went, and which feedback was given most often."""
    for task in load_tasks(grader.course / "checks" / f"{assignment}.py").values():
        scores = [r.scores[task.cell] for r in results if r.scores.get(task.cell) is not None]
        if not scores:
            continue
        mean = sum(scores) / len(scores)
        yield f"- **{task.cell}** ({task.title}): {mean:.1f} of {task.points:g} on average"
        wrong = Counter(v for r in results for v in r.verdicts.get(task.cell, []) if v[:1] == "✗")
        for verdict, count in wrong.most_common(3):
            yield f"  - {count} times: {_line(verdict)}"


def _line(text: object) -> str:
    """Make one harmless line of Markdown from text that a student may have written."""
    plain = " ".join(str(text).split())[:300]
    return "".join(f"\\{c}" if c in "\\`*_<>[]#|" else c for c in plain)
