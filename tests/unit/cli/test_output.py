"""How values, rows and records are printed."""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from decimal import Decimal

import pytest

from lakebed.cells import plain, text, to_json
from lakebed.cli.output import Output
from lakebed.units import size_text

VALUES = [
    (None, None, ""),
    (True, True, "true"),
    (3, 3, "3"),
    (2.5, 2.5, "2.5"),
    (math.nan, "nan", "nan"),
    (-math.inf, "-inf", "-inf"),
    (Decimal("1.50"), "1.50", "1.50"),
    (Decimal("1E+3"), "1000", "1000"),
    ("two\nlines", "two\nlines", "two lines"),
    (b"\x00\xff", "AP8=", "AP8="),
    (dt.date(2024, 1, 2), "2024-01-02", "2024-01-02"),
    (dt.datetime(2024, 1, 2, 3), "2024-01-02T03:00:00", "2024-01-02 03:00:00"),
    (dt.datetime(2024, 1, 2, 3, 0, 0, 120_000), "2024-01-02T03:00:00.12", "2024-01-02 03:00:00.12"),
    (dt.time(1, 2), "01:02:00", "01:02:00"),
    (dt.time(1, 2, 0, 50), "01:02:00.00005", "01:02:00.00005"),
    ([1, None], [1, None], "[1, null]"),
    ({"a": Decimal("1.0")}, {"a": "1.0"}, '{"a": "1.0"}'),
    ([("k", b"")], [["k", ""]], '[["k", ""]]'),
]


@pytest.mark.parametrize(("value", "as_json", "as_text"), VALUES, ids=repr)
def test_values(value: object, as_json: object, as_text: str) -> None:
    """Every kind of value has one spelling for programs and one for people, each on one line."""
    assert plain(value) == as_json
    assert json.loads(to_json(value)) == as_json
    assert "\n" not in to_json(value)
    assert text(value) == as_text


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "2024-05-14 13:45:00.5Z"),
        ("Europe/Berlin", "2024-05-14 15:45:00.5+02:00"),
        ("America/New_York", "2024-05-14 09:45:00.5-04:00"),
    ],
)
def test_moments(monkeypatch: pytest.MonkeyPatch, zone: str, told: str) -> None:
    """A moment is told on the clock of the machine with its distance from UTC, for people and programs alike."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    moment = dt.datetime(2024, 5, 14, 13, 45, 0, 500_000, dt.UTC)
    assert text(moment) == told
    assert plain(moment) == told.replace(" ", "T")
    assert dt.datetime.fromisoformat(told) == moment
    assert text(dt.datetime.max.replace(tzinfo=dt.UTC)).startswith("9999-12-31 ")
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("size", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (5 * 10**18, "5000.0 PB")]
)
def test_sizes(size: int, told: str) -> None:
    """Sizes come in the unit that suits them."""
    assert size_text(size) == told


def test_plain_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns stand below one another, numbers to the right, without blanks at the end of a line."""
    Output("table").rows(["name", "n"], [["a", 1], ["longer", None], ["b", 1000]])
    assert capsys.readouterr().out == "name       n\na          1\nlonger\nb       1000\n"


def test_headings_and_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    """A table may leave columns out, name them otherwise and spell values otherwise; JSON stays as it is."""
    arguments = {"shown": {"n": "size"}, "shows": {"n": lambda n: f"{n}!"}, "null": "-"}
    Output("table").rows(["name", "n"], [["a", 1], ["b", None]], **arguments)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "size\n  1!\n   -\n"
    Output("json").rows(["name", "n"], [["a", 1]], **arguments)  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "n": 1}]


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    """CSV quotes what needs it, leaves nulls empty and keeps line breaks."""
    Output("csv").rows(["a", "b"], [["x,y", None], ["two\nlines", [1, 2]], ['"', True]])
    assert capsys.readouterr().out == 'a,b\n"x,y",\n"two\nlines","[1, 2]"\n"""",true\n'


@pytest.mark.usefixtures("terminal")
def test_drawn_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """What looks like markup is shown as it is, and no rows are said to be none."""
    Output("table").rows(["key"], [["[1]"], ["[bold]x[/bold]"]])
    drawn = capsys.readouterr().out
    assert "[1]" in drawn
    assert "[bold]x[/bold]" in drawn
    Output("table").rows(["key"], [])
    assert "no rows" in capsys.readouterr().out
