"""Sliders: frames made beforehand, linked in the browser, free values with a kernel."""

import matplotlib as mpl
import numpy as np
import pytest

from posenc.explore import Slider
from posenc.figures.cover import cover
from posenc.figures.drawing import _RC, Drawing, annotate_cells, canvas


def draw(k):
    if k < 0:
        raise ValueError(f"k must not be negative, got {k}")
    with canvas(2, 1) as (figure, axes):
        axes.plot([0, k])
    return Drawing(figure, f"A line that rises to {k}.", {"heights": np.array([0, k])})


@pytest.fixture
def slider():
    return Slider("height k", [1, 2, 5], draw, start=2)


def test_has_a_frame_for_each_value_with_its_text_alternative(slider):
    stack, control = slider.children[:2]
    assert len(stack.children) == 3
    assert stack.selected_index == control.index == 1
    assert 'alt="A line that rises to 5."' in stack.children[2].value
    assert control.description == "height k"
    assert [label for label, _ in control.options] == ["1", "2", "5"]


def test_its_text_form_is_the_same_every_time(slider):
    assert repr(slider) == ("Slider over height k: 3 frames from 1 to 5. A line that rises to 2.")


def test_a_free_value_draws_another_frame(slider):
    box, extra = slider.children[2:]
    box.value = "3.5"
    assert 'alt="A line that rises to 3.5."' in extra.children[0].value
    box.value = "-1"
    assert "k must not be negative" in extra.children[0].value
    box.value = "three"
    assert "could not convert" in extra.children[0].value


def test_a_text_that_leaves_the_picture_is_refused():
    with (
        pytest.raises(ValueError, match=r"'a title of many words.*leaves the picture"),
        canvas() as (
            _,
            axes,
        ),
    ):
        axes.set_title("a title of many words " * 5)
    with canvas() as (_, axes):
        axes.set_title("a title that fits")
        axes.set_xlim(0.5, 5.5)  # with labels of ticks beyond the limits, which are never drawn


def test_text_grows_with_the_resolution_and_no_faster():
    with canvas() as (figure, axes):
        title = axes.set_title("rows follow words, the mean stands still")
    with mpl.rc_context(_RC):
        widths = []
        for dpi in (76, 130):
            figure.set_dpi(dpi)
            figure.draw_without_rendering()
            widths.append(title.get_window_extent().width / dpi)
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.01)


def test_a_drawing_is_a_picture_an_alternative_and_its_arrays():
    drawing = draw(4)
    bundle = drawing._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert bundle["text/plain"] == repr(drawing) == "A line that rises to 4."
    np.testing.assert_array_equal(drawing["heights"], [0, 4])
    assert drawing.png() == draw(4).png(), "the same drawing must give the same bytes"


def test_numbers_in_cells_are_legible_on_dark_and_on_light():
    values = np.array([[0.0, 1.0]])
    with canvas(2, 1) as (_, axes):
        axes.imshow(values, cmap="gray")
        annotate_cells(axes, values, "{:.0f}")
    assert axes.texts[0].get_color() == "white"
    assert [text.get_text() for text in axes.texts] == ["0", "1"]


def test_the_cover_shows_waves_that_widen_from_top_to_bottom():
    drawing = cover(length=60, n_sines=12)
    assert drawing["sines"].shape == (60, 12)
    assert drawing["changes"][0] == 18
    assert (np.diff(drawing["changes"]) <= 0).all()
    assert "never does" in drawing.alt
