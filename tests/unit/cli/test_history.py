"""`lakebed snapshots`, `tag` and `expire`."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakebed

from .conftest import Run


def test_snapshots(run: Run) -> None:
    """A table shows the main columns under short headings; JSON has all under the names of the system table."""
    ran = run("snapshots", "shop.orders")
    assert ran.lines[0].split() == ["snapshot", "kind", "operation", "time", "records", "change", "schema"]
    assert len(ran.lines) == 4
    rows = run("snapshots", "shop.orders", "--format", "json").json
    assert [row["snapshot_id"] for row in rows] == [1, 2, 3]
    assert {"commit_user", "base_manifest_list", "total_record_count"} <= set(rows[0])
    assert run("snapshots", "shop.orders", "--limit", "1", "--columns", "snapshot_id").lines == [
        "snapshot_id",
        "          3",
    ]
    assert run("snapshots", "shop.orders", "--limit", "0", "--format", "json").json == []
    assert "base_manifest_list" in run("snapshots", "shop.orders", "--wide").lines[0]


def test_many_snapshots(run: Run, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table shows the newest and says how many there are; --limit decides, and JSON has all."""
    monkeypatch.setattr("lakebed.cli.history._TABLE_SNAPSHOTS", 2)
    ran = run("snapshots", "shop.orders")
    assert [line.split()[0] for line in ran.lines] == ["snapshot", "2", "3"]
    assert ran.err == "the newest 2 of 3 snapshots; --limit N prints more\n"
    assert len(run("snapshots", "shop.orders", "--limit", "3").lines) == 4
    assert len(run("snapshots", "shop.orders", "--format", "json").json) == 3


def test_columns_that_are_not_there(run: Run) -> None:
    """A wrong column is named with the nearest."""
    ran = run("snapshots", "shop.orders", "--columns", "snapshotid")
    assert ran.status == 2
    assert "snapshot_id" in ran.err


def test_tags(run: Run, lake: lakebed.Lake) -> None:
    """Tags are made on the latest snapshot or another one, listed, and deleted."""
    assert run("tag", "create", "shop.orders", "last").lines == ["shop.orders: tag last names snapshot 3"]
    made = run(
        "tag", "create", "shop.orders", "second", "--snapshot", "2", "--time-retained", "7 d", "--format", "json"
    )
    assert made.json == {"table": "shop.orders", "tag": "second", "snapshot": 2}
    listed = run("tag", "list", "shop.orders", "--format", "json").json
    assert [(tag["tag_name"], tag["snapshot_id"], tag["time_retained"]) for tag in listed] == [
        ("first", 1, None),
        ("last", 3, None),
        ("second", 2, "PT168H"),
    ]
    assert run("tag", "list", "shop.orders").lines[0].split()[:2] == ["tag", "snapshot"]
    assert run("tag", "delete", "shop.orders", "last").lines == ["shop.orders: tag last is gone"]
    assert lake.table("shop.orders").tags() == ["first", "second"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "shop.orders"), "which tag?"),
        (("shop.orders", "v1"), "type `lakebed tag create shop.orders NAME`, or `lakebed tag list shop.orders`"),
        (("create", "shop.orders", "first"), "exists already"),
        (("create", "shop.orders", "x", "--snapshot", "9"), "snapshot 9"),
        (("delete", "shop.orders", "firts"), "did you mean `first`?"),
    ],
)
def test_tags_that_can_not_be(run: Run, arguments: tuple[str, ...], told: str) -> None:
    """What is missing, taken or mistyped is said, and nothing changes."""
    ran = run("tag", *arguments)
    assert ran.status == 2
    assert told in ran.err
    assert [tag["tag_name"] for tag in run("tag", "list", "shop.orders", "--format", "json").json] == ["first"]


def test_expire(run: Run, lake: lakebed.Lake) -> None:
    """Snapshots beyond the given number go; a second run has nothing to do."""
    events = lake.table("events")
    for _ in range(3):
        events.write(pa.table({"e": ["x"]}))
    ran = run("expire", "events", "--retain-max", "2", "--retain-min", "1", "--format", "json")
    assert (ran.json["table"], ran.json["snapshots"], ran.json["changelogs"]) == ("default.events", [1, 2], [])
    assert [snapshot.id for snapshot in events.snapshots()] == [3, 4]
    assert run("expire", "events", "--retain-max", "2", "--retain-min", "1").lines == [
        "default.events: nothing was due"
    ]
    told = run("expire", "events", "--retain-max", "1", "--retain-min", "1").out
    assert told.startswith("default.events: 1 snapshots and ")


def test_expire_says_what_the_limit_left(run: Run, lake: lakebed.Lake) -> None:
    """If more is due than may go at once, it is said how much, and what to do about it."""
    events = lake.table("events")
    for _ in range(5):
        events.write(pa.table({"e": ["x"]}))
    few = ("expire", "events", "--retain-max", "1", "--retain-min", "1", "--max-deletes", "2")
    assert run(*few).out.rstrip().endswith("; 3 more are due: run it again, or with --max-deletes 3")
    assert run(*few, "--format", "json").json["remaining"] == 1
    assert "due" not in run(*few).out


def test_expire_by_time(run: Run) -> None:
    """A time that is none is refused."""
    ran = run("expire", "events", "--older-than", "yesterday")
    assert ran.status == 2
    assert "yesterday" in ran.err
