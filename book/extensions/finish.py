"""Sphinx extension: the last touches on the built pages.

- The theme draws its icons with a 1.5 MB script although its style sheet holds the same icons as a
  font; the script goes.
- Pictures are fetched when the reader comes near them, the first at once, and have their size in
  the page, so that nothing moves when they arrive.
- Scripts wait until the page has been read. The theme also loads the search index on every page,
  for a search as you type that the book does not use; it goes, except from the search page.
- Widgets get random ids; they are numbered instead, so that two builds give the same bytes.
"""

import re
from functools import cache
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

ICON_SCRIPT = re.compile(r"\s*<(?:script|link)\b[^>]*scripts/fontawesome\.js[^>]*>(?:</script>)?")
SEARCH_SCRIPT = re.compile(
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
)
# The inline scripts that follow `documentation_options.js` write to the constant it declares.
BLOCKING_SCRIPT = re.compile(
    r"<script (?![^>]*\b(?:defer|async)\b)(?=[^>]*\bsrc=)(?![^>]*documentation_options\.js)"
)
PICTURE = re.compile(r'<img (?!loading=)(?=[^>]*src="(?P<source>[^"]*_images/[^"]*\.png)")')
# Python's model ids are 32 hexadecimal digits; nothing else on a page is.
WIDGET_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


@cache
def size_of(picture: Path) -> tuple[int, int]:
    """Give the width and the height of a picture."""
    with Image.open(picture) as opened:
        return opened.size


def place_pictures(page: str, folder: Path) -> str:
    """Say the size of every picture of a page, and fetch all but the first when they are near."""
    seen: list[str] = []

    def place(match: re.Match[str]) -> str:
        width, height = size_of((folder / match["source"]).resolve())
        seen.append(match["source"])
        loading = "lazy" if len(seen) > 1 else "eager"
        return f'<img loading="{loading}" width="{width}" height="{height}" '

    return PICTURE.sub(place, page)


def touch_up(page: str, path: Path) -> str:
    """Give the final form of one page; a page in that form stays as it is."""
    page = place_pictures(ICON_SCRIPT.sub("", page), path.parent)
    if path.name != "search.html":
        page = SEARCH_SCRIPT.sub("", page)
    page = BLOCKING_SCRIPT.sub("<script defer ", page)
    if WIDGET_STATE in page:
        numbers: dict[str, str] = {}
        page = WIDGET_ID.sub(
            lambda match: numbers.setdefault(match[0], f"widget-{len(numbers) + 1}"), page
        )
    return page


def on_finish(app: Sphinx, error: Exception | None) -> None:
    """Rewrite the pages and drop what none of them loads."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for path in out.rglob("*.html"):
        before = path.read_text(encoding="utf-8")
        after = touch_up(before, path)
        if after != before:
            path.write_text(after, encoding="utf-8")
    scripts = out / "_static" / "scripts"
    for unused in [*scripts.glob("fontawesome.js*"), *out.rglob("*.map")]:
        unused.unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the last step; late, so that other extensions have written their pages."""
    app.connect("build-finished", on_finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
