"""`t.compact`: fewer files, the same rows, whatever the merge engine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import CommitConflict, InvalidArgument, StorageError
from lakebed.lsm.checker import check_levels
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import CommitKind
from lakebed.rewrite.bucket import Compactor

ENGINES = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.amount.aggregate-function": "sum"},
}


def test_compaction_after_a_late_commit_keeps_newer_columns() -> None:
    """A writer that was opened before a schema change compacts under the schema of now: no newer value is lost."""
    table = _table(**{"bucket": 1, "write-only": False, "full-compaction.delta-commits": 1})
    late = table.writer()
    late.write(_one_row(1))
    table.alter(lakebed.AddColumn("score", "DOUBLE"), lakebed.UpdateColumnType("amount", "DOUBLE"))
    newer = _one_row(2).set_column(2, "amount", pa.array([-0.5])).append_column("score", pa.array([7.5]))
    table.write(newer)
    late.commit()
    assert table.snapshots()[-1].commit_kind == CommitKind.COMPACT
    rows = table.to_arrow().sort_by("id").select(["id", "amount", "score"]).to_pylist()
    assert rows == [{"id": 1, "amount": 1.0, "score": None}, {"id": 2, "amount": -0.5, "score": 7.5}]


@pytest.mark.parametrize(
    ("options", "is_stream", "levels"),
    [
        ({}, True, [5]),
        ({}, False, [4, 5]),
        ({"compaction.total-size-threshold": "0 b"}, True, [4, 5]),
        ({"changelog-producer": "full-compaction", "full-compaction.delta-commits": 100}, True, [4, 5]),
    ],
)
def test_streams_compact_small_buckets_as_a_whole(
    options: dict[str, object], is_stream: bool, levels: list[int]
) -> None:
    """Batches, tables that name a size, and those whose full compactions tell of changes go by the sizes of runs."""
    table = _table(**{"bucket": 1, "num-levels": 6, "num-sorted-run.compaction-trigger": 3, **options})
    rows = pa.concat_tables([_one_row(key) for key in range(3000)])
    table.write(rows)
    table.compact(full=True)
    writing = table.with_options({"write-only": False})
    for number in (1, 2):
        with writing.writer(commit_user="q", commit_identifier=number if is_stream else None) as writer:
            writer.write(rows.slice(10 * number, 10))
    live = live_files(table._opened.context.stores, table.snapshots()[-1])
    assert sorted(entry.file.level for entry in live) == levels
    assert table.to_arrow().num_rows == 3000


def _one_row(key: int) -> pa.Table:
    return pa.table(
        {
            "day": ["d"],
            "id": pa.array([key], pa.int32()),
            "amount": pa.array([key], pa.int64()),
            "note": pa.array(["n"]),
        }
    )


BY_KEY = [("day", "ascending"), ("id", "ascending")]


def _table(engine: str = "deduplicate", **options: object) -> lakebed.Table:
    lake = lakebed.connect(f"memory://compact-{np.random.default_rng().integers(1 << 60)}")
    return lake.create_table(
        "t",
        {"day": "STRING NOT NULL", "id": "INT NOT NULL", "amount": "BIGINT", "note": "STRING"},
        primary_key=["day", "id"],
        partition_by=["day"],
        options={"bucket": 2, "merge-engine": engine, "write-only": True, **ENGINES[engine], **options},
    )


def _fill(table: lakebed.Table, commits: int, *, deletes: bool, seed: int = 7) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(commits):
        count = 200
        rows = {
            "day": rng.choice(["x", "y"], count),
            "id": rng.integers(0, 300, count).astype(np.int32),
            "amount": pa.array(rng.integers(0, 100, count), mask=rng.random(count) < 0.2),
            "note": pa.array([f"n{n}" for n in rng.integers(0, 1000, count)], mask=rng.random(count) < 0.3),
            "kind": np.where(deletes & (rng.random(count) < 0.2), "-D", "+I"),
        }
        table.write(pa.table(rows), row_kind="kind")


def _rows(table: lakebed.Table) -> list[dict[str, object]]:
    return table.to_arrow().sort_by(BY_KEY).to_pylist()


def _violations(table: lakebed.Table) -> list[str]:
    key = [table.schema.field("id").type]
    return [text for split in table.scan().splits for text in check_levels(split.files, key)]


@pytest.mark.parametrize("engine", ENGINES)
def test_compaction_changes_no_row(engine: str) -> None:
    """Due and full compactions at any moment leave the rows as they are, in fewer files on sound levels."""
    table = _table(engine)
    for round_ in range(3):
        _fill(table, 6, deletes=engine == "deduplicate", seed=round_)
        before = _rows(table)
        files = len(table.scan().files)
        snapshot = table.compact(full=round_ == 2)
        assert snapshot is not None
        assert snapshot.commit_kind is CommitKind.COMPACT
        assert _rows(table) == before
        assert len(table.scan().files) < files
        assert _violations(table) == []
    assert {file.level for file in table.scan().files} == {5}
    assert sum(file.delete_row_count or 0 for file in table.scan().files) == 0
    assert table.compact(full=True) is None


def test_nothing_is_due_below_the_trigger() -> None:
    """Four runs stay as they are; the fifth makes a compaction due."""
    table = _table()
    _fill(table, 4, deletes=False)
    assert table.compact() is None
    _fill(table, 1, deletes=False, seed=9)
    assert table.compact() is not None


def test_where_chooses_partitions() -> None:
    """Only files of the chosen partitions are touched; a filter on other columns is refused."""
    table = _table()
    _fill(table, 3, deletes=False)
    table.compact(full=True, where=[("day", "=", "x")])
    levels = {(split.partition, file.level) for split in table.scan().splits for file in split.files}
    assert len({partition for partition, level in levels if level == 5}) == 1
    assert len({partition for partition, level in levels if level == 0}) == 1
    with pytest.raises(InvalidArgument, match="`amount`"):
        table.compact(where=[("amount", ">", 5)])


def test_earlier_snapshots_stay_readable() -> None:
    """Compaction deletes no file: time travel still sees what was."""
    table = _table()
    _fill(table, 5, deletes=True)
    before = _rows(table.at(snapshot=3))
    table.compact(full=True)
    assert _rows(table.at(snapshot=3)) == before
    assert table.changes(since=5).num_rows == 0


def test_writes_go_on_top_of_compacted_files() -> None:
    """Upserts and deletes after a compaction win over what it wrote."""
    table = _table()
    _fill(table, 5, deletes=False)
    table.compact(full=True)
    first = _rows(table)[0]
    table.write(
        pa.table({"day": [first["day"]], "id": pa.array([first["id"]], pa.int32()), "amount": [-1], "note": ["new"]})
    )
    assert _rows(table)[0] == {**first, "amount": -1, "note": "new"}


def test_schema_changes_are_applied_when_files_are_rewritten() -> None:
    """Files of an old schema come out of a compaction in the current one."""
    table = _table()
    _fill(table, 2, deletes=False)
    table.alter(lakebed.RenameColumn("note", "remark"), lakebed.AddColumn("extra", "INT"))
    before = _rows(table)
    table.compact(full=True)
    assert _rows(table) == before
    assert {file.schema_id for file in table.scan().files} == {1}


def test_two_compactions_of_the_same_files_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two compactions that started from the same files is refused, and leaves no file behind."""
    table = _table()
    _fill(table, 3, deletes=False)

    commit = Compactor._commit

    def late(self: Compactor, *arguments: object) -> object:
        monkeypatch.setattr(Compactor, "_commit", commit)
        table.compact(full=True)
        return commit(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Compactor, "_commit", late)
    before = _rows(table)
    with pytest.raises(CommitConflict, match="no longer there"):
        table.compact(full=True)
    assert _rows(table) == before
    context = table._opened.context
    on_disk = {status.name for status in context.fileio.list_recursive(context.paths.root) if "data-" in status.name}
    referenced = {
        entry.file.file_name for snapshot in table.snapshots() for entry in live_files(context.stores, snapshot)
    }
    assert on_disk == referenced


