"""`t.why(keys)`: what it shows is what a read shows, and where it comes from is told."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.commit.replay import SYNC_POSITION, CommitIdentity
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.merge.trace import Role
from lakebed.table.opened import opened_of
from lakebed.table.writer import TableWriter

COLUMNS = [("k", pa.int64()), ("g", pa.int64()), ("a", pa.int64()), ("s", pa.int64())]
GROUPED = {"merge-engine": "partial-update", "fields.g.sequence-group": "s", "fields.s.aggregate-function": "sum"}
SUMMED = {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum", "fields.a.aggregate-function": "max"}
LOOKUP = {"changelog-producer": "lookup"}
MASKED = {"deletion-vectors.enabled": "true"}
TABLES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence.field": {"sequence.field": "g"},
    "deletion vectors": MASKED,
    "ignored deletes": {"ignore-delete": "true"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "first-row told": {"merge-engine": "first-row", "ignore-delete": "true", **LOOKUP},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "partial-update looked up": {"merge-engine": "partial-update", "ignore-delete": "true", **LOOKUP},
    "sequence group": {**GROUPED, "ignore-delete": "true"},
    "sequence group masked": {**GROUPED, **MASKED, "ignore-delete": "true"},
    "aggregation": {**SUMMED, "aggregation.remove-record-on-delete": "true"},
    "aggregation looked up": {**SUMMED, "ignore-delete": "true", **LOOKUP},
    "dynamic buckets": {"bucket": "-1"},
    "defaults": {"fields.a.default-value": "7"},
}
NO_REMOVAL = {"aggregation.remove-record-on-delete", "partial-update.remove-record-on-delete"}


def table_of(lake: lakebed.Lake, options: dict[str, str], **more: Any) -> lakebed.Table:
    """A table that compacts now and then."""
    defaults = {"bucket": "2", "num-sorted-run.compaction-trigger": "3"}
    return lake.create_table("t", pa.schema(COLUMNS), primary_key=["k"], options={**defaults, **options}, **more)


def rows_of(chance: random.Random, options: dict[str, str]) -> list[dict[str, Any]]:
    """A few changes of a few keys."""
    kinds = ["+I", "+I", "+U", "-D"]
    return [
        {"k": chance.randrange(12), "kind": chance.choice(kinds)}
        | {name: chance.choice([None, 1, 2, 3]) for name in ("g", "a", "s")}
        for _ in range(8)
    ]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", TABLES)
def test_it_shows_what_a_read_shows(lake: lakebed.Lake, name: str, seed: int) -> None:
    """For every key, at every snapshot of a random history; values are those of the versions that are named."""
    chance = random.Random(seed)
    table = table_of(lake, TABLES[name])
    for step in range(7):
        table.write(rows_of(chance, TABLES[name]), row_kind="kind")
        if step == 4:
            table.compact(full=True)
        expected = {row["k"]: row for row in table.to_arrow().to_pylist()}
        why = table.why(list(range(12)))
        assert {each.key["k"]: dict(each.row) for each in why if each.row is not None} == expected
        for each in why:
            _check(each, table)
    assert any(each.gone for each in why)


def _check(each: Any, table: lakebed.Table) -> None:
    files = {row["file_path"].rpartition("/")[2] for row in _files(table)}
    assert [version.number for version in each.versions] == list(range(1, len(each.versions) + 1))
    assert {version.file for version in each.versions} <= files
    assert not {version.file for version in each.gone} & files
    assert all(version.snapshot_id is not None for version in each.versions)
    by_number = {version.number: version for version in each.versions}
    for column in each.columns:
        if column.version is not None:
            assert by_number[column.version].values[column.column] == column.value
            assert by_number[column.version].state == "merged"
            assert column.column in by_number[column.version].gives


def _files(table: lakebed.Table) -> list[dict[str, Any]]:
    from lakebed.table.system import SYSTEM_TABLES
    from lakebed.table.system.handle import SystemTableHandle

    return list(SystemTableHandle(SYSTEM_TABLES["files"], table._opened).to_arrow(["file_path"]).to_pylist())


def test_rules_are_told(lake: lakebed.Lake) -> None:
    """Nulls that did not overwrite, late members of a sequence group, what a sum is made of."""
    table = table_of(lake, {**GROUPED, "write-only": "true"})
    table.write([{"k": 1, "g": 2, "a": 1, "s": 5}])
    table.write([{"k": 1, "g": 1, "a": None, "s": 6}])
    (why,) = table.why(1)
    columns = {each.column: each for each in why.columns}
    assert (columns["a"].version, columns["a"].rule) == (1, "newest value that is not null")
    assert columns["a"].note == "1 null did not overwrite"
    assert (columns["g"].version, columns["g"].note) == (1, "1 version came late")
    assert (columns["s"].version, columns["s"].versions, columns["s"].value) == (None, (1, 2), 11)
    assert columns["s"].rule == "sum in sequence group g"
    assert why.versions[1].roles == {"g": Role.LATE, "a": Role.NO_VALUE, "s": Role.COUNTED}
    assert why.outcome == "merged from 2 versions by merge engine `partial-update`"
    assert "1 null did not overwrite" in repr(table.why(1))
    assert "newest value that is not null" in table.why(1)._repr_html_()
    assert table.why(1).to_dict()["keys"][0]["columns"][1]["version"] == 1


def test_where_versions_come_from(lake: lakebed.Lake) -> None:
    """Commit users and snapshots, the place in a source that a sync had read, what expired, what compaction merged."""
    table = table_of(lake, {"write-only": "true", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "100"})
    identity, position = CommitIdentity("sync", 1), {SYNC_POSITION: '{"lsn": "16/B3"}'}
    with TableWriter(opened_of(table).writable(), identity=identity, properties=position) as writer:
        writer.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    table.write([{"k": 1, "g": 1, "a": 2, "s": 1}])
    first, second = table.why(1)[0].versions
    assert (first.snapshot_id, first.commit_user, first.source_position) == (1, "sync", "16/B3")
    assert (second.snapshot_id, second.source_position) == (2, None)
    table.with_options({"write-only": "false"}).compact(full=True)
    (why,) = table.why({"k": 1})
    (kept,) = why.versions
    assert (kept.file_source, kept.snapshot_id, kept.commit_kind) == ("compaction", 3, "COMPACT")
    oldest = why.gone[0]
    assert (oldest.commit_user, oldest.replaced_in, oldest.values["a"]) == ("sync", 3, 1)
    assert table.why(1, history=False)[0].gone == ()
    table.write([{"k": 2, "g": 1, "a": 1, "s": 1}])
    table.expire_snapshots(retain_max=1, retain_min=1)
    (after,) = table.why(1)
    assert [each.snapshot_id for each in after.versions] == [None]
    assert "expired" in repr(after)
    assert after.gone == ()


def test_files_that_can_not_hold_the_key_stay_closed(lake: lakebed.Lake) -> None:
    """Of many files only those of the key's bucket with the key in their range are read."""
    table = table_of(lake, {"bucket": "4", "write-only": "true"})
    for start in (0, 100, 200):
        table.write([{"k": key, "g": 0, "a": key, "s": 0} for key in range(start, start + 100)])
    why = table.why(150)
    assert (why.files.all, why.files.in_buckets, why.files.in_key_range, len(why.files.read)) == (12, 3, 1, 1)
    assert why.sentence.endswith("1 file read of 12")
    assert table.why(999)[0].outcome.startswith("not there")


