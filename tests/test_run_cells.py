"""The cells of the book: what one prints stays in one piece."""

import sys
from pathlib import Path

import nbformat
from myst_nb.core.execute import cache

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "book" / "extensions"))

import run_cells

# Flushed in the middle of a line, as a kernel does by itself when its buffer is full.
CELL = """import time
print("one ", end="", flush=True)
time.sleep(0.5)
print("line", flush=True)"""


def test_a_line_that_is_flushed_in_two_pieces_stays_a_line(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "single_nb_execution", cache.single_nb_execution)  # put back after
    run_cells.setup(None)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    cache.single_nb_execution(notebook, cwd=str(tmp_path), timeout=60, allow_errors=False)
    assert [output.text for output in notebook.cells[0].outputs] == ["one line\n"]
