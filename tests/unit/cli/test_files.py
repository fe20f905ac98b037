"""`lakebed files`, `compact`, `check` and `repair`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakebed
from lakebed.checksums import unsealed
from lakebed.lsm import checker

from .conftest import Run


def test_files(run: Run) -> None:
    """A table shows where files belong and how large they are; JSON has all columns."""
    ran = run("files", "shop.orders")
    assert ran.lines[0].split() == ["partition", "bucket", "level", "records", "size", "min_key", "max_key", "file"]
    assert ran.lines[1].split()[0] == "{2024-01-01}"
    rows = run("files", "shop.orders", "--format", "json").json
    assert len(rows) == 3
    assert rows[0]["file_path"].endswith(".parquet")
    assert isinstance(rows[0]["file_size_in_bytes"], int)
    assert (
        run("files", "shop.orders", "--columns", "level,bucket", "--format", "csv").lines
        == ["level,bucket"] + ["0,0"] * 3
    )


@pytest.mark.parametrize("state", [("--snapshot", "1"), ("--tag", "first")])
def test_files_of_an_earlier_state(run: Run, state: tuple[str, str]) -> None:
    """A snapshot or a tag has its own files."""
    assert len(run("files", "shop.orders", *state, "--format", "json").json) == 1


def test_compact(run: Run, lake: lakebed.Lake) -> None:
    """Files are merged, the numbers told; a second time nothing is due."""
    ran = run("compact", "shop.orders", "--full", "--format", "json")
    (done,) = ran.json
    assert list(done) == ["table", "snapshot", "files_before", "files_after", "seconds"]
    assert (done["snapshot"], done["files_before"], done["files_after"]) == (4, 3, 2)
    assert run("compact", "shop.orders", "--full").lines == ["shop.orders: nothing was due"]
    assert ran.err == ""


def test_compact_of_some_partitions(run: Run) -> None:
    """Conditions on partition columns, with values in the columns' own types, choose what is merged."""
    ran = run("compact", "shop.orders", "--full", "--where", "dt=2024-01-01")
    assert ran.lines[0].startswith("shop.orders: 2 files became 1 in ")
    assert len(run("files", "shop.orders", "--format", "json").json) == 2


@pytest.mark.parametrize(
    ("condition", "told"),
    [("dt", "is no condition"), ("id=1", "no partition column `id`"), ("dt=soon", "soon")],
)
def test_conditions_that_are_none(run: Run, condition: str, told: str) -> None:
    """What is no condition on partitions is refused before anything is merged."""
    ran = run("compact", "shop.orders", "--full", "--where", condition)
    assert ran.status == 2
    assert told in ran.err
    assert len(run("files", "shop.orders", "--format", "json").json) == 3


@pytest.mark.usefixtures("terminal")
def test_compact_on_a_terminal(run: Run) -> None:
    """The progress is drawn on the error stream, and the outcome is all that standard output gets."""
    ran = run("compact", "shop.orders", "--full")
    assert len(ran.lines) == 1
    assert ran.lines[0].startswith("shop.orders: 3 files became 2 in ")


def test_progress_counts_buckets(lake: lakebed.Lake) -> None:
    """A compaction tells how many buckets are done, from none to all."""
    told: list[tuple[int, int]] = []
    lake.table("shop.orders").compact(full=True, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_check_of_sound_tables(run: Run) -> None:
    """Without names all tables are checked; the status is 0."""
    ran = run("check")
    assert (ran.status, ran.lines) == (0, ["default.events: all is well", "shop.orders: all is well"])
    assert run("check", "events", "--format", "json").json == [{"table": "events", "findings": []}]


def test_check_of_a_broken_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding is printed with table and bucket; the status is 1."""
    monkeypatch.setattr(checker, "_shared_names", lambda files: ["two files are one"])
    ran = run("check", "shop.orders")
    assert ran.status == 1
    assert ran.lines[0] == "shop.orders: dt=19723/bucket-0: two files are one"
    found = run("check", "shop.orders", "--format", "json")
    assert found.status == 1
    assert len(found.json[0]["findings"]) == 2


def test_check_of_a_table_that_is_not_there(run: Run) -> None:
    """The error says what to do; the status is 2."""
    ran = run("check", "shop.v")
    assert ran.status == 2
    assert "valid choices: `orders`" in ran.err


def test_repair(run: Run, lake: lakebed.Lake) -> None:
    """Snapshots that Paimon can not open are rewritten, of all tables or of those that are named, after a look."""
    lake.table("shop.orders").with_options({"write-only": "false"}).compact(full=True)
    path = Path(lake.table("shop.orders").location) / "snapshot" / "snapshot-4"
    members = json.loads(path.read_text())
    path.write_text(json.dumps({**unsealed(members), "operation": members.pop("properties")["lakebed.operation"]}))
    assert run("check", "shop.orders").status == 1
    ran = run("repair", "--dry-run")
    assert ran.status == 0
    assert ran.lines == ["default.events: nothing to do", "shop.orders: would be rewritten: snapshot 4"]
    done = run("repair", "shop.orders", "--format", "json")
    assert done.json == [{"table": "shop.orders", "rewritten": ["snapshot 4"], "dry_run": False}]
    assert run("repair").lines == ["default.events: nothing to do", "shop.orders: nothing to do"]
    assert run("check").status == 0
    assert "operation" not in json.loads(path.read_text())
