"""The built book, served on 127.0.0.1, and a headless browser that reports what pages do."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "book"))

from server import HTML, NO_BROWSER, find_browser, serve


def pages():
    """Every page that a reader can reach, as paths below the built book."""
    found = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html"))
    return [page for page in found if not page.startswith(("_static/", "_sources/"))]


def pytest_generate_tests(metafunc):
    if "page_path" in metafunc.fixturenames:
        metafunc.parametrize("page_path", pages())


def pytest_sessionstart(session):
    if not (HTML / "index.html").exists():
        pytest.exit("There is no built book: run `make book` first.", returncode=1)


@pytest.fixture(scope="session")
def server():
    with serve() as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    found = find_browser()
    if found is None:
        pytest.fail(NO_BROWSER)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=found,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--allow-file-access-from-files",
            ],
        )
        yield running
        running.close()


@dataclass
class Visit:
    """A page that was opened, and what it did meanwhile."""

    page: object
    outside: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    transferred: int = 0


@pytest.fixture
def visit(browser, server):
    """Return a function that opens a page and waits until its scripts have settled."""
    contexts = []

    def open_page(path, *, width=1280, scheme="light", from_disk=False):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        seen = Visit(page)
        base = HTML.as_uri() + "/" if from_disk else server
        inside = (base, "data:", "blob:")
        page.on("request", lambda r: r.url.startswith(inside) or seen.outside.append(r.url))
        page.on("requestfailed", lambda r: seen.errors.append(f"failed: {r.url}"))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda m: m.type == "error" and seen.errors.append(m.text))
        page.on("response", lambda r: note_size(seen, r))
        page.goto(base + path, wait_until="load")
        page.wait_for_function(
            "() => !window.MathJax?.startup || window.MathJax.startup.promise.then(() => true)"
        )
        if page.locator('script[type="application/vnd.jupyter.widget-view+json"]').count():
            page.wait_for_selector(".posenc-slider .noUi-handle", state="attached")
        page.wait_for_timeout(300)
        return seen

    yield open_page
    for context in contexts:
        context.close()


def note_size(seen, response):
    length = response.headers.get("content-length")
    if length and response.status == 200:
        seen.transferred += int(length)
    elif response.status >= 400:
        seen.errors.append(f"{response.status}: {response.url}")
