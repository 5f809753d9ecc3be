"""Make from the sources what others get: student notebooks, notebooks with folded solutions."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from posenc_grader.grading import grade_id, is_answer
from posenc_grader.settings import configure
from posenc_grader.tasks import Task, load_tasks


def assignments(course: Path) -> list[str]:
    """List the assignments of a course: its folders in ``source/``."""
    return sorted(path.parent.name for path in (course / "source").glob("*/*.ipynb"))


def generate(course: Path, assignment: str, config: Config | None = None) -> None:
    """Have nbgrader make the student notebook of an assignment."""
    full = configure(Config(), course)
    full.CourseDirectory.assignment_id = assignment
    full.GenerateAssignment.force = True
    full.merge(config or Config())
    GenerateAssignment(coursedir=CourseDirectory(config=full), config=full).start()


def release(course: Path) -> list[Path]:
    """Write the student notebooks that are not up to date, and tell the gradebook of them.

    Returns
    -------
    list of Path
        The student notebooks, all of them.
    """
    paths = []
    for name in assignments(course):
        source = course / "source" / name / f"{name}.ipynb"
        path = course / "release" / name / f"{name}.ipynb"
        fresh = path.exists() and path.stat().st_mtime >= source.stat().st_mtime
        if not fresh or not _known(course, name):
            generate(course, name)
        paths.append(path)
    return paths


def _known(course: Path, assignment: str) -> bool:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return any(known.name == assignment for known in gradebook.assignments)


def solutions(course: Path) -> list[Path]:
    """Write the student notebooks with a folded solution after each answer cell."""
    paths = []
    for released in release(course):
        name = released.stem
        solved = nbformat.read(course / "source" / name / f"{name}.ipynb", as_version=4)
        answers = {grade_id(c): c for c in solved.cells if grade_id(c) and is_answer(c)}
        notebook = nbformat.read(released, as_version=4)
        cells = []
        for cell in notebook.cells:
            cells.append(cell)
            if grade_id(cell) in answers:
                cells.append(_folded(answers[grade_id(cell)], name))
        for cell in cells:
            cell.metadata.pop("nbgrader", None)  # for reading and trying, not for handing in
        notebook.cells = cells
        path = course / "solutions" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, path)
        paths.append(path)
    return paths


def _folded(answer: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    lines = [line for line in answer.source.split("\n") if "SOLUTION" not in line]
    identity = f"solution-{grade_id(answer)}"[:64]
    if answer.cell_type == "markdown":
        text = "\n".join(lines)
        folded = f"<details><summary>A good answer</summary>\n\n{text}\n\n</details>"
        return new_markdown_cell(folded, id=identity)
    metadata = {"jupyter": {"source_hidden": True}, "tags": ["hide-input", "solution"]}
    return new_code_cell("\n".join(lines), metadata=metadata, id=identity)


def table(course: Path) -> str:
    """Render objectives, sections, exercises, tasks, checks and points as Markdown tables."""
    parts = []
    for name in assignments(course):
        tasks = load_tasks(course / "checks" / f"{name}.py").values()
        parts.append(f"**{name}** ({sum(task.points for task in tasks):g} points)\n")
        parts.append(
            "| Task | You show that you can | Taught in | Practised in | Checked, with points |"
        )
        parts.append("|---|---|---|---|---|")
        parts += [
            f"| {t.title} | {t.objective} | {_section(t)} | {_exercise(t)} | {_checked(t)} |"
            for t in tasks
        ]
        parts.append("")
    return "\n".join(parts)


def _section(task: Task) -> str:
    path, heading = task.section.split("#", 1)
    return f"[{heading}](../{path})"


def _exercise(task: Task) -> str:
    return f"{{ref}}`{task.exercise}`"


def _checked(task: Task) -> str:
    if task.written:
        return f"a written answer, read by a person: {task.written:g}"
    return "; ".join(f"{aspect.name}: {aspect.points:g}" for aspect in task.aspects)
