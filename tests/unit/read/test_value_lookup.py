"""Looking up rows by the first columns of the key, or by others: which rows come, and which files are not read."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.changes.test_incremental_diff import opened_files
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported
from lakebed.lsm.lookup.store import LookupStore
from lakebed.types.value_sets import ValueSet

_names = itertools.count()
LINES = {"o": "BIGINT NOT NULL", "line": "INT NOT NULL", "part": "INT", "note": "STRING"}


def _lines(orders: range, text: str = "n") -> pa.Table:
    o = np.repeat(np.array(orders, dtype=np.int64), 3)
    line = np.tile(np.arange(3, dtype=np.int32), len(orders))
    part = pa.array([int(x) % 7 if x % 5 else None for x in o], pa.int32())
    return pa.table(
        {"o": o, "line": line, "part": part, "note": [f"{text}{a}-{b}" for a, b in zip(o, line, strict=True)]}
    )


def _found(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """Orders 0 to 99 of three lines each, order 4 written again."""
    found = warehouse.table("t", LINES, _lines(range(100)), primary_key=["o", "line"], options={"bucket": "2"})
    found.write(_lines(range(4, 5), "again"))
    return found


def test_by_the_first_column_of_the_key(table: lakebed.Table) -> None:
    """All rows of a prefix come, newest values, once each however often it is asked for; any of the columns."""
    rows = table.lookup([4, 7, 4, 5000], ["note"], by=["o"])
    assert rows.schema.names == ["note"]
    assert _found(rows) == Counter((f"{text}-{line}",) for text in ("again4", "n7") for line in range(3))
    assert table.lookup([], by=["o"]).num_rows == 0
    assert table.at(snapshot=1).lookup([4], ["note"], by=["o"]).column("note").to_pylist()[0].startswith("n4")


def test_by_other_columns_with_and_without_nulls(table: lakebed.Table) -> None:
    """Null finds nothing unless asked to; several columns are compared together, not one by one."""
    whole = table.to_arrow().to_pylist()
    asked = pa.table({"part": pa.array([3, None], pa.int32())})
    assert table.lookup(asked, by=["part"]).num_rows == sum(row["part"] == 3 for row in whole)
    assert table.lookup(asked, by=["part"], null_safe=True).num_rows == sum(row["part"] in (3, None) for row in whole)
    pairs = pa.table({"line": pa.array([0, 1], pa.int32()), "part": pa.array([1, 2], pa.int32())})
    expected = Counter(
        tuple(row.values()) for row in whole if (row["line"], row["part"]) in {(0, 1), (1, 2)}
    )  # fmt: skip
    assert _found(table.lookup(pairs, by=["line", "part"])) == expected
    assert _found(table.lookup(pairs, by=["part", "line"])) == expected


def test_tables_without_a_key_and_floats(warehouse: Warehouse) -> None:
    """A table without a key is looked up as any other; zeros are equal, and so is NaN to itself."""
    rows = pa.table({"x": pa.array([0.0, -0.0, math.nan, 1.5, None]), "n": pa.array(range(5), pa.int32())})
    table = warehouse.table("a", {"x": "DOUBLE", "n": "INT"}, rows)
    asked = pa.array([-0.0, math.nan])
    assert sorted(table.lookup(asked, ["n"], by=["x"]).column("n").to_pylist()) == [0, 1, 2]
    assert table.lookup(pa.array([None], pa.float64()), ["n"], by=["x"]).num_rows == 0
    assert table.lookup(pa.array([None], pa.float64()), ["n"], by=["x"], null_safe=True).to_pydict() == {"n": [4]}


def test_files_that_can_not_hold_a_value_are_not_read(disk: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a prefix of the key and by another column, statistics leave out all files but one."""
    options = {"bucket": "1", "write-only": "true"}
    table = disk.table("t", LINES, primary_key=["o", "line"], options=options)
    for start in range(0, 400, 100):
        table.write(_lines(range(start, start + 100)))
    with opened_files(monkeypatch) as opened:
        assert table.lookup([250, 251], by=["o"]).num_rows == 6
        assert len(opened) == 1


def test_a_file_that_is_read_again_gets_a_copy(disk: Warehouse) -> None:
    """Once a file was read as often as it has rows, prefixes are found in a local copy, with the same answer."""
    for options in ({}, {"deletion-vectors.enabled": "true"}, {"file.format": "avro"}):
        table = disk.table(f"t{next(_names)}", LINES, primary_key=["o", "line"], options={"bucket": "1", **options})
        table.write(_lines(range(300)))
        table.write(_lines(range(7, 9), "again"))
        expected = _found(table.to_arrow(filter=[("o", "in", [8, 9, 250])]))
        for _ in range(4):
            assert _found(table.lookup([9, 8, 250, 999], by=["o"])) == expected
        with mock.patch.object(LookupStore, "find_prefix", autospec=True, side_effect=LookupStore.find_prefix) as asked:
            assert _found(table.lookup([9, 8, 250], by=["o"])) == expected
        assert asked.called, options


def test_a_finder_can_be_sent_away(table: lakebed.Table) -> None:
    """What finds rows is plain data of one snapshot."""
    finder = pickle.loads(pickle.dumps(table.key_lookup(["note"], by=["o"])))
    table.write(_lines(range(7, 8), "later"))
    assert _found(finder.rows([7])) == Counter((f"n7-{line}",) for line in range(3))


