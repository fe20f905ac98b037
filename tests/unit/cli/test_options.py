"""`lakebed options`: the reference."""

from __future__ import annotations

import re

from lakebed.options import OPTIONS

from .conftest import Run


def test_all_options(run: Run) -> None:
    """Every option is listed once, with what it means and whether it works."""
    rows = run("options", "--format", "json").json
    assert len({row["option"] for row in rows}) == len(rows) >= len(OPTIONS)
    bucket = next(row for row in rows if row["option"] == "bucket")
    assert list(bucket) == ["option", "group", "type", "default", "meaning", "honoured", "in_lakebed"]
    assert (bucket["type"], bucket["default"], bucket["honoured"]) == ("integer", "-1", True)


def test_some_options(run: Run) -> None:
    """A part of a name chooses among them; without any, the nearest is named."""
    lines = run("options", "Merge-Engine").lines
    assert lines[0].split()[:4] == ["option", "type", "default", "meaning"]
    assert all("merge-engine" in line for line in lines[1:])
    ran = run("options", "merge-engin3")
    assert ran.status == 2
    assert "did you mean `merge-engine`?" in ran.err


def test_what_to_do_instead_can_be_typed(run: Run) -> None:
    """What is said of options that are not honoured names no call of Python."""
    ran = run("options", "--format", "json")
    assert not [each for each in ran.json if re.search(r"\bt\.\w+\(", each["in_lakebed"])]
