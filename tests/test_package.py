"""The package as a whole: what importing it costs and what its public names look like."""

import inspect
import subprocess
import sys

import pytest

import posenc

PUBLIC = [getattr(posenc, name) for name in posenc.__all__ if callable(getattr(posenc, name))]


def test_importing_needs_numpy_alone():
    code = (
        "import sys, posenc\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'matplotlib', 'ipywidgets', 'IPython', 'PIL', 'scipy'}))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_every_public_name_says_what_it_takes_gives_and_raises(thing):
    text = inspect.getdoc(thing)
    assert text
    for section in ("Parameters", "Examples"):
        assert f"{section}\n---" in text, f"{thing.__name__} has no section {section}"
    if inspect.isfunction(thing):
        assert "Returns\n---" in text
        assert "Raises\n---" in text


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_every_public_function_has_type_hints(thing):
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(
            p.annotation is not inspect.Parameter.empty for p in signature.parameters.values()
        )
