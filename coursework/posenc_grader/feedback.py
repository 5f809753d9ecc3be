"""The page that a student gets back: plain text in a table, and nothing that could run."""

from typing import Any

import jinja2
from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades

from posenc_grader.grading import grade_id

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ assignment }}: {{ student }}</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; border: 1px solid; }
.points { white-space: nowrap; }
</style>
</head>
<body>
<h1>{{ assignment }}</h1>
<p>{{ student }}: <strong>{{ "%g"|format(score) }} of {{ "%g"|format(max_score) }} points</strong>
{%- if waiting %}, and {{ "%g"|format(waiting) }} of these still to be read by a person{% endif %}
{%- if penalty %}, after {{ "%g"|format(penalty) }} off for being late{% endif %}.</p>
<table>
<thead><tr><th scope="col">Task</th><th scope="col">Points</th><th scope="col">What was looked at
</th></tr></thead>
<tbody>
{%- for task in tasks %}
<tr><th scope="row"><a href="#{{ task.name }}">{{ task.name }}</a></th>
<td class="points">{{ task.score }}</td>
<td>{% for line in task.lines %}{{ line }}{% if not loop.last %}<br>{% endif %}{% endfor %}
</td></tr>
{%- endfor %}
</tbody>
</table>
<h2>Your work, as it was graded</h2>
{%- for cell in cells %}
<section{% if cell.name %} id="{{ cell.name }}"{% endif %}>
{%- if cell.name %}<h3>{{ cell.name }}</h3>{% endif %}
<pre>{{ cell.source }}</pre>
{%- if cell.comment %}<p>{{ cell.comment }}</p>{% endif %}
{%- if cell.output %}<pre>{{ cell.output }}</pre>{% endif %}
</section>
{%- endfor %}
</body>
</html>
"""


class GetMarks(GetGrades):
    """Fetches scores and comments, and which answers a person has still to read."""

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        name = cell.metadata.nbgrader["grade_id"]
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        cell.metadata.nbgrader["waits"] = grade.needs_manual_grade


class FeedbackExporter(Exporter):
    """Renders an autograded notebook as a student's feedback.

    Everything that came from the student is escaped text, and the page forbids scripts.
    """

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **options: Any
    ) -> tuple[str, Any]:
        """Render the notebook."""
        nb, resources = super().from_notebook_node(nb, resources, **options)
        about = resources["nbgrader"]
        graded = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade")]
        waiting = [cell.metadata.nbgrader for cell in graded if _waits(cell)]
        template = jinja2.Environment(autoescape=True).from_string(PAGE)
        page = template.render(
            assignment=about["assignment"],
            student=about["student"],
            score=about["score"],
            max_score=about["max_score"],
            penalty=about.get("late_penalty"),
            waiting=sum(about["points"] for about in waiting),
            tasks=[_task(cell) for cell in graded],
            cells=[_work(cell) for cell in nb.cells if _is_students(cell)],
        )
        return page, resources


def _waits(cell: NotebookNode) -> bool:
    return cell.metadata.nbgrader["waits"]


def _task(cell: NotebookNode) -> dict[str, Any]:
    about = cell.metadata.nbgrader
    verdict = [
        line for output in cell.get("outputs", []) for line in output.get("text", "").split("\n")
    ]
    return {
        "name": about["grade_id"],
        "score": "to be read" if _waits(cell) else f"{about['score']:g} of {about['points']:g}",
        "lines": verdict or ["a written answer"],
    }


def _is_students(cell: NotebookNode) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return bool(about.get("solution")) or (cell.cell_type == "code" and not about)


def _work(cell: NotebookNode) -> dict[str, Any]:
    lines = []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            lines.append(f"{output.ename}: {output.evalue}"[:500])
        else:
            lines.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return {
        "name": grade_id(cell),
        "source": cell.source,
        "comment": cell.metadata.get("nbgrader", {}).get("comment"),
        "output": "\n".join(lines)[:5000],
    }
