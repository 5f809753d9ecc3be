"""Fetch what pages need to work offline: MathJax for equations, the widget manager for sliders.

    python book/vendor.py

Both come from the npm registry, by name, at a pinned version whose checksum is written below, and
are unpacked into book/vendor/, which is not committed. A second run finds them and does nothing.
Without npm the book still builds: its pages then load the two from the public addresses that
Jupyter Book uses by default, and the build says so. Under CI that is an error.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

VENDOR = Path(__file__).resolve().parent / "vendor"

# Runs before the widget manager. The first line tells it where its own fonts are. The second
# answers the widgets' call to MathJax 2, which they make for every label, equation or not.
ASSETS_PATH_JS = """\
window.__jupyter_widgets_assets_path__ = new URL(".", document.currentScript.src).href;
window.addEventListener("DOMContentLoaded", () => { window.MathJax.Hub ??= { Queue() {} }; });
"""


@dataclass(frozen=True)
class Package:
    """One npm package: where its files go and which of them are wanted."""

    name: str
    version: str
    sha512: str  # base64, as npm prints it
    folder: str
    prefix: str  # files below this path of the package are kept
    wanted: tuple[str, ...]  # patterns for the paths below the prefix

    @property
    def spec(self) -> str:
        """Name and version as npm writes them."""
        return f"{self.name}@{self.version}"


PACKAGES = (
    Package(
        "mathjax",
        "3.2.2",
        "Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        "mathjax",
        "package/es5/",
        ("tex-mml-chtml.js", "output/chtml/fonts/woff-v2/*"),
    ),
    Package(
        "@jupyter-widgets/html-manager",
        "1.0.15",
        "5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==",
        "html-manager",
        "package/dist/",
        ("embed.js", "embed.js.LICENSE.txt", "*.woff2"),
    ),
)


def fetch(package: Package) -> None:
    """Download one package, check it and unpack the wanted files."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", package.spec],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = Path(folder).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != package.sha512:
            raise SystemExit(f"{package.spec}: the checksum is {digest}, not the pinned one")
        unpacked = Path(folder) / "unpacked"
        with tarfile.open(archive) as tar:
            for member in tar:
                inside = member.name.removeprefix(package.prefix)
                if inside != member.name and any(fnmatch(inside, w) for w in package.wanted):
                    target = unpacked / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(tar.extractfile(member).read())
        if package.folder == "html-manager":
            (unpacked / "assets-path.js").write_text(ASSETS_PATH_JS)
        (unpacked / ".version").write_text(package.spec)
        destination = VENDOR / package.folder
        shutil.rmtree(destination, ignore_errors=True)
        destination.parent.mkdir(exist_ok=True)
        shutil.copytree(unpacked, destination)


def is_here(package: Package) -> bool:
    """Say whether this version of a package has been fetched before."""
    stamp = VENDOR / package.folder / ".version"
    return stamp.exists() and stamp.read_text() == package.spec


def main() -> int:
    """Fetch what is missing."""
    missing = [package for package in PACKAGES if not is_here(package)]
    if missing and shutil.which("npm") is None:
        print(
            "npm was not found: equations and sliders of the built pages will be loaded from "
            "public addresses. Install Node.js to build a book that works offline."
        )
        return 1 if os.environ.get("CI") else 0
    for package in missing:
        print(f"fetching {package.spec} from npm", flush=True)
        fetch(package)
    return 0


if __name__ == "__main__":
    sys.exit(main())
