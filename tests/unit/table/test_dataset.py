"""A table as a dataset: DuckDB pushes columns and filters into it and does not filter again."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from tests.unit.table.wide_table import SHAPES, wide_table
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.table.dataset import TableDataset

CONDITIONS = """
    f > 1 | f >= 1.5 | f < 2 | f <= -0.0 | f <> 1.5 | f = 'nan' | f > 'nan' | f < 'nan' | f <> 'nan' | f = 0
    f IN (1.5, 'nan') | f IN (0, 1.5) | NOT f < 2 | NOT f > 1 | f BETWEEN 1 AND 2 | f = 'inf' | f IS NULL
    g = 0.1 | g > 0.1 | g >= 0.1::FLOAT | g IN (0, 2) | g <> 0
    tiny = 1 | tiny > 200 | tiny < 1.5 | tiny IN (1, 5, 127) | big > 1 | big = 4611686018427387904 | NOT big > 1
    big IN (1, NULL) | big IN (1, 5, 0, 77, 78) | big NOT IN (1, 5) | big IS NOT NULL | big IS DISTINCT FROM 1
    s = 'ß' | s > 'a' | s >= '' | s < 'b' | s LIKE 'a%' | s IN ('a', 'Z', '') | s NOT IN ('a', 'Z') | upper(s) = 'A'
    d = 1.1 | d > 1 | d > 1.105 | d IN (1.1, 3.3) | d < -2.2500001 | d = 99999999.99
    ts >= '2020-01-02' | ts = '2020-01-02 03:04:05.678901' | ts IN ('2020-01-01', '2021-06-01') | ms > '2020-01-01'
    ns >= '2020-01-02' | tz >= '2020-01-02 00:00:00+00' | tz IN ('2020-01-01 00:00:00+00') | tz IS NULL
    day > '2020-01-01' | day IN ('2020-01-01', '2021-06-01') | ts::DATE = day
    b | NOT b | b = true | b IS NULL | b <> true | raw = '\\xff'::BLOB | raw > 'a'::BLOB | raw = ''::BLOB
    clock > '02:00' | clock = '23:59:59.999' | clock IN ('00:00:00', '12:00:00')
    n.x > 1 | n.y = 'p' | n IS NULL | n.x IS NULL | n.x IN (1, 5, 6) | n = {'x': 1, 'y': 'p'}
    l = [1] | len(l) > 0 | l IS NULL | m IS NULL | m['k'] = 5
    big > 0 OR s = 'ß' | big > 0 AND s = 'a' | big > 0 AND f > 1 AND length(s) = 1 | big = 5 OR big IS NULL
    big + 1 > 2 | NOT (big > 0 AND s = 'a') | NOT (f < 2 OR tiny = 5) | id = 2 OR f > 1 | (id < 3) = b
"""


@pytest.fixture(scope="module", params=SHAPES)
def table(request: pytest.FixtureRequest, lasting: Warehouse) -> lakebed.Table:
    return wide_table(lasting, request.param)


@pytest.fixture(scope="module")
def beside(table: lakebed.Table) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation]]:
    """A connection with the rows as a table `own` of DuckDB's, and the table as a relation."""
    with duckdb.connect() as connection:
        stored = table.to_arrow()  # noqa: F841
        connection.execute("SET TimeZone = 'UTC'; CREATE TABLE own AS SELECT * FROM stored")
        yield connection, table.to_duckdb(connection=connection)


@pytest.mark.parametrize(
    "condition", [each.strip() for line in CONDITIONS.split("\n") for each in line.split("|") if each.strip()]
)
def test_duckdb_finds_the_same_rows(beside: tuple[Any, Any], condition: str) -> None:
    """A condition that DuckDB pushes down, wholly or in part, selects what it selects in a table of DuckDB itself."""
    connection, lazy = beside
    wanted = connection.sql(f"SELECT id FROM own WHERE {condition} ORDER BY id").fetchall()
    assert lazy.filter(condition).order("id").select("id").fetchall() == wanted
    assert lazy.filter(condition).aggregate("count(*)").fetchall() == [(len(wanted),)]


