"""What every figure is made of: one palette, one style, and a drawing that can be checked.

A figure function returns a `Drawing`. Shown at the end of a cell it is a picture; it also holds
the arrays that were drawn, so that the next line can assert what the picture is said to show, and
a text alternative made from the same arrays.
"""

import base64
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axis import Tick
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

# Okabe and Ito's colours, told apart with every common form of colour blindness. A thing keeps its
# colour through all chapters.
SINE = "#0072B2"
COSINE = "#D55E00"
QUERY = "#0072B2"
KEY = "#D55E00"
REAL = "#009E73"
PADDING = "#999999"
ACCENT = "#CC79A7"
INK = "#1b1f24"
PAPER = "#fcfbf8"

DIVERGING = "RdBu_r"  # for signed values, centred on 0
SEQUENTIAL = "viridis"  # for weights and distances

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    # Hinted letters are wider at a low resolution: a title that fits would not fit a slider frame.
    "text.hinting": "none",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


@dataclass(frozen=True)
class Drawing:
    """A figure, the arrays it shows and what a reader who cannot see it should know.

    ``drawing["name"]`` gives an array that was drawn.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    alt : str
        Text alternative, made from the arrays: what a sighted reader would take from the picture.
    arrays : mapping of str to ndarray
    """

    figure: Figure
    alt: str
    arrays: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __repr__(self) -> str:
        return self.alt

    def png(self, *, dpi: int = 130, colors: int = 256) -> bytes:
        """Give the picture as a small PNG: a palette of at most `colors` colours, no metadata."""
        raw = io.BytesIO()
        with mpl.rc_context(_RC):
            self.figure.savefig(raw, dpi=dpi, metadata={"Software": None})
        small = io.BytesIO()
        picture = Image.open(raw).convert("RGB")
        # The usual choice of colours goes by area, and spoils what is small: marks, colour bars.
        few = picture.quantize(colors, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(small, "PNG", optimize=True)
        return small.getvalue()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"image/png": base64.b64encode(self.png()).decode(), "text/plain": self.alt}


@contextmanager
def canvas(
    width: float = 6.4, height: float = 3.2, rows: int = 1, columns: int = 1, **kwargs: Any
) -> Iterator[tuple[Figure, Any]]:
    """Open a figure of the book's style; yield it with its axes (an array if there are several).

    The figure belongs to no global state, so nothing has to be closed and nothing is drawn twice.
    """
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(rows, columns, **kwargs)
        # Lay it out once: the layout engine moves things a little every time it runs.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        _refuse_cut_text(figure)


def _refuse_cut_text(figure: Figure) -> None:
    """Raise if a text leaves the picture, where saving would cut it off without a word."""
    # Ticks beyond the limits of an axis have labels that are never drawn.
    ticks = {label for tick in figure.findobj(Tick) for label in (tick.label1, tick.label2)}
    width, height = figure.bbox.size
    for text in set(figure.findobj(Text)) - ticks:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            if min(box.x0, box.y0) < -2 or box.x1 > width + 2 or box.y1 > height + 2:
                raise ValueError(f"the text {text.get_text()!r} leaves the picture; shorten it")


def annotate_cells(axes: Any, values: NDArray[Any], form: str = "{:.2f}") -> None:
    """Write each number of a matrix into its cell of an image, light on dark and dark on light."""
    image = axes.images[-1]
    shown = image.cmap(image.norm(np.asarray(values, dtype=float)))
    dark = shown[..., :3] @ np.array([0.299, 0.587, 0.114]) < 0.5
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if dark[row, column] else INK
        axes.text(column, row, form.format(value), ha="center", va="center", color=ink, fontsize=9)
