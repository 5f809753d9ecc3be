"""What the pages need to work offline: pinned, checked, and never fetched from elsewhere in CI."""

import base64
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "book"))

import vendor


@pytest.fixture
def nothing_fetched_and_no_npm(tmp_path, monkeypatch):
    monkeypatch.setattr(vendor, "VENDOR", tmp_path / "vendor")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


def test_every_package_is_pinned_and_has_a_checksum():
    for package in vendor.PACKAGES:
        assert package.version.replace(".", "").isdigit()
        assert len(base64.b64decode(package.sha512)) == 64


@pytest.mark.usefixtures("nothing_fetched_and_no_npm")
def test_without_npm_the_build_goes_on_and_says_what_that_means(capsys):
    assert vendor.main() == 0
    said = capsys.readouterr().out
    assert "npm was not found" in said
    assert "public addresses" in said


@pytest.mark.usefixtures("nothing_fetched_and_no_npm")
def test_in_ci_the_build_does_not_fall_back(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert vendor.main() == 1


def test_a_package_with_another_checksum_is_refused(tmp_path, monkeypatch):
    def pack(command, cwd, **options):
        (Path(cwd) / "something.tgz").write_bytes(b"not what was pinned")

    monkeypatch.setattr(vendor, "VENDOR", tmp_path / "vendor")
    monkeypatch.setattr(vendor.subprocess, "run", pack)
    with pytest.raises(SystemExit, match="not the pinned one"):
        vendor.fetch(vendor.PACKAGES[0])
    assert not (tmp_path / "vendor").exists()


def test_a_new_version_is_fetched_again(tmp_path, monkeypatch):
    monkeypatch.setattr(vendor, "VENDOR", tmp_path)
    package = vendor.PACKAGES[0]
    assert not vendor.is_here(package)
    (tmp_path / package.folder).mkdir()
    (tmp_path / package.folder / ".version").write_text(package.spec)
    assert vendor.is_here(package)
    assert not vendor.is_here(replace(package, version="99.0.0"))
