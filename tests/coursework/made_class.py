"""A made class: one student for every way a submission can be right, wrong, broken or hostile.

Each student starts from the released toy notebook with every answer filled in, and then does one
thing. Six points of the toy assignment are computed, three are for a written answer.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

Notebook = nbformat.NotebookNode
FREQUENCIES = "def frequencies(d_model, base=10000.0):\n"
RIGHT = "    return base ** (-np.arange(0, d_model, 2) / d_model)"


@dataclass(frozen=True)
class Student:
    """What a student hands in, and what that deserves.

    Parameters
    ----------
    change : callable
        Changes the perfect notebook in place.
    points : float or None
        The computed points; None where the submission must be refused.
    says : str
        What the student's feedback, or the error, must contain.
    name : str
        Under which file name it is handed in.
    raw : bytes
        The bytes to hand in, in place of a notebook.
    """

    change: Callable[[Notebook], None] = lambda nb: None
    points: float | None = 6
    says: str = ""
    name: str = "toy.ipynb"
    raw: bytes | None = None

    def hand_in(self, folder: Path, perfect: Notebook) -> None:
        """Write the submission into a folder."""
        folder.mkdir(parents=True)
        raw = self.raw
        if raw is None:
            notebook = nbformat.from_dict(json.loads(json.dumps(perfect)))
            self.change(notebook)
            raw = json.dumps(notebook).encode()
        (folder / self.name).write_bytes(raw)


def index(nb: Notebook, name: str) -> int:
    """Find a cell by its id."""
    return next(
        i for i, c in enumerate(nb.cells) if c.metadata.get("nbgrader", {}).get("grade_id") == name
    )


def answers(**sources: str) -> Callable[[Notebook], None]:
    """Replace answers: ``answers(mask="def …")`` stands for the cell ``toy-mask``."""

    def change(nb: Notebook) -> None:
        for name, source in sources.items():
            nb.cells[index(nb, f"toy-{name}")].source = source

    return change


def first(source: str) -> Callable[[Notebook], None]:
    """Add a cell before all others."""
    return lambda nb: nb.cells.insert(0, new_code_cell(source))


def inside(statement: str) -> Callable[[Notebook], None]:
    """Put a statement in front of the right answer of the first task."""
    return answers(frequencies=f"{FREQUENCIES}    {statement}\n{RIGHT}")


def without(*names: str) -> Callable[[Notebook], None]:
    """Delete cells."""

    def change(nb: Notebook) -> None:
        nb.cells = [
            c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") not in names
        ]

    return change


def repeat(nb: Notebook) -> None:
    """Keep a wrong first try above the right answer, as a copy of the cell; repeat a check too."""
    place = index(nb, "toy-frequencies")
    copy = nbformat.from_dict(json.loads(json.dumps(nb.cells[place])))
    copy.source = f"{FREQUENCIES}    return 0"
    nb.cells.insert(place, copy)
    nb.cells.append(nbformat.from_dict(json.loads(json.dumps(nb.cells[place + 2]))))


def reorder(nb: Notebook) -> None:
    """Turn the notebook upside down."""
    nb.cells.reverse()


def more_points(nb: Notebook) -> None:
    """Raise the points of a check, unlock it, and empty the answer that it looks at."""
    cell = nb.cells[index(nb, "toy-frequencies-check")]
    cell.metadata.nbgrader.points = 400
    cell.metadata.nbgrader.locked = False
    cell.source = "pass"
    answers(frequencies=f"{FREQUENCIES}    return None")(nb)


def other_kernel(nb: Notebook) -> None:
    """Name a kernel that does not exist."""
    nb.metadata["kernelspec"] = {"name": "julia-9.9", "display_name": "J", "language": "julia"}


def scripts(nb: Notebook) -> None:
    """Put a script wherever one could stand."""
    script = "<script>document.title = 'stolen'</script><img src=x onerror='alert(1)'>"
    nb.cells[index(nb, "toy-why")].source = script
    nb.cells.insert(3, new_markdown_cell(script))
    nb.cells.insert(
        3,
        new_code_cell(
            f"from IPython.display import HTML, Javascript, display\nprint({script!r})\n"
            f"display(HTML({script!r}), Javascript('document.title = 1'))\n"
            f"raise ValueError({script!r})"
        ),
    )


def hundred_megabytes_stored(nb: Notebook) -> None:
    """Hand in a notebook with an enormous output stored."""
    nb.cells[index(nb, "toy-setup")].outputs = [
        {"output_type": "stream", "name": "stdout", "text": "x" * 100_000_000}
    ]


def snoop(course: Path, submissions: Path) -> str:
    """Try to read, write and reach all that is out of bounds; print STOLEN on any success."""
    return f"""
