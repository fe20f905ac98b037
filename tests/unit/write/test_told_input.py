"""`changelog-producer.input.normalize`: what comes in is told as what it changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import create, shown, write
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidOption
from lakebed.testing.replay import replayed

NORMALISED = {"changelog-producer": "input", "changelog-producer.input.normalize": "true"}
Events = list[tuple[Any, ...]]


def told(table: lakebed.Table, since: int = 0) -> Events:
    return [tuple(row.values()) for row in table.changes(since=since).to_pylist()]


def after(table: lakebed.Table, change: Any) -> Events:
    """What a commit tells."""
    latest = table.latest_snapshot()
    write(table, change)
    return told(table, latest.id if latest else 0)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_n_04_events_of_late_rows(is_compacted: bool) -> None:
    """The documented events: an insert, an update with its old row, and nothing for the row that loses."""
    table = create("user_id name:STRING update_time:TIMESTAMP(3)", {**NORMALISED, "sequence.field": "update_time"})
    noon = 1_696_161_600_000
    alice, bob, charlie = [1, "Alice", noon], [1, "Bob", noon + 300_000], [1, "Charlie", noon + 180_000]
    found = []
    for row in (alice, bob, charlie):
        found.append([event[:3] for event in after(table, row)])
        if is_compacted:
            table.compact(full=True)
    assert found == [[("+I", 1, "Alice")], [("-U", 1, "Alice"), ("+U", 1, "Bob")], []]
    assert [row[1] for row in shown(table)] == ["Bob"]


def test_n_04_in_one_commit() -> None:
    """Rows of one commit are told in the order in which they came."""
    table = create("k v:STRING s", {**NORMALISED, "sequence.field": "s"})
    assert after(table, [[1, "a", 0], [1, "b", 5], [1, "c", 3], [2, "x", 1]]) == [
        ("+I", 1, "a", 0),
        ("-U", 1, "a", 0),
        ("+U", 1, "b", 5),
        ("+I", 2, "x", 1),
    ]


def test_4_2_as_lookup_tells_it_but_step_by_step() -> None:
    """The worked stream: as `lookup`, with every step within a commit."""
    table = create("k v:STRING", NORMALISED)
    commits: list[tuple[Any, Events]] = [
        ([[1, "a"], [2, "b"]], [("+I", 1, "a"), ("+I", 2, "b")]),
        ([[1, "c"], ("-D", [2, "b"])], [("-U", 1, "a"), ("+U", 1, "c"), ("-D", 2, "b")]),
        ([[1, "c"]], [("-U", 1, "c"), ("+U", 1, "c")]),
        ([[3, "x"], ("-D", [3, "x"])], [("+I", 3, "x"), ("-D", 3, "x")]),
        ([[1, "z"], [1, "y"]], [("-U", 1, "c"), ("+U", 1, "z"), ("-U", 1, "z"), ("+U", 1, "y")]),
        ([("-D", [9, "x"])], []),
        ([("-D", [1, "zzz"])], [("-D", 1, "y")]),
    ]
    for commit, events in commits:
        assert after(table, commit) == events


def test_what_is_left_out() -> None:
    """Pairs of equal rows, and deletes, are left out if the table's options say so."""
    table = create(
        "k v:STRING",
        {**NORMALISED, "changelog-producer.row-deduplicate": "true", "changelog-producer.ignore-delete": "true"},
    )
    assert after(table, [[1, "a"], [2, "b"]]) == [("+I", 1, "a"), ("+I", 2, "b")]
    assert after(table, [[1, "a"], ("-D", [2, "b"])]) == []
    assert shown(table) == [[1, "a"]]


def test_an_overwrite_tells_what_it_changes_and_counts_as_stored() -> None:
    """What an overwrite brought is told against what was there, and is what later rows change."""
    table = create("k v:STRING", NORMALISED)
    write(table, [1, "a"])
    table.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["b"]}), overwrite=True)
    assert told(table, 1) == [("-U", 1, "a"), ("+U", 1, "b")]
    assert after(table, [1, "c"]) == [("-U", 1, "b"), ("+U", 1, "c")]


