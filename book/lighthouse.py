"""Let Lighthouse judge three pages: `make lighthouse`.

Accessibility, best practices and search-engine readiness must be 100 of 100. Performance depends
on the machine, so it is printed with what limits it, and judged by nobody.
"""

import json
import os
import shutil
import subprocess
import sys

from server import NO_BROWSER, find_browser, serve

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs with Node.js 20
PAGES = ("index.html", "chapters/02-the-formula.html", "appendix/glossary.html")
REQUIRED = ("accessibility", "best-practices", "seo")
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking"


def judge(address: str) -> dict:
    """Run Lighthouse on one address, as a desktop reader, and return its report."""
    environment = {**os.environ, "CHROME_PATH": find_browser() or sys.exit(NO_BROWSER)}
    command = ["npx", "--yes", LIGHTHOUSE, address, "--preset=desktop", "--output=json"]
    command += ["--quiet", f"--chrome-flags={FLAGS}"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        sys.exit(f"Lighthouse did not run:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)


def main() -> None:
    """Print a table of scores, and fail if a required one is below 100."""
    if not shutil.which("npx"):
        sys.exit("npx was not found: it comes with Node.js and npm.")
    below = []
    with serve() as address:
        for page in PAGES:
            report = judge(address + page)
            categories, audits = report["categories"], report["audits"]
            scores = {name: round(100 * value["score"]) for name, value in categories.items()}
            print(page, *(f"{name} {score}" for name, score in scores.items()), sep="  ")
            for name in ("first-contentful-paint", "largest-contentful-paint"):
                print(f"    {audits[name]['title']}: {audits[name]['displayValue']}")
            for name in ("total-blocking-time", "cumulative-layout-shift", "total-byte-weight"):
                print(f"    {audits[name]['title']}: {audits[name]['displayValue']}")
            for name in REQUIRED:
                for reference in categories[name]["auditRefs"]:
                    audit = audits[reference["id"]]
                    if reference["weight"] and audit["score"] not in (1, None):
                        below.append(f"{page}: {name}: {audit['title']}")
    if below:
        sys.exit("\n".join(["", "Below 100:", *below]))


if __name__ == "__main__":
    main()
