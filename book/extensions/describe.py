"""Sphinx extension: give every page the description that `book/descriptions.yml` holds for it.

Without it, search engines and link previews would show whatever the page happens to begin with.
"""

from html import escape
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx

SOURCE = Path(__file__).resolve().parent.parent / "descriptions.yml"
DESCRIPTIONS = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))


def describe(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree) -> None:
    """Add the description before the social-card extension would take one from the text."""
    description = DESCRIPTIONS.get(pagename)
    if not description:
        return
    tag = f'<meta name="description" content="{escape(description)}" />\n'
    context["metatags"] = context.get("metatags", "") + tag
    if doctree is not None:  # a page of the book: it has a social card too
        context["meta"] = {**(context["meta"] or {}), "og:description": description}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the descriptions."""
    app.connect("html-page-context", describe, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