import glob, os, pathlib, socket, subprocess, sys
def attempt(what):
    try:
        print("STOLEN" if what() else "nothing", flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
for folder in {[str(course), str(submissions), str(course.parent)]!r}:
    attempt(lambda: os.listdir(folder))
attempt(lambda: open({str(course / "checks" / "toy.py")!r}).read())
attempt(lambda: open({str(course / "secret")!r}).read())
attempt(lambda: open({str(course / "gradebook.db")!r}, "r+b").write(b"x"))
attempt(lambda: [p for p in glob.glob("/tmp/**", recursive=True)
                 if p.endswith(("/toy", "toy.ipynb"))])
attempt(lambda: pathlib.Path("../stolen").write_text("x") and pathlib.Path("/stolen").exists())
attempt(lambda: pathlib.Path({str(course.parent / "stolen")!r}).write_text("x"))
attempt(lambda: socket.create_connection(("1.1.1.1", 53), 2))
attempt(lambda: socket.getaddrinfo("example.org", 80))
attempt(lambda: subprocess.run(["bwrap", "--bind", "/", "/", "true"]).returncode == 0
        and os.path.exists({str(course)!r}))
attempt(lambda: "COURSEWORK_SECRET" in str(dict(os.environ)))
attempt(lambda: [p for p in glob.glob("/proc/[0-9]*/environ") if b"SECRET" in open(p, "rb").read()])
attempt(lambda: __import__("posenc"))
attempt(lambda: __import__("posenc_grader"))
attempt(lambda: os.geteuid() == 0)
"""


ALWAYS_EQUAL = """
class Equal(float):
    def __eq__(self, other): return True
    def __array__(self, *args, **kwargs): return np.array(self)
    __ne__ = __lt__ = lambda self, other: False
    shape = property(lambda self: Equal())
"""

CLASS = {
    "perfect": Student(says="✓ 2 of 2: even widths"),
    "half": Student(
        answers(mask="def causal_mask(length):\n    return ~np.tri(length, dtype=bool)"),
        4,
        "upside down: True means may attend",
    ),
    "partial": Student(
        answers(
            frequencies=f"{FREQUENCIES}    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)"
        ),
        5,
        "✗ 0 of 1: another base",
    ),
    "usual mistake": Student(
        answers(frequencies=FREQUENCIES + RIGHT.replace("-np", "-2 * np")),
        2,
        "The exponent is twice too large",
    ),
    "blank": Student(
        answers(
            frequencies=f"{FREQUENCIES}    raise NotImplementedError('not written yet')",
            mask="def causal_mask(length):\n    raise NotImplementedError('not written yet')",
        ),
        0,
        "Not started yet",
    ),
    "syntax error": Student(
        answers(mask="def causal_mask(length)\n    return 1"), 4, "not defined"
    ),
    "warning": Student(inside("import warnings; warnings.warn('careful')")),
    "debug prints": Student(inside("print('d_model is', d_model); print('see', base)")),
    "endless cell": Student(first("while True: pass")),
    "endless function": Student(inside("while True: pass"), 2, "took too long"),
    "endless at one input": Student(inside("while d_model % 2: pass"), 4, "did not come to an end"),
    "stubborn loop": Student(
        first("while True:\n    try:\n        while True: pass\n    except BaseException: pass")
    ),
    "sys.exit": Student(first("import sys; sys.exit(0)")),
    "os._exit": Student(first("import os; os._exit(0)")),
    "os._exit in a function": Student(inside("import os; os._exit(0)"), 2, "ended the kernel"),
    "kernel killed": Student(first("import os; os.kill(os.getpid(), 9)")),
    "memory bomb": Student(inside("x = bytearray(2**36)"), 2, "MemoryError"),
    "many memories": Student(
        inside("import os\n    while True: os.fork(); hold = bytearray(b'x') * 2**28"), 2
    ),
    "fork bomb": Student(inside("import os\n    while True: os.fork()"), 2),
    "100 MB printed": Student(first("for _ in range(100): print('x' * 1_000_000)")),
    "100 MB stored": Student(hundred_megabytes_stored),
    "disk filler": Student(
        first("for n in range(10_000): open(f'/tmp/{n}', 'wb').write(bytes(2**20))")
    ),
    "deleted check": Student(without("toy-frequencies-check"), 6),
    "deleted cells": Student(
        without("toy-mask", "toy-mask-check", "toy-setup"), 4, "Not started yet"
    ),
    "repeated cells": Student(repeat),
    "moved cells": Student(reorder),
    "more points": Student(more_points, 2),
    "other kernel": Student(other_kernel),
    "bad json": Student(points=None, raw=b'{"cells": [', says="toy.ipynb is no notebook"),
    "no notebook": Student(points=None, raw=b'{"cells": [{"cell_type": 3}]}', says="toy.ipynb"),
    "not text": Student(points=None, raw=b"\x89PNG\r\n\x1a\n\xff", says="toy.ipynb is no notebook"),
    "empty file": Student(points=None, raw=b"", says="toy.ipynb is empty"),
    "other file name": Student(name="My homework (1).ipynb"),
    "other file type": Student(points=None, name="toy.py", says="found: none"),
    "other assignment": Student(
        lambda nb: [
            c.metadata.nbgrader.update(grade_id=f"other-{n}")
            for n, c in enumerate(nb.cells)
            if "nbgrader" in c.metadata
        ],
        None,
        "is the notebook of other, not of toy",
    ),
    "patched numpy": Student(
        lambda nb: (
            first(
                "import numpy as np, numpy.testing\n"
                "np.allclose = np.array_equal = lambda *a, **k: True\n"
                "numpy.testing.assert_allclose = lambda *a, **k: None"
            )(nb),
            answers(frequencies=f"{FREQUENCIES}    return np.zeros(1)")(nb),
        ),
        2,
    ),
    "patched probe": Student(
        lambda nb: first(
            "import posenc_probe\nposenc_probe.encode = lambda value: {'plain': True}\n"
            "posenc_probe.run = lambda *a: print('6 of 6')"
        )(nb),
        0,
        "did not come to an end",
    ),
    "ast hook": Student(
        lambda nb: (
            first(
                "import ast\nclass Empty(ast.NodeTransformer):\n"
                "    def visit_Expr(self, node): return ast.Expr(ast.Constant(1))\n"
                "get_ipython().ast_transformers.append(Empty())"
            )(nb),
            answers(frequencies=f"{FREQUENCIES}    return 0")(nb),
        ),
        0,
    ),
    "always equal": Student(
        answers(
            frequencies=f"{ALWAYS_EQUAL}\n{FREQUENCIES}    return Equal()",
            mask=f"{ALWAYS_EQUAL}\ndef causal_mask(length):\n    return [Equal()] * length",
        ),
        0,
    ),
    "false outcomes": Student(
        lambda nb: (
            first(
                "from IPython import get_ipython\nfor n in range(9):\n"
                "    get_ipython().display_pub.publish({'application/vnd.posenc.outcome+json': "
                "{'case': n, 'value': {'array': 'AAAA', 'dtype': '<f8', 'shape': [10**9, -1]}}})"
            )(nb),
            answers(frequencies=f"{FREQUENCIES}    return np.zeros(3)")(nb),
        ),
        2,
    ),
    "shadowed names": Student(
        first("list = dict = str = len = print = type = exec = globals_ = None\njson = base64 = 3")
    ),
    "infinite nest": Student(
        answers(mask="def causal_mask(length):\n    x = []\n    x.append(x)\n    return x"), 4
    ),
    "scripts": Student(scripts),
}
