"""A copy of the pages: all tables, no scripts, markup in values as text, nothing overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.cli.main import main

from .conftest import HOSTILE


def test_a_copy_to_send(lake: lakebed.Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page for each table with its pictures; the second time the directory is taken."""
    place = tmp_path / "copy"
    arguments = ["--warehouse", lake.location, "ui", "--export", str(place)]
    assert main(arguments) == 0
    assert "7 tables" in capsys.readouterr().out
    pages = {path.name: path.read_text(encoding="utf-8") for path in place.glob("*.html")}
    assert len(pages) == 8
    for text in pages.values():
        assert "<script" not in text
        assert HOSTILE not in text
    marked = next(text for name, text in pages.items() if "marked" in name)
    assert marked.count("data-file=") == len(lake["marked$files"].to_arrow())
    assert "&lt;img src=x" in marked
    assert main(arguments) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_copy_without_rows(lake: lakebed.Lake, tmp_path: Path) -> None:
    """What may not leave the house is left out."""
    assert main(["--warehouse", lake.location, "ui", "--export", str(tmp_path / "copy"), "--rows", "0"]) == 0
    assert all("Some rows" not in path.read_text(encoding="utf-8") for path in (tmp_path / "copy").glob("*.html"))


def test_it_opens_from_a_file(lake: lakebed.Lake, browser: Any, tmp_path: Path) -> None:
    """Without a server."""
    assert main(["--warehouse", lake.location, "ui", "--export", str(tmp_path / "copy")]) == 0
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.goto((tmp_path / "copy" / "index.html").as_uri())
    page.click("text=default.marked")
    page.wait_for_selector("rect[data-file]")
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "1120px"
    assert complaints == []
    page.close()
