"""`lakebed diff` and `lakebed tail`."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakebed
from lakebed.changes.follow import ChangeStream
from lakebed.cli import system_rows

from .conftest import Run


def test_diff(run: Run) -> None:
    """What differs between snapshots and tags, kinds first; the latest state is the default end."""
    rows = run("diff", "shop.orders", "first", "3", "--format", "json").json
    assert [(row["rowkind"], row["id"], row["amount"]) for row in rows if row["dt"] == "2024-01-01"] == [
        ("-U", 1, "0.00"),
        ("+U", 1, "2.00"),
        ("+I", 4, None),
    ]
    assert run("diff", "shop.orders", "first", "--format", "json").json == rows
    assert run("diff", "shop.orders", "0", "1", "--columns", "id").lines == [
        "rowkind  id",
        "+I        1",
        "+I        2",
    ]
    assert run("diff", "shop.orders", "2", "2", "--format", "csv").lines == ["rowkind,id,dt,amount"]


def test_diff_by_time(run: Run, lake: lakebed.Lake) -> None:
    """A time is the state then, unless a tag is called so."""
    whole = run("diff", "shop.orders", "0", "--format", "csv").lines
    assert run("diff", "shop.orders", "0", "2999-01-01", "--format", "csv").lines == whole
    assert "no snapshot at or before 2001-05-14" in run("diff", "shop.orders", "2001-05-14").err
    lake.table("shop.orders").create_tag("2999-01-01", 1)
    assert len(run("diff", "shop.orders", "0", "2999-01-01", "--format", "csv").lines) == 3


def test_long_diffs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table stops after many rows and says so; what is to be parsed is complete."""
    monkeypatch.setattr(system_rows, "TABLE_ROWS", 1)
    ran = run("diff", "shop.orders", "0", "1")
    assert len(ran.lines) == 2
    assert "1 of 2 rows" in ran.err
    assert len(run("diff", "shop.orders", "0", "1", "--limit", "5").lines) == 3
    assert len(run("diff", "shop.orders", "0", "1", "--format", "json").json) == 2
    assert len(run("diff", "shop.orders", "0", "1", "--limit", "1", "--format", "json").json) == 1


def test_diff_of_states_that_are_not_there(run: Run) -> None:
    """Tags and snapshots that do not exist are named."""
    assert "did you mean `first`?" in run("diff", "shop.orders", "frist").err
    assert run("diff", "shop.orders", "77").status == 2


def test_tail_once(run: Run) -> None:
    """From a snapshot on, or from the start, to the end and no further; nulls are spelled out."""
    ran = run("tail", "shop.orders", "--since", "2", "--once")
    assert ran.lines[0].split() == ["rowkind", "id", "dt", "amount"]
    assert [line.split()[1] for line in ran.lines[1:]] == ["1", "4"]
    assert ran.lines[2].split()[-1] == "null"
    whole = run("tail", "shop.orders", "--from-start", "--once", "--columns", "id", "--format", "csv")
    assert (whole.lines[0], sorted(whole.lines[1:])) == ("rowkind,id", ["+I,1", "+I,1", "+I,2", "+I,3", "+I,4"])


def test_tail_as_json(run: Run) -> None:
    """Each change is one object on a line of its own."""
    ran = run("tail", "events", "--from-start", "--once", "--format", "json")
    assert [json.loads(line) for line in ran.lines] == [{"rowkind": "+I", "e": "a"}, {"rowkind": "+I", "e": None}]


def test_tail_from_now(run: Run) -> None:
    """By default only what comes from now on counts."""
    assert run("tail", "events", "--once").out == ""


def test_tail_goes_on(run: Run, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are printed as they come, the headings once, until Ctrl-C, which is no error."""
    batches = iter([pa.table({"rowkind": ["+I"], "e": ["a"]}), pa.table({"rowkind": ["-D"], "e": ["wider"]})])

    def following(_: ChangeStream) -> pa.Table:
        for batch in batches:
            return batch
        raise KeyboardInterrupt

    monkeypatch.setattr(ChangeStream, "__next__", following)
    ran = run("tail", "events")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == ["rowkind  e", "+I       a", "-D       wider"]


@pytest.mark.usefixtures("terminal")
def test_tail_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows what came in green and what went in red, unless colours are unwanted."""
    assert run("tail", "events", "--from-start", "--once").lines[1] == "+I       a"
    monkeypatch.delenv("NO_COLOR")
    assert run("tail", "events", "--from-start", "--once").lines[1] == "\x1b[32m+I       a\x1b[0m"


def test_wrong_intervals(run: Run) -> None:
    """An interval that is no time is named."""
    ran = run("tail", "events", "--interval", "often")
    assert ran.status == 2
    assert "often" in ran.err
