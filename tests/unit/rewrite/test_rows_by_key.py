"""Rows put in the place of stored ones: whatever the engine, the outcome is what the rows say, and it is told."""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.unit.write.test_told_replacements import replayed

import lakebed
from lakebed.commit.committer import CommitIdentity
from lakebed.errors import CommitConflict, InvalidArgument
from lakebed.rewrite.rows_by_key import RowRewrite, settled_for_rewrite
from lakebed.table.plans import plan_write

Row = tuple[int, int, int]

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "by sequence": {"sequence.field": "v"},
    "partial-update": {"merge-engine": "partial-update"},
    "groups": {"merge-engine": "partial-update", "fields.v.sequence-group": "w", "fields.w.aggregate-function": "sum"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}
LAYOUTS: dict[str, dict[str, str]] = {
    "one bucket": {"bucket": "1"},
    "two buckets": {"bucket": "2"},
    "dynamic": {"bucket": "-1"},
    "postponed": {"bucket": "-2"},
    "waiting": {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "vectors, lookup": {"bucket": "2", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup"},
    "full-compaction": {"bucket": "1", "changelog-producer": "full-compaction"},
}


def create(engine: str, layout: str, **more: str) -> lakebed.Table:
    """A table of an engine and a layout."""
    columns = {"p": "INT", "k": "INT", "v": "INT"} | ({"w": "INT"} if engine == "groups" else {})
    options = {**ENGINES[engine], **LAYOUTS[layout], **more}
    lake = lakebed.connect(f"memory://{uuid4()}")
    return lake.create_table("t", columns, primary_key=["p", "k"], partition_by=["p"], options=options)


def batch(table: lakebed.Table, rows: list[Row], kinds: list[str] | None = None) -> pa.Table:
    """Rows to write, of all columns."""
    names = table.arrow_schema.names
    columns = [*zip(*rows, strict=True)]
    data = {name: columns[min(index, 2)] for index, name in enumerate(names)}
    found = pa.table({name: pa.array(values, pa.int32()) for name, values in data.items()})
    return found if kinds is None else found.append_column("kind", pa.array(kinds))


def rewrite(table: lakebed.Table, rows: list[Row], kinds: list[str]) -> None:
    """As a statement does it."""
    context, _ = plan_write(table)
    snapshot = settled_for_rewrite(context, "UPDATE")
    RowRewrite(context, snapshot, CommitIdentity("rewriter")).write(batch(table, rows, kinds), "kind")


def shown(table: lakebed.Table) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Rows by key."""
    return {(row["p"], row["k"]): tuple(row.values()) for row in table.to_arrow().to_pylist()}


CASES = [
    (engine, layout)
    for engine in ENGINES
    for layout in LAYOUTS
    if engine != "first-row" or ("vectors" not in layout and layout != "full-compaction")
]


@pytest.mark.parametrize(("engine", "layout"), CASES)
def test_rows_take_the_place_of_stored_ones(engine: str, layout: str) -> None:
    """Random writes, compactions and rewrites: each rewrite leaves all other keys as they were."""
    chance = random.Random(f"{engine} {layout}")
    table = create(engine, layout)
    for step in range(6):
        keys = [(chance.randrange(2), key) for key in chance.sample(range(8), chance.randrange(1, 6))]
        table.write(batch(table, [(*key, chance.randrange(100)) for key in keys]))
        if step % 2:
            continue
        context, _ = plan_write(table)
        settled_for_rewrite(context, "UPDATE")
        expected = shown(table)
        rows, kinds = [], []
        for key in chance.sample([(p, k) for p in range(2) for k in range(9)], 7):
            value = chance.randrange(100)
            is_delete = key in expected and chance.random() < 0.4
            rows.append((*key, value))
            kinds.append("-D" if is_delete else "+U")
            if is_delete:
                del expected[key]
            else:
                expected[key] = (*key, value) + ((value,) if engine == "groups" else ())
        rewrite(table, rows, kinds)
        assert shown(table) == expected
        assert table.check() == []
        table.compact(full=True)
        assert shown(table) == expected
        if "changelog-producer" in LAYOUTS[layout] and engine != "groups":
            assert replayed(table) == sorted(expected.values())


@pytest.mark.parametrize("layout", ["one bucket", "vectors", "waiting"])
def test_where_compaction_is_left_to_others_they_come_first(layout: str) -> None:
    """Nothing is compacted behind the back of a table that leaves it to another job, and nothing is lost."""
    table = create("aggregation", layout, **{"write-only": "true"})
    table.write(batch(table, [(0, 1, 1), (0, 2, 2)]))
    table.write(batch(table, [(0, 1, 5)]))
    context, _ = plan_write(table)
    before = table.latest_snapshot()
    with pytest.raises(InvalidArgument, match="not compacted"):
        settled_for_rewrite(context, "DELETE")
    assert table.latest_snapshot() == before
    table.compact(full=True)
    rewrite(table, [(0, 1, 6)], ["-D"])
    assert shown(table) == {(0, 2): (0, 2, 2)}


def test_others_who_write_meanwhile_are_not_run_over() -> None:
    """A commit in between is a conflict, and no file of the attempt stays."""
    table = create("aggregation", "one bucket")
    table.write(batch(table, [(0, 1, 1), (0, 2, 2)]))
    context, _ = plan_write(table)
    snapshot = settled_for_rewrite(context, "DELETE")
    table.write(batch(table, [(0, 2, 7)]))
    files = {status.path for status in context.fileio.list_recursive(table.location)}
    with pytest.raises(CommitConflict):
        RowRewrite(context, snapshot, CommitIdentity("late")).write(batch(table, [(0, 1, 0)], ["-D"]), "kind")
    assert {status.path for status in context.fileio.list_recursive(table.location)} == files
    assert shown(table) == {(0, 1): (0, 1, 1), (0, 2): (0, 2, 9)}


def test_a_state_that_expired_is_read_anew() -> None:
    """Others write and expire what a statement has read: it conflicts, so that it begins anew, and changes nothing."""
    table = create("aggregation", "one bucket")
    table.write(batch(table, [(1, 1, 1)]))
    context, _ = plan_write(table)
    snapshot = settled_for_rewrite(context, "UPDATE")
    table.write(batch(table, [(1, 2, 2)]))
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CommitConflict, match="again"):
        RowRewrite(context, snapshot, CommitIdentity("rewriter")).write(batch(table, [(1, 1, 9)], ["+U"]), "kind")
    assert shown(table) == {(1, 1): (1, 1, 1), (1, 2): (1, 2, 2)}
