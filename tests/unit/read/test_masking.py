"""Primary-key tables with deletion vectors: old rows are marked where they lie, and reads merge nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.lsm.compaction.universal import UniversalPicker
from lakebed.schema.changes import AddColumn

MASKING = {"deletion-vectors.enabled": "true", "bucket": "1"}
COLUMNS = {"k": "INT NOT NULL", "v": "STRING"}
SIZED = {"num-sorted-run.compaction-trigger": "20", "compaction.size-ratio": "0"}
"""Runs of growing age are not joined: level 0 goes up alone."""


def _rows(*rows: tuple[object, ...], names: tuple[str, ...] = ("k", "v")) -> pa.Table:
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(values, pa.int32() if name == "k" else None) for name, values in columns.items()})


def _deleted(*keys: int) -> pa.Table:
    return _rows(*((key, None, "-D") for key in keys), names=("k", "v", "kind")).cast(
        pa.schema([("k", pa.int32()), ("v", pa.string()), ("kind", pa.string())])
    )


def _shown(table: lakebed.Table) -> list[tuple[object, ...]]:
    shown = table.to_arrow()
    return sorted(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def _marks(table: lakebed.Table) -> list[int | None]:
    return sorted(place.cardinality for split in table.scan().splits for place in split.vectors.values())


def _many(count: int) -> pa.Table:
    """Enough rows that later commits are small beside them, and stay apart."""
    return _rows(*((key, f"text {key * 7919}") for key in range(count)))


def test_t_04_sums_are_complete(warehouse: Warehouse) -> None:
    """The new row holds the whole sum, since the old one is found and marked."""
    options = MASKING | {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = warehouse.table("t", {"k": "INT NOT NULL", "n": "BIGINT"}, primary_key=["k"], options=options)
    table.write(_rows(*((key, 10) for key in range(1000)), names=("k", "n")))
    table.write(_rows((1, 5), names=("k", "n")))
    assert _marks(table) == [1]
    assert _shown(table)[:3] == [(0, 10), (1, 15), (2, 10)]
    old, new = sorted(table.scan().files, key=lambda file: -file.row_count)
    assert (old.row_count, new.row_count) == (1000, 1)


def test_k_23_deletes_end_at_level_0(warehouse: Warehouse) -> None:
    """A delete goes no further than the row that it marks: no retract is kept above level 0."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    table.write(_deleted(3), row_kind="kind")
    assert {file.delete_row_count for file in table.scan().files} == {0}
    assert len(_shown(table)) == 999


def test_new_rows_wait_for_compaction(warehouse: Warehouse) -> None:
    """What is written without compaction is not shown, unless the read is asked to merge."""
    table = warehouse.table("t", COLUMNS, _many(10), primary_key=["k"], options=MASKING | {"write-only": "true"})
    assert _shown(table) == []
    merging = table.with_options({"deletion-vectors.merge-on-read": "true"})
    assert len(_shown(merging)) == 10
    compacting = table.with_options({"write-only": "false"})
    compacting.compact()
    table.write(_rows((1, "new"), (77, "more")))
    table.write(_deleted(2), row_kind="kind")
    assert len(_shown(table)) == 10
    assert [key for key, _ in _shown(merging)] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 77]
    assert _shown(merging)[1] == (1, "new")
    compacting.compact()
    assert _shown(table) == _shown(merging)


def test_filters_skip_files(warehouse: Warehouse) -> None:
    """Filters on any column prune files, since no other file can hold a newer version of their rows."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "n": "BIGINT"}, primary_key=["k"], options=MASKING)
    table.write(_rows(*((key, key) for key in range(1000)), names=("k", "n")))
    table.write(_rows((1, 5000), names=("k", "n")))
    assert len(table.scan().files) == 2
    assert len(table.scan(pc.field("n") == 5000).files) == 1
    assert table.to_arrow(filter=pc.field("n") == 1).num_rows == 0
    assert table.to_arrow(filter=pc.field("n") == 5000).to_pylist() == [{"k": 1, "n": 5000}]


def test_full_compaction_ends_all_marks(warehouse: Warehouse) -> None:
    """Afterwards no row is marked, and the index files are no part of the table."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    table.write(_rows((1, "c")))
    before = _shown(table)
    table.compact(full=True)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert _shown(table) == before


