"""`t.health()`: each finding with its figure and a cure; nothing on a table that is in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.commit.replay import CommitIdentity
from lakebed.explain.health import Finding, Severity
from lakebed.explain.streams import stream_readers, stream_writers
from lakebed.table.writer import TableWriter

COLUMNS = pa.schema([("k", pa.int64()), ("a", pa.int64())])


def keyed(lake: lakebed.Lake, **options: str) -> lakebed.Table:
    """A primary-key table."""
    given = {"bucket": "1", **{key.replace("_", "-"): value for key, value in options.items()}}
    return lake.create_table("t", COLUMNS, primary_key=["k"], options=given)


def found(table: lakebed.Table, **how: bool) -> dict[str, Finding]:
    """Findings by their checks."""
    return {finding.check: finding for finding in table.health(**how)}


def write(table: lakebed.Table, times: int, rows: int = 1, **more: Any) -> None:
    """Some commits of rows."""
    for n in range(times):
        table.write(pa.table({"k": list(range(rows)), "a": [n] * rows}), **more)


def test_a_table_in_order(lake: lakebed.Lake) -> None:
    """Nothing is found, and that is said."""
    table = keyed(lake)
    assert not table.health()
    write(table, 1)
    assert list(table.health()) == []
    assert repr(table.health()) == "default.t: all is well"
    assert "all is well" in table.health()._repr_html_()
    assert lake.query("SELECT * FROM sys.health").fetchall() == []


def test_runs_that_nobody_merges(lake: lakebed.Lake) -> None:
    """More sorted runs than trigger a compaction, or hold writers up; the cure is the compaction."""
    table = keyed(lake, write_only="true")
    write(table, 7)
    assert (found(table)["sorted-runs"].severity, found(table)["sorted-runs"].figure) == (Severity.WARNING, 7)
    assert found(table)["nobody-compacts"].cure == "lakebed compact default.t --follow"
    write(table, 5)
    worst = table.health()[0]
    assert (worst.check, worst.severity, worst.figure) == ("sorted-runs", Severity.CRITICAL, 12)
    assert found(table)["small-files"].figure == 11
    assert worst.cure in repr(table.health())
    rows = lake.query("SELECT table_name, check, cure FROM sys.health WHERE severity = 'critical'").fetchall()
    assert rows == [("t", "sorted-runs", "lakebed compact default.t --follow")]
    table.with_options({"write-only": "false"}).compact(full=True)
    assert not found(table)


def test_dead_rows(lake: lakebed.Lake) -> None:
    """Deletes that are stored, rows that newer ones replace, rows that wait or are hidden."""
    table = keyed(lake, write_only="true")
    table.write(pa.table({"k": [1, 2, 3], "a": [1, 1, 1]}))
    table.with_options({"write-only": "false"}).compact(full=True)
    write(table, 3, rows=3)
    assert found(table)["superseded-rows"].figure == 75.0
    gone = pa.table({"k": list(range(50)), "a": [0] * 50, "kind": ["-D"] * 50})
    table.write(gone, row_kind="kind")
    assert found(table)["deleted-rows"].severity is Severity.WARNING
    lake.drop_table("t")
    masked = keyed(lake, write_only="true", **{"deletion-vectors.enabled": "true"})
    write(masked, 1, rows=5)
    assert (found(masked)["hidden-rows"].figure, found(masked)["hidden-rows"].severity) == (5, Severity.WARNING)
    lake.drop_table("t")
    postponed = keyed(lake, bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    write(postponed, 1, rows=4)
    assert found(postponed)["waiting-rows"].figure == 4
    postponed.compact()
    assert "waiting-rows" not in found(postponed)


def test_what_holds_files(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots that are due, a consumer that is behind, a tag without end: each with the command that ends it."""
    table = keyed(lake, write_only="true")
    write(table, 30)
    table.create_tag("old", 1)
    context = table._opened.context
    context.stores.consumers.record("dashboard", 25)
    later = context.clock.now_ms() + 40 * 86_400_000
    clock = type("Later", (), {"now_ms": lambda self: later, "sleep_ms": lambda self, _: None})()
    monkeypatch.setattr(table._opened, "context", lakebed_replace(context, clock))
    monkeypatch.setattr(table._opened, "_last", None)
    told = found(table)
    assert told["expiry-due"].figure == 20
    assert told["expiry-due"].cure == "lakebed expire default.t --max-deletes 20"
    assert (told["consumer-behind"].figure, told["consumer-behind"].severity) == (6, Severity.WARNING)
    assert "reset_consumer" in told["consumer-behind"].cure
    assert told["no-changelog"].cure == "ALTER TABLE default.t SET ('changelog-producer' = 'lookup')"
    assert "old-tags" not in told  # its snapshot is still there
    table.expire_snapshots(max_deletes=100)
    assert found(table)["old-tags"].cure == "lakebed tag delete default.t old"


def lakebed_replace(context: Any, clock: Any) -> Any:
    """The context at another time."""
    from dataclasses import replace

    return replace(context, clock=clock)


def test_files_that_nothing_refers_to(lake: lakebed.Lake) -> None:
    """Found only when directories are listed, and only if they are old."""
    table = keyed(lake)
    write(table, 1)
    assert list(table.health(deep=True)) == []


def test_a_stop_before_the_trigger(lake: lakebed.Lake) -> None:
    """Options that contradict each other are told."""
    table = keyed(lake, **{"num-sorted-run.stop-trigger": "3"})
    assert found(table)["stop-trigger"].to_dict()["severity"] == "warning"


def test_streams_and_their_readers(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that has fallen silent is told, with its last commit; so is what a reader has not read, in bytes."""
    table = keyed(lake, write_only="true")
    context = table._opened.current()
    for number in range(1, 7):
        with TableWriter(context, identity=CommitIdentity("clicks", number)) as writer:
            writer.write(pa.table({"k": [number], "a": [0]}))
    context.stores.consumers.record("dashboard", 5)
    assert "stream-silent" not in found(table)
    (writer_told,) = stream_writers(context)
    assert (writer_told.user, writer_told.commits, writer_told.rows, writer_told.last_identifier) == ("clicks", 6, 6, 6)
    (reader,) = stream_readers(context, table.latest_snapshot())
    added = lake.query("SELECT sum(bytes_added) FROM t$commits_metrics WHERE snapshot_id >= 5").fetchall()[0][0]
    assert (reader.snapshots_behind, reader.bytes_behind) == (2, int(added))
    later = context.clock.now_ms() + 5 * 86_400_000
    clock = type("Later", (), {"now_ms": lambda self: later, "sleep_ms": lambda self, _: None})()
    monkeypatch.setattr(table._opened, "context", lakebed_replace(table._opened.context, clock))
    monkeypatch.setattr(table._opened, "_last", None)
    told = found(table)
    assert told["stream-silent"].figure == 5 * 86_400
    assert "last its commit 6" in told["stream-silent"].message
    assert f"{added} B behind" in told["consumer-behind"].message or "kB behind" in told["consumer-behind"].message
