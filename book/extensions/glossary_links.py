"""Sphinx extension: link a term to the glossary where a chapter introduces it.

A chapter writes a term in *italics* when it introduces it; the first such place on a page becomes
a link to the glossary, if the glossary has the term.
"""

from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "appendix/glossary"
# Italics in these are not introductions: they are links already, titles, or the glossary's own.
OUTSIDE = (nodes.reference, nodes.title, nodes.term, nodes.caption, nodes.citation)


def spellings(text: str) -> list[str]:
    """Give the forms under which a word may stand in the glossary."""
    word = " ".join(text.lower().split())
    endings = {"ies": "y", "es": "", "s": ""}
    singular = [word.removesuffix(end) + new for end, new in endings.items() if word.endswith(end)]
    return [word, *singular]


def link_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn the first introduction of each term into a link."""
    if not docname.startswith("chapters/") or GLOSSARY not in app.env.found_docs:
        return
    terms = {
        name.lower(): label
        for name, _, kind, page, label, _ in app.env.get_domain("std").get_objects()
        if kind == "term" and page == GLOSSARY
    }
    address = app.builder.get_relative_uri(docname, GLOSSARY)
    linked = set()
    for word in list(doctree.findall(nodes.emphasis)):
        if any(isinstance(parent, OUTSIDE) for parent in ancestors(word)):
            continue
        label = next((terms[s] for s in spellings(word.astext()) if s in terms), None)
        if label and label not in linked:
            linked.add(label)
            link = nodes.reference(
                "", "", refuri=f"{address}#{label}", internal=True, classes=["term"]
            )
            word.replace_self(link)
            link += word


def ancestors(node: nodes.Node):
    """Walk up from a node to the document."""
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the links."""
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
