"""Changes of what stored rows mean: the table is folded first, or the change is refused, and no row is lost."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, changed_elsewhere, ints

from lakebed import DropColumn, RemoveOption, RenameColumn, SetOption, Table, UpdateColumnNullability, UpdateColumnType
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, InvalidSchema
from lakebed.schema.changes import SchemaChange
from lakebed.schema.store import SchemaStore
from lakebed.table.plans import plan_stream

SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
PARTIAL_SUM = {
    "merge-engine": "partial-update",
    "fields.v.aggregate-function": "sum",
    "fields.s.sequence-group": "v",
}


def keyed(warehouse: Warehouse, options: dict[str, str], **columns: str) -> Table:
    """A table with a key, one bucket, and nobody who compacts it by the way."""
    given = {"bucket": "1", "write-only": "true", **options}
    return warehouse.lake.create_table(
        "t", {"k": "INT NOT NULL", **(columns or {"v": "INT"})}, primary_key=["k"], options=given
    )


def put(table: Table, *rows: Sequence[Any], kind: str = "+I") -> None:
    """One commit of rows with a kind."""
    names = table.schema.field_names
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    data = pa.table(
        {name: pa.array(values, table.schema.arrow_schema.field(name).type) for name, values in columns.items()}
    )
    if table.primary_key:
        table.write(data.append_column("kind", pa.array([kind] * len(rows))), row_kind="kind")
    else:
        table.write(data)


def shown(table: Table) -> list[tuple[Any, ...]]:
    """All rows, by key."""
    return [tuple(row.values()) for row in table.to_arrow().sort_by(table.schema.field_names[0]).to_pylist()]


LEVELS = {
    "num-levels": "6",
    "num-sorted-run.compaction-trigger": "2",
    "compaction.max-size-amplification-percent": "9999",
}
"""Small runs are merged with each other, and not with a large one."""
MANY = pa.table({"k": pa.array(range(1000, 6000), pa.int32()), "v": pa.array(range(5000), pa.int32())})


def in_levels(table: Table, *values: int) -> None:
    """A sum in parts: the first on the highest level beside many other rows, the others below it."""
    first, *others = values
    rows = {
        "k": pa.concat_arrays([ints(1), *MANY["k"].chunks]),
        "v": pa.concat_arrays([ints(first), *MANY["v"].chunks]),
    }
    missing = [name for name in table.schema.field_names if name not in rows]
    table.write(pa.table({**rows, **{name: pa.array([1] * 5001, pa.int32()) for name in missing}}))
    table.compact(full=True)
    for number, value in enumerate(others, 2):
        put(table, (1, value, *[number for _ in missing]))
        table.with_options({"compaction.force-up-level-0": "true"}).compact()
    assert len({file.level for file in table.scan().files} - {0}) == 2


def first(table: Table) -> tuple[Any, ...]:
    """The row of key 1."""
    (row,) = table.to_arrow(filter=[("k", "=", 1)]).to_pylist()
    return tuple(row.values())


PRODUCERS = ["none", "input", "lookup", "full-compaction"]


@pytest.mark.parametrize("options", [SUM, PARTIAL_SUM], ids=["aggregation", "partial-update"])
@pytest.mark.parametrize("before", PRODUCERS)
@pytest.mark.parametrize("after", PRODUCERS)
def test_another_changelog_producer_keeps_sums(
    warehouse: Warehouse, options: dict[str, str], before: str, after: str
) -> None:
    """A sum stays what it is when the producer changes, there and back, whatever is compacted in between."""
    table = keyed(warehouse, {**options, **LEVELS, "changelog-producer": before}, v="INT", s="INT")
    in_levels(table, 15, 5, 5)
    assert first(table) == (1, 25, 3)
    table.alter(SetOption("changelog-producer", after))
    assert first(table) == (1, 25, 3)
    put(table, (1, 1, 4))
    table.with_options({"compaction.force-up-level-0": "true"}).compact()
    assert first(table) == (1, 26, 4)
    table.alter(SetOption("changelog-producer", before))
    assert first(table) == (1, 26, 4)
    table.compact(full=True)
    assert first(table) == (1, 26, 4)


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (SUM, {"changelog-producer": "lookup"}),
        (SUM, {"fields.v.aggregate-function": "max"}),
        ({}, {"sequence.field": "v"}),
        ({}, {"ignore-delete": "true"}),
        ({}, {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}),
        ({}, {"merge-engine": "first-row"}),
        ({}, {"bucket": "-1"}),
    ],
    ids=lambda value: next(iter(value), "none"),
)
def test_one_handle_can_not_give_rows_another_meaning(
    warehouse: Warehouse, stored: dict[str, str], given: dict[str, str]
) -> None:
    """What one handle writes and compacts is read by all others: it is refused for one of them."""
    table = keyed(warehouse, stored)
    put(table, (1, 1))
    with warehouse.refuses(InvalidOption, "one handle", next(iter(given))):
        table.with_options(given)
    with warehouse.refuses(InvalidOption, "one handle"):
        plan_stream(table, options=given)


def test_a_handle_does_not_keep_an_older_meaning(warehouse: Warehouse) -> None:
    """Options that a handle repeats are refused once the table has others."""
    table = keyed(warehouse, {**SUM, "changelog-producer": "none"})
    handle = table.with_options({"changelog-producer": "none", "fields.v.aggregate-function": "sum"})
    put(table, (1, 10))
    table.alter(SetOption("changelog-producer", "lookup"))
    with warehouse.refuses(InvalidOption, "changelog-producer", "one handle"):
        handle.compact(full=True)


def test_ignoring_deletes_brings_no_row_back(warehouse: Warehouse) -> None:
    """A delete that is stored when `ignore-delete` is switched on has taken its row for good."""
    table = keyed(warehouse, {})
    put(table, (1, 1), (2, 2))
    put(table, (1, 1), kind="-D")
    table.alter(SetOption("ignore-delete", "true"))
    assert shown(table) == [(2, 2)]
    table.compact(full=True)
    put(table, (2, 2), kind="-D")
    assert shown(table) == [(2, 2)]
    with warehouse.refuses(InvalidOption, "ignore-delete", "missing"):
        table.alter(SetOption("ignore-delete", "false"))
    with warehouse.refuses(InvalidOption, "ignore-delete", "missing"):
        table.alter(RemoveOption("ignore-delete"))


@pytest.mark.parametrize(
    "change",
    [
        SetOption("sequence.field", "b"),
        RemoveOption("sequence.field"),
        SetOption("sequence.field.sort-order", "descending"),
    ],
    ids=["other", "none", "descending"],
)
def test_another_order_of_rows(warehouse: Warehouse, change: SchemaChange) -> None:
    """The row that was the newest stays it when rows are ordered otherwise from now on."""
    table = keyed(warehouse, {"sequence.field": "a"}, a="INT", b="INT")
    put(table, (1, 5, 1), (2, 1, 1))
    put(table, (1, 3, 9))
    before = shown(table)
    assert before == [(1, 5, 1), (2, 1, 1)]
    table.alter(change)
    assert shown(table) == before
    table.compact(full=True)
    assert shown(table) == before
    assert table.at(snapshot=2).to_arrow().num_rows == 2
    assert shown(table.at(snapshot=2)) == before


@pytest.mark.parametrize(
    ("options", "kind", "rows", "change"),
    [
        (SUM, "INT", (10, 15), SetOption("fields.v.aggregate-function", "max")),
        (SUM, "INT", (10, 15), RemoveOption("fields.v.aggregate-function")),
        (SUM, "INT", (10, 15), SetOption("fields.default-aggregate-function", "max")),
        (
            {**SUM, "fields.v.aggregate-function": "listagg"},
            "STRING",
            ("a", "b"),
            SetOption("fields.v.list-agg-delimiter", ";"),
        ),
        (
            {**SUM, "fields.v.aggregate-function": "listagg"},
            "STRING",
            ("a", "a"),
            SetOption("fields.v.distinct", "true"),
        ),
        (
            {**SUM, "fields.v.aggregate-function": "collect"},
            "ARRAY<INT>",
            ([1], [1]),
            SetOption("fields.v.distinct", "true"),
        ),
    ],
    ids=["function", "no function", "default", "delimiter", "distinct", "collect"],
)
def test_other_functions_keep_what_is_folded(
    warehouse: Warehouse, options: dict[str, str], kind: str, rows: tuple[Any, Any], change: SchemaChange
) -> None:
    """A value that was folded by one function is what the next one goes on from."""
    table = keyed(warehouse, options, v=kind)
    for value in rows:
        put(table, (1, value))
    before = shown(table)
    table.alter(change)
    assert shown(table) == before
    table.compact(full=True)
    assert shown(table) == before


def test_sketches_are_read_by_no_other_function(warehouse: Warehouse) -> None:
    """Bytes of one kind of sketch or bitmap stay of that kind."""
    table = keyed(warehouse, {**SUM, "fields.v.aggregate-function": "rbm32"}, v="BYTES")
    table.alter(SetOption("fields.v.aggregate-function", "rbm64"))
    put(table, (1, None))
    with warehouse.refuses(InvalidOption, "fields.v.aggregate-function", "`rbm64` to `rbm32`", "sketches"):
        table.alter(SetOption("fields.v.aggregate-function", "rbm32"))


def test_other_sequence_groups_keep_rows(warehouse: Warehouse) -> None:
    """Parts of rows that have won stay when other columns decide from now on."""
    table = keyed(
        warehouse,
        {"merge-engine": "partial-update", "fields.s.sequence-group": "v"},
        v="INT",
        s="INT",
    )
    put(table, (1, 10, 5))
    put(table, (1, 20, 3))
    assert shown(table) == [(1, 10, 5)]
    table.alter(RemoveOption("fields.s.sequence-group"))
    assert shown(table) == [(1, 10, 5)]
    table.compact(full=True)
    assert shown(table) == [(1, 10, 5)]


@pytest.mark.parametrize("write_only", ["true", "false"])
def test_marks_begin_and_end(warehouse: Warehouse, write_only: str) -> None:
    """Deletion vectors are switched on and off without a row that returns, or one that hides."""
    table = keyed(warehouse, {"deletion-vectors.modifiable": "true", "write-only": write_only})
    put(table, (1, 1), (2, 2), (3, 3))
    put(table, (1, 10))
    table.alter(SetOption("deletion-vectors.enabled", "true"))
    assert shown(table) == [(1, 10), (2, 2), (3, 3)]
    put(table, (2, 20))
    put(table, (3, 3), kind="-D")
    table.with_options({"write-only": "false"}).compact()
    assert shown(table) == [(1, 10), (2, 20)]
    put(table, (4, 4))
    table.alter(SetOption("deletion-vectors.enabled", "false"))
    assert shown(table) == [(1, 10), (2, 20), (4, 4)]
    put(table, (1, 11))
    assert shown(table) == [(1, 11), (2, 20), (4, 4)]
    assert table.check() == []


def test_marks_of_a_table_without_a_key_end(warehouse: Warehouse) -> None:
    """Rows that are marked as deleted leave their files before marks are no longer looked at."""
    table = warehouse.table(
        "t",
        {"k": "INT"},
        pa.table({"k": ints(1, 2, 3)}),
        options={"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"},
    )
    table.delete_where([("k", "=", 2)])
    table.alter(SetOption("deletion-vectors.enabled", "false"))
    assert shown(table) == [(1,), (3,)]


@pytest.mark.parametrize(
    "change", [SetOption("partition.default-name", "x"), SetOption("partition.legacy-name", "false")]
)
def test_names_of_directories_stay(warehouse: Warehouse, change: SetOption) -> None:
    """What paths are made of does not change, since nothing else says where files lie."""
    table = warehouse.lake.create_table("t", {"d": "DATE", "v": "INT"}, partition_by=["d"])
    table.write(pa.table({"d": pa.array([None, 1], pa.date32()), "v": ints(1, 2)}))
    with warehouse.refuses(InvalidOption, change.key, "paths"):
        table.alter(change)
    with warehouse.refuses(InvalidOption, change.key, "paths"):
        table.with_options({change.key: change.value})
    plain = warehouse.table("p", {"v": "INT"}, pa.table({"v": ints(1)}))
    plain.alter(change)
    assert shown(plain) == [(1,)]


def test_rows_that_wait_are_placed_before_buckets_are_fixed(warehouse: Warehouse) -> None:
    """Rows that wait for a bucket have one before the table gets fixed buckets."""
    table = warehouse.lake.create_table(
        "t",
        {"k": "INT NOT NULL", "v": "INT"},
        primary_key=["k"],
        options={"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"},
    )
    put(table, (1, 1), (2, 2))
    assert shown(table) == []
    table.alter(SetOption("bucket", "2"))
    assert shown(table) == [(1, 1), (2, 2)]
    put(table, (1, 10))
    assert shown(table) == [(1, 10), (2, 2)]
    with warehouse.refuses(InvalidOption, "bucket", "fixed buckets"):
        table.alter(SetOption("bucket", "-1"))


def test_a_type_in_which_rows_have_another_order(warehouse: Warehouse) -> None:
    """A column that orders rows does not become text, in which 9 is greater than 10; it may get wider."""
    table = keyed(warehouse, {"sequence.field": "s"}, s="INT")
    put(table, (1, 10))
    put(table, (1, 9))
    with warehouse.refuses(InvalidSchema, "`s`", "INT to STRING", "order"):
        table.alter(UpdateColumnType("s", "STRING"))
    table.alter(UpdateColumnType("s", "BIGINT"))
    assert shown(table) == [(1, 10)]


@pytest.mark.parametrize("function", ["sum", "max", "last_non_null_value"])
def test_values_are_folded_before_they_get_another_type(warehouse: Warehouse, function: str) -> None:
    """What is folded is the value of the type that it was written as."""
    table = keyed(warehouse, {**SUM, "fields.v.aggregate-function": function}, v="DOUBLE")
    put(table, (1, 1.5))
    put(table, (1, 1.75))
    (row,) = shown(table)
    table.alter(UpdateColumnType("v", "INT"))
    assert shown(table) == [(1, int(row[1]))]


@pytest.mark.parametrize(
    ("old", "good", "bad", "new"),
    [
        ("BIGINT", 3, 3_000_000_000, "INT"),
        ("INT", -128, -129, "TINYINT"),
        ("DOUBLE", 1.25, 1e30, "BIGINT"),
        ("DOUBLE", 1.25, float("nan"), "INT"),
        ("DOUBLE", 1.25, 1e300, "FLOAT"),
        ("INT", 123, 1_000_000, "DECIMAL(10, 4)"),
        ("STRING", "12", "twelve", "INT"),
        ("STRING", "2024-02-29", "2024-02-30", "DATE"),
        ("TIMESTAMP(3)", dt.datetime(2024, 1, 1), dt.datetime(9999, 1, 1), "TIMESTAMP(9)"),
        ("ARRAY<BIGINT>", [1], [1, 3_000_000_000], "ARRAY<INT>"),
        ("ROW<a BIGINT>", {"a": 1}, {"a": 3_000_000_000}, "ROW<a INT>"),
    ],
)
@pytest.mark.parametrize("is_keyed", [True, False], ids=["keyed", "append"])
def test_a_type_that_does_not_hold_a_stored_value(
    warehouse: Warehouse, old: str, good: Any, bad: Any, new: str, is_keyed: bool
) -> None:
    """A narrower type is taken if every stored value fits, and refused if one would turn into another."""
    more: dict[str, Any] = {"primary_key": ["k"], "options": {"bucket": "1"}} if is_keyed else {}
    table = warehouse.lake.create_table("t", {"k": "INT NOT NULL", "v": old}, **more)

    def change() -> None:
        warehouse.lake.sql(f"ALTER TABLE t MODIFY v {new}")

    put(table, (1, good), (3, None))
    put(table, (2, bad))
    with warehouse.refuses(InvalidSchema, "`default.t`", "`v`", "holds"):
        change()
    if is_keyed:
        put(table, (2, None))
        table.compact(full=True)
    else:
        table.delete_where([("k", "=", 2)])
    change()
    assert len(shown(table)) == (3 if is_keyed else 2)


HIDDEN_NULLS: dict[str, dict[str, str]] = {
    "replaced": {},
    "partial": {"merge-engine": "partial-update"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "first row": {"merge-engine": "first-row"},
    "waiting": {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"},
    "shown as a default": {"fields.v.default-value": "3"},
}


@pytest.mark.parametrize("kind", HIDDEN_NULLS)
def test_null_is_forbidden_where_none_is_stored(warehouse: Warehouse, kind: str) -> None:
    """A column becomes NOT NULL if no file has NULL in it, shown or not: compactions have to write what they read."""
    table = keyed(warehouse, {"alter-column-null-to-not-null.disabled": "false", **HIDDEN_NULLS[kind]})
    put(table, (1, None))
    if kind not in ("first row", "shown as a default"):
        put(table, (1, 5))
    with warehouse.refuses(InvalidSchema, "`v`", "NOT NULL", "NULL"):
        table.alter(UpdateColumnNullability("v", False))
    if kind in ("first row", "shown as a default"):
        table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([4, 5], pa.int32())}), overwrite=True)
    table.with_options({"write-only": "false"}).compact(full=True)
    table.alter(UpdateColumnNullability("v", False))
    assert shown(table)[0][1] in (4, 5)


def test_the_number_of_levels_stays_where_the_highest_is_told(warehouse: Warehouse) -> None:
    """With `full-compaction` what lies on the highest level is known to readers: it stays the highest."""
    table = keyed(warehouse, {"changelog-producer": "full-compaction"})
    put(table, (1, 1))
    table.compact(full=True)
    with warehouse.refuses(InvalidOption, "num-sorted-run.compaction-trigger", "num-levels"):
        table.alter(SetOption("num-sorted-run.compaction-trigger", "9"))
    table.alter(SetOption("num-sorted-run.compaction-trigger", "9"), SetOption("num-levels", "6"))
    put(table, (1, 2))
    last = table.latest_snapshot()
    assert last is not None
    table.compact(full=True)
    assert table.changes(since=last.id).to_pylist() == [
        {"rowkind": "-U", "k": 1, "v": 1},
        {"rowkind": "+U", "k": 1, "v": 2},
    ]


def test_levels_are_free_again_once_another_producer_tells(warehouse: Warehouse) -> None:
    """After `full-compaction` gave way to `lookup`, the number of levels changes although no row was written since."""
    table = keyed(warehouse, {"changelog-producer": "full-compaction"})
    put(table, (1, 1))
    table.alter(SetOption("changelog-producer", "lookup"))
    table.alter(SetOption("num-levels", "3"))
    put(table, (1, 2))
    last = table.latest_snapshot()
    assert last is not None
    table.compact(full=True)
    assert table.changes(since=last.id).to_pylist() == [
        {"rowkind": "-U", "k": 1, "v": 1},
        {"rowkind": "+U", "k": 1, "v": 2},
    ]


@pytest.mark.parametrize("is_written", [True, False], ids=["rows written in between", "no row in between"])
def test_rows_above_all_levels_keep_full_compactions_from_telling(warehouse: Warehouse, is_written: bool) -> None:
    """Rows that lie higher than the table has levels would be told twice: refused, and the table can be written to."""
    table = keyed(warehouse, {"changelog-producer": "lookup", "num-levels": "6"})
    put(table, (1, 1))
    table.compact(full=True)
    table.alter(SetOption("num-levels", "3"))
    if is_written:
        put(table, (1, 2))
    with warehouse.refuses(InvalidOption, "level 5", "set `num-levels` to 6"):
        table.alter(SetOption("changelog-producer", "full-compaction"))
    assert table.options["changelog-producer"] == "lookup"
    put(table, (2, 2))
    table.alter(SetOption("changelog-producer", "full-compaction"), SetOption("num-levels", "6"))
    put(table, (3, 3))
    last = table.latest_snapshot()
    assert last is not None
    table.compact(full=True)
    assert table.changes(since=last.id).to_pylist() == [{"rowkind": "+I", "k": 3, "v": 3}]


def test_more_levels_come_with_full_compactions_that_tell(warehouse: Warehouse) -> None:
    """A change to `full-compaction` and to more levels brings rows to the new highest one: nothing is told again."""
    table = keyed(warehouse, {"changelog-producer": "lookup", "num-levels": "4"})
    put(table, (1, 1))
    table.compact(full=True)
    table.alter(SetOption("changelog-producer", "full-compaction"), SetOption("num-levels", "7"))
    put(table, (2, 2))
    last = table.latest_snapshot()
    assert last is not None
    table.compact(full=True)
    assert table.changes(since=last.id).to_pylist() == [{"rowkind": "+I", "k": 2, "v": 2}]


def test_what_older_rows_do_not_bear_is_not_published(warehouse: Warehouse) -> None:
    """Rows may be older than the last change: a change that they forbid is refused, and the table can be written to."""
    table = keyed(warehouse, {"deletion-vectors.modifiable": "true"})
    put(table, (1, 1))
    table.alter(SetOption("deletion-vectors.enabled", "true"))
    with warehouse.refuses(InvalidOption, "`deletion-vectors.enabled`", "write to the table"):
        table.alter(RemoveOption("deletion-vectors.modifiable"))
    put(table, (2, 2))
    table.alter(RemoveOption("deletion-vectors.modifiable"))
    table.compact(full=True)
    assert shown(table) == [(1, 1), (2, 2)]


def test_files_of_another_format_are_read_beside_others(warehouse: Warehouse) -> None:
    """The format of files changes freely, without a compaction."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    for number, file_format in enumerate(["orc", "avro", "parquet"], 1):
        table.alter(SetOption("file.format", file_format))
        assert len(table.snapshots()) == number
        put(table, (1, 5))
    assert shown(table) == [(1, 25)]


