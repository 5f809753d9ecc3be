"""The table of contents, the claims page and the table of concepts follow the files."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "extensions"))

import collect  # noqa: E402

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def test_every_chapter_and_every_appendix_is_in_the_table_of_contents():
    listed = set(re.findall(r"- file: (\S+)", (ROOT / "_toc.yml").read_text()))
    there = {path.relative_to(ROOT).with_suffix("").as_posix() for path in CHAPTERS}
    there |= {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "appendix").glob("*.md")
    }
    assert there <= listed
    assert all(any(ROOT.glob(f"{name}.*")) for name in listed)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_claim_has_a_verdict(path):
    claims = collect.claims_of(path)
    assert len(claims) >= 3
    assert all(claim.verdict for claim in claims)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_says_what_it_teaches_and_practises_it(path):
    objectives, time, labels = collect.objectives_of(path)
    assert 3 <= len(objectives) <= 6
    assert "minutes" in time
    notebook = nbformat.read(path, as_version=4)
    exercises = "\n".join(cell.source for cell in notebook.cells).count("{exercise}")
    assert exercises >= 6
    assert len(labels) == len(set(labels)) == exercises


def test_the_collected_tables_stand_on_their_pages():
    assert "<!-- claims -->" in (ROOT / "appendix" / "claims.md").read_text()
    assert "<!-- objectives -->" in (ROOT / "coursework" / "for-teachers.md").read_text()


LINK = r"(?:\[chapter \d\]\(\.\./chapters/[^#]+#|\{ref\}`chapter \d <)"
CONCEPT = re.compile(rf"^\| (\d+) \| (.+?) \| {LINK}([^)>]+)[)>]`? \|$", re.M)
CHAPTER = re.compile(r"chapter (\d)")
CONCEPTS = [
    (int(match[1]), match[2], int(CHAPTER.search(match[0])[1]), match[3])
    for match in CONCEPT.finditer((ROOT / "appendix" / "concepts.md").read_text())
]


def cells_run_in_section(notebook, anchor):
    """Count executed cells from a label or a heading's slug to the next heading of its level."""
    level, count = None, 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            count += level is not None and cell.execution_count is not None
            continue
        for block in re.split(r"\n(?=\(|#{1,3} )", cell.source):
            heading = re.search(r"^(#{1,3}) (.+)$", block, re.M)
            if level and heading and len(heading[1]) <= level:
                return count
            labelled = re.search(rf"^\({re.escape(anchor)}\)=$", cell.source, re.M)
            if level is None and heading:
                text = heading[2].strip()
                if collect.default_slugify(text) == anchor or (
                    labelled and cell.source.index(labelled[0]) < cell.source.index(heading[0])
                ):
                    level = len(heading[1])
    return count


def test_there_are_forty_one_concepts():
    assert [number for number, *_ in CONCEPTS] == list(range(1, 42))


@pytest.mark.parametrize(("number", "name", "chapter", "anchor"), CONCEPTS)
def test_every_concept_is_computed_where_the_table_says(number, name, chapter, anchor):
    (path,) = (ROOT / "chapters").glob(f"{chapter:02}-*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    assert cells_run_in_section(notebook, anchor) >= 1
