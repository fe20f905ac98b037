"""`fields.<column>.default-value`: what reads show in place of null."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidOption

COLUMNS = {"k": "INT NOT NULL", "a": "INT", "b": "INT", "c": "INT"}


def _table(**options: object) -> lakebed.Table:
    lake = lakebed.connect(f"memory://defaults-{np.random.default_rng().integers(1 << 60)}")
    return lake.create_table("t", COLUMNS, primary_key=["k"], options={"bucket": 1, **options})


def _write(table: lakebed.Table, *rows: list[Any]) -> None:
    names = table.arrow_schema.names
    table.write(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], table.arrow_schema))


def _read(table: lakebed.Table, **arguments: Any) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_arrow(**arguments).sort_by("k").to_pylist()]


PARTIAL = {"merge-engine": "partial-update", "fields.b.default-value": "0"}


@pytest.mark.parametrize("compacts", [False, True])
def test_d_01_never_written(compacts: bool) -> None:
    """D-01, N-44: a column that no row gave a value shows the default."""
    table = _table(**PARTIAL)
    _write(table, [1, 1, None, None])
    _write(table, [1, None, None, 1])
    if compacts:
        table.compact(full=True)
    assert _read(table) == [[1, 1, 0, 1]]


@pytest.mark.parametrize("compacts", [False, True])
def test_d_02_written_later(compacts: bool) -> None:
    """D-02: the stored value is still null, so a later value wins; and a later null changes nothing."""
    table = _table(**PARTIAL)
    _write(table, [1, 1, None, None])
    _write(table, [1, None, None, 1])
    if compacts:
        table.compact(full=True)
    _write(table, [1, None, 7, None])
    assert _read(table) == [[1, 1, 7, 1]]
    _write(table, [1, None, None, None])
    assert _read(table) == [[1, 1, 7, 1]]


def test_n_44_without_the_option() -> None:
    """N-44: without the option the column is null."""
    table = _table(**{"merge-engine": "partial-update"})
    _write(table, [1, 1, None, None])
    _write(table, [1, None, None, 1])
    assert _read(table) == [[1, 1, None, 1]]


def test_filters_see_what_is_shown() -> None:
    """Files of nulls alone must be read when a filter asks for the default, and rows are filtered by what they show."""
    table = _table(**{"fields.b.default-value": "5"})
    _write(table, [1, 1, None, None], [2, 1, None, None])
    table.compact(full=True)
    assert _read(table, filter=[("b", "==", 5)]) == [[1, 1, 5, None], [2, 1, 5, None]]
    assert _read(table, filter=pc.field("b").is_null()) == []
    assert _read(table, columns=["k"], filter=[("b", "==", 5), ("k", "==", 2)]) == [[2]]


def test_changes_show_defaults() -> None:
    """Changes are shown as reads are."""
    table = _table(**{"fields.b.default-value": "5"})
    _write(table, [1, 1, None, None])
    assert table.changes()["b"].to_pylist() == [5]


def test_option_of_a_handle() -> None:
    """The option can be given to one handle; the table does not change."""
    table = _table()
    _write(table, [1, 1, None, None])
    assert _read(table.with_options({"fields.c.default-value": "9"})) == [[1, 1, None, 9]]
    assert _read(table) == [[1, 1, None, None]]


def test_append_tables() -> None:
    """Tables without a key show defaults too."""
    lake = lakebed.connect(f"memory://defaults-{np.random.default_rng().integers(1 << 60)}")
    table = lake.create_table("t", {"a": "INT", "s": "STRING"}, options={"fields.s.default-value": "none"})
    table.write(pa.table({"a": pa.array([1, 2], pa.int32()), "s": ["x", None]}))
    assert table.to_arrow()["s"].to_pylist() == ["x", "none"]
    assert table.to_arrow(filter=[("s", "==", "none")])["a"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("fields.k.default-value", "1", "key or partition column"),
        ("fields.b.default-value", "many", "'many'"),
        ("fields.x.default-value", "1", "`x`"),
    ],
)
def test_refusals(warehouse: Warehouse, key: str, value: str, text: str) -> None:
    """Key columns, values of another type and unknown columns are refused when the table is made."""
    with warehouse.refuses(InvalidOption, text):
        warehouse.table("t", COLUMNS, primary_key=["k"], options={"bucket": 1, key: value})


def test_not_together_with_a_column_default(warehouse: Warehouse) -> None:
    """A column has a default for writing or one for reading, never both."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options={"bucket": 1, "fields.b.default-value": "1"})
    with warehouse.refuses(InvalidOption, "`b`", "DEFAULT"):
        table.alter(lakebed.UpdateColumnDefault("b", "2"))


def test_rescaling_stores_what_was_stored() -> None:
    """Rows in another number of buckets still hold their nulls: sums go on from there, and a new default is shown."""
    summed = {"merge-engine": "aggregation", "fields.b.aggregate-function": "sum", "fields.b.default-value": "7"}
    table = _table(**summed)
    _write(table, [1, 1, None, None], [2, 1, 5, None])
    table.rescale(2)
    assert _read(table) == [[1, 1, 7, None], [2, 1, 5, None]]
    table.alter(lakebed.SetOption("bucket", "2"))
    _write(table, [1, 1, 3, None])
    assert _read(table) == [[1, 1, 3, None], [2, 1, 5, None]]
