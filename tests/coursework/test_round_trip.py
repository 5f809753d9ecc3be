"""A class hands in everything a class can hand in; each gets what the work deserves."""

import filecmp
import json
import sqlite3
from pathlib import Path

import nbformat
import pytest

from course_tools import CELL_SECONDS, nbgrader, run, scores
from made_class import CLASS


@pytest.mark.parametrize("name", CLASS)
def test_each_submission_gets_the_deserved_score_or_a_clear_error(graded, name):
    course, _, text = graded
    row = scores(course)[name, "toy"]
    student = CLASS[name]
    feedback = course / "feedback" / name / "toy" / "toy.html"
    if student.points is None:
        assert (row["status"], row["score"], row["automatic"]) == ("error", "", "")
        assert student.says in row["message"]
        assert not feedback.exists()
        assert name in (course / "report.md").read_text()
    else:
        log = "".join(p.read_text() for p in (course / "results" / "toy" / name).glob("*.log"))
        assert row["status"] in ("to read", "graded"), row["message"] + log + text
        assert float(row["automatic"]) == student.points, feedback.read_text()
        assert student.says in feedback.read_text()


def test_a_written_answer_waits_for_a_person(graded):
    row = scores(graded[0])["perfect", "toy"]
    page = (graded[0] / "feedback" / "perfect" / "toy" / "toy.html").read_text()
    assert "6 of 9 points</strong>, and 3 of these still to be read" in page
    assert "to be read</td>" in page
    assert (row["status"], row["score"], row["to_read"], row["max_score"]) == (
        "to read",
        "",
        "3",
        "9",
    )


def test_nothing_is_stolen(graded):
    course, _, _ = graded
    autograded = nbformat.read(course / "autograded" / "snoop" / "toy" / "toy.ipynb", as_version=4)
    said = "".join(output.get("text", "") for output in autograded.cells[0].outputs)
    assert "Error" in said
    assert "STOLEN" not in said
    assert scores(course)["snoop", "toy"]["automatic"] == "6"


def test_nothing_is_written_outside(graded):
    course, submissions, _ = graded
    assert sqlite3.connect(course / "gradebook.db").execute(
        "pragma integrity_check"
    ).fetchone() == ("ok",)
    assert {path.name for path in course.parent.iterdir()} == {"course", "submissions"}
    graders = [path.name.split("-")[1] for path in Path("/tmp").glob("posenc-*-*")]
    assert all(Path("/proc", grader).exists() for grader in graders)
    for name in CLASS:
        if CLASS[name].points is not None:
            (given,) = (submissions / name / "toy").iterdir()
            assert filecmp.cmp(
                given, course / "submitted" / name / "toy" / "toy.ipynb", shallow=False
            )


def test_feedback_and_autograded_notebooks_are_inert(graded):
    course, _, _ = graded
    for page in course.glob("feedback/*/toy/toy.html"):
        text = page.read_text()
        assert "default-src 'none'" in text
        for tag in ("<script", "<img", "<iframe", "javascript:"):
            assert tag not in text.lower()
    assert "&lt;script&gt;" in (course / "feedback" / "scripts" / "toy" / "toy.html").read_text()
    notebook = json.loads((course / "autograded" / "scripts" / "toy" / "toy.ipynb").read_text())
    kinds = {
        kind for c in notebook["cells"] for o in c.get("outputs", []) for kind in o.get("data", {})
    }
    assert kinds <= {"text/plain"}


def test_feedback_shows_no_probe(graded):
    course, _, _ = graded
    for step in ("feedback", "autograded"):
        for path in (course / step).glob("*/toy/toy.*"):
            if "patched probe" not in str(path):
                assert "posenc_probe" not in path.read_text()


def test_the_report_tells_what_was_put_right_and_what_was_hard(graded):
    report = (graded[0] / "report.md").read_text()
    for line in (
        "other file name, toy: handed in as My homework (1).ipynb",
        "repeated cells, toy: toy-frequencies was there more than once",
        "moved cells, toy: cells had been moved",
        "deleted check, toy: toy-frequencies-check had been deleted",
        "more points, toy: the text of toy-frequencies-check had been changed",
        "times: ✗ 0 of 2: even widths.",
    ):
        assert line in report


def test_grading_again_grades_only_what_is_not_graded(graded):
    course, submissions, _ = graded
    before = (course / "scores.csv").read_bytes()
    text = run(course, "grade", submissions, "--cell-seconds", CELL_SECONDS)
    assert " 0 to grade" in text
    assert (course / "scores.csv").read_bytes() == before


def test_nbgraders_own_commands_work_in_the_same_folder_and_agree(graded):
    course, _, _ = graded
    ours = (course / "feedback" / "half" / "toy" / "toy.html").read_text()
    nbgrader(course, "autograde", "toy", "--student", "half", "--force")
    nbgrader(course, "generate_feedback", "toy", "--student", "half", "--force")
    assert (course / "feedback" / "half" / "toy" / "toy.html").read_text() == ours
    nbgrader(course, "export", "--to", "grades.csv")
    exported = (course / "grades.csv").read_text()
    assert ",half," in exported
    assert "4.0" in next(
        line for line in exported.splitlines() if line.startswith("toy,") and ",half," in line
    )
