"""Every page in a real browser: alone, without errors, accessible, and alive without a kernel."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

KILOBYTE = 1024


def test_needs_nothing_from_outside_and_throws_no_error(visit, page_path):
    seen = visit(page_path)
    assert not seen.outside
    assert not seen.errors


def test_opens_from_disk_as_well(visit, page_path):
    if page_path == "404.html":
        return  # only a server shows it, at whatever address was asked for
    seen = visit(page_path, from_disk=True)
    assert not seen.outside
    assert not seen.errors


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(visit, page_path, scheme):
    seen = visit(page_path, scheme=scheme)
    assert seen.page.evaluate("document.documentElement.dataset.theme") == scheme
    violations = Axe().run(seen.page).response["violations"]
    report = [
        f"{v['id']}: {v['help']}: {[n['html'][:200] for n in v['nodes']][:3]}" for v in violations
    ]
    assert not report


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_never_scrolls_sideways_on_a_phone(visit, page_path, scheme):
    page = visit(page_path, width=390, scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_image_loads_and_has_a_text_alternative(visit, page_path):
    page = visit(page_path).page
    page.evaluate("for (const image of document.images) image.loading = 'eager'")
    page.wait_for_function("[...document.images].every(image => image.complete)")
    images = page.evaluate(
        "[...document.images].map(i => ({src: i.src.slice(0, 80), alt: i.alt, "
        "width: i.naturalWidth, frame: i.closest('.posenc-slider') !== null}))"
    )
    for image in images:
        assert image["alt"].strip(), image["src"]
        assert image["width"] > 0 or image["frame"], image["src"]


def test_first_load_stays_within_its_budget(visit, page_path):
    seen = visit(page_path)
    has_widgets = seen.page.locator(".posenc-slider").count() > 0
    limit = 1600 if has_widgets else 900
    assert seen.transferred <= limit * KILOBYTE, f"{seen.transferred / KILOBYTE:.0f} KB"


# Scripts that stop the page from being read on until they have run, each with its reason.
BLOCKING = {
    "documentation_options.js": "319 bytes; declares the constant that inline scripts write to",
}
# Inline scripts fetch nothing; what they do must happen before what follows them.
INLINE = {
    "document.documentElement.dataset.mode": "sets light or dark before anything is drawn",
    "let toggleHintShow": "settings of the toggle buttons",
    "let toggleHintHide": "settings of the toggle buttons",
    "let toggleOpenOnPrint": "settings of the toggle buttons",
    "var togglebuttonSelector": "settings of the toggle buttons",
    "window.MathJax": "settings of the equations",
    "DOCUMENTATION_OPTIONS.": "the name of this page; no search as you type",
    "(function (identity)": "answers the quiz that it follows",
    "// Activate the search field": "the search page puts the cursor into its field",
}


def test_only_listed_scripts_hold_up_the_page(visit, page_path):
    page = visit(page_path).page
    fetched, inline = page.evaluate("""() => {
        const scripts = [...document.scripts].filter(
            s => !s.type || s.type.includes("javascript") || s.type === "module");
        return [
            scripts.filter(s => s.getAttribute("src") && !s.defer && !s.async
                                && s.type !== "module").map(s => s.getAttribute("src")),
            scripts.filter(s => !s.getAttribute("src")).map(s => s.textContent.trim()),
        ];
    }""")
    names = {src.split("?")[0].rsplit("/", 1)[-1] for src in fetched}
    # MathJax and the widget manager fetch their parts when they run, which holds up nothing.
    assert names == set(BLOCKING)
    for script in inline:
        assert any(script.startswith(start) for start in INLINE), script[:200]


def test_no_widget_is_larger_than_its_budget(visit, page_path):
    page = visit(page_path).page
    stored = page.locator('script[type="application/vnd.jupyter.widget-state+json"]')
    if not stored.count():
        return
    state = json.loads(stored.text_content())["state"]
    for view in page.locator('script[type="application/vnd.jupyter.widget-view+json"]').all():
        needed, found = set(), [json.loads(view.text_content())["model_id"]]
        while found:
            name = found.pop()
            if name not in needed:
                needed.add(name)
                found += re.findall(r"IPY_MODEL_([\w-]+)", json.dumps(state[name]))
        size = sum(len(json.dumps(state[name])) for name in needed)
        assert size <= 500 * KILOBYTE, f"{size / KILOBYTE:.0f} KB"


def test_every_slider_moves_by_keyboard(visit, page_path):
    page = visit(page_path).page
    for slider in page.locator(".posenc-slider").all():
        handle = slider.locator(".noUi-handle")
        assert handle.get_attribute("aria-label")
        shown = "e => [...e.querySelectorAll('img')].find(i => i.offsetParent !== null).alt"
        before = slider.evaluate(shown)
        handle.focus()
        at_the_end = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
        page.keyboard.press("ArrowLeft" if at_the_end else "ArrowRight")
        page.wait_for_timeout(100)
        after = slider.evaluate(shown)
        assert after.strip()
        assert after != before
        assert not slider.locator(".posenc-needs-kernel").is_visible()


def test_every_quiz_tells_right_from_wrong(visit, page_path):
    page = visit(page_path).page
    for question in page.locator(".posenc-quiz fieldset").all():
        feedback = question.locator("[aria-live]")
        assert feedback.inner_text() == ""
        for right, word in (("false", "Not quite."), ("true", "Right.")):
            choice = question.locator(f'input[data-right="{right}"]').first
            choice.focus()
            page.keyboard.press("Space")
            assert feedback.inner_text().startswith(word)
            assert len(feedback.inner_text()) > len(word) + 5


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("broadcasting", "appendix/glossary.html"),
        ("equivariant", "appendix/glossary.html"),
        ("sinusoidal_encoding", "appendix/api.html"),
        ("causal_mask", "appendix/api.html"),
        ("wavelength", "chapters/02-the-formula.html"),
    ],
)
def test_search_finds_terms_and_functions(visit, query, expected):
    page = visit(f"search.html?q={query}").page
    page.wait_for_selector("#search-results a", state="attached")
    page.wait_for_function("!document.querySelector('#search-progress')?.textContent")
    found = page.locator("#search-results a").evaluate_all("links => links.map(a => a.href)")
    assert any(expected in link for link in found), found
