"""Run the grader, and nbgrader, on a course folder, and read what they wrote."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

HERE = Path(__file__).parent
COURSEWORK = HERE.parents[1] / "coursework"
SECRET = "a secret of the tests"
# Long enough for an honest cell on a busy machine.
CELL_SECONDS = 8

sys.path.insert(0, str(COURSEWORK))


def grader(course: Path, *words: object, **environment: str) -> subprocess.Popen:
    """Start the grader's command line on a course folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "posenc_grader", "--course", str(course), *map(str, words)],
        env={
            **os.environ,
            "PYTHONPATH": str(COURSEWORK),
            "COURSEWORK_SECRET": SECRET,
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(course: Path, *words: object, **environment: str) -> str:
    """Run the grader's command line and return what it printed."""
    process = grader(course, *words, **environment)
    text, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, text
    return text


def scores(course: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Read ``scores.csv``."""
    with (course / "scores.csv").open(encoding="utf-8") as file:
        return {(row["student"], row["assignment"]): row for row in csv.DictReader(file)}


def new_course(folder: Path) -> Path:
    """Make a course folder with the toy assignment, and a second one that differs in its ids."""
    shutil.copytree(HERE / "toy", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(COURSEWORK / "nbgrader_config.py", folder)
    other = folder / "source" / "other" / "other.ipynb"
    other.parent.mkdir()
    notebook = nbformat.read(folder / "source" / "toy" / "toy.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    notebook.cells[-1].metadata.nbgrader.grade_id = "other-1"
    nbformat.write(notebook, other)
    (folder / "checks" / "other.py").write_text("TASKS = []\n")
    return folder


def nbgrader(course: Path, *words: str) -> str:
    """Run one of nbgrader's own commands in the course folder."""
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=course,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(COURSEWORK),
            "COURSEWORK_SECRET": SECRET,
        },
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
