"""Run the notebooks of the course and write them back, the same bytes every time.

    python book/notebooks.py                         # all of chapters/
    python book/notebooks.py chapters/02-the-formula.ipynb

The notebooks are the only source of the chapters, and their outputs are stored, so what is stored
must not depend on the machine or the moment: times, version numbers and random widget ids go.
A cell that raises stops the run and leaves the notebook as it was.
"""

import argparse
import sys
import uuid
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "extensions"))

from run_cells import CLIENT  # noqa: E402

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_METADATA = {"tags", "mystnb", "editable", "slideshow"}


def execute(path: Path) -> None:
    """Run one notebook from the top in a fresh kernel and store its outputs in place."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,
        record_timing=False,
        **CLIENT,
    )
    client.execute()
    normalise(notebook)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def normalise(notebook: NotebookNode) -> None:
    """Drop everything from a notebook that a second run would write differently."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            **{key: notebook.metadata[key] for key in ("myst",) if key in notebook.metadata},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict(
            {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
        )
        for output in cell.get("outputs", ()):
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output["metadata"] = {}
                view = output.data.get(WIDGET_VIEW)
                if view:
                    name = f"{cell.id}-{number}"
                    view["model_id"] = uuid.uuid5(uuid.NAMESPACE_OID, name).hex


def main() -> int:
    """Run the notebooks named on the command line, or all chapters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    chosen = parser.parse_args().notebooks or sorted((ROOT / "chapters").glob("*.ipynb"))
    for path in chosen:
        print(f"running {path}", flush=True)
        try:
            execute(path.resolve())
        except CellExecutionError as error:
            print(f"\n{path}: a cell failed; the notebook was left as it was\n{error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
