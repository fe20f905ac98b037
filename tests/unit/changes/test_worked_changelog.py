"""Worked examples of changelogs: what each producer tells of each engine, and what the notes promise about them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.unit.table.worked_tables import N, create, shown, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.definition import changelog_rules as producers
from lakebed.errors import InvalidOption
from lakebed.metadata.snapshot import CommitKind
from lakebed.options import (
    LOOKUP_CACHE_FILE_RETENTION,
    LOOKUP_CACHE_MAX_DISK_SIZE,
    LOOKUP_CACHE_MAX_MEMORY_SIZE,
    Options,
)
from lakebed.sql.parse import parse
from lakebed.sql.statements import Query
from lakebed.units import HOUR_MS, LONG_MAX, MIB

Events = list[Any]
LOOKUP = {"write-only": "false", "changelog-producer": "lookup"}
PARTIAL = LOOKUP | {"merge-engine": "partial-update"}
SUM = LOOKUP | {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
TIMED = "k name:STRING at:TIMESTAMP(3)"
PEOPLE = [[1, "Alice", 1200], [1, "Bob", 1205], [1, "Charlie", 1203]]
"""N-04: the third one comes late."""
PAGE = Path(__file__).parents[3] / "docs" / "changelogs.md"


def changes(table: lakebed.Table, since: int = 0) -> Events:
    """All that was told after a snapshot."""
    return [tuple(row.values()) for row in table.changes(since=since).to_pylist()]


def told(table: lakebed.Table, *commits: Any) -> list[Events]:
    """What each commit tells."""
    events = []
    for commit in commits:
        latest = table.latest_snapshot()
        write(table, commit)
        events.append(changes(table, latest.id if latest else 0))
    return events


def names(events: list[Events]) -> list[list[str]]:
    """Kind and name of each event."""
    return [[f"{event[0]} {event[2]}" for event in commit] for commit in events]


def producing(producer: str, columns: str = "k v:STRING", **options: str) -> lakebed.Table:
    """A table that compacts as commits make it due."""
    return create(columns, {"write-only": "false", "changelog-producer": producer, **options})


# --- 4.3: other engines ----------------------------------------------------------------------------------------------


def test_l_01_partial_update_with_lookup() -> None:
    """L-01: an update is told with the whole rows before and after it."""
    table = create("k a:STRING b:STRING", PARTIAL)
    assert told(table, [1, "a", N], [1, N, "b"]) == [
        [("+I", 1, "a", N)],
        [("-U", 1, "a", N), ("+U", 1, "a", "b")],
    ]


@pytest.mark.parametrize("producer", ["input", "none"])
def test_l_02_partial_update_without_lookup(producer: str) -> None:
    """L-02: the rows are told as they were written, with their nulls."""
    table = producing(producer, "k a:STRING b:STRING", **{"merge-engine": "partial-update"})
    assert told(table, [1, "a", N], [1, N, "b"]) == [[("+I", 1, "a", N)], [("+I", 1, N, "b")]]


def test_l_03_sums() -> None:
    """L-03: a delete of a summed value is an update to the smaller sum."""
    assert told(create("k v", SUM), [1, 10], [1, 5], ("-D", [1, 5])) == [
        [("+I", 1, 10)],
        [("-U", 1, 10), ("+U", 1, 15)],
        [("-U", 1, 15), ("+U", 1, 10)],
    ]


def test_l_04_sums_that_go() -> None:
    """L-04: with remove-record-on-delete it is the end of the row."""
    table = create("k v", SUM | {"aggregation.remove-record-on-delete": "true"})
    assert told(table, [1, 10], ("-D", [1, 10])) == [[("+I", 1, 10)], [("-D", 1, 10)]]


@pytest.mark.parametrize(("deduplicates", "last"), [("false", ["-U Bob", "+U Bob"]), ("true", [])])
def test_l_05_late_rows(deduplicates: str, last: list[str]) -> None:
    """L-05, N-04: a late row tells of a pair of equal rows, or with row-deduplicate of nothing."""
    options = {"sequence.field": "at", "changelog-producer.row-deduplicate": deduplicates}
    table = create(TIMED, LOOKUP | options)
    assert names(told(table, *PEOPLE)) == [["+I Alice"], ["-U Alice", "+U Bob"], last]
    assert [row[1] for row in shown(table)] == ["Bob"]


def test_l_06_delete_of_an_unknown_key() -> None:
    """L-06: what was never there does not go."""
    assert told(create("k v:STRING", LOOKUP), ("-D", [9, "x"])) == [[]]


def test_l_07_a_delete_tells_the_stored_row() -> None:
    """L-07: whatever values the delete came with, the row that was there is told."""
    table = create("k v:STRING", LOOKUP)
    assert told(table, [1, "a"], ("-D", [1, "zzz"])) == [[("+I", 1, "a")], [("-D", 1, "a")]]


def test_l_08_sequence_groups() -> None:
    """L-08: a delete that belongs to one group empties that group."""
    groups = {"fields.g_1.sequence-group": "a,b", "fields.g_2.sequence-group": "c,d"}
    table = create("k a b g_1 c d g_2", PARTIAL | groups)
    assert told(table, [1, 2, 2, 2, 3, 3, 3], ("-D", [1, 1, 1, 3, 1, 1, N])) == [
        [("+I", 1, 2, 2, 2, 3, 3, 3)],
        [("-U", 1, 2, 2, 2, 3, 3, 3), ("+U", 1, N, N, 3, 3, 3, 3)],
    ]


# --- 1.1: the notes about producers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_n_01_rewriting_files_is_no_change(producer: str) -> None:
    """N-01: lookup and full-compaction tell what happened to keys; rewriting their files tells nothing more."""
    table = producing(producer)
    write(table, [[1, "a"], [2, "b"]])
    write(table, [[1, "c"], [2, "b"]])
    before = changes(table)
    latest = table.latest_snapshot()
    table.compact(full=True)
    assert latest is not None
    assert changes(table, latest.id) == []
    assert changes(table) == before
    pairs = [("-U", 1, "a"), ("+U", 1, "c"), ("-U", 2, "b"), ("+U", 2, "b")]
    upserts = [("+I", 1, "c"), ("+I", 2, "b")]
    assert before[2:] == (pairs if producer in ("lookup", "full-compaction") else upserts)
    counts = [snapshot.changelog_record_count for snapshot in table.snapshots()]
    assert sum(count or 0 for count in counts) == {"none": 0, "input": 4}.get(producer, 6)


@pytest.mark.parametrize(
    ("producer", "expected"),
    [
        ("lookup", [["+I Alice"], ["-U Alice", "+U Bob"], ["-U Bob", "+U Charlie"]]),
        ("input", [["+I Alice"], ["+I Bob"], ["+I Charlie"]]),
    ],
)
def test_n_03_no_sequence_field_is_needed(producer: str, expected: list[list[str]]) -> None:
    """N-03: without one the last arrival wins, and the changelog follows the arrivals."""
    table = producing(producer, TIMED)
    assert names(told(table, *PEOPLE)) == expected
    assert [row[1] for row in shown(table)] == ["Charlie"]


def test_n_04_input_copies_late_rows() -> None:
    """N-04: `input` copies what came, the row that loses too; the table keeps the newest."""
    table = producing("input", TIMED, **{"sequence.field": "at"})
    assert names(told(table, *PEOPLE)) == [["+I Alice"], ["+I Bob"], ["+I Charlie"]]
    assert [row[1] for row in shown(table)] == ["Bob"]


def test_n_06_old_values_are_found_while_writing(warehouse: Warehouse) -> None:
    """N-06: when the write returns the changes are in files of their own: reading them opens no data file."""
    options = {"bucket": "1", "changelog-producer": "lookup"}
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options=options)
    write(table, [1, "a"])
    write(table, [1, "b"])
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == [CommitKind.APPEND, CommitKind.COMPACT] * 2
    data = [path for path in warehouse.contents() if path.rsplit("/", 1)[-1].startswith("data-")]
    assert len(data) >= 2
    for path in data:
        warehouse.fileio.delete(path)
    fresh = warehouse.reopened().table("t")
    assert changes(fresh) == [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "b")]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction", "input"])
def test_n_09_deletes_are_left_out_of_the_changelog(producer: str, caplog: pytest.LogCaptureFixture) -> None:
    """N-09: the changelog says nothing of a delete, the table loses the row; a warning names the other option."""
    producers._warn_of_untold_deletes.cache_clear()
    with caplog.at_level(logging.WARNING, logger="lakebed"):
        table = producing(producer, **{"changelog-producer.ignore-delete": "true"})
    (warning,) = [text for text in caplog.messages if "changelog-producer.ignore-delete" in text]
    assert "`ignore-delete`" in warning
    assert told(table, [[1, "a"], [2, "b"]], ("-D", [1, "a"])) == [[("+I", 1, "a"), ("+I", 2, "b")], []]
    assert shown(table) == [[2, "b"]]
    assert told(table, [1, "c"]) == [[("+I", 1, "c")]]


def test_n_10_the_presets_work(warehouse: Warehouse) -> None:
    """N-10: the three settings that the documentation recommends make tables with the producers it says."""
    statements = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for statement in statements:
        warehouse.lake.sql(statement)
    made = {name: warehouse.lake.table(name).options for name in ("users", "visits", "daily")}
    found = {name: (given.get("sequence.field"), given["changelog-producer"]) for name, given in made.items()}
    assert len(statements) == 3
    assert found == {
        "users": ("update_time", "input"),
        "visits": ("update_time", "lookup"),
        "daily": (None, "none"),
    }


def test_n_11_equal_times_are_settled_by_arrival() -> None:
    """N-11: of equal sequence values the later row wins, in one commit and across commits; no event is out of order."""
    table = create(TIMED, LOOKUP | {"sequence.field": "at"})
    tied = [[1, "first", 5], [1, "second", 5]]
    assert names(told(table, tied, [1, "third", 5])) == [["+I second"], ["-U second", "+U third"]]
    assert [row[1] for row in shown(table)] == ["third"]


def test_n_11_input_is_in_order_of_key_and_sequence() -> None:
    """N-11: a flush of an `input` changelog is sorted by key and sequence, not by arrival across keys."""
    table = producing("input", "k v:STRING s", **{"sequence.field": "s"})
    came = [[2, "a", 1], [1, "b", 9], [2, "c", 0], [1, "d", 9], [1, "e", 3]]
    assert told(table, came) == [
        [("+I", 1, "e", 3), ("+I", 1, "b", 9), ("+I", 1, "d", 9), ("+I", 2, "c", 0), ("+I", 2, "a", 1)]
    ]


SPELLINGS = {
    "inline": "CREATE TABLE t (user_id INT PRIMARY KEY, name STRING) WITH ('bucket' = '4')",
    "inline, not enforced": "CREATE TABLE t (user_id INT PRIMARY KEY NOT ENFORCED, name STRING) WITH ('bucket' = '4')",
    "clause": "CREATE TABLE t (user_id INT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED) WITH ('bucket' = '4')",
    "property": "CREATE TABLE t (user_id INT, name STRING) TBLPROPERTIES ('primary-key' = 'user_id', 'bucket' = '4')",
    "mixed": "CREATE TABLE t (user_id INT PRIMARY KEY, name STRING) TBLPROPERTIES ('bucket' = '4')",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_n_12_keys_and_options_in_any_spelling(spelling: str, warehouse: Warehouse) -> None:
    """N-12: all forms of a primary key and of options make the same table, and hints give options to a statement."""
    lake = warehouse.lake
    lake.sql(SPELLINGS[spelling])
    table = lake.table("t")
    assert (table.primary_key, table.options) == (("user_id",), {"bucket": "4"})
    assert [str(field.type) for field in table.schema.fields] == ["INT NOT NULL", "STRING"]
    lake.sql("INSERT INTO t /*+ OPTIONS('file.format' = 'avro') */ VALUES (1, 'Alice')")
    assert [file.file_name.rsplit(".", 1)[1] for file in table.scan().files] == ["avro"]
    (query,) = parse("SELECT name FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */ WHERE user_id = 1")
    assert isinstance(query, Query)
    assert [node.meta["options"] for node in query.sql.tables()] == [{"scan.snapshot-id": "1"}]


# --- 1.4: the notes about tuning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"log.system": "kafka", "kafka.topic": "t", "kafka.bootstrap.servers": "here"}, {"log.format": "debezium-json"}],
    ids=["system", "format"],
)
def test_n_50_there_is_no_other_log(options: dict[str, str]) -> None:
    """N-50: options of the log system that Paimon once had are kept and change nothing: changes are in the table."""
    plain, logged = producing("input"), producing("input", **options)
    commits: list[Any] = [[1, "a"], ("-D", [1, "a"])]
    assert told(logged, *commits) == told(plain, *commits) == [[("+I", 1, "a")], [("-D", 1, "a")]]
    assert options.items() <= logged.options.items()


def test_n_52_lookup_settings(warehouse: Warehouse) -> None:
    """N-52: the cache's names and defaults are Paimon's, and with next to no cache the changes are the same."""
    defaults = Options({})
    assert defaults[LOOKUP_CACHE_FILE_RETENTION] == HOUR_MS
    assert defaults[LOOKUP_CACHE_MAX_DISK_SIZE] == LONG_MAX
    assert defaults[LOOKUP_CACHE_MAX_MEMORY_SIZE] == 256 * MIB
    small = {
        "lookup.cache-file-retention": "1 ms",
        "lookup.cache-max-disk-size": "1 b",
        "lookup.cache-max-memory-size": "1 kb",
    }
    commits = [[[key, f"{turn}"] for key in range(turn, 200, 3)] for turn in range(4)]
    roomy, tight = producing("lookup"), producing("lookup", **small)
    assert told(tight, *commits) == told(roomy, *commits)
    with pytest.warns(UserWarning, match="is a setting of Flink"):
        shown_by_set = warehouse.lake.sql("SET 'execution.checkpointing.max-concurrent-checkpoints' = '3'").collect()
    assert [tuple(row) for row in shown_by_set] == [("execution.checkpointing.max-concurrent-checkpoints", "3")]


def test_n_53_every_commit_is_fully_compacted(warehouse: Warehouse) -> None:
    """N-53: with producer full-compaction each commit tells its changes, unless delta-commits says otherwise."""
    options: Mapping[str, str] = {"full-compaction.delta-commits": "1"}
    commits = [[1, "a"], [1, "b"], ("-D", [1, "b"])]
    unsaid, said = producing("full-compaction"), producing("full-compaction", **options)
    expected = [[("+I", 1, "a")], [("-U", 1, "a"), ("+U", 1, "b")], [("-D", 1, "b")]]
    assert told(unsaid, *commits) == told(said, *commits) == expected
    with warehouse.refuses(InvalidOption, "full-compaction.delta-commits"):
        warehouse.table(
            f"t{uuid4().hex}",
            {"k": "INT NOT NULL"},
            primary_key=["k"],
            options={"bucket": "1", "changelog-producer": "lookup", **options},
        )
