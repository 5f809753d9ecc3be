"""Sphinx extension: let the whole book be built as one page, from which the PDF is printed.

Sphinx looks a node's HTML up under the builder's name and, only if that name is unknown, under
"html". Some extensions register their nodes for "singlehtml" and so make the name known, which
hides the nodes of all others. Here the one-page builder gets everything that "html" knows.
"""

from sphinx.application import Sphinx


def share_handlers(app: Sphinx) -> None:
    """Give the one-page builder every handler of the many-page one."""
    handlers = app.registry.translation_handlers
    handlers["singlehtml"] = {**handlers.get("html", {}), **handlers.get("singlehtml", {})}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the fix, late, when all nodes are known."""
    app.connect("config-inited", lambda app, config: share_handlers(app), priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
