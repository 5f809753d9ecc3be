"""House rules of the chapters that running them cannot check.

`make test-notebooks` runs every cell and compares every output. Here: the anatomy of a chapter,
small cells, small pictures, text alternatives, and that every number in prose is printed by a cell.
"""

import base64
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
KILOBYTE = 1024

PARTS = [
    "What is often said, and what the numbers say",
    "Exercises",
    "Quick quiz",
    "Take away",
    "Where this leads",
    "Further reading",
]


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def cells(notebook, kind):
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose(notebook):
    return "\n\n".join(cell.source for cell in cells(notebook, "markdown"))


def is_exercise_code(cell):
    return "posenc.checks" in cell.source or re.search(r"\bchecks?\.\w", cell.source)


def test_there_are_chapters():
    assert len(CHAPTERS) >= 2


def test_anatomy(notebook):
    text = prose(notebook)
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert [part for part in headings if part in PARTS] == PARTS
    assert text.index(":class: objectives") < text.index("\n## ")
    for promise in ("**You will be able to**", "**You need**", "**Time**"):
        assert promise in text
    assert ":class: predict" in text
    assert len(re.findall(r"^`{3,}\{exercise\}", text, re.M)) >= 6
    for level in ("Warm-up:", "Core:", "Stretch:", "Spot the bug:"):
        assert f"{{exercise}} {level}" in text, f"no exercise is marked {level}"


def test_every_exercise_has_a_solution(notebook):
    text = prose(notebook)
    exercises = re.findall(r"\{exercise\}.*\n(?::.*\n)*?:label: (\S+)", text)
    solutions = re.findall(r"\{solution(?:-start)?\} (\S+)", text)
    assert exercises
    assert sorted(exercises) == sorted(solutions)
    assert text.count("{solution-start}") == text.count("{solution-end}")


def test_cells_are_small(notebook):
    sizes = []
    for cell in cells(notebook, "code"):
        if "remove-input" in cell.metadata.get("tags", []):
            continue
        # A line of closing brackets is the formatter's, not one more thing to read.
        lines = [line for line in cell.source.splitlines() if line.strip(" )]},")]
        assert all(len(line) <= 88 for line in lines), f"a line is too wide in:\n{cell.source}"
        if not is_exercise_code(cell):
            sizes.append(len(lines))
            assert len(lines) <= 15, f"{len(lines)} lines of code in:\n{cell.source}"
    assert sorted(sizes)[len(sizes) // 2] <= 5


def test_every_code_cell_was_run_in_order_and_said_nothing_on_stderr(notebook):
    code = cells(notebook, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"stderr in:\n{cell.source}"
            assert output.output_type != "error", f"an error is stored in:\n{cell.source}"


def test_what_a_cell_prints_fits_the_page(notebook):
    for cell in cells(notebook, "code"):
        for output in cell.outputs:
            for line in output.get("text", "").splitlines():
                assert len(line) <= 78, f"{len(line)} characters: {line}"


def test_pictures_are_small_and_have_a_text_alternative(notebook):
    for cell in cells(notebook, "code"):
        for output in cell.outputs:
            png = output.get("data", {}).get("image/png")
            if png:
                assert len(base64.b64decode(png)) <= 60 * KILOBYTE
                assert len(output.data["text/plain"]) >= 40, "alt text says too little"
                figure = cell.metadata.get("mystnb", {}).get("figure", {})
                assert figure.get("caption"), f"a figure has no caption:\n{cell.source}"
                assert figure.get("name"), f"a figure has no label:\n{cell.source}"


def test_has_a_slider_and_a_quiz_and_stores_no_widget_state(notebook):
    outputs = [output for cell in cells(notebook, "code") for output in cell.outputs]
    texts = [output.get("data", {}).get("text/plain", "") for output in outputs]
    assert any(text.startswith("Slider over ") for text in texts)
    assert sum(text.startswith("Quiz ") for text in texts) == 1
    assert "widgets" not in notebook.metadata


def test_seeds_are_local(notebook):
    code = "\n".join(cell.source for cell in cells(notebook, "code"))
    assert "np.random.seed" not in code
    assert len(re.findall(r"\bdefault_rng\(", code)) <= 1 or "seed" in code


NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?|(?<![\w.])\d{1,3}(?:,\d{3})+|\b\d{4,}\b")
# Numbers that name something instead of reporting a result.
NAMES = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\{[a-z:]+\}`[^`]*`|\]\([^)]*\)|"
    r"(?:section|§|chapter|version|figure|equation|table)s? [\d.]+(?: and [\d.]+)?|arXiv:\S+|"
    r"\b(?:19|20)\d\d\b",
    re.S | re.I,
)


def printed_numbers(notebook):
    """Every number that a cell prints or that stands in its code, as floats."""
    texts = []
    for cell in cells(notebook, "code"):
        texts.append(cell.source)
        for output in cell.outputs:
            texts.append(output.get("text", ""))
            texts.append(output.get("data", {}).get("text/plain", ""))
    found = re.findall(r"\d[\d,_]*\.?\d*(?:e[-+]?\d+)?", "\n".join(texts))
    return {float(number.replace(",", "").replace("_", "")) for number in found}


def test_every_number_in_prose_is_printed_by_a_cell(notebook):
    printed = printed_numbers(notebook)
    missing = []
    for number in NUMBER.findall(NAMES.sub(" ", prose(notebook))):
        value = float(number.replace(",", ""))
        decimals = len(number.partition(".")[2].partition("e")[0])
        rounded = {round(p, decimals) for p in printed} if decimals else printed
        percent = {round(100 * p, decimals) for p in printed}
        if value not in rounded | percent:
            missing.append(number)
    assert not missing, f"no cell prints {sorted(set(missing))}"
