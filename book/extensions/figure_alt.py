"""Sphinx extension: the text alternative of a drawing becomes the alt text of its image.

A figure of the book is shown with two representations, a PNG and a sentence that says what it
shows. Sphinx keeps the PNG; this keeps the sentence as the image's alt text, so that it is written
once, beside the code that draws, and is compared by the notebook tests like every other output.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class AltFromText(SphinxPostTransform):
    """Copy the plain-text representation of each picture to the picture's alt text."""

    # Before MyST-NB's SelectMimeType (priority 4) removes the representations it does not show.
    default_priority = 3

    def run(self, **kwargs: object) -> None:
        """Visit every output that has several representations."""
        for bundle in self.document.findall(nodes.container):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            by_type = {child.get("mime_type"): child for child in bundle.children}
            text = by_type.get("text/plain")
            if text is None or "image/png" not in by_type:
                continue
            for image in by_type["image/png"].findall(nodes.image):
                image["alt"] = text.astext().strip()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(AltFromText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
