"""Rows whose keys do not match are left out before the merge, and a run is read up to its last key that may match."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.read.reader import SplitReader

KEYS: dict[str, tuple[str, list[Any]]] = {
    "numbers": ("BIGINT", list(range(30))),
    "numbers or none": ("BIGINT", [None, *range(4)]),
    "texts": ("STRING", ["", "a", "ab", "b", "ba", "z", "é", "日本", "🙂"]),
    "floats": ("DOUBLE", [-1.5, -0.0, 0.0, 1.0, 2.5, float("inf"), float("-inf"), float("nan")]),
}
ENGINES = [
    {},
    {"merge-engine": "partial-update"},
    {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    {"merge-engine": "first-row"},
    {"changelog-producer": "lookup"},
]


def _filters(chance: Random, values: list[Any]) -> pc.Expression:
    compare = (operator.eq, operator.lt, operator.le, operator.gt, operator.ge, operator.ne)

    def leaf() -> pc.Expression:
        column = chance.choice(["k", "k", "n", "v"])
        wanted = (
            [chance.choice(values) for _ in range(3)] if column == "k" else [chance.randrange(10) for _ in range(3)]
        )
        if None in wanted or (None in values and chance.random() < 0.4):
            return pc.field("k").is_null() if chance.random() < 0.6 else pc.field("k").is_valid()
        if chance.random() < 0.25:
            return pc.field(column).isin(wanted)
        return chance.choice(compare)(pc.field(column), wanted[0])

    return reduce(chance.choice([operator.and_, operator.or_]), [leaf() for _ in range(chance.randint(1, 3))])


@pytest.mark.parametrize("options", ENGINES, ids=lambda given: "-".join(given.values()) or "deduplicate")
@pytest.mark.parametrize("kind", KEYS)
def test_a_filter_before_the_merge_shows_the_same_rows(tmp_path: Path, kind: str, options: dict[str, str]) -> None:
    """Any filter over keys and values finds the rows that it finds in the whole table, for every engine."""
    chance = Random(f"{kind} {options}")
    name, values = KEYS[kind]
    may_be_null = None in values
    key = {"k": name, "n": "INT"} if may_be_null else {"k": f"{name} NOT NULL", "n": "INT NOT NULL"}
    table = lakebed.connect(tmp_path).create_table(
        "t",
        {**key, "v": "INT"},
        primary_key=["k", "n"],
        options={
            "bucket": "1",
            "write-only": "true",
            "read.batch-size": "3",
            **({"primary-key.nullable": "true"} if may_be_null else {}),
            **options,
        },
    )
    takes_deletes = not options or "changelog-producer" in options
    for _ in range(4):
        rows = [(chance.choice(values), chance.randrange(4), chance.randrange(10)) for _ in range(25)]
        gone = ["-D" if takes_deletes and chance.random() < 0.2 else "+I" for _ in rows]
        schema = table.arrow_schema
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
        table.write(pa.table([*columns, gone], names=["k", "n", "v", "op"]), row_kind="op")
    everything = table.to_arrow()
    for _ in range(25):
        wanted = _filters(chance, values)
        found, expected = table.to_arrow(filter=wanted), everything.filter(wanted)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())), wanted


def test_what_lies_behind_is_not_read(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs in key order no more batches are read than hold keys that may match."""
    options = {"bucket": "1", "write-only": "true", "read.batch-size": "10"}
    table = warehouse.table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)
    for _ in range(2):
        table.write(pa.table({"id": ints(*range(1000)), "v": ints(*range(1000))}))
    read, unread = [], SplitReader._run

    def counted(*args: Any) -> Iterator[pa.RecordBatch]:
        for batch in unread(*args):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(SplitReader, "_run", counted)
    for given, batches in {
        "id < 15": 2,
        "id = 15": 2,
        "id IN (3, 38)": 4,
        "id < 15 AND v < 900": 2,
        "v < 15": 100,
    }.items():
        read.clear()
        found = table.to_arrow(filter=given)
        assert len(read) == 2 * batches, given
        assert found.num_rows == _everything_of(given), given


def _everything_of(given: str) -> int:
    """How many of the numbers to a thousand a filter lets through."""
    return {"id = 15": 1, "id IN (3, 38)": 2}.get(given, 15)


def test_a_filter_that_fails_for_a_deleted_row_does_not_fail(warehouse: Warehouse) -> None:
    """What may fail is asked of rows that are shown, not of those that the merge takes away."""
    options = {"bucket": "1", "write-only": "true"}
    table = warehouse.table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)
    table.write(pa.table({"id": ints(0, 1, 2), "v": ints(0, 1, 2)}))
    table.write(pa.table({"id": ints(0), "v": ints(0), "op": ["-D"]}), row_kind="op")
    found = table.to_arrow(filter=pc.divide(pc.scalar(10), pc.field("id")) > 6)
    assert found.to_pydict() == {"id": [1], "v": [1]}
