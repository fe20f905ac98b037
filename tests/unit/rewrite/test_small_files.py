"""Compaction of tables without a key: what is joined when, and that no row changes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.commit.attempt import Attempt
from lakebed.errors import CommitConflict, InvalidOption
from lakebed.metadata.snapshot import CommitKind
from lakebed.rewrite.small_files import AppendCompactor
from lakebed.schema.changes import AddColumn
from lakebed.table.plans import plan_write
from lakebed.write.commit import WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.sequence import BucketStates

COLUMNS = {"id": "INT", "p": "INT"}
BUCKET = {"bucket": "1", "bucket-key": "id"}


def _rows(start: int, stop: int, part: int = 0) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int32())
    return pa.table({"id": ids, "p": pa.array([part] * (stop - start), pa.int32())})


def _filled(table: lakebed.Table, commits: int, part: int = 0) -> None:
    for number in range(commits):
        table.write(_rows(number * 10, number * 10 + 10, part))


def _ids(table: lakebed.Table) -> list[int]:
    return table.to_arrow(columns=["id"]).column("id").to_pylist()


def _kinds(table: lakebed.Table) -> list[str]:
    return [snapshot.commit_kind.value for snapshot in table.snapshots()]


def test_small_files_wait_for_more(warehouse: Warehouse) -> None:
    """Four files stay; the fifth makes it worth it; rows keep their order."""
    table = warehouse.table("t", COLUMNS)
    _filled(table, 4)
    assert table.compact() is None
    table.write(_rows(40, 50))
    snapshot = table.compact()
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.delta_record_count) == (CommitKind.COMPACT, 0)
    assert len(table.scan().files) == 1
    assert _ids(table) == list(range(50))
    assert table.compact() is None
    assert table.compact(full=True) is None


def test_full_does_not_wait(warehouse: Warehouse) -> None:
    """Two files are enough for a full compaction."""
    table = warehouse.table("t", COLUMNS)
    _filled(table, 2)
    assert table.compact() is None
    assert table.compact(full=True) is not None
    assert _ids(table) == list(range(20))


def test_min_file_num(warehouse: Warehouse) -> None:
    """The table's options say how many files are worth it."""
    table = warehouse.table("t", COLUMNS, options={"compaction.min.file-num": "2"})
    _filled(table, 2)
    assert table.compact() is not None


def test_partitions_are_chosen(warehouse: Warehouse) -> None:
    """Files of different partitions never meet; a filter says which partitions to compact."""
    table = warehouse.table("t", COLUMNS, partition_by=["p"])
    for part in (1, 2):
        _filled(table, 5, part)
    table.compact(where=pc.field("p") == 1)
    assert sorted(len(split.files) for split in table.scan().splits) == [1, 5]
    table.compact()
    assert len(table.scan().files) == 2
    assert table.to_arrow().group_by("p").aggregate([("id", "count")]).to_pydict() == {
        "p": [1, 2],
        "id_count": [50] * 2,
    }


def test_buckets_compact_by_themselves(warehouse: Warehouse) -> None:
    """In a bucket the fifth file is joined with the others after its commit, in the order of writing."""
    table = warehouse.table("t", COLUMNS, options=BUCKET)
    _filled(table, 5)
    assert _kinds(table) == ["APPEND"] * 5 + ["COMPACT"]
    assert len(table.scan().files) == 1
    table.write(_rows(50, 60))
    assert _ids(table) == list(range(60))


def test_write_only_leaves_it_to_others(warehouse: Warehouse) -> None:
    """Writers of a write-only table compact nothing."""
    table = warehouse.table("t", COLUMNS, options=BUCKET | {"write-only": "true"})
    _filled(table, 6)
    assert _kinds(table) == ["APPEND"] * 6
    table.with_options({"write-only": "false"}).compact()
    assert _kinds(table)[-1] == "COMPACT"
    assert _ids(table) == list(range(60))


def test_streams_pass_over_compactions(warehouse: Warehouse) -> None:
    """Whoever follows a bucket reads each row once and in the order of writing, whatever is compacted meanwhile."""
    table = warehouse.table("t", COLUMNS, options=BUCKET)
    table.write(_rows(0, 10))
    stream = table.follow()
    seen: list[int] = []
    for number in range(1, 8):
        seen += [row for part in stream for row in part.column("id").to_pylist()]
        stream = table.follow(position=stream.position)
        table.write(_rows(number * 10, number * 10 + 10))
    seen += [row for part in stream for row in part.column("id").to_pylist()]
    assert seen == list(range(80))
    assert "COMPACT" in _kinds(table)