def test_a_commit_in_between_is_what_rows_meet(warehouse: Warehouse) -> None:
    """When another commit was faster, the events are those on top of it, and no file is left over."""
    table = warehouse.lake.create_table(
        "t", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options={"bucket": "1", **NORMALISED}
    )

    def rows(*pairs: tuple[int, str]) -> pa.Table:
        return pa.table({"k": pa.array([k for k, _ in pairs], pa.int32()), "v": [v for _, v in pairs]})

    table.write(rows((1, "a")))
    with table.writer() as slow:
        slow.write(rows((1, "b"), (2, "x")))
        other = warehouse.reopened().table("t")
        other.write(rows((1, "c"), (2, "y")))
    assert told(table, 2) == [("-U", 1, "c"), ("+U", 1, "b"), ("-U", 2, "y"), ("+U", 2, "x")]
    assert len([path for path in warehouse.contents() if "changelog-" in path]) == 3
    events = [(event.pop("rowkind"), event) for event in table.changes().to_pylist()]
    assert sorted(map(str, replayed(events, ("k",)).values())) == sorted(map(str, table.to_arrow().to_pylist()))


@pytest.mark.parametrize("is_open", [False, True])
def test_old_rows_keep_columns_that_the_writer_does_not_know(warehouse: Warehouse, is_open: bool) -> None:
    """A writer under an older schema replaces rows that have a new column: the old rows are told whole."""
    table = warehouse.lake.create_table(
        "t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": "1", **NORMALISED}
    )
    writer = table.writer()
    if is_open:
        writer.write(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([5], pa.int32())}))
    other = warehouse.reopened().table("t")
    other.alter(lakebed.AddColumn("w", "STRING"))
    columns = [pa.array([1], pa.int32()), pa.array([4], pa.int32()), pa.array(["new"])]
    other.write(pa.table(columns, names=["k", "v", "w"]))
    if not is_open:
        writer.write(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([5], pa.int32())}))
    writer.commit()
    assert told(other, 1) == [("-U", 1, 4, "new"), ("+U", 1, 5, None)]


def test_many_rows_in_little_memory() -> None:
    """A commit that spills, or that makes files before its end, still tells each key's rows as one chain."""
    for spills in ("true", "false"):
        table = create(
            "k v", {**NORMALISED, "write-buffer-size": "256 kb", "write-buffer-spillable": spills, "bucket": "2"}
        )
        with table.writer() as writer:
            for value in range(12):
                columns = [pa.array(range(5000), pa.int32()), pa.array([value] * 5000, pa.int32())]
                writer.write(pa.table(columns, names=["k", "v"]))
        events = table.changes().to_pylist()
        assert len(events) == 5000 + 5000 * 11 * 2
        of_one = [(event["rowkind"], event["v"]) for event in events if event["k"] == 4711]
        assert of_one == [("+I", 0)] + [pair for v in range(1, 12) for pair in (("-U", v - 1), ("+U", v))]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({**NORMALISED, "changelog-producer": "lookup"}, "`lookup`"),
        ({**NORMALISED, "changelog-producer": "none"}, "`none`"),
        ({**NORMALISED, "merge-engine": "partial-update"}, "merge engine `partial-update`"),
        ({**NORMALISED, "merge-engine": "aggregation"}, "merge engine `aggregation`"),
        ({**NORMALISED, "sequence.snapshot-ordering": "true"}, "`sequence.snapshot-ordering`"),
        ({**NORMALISED, "bucket": "-2"}, "-2"),
    ],
)
def test_what_does_not_go_with_it(options: dict[str, str], words: str) -> None:
    """Other producers and engines are refused by name, with the reason."""
    with pytest.raises(InvalidOption, match=words) as refused:
        create("k v", options)
    assert "changelog-producer.input.normalize" in refused.value.message
