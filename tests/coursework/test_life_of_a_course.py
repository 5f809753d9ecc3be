"""What happens to a course over time: new versions, late work, marks by hand, crashes, restarts."""

import os
import shutil
import signal
import time
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import (
    ExchangeFetchAssignment,
    ExchangeFetchFeedback,
    ExchangeSubmit,
)
from traitlets.config import Config

import course_tools
from made_class import CLASS, Student, answers
from posenc_grader import __main__ as command_line
from posenc_grader import run, submissions
from posenc_grader import sandbox as walls
from posenc_grader.settings import configure, secret

# nbgrader and what it stands on warn of this and that, which is not ours to mend.
pytestmark = pytest.mark.filterwarnings("default")

SECOND_TRY = Student(answers(mask="def causal_mask(length):\n    return np.tri(length) == 1"), 6)


@pytest.fixture
def command(monkeypatch):
    """Run the command line in this process."""
    monkeypatch.setenv("COURSEWORK_SECRET", course_tools.SECRET)

    def run_it(course: Path, *words: object) -> int:
        monkeypatch.setattr(
            "sys.argv", ["posenc_grader", "--course", str(course), *map(str, words)]
        )
        return command_line.main()

    return run_it


@pytest.fixture
def course(tmp_path, prepared) -> Path:
    return shutil.copytree(prepared, tmp_path / "course")


@pytest.fixture
def handed_in(tmp_path, small_class) -> Path:
    return small_class(tmp_path / "submissions")


def replace(folder: Path, student: Student, perfect: nbformat.NotebookNode) -> None:
    shutil.rmtree(folder)
    student.hand_in(folder, perfect)


def test_only_changed_work_is_graded_again_and_a_failure_leaves_no_score(
    command, course, handed_in, perfect, capsys
):
    assert command(course, "grade", handed_in) == 0
    assert course_tools.scores(course)["half", "toy"]["automatic"] == "4"
    replace(handed_in / "half" / "toy", SECOND_TRY, perfect)
    capsys.readouterr()
    assert command(course, "grade", handed_in) == 0
    assert "1 graded before, 1 to grade" in capsys.readouterr().err
    assert course_tools.scores(course)["half", "toy"]["automatic"] == "6"

    replace(handed_in / "half" / "toy", CLASS["empty file"], perfect)
    assert command(course, "grade", handed_in) == 0
    row = course_tools.scores(course)["half", "toy"]
    assert (row["status"], row["automatic"], row["score"]) == ("error", "", "")
    assert not (course / "feedback" / "half" / "toy").exists()
    with (
        Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook,
        pytest.raises(MissingEntry),
    ):
        gradebook.find_submission("toy", "half")

    replace(handed_in / "half" / "toy", SECOND_TRY, perfect)
    assert command(course, "grade", handed_in) == 0
    assert course_tools.scores(course)["half", "toy"]["automatic"] == "6"


def test_marks_given_by_hand_are_kept_and_counted(command, course, handed_in):
    assert command(course, "grade", handed_in) == 0
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        grade = gradebook.find_grade("toy-why", "toy", "toy", "perfect")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        gradebook.db.commit()
    assert command(course, "grade", handed_in) == 0
    row = course_tools.scores(course)["perfect", "toy"]
    assert (row["status"], row["score"], row["max_score"]) == ("graded", "8.5", "9")

    (course / "gradebook.db").unlink()
    assert command(course, "grade", handed_in) == 0
    row = course_tools.scores(course)["perfect", "toy"]
    assert (row["status"], row["automatic"]) == ("to read", "6")


def test_late_work_is_graded_and_its_lateness_told(command, course, handed_in):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.update_or_create_assignment("toy", duedate="2030-05-01 12:00:00 UTC")
    (handed_in / "half" / "toy" / "timestamp.txt").write_text("2030-05-01 13:00:00 UTC")
    assert command(course, "grade", handed_in) == 0
    row = course_tools.scores(course)["half", "toy"]
    assert (row["automatic"], row["seconds_late"], row["late_penalty"]) == ("4", "3600", "0")


