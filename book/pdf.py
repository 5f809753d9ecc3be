"""Print the one-page book to a PDF with a headless browser: tagged, outlined, with page numbers.

It comes after ``jupyter-book build --builder singlehtml .``, as `make pdf` does it.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from server import NO_BROWSER, find_browser, serve

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "_build" / "singlehtml"
TARGET = ROOT / "_build" / "pdf" / "putting-order-back.pdf"
FOOTER = (
    '<div style="font-size:8px;width:100%;text-align:center;color:#444">'
    '<span class="pageNumber"></span> / <span class="totalPages"></span></div>'
)


def main() -> int:
    """Open the page, unfold what is folded and print it."""
    browser = find_browser()
    if browser is None:
        print(NO_BROWSER)
        return 1
    with serve(PAGE) as address, sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = running.new_page(color_scheme="light")
        page.set_default_timeout(300_000)
        page.goto(address, wait_until="load")
        page.wait_for_function("() => window.MathJax?.startup?.promise.then(() => true) ?? true")
        page.wait_for_timeout(2000)  # sliders are drawn after the page has loaded
        page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
        page.wait_for_function("[...document.images].every(image => image.complete)")
        page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true);"
            "document.querySelectorAll('.toggle-hidden').forEach("
            "e => e.classList.remove('toggle-hidden'));"
        )
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        page.pdf(
            path=str(TARGET),
            format="A4",
            margin={"top": "16mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            tagged=True,
            outline=True,
        )
        running.close()
    print(f"Printed {TARGET.relative_to(ROOT)}, {TARGET.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
