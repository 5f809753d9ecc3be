"""The built files as they lie: links, anchors, and nothing that must not be published."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from .conftest import HTML, pages


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed((HTML / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
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


def test_only_what_is_in_the_table_of_contents_is_published():
    sources = [path.name for path in (HTML / "_sources").rglob("*") if path.is_file()]
    assert not [name for name in sources if "solution" in name.lower()]
    for forbidden in ("README", "CONTRIBUTING", "CHANGELOG"):
        assert not [name for name in sources if name.startswith(forbidden)]


def test_no_solution_of_the_coursework_is_published():
    texts = {".html", ".ipynb", ".md", ".txt", ".js", ".py"}
    leaks = [
        path.relative_to(HTML).as_posix()
        for path in HTML.rglob("*")
        if path.suffix in texts
        and any(
            marker in path.read_text(encoding="utf-8", errors="ignore")
            for marker in ("BEGIN SOLUTION", "BEGIN HIDDEN", "END SOLUTION")
        )
    ]
    assert not leaks
    assert not [p for p in HTML.rglob("*") if "coursework/source" in p.as_posix()]