def test_a_crash_of_a_worker_is_told_and_touches_no_other(command, course, handed_in, monkeypatch):
    real_work = run.work

    def work(job, *others):
        if job.student == "half":
            os.kill(os.getpid(), signal.SIGKILL)
        real_work(job, *others)

    monkeypatch.setattr(run, "work", work)
    assert command(course, "grade", handed_in) == 0
    row = course_tools.scores(course)["half", "toy"]
    assert (row["status"], row["score"], row["automatic"]) == ("error", "", "")
    assert "the grader itself failed" in row["message"]
    assert course_tools.scores(course)["perfect", "toy"]["automatic"] == "6"


def test_without_a_sandbox_nothing_is_graded(command, course, handed_in, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(course))
    assert command(course, "grade", handed_in) == 1
    assert "bwrap" in (said := capsys.readouterr().err)
    assert command_line.UNSAFE in said
    assert not course_tools.scores(course)
    assert not list((course / "results").glob("*/*"))


def test_a_sandbox_with_a_hole_is_refused(sandbox, monkeypatch):
    real = walls.sandboxed
    monkeypatch.setattr(
        walls,
        "sandboxed",
        lambda *arguments, **options: [
            word for word in real(*arguments, **options) if word != "--unshare-net"
        ],
    )
    with pytest.raises(walls.SandboxError, match="network"):
        walls.check_sandbox(walls.Limits())


def test_the_unsafe_flag_grades_and_says_so(command, course, tmp_path, perfect, capsys):
    SECOND_TRY.hand_in(tmp_path / "submissions" / "ada" / "toy", perfect)
    assert command(course, "grade", tmp_path / "submissions", command_line.UNSAFE) == 0
    assert "UNPROTECTED" in capsys.readouterr().err
    assert course_tools.scores(course)["ada", "toy"]["automatic"] == "6"
    assert "without a sandbox" in (course / "report.md").read_text()


def test_a_course_without_a_secret_makes_one_that_only_its_owner_reads(
    command, course, monkeypatch
):
    monkeypatch.delenv("COURSEWORK_SECRET", raising=False)
    first = secret(course)
    assert len(first) == 32
    assert secret(course) == first
    assert (course / "secret").stat().st_mode & 0o077 == 0


def test_submissions_are_found_or_refused(tmp_path, perfect):
    cells = {"toy": {"toy-why"}, "other": {"other-1"}}
    right = Student()
    right.hand_in(tmp_path / "flat", perfect)
    right.hand_in(tmp_path / "twice", perfect)
    right.hand_in(tmp_path / "twice" / "toy", perfect)
    right.hand_in(tmp_path / "unknown" / "hw7", perfect)
    right.hand_in(tmp_path / "a[b]" / "toy", perfect)
    (tmp_path / "nothing").mkdir()
    (tmp_path / "link" / "toy").mkdir(parents=True)
    (tmp_path / "link" / "toy" / "toy.ipynb").symlink_to(tmp_path / "flat" / "toy.ipynb")
    Student(name="one.ipynb").hand_in(tmp_path / "two" / "toy", perfect)
    shutil.copy(tmp_path / "two" / "toy" / "one.ipynb", tmp_path / "two" / "toy" / "other.ipynb")
    found = {s.student: s for s in submissions.find_submissions(tmp_path, cells)}
    assert (found["flat"].assignment, found["flat"].problem) == ("toy", "")
    for student, problem in {
        "twice": "handed in twice",
        "unknown": "no assignment of this name; there are other, toy",
        "a[b]": "characters that nbgrader cannot use",
        "nothing": "holds no notebook",
        "link": "is a link",
        "two": "found: one.ipynb, other.ipynb",
    }.items():
        assert problem in found[student].problem


