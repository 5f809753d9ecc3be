"""The table of contents and the claims page follow the files."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "extensions"))

import collect  # noqa: E402

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def test_every_chapter_and_every_appendix_is_in_the_table_of_contents():
    listed = set(re.findall(r"- file: (\S+)", (ROOT / "_toc.yml").read_text()))
    there = {path.relative_to(ROOT).with_suffix("").as_posix() for path in CHAPTERS}
    there |= {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "appendix").glob("*.md")
    }
    assert there <= listed
    assert all(any(ROOT.glob(f"{name}.*")) for name in listed)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_claim_has_a_verdict(path):
    claims = collect.claims_of(path)
    assert len(claims) >= 3
    assert all(claim.verdict for claim in claims)
