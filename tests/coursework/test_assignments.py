"""The assignments: their solutions are right, their mistakes are named, their stubs are polite."""

import contextlib
import html
import io
import json
import sys
from pathlib import Path

import nbformat
import pytest

COURSEWORK = Path(__file__).parents[2] / "coursework"
BOOK = COURSEWORK.parent / "_build" / "html"
sys.path.insert(0, str(COURSEWORK))

from posenc_grader import publish, settings, tasks, wire  # noqa: E402

ASSIGNMENTS = publish.assignments(COURSEWORK)
TASKS = {
    (name, cell): task
    for name in ASSIGNMENTS
    for cell, task in tasks.load_tasks(COURSEWORK / "checks" / f"{name}.py").items()
}
COMPUTED = [key for key, task in TASKS.items() if task.aspects]
MISTAKES = [
    (*key, number, which)
    for key in COMPUTED
    for number, aspect in enumerate(TASKS[key].aspects)
    for which in range(len(aspect.mistakes))
]


def source(name: str) -> nbformat.NotebookNode:
    return nbformat.read(COURSEWORK / "source" / name / f"{name}.ipynb", as_version=4)


def released(name: str) -> nbformat.NotebookNode:
    return nbformat.read(COURSEWORK / "release" / name / f"{name}.ipynb", as_version=4)


def run_cells(notebook: nbformat.NotebookNode) -> tuple[dict, str]:
    """Run a notebook's code here; return its names and what it printed."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, cell.id, "exec"), names)
    return names, printed.getvalue()


def verdicts(monkeypatch, task, names: dict, seed: int = 7):
    """Probe and judge a task as the grader does, without a kernel."""
    cases = [case for aspect in task.inputs(seed) for case in aspect]
    work = {"name": task.answer, "cases": [None if c is None else wire.encode(c) for c in cases]}
    published = []
    monkeypatch.setattr(wire.posenc_probe, "_publish", published.append)
    wire.posenc_probe.run(names, json.dumps(work))
    outputs = [
        {"output_type": "display_data", "data": {wire.MIME: json.loads(json.dumps(outcome))}}
        for outcome in published
    ]
    return task.judge(seed, outputs)


def solution_lines(name: str) -> set[str]:
    """Collect the telling lines of the solutions, those that no snippet of the task shows."""
    cells = source(name).cells
    given = "".join(c.source for c in cells if c.metadata.get("nbgrader", {}).get("locked"))
    lines = {
        line.strip()
        for cell in cells
        if "### BEGIN SOLUTION" in cell.source
        for line in cell.source.split("### BEGIN SOLUTION")[1].split("\n")
        if len(line.strip()) > 25 and line not in given
    }
    assert lines
    return lines


@pytest.fixture(scope="module")
def solved() -> dict[str, tuple[dict, str]]:
    return {name: run_cells(source(name)) for name in ASSIGNMENTS}


@pytest.mark.parametrize(("name", "cell"), COMPUTED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_solution_earns_every_point(monkeypatch, solved, name, cell, seed):
    for aspect, feedback in verdicts(monkeypatch, TASKS[name, cell], solved[name][0], seed):
        assert feedback, f"{aspect.name}: {feedback.message}"


@pytest.mark.parametrize(("name", "cell", "number", "which"), MISTAKES)
def test_every_usual_mistake_is_named(monkeypatch, name, cell, number, which):
    task = TASKS[name, cell]
    mistake = task.aspects[number].mistakes[which]
    _, feedback = verdicts(monkeypatch, task, {task.answer: mistake.answer})[number]
    assert not feedback
    assert feedback.message == mistake.message


@pytest.mark.parametrize(("name", "cell"), COMPUTED)
def test_no_answer_and_a_constant_earn_nothing(monkeypatch, name, cell):
    task = TASKS[name, cell]
    for names in ({}, {task.answer: lambda *arguments: 0}, {task.answer: lambda *arguments: None}):
        assert not any(feedback for _, feedback in verdicts(monkeypatch, task, names))


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_visible_checks_pass_for_the_solution_and_are_polite_to_the_stub(solved, name):
    checks = [c for c in source(name).cells if c.cell_type == "code" and c.metadata.nbgrader.grade]
    assert solved[name][1].count("these checks pass") == len(checks)
    _, printed = run_cells(released(name))
    assert printed.count("not started yet") == len(checks)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_release_is_what_the_source_gives_and_holds_no_answer(tmp_path, name):
    for folder in ("source", "checks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "source" / name).mkdir()
    (tmp_path / "source" / name / f"{name}.ipynb").write_text(
        (COURSEWORK / "source" / name / f"{name}.ipynb").read_text()
    )
    (fresh,) = publish.release(tmp_path)
    assert fresh.read_text() == (COURSEWORK / "release" / name / f"{name}.ipynb").read_text()
    lines = solution_lines(name)
    text = "\n".join(cell.source for cell in released(name).cells)
    assert not [line for line in lines if line in text]
    assert "SOLUTION" not in text
    assert text.count(settings.STUB) + text.count("*Your answer.*") == len(
        [c for c in released(name).cells if c.metadata.get("nbgrader", {}).get("solution")]
    )


@pytest.mark.skipif(not (BOOK / "index.html").exists(), reason="the book is not built")
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_built_book_shows_no_solution(name):
    lines = sorted(solution_lines(name), key=len)[-5:]  # long ones occur nowhere by chance
    for path in BOOK.rglob("*"):
        if path.suffix in (".html", ".ipynb", ".txt", ".py", ".js", ".md"):
            text = html.unescape(path.read_text(encoding="utf-8", errors="replace"))
            assert "BEGIN SOLUTION" not in text, path
            assert not [line for line in lines if line in text], path


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_points_in_the_notebook_are_the_points_of_the_checks(name):
    graded = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in source(name).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert graded == {cell: task.points for (n, cell), task in TASKS.items() if n == name}
    total = f"{sum(graded.values()):g} points"
    assert total in source(name).cells[0].source
    assert 8 <= len({task.title.split()[0] for (n, _), task in TASKS.items() if n == name}) <= 12


@pytest.mark.parametrize(("name", "cell"), COMPUTED)
def test_inputs_follow_from_the_secret(name, cell):
    task = TASKS[name, cell]
    if any(aspect.cases for aspect in task.aspects):
        one, again, other = (repr(task.inputs(tasks.seed(s, cell))) for s in ("a", "a", "b"))
        assert one == again
        assert one != other


def test_the_teachers_table_is_true():
    page = (COURSEWORK / "for-teachers.md").read_text()
    assert publish.table(COURSEWORK) in page


@pytest.mark.parametrize(("name", "cell"), TASKS)
def test_every_task_names_a_section_that_exists(name, cell):
    path, heading = TASKS[name, cell].section.split("#", 1)
    notebook = nbformat.read(COURSEWORK.parent / path, as_version=4)
    headings = [
        line.lstrip("#").strip()
        for c in notebook.cells
        if c.cell_type == "markdown"
        for line in c.source.split("\n")
        if line.startswith("#")
    ]
    assert heading in headings
    chapters = (COURSEWORK.parent / "chapters").glob("*.ipynb")
    label = f":label: {TASKS[name, cell].exercise}\\n"
    assert any(label in chapter.read_text() for chapter in chapters)
