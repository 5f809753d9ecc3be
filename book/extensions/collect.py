"""Sphinx extension: fill in what a page collects from the chapters, so that it cannot drift.

The line ``<!-- claims -->`` is replaced by a table of every claim that a chapter tests under *What
is often said, and what the numbers say*, with its verdict and a link; ``<!-- objectives -->`` by a
table of what each chapter teaches, how long it takes, and the exercises that practise it.
"""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SECTION = re.compile(r"^## What is often said.*?$(.*?)(?=^## |\Z)", re.M | re.S)
CLAIM = re.compile(r"^### (?P<claim>.+?)$\s+\*\*Verdict: (?P<verdict>.+?)\*\*", re.M | re.S)
OBJECTIVES = re.compile(r"\*\*You will be able to\*\*(.*?)\*\*You need\*\*", re.S)
TIME = re.compile(r"\*\*Time\*\* (.+?)\.(?:\s|$)", re.S)
EXERCISE = re.compile(r"^(`{3,}|:{3,})\{exercise\}.*\n:label: (?P<label>\S+)$", re.M)


class Claim(NamedTuple):
    """A claim as it is usually put, the chapter's verdict, and where the chapter tests it."""

    text: str
    verdict: str
    link: str


def chapter_text(path: Path) -> str:
    """Join the Markdown cells of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def claims_of(path: Path) -> list[Claim]:
    """Find the claims that one chapter tests."""
    found = []
    for section in SECTION.findall(chapter_text(path)):
        headings = re.findall(r"^### (.+?)$", section, re.M)
        for match in CLAIM.finditer(section):
            text, verdict = match["claim"].strip(), " ".join(match["verdict"].split())
            link = f"../chapters/{path.name}#{default_slugify(text)}"
            found.append(Claim(text, verdict.rstrip("."), link))
        if len(headings) != len(found):
            missing = set(headings) - {claim.text for claim in found}
            raise ExtensionError(f"{path.name}: no verdict under {sorted(missing)}")
    return found


def claims_table(chapters: list[Path]) -> str:
    """Write the claims of all chapters as one Markdown table."""
    lines = ["| what is often said | what the numbers say |", "|---|---|"]
    for path in chapters:
        lines.append(f"| **{title_link(path)}** | |")
        lines += [f"| [{c.text}]({c.link}) | {c.verdict} |" for c in claims_of(path)]
    return "\n".join(lines)


def title_link(path: Path) -> str:
    """Write the title of a chapter as a link to it."""
    title = re.search(r"^# (.+)$", chapter_text(path), re.M)[1]
    return f"[{title}](../chapters/{path.name})"


def objectives_of(path: Path) -> tuple[list[str], str, list[str]]:
    """Find what a chapter teaches, the time it takes and the labels of its exercises."""
    text = chapter_text(path)
    listed, time = OBJECTIVES.search(text), TIME.search(text)
    if not listed or not time:
        raise ExtensionError(f"{path.name}: the box of objectives is not complete")
    objectives = [" ".join(item.split()) for item in re.split(r"^- ", listed[1], flags=re.M)[1:]]
    labels = [match["label"] for match in EXERCISE.finditer(text)]
    return [item.rstrip(";.") for item in objectives], " ".join(time[1].split()), labels


def objectives_table(chapters: list[Path]) -> str:
    """Write the objectives and the exercises of all chapters as one table of two columns."""
    lines = [":::{list-table}", ":header-rows: 1", ":widths: 35 65", ""]
    lines += ["* - chapter, and where it is practised", "  - after it, you can"]
    for path in chapters:
        objectives, time, labels = objectives_of(path)
        exercises = ", ".join(f"{{ref}}`{label}`" for label in labels)
        lines += [f"* - **{title_link(path)}**, {time}", "", f"    {exercises}"]
        lines += ["  - - " + "\n    - ".join(objectives)]
    return "\n".join([*lines, ":::"])


TABLES = {"<!-- claims -->": claims_table, "<!-- objectives -->": objectives_table}


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the placeholders of a page that has some."""
    for placeholder, table in TABLES.items():
        if placeholder in source[0]:
            names = sorted(name for name in app.env.found_docs if name.startswith("chapters/"))
            chapters = [Path(app.srcdir) / f"{name}.ipynb" for name in names]
            for path in chapters:
                app.env.note_dependency(str(path))
            source[0] = source[0].replace(placeholder, table(chapters))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("source-read", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
