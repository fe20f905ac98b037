"""Changelog producers through real tables: the worked streams of every producer, engine by engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import create, shown, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidOption, InvalidSchema
from lakebed.metadata.snapshot import CommitKind

Events = list[tuple[Any, ...]]

# 4.2: what each commit brings, and what each producer tells of it
COMMITS: list[Any] = [
    [[1, "a"], [2, "b"]],
    [[1, "c"], ("-D", [2, "b"])],
    [[1, "c"]],
    [[3, "x"], ("-D", [3, "x"])],
    [[1, "z"], [1, "y"]],
]
FIRST: Events = [("+I", 1, "a"), ("+I", 2, "b")]
TOLD: dict[str, list[Events]] = {
    "none": [
        FIRST,
        [("+I", 1, "c"), ("-D", 2, "b")],
        [("+I", 1, "c")],
        [("-D", 3, "x")],
        [("+I", 1, "y")],
    ],
    "input": [
        FIRST,
        [("+I", 1, "c"), ("-D", 2, "b")],
        [("+I", 1, "c")],
        [("+I", 3, "x"), ("-D", 3, "x")],
        [("+I", 1, "z"), ("+I", 1, "y")],
    ],
    "lookup": [
        FIRST,
        [("-U", 1, "a"), ("+U", 1, "c"), ("-D", 2, "b")],
        [("-U", 1, "c"), ("+U", 1, "c")],
        [],
        [("-U", 1, "c"), ("+U", 1, "y")],
    ],
}
TOLD["full-compaction"] = TOLD["lookup"]


def changes(table: lakebed.Table, since: int) -> Events:
    return [tuple(row.values()) for row in table.changes(since=since).to_pylist()]


def told(table: lakebed.Table, commits: list[Any]) -> list[Events]:
    """What each commit changes."""
    events = []
    for commit in commits:
        latest = table.latest_snapshot()
        write(table, commit)
        events.append(changes(table, latest.id if latest else 0))
    return events


def _table(columns: str, producer: str, **options: str) -> lakebed.Table:
    return create(columns, {"write-only": "false", "changelog-producer": producer, **options})


@pytest.mark.parametrize("producer", TOLD)
def test_4_2_worked_stream(producer: str) -> None:
    """4.2: every producer tells of each commit what the table of the semantics says."""
    table = _table("k v:STRING", producer)
    assert told(table, COMMITS) == TOLD[producer]
    assert shown(table) == [[1, "y"]]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_4_2_row_deduplicate(producer: str) -> None:
    """4.2: with row-deduplicate a commit that changes nothing tells nothing."""
    table = _table("k v:STRING", producer, **{"changelog-producer.row-deduplicate": "true"})
    assert told(table, COMMITS) == [*TOLD["lookup"][:2], [], *TOLD["lookup"][3:]]


def test_4_2_full_compaction_every_third_commit() -> None:
    """4.2: between two full compactions nothing is told, and what came and went is never told."""
    table = _table("k v:STRING", "full-compaction", **{"full-compaction.delta-commits": "3"})
    told_so_far: list[Events] = []
    for identifier, commit in enumerate([*COMMITS, [[4, "q"]]], 1):
        latest = table.latest_snapshot()
        kinds = [item[0] if isinstance(item, tuple) else "+I" for item in commit]
        rows = [item[1] if isinstance(item, tuple) else item for item in commit]
        with table.writer(row_kind="op", commit_user="stream", commit_identifier=identifier) as writer:
            names = ["k", "v", "op"]
            columns = [[row[0] for row in rows], [row[1] for row in rows], kinds]
            schema = [*table.arrow_schema, pa.field("op", pa.string())]
            writer.write(arrow_table(names, columns, schema))
        told_so_far.append(changes(table, latest.id if latest else 0))
    assert told_so_far[:3] == [[], [], [("+I", 1, "c")]]
    assert told_so_far[3:5] == [[], []]
    assert told_so_far[5] == [("-U", 1, "c"), ("+U", 1, "y"), ("+I", 4, "q")]


def arrow_table(names: list[str], columns: list[list[Any]], schema: list[pa.Field]) -> pa.Table:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


EXAMPLES: dict[str, tuple[str, dict[str, str], list[Any], list[Events]]] = {
    "M-32": (
        "k v",
        {"changelog-producer": "lookup", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
        [("-D", [1, 5]), [1, 8]],
        [[("+I", 1, -5)], [("-U", 1, -5), ("+U", 1, 3)]],
    ),
    "M-60": (
        "k v:STRING",
        {"changelog-producer": "lookup", "merge-engine": "first-row"},
        [[1, "a"], [1, "b"], [[2, "c"], [2, "d"]]],
        [[("+I", 1, "a")], [], [("+I", 2, "c")]],
    ),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str) -> None:
    """Each commit tells what the example says."""
    columns, options, commits, expected = EXAMPLES[example]
    assert told(create(columns, {"write-only": "false", **options}), commits) == expected


def test_n_05_input_copies_pairs_as_they_come() -> None:
    """N-05: a complete changelog that comes in goes out as it came."""
    table = _table("k v:STRING", "input")
    write(table, [[1, "a"], ("-U", [1, "a"]), ("+U", [1, "b"])])
    assert changes(table, 0) == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b")]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_g_09_changelog_comes_with_the_compaction(producer: str) -> None:
    """G-09, N-06: the APPEND snapshot has no changelog, the COMPACT snapshot of the same commit has."""
    table = _table("k v:STRING", producer)
    write(table, [1, "a"])
    append, compact = table.snapshots()
    assert (append.commit_kind, append.changelog_record_count) == (CommitKind.APPEND, None)
    assert (compact.commit_kind, compact.changelog_record_count) == (CommitKind.COMPACT, 1)
    assert (append.commit_user, append.commit_identifier) == (compact.commit_user, compact.commit_identifier)


def test_input_changelog_comes_with_the_append() -> None:
    """4.1: the changelog of `input` is part of the APPEND snapshot; overwrites bring none."""
    table = _table("k v:STRING", "input")
    write(table, [1, "a"])
    (append,) = table.snapshots()
    assert append.changelog_record_count == 1
    table.write(table.to_arrow(), overwrite=True)
    assert table.snapshots()[-1].changelog_record_count is None
    assert changes(table, 1) == []


def test_write_only_tables_are_told_by_whoever_compacts() -> None:
    """5.8: without compaction nothing is told; a later compaction tells the net change."""
    table = create("k v:STRING", {"changelog-producer": "lookup"})
    write(table, [1, "a"])
    write(table, [1, "b"])
    assert changes(table, 0) == []
    assert table.with_options({"write-only": "false"}).compact() is not None
    assert changes(table, 0) == [("+I", 1, "b")]


def test_a_replayed_commit_tells_what_was_missing() -> None:
    """8.3: of a commit whose compaction did not happen, the replay does the compaction and nothing else."""
    table = create("k v", {"changelog-producer": "lookup"})
    rows = arrow_table(["k", "v"], [[1], [5]], list(table.arrow_schema))
    for handle in (table, table.with_options({"write-only": "false"})):
        with handle.writer(commit_user="stream", commit_identifier=1) as writer:
            writer.write(rows)
    assert changes(table, 0) == [("+I", 1, 5)]
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == [CommitKind.APPEND, CommitKind.COMPACT]


@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_files_of_another_format(format_name: str) -> None:
    """Changelog files have the format, compression and name that their options say."""
    options = {
        "changelog-file.format": format_name,
        "changelog-file.compression": "none" if format_name != "avro" else "snappy",
        "changelog-file.prefix": "news-",
        "changelog-file.stats-mode": "none",
    }
    warehouse = Warehouse(f"memory://news-{format_name}")
    table = warehouse.table(
        "t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"],
        options={"bucket": 1, "changelog-producer": "input", **options},
    )  # fmt: skip
    write(table, [1, 2])
    names = [path.rsplit("/", 1)[-1] for path in warehouse.contents()]
    assert sum(name.startswith("news-") and name.endswith(format_name) for name in names) == 1
    assert changes(table, 0) == [("+I", 1, 2)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"merge-engine": "first-row", "changelog-producer": "input"}, "first-row"),
        ({"merge-engine": "first-row", "changelog-producer": "full-compaction"}, "first-row"),
        ({"changelog-producer": "lookup", "full-compaction.delta-commits": "2"}, "full-compaction.delta-commits"),
        ({"changelog-producer": "input", "changelog-producer.row-deduplicate": "true"}, "no effect"),
        ({"changelog-producer.ignore-delete": "true"}, "none of"),
        ({"changelog-producer": "lookups"}, "`lookup`"),
    ],
)
def test_refusals(warehouse: Warehouse, options: dict[str, str], text: str) -> None:
    """Options that contradict each other are refused by name, when the table is made."""
    with warehouse.refuses(InvalidOption, text):
        warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1, **options})


def test_no_producer_without_a_key(warehouse: Warehouse) -> None:
    """A table without key has no changelog but its rows."""
    with warehouse.refuses(InvalidOption, "primary key"):
        warehouse.table("t", {"v": "INT"}, options={"changelog-producer": "input"})


def test_5_4_gentle_lookups_wait() -> None:
    """5.4: gentle compactions leave new files alone until enough of them have come, then tell of all."""
    table = _table("k v", "lookup", **{"lookup-compact": "gentle", "lookup-compact.max-interval": "3"})
    assert told(table, [[1, 1], [2, 2], [1, 3], [4, 4]]) == [[], [], [("+I", 1, 3), ("+I", 2, 2)], []]


def test_4_1_without_lookup_wait_changes_come_later() -> None:
    """4.1: with lookup-wait off a commit tells nothing, until the number of files makes a compaction due."""
    table = _table("k v", "lookup", **{"lookup-wait": "false", "num-sorted-run.compaction-trigger": "3"})
    assert told(table, [[1, 1], [2, 2], [1, 3]]) == [[], [], [("+I", 1, 3), ("+I", 2, 2)]]


def test_changelog_format_must_hold_the_columns(warehouse: Warehouse) -> None:
    """A format for changelog files that can not hold a column is refused when the table is made."""
    options = {"bucket": 1, "changelog-producer": "lookup", "changelog-file.format": "avro"}
    columns = {"k": "INT NOT NULL", "v": "TIMESTAMP(9) WITH LOCAL TIME ZONE"}
    with warehouse.refuses(InvalidSchema, "`v`"):
        warehouse.table("t", columns, primary_key=["k"], options=options)
