"""`t$compactions` and `t$commits_metrics`: what commits did, from what they have written down."""

from __future__ import annotations

import pyarrow as pa

import lakebed

COLUMNS = pa.schema([("k", pa.int64()), ("a", pa.int64())])


def write(table: lakebed.Table, times: int) -> None:
    """Some commits of two rows."""
    for n in range(times):
        table.write(pa.table({"k": [1, n], "a": [n, n]}))


def test_compactions_of_a_keyed_table(lake: lakebed.Lake) -> None:
    """Why they were due, what came of what, how long they took; an old reader finds them in the table."""
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    table = lake.create_table("t", COLUMNS, primary_key=["k"], options=options)
    write(table, 4)
    table.compact(full=True)
    rows = lake.table("t$compactions").to_arrow().to_pylist()
    kinds = {snapshot.id: snapshot.commit_kind for snapshot in table.snapshots()}
    assert [row["snapshot_id"] for row in rows] == [number for number, kind in kinds.items() if kind == "COMPACT"]
    assert rows[0]["reason"] == "size ratio"
    assert rows[-1]["reason"] == "full compaction"
    for row in rows:
        assert row["duration_ms"] >= 0
        assert row["files_in"] > row["files_out"] == 1
        assert row["rows_in"] >= row["rows_out"] > 0
        assert row["write_amplification"] > 0
    spent = lake.query("SELECT sum(bytes_out) AS written FROM t$compactions").fetchall()[0][0]
    assert spent == sum(row["bytes_out"] for row in rows)


def test_compactions_of_a_table_without_key(lake: lakebed.Lake) -> None:
    """Small files that were joined; a sort has left no note, and is told all the same."""
    table = lake.create_table("t", COLUMNS, options={"write-only": "true"})
    write(table, 3)
    table.compact(full=True)
    (row,) = lake.table("t$compactions").to_arrow().to_pylist()
    assert (row["reason"], row["files_in"], row["files_out"], row["rows_in"], row["rows_out"]) == (
        "asked for",
        3,
        1,
        6,
        6,
    )


def test_commits(lake: lakebed.Lake) -> None:
    """Every kept snapshot with what it added and removed; what has expired is not told any more."""
    options = {"bucket": "1", "write-only": "true"}
    table = lake.create_table("t", COLUMNS, primary_key=["k"], options=options)
    write(table, 3)
    table.write(pa.table({"k": [9], "a": [9]}), overwrite=True)
    rows = lake.table("t$commits_metrics").to_arrow().to_pylist()
    assert [(row["snapshot_id"], row["files_added"], row["files_removed"], row["rows_added"]) for row in rows] == [
        (1, 1, 0, 2),
        (2, 1, 0, 1),
        (3, 1, 0, 2),
        (4, 1, 3, 1),
    ]
    assert rows[0]["since_last_ms"] is None
    assert rows[1]["since_last_ms"] >= 0
    assert (rows[3]["commit_kind"], rows[3]["rows_removed"]) == ("OVERWRITE", 5)
    assert lake.table("t$commits_metrics").at(2).to_arrow(["snapshot_id"]).num_rows == 2
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert lake.table("t$commits_metrics").to_arrow(["snapshot_id"]).to_pylist() == [{"snapshot_id": 4}]


def test_notes_of_others_are_not_believed(lake: lakebed.Lake) -> None:
    """An engine that hands our properties on to a commit of its own has not made that note."""
    from dataclasses import replace

    from lakebed.commit.compaction_note import CompactionNote

    table = lake.create_table("t", COLUMNS, primary_key=["k"], options={"bucket": "1"})
    write(table, 2)
    snapshot = table.compact(full=True)
    assert snapshot is not None
    note = CompactionNote.find(snapshot)
    assert note is not None
    assert note.reason == "full compaction"
    assert CompactionNote.find(replace(snapshot, writer_version="2.0")) is None
    assert CompactionNote.find(table.snapshots()[0]) is None
