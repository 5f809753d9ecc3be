"""The notebook check must go red: on a failing cell, and on a stored number that is wrong."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = ROOT / "chapters" / "02-the-formula.ipynb"


def check_notebook(path):
    """Run the very command of `make test-notebooks` on one notebook."""
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.split("test-notebooks:", 1)[1].split("\ntest-book:", 1)[0]
    command = recipe[recipe.index("/pytest") + len("/pytest") :].replace("\\\n", " ").split()
    assert command[-1] == "chapters"
    return subprocess.run(
        [sys.executable, "-m", "pytest", *command[:-1], "--rootdir", str(ROOT), str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def planted(tmp_path):
    """Return a function that copies a chapter with one cell changed, and checks it."""

    def plant(change):
        notebook = nbformat.read(CHAPTER, as_version=4)
        code = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        # Imports and a few cells are enough for the planted fault to stand in a real chapter.
        del notebook.cells[code[8] :]
        change(notebook)
        path = tmp_path / CHAPTER.name
        nbformat.write(notebook, path)
        return check_notebook(path)

    return plant


def test_the_untouched_beginning_of_a_chapter_passes(planted):
    result = planted(lambda notebook: None)
    assert result.returncode == 0, result.stdout


def test_a_failing_cell_goes_red(planted):
    def change(notebook):
        notebook.cells.append(nbformat.v4.new_code_cell("assert 1 + 1 == 3, 'planted failure'"))

    result = planted(change)
    assert result.returncode == 1
    assert "planted failure" in result.stdout


def test_a_wrong_stored_number_goes_red(planted):
    def change(notebook):
        wrong = nbformat.v4.new_output(
            "execute_result", {"text/plain": "0.4752"}, execution_count=9
        )
        cell = nbformat.v4.new_code_cell("round(0.4751, 4)", outputs=[wrong], execution_count=9)
        notebook.cells.append(cell)

    result = planted(change)
    assert result.returncode == 1
    assert "0.4752" in result.stdout
    assert "0.4751" in result.stdout


def test_make_stops_at_the_first_failing_step(tmp_path):
    """A broken step must not be hidden by the exit status of a later one."""
    makefile = (ROOT / "Makefile").read_text()
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").touch()
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tmp_path / ".venv" / "installed").touch()
    for name in ("ruff", "mypy", "check-jsonschema", "zizmor", "pytest", "python", "jupyter-book"):
        broken = name == "pytest"
        tool = tools / name
        tool.write_text(f"#!/bin/sh\necho {name} ran\nexit {int(broken)}\n")
        tool.chmod(0o755)
    assert "test: lint test-code test-notebooks test-book test-coursework" in makefile
    result = subprocess.run(
        ["make", "test"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "jupyter-book ran" not in result.stdout
    assert "All checks passed" not in result.stdout