def test_what_is_refused(warehouse: Warehouse) -> None:
    """Unknown, nested or doubled columns, values that lack one, options under which rows are elsewhere."""
    table = warehouse.table("t", {**LINES, "tags": "ARRAY<INT>"}, primary_key=["o", "line"], options={"bucket": "1"})
    with warehouse.refuses(NotFound, "nope"):
        table.lookup([1], by=["nope"])
    with warehouse.refuses(InvalidArgument, "tags"):
        table.lookup([1], by=["tags"])
    with warehouse.refuses(InvalidArgument, "twice"):
        table.lookup([1], by=["o", "o"])
    with warehouse.refuses(InvalidArgument, "no column"):
        table.lookup([1], by=[])
    with warehouse.refuses(InvalidArgument, "null_safe"):
        table.lookup([{"o": 1, "line": 1}], null_safe=True)
    with warehouse.refuses(InvalidData, "`by`"):
        table.lookup([{"o": 1}])
    with warehouse.refuses(InvalidData, "part"):
        table.lookup([{"o": 1}], by=["o", "part"])
    with warehouse.refuses(Unsupported, "scan.fallback-branch"):
        table.with_options({"scan.fallback-branch": "main"}).lookup([1], by=["o"])


_VALUE = st.none() | st.integers(-2, 2)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(_VALUE, _VALUE, _VALUE), max_size=12),
    asked=st.lists(st.tuples(_VALUE, _VALUE, _VALUE), max_size=6),
    width=st.integers(1, 3),
    null_safe=st.booleans(),
)
def test_sets_of_values(rows: list[Any], asked: list[Any], width: int, null_safe: bool) -> None:
    """A row is in a set if all its columns are equal to those of one of the set's rows."""
    kinds = [pa.int32(), pa.string(), pa.float64()][:width]

    def columns(table: list[Any]) -> list[pa.Array]:
        texts = [[None if row[i] is None else kind_of(row[i], i) for row in table] for i in range(width)]
        return [pa.array(cells, kind) for cells, kind in zip(texts, kinds, strict=True)]

    def kind_of(value: int, place: int) -> Any:
        return [value, f"text {value}", math.nan if value == 2 else -0.0 if value == 1 else 0.0][place]

    def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return all(
            null_safe if a is None and b is None else (a is not None and b is not None and alike(a, b, i))
            for i, (a, b) in enumerate(zip(one[:width], other[:width], strict=True))
        )

    def alike(a: int, b: int, place: int) -> bool:
        return a == b if place < 2 else (a == 2) == (b == 2)

    wanted = ValueSet.of(columns(asked), null_safe=null_safe)
    expected = [any(same(row, other) for other in asked) for row in rows]
    assert wanted.holds(columns(rows)).tolist() == expected


_TABLES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "marks rows": {"deletion-vectors.enabled": "true"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "sum": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "lookup": {"changelog-producer": "lookup"},
}
_ROW = st.tuples(st.integers(0, 6), st.integers(0, 2), st.sampled_from(["a", "b"]), st.none() | st.integers(0, 3))


@pytest.mark.parametrize("kind", _TABLES)
@settings(max_examples=12, deadline=None)
@given(
    place=st.sampled_from([("1", []), ("3", []), ("-1", []), ("2", ["p"]), ("-1", ["p"])]),
    bucket_key=st.booleans(),
    commits=st.lists(st.lists(_ROW, min_size=1, max_size=8), min_size=1, max_size=4),
    compacts=st.booleans(),
    by=st.lists(st.sampled_from(["o", "line", "p", "v"]), min_size=1, max_size=3, unique=True),
    asked=st.lists(_ROW, min_size=1, max_size=4),
    null_safe=st.booleans(),
)
def test_lookups_are_filters(
    kind: str,
    place: tuple[str, list[str]],
    bucket_key: bool,
    commits: list[Any],
    compacts: bool,
    by: list[str],
    asked: list[Any],
    null_safe: bool,
) -> None:
    """By any columns, of tables of all engines and bucket modes, a lookup gives what a whole read holds of them."""
    bucket, partitions = place
    options = {**_TABLES[kind], "bucket": bucket}
    if bucket_key and int(bucket) > 0:
        options["bucket-key"] = "o"
    columns = {"o": "INT NOT NULL", "line": "INT NOT NULL", "p": "STRING NOT NULL", "v": "INT"}
    table = lakebed.connect(f"memory://by-{next(_names)}").create_table(
        "t", columns, primary_key=["o", "line", *partitions], partition_by=partitions, options=options
    )
    kinds = [pa.int32(), pa.int32(), pa.string(), pa.int32()]

    def arrow(rows: list[Any]) -> pa.Table:
        return pa.table(
            [pa.array(cells, k) for cells, k in zip(zip(*rows, strict=True), kinds, strict=True)], list(columns)
        )

    for rows in commits:
        table.write(arrow(rows))
    if compacts:
        table.compact(full=True)
    wanted = arrow(asked)
    tuples = {tuple(row[name] for name in by) for row in wanted.to_pylist()}
    expected = Counter(
        tuple(row.values())
        for row in table.to_arrow().to_pylist()
        if (values := tuple(row[name] for name in by)) in tuples and (null_safe or None not in values)
    )
    for _ in range(3):
        assert _found(table.lookup(wanted, by=by, null_safe=null_safe)) == expected
