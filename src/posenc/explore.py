"""Sliders that work in the published page, where no kernel runs.

Every frame is drawn when the page is built; the slider only chooses which one is shown, a link
that the browser keeps by itself. In a live notebook the same call also takes values in between.
"""

import base64
import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from posenc.figures.drawing import Drawing

# Frames are many, so each is smaller than a figure that stands alone.
FRAME_DPI = 76
FRAME_COLORS = 48


class Slider(widgets.VBox):
    """A row of frames, one for each value, with a slider under them.

    Parameters
    ----------
    name : str
        What the slider moves, as a reader would call it: "offset k".
    values : sequence
        One frame is drawn for each.
    draw : callable
        Takes a value, returns the `Drawing` for it.
    start : object, optional
        The value shown first; the first of `values` when not given.
    free : callable, optional
        Turns the text of the box for values in between into a value; ``float`` when not given.
        The box needs a running kernel and is hidden in the published page.
    """

    def __init__(
        self,
        name: str,
        values: Sequence[Any],
        draw: Callable[[Any], Drawing],
        *,
        start: Any = None,
        free: Callable[[str], Any] = float,
    ) -> None:
        self._name, self._values, self._draw, self._free = name, list(values), draw, free
        frames = [draw(value) for value in self._values]
        first = 0 if start is None else self._values.index(start)
        self._first_alt = frames[first].alt
        stack = widgets.Stack([_picture(f) for f in frames], selected_index=first)
        slider = widgets.SelectionSlider(
            options=[(str(value), n) for n, value in enumerate(self._values)],
            index=first,
            description=name,
            continuous_update=True,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="100%", max_width="36rem"),
        )
        widgets.jslink((slider, "index"), (stack, "selected_index"))
        box = widgets.Text(
            description=f"any {name}",
            placeholder="needs a running notebook",
            continuous_update=False,
            style={"description_width": "initial"},
        )
        box.add_class("posenc-needs-kernel")
        self._extra = widgets.VBox([])
        box.observe(self._show_free_value, names="value")
        super().__init__([stack, slider, box, self._extra])
        self.add_class("posenc-slider")

    def _show_free_value(self, change: dict[str, Any]) -> None:
        try:
            picture = _picture(self._draw(self._free(change["new"])))
        except (TypeError, ValueError) as error:
            picture = widgets.HTML(f"<p>{html.escape(str(error))}</p>")
        self._extra.children = [picture]

    def __repr__(self) -> str:
        values = self._values
        return (
            f"Slider over {self._name}: {len(values)} frames from {values[0]} to {values[-1]}. "
            f"{self._first_alt}"
        )


def _picture(drawing: Drawing) -> widgets.HTML:
    data = base64.b64encode(drawing.png(dpi=FRAME_DPI, colors=FRAME_COLORS)).decode()
    return widgets.HTML(
        f'<img alt="{html.escape(drawing.alt)}" src="data:image/png;base64,{data}" '
        'style="max-width:100%;height:auto">'
    )