def test_rows_that_are_not_shown(lake: lakebed.Lake) -> None:
    """A deletion vector, a level that is hidden, a delete, a row that waits for its bucket, one that is overwritten."""
    lazy = {"write-only": "true", "num-sorted-run.compaction-trigger": "10"}
    masked = table_of(lake, {**MASKED, **lazy})
    masked.write([{"k": key, "g": 1, "a": 1, "s": 1} for key in range(20_000)])
    assert masked.why(1)[0].outcome.startswith("not shown yet: its versions lie on level 0")
    busy = masked.with_options({"write-only": "false"})
    busy.compact(full=True)
    assert masked.why(1)[0].row is not None
    masked.write([{"k": 1, "g": 1, "a": 2, "s": 1, "kind": "-D"}], row_kind="kind")
    assert [each.state for each in masked.why(1)[0].versions] == ["merged", "hidden"]
    busy.write([{"k": 1, "g": 1, "a": 3, "s": 1}])
    states = {each.state: each for each in masked.why(1)[0].versions}
    assert states["deleted"].note == "marked by a deletion vector"
    assert states["deleted"].roles["a"] is Role.UNSEEN
    lake.drop_table("t")
    plain = table_of(lake, {"write-only": "true"})
    plain.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    plain.write([{"k": 1, "g": 1, "a": 1, "s": 1, "kind": "-D"}], row_kind="kind")
    assert plain.why(1)[0].outcome == "not shown: deleted, its newest version is -D"
    plain.write([{"k": 2, "g": 1, "a": 1, "s": 1}], overwrite=True)
    assert plain.why(1)[0].outcome == "not there: the last file that held it went in snapshot 3"
    lake.drop_table("t")
    postponed = table_of(lake, {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"})
    postponed.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    (why,) = postponed.why(1)
    assert (why.row, [each.state for each in why.versions]) == (None, ["waiting"])
    assert why.outcome.startswith("not shown yet: it waits for a bucket")
    with pytest.raises(Unsupported, match="wait for their bucket"):
        postponed.with_options({"postpone.merge-on-read": "true"}).why(1)


def test_expired_records_are_told(lake: lakebed.Lake) -> None:
    """Reads show them until compaction leaves them out."""
    table = table_of(lake, {"record-level.expire-time": "1 d", "record-level.time-field": "g", "write-only": "true"})
    table.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    (why,) = table.why(1)
    assert why.row is not None
    assert why.versions[0].note.startswith("expired by record-level.expire-time")


def test_a_key_that_moved_between_partitions(lake: lakebed.Lake) -> None:
    """Where the key does not name its partition, all that is stored of it is told, in whichever."""
    table = lake.create_table(
        "t", pa.schema(COLUMNS), primary_key=["k"], partition_by=["g"], options={"bucket": "-1", "write-only": "true"}
    )
    table.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    table.write([{"k": 1, "g": 2, "a": 2, "s": 1}])
    (why,) = table.why(1)
    assert why.row == {"k": 1, "g": 2, "a": 2, "s": 1}
    assert {each.partition for each in why.versions} == {"g=1", "g=2"}


def test_the_past_and_a_changed_schema(lake: lakebed.Lake) -> None:
    """A snapshot is explained as it was; columns that a file does not have are null."""
    table = table_of(lake, {"write-only": "true"})
    table.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    lake.sql("ALTER TABLE t ADD COLUMN n STRING")
    table.write([{"k": 1, "g": 1, "a": 2, "s": 1, "n": "x"}])
    assert [each.values["n"] for each in table.why(1)[0].versions] == [None, "x"]
    assert len(table.at(1).why(1)[0].versions) == 1


def test_tables_without_a_key_are_refused(lake: lakebed.Lake) -> None:
    """By name, with what to ask instead."""
    plain = lake.create_table("t", pa.schema(COLUMNS))
    with pytest.raises(InvalidArgument, match="has no primary key"):
        plain.why(1)
    with pytest.raises(InvalidArgument, match="has no primary key"):
        lake.table("t$why").to_arrow(filter="k = 1")


def test_the_system_table(lake: lakebed.Lake) -> None:
    """`t$why` has the table's columns and ours; a filter has to name keys."""
    table = lake.create_table(
        "t", pa.schema([*COLUMNS, ("_note", pa.string())]), primary_key=["k"], options={"bucket": "1"}
    )
    table.write([{"k": 1, "g": 1, "a": 1, "s": 1, "_note": "mine"}, {"k": 2, "g": 1, "a": 1, "s": 1, "_note": "b"}])
    why = lake.table("t$why")
    assert why.to_arrow(filter="k = 1").column("_note").to_pylist() == ["mine"]
    assert "__note" in why.arrow_schema.names
    assert (
        lake.query("SELECT _version, a FROM t$why WHERE k IN (1, 2) AND a = 1").arrow().to_pylist()
        == [{"_version": 1, "a": 1}] * 2
    )
    with pytest.raises(InvalidArgument, match="says nothing of `k`"):
        lake.query("SELECT * FROM t$why").arrow()
    with pytest.raises(InvalidArgument, match="says nothing of `k`"):
        why.to_arrow(filter="k > 1")


def test_no_key_and_no_snapshot(lake: lakebed.Lake) -> None:
    """Nothing is asked, or nothing is there: nothing is told, and nothing fails."""
    table = table_of(lake, {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"})
    assert table.why(1)[0].outcome.startswith("not there")
    table.write([{"k": 1, "g": 1, "a": 1, "s": 1}])
    assert list(table.why([])) == []
    assert table.why([]).to_arrow().num_rows == 0


@pytest.mark.nightly
def test_one_key_of_a_large_table() -> None:
    """One key of 20 million is explained at once: few of the files are opened, and that is told."""
    from benchmarks.why import measured

    found = measured(20_000_000)
    assert found["warm_median_s"] < 0.3
    assert found["files_opened_most"] < found["files"] / 2
