"""Sphinx extension: serve MathJax and the widget manager from the book itself.

`book/vendor.py` fetches both. Where it could not, the addresses that Jupyter Book uses by default
stay in place.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

VENDOR = Path(__file__).resolve().parent.parent / "vendor"


def use_local_files(app: Sphinx, config: Config) -> None:
    """Point the pages at the fetched files, if they are there."""
    if not VENDOR.is_dir():
        return
    config.html_static_path.append(str(VENDOR))
    config.mathjax_path = "mathjax/tex-mml-chtml.js"
    # No `crossorigin` attributes: they would keep the files from loading from disk.
    config.nb_ipywidgets_js = {"html-manager/assets-path.js": {}, "html-manager/embed.js": {}}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the switch."""
    app.connect("config-inited", use_local_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