def test_solutions_are_folded_and_checks_stay(command, course):
    assert command(course, "solutions") == 0
    notebook = nbformat.read(course / "solutions" / "toy.ipynb", as_version=4)
    folded = [c for c in notebook.cells if "solution" in c.metadata.get("tags", [])]
    assert [c.metadata.jupyter.source_hidden for c in folded] == [True, True]
    assert "np.tri(length, dtype=bool)" in folded[1].source
    assert "SOLUTION" not in "".join(c.source for c in notebook.cells)
    assert sum("with check" in c.source for c in notebook.cells) == 2
    assert "<details>" in notebook.cells[-1].source


def test_an_lms_download_goes_through_zip_collect(command, course, tmp_path, small_class):
    given = small_class(tmp_path / "given")
    archive = course / "downloaded" / "toy" / "archive" / "moodle.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("perfect", "half"):
            inside = f"{name}_12345_assignsubmission_file_toy.ipynb"
            file.write(given / name / "toy" / "toy.ipynb", inside)
    pattern = r".*/(?P<student_id>[^/_]+)_\d+_assignsubmission_file_(?P<file_id>.*)"
    course_tools.nbgrader(
        course, "zip_collect", "toy", f"--FileNameCollectorPlugin.named_regexp={pattern}"
    )
    assert command(course, "grade", course / "submitted") == 0
    assert course_tools.scores(course)["half", "toy"]["automatic"] == "4"


def test_killed_at_any_moment_it_ends_with_the_same_scores(
    prepared, tmp_path, small_class, perfect
):
    folder = small_class(tmp_path / "submissions")
    for name in ("partial", "warning", "os._exit"):
        CLASS[name].hand_in(folder / name / "toy", perfect)
    calm, shaken = (shutil.copytree(prepared, tmp_path / name) for name in ("calm", "shaken"))
    started = time.monotonic()
    course_tools.run(calm, "grade", folder)
    lasts = time.monotonic() - started
    for part in (0.5, 0.8):
        process = course_tools.grader(shaken, "grade", folder)
        time.sleep(part * lasts)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    course_tools.run(shaken, "grade", folder)
    assert (shaken / "scores.csv").read_bytes() == (calm / "scores.csv").read_bytes()
    assert not list((shaken / "results").glob("*/*/*.part-*"))


def test_the_exchange_hands_out_collects_and_gives_back(command, course, tmp_path, monkeypatch):
    exchange, home = tmp_path / "exchange", tmp_path / "home"
    home.mkdir()
    exchange.mkdir()
    exchange.chmod(0o777)
    config = configure(Config(), course)
    config.CourseDirectory.course_id = "posenc"
    config.Exchange.root, config.Exchange.cache = str(exchange), str(tmp_path / "cache")
    api = NbGraderAPI(config=config)
    assert api.release_assignment("toy")["success"]

    student = config.copy()
    student.CourseDirectory.assignment_id = "toy"
    student.Exchange.assignment_dir = str(home)
    parts = {
        "coursedir": CourseDirectory(config=student),
        "authenticator": Authenticator(config=student),
        "config": student,
    }
    monkeypatch.chdir(home)
    ExchangeFetchAssignment(**parts).start()
    shutil.copy(course / "source" / "toy" / "toy.ipynb", home / "toy" / "toy.ipynb")
    ExchangeSubmit(**parts).start()

    monkeypatch.chdir(course)
    assert api.collect("toy")["success"]
    assert command(course, "grade", course / "submitted") == 0
    (row,) = course_tools.scores(course).values()
    assert row["automatic"] == "6"
    assert api.release_feedback("toy")["success"]
    monkeypatch.chdir(home)
    student.CourseDirectory.root = str(home)
    ExchangeFetchFeedback(**parts | {"coursedir": CourseDirectory(config=student)}).start()
    (page,) = home.rglob("toy.html")
    assert "even widths" in page.read_text()
