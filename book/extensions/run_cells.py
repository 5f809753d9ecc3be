"""Sphinx extension: run the cells of the book as `book/notebooks.py` runs them.

A kernel sends printed text in pieces, cut wherever its buffer was flushed, and MyST-NB joins them
with a line break, even in the middle of a line. The client that runs the notebooks joins them as
they are, if it is told to.
"""

from functools import partial

from myst_nb.core.execute import cache
from sphinx.application import Sphinx

CLIENT = {
    "coalesce_streams": True,
    # Warnings of the kernel about itself are for servers that others can reach.
    "extra_arguments": ["--IPKernelApp.log_level=ERROR"],
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell the client, which MyST-NB starts in this process."""
    cache.single_nb_execution = partial(cache.single_nb_execution, **CLIENT)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
