"""The built files as they lie: links, anchors, and nothing that must not be published."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import nbformat
import pytest
import yaml

from .conftest import HTML, pages

ROOT = HTML.parents[1]


class Page(HTMLParser):
    """The links, the anchors and the descriptions of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.meta = [], set(), {}
        self.feed((HTML / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "meta" and "content" in values:
            self.meta[values.get("name") or values.get("property")] = values["content"]
        if values.get("id"):
            self.anchors.add(values["id"])
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])


@pytest.fixture(scope="module")
def book():
    return {path: Page(path) for path in pages()}


def test_every_internal_link_and_anchor_resolves(book, page_path):
    broken = []
    for link in book[page_path].links:
        address, anchor = urldefrag(link)
        if urlsplit(address).scheme or address.startswith("//"):
            continue
        target = page_path
        if address:
            path = unquote(urlsplit(address).path)
            start = HTML if path.startswith("/") else HTML / Path(page_path).parent
            resolved = (start / path.lstrip("/")).resolve()
            if not resolved.is_relative_to(HTML) or not resolved.exists():
                broken.append(link)
                continue
            target = resolved.relative_to(HTML).as_posix()
        if anchor and target in book and unquote(anchor) not in book[target].anchors:
            broken.append(link)
    assert not broken


def test_every_page_is_described(book, page_path):
    meta = book[page_path].meta
    assert 25 <= len(meta["description"]) <= 160
    same = [path for path in book if book[path].meta.get("description") == meta["description"]]
    assert same == [page_path]
    if page_path not in {"404.html", "genindex.html", "py-modindex.html", "search.html"}:
        assert meta["og:description"] == meta["description"]
        assert (HTML / meta["og:image"]).is_file() or meta["og:image"].startswith("http")


def test_every_description_has_its_page():
    described = yaml.safe_load((ROOT / "book" / "descriptions.yml").read_text(encoding="utf-8"))
    assert {f"{name}.html" for name in described} == set(pages())


def test_only_what_is_in_the_table_of_contents_is_published():
    sources = [path.name for path in (HTML / "_sources").rglob("*") if path.is_file()]
    assert not [name for name in sources if "solution" in name.lower()]
    for forbidden in ("README", "CONTRIBUTING", "CHANGELOG"):
        assert not [name for name in sources if name.startswith(forbidden)]


def solutions():
    """Every answer of the graded coursework, code and prose, without its spaces."""
    found = []
    for path in ROOT.glob("coursework/source/*/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            found += re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, re.S)
            if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution"):
                found.append(cell.source)
    return ["".join(answer.split()) for answer in found]


def test_no_solution_of_the_coursework_is_published():
    # A line or two of common NumPy may stand elsewhere in its own right.
    answers = [answer for answer in solutions() if len(answer) > 120]
    assert len(answers) >= 20
    markers = ("###BEGINSOLUTION", "BEGINHIDDEN", "###ENDSOLUTION")
    for path in HTML.rglob("*"):
        assert "coursework/source" not in path.as_posix()
        if path.suffix not in {".html", ".ipynb", ".md", ".txt", ".js", ".py"}:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        if path.suffix == ".html":
            text = unescape(re.sub(r"<[^>]*>", "", text))
        elif path.suffix == ".ipynb":
            text = "\n".join(cell.source for cell in nbformat.reads(text, as_version=4).cells)
        text = "".join(text.split())
        leaks = [answer for answer in (*markers, *answers) if answer in text]
        assert not leaks, path


CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_page_shows_what_its_notebook_stores(path):
    page = (HTML / "chapters" / f"{path.stem}.html").read_text(encoding="utf-8")
    shown = unescape(re.sub(r"<[^>]*>", "", page))
    printed = [
        output.text.strip("\n")
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
        and not {"remove-output"} & set(cell.metadata.get("tags", []))
    ]
    assert len(printed) > 5
    for text in printed:
        assert text.rstrip() in shown, text


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_terms_lead_to_the_glossary_once(book, path):
    found = [
        link for link in book[f"chapters/{path.stem}.html"].links if "glossary.html#term-" in link
    ]
    assert len(found) >= 3
    assert len(found) == len(set(found))