def test_long_lists_are_pushed(warehouse: Warehouse) -> None:
    """A list of thousands of values finds its rows, and files without any of them are not opened."""
    table = warehouse.table("t", {"k": "BIGINT", "v": "STRING"})
    for start in range(0, 40_000, 10_000):
        table.write(pa.table({"k": range(start, start + 10_000), "v": [str(i) for i in range(10_000)]}))
    listed = ", ".join(str(k) for k in range(10_001, 16_000, 2))
    assert table.to_duckdb().filter(f"k IN ({listed})").aggregate("count(*), min(k), max(k)").fetchall() == [
        (3_000, 10_001, 15_999)
    ]
    asked = pc.if_else(
        pc.field("k").is_valid(), pc.field("k").isin(range(10_001, 16_000, 2)), pa.scalar(None, pa.bool_())
    )
    assert len(table.scan(asked).files) == 1


def test_it_answers_as_a_dataset(warehouse: Warehouse) -> None:
    """Columns, filters, sizes of batches, heads and counts are those that pyarrow's own dataset of the rows gives."""
    rows = pa.table({"k": range(100), "v": [f"v{i % 7}" for i in range(100)]})
    table = warehouse.table("t", {"k": "BIGINT", "v": "STRING"}, rows)
    ours, theirs = TableDataset(table), pads.dataset(rows)
    few = pc.field("k") < 10
    assert ours.schema == table.arrow_schema
    assert ours.to_table() == theirs.to_table()
    assert ours.to_table(columns=["v"], filter=few) == theirs.to_table(columns=["v"], filter=few)
    assert [batch.num_rows for batch in ours.to_batches(batch_size=30)] == [30, 30, 30, 10]
    assert ours.head(3) == theirs.head(3)
    assert ours.take([5, 3]) == theirs.take([5, 3])
    assert (ours.count_rows(), ours.count_rows(filter=few)) == (100, 10)
    assert ours.filter(few).filter(pc.field("v") == "v1").to_table()["k"].to_pylist() == [1, 8]
    assert TableDataset(table, ["v"], few).to_table().to_pydict() == {"v": rows["v"][:10].to_pylist()}
    assert ours.scanner(columns=["v"]).projected_schema.names == ["v"]


def test_a_dataset_can_be_pickled(disk: Warehouse) -> None:
    """A dataset goes to another process with its columns and its filter."""
    table = disk.table("t", {"k": "BIGINT", "v": "STRING"}, pa.table({"k": range(5), "v": list("abcde")}))
    again = pickle.loads(pickle.dumps(TableDataset(table, ["v"], pc.field("k") > 2)))
    assert again.to_table().to_pydict() == {"v": ["d", "e"]}


def test_what_it_can_not_do_is_refused(lasting: Warehouse) -> None:
    """What only files of pyarrow's own could answer is refused by name; nothing reaches pyarrow's empty inside."""
    dataset = TableDataset(lasting.lake.table("bystander"))
    for name in ("get_fragments", "join", "join_asof", "sort_by"):
        with lasting.refuses(Unsupported, f"`{name}`"):
            getattr(dataset, name)()
    with lasting.refuses(Unsupported, "replace_schema"):
        dataset.replace_schema(dataset.schema)
    with lasting.refuses(Unsupported, "partition_expression"):
        _ = dataset.partition_expression
    with lasting.refuses(Unsupported, "computes no columns"):
        dataset.to_table(columns={"x": pc.field("id") + 1})
    with lasting.refuses(NotFound, "`idd`", "did you mean `id`?"):
        dataset.to_table(columns=["idd"])
    with lasting.refuses(InvalidArgument, "can not be evaluated"):
        dataset.to_table(filter=pc.add(pc.field("id"), pc.scalar("x")) == 1)


def test_a_relation_shows_one_moment(warehouse: Warehouse) -> None:
    """Rows and columns of a relation are those of the time it was made, also after later commits and changes."""
    table = warehouse.table("t", {"k": "BIGINT"}, pa.table({"k": [1, 2]}))
    relation = table.to_duckdb()
    table.write(pa.table({"k": [3]}))
    table.alter(lakebed.AddColumn("v", "STRING"))
    assert relation.fetchall() == [(1,), (2,)]
    assert relation.aggregate("sum(k)").fetchall() == [(3,)]
    assert table.to_duckdb().order("k").fetchall() == [(1, None), (2, None), (3, None)]
