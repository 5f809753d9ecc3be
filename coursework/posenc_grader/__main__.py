"""The command line: ``python -m posenc_grader --help``."""

import argparse
import logging
import os
import sys
from pathlib import Path

from posenc_grader import publish, run, sandbox

COURSE = Path(__file__).resolve().parent.parent
UNSAFE = "--run-student-code-unprotected-on-this-machine"
WARNING = """
WARNING: student code runs UNPROTECTED. It can read and change everything that you can: every
student's work, the hidden checks, your files, your network. Do this only on a machine that holds
nothing else, and that you throw away afterwards.
"""


def main() -> int:
    """Run one command; return the exit status."""
    options = _parser().parse_args()
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    course = options.course.resolve()
    if not (course / "source").is_dir():
        print(f"{course} is no course folder: it has no source/", file=sys.stderr)
        return 2
    return options.command(course, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m posenc_grader",
        description="Release, grade and solve the coursework. Built on nbgrader.",
    )
    parser.add_argument(
        "--course",
        type=Path,
        default=COURSE,
        metavar="DIR",
        help="the folder with source/ and checks/, which gets the gradebook (default: %(default)s)",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command, text in (
        (_release, "write the student notebooks to release/"),
        (_grade, "grade a folder of submissions; can be stopped and started again"),
        (_solutions, "write notebooks with folded solutions to solutions/"),
        (_check, "try the sandbox on this machine"),
        (_table, "print the table of objectives, tasks and points for the teachers' page"),
    ):
        name = command.__name__.strip("_").replace("_", "-")
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        if command is _grade:
            _grade_options(sub)
    return parser


def _grade_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Grade every notebook in SUBMISSIONS (student/assignment/assignment.ipynb or "
        "student/assignment.ipynb). Writes scores.csv, report.md and feedback/ into the course "
        "folder. The secret is the environment variable COURSEWORK_SECRET, else the course's file "
        "'secret', which is made when it is missing."
    )
    parser.add_argument("submissions", type=Path, metavar="SUBMISSIONS")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="submissions graded at the same time (default: %(default)s)",
    )
    parser.add_argument(
        "--cell-seconds",
        type=int,
        default=sandbox.Limits.cell_seconds,
        metavar="S",
        help="longest time for one cell (default: %(default)s)",
    )
    parser.add_argument(
        UNSAFE,
        action="store_true",
        dest="unprotected",
        help="grade without a sandbox. Student code can then read and change ALL that you can",
    )


def _release(course: Path, options: argparse.Namespace) -> int:
    for path in publish.release(course):
        print(path)
    return 0


def _solutions(course: Path, options: argparse.Namespace) -> int:
    for path in publish.solutions(course):
        print(path)
    return 0


def _table(course: Path, options: argparse.Namespace) -> int:
    print(publish.table(course))
    return 0


def _check(course: Path, options: argparse.Namespace) -> int:
    try:
        sandbox.check_sandbox(sandbox.Limits())
    except sandbox.SandboxError as error:
        print(f"no working sandbox: {error}", file=sys.stderr)
        return 1
    print("the sandbox works")
    return 0


def _grade(course: Path, options: argparse.Namespace) -> int:
    if not options.submissions.is_dir():
        print(f"{options.submissions} is no folder", file=sys.stderr)
        return 2
    limits = sandbox.Limits(cell_seconds=options.cell_seconds)
    if options.unprotected:
        print(WARNING, file=sys.stderr)
    elif _check(course, options):
        print(f"Nothing was graded. If you must: {UNSAFE}", file=sys.stderr)
        return 1
    grader = run.Grader(course, max(1, options.jobs), not options.unprotected, limits)
    run.grade(grader, options.submissions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