def test_levels_and_meaning_change_together(warehouse: Warehouse) -> None:
    """Rows that were folded under the old number of levels are not asked for to be folded again."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    put(table, (1, 15))
    table.alter(SetOption("fields.v.aggregate-function", "max"), SetOption("num-levels", "9"))
    table.compact(full=True)
    assert shown(table) == [(1, 25)]


def test_what_is_done_is_said(warehouse: Warehouse, caplog: pytest.LogCaptureFixture) -> None:
    """A change that compacts says so, and why; one that has nothing to fold says nothing."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    put(table, (1, 15))
    with caplog.at_level(logging.WARNING):
        table.alter(SetOption("fields.v.aggregate-function", "max"))
        assert "compacted fully before option `fields.v.aggregate-function` changes" in caplog.text
        caplog.clear()
        table.alter(SetOption("fields.v.aggregate-function", "min"))
        assert caplog.text == ""


# --- changes that others have made -----------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["write", "compact", "follow"])
@pytest.mark.parametrize(
    "change", [SetOption("changelog-producer", "lookup"), SetOption("fields.v.aggregate-function", "max")], ids=str
)
def test_rows_keep_the_meaning_that_they_were_written_with(
    warehouse: Warehouse, act: str, change: SchemaChange
) -> None:
    """Another engine changes the meaning without a compaction: rows are shown, and folded, as they were meant."""
    table = keyed(warehouse, {**SUM, **LEVELS})
    in_levels(table, 15, 5, 5)
    assert first(table) == (1, 25)
    changed_elsewhere(table, change)
    assert first(table) == (1, 25)
    assert table.lookup([1]).to_pylist() == [{"k": 1, "v": 25}]
    if act == "write":
        put(table, (2, 1))
    elif act == "follow":
        table.with_options({"write-only": "false"}).compact_follow(lambda: True)
    else:
        table.compact(full=True)
    assert first(table) == (1, 25)
    table.compact(full=True)
    assert first(table) == (1, 25)


