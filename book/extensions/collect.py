"""Sphinx extension: fill in what a page collects from the chapters, so that it cannot drift.

In `appendix/claims.md` the line ``<!-- claims -->`` is replaced by a table of every claim that a
chapter tests under *What is often said, and what the numbers say*, with its verdict and a link.
"""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PLACEHOLDER = "<!-- claims -->"
SECTION = re.compile(r"^## What is often said.*?$(.*?)(?=^## |\Z)", re.M | re.S)
CLAIM = re.compile(r"^### (?P<claim>.+?)$\s+\*\*Verdict: (?P<verdict>.+?)\*\*", re.M | re.S)


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
        title = re.search(r"^# (.+)$", chapter_text(path), re.M)[1]
        lines.append(f"| **[{title}](../chapters/{path.name})** | |")
        lines += [f"| [{c.text}]({c.link}) | {c.verdict} |" for c in claims_of(path)]
    return "\n".join(lines)


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the placeholder of a page that has one."""
    if PLACEHOLDER in source[0]:
        names = sorted(name for name in app.env.found_docs if name.startswith("chapters/"))
        chapters = [Path(app.srcdir) / f"{name}.ipynb" for name in names]
        for path in chapters:
            app.env.note_dependency(str(path))
        source[0] = source[0].replace(PLACEHOLDER, claims_table(chapters))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("source-read", fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