def test_deleted_rows_are_left_out(warehouse: Warehouse) -> None:
    """A file with many marked rows is rewritten alone, and its marks go with it; one with few waits."""
    options = {"deletion-vectors.enabled": "true", "target-file-size": "1 b"}
    table = warehouse.table("t", COLUMNS, _rows(0, 10), options=options)
    table.delete_where(pc.field("id") < 2)
    assert table.compact() is None
    table.delete_where(pc.field("id") < 3)
    snapshot = table.compact()
    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert snapshot.total_record_count == 7
    assert _ids(table) == list(range(3, 10))


def test_old_files_get_the_columns_of_today(warehouse: Warehouse) -> None:
    """Files of several schema versions become one of the latest."""
    table = warehouse.table("t", COLUMNS, _rows(0, 10))
    table.alter(AddColumn("note", "STRING"))
    table.write(_rows(10, 20).append_column("note", pa.array(["x"] * 10)))
    table.compact(full=True)
    (file,) = table.scan().files
    assert file.schema_id == 1
    assert table.to_arrow().column("note").to_pylist() == [None] * 10 + ["x"] * 10


@pytest.mark.parametrize("is_delete", [True, False], ids=["delete", "compaction"])
def test_somebody_was_faster(warehouse: Warehouse, is_delete: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that changed while they were compacted are left alone, and what was written is removed."""
    table = warehouse.table("t", COLUMNS, options={"deletion-vectors.enabled": "true"})
    _filled(table, 3)
    other = warehouse.reopened().table("t")
    picked = AppendCompactor.picked

    def late(self: AppendCompactor, snapshot: object) -> object:
        found = picked(self, snapshot)  # type: ignore[arg-type]
        monkeypatch.setattr(AppendCompactor, "picked", picked)
        if is_delete:
            other.delete_where(pc.field("id") == 5)
        else:
            other.compact(full=True)
        nonlocal before
        before = warehouse.contents()
        return found

    before: dict[str, str] = {}
    monkeypatch.setattr(AppendCompactor, "picked", late)
    with pytest.raises(CommitConflict):
        table.compact(full=True)
    assert warehouse.contents() == before
    assert len(_ids(table)) == (29 if is_delete else 30)


def test_n_24_small_files_are_joined_before_the_commit(warehouse: Warehouse) -> None:
    """Files of many tasks become one in each partition, in one snapshot, and nothing is left of them."""
    table = warehouse.table("t", COLUMNS, partition_by=["p"], options={"precommit-compact": "true"})
    context, identity = plan_write(table)
    attempt = Attempt(context.fileio)
    messages = []
    for task in range(3):
        maker = FileMaker(context, row_kind=None, overwrite=None, states=BucketStates, fileio=attempt.fileio)
        for part in (1, 2):
            maker.write(_rows(10 * task, 10 * task + 10, part), maker.abort)
        messages += maker.finish()
    assert sum(len(message.new_files) for message in messages) == 6
    commit = WriteCommit(context, overwrite=None, identity=identity, attempt=attempt)
    committed = commit.run(messages)
    assert committed is not None
    snapshot = committed.snapshot
    assert (snapshot.id, snapshot.commit_kind, snapshot.total_record_count) == (1, CommitKind.APPEND, 60)
    assert len(table.scan().files) == 2
    assert table.to_arrow(filter=pc.field("p") == 2).column("id").to_pylist() == list(range(30))
    assert sum("bucket-0/data-" in path for path in warehouse.contents() if "/t/" in path) == 2


@pytest.mark.parametrize("more", [{"primary_key": ["id"], "options": {"bucket": "1"}}, {"options": BUCKET}])
def test_precommit_where_it_has_no_effect(warehouse: Warehouse, more: dict) -> None:
    """Tables with buckets compact after the commit: the option is refused there."""
    options = {**more.pop("options"), "precommit-compact": "true"}
    with warehouse.refuses(InvalidOption, "precommit-compact"):
        warehouse.table("t", {"id": "INT NOT NULL"}, options=options, **more)