def test_a_rollback_brings_back_what_rows_meant(warehouse: Warehouse) -> None:
    """Rows of a snapshot from before a change are shown, and folded later, as they were when it was the newest."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    put(table, (1, 15))
    table.alter(SetOption("fields.v.aggregate-function", "max"))
    table.rollback_to(2)
    assert shown(table) == [(1, 25)]
    put(table, (1, 20))
    assert shown(table) == [(1, 25)]


def test_what_can_not_be_folded_away_is_refused(warehouse: Warehouse) -> None:
    """Another engine has changed what only an empty table may change: nothing is written on top of it."""
    table = warehouse.lake.create_table("t", {"d": "DATE", "v": "INT"}, partition_by=["d"])
    table.write(pa.table({"d": pa.array([1], pa.date32()), "v": ints(1)}))
    changed_elsewhere(table, SetOption("partition.legacy-name", "false"))
    with warehouse.refuses(InvalidOption, "partition.legacy-name", "change it back"):
        table.write(pa.table({"d": pa.array([1], pa.date32()), "v": ints(1)}))


@pytest.mark.parametrize(
    "change",
    [
        SetOption("fields.v.aggregate-function", "max"),
        SetOption("changelog-producer", "lookup"),
        UpdateColumnType("v", "TINYINT"),
    ],
    ids=["function", "producer", "type"],
)
def test_a_writer_that_began_before_a_change(warehouse: Warehouse, change: SchemaChange) -> None:
    """Rows written under one meaning are not committed under another."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    with table.writer() as writer:
        writer.write(pa.table({"k": ints(1), "v": ints(1000)}))
        table.alter(change)
        with pytest.raises(CommitConflict, match="redo it"):
            writer.commit()
    assert shown(table) == [(1, 10)]


