"""Measure the grader on a class of a hundred, and kill it a dozen times.

Run by hand: ``python tests/coursework/benchmark.py --help``. Prints CPU-seconds for each kind of
submission beside those of nbgrader alone, and whether a grader that was killed at random moments
ends with the same ``scores.csv``.
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

import course_tools
from made_class import CLASS

PR_SET_CHILD_SUBREAPER = 36
# Made to take long: their cost is the time limit of a cell, not the grader's own.
SLOW = ("endless", "stubborn", "bomb", "memories", "100 MB", "filler")

STOCK = """
import sys
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config
c = Config()
c.CourseDirectory.root = sys.argv[1]
c.ExecutePreprocessor.kernel_name = "python3"
api = NbGraderAPI(config=c)
api.generate_assignment("a1-formula")
for student in sys.argv[2:]:
    print(student, api.autograde("a1-formula", student)["success"],
          api.generate_feedback("a1-formula", student)["success"])
"""


def cpu_of(command: list[str], **options: object) -> tuple[float, float]:
    """Run a command; return the CPU-seconds of it and all it started, and the wall time."""
    before, started = os.times(), time.monotonic()
    subprocess.run(command, check=True, **options)
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)
        except ChildProcessError:
            break
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4]), time.monotonic() - started


def make_class(root: Path, count: int) -> tuple[Path, Path, list[str]]:
    """Make a course of the toy and A1, and a class: every kind once, and honest work on A1."""
    course = course_tools.new_course(root / "course")
    shutil.copytree(
        course_tools.COURSEWORK / "source" / "a1-formula", course / "source" / "a1-formula"
    )
    shutil.copy(course_tools.COURSEWORK / "checks" / "a1-formula.py", course / "checks")
    perfect = nbformat.read(course / "source" / "toy" / "toy.ipynb", as_version=4)
    for name, student in CLASS.items():
        student.hand_in(root / "submissions" / name / "toy", perfect)
    course_tools.run(course, "release")
    solved = nbformat.read(course / "source" / "a1-formula" / "a1-formula.ipynb", as_version=4)
    blank = nbformat.read(course / "release" / "a1-formula" / "a1-formula.ipynb", as_version=4)
    rng, honest = random.Random(7), []
    for number in range(count - len(CLASS)):
        done = rng.randrange(len(solved.cells) + 1)
        notebook = nbformat.from_dict(json.loads(json.dumps(solved)))
        notebook.cells = solved.cells[:done] + blank.cells[done:]
        name = f"honest{number:03d}"
        folder = root / "submissions" / name / "a1-formula"
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / "a1-formula.ipynb")
        honest.append(name)
    return course, root / "submissions", honest


def measure(root: Path, count: int) -> None:
    """Grade the class in one command and print what it cost."""
    course, folder, honest = make_class(root, count)
    environment = {
        **os.environ,
        "PYTHONPATH": str(course_tools.COURSEWORK),
        "COURSEWORK_SECRET": course_tools.SECRET,
    }
    words = [sys.executable, "-m", "posenc_grader", "--course", str(course), "grade", str(folder)]
    cpu, wall = cpu_of(words, env=environment)
    print(f"{count} submissions: {cpu:.0f} CPU-s, {wall:.0f} s; {cpu / count:.2f} CPU-s each")
    costs = {}
    for path in (course / "results").glob("*/*/*/result.json"):
        result = json.loads(path.read_text())
        costs[result["student"]] = result["cpu_seconds"]
    kinds = {
        "honest, A1": [costs[name] for name in honest],
        "made to be slow": [c for n, c in costs.items() if any(word in n for word in SLOW)],
        "others": [
            c for n, c in costs.items() if n not in honest and not any(w in n for w in SLOW)
        ],
    }
    for kind, values in kinds.items():
        print(
            f"  {kind}: {len(values)}, mean {sum(values) / len(values):.2f} CPU-s, "
            f"worst {max(values):.2f}"
        )

    few = honest[:20]
    stock = root / "stock"
    shutil.copytree(course / "source", stock / "source")
    for name in few:
        shutil.copytree(folder / name, stock / "submitted" / name)
    bin_folder = Path(sys.executable).parent
    stock_cpu, _ = cpu_of(
        [sys.executable, "-c", STOCK, str(stock), *few],
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
    )
    alone = root / "alone"
    shutil.copytree(course, alone, ignore=shutil.ignore_patterns("results", "gradebook.db*"))
    for name in few:
        shutil.copytree(folder / name, root / "few" / name)
    words[4], words[6] = str(alone), str(root / "few")
    our_cpu, _ = cpu_of(words, env=environment)
    print(
        f"{len(few)} honest ones, everything included: nbgrader {stock_cpu / len(few):.2f}, "
        f"ours {our_cpu / len(few):.2f} CPU-s each, ratio {our_cpu / stock_cpu:.2f}"
    )


def kill(root: Path, kills: int) -> bool:
    """Kill the grader at random moments on a part of the class; compare with a calm run."""
    folder = root / "part"
    perfect = nbformat.read(
        course_tools.HERE / "toy" / "source" / "toy" / "toy.ipynb", as_version=4
    )
    for name, student in CLASS.items():
        if not any(word in name for word in SLOW):
            student.hand_in(folder / name / "toy", perfect)
    calm, shaken = course_tools.new_course(root / "calm"), root / "shaken"
    started = time.monotonic()
    course_tools.run(calm, "grade", folder)
    lasts, rng, killed = time.monotonic() - started, random.Random(), 0
    same = True
    while killed < kills:
        if not shaken.exists():
            course_tools.new_course(shaken)
        process = course_tools.grader(shaken, "grade", folder)
        moment = rng.uniform(0.1, 0.4 * lasts)
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            said = process.communicate()[0].strip().split("\n")[-1]
            killed += 1
            print(f"  {killed}: killed after {moment:.1f} s, at: {said[:70]}")
        else:  # through, in spite of all: compare, and begin anew
            same &= _same_scores(calm, shaken)
            shutil.rmtree(shaken)
    if shaken.exists():
        course_tools.run(shaken, "grade", folder)
        same &= _same_scores(calm, shaken)
    return same


def _same_scores(one: Path, other: Path) -> bool:
    same = (one / "scores.csv").read_bytes() == (other / "scores.csv").read_bytes()
    print(f"  the command came to its end: scores.csv is {'the same' if same else 'ANOTHER'}")
    return same


def main() -> None:
    """Measure, then kill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=100, help="0 leaves the measuring out")
    parser.add_argument("--kills", type=int, default=12, help="0 leaves the killing out")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    same = True
    with tempfile.TemporaryDirectory() as folder:
        if options.submissions:
            measure(Path(folder), options.submissions)
        if options.kills:
            same = kill(Path(folder), options.kills)
            print(f"killed {options.kills} times: scores.csv is {'the same' if same else 'NOT'}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
