"""The preprocessors that turn a submission into scores, in the order in which nbgrader runs them.

`RestoreLayout` comes before nbgrader's own checks of the cells; `InsertProbes` just before the
notebook is run, `JudgeProbes` just after, in the grader's process.
"""

import hashlib
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from posenc_grader import wire
from posenc_grader.kernel import SubmissionError
from posenc_grader.tasks import Aspect, Feedback, Task, load_tasks, seed


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name by which nbgrader knows a cell."""
    about = cell.metadata.get("nbgrader")
    return about.get("grade_id") if isinstance(about, dict) else None


def is_answer(cell: NotebookNode) -> bool:
    """Tell whether a released cell is one that students write in."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def restore_layout(submitted: NotebookNode, released: NotebookNode) -> list[str]:
    """Give a submission the layout of the released notebook; the answers stay the student's.

    Deleted, repeated, moved and edited cells are put right, and metadata come from the release.
    Cells that the student added stay behind the cell they followed. Of a repeated answer every
    copy is kept, so that the last one counts, as it did on the student's screen.

    Returns
    -------
    list of str
        What was put right.
    """
    known = {grade_id(cell): cell for cell in released.cells if grade_id(cell)}
    printed = {(cell.cell_type, cell.source) for cell in released.cells}
    answers, added = defaultdict(list), defaultdict(list)
    order, notes, after = [], [], None
    for cell in submitted.cells:
        name = grade_id(cell)
        if name in known:
            after = name
            order.append(name)
            if is_answer(known[name]):
                answers[name].append(cell.source)
            elif cell.source != known[name].source:
                notes.append(f"the text of {name} had been changed")
        elif (cell.cell_type, cell.source) not in printed and cell.source.strip():
            added[after].append(_plain(cell))
    if not order:
        raise SubmissionError("no cell of this notebook belongs to the assignment")

    cells = added[None]
    for cell in released.cells:
        name = grade_id(cell)
        if name and is_answer(cell) and answers[name]:
            *earlier, cell.source = answers[name]
            cells += [_plain(NotebookNode(cell, source=source)) for source in earlier]
        cells.append(cell)
        cells += added[name] if name else []
    repeated = sorted({name for name in order if order.count(name) > 1})
    notes += [f"{name} was there more than once" for name in repeated]
    notes += [f"{name} had been deleted" for name in known if name not in order]
    if [name for name in known if name in order] != list(dict.fromkeys(order)):
        notes.append("cells had been moved")
    submitted.cells, submitted.metadata = cells, released.metadata
    submitted.nbformat, submitted.nbformat_minor = released.nbformat, released.nbformat_minor
    return notes


def _plain(cell: NotebookNode) -> NotebookNode:
    new = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    return new.get(cell.cell_type, nbformat.v4.new_raw_cell)(cell.source)


class RestoreLayout(NbGraderPreprocessor):
    """Give every submission the layout of the released notebook."""

    release = Unicode(help="The folder of the released assignments.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Restore the layout, and log what was put right."""
        about = resources["nbgrader"]
        path = Path(self.release, about["assignment"], f"{about['notebook']}.ipynb")
        for note in restore_layout(nb, nbformat.read(path, as_version=4)):
            self.log.warning("%s: %s", about["student"], note)
        return nb, resources


class Probes(NbGraderPreprocessor):
    """What `InsertProbes` and `JudgeProbes` share: the tasks, and the seed of each."""

    checks = Unicode(help="The folder of the assignments' checks.").tag(config=True)
    secret = Unicode(help="The teacher's secret, from which inputs are derived.").tag(config=True)

    def tasks(self, resources: Any) -> dict[str, Task]:
        """Return the tasks of the assignment that is being graded."""
        return _tasks(self.checks, resources["nbgrader"]["assignment"])

    def seed(self, task: Task, resources: Any) -> int:
        """Derive the seed of a task: another one for every student and every version of the work.

        What a student learns from the feedback about inputs is of no use for the next attempt.
        """
        if not self.secret:
            raise SubmissionError("no secret is set, so no inputs can be derived")
        about = resources["nbgrader"]
        names = (about["assignment"], task.cell, about["student"], resources["work"])
        return seed(self.secret, *names)


@cache
def _tasks(checks: str, assignment: str) -> dict[str, Task]:
    return load_tasks(Path(checks, f"{assignment}.py"))


class InsertProbes(Probes):
    """Put the hidden check in the place of the visible one in every graded cell."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Replace the source of every cell that a task looks at."""
        work = "\0".join(cell.source for cell in nb.cells)
        resources["work"] = hashlib.sha256(work.encode()).hexdigest()
        resources["visible"] = {}
        todo = self.tasks(resources)
        for cell in nb.cells:
            task = todo.get(grade_id(cell))
            if task and task.aspects:
                resources["visible"][task.cell] = cell.source
                cell.source = self._probe(task, resources)
        return nb, resources

    def _probe(self, task: Task, resources: Any) -> str:
        cases = [case for aspect in task.inputs(self.seed(task, resources)) for case in aspect]
        work = {
            "name": task.answer,
            "cases": [None if c is None else wire.encode(c) for c in cases],
        }
        return f"__import__('posenc_probe').run(globals(), {json.dumps(work)!r})"


class JudgeProbes(Probes):
    """Compare what the probes brought out with the reference, and write the verdict down."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge every probe, and show the visible check in its place again."""
        todo = self.tasks(resources)
        for cell in nb.cells:
            name = grade_id(cell)
            if name in resources["visible"]:
                task = todo[name]
                verdicts = task.judge(self.seed(task, resources), cell.outputs)
                cell.source = resources["visible"][name]
                cell.outputs = _verdict(verdicts, _trouble(cell.outputs))
        return nb, resources


def _trouble(outputs: list[NotebookNode]) -> str | None:
    """Return why a probe stopped, if it did."""
    errors = [output for output in outputs if output.output_type == "error"]
    names = {"CellTimeoutError": "it took too long"}
    return names.get(errors[-1].ename, errors[-1].evalue) if errors else None


def _verdict(verdicts: list[tuple[Aspect, Feedback]], trouble: str | None) -> list[NotebookNode]:
    """Write a verdict as outputs: the lines to read, and the number that nbgrader takes."""
    lines = [
        f"{'✓' if f else '✗'} {a.points if f else 0:g} of {a.points:g}: {a.name}. {f.message}"
        for a, f in verdicts
    ]
    if trouble:
        lines.append(f"The check stopped early: {trouble[:200]}")
    points = sum(aspect.points for aspect, feedback in verdicts if feedback)
    return [
        new_output("stream", name="stdout", text="\n".join(lines)),
        new_output("execute_result", data={"text/plain": f"{points:g}"}, execution_count=None),
    ]