def test_marks_of_several_files(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows lie on several levels and in several files of a level, and all of them share one index file."""
    monkeypatch.setattr(UniversalPicker, "pick", lambda *_, **__: None)
    options = MASKING | SIZED | {"target-file-row-num": "100"}
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=options)
    table.write(_rows(*((key, "second") for key in range(0, 1000, 100))))
    table.write(_rows((0, "third"), (500, "third"), (5, "third")))
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (entry,) = table._opened.context.stores.index_manifests.read(snapshot.index_manifest or "")
    assert sum(part.cardinality or 0 for part in entry.deletion_vector_ranges or ()) == 13
    wanted = {key: f"text {key * 7919}" for key in range(1000)}
    wanted |= dict.fromkeys(range(0, 1000, 100), "second") | dict.fromkeys((0, 500, 5), "third")
    assert dict(_shown(table)) == wanted


def test_lookups_of_files_with_old_schemas(warehouse: Warehouse) -> None:
    """Old rows are found and marked in files that predate a column."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    table.alter(AddColumn("note", "STRING"))
    table.write(_rows((1, "c", "x"), names=("k", "v", "note")))
    assert _marks(table) == [1]
    assert _shown(table)[1] == (1, "c", "x")
    assert len(_shown(table)) == 1000


def test_expired_rows_are_marked_too(warehouse: Warehouse) -> None:
    """A row that has outlived its time adds nothing to a new one of its key, and does not stay beside it."""
    options = MASKING | {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "record-level.expire-time": "1 d",
        "record-level.time-field": "at",
    }
    columns = {"k": "INT NOT NULL", "n": "BIGINT", "at": "BIGINT"}
    table = warehouse.table("t", columns, primary_key=["k"], options=options)
    names = ("k", "n", "at")
    plain = table.with_options({"record-level.expire-time": "40000 d"})
    plain.write(_rows(*((key, 10, 1000) for key in range(1000)), names=names))
    table.write(_rows((1, 5, 4_000_000_000), names=names))
    assert [row for row in _shown(table) if row[0] == 1] == [(1, 5, 4_000_000_000)]


def test_read_optimized_view(warehouse: Warehouse) -> None:
    """What is compacted is shown whole: no row is missing because a newer one lies on another level."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    table.write(_rows((1, "c")))
    table.with_options({"write-only": "true"}).write(_rows((2, "not compacted")))
    view = warehouse.lake.table("t$ro")
    assert dict(_shown(view)) == {key: f"text {key * 7919}" for key in range(1000)} | {1: "c"}


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_overwrite_upgrade(warehouse: Warehouse, bucket: str) -> None:
    """Rows of an overwrite are shown at once, even if nobody compacts; unless the table keeps them on level 0."""
    options = MASKING | {"write-only": "true", "bucket": bucket}
    table = warehouse.table("t", COLUMNS, _many(10), primary_key=["k"], options=options)
    assert _shown(table) == []
    table.write(_rows((3, "C")), overwrite=True)
    assert _shown(table) == [(3, "C")]
    table.with_options({"overwrite-upgrade": "false"}).write(_rows((4, "D")), overwrite=True)
    assert _shown(table) == []
    assert _shown(table.with_options({"deletion-vectors.merge-on-read": "true"})) == [(4, "D")]


def test_overwrite_forgets_marks(warehouse: Warehouse) -> None:
    """New content begins without marks."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    table.write(_rows((1, "c")))
    table.write(_rows((5, "x")), overwrite=True)
    assert _shown(table) == [(5, "x")]
    assert _marks(table) == []


def test_dynamic_buckets(warehouse: Warehouse) -> None:
    """Hashes of keys and marks of rows share the index manifest."""
    options = {"deletion-vectors.enabled": "true", "dynamic-bucket.target-row-num": "300"}
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=options)
    table.write(_rows((1, "c"), (999, "d"), (2000, "e")))
    assert sum(mark or 0 for mark in _marks(table)) == 2
    wanted = {key: f"text {key * 7919}" for key in range(1000)} | {1: "c", 999: "d", 2000: "e"}
    assert dict(_shown(table)) == wanted
    table.compact(full=True)
    table.write(_rows((2, "f")))
    assert dict(_shown(table)) == wanted | {2: "f"}


def test_difference_of_masked_states(warehouse: Warehouse) -> None:
    """The difference of two states is told key by key, whatever is marked where."""
    table = warehouse.table("t", COLUMNS, _many(1000), primary_key=["k"], options=MASKING)
    before = table.latest_snapshot()
    table.write(_rows((1, "c")))
    table.write(_deleted(2), row_kind="kind")
    after = table.latest_snapshot()
    assert before is not None
    assert after is not None
    told = [tuple(row.values()) for row in table.diff(before.id, after.id).to_pylist()]
    assert sorted(told) == sorted([("-U", 1, "text 7919"), ("+U", 1, "c"), ("-D", 2, "text 15838")])
