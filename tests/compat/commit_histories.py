"""Short lives of tables that between them contain every kind of commit Lakebed makes, for judges to look at each step.

A history is a generator: it changes tables of a warehouse and yields what there is to see after each commit. That no
kind of commit is missing is proven by `test_every_commit`, which compares with what the source can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed import AddColumn, DropColumn, First, RenameColumn, SetOption, Table, UpdateColumnPosition, UpdateColumnType
from lakebed.rewrite.rows_by_place import ReplaceRows, rows_matching
from lakebed.table.plans import plan_write
from lakebed.types.predicate_parse import to_predicate

from . import ours
from .judges import Row
from .judges.canonical import arrow_table


@dataclass(frozen=True)
class Step:
    """What was done, and where to look now: a table or view, at a snapshot or tag or as it is."""

    did: str
    name: str = "t"
    point: dict[str, Any] = field(default_factory=dict)


History = Callable[[Path], Iterator[Step]]

KEYED = {"part": "INT NOT NULL", "id": "INT NOT NULL", "v": "STRING", "n": "INT"}
PLAIN = {"part": "INT", "id": "INT", "v": "STRING", "n": "INT"}


def _rows(ids: Sequence[int], word: str) -> list[Row]:
    return [{"part": number % 3, "id": number, "v": f"{word} {number}", "n": number} for number in ids]


def _keyed(warehouse: Path, options: dict[str, str], *, key: Sequence[str] = ("part", "id")) -> Table:
    return ours.create(
        warehouse, "t", KEYED, primary_key=list(key), partition_by=["part"], options={"bucket": "2", **options}
    )


def _plain(warehouse: Path, options: dict[str, str], partition_by: Sequence[str] = ()) -> Table:
    return ours.create(warehouse, "t", PLAIN, partition_by=list(partition_by), options=options)


def _delete(table: Table, rows: list[Row]) -> None:
    ours.write(table, rows, ["-D"] * len(rows))


# --- tables with a key -----------------------------------------------------------------------------------------------


def upkeep(warehouse: Path) -> Iterator[Step]:
    """Everything that looks after a table, on one with a key and partitions."""
    table = _keyed(warehouse, {})
    ours.write(table, _rows(range(12), "first"))
    yield Step("append")
    ours.write(table, _rows(range(6), "second"))
    yield Step("upsert")
    _delete(table, _rows([1, 2], "second"))
    yield Step("delete")
    table.compact(full=True)
    yield Step("full compaction")
    table.create_tag("kept", time_retained="1 d")
    yield Step("tag", point={"tag": "kept"})
    ours.write(table, _rows([3, 6, 12], "over"), overwrite={"part": 0})
    yield Step("overwrite of a partition")
    ours.write(table, _rows([4, 7], "over"), overwrite=True)
    yield Step("dynamic overwrite")
    table.rename_tag("kept", "old")
    yield Step("renamed tag", point={"tag": "old"})
    table.create_tag("moving")
    table.replace_tag("moving", 3)
    yield Step("replaced tag", point={"tag": "moving"})
    table.analyze(True)
    yield Step("analyze")
    table.rollback_to_as_latest(2)
    yield Step("an old state made new")
    table.compact(full=True)
    yield Step("compaction of an old state made new")
    table.compact_manifest()
    yield Step("compaction of manifests")
    table.drop_partitions([{"part": 2}])
    yield Step("dropped partition")
    table.rescale(3)
    table.alter(SetOption("bucket", "3"))
    yield Step("rescale")
    ours.write(table, _rows(range(20, 26), "third"))
    yield Step("append after rescale")
    table.expire_partitions(
        "1 d", timestamp_formatter="yyyy", timestamp_pattern="200$part", expire_strategy="values-time"
    )
    yield Step("expired partitions")
    ours.write(table, _rows(range(20, 26), "fourth"))
    table.rollback_to(tag="old")
    table.alter(SetOption("bucket", "2"))
    yield Step("rollback to a tag")
    ours.write(table, _rows(range(30, 33), "fifth"))
    table.expire_snapshots(retain_max=1, retain_min=1)
    yield Step("expiry")
    table.rollback_to(tag="old")
    yield Step("rollback to a tag whose snapshot has expired")
    ours.write(table, _rows(range(33, 36), "sixth"))
    yield Step("append after rollback")
    table.truncate()
    yield Step("truncate")
    ours.write(table, _rows(range(3), "last"))
    yield Step("append after truncate")


def lost_files(warehouse: Path) -> Iterator[Step]:
    """A table that somebody took a file from."""
    table = _keyed(warehouse, {})
    ours.write(table, _rows(range(6), "first"))
    lost = table.scan().files[0].file_name
    next(Path(table.location).rglob(lost)).unlink()
    table.remove_missing_files()
    yield Step("missing files removed")
    table.expire_snapshots(retain_max=1, retain_min=1)  # the state before can not be read by anybody
    yield Step("expiry")


def branches(warehouse: Path) -> Iterator[Step]:
    """Branches that go their own way, and become the main line."""
    table = _keyed(warehouse, {})
    ours.write(table, _rows(range(6), "first"))
    table.compact(full=True)
    table.create_tag("fork")
    table.create_branch("b", "fork")
    yield Step("branch", "t$branch_b")
    branch = table.on_branch("b")
    ours.write(branch, _rows(range(3), "branch"))
    yield Step("append to a branch", "t$branch_b")
    branch.compact(full=True)
    yield Step("compaction of a branch", "t$branch_b")
    ours.write(table, _rows(range(4), "main"))
    yield Step("append beside a branch")
    table.fast_forward("b")
    yield Step("fast-forward")
    ours.write(table, _rows(range(5), "after"))
    yield Step("append after fast-forward")
    table.create_branch("empty")
    ours.write(table.on_branch("empty"), _rows(range(2), "empty"))
    yield Step("empty branch", "t$branch_empty")


def schema_changes(warehouse: Path) -> Iterator[Step]:
    """Columns come, go, move, and change name and type between commits of all kinds."""
    table = _keyed(warehouse, {})
    ours.write(table, _rows(range(6), "first"))
    table.alter(AddColumn("extra", "DOUBLE"), UpdateColumnType("n", "BIGINT"))
    yield Step("added column, wider type")
    ours.write(table, [row | {"extra": 0.5, "n": 1 << 40} for row in _rows(range(3), "second")])
    yield Step("append of new columns")
    table.alter(RenameColumn("v", "w"), UpdateColumnPosition("extra", First()))
    yield Step("renamed and moved columns")
    table.compact(full=True)
    yield Step("compaction of two schemas")
    table.alter(DropColumn("n"))
    ours.write(table, [{"part": 0, "id": 0, "w": "third", "extra": None}])
    yield Step("dropped column")
    table.rollback_to_as_latest(1)
    yield Step("old schema made new")


def _producing(producer: str) -> History:
    def history(warehouse: Path) -> Iterator[Step]:
        # Java 1.4.2 fails where it should keep more changelogs than there are, so the least number is small.
        snapshots = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "3"}
        changelogs = {"changelog.num-retained.min": "1", "changelog.num-retained.max": "20"}
        table = _keyed(warehouse, snapshots | changelogs | {"changelog-producer": producer})
        ours.write(table, _rows(range(6), "first"))
        yield Step("append")
        ours.write(table, _rows(range(3), "second"))
        yield Step("upsert")
        _delete(table, _rows([1], "second"))
        yield Step("delete")
        table.compact(full=True)
        yield Step("full compaction")
        yield Step("changes", "t$audit_log")
        ours.write(table, _rows([3, 6, 12], "over"), overwrite={"part": 0})
        yield Step("overwrite")
        table.expire_snapshots(retain_max=1, retain_min=1)
        yield Step("expiry that keeps changelogs")
        with table.writer(commit_user="stream", commit_identifier=7) as writer:
            writer.write(arrow_table(_rows([3], "last"), table.arrow_schema))
        yield Step("commit of a stream")

    return history


def _engine(options: dict[str, str]) -> History:
    def history(warehouse: Path) -> Iterator[Step]:
        table = _keyed(warehouse, options)
        ours.write(table, _rows(range(6), "first"))
        yield Step("append")
        ours.write(table, [row | {"v": None, "n": 5} for row in _rows(range(3), "")])
        yield Step("second version")
        table.compact(full=True)
        yield Step("full compaction")
        ours.write(table, _rows(range(2, 8), "third"))
        yield Step("third version")
        table.compact()
        yield Step("compaction")

    return history


def _marking(options: dict[str, str]) -> History:
    def history(warehouse: Path) -> Iterator[Step]:
        table = _keyed(
            warehouse, {"deletion-vectors.enabled": "true", "file-index.bloom-filter.columns": "v"} | options
        )
        ours.write(table, _rows(range(60), "first"))
        yield Step("append")
        ours.write(table, _rows(range(0, 60, 7), "second"))
        yield Step("upsert that marks")
        _delete(table, _rows(range(0, 60, 5), ""))
        yield Step("delete that marks")
        table.rollback_to_as_latest(3)
        yield Step("an old state with marks made new")
        table.compact(full=True)
        yield Step("full compaction")

    return history


def dynamic(warehouse: Path) -> Iterator[Step]:
    """Buckets that an index remembers."""
    table = _keyed(warehouse, {"bucket": "-1", "dynamic-bucket.target-row-num": "4"})
    ours.write(table, _rows(range(30), "first"))
    yield Step("append")
    ours.write(table, _rows(range(0, 40, 3), "second"))
    yield Step("upsert")
    table.compact(full=True)
    yield Step("full compaction")
    table.drop_partitions([{"part": 1}])
    yield Step("dropped partition")
    ours.write(table, _rows([0, 3, 6], "over"), overwrite={"part": 0})
    yield Step("overwrite")


def cross_partition(warehouse: Path) -> Iterator[Step]:
    """Keys that move from one partition to another."""
    table = _keyed(warehouse, {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}, key=["id"])
    ours.write(table, _rows(range(12), "first"))
    yield Step("append")
    ours.write(table, [row | {"part": 7} for row in _rows(range(5), "moved")])
    yield Step("keys that move")
    table.compact(full=True)
    yield Step("full compaction")


def postponed(warehouse: Path) -> Iterator[Step]:
    """Rows that wait for a bucket until a compaction."""
    options = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"}
    table = _keyed(warehouse, options)
    ours.write(table, _rows(range(12), "first"))
    yield Step("rows that wait")
    table.compact()
    yield Step("rows placed")
    ours.write(table, _rows(range(5), "second"))
    table.compact(full=True)
    yield Step("rows placed and compacted")


def record_expiry(warehouse: Path) -> Iterator[Step]:
    """Rows that are left out by compaction because their time is over."""
    table = _keyed(warehouse, {"record-level.expire-time": "1 d", "record-level.time-field": "n"})
    late = 2_000_000_000  # seconds: later than any clock here
    ours.write(table, [row | {"n": late} for row in _rows(range(6), "lives")])
    ours.write(table, [row | {"n": 5} for row in _rows(range(3, 9), "dies")])
    table.compact(full=True)
    yield Step("compaction that lets rows go")


# --- tables without a key --------------------------------------------------------------------------------------------


def plain(warehouse: Path) -> Iterator[Step]:
    """Files joined, sorted, rewritten and replaced."""
    table = _plain(warehouse, {"compaction.min.file-num": "2", "file-index.bloom-filter.columns": "id"}, ["part"])
    for start in (0, 10, 20):
        ours.write(table, _rows(range(start, start + 10), "first"))
        yield Step("append")
    table.compact(full=True)
    yield Step("small files joined")
    table.compact(order_by=["v"])
    yield Step("rows sorted")
    table.delete_where(pc.field("id") < 5)
    yield Step("delete that rewrites files")
    ours.write(table, _rows([1, 4], "over"), overwrite={"part": 1})
    yield Step("overwrite of a partition")
    table.drop_partitions([{"part": 2}])
    yield Step("dropped partition")
    ours.write(table, _rows([1], "over"), overwrite={})
    yield Step("overwrite of all")
    table.truncate()
    yield Step("truncate")


def merged_branches(warehouse: Path) -> Iterator[Step]:
    """Rows of one branch brought into another, and files that get an index later."""
    table = _plain(warehouse, {})
    ours.write(table, _rows(range(5), "first"))
    table.create_tag("fork")
    table.create_branch("b", "fork")
    ours.write(table.on_branch("b"), _rows(range(5, 9), "branch"))
    assert table.merge_branch("b") is not None
    yield Step("merged branch")
    table.alter(SetOption("file-index.bloom-filter.columns", "id"))
    assert table.rewrite_file_index()
    yield Step("indexes of old files")


def bucketed(warehouse: Path) -> Iterator[Step]:
    """Rows without a key in buckets."""
    table = _plain(warehouse, {"bucket": "2", "bucket-key": "id"})
    for start in (0, 10):
        ours.write(table, _rows(range(start, start + 10), "first"))
    yield Step("append")
    table.compact(full=True)
    yield Step("compaction")
    table.rescale(3)
    table.alter(SetOption("bucket", "3"))
    yield Step("rescale")


def _marked(options: dict[str, str]) -> History:
    def history(warehouse: Path) -> Iterator[Step]:
        table = _plain(warehouse, {"deletion-vectors.enabled": "true"} | options)
        for start in (0, 50):
            ours.write(table, _rows(range(start, start + 50), "first"))
        table.delete_where(pc.field("id").isin([7, 8, 60]))
        yield Step("delete that marks")
        table.delete_where(pc.field("id") >= 90)
        yield Step("marks on top of marks")
        table.compact(full=True)
        yield Step("compaction of marked files")

    return history


def _replace(table: Table, where: pc.Expression, operation: str, places: bool) -> None:
    """An UPDATE as statements make it: new versions of rows, with the ids of the old ones."""
    context, _ = plan_write(table)
    old = table.to_arrow(columns=[*PLAIN, "_ROW_ID"], filter=where)
    index = old.schema.get_field_index("v")
    changed = old.set_column(index, "v", pa.array([f"changed {operation}"] * old.num_rows, pa.string()))
    deleted: dict[Any, Any] = {}
    if places:
        changed = changed.append_column("_SEQUENCE_NUMBER", pa.nulls(old.num_rows, pa.int64()))
        predicate = to_predicate(where, context.arrow_schema_with_hidden)
        deleted = dict(rows_matching(context, table.latest_snapshot(), predicate))
    assert ReplaceRows(context, table.latest_snapshot(), operation).commit(deleted, changed) is not None


def _tracked(options: dict[str, str]) -> History:
    def history(warehouse: Path) -> Iterator[Step]:
        table = _plain(warehouse, {"row-tracking.enabled": "true"} | options)
        view = "t$row_tracking"
        ours.write(table, _rows(range(5), "first"))
        ours.write(table, _rows(range(5, 9), "second"))
        yield Step("append", view)
        table.delete_where(pc.field("id") == 1)
        yield Step("delete", view)
        _replace(table, pc.field("id") == 3, "UPDATE", places=True)
        yield Step("update", view)
        _replace(table, pc.field("id") == 4, "MERGE", places=True)
        yield Step("merge", view)
        table.compact(full=True)
        yield Step("compaction", view)
        ours.write(table, _rows([9], "third"))
        yield Step("append after compaction", view)

    return history


def column_files(warehouse: Path) -> Iterator[Step]:
    """Columns of rows in files of their own."""
    table = _plain(warehouse, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    ours.write(table, _rows(range(5), "first"))
    _replace(table, pc.field("id") == 1, "UPDATE", places=False)
    yield Step("update of a column")
    ours.write(table, _rows(range(5, 7), "second"))
    yield Step("append")
    table.compact(full=True)
    yield Step("compaction")


def marked_columns(warehouse: Path) -> Iterator[Step]:
    """Columns of rows in files of their own, and rows that are marked as deleted; ids of rows are seen too."""
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "write-only": "true"} | VECTORS
    table, view = _plain(warehouse, options, ["part"]), "t$row_tracking"
    ours.write(table, _rows(range(9), "first"))
    table.delete_where(pc.field("id").isin([0, 4]))
    yield Step("delete", view)
    _replace(table, pc.field("id") <= 3, "UPDATE", places=False)
    yield Step("update beside a deleted row", view)
    table.delete_where(pc.field("v") == "changed UPDATE")
    yield Step("delete by a changed column", view)
    ours.write(table, _rows(range(9, 15), "second"))
    table.delete_where(pc.field("id") == 12)
    yield Step("append, and delete of a new row", view)
    table.reassign_row_ids()
    yield Step("other ids", view)
    _replace(table, pc.field("id") >= 7, "MERGE", places=False)
    yield Step("update by other ids", view)
    table.compact(full=True)
    yield Step("compaction", view)
    table.delete_where(pc.field("id") == 5)
    table.with_options({"data-evolution.compaction.rewrite-row-ids": "true"}).compact(full=True)
    yield Step("compaction without deleted rows", view)
    table.rollback_to_as_latest(snapshot=3)
    yield Step("an old state with its old ids", view)


WIDE = {"deletion-vectors.bitmap64": "true"}
VECTORS = {"deletion-vectors.enabled": "true"}

HISTORIES: dict[str, History] = {
    "upkeep": upkeep,
    "lost files": lost_files,
    "branches": branches,
    "schema changes": schema_changes,
    "changelog of input": _producing("input"),
    "changelog by lookup": _producing("lookup"),
    "changelog by full compaction": _producing("full-compaction"),
    "partial update": _engine(
        {
            "merge-engine": "partial-update",
            "fields.n.sequence-group": "v",
            "partial-update.remove-record-on-delete": "false",
        }
    ),
    "aggregation": _engine(
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "max"}
    ),
    "first row": _engine({"merge-engine": "first-row"}),
    "sequence field": _engine({"sequence.field": "n"}),
    "keyed vectors": _marking({}),
    "keyed wide vectors": _marking(WIDE),
    "dynamic buckets": dynamic,
    "cross partition": cross_partition,
    "postponed buckets": postponed,
    "record expiry": record_expiry,
    "plain": plain,
    "plain in buckets": bucketed,
    "merged branches": merged_branches,
    "plain vectors": _marked({}),
    "plain wide vectors": _marked(WIDE),
    "tracked rows": _tracked({}),
    "tracked rows with vectors": _tracked(VECTORS),
    "column files": column_files,
    "column files with vectors": marked_columns,
}