def test_others_write_while_a_change_is_made(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come between the last look and the change are folded as they were meant, too."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    publish: Callable[..., bool] = SchemaStore.publish

    def late(store: SchemaStore, schema: Any) -> bool:
        monkeypatch.undo()
        put(table, (1, 15))
        return publish(store, schema)

    monkeypatch.setattr(SchemaStore, "publish", late)
    table.alter(SetOption("fields.v.aggregate-function", "max"))
    assert shown(table) == [(1, 25)]
    put(table, (1, 20))
    assert shown(table) == [(1, 25)]
    table.compact(full=True)
    assert shown(table) == [(1, 25)]


def test_differences_over_a_change(warehouse: Warehouse) -> None:
    """Each state of a difference is merged as it was meant, whatever the table means now."""
    table = keyed(warehouse, SUM)
    put(table, (1, 10))
    put(table, (1, 15))
    table.alter(SetOption("fields.v.aggregate-function", "max"))
    put(table, (1, 30))
    assert table.diff(1, 2).to_pylist() == [{"rowkind": "-U", "k": 1, "v": 10}, {"rowkind": "+U", "k": 1, "v": 25}]
    assert table.diff(2, 3).num_rows == 0
    assert table.diff(2, 4).to_pylist() == [{"rowkind": "-U", "k": 1, "v": 25}, {"rowkind": "+U", "k": 1, "v": 30}]


def test_members_that_an_option_names_stay(warehouse: Warehouse) -> None:
    """A member by which elements of an array are told apart is neither dropped nor renamed."""
    options = {
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "nested_update",
        "fields.v.nested-key": "a",
    }
    table = keyed(warehouse, options, v="ARRAY<ROW<a INT, b INT>>")
    for change in (DropColumn(("v", "element", "a")), RenameColumn(("v", "element", "a"), "c")):
        with warehouse.refuses(InvalidSchema, "fields.v.nested-key"):
            table.alter(change)
    table.alter(RenameColumn(("v", "element", "b"), "c"))


@pytest.mark.parametrize("before", PRODUCERS)
@pytest.mark.parametrize("after", PRODUCERS)
def test_a_stream_over_another_changelog_producer(warehouse: Warehouse, before: str, after: str) -> None:
    """A stream that is behind when the producer changes misses nothing, and is told nothing twice."""
    table = keyed(warehouse, {"changelog-producer": before})
    put(table, (1, 1), (2, 2), (5, 5))
    table.compact(full=True)
    put(table, (2, 2), kind="-D")
    put(table, (3, 3), (6, 6))
    table.alter(SetOption("changelog-producer", after))
    put(table, (1, 10))
    put(table, (3, 3), kind="-D")
    put(table, (4, 4))
    table.compact(full=True)
    rows: dict[int, int] = {}
    for event in table.changes(since=0).to_pylist():
        kind, key, value = event.values()
        if kind in ("-D", "-U"):
            assert rows.pop(key) == value
        else:
            rows[key] = value
    assert sorted(rows.items()) == shown(table) == [(1, 10), (4, 4), (5, 5), (6, 6)]


def test_an_old_state_on_top_means_what_it_meant(warehouse: Warehouse) -> None:
    """Rows from before a change that come back as the latest are folded as they were meant, and told so."""
    table = keyed(warehouse, {**SUM, "changelog-producer": "lookup"})
    put(table, (1, 10))
    table.compact()
    put(table, (1, 15))
    table.alter(SetOption("fields.v.aggregate-function", "max"))
    put(table, (1, 12))
    table.compact()
    table.rollback_to_as_latest(3)
    assert shown(table) == [(1, 25)]
    assert table.check() == []
    put(table, (1, 30))
    table.compact()
    assert shown(table) == [(1, 30)]
    told = [(event["rowkind"], event["v"]) for event in table.changes(0).to_pylist()]
    assert told[:3] == [("+I", 10), ("-U", 10), ("+U", 25)]
    assert told[-6:] == [("-U", 25), ("+U", 10), ("-U", 10), ("+U", 25), ("-U", 25), ("+U", 30)]
    assert table.check() == []


def test_waiting_rows_that_come_back_are_placed(warehouse: Warehouse) -> None:
    """An old state with rows that wait, in a table that does not postpone any more, loses none of them."""
    table = keyed(warehouse, {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"})
    put(table, (1, 1))
    table.alter(SetOption("bucket", "2"))
    table.rollback_to_as_latest(1)
    assert shown(table) == [(1, 1)]


def test_values_that_do_not_fit_any_more_stay_in_the_past(warehouse: Warehouse) -> None:
    """A rollback behind a narrowed column is refused if it would bring back a value that the column can not hold."""
    table = keyed(warehouse, {}, v="BIGINT")
    put(table, (1, 3_000_000_000))
    put(table, (1, 5))
    table.compact(full=True)
    table.alter(UpdateColumnType("v", "INT"))
    for roll_back in (table.rollback_to, table.rollback_to_as_latest):
        with pytest.raises(InvalidArgument, match="3000000000"):
            roll_back(1)
    assert shown(table) == [(1, 5)]
    table.rollback_to_as_latest(3)
    assert shown(table) == [(1, 5)]


@pytest.mark.parametrize(
    "keep_up",
    [
        lambda table: table.drop_partitions([{"p": 2}]),
        lambda table: table.compact_manifest(),
        lambda table: table.rescale(2),
    ],
    ids=["drop a partition", "compact manifests", "rescale"],
)
def test_upkeep_folds_rows_of_before(warehouse: Warehouse, keep_up: Callable[[Table], object]) -> None:
    """A commit that writes no row says how all rows are meant, too: those of before a change are folded first."""
    table = warehouse.lake.create_table(
        "t",
        {"p": "INT", "k": "INT", "v": "INT"},
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"bucket": "1", "write-only": "true", **SUM},
    )
    put(table, (1, 1, 10), (2, 1, 1))
    put(table, (1, 1, 15))
    table.alter(SetOption("fields.v.aggregate-function", "max"))
    table.rollback_to(2)
    keep_up(table)
    assert shown(table)[0] == (1, 1, 25)
    table.compact(full=True)
    assert shown(table)[0] == (1, 1, 25)
