"""The picture on the title page: order, written as waves."""

import numpy as np

from posenc.figures.drawing import DIVERGING, Drawing, canvas
from posenc.sinusoidal import sinusoidal_encoding


def cover(length: int = 240, n_sines: int = 80) -> Drawing:
    """Draw the sines of many positions as one field of waves, quick above, slow below."""
    sines = sinusoidal_encoding(length, 2 * n_sines, layout="split")[:, :n_sines]
    with canvas(9, 3) as (figure, axes):
        axes.imshow(sines.T, cmap=DIVERGING, vmin=-1.4, vmax=1.4, aspect="auto")
        axes.set_axis_off()
        figure.set_layout_engine("none")
        axes.set_position((0, 0, 1, 1))
    changes = (np.diff(np.sign(sines[1:]), axis=0) != 0).sum(axis=0)
    alt = (
        f"The sines of {length} positions side by side, one column each. The quickest row, on top, "
        f"changes sign {changes[0]} times; the slowest, at the bottom, never does. Between them "
        "the waves widen steadily."
    )
    return Drawing(figure, alt, {"sines": sines, "changes": changes})