# --- while writing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_writing_keeps_the_number_of_runs_small(engine: str) -> None:
    """A table that compacts as it goes shows what a write-only table shows, from few files on sound levels."""
    table, plain = (_table(engine, **{"write-only": write_only}) for write_only in (False, True))
    for target in (table, plain):
        _fill(target, 23, deletes=engine == "deduplicate")
    assert _rows(table) == _rows(plain)
    assert _violations(table) == []
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds.count(CommitKind.APPEND) == 23
    assert kinds.count(CommitKind.COMPACT) >= 3
    for split in table.scan().splits:
        assert sum(file.level == 0 for file in split.files) <= 5
    # The compaction belongs to the commit that made it due.
    for before, after in pairwise(table.snapshots()):
        if after.commit_kind is CommitKind.COMPACT:
            assert (after.commit_user, after.commit_identifier) == (before.commit_user, before.commit_identifier)


def test_changes_do_not_show_compactions() -> None:
    """Whoever follows the changes sees each written row once, whenever files were merged."""
    table, plain = (_table(**{"write-only": write_only}) for write_only in (False, True))
    for target in (table, plain):
        _fill(target, 12, deletes=True)
    assert table.changes().to_pylist() == plain.changes().to_pylist()


def test_full_compaction_every_few_commits() -> None:
    """`full-compaction.delta-commits` merges everything at every n-th commit of a stream, at each of a batch job."""
    stream = _table(**{"write-only": False, "full-compaction.delta-commits": 3})
    for identifier in range(1, 7):
        with stream.writer(commit_user="job", commit_identifier=identifier) as writer:
            writer.write(_one_row(identifier))
        levels = {file.level for file in stream.scan().files}
        assert (levels == {5}) == (identifier % 3 == 0)
    batch = _table(**{"write-only": False, "full-compaction.delta-commits": 3})
    for number in range(2):
        batch.write(_one_row(number))
        assert {file.level for file in batch.scan().files} == {5}


def test_a_failed_compaction_does_not_fail_the_commit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows are in; what could not be compacted is logged and tried again after the next commit."""
    table = _table(**{"write-only": False, "bucket": 1, "num-sorted-run.compaction-trigger": 2})
    table.write(_one_row(1))
    commit = Compactor._commit

    def fail(self: Compactor, *arguments: object) -> object:
        raise StorageError("disk full", hint="make room")

    monkeypatch.setattr(Compactor, "_commit", fail)
    assert table.write(_one_row(2)) is not None
    assert "disk full" in caplog.text
    monkeypatch.setattr(Compactor, "_commit", commit)
    table.write(_one_row(3))
    assert table.to_arrow().num_rows == 3
    assert {file.level for file in table.scan().files} == {2}


def _one_row(number: int) -> pa.Table:
    return pa.table({"day": ["x"], "id": pa.array([number], pa.int32()), "amount": [number], "note": ["n"]})
