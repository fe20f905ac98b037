"""A table as a lazy frame of polars: what is pushed into the read, wholly or in part, changes no row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.thinning import by_day
from tests.unit.table.wide_table import SHAPES, wide_table
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.definition.polars_filter import understood, understood_part
from lakebed.errors import InvalidArgument

col = pl.col
NAN = float("nan")
DAY = dt.datetime(2020, 1, 2)

UNDERSTOOD: list[pl.Expr] = [
    col("big") > 1,
    col("big") > 1,
    col("big") != 1,
    ~(col("big") > 1),
    col("tiny") == 5,
    col("tiny") >= -128,
    col("f") > 1,
    col("f") >= 1.5,
    col("f") < 2,
    col("f") == 0,
    ~(col("f") < 2),
    col("f").is_between(1, 2),
    col("g") == 0.1,
    col("g") > 0.1,
    col("g") <= 0,
    col("s") == "ß",
    col("s") > "a",
    col("s").str.starts_with("a"),
    col("s").str.ends_with("c"),
    ~col("s").str.starts_with("a"),
    col("s").is_in(["a", "Z", ""]),
    ~col("s").is_in(["a", "Z"]),
    col("big").is_in([1, 5, 77]),
    ~col("big").is_in([1, 5, 77]),
    col("f").is_in([0.0, 1.5]),
    col("big").is_null(),
    col("big").is_not_null(),
    col("d") == Decimal("1.10"),
    col("d") > Decimal("1.1"),
    col("ts") >= DAY,
    col("ts") == dt.datetime(2020, 1, 2, 3, 4, 5, 678901),
    col("ms") > DAY,
    col("ns") >= DAY,
    col("tz") >= DAY.replace(tzinfo=dt.UTC),
    col("day") > dt.date(2020, 1, 1),
    col("day").is_in([dt.date(2020, 1, 1), dt.date(2021, 6, 1)]),
    col("b"),
    ~col("b"),
    col("b") == True,  # noqa: E712
    col("raw") == b"\xff",
    col("clock") > dt.time(2),
    (col("big") > 0) & (col("s") == "a"),
    (col("big") > 0) | (col("s") == "ß"),
    ~((col("big") > 0) & (col("s") == "a")),
    col("big").is_between(0, 5, closed="none"),
    pl.lit(True) & (col("id") > 2),
]
NOT_UNDERSTOOD: list[pl.Expr] = [
    col("f") == NAN,
    col("f") < NAN,
    col("f").is_in([1.5, NAN]),
    col("f").is_nan(),
    col("f") > float("-inf"),
    col("big") > 1.5,
    col("big") + 1 > 2,
    col("tiny").cast(pl.Int64) > 3,
    col("s").str.to_uppercase() == "A",
    col("s").str.contains("b"),
    col("big").is_in([1, None]),
    col("big").eq_missing(None),
    col("n").struct.field("x") > 1,
    col("l").list.len() > 0,
    col("d") > 1.0,
    col("id") < col("big"),
    col("ms") > dt.datetime(2020, 1, 1, 0, 0, 0, 678500),
    col("ts").dt.year() == 2020,
    col("big") > 2**70,
    col("s").map_batches(lambda texts: texts == "a", return_dtype=pl.Boolean),
]
PARTLY: list[pl.Expr] = [
    (col("id") > 2) & (col("f") == NAN),
    (col("id") > 2) & (col("s").str.len_chars() == 1) & (col("f") > 1),
    (col("big") + 1 > 2) & col("s").is_not_null(),
]


@pytest.fixture(scope="module", params=SHAPES)
def table(request: pytest.FixtureRequest, lasting: Warehouse) -> lakebed.Table:
    return wide_table(lasting, request.param)


@pytest.mark.parametrize("condition", [*UNDERSTOOD, *NOT_UNDERSTOOD, *PARTLY], ids=str)
@pytest.mark.parametrize("engine", by_day(["in-memory", "streaming"], "streaming"))
def test_polars_finds_the_same_rows(table: lakebed.Table, condition: pl.Expr, engine: Any) -> None:
    """A condition selects what it selects in a frame of polars itself, or fails there in the same way."""
    frame = table.to_polars()
    try:
        wanted = frame.filter(condition).select("id", "s")
    except pl.exceptions.PolarsError as error:
        with pytest.raises(type(error)):
            table.scan_polars().filter(condition).collect(engine=engine)
        return
    assert table.scan_polars().filter(condition).select("id", "s").collect(engine=engine).equals(wanted)
    first = table.scan_polars().filter(condition).head(1).select("id").collect(engine=engine)
    assert first.equals(wanted.select("id").head(1))


@pytest.mark.parametrize("condition", UNDERSTOOD, ids=str)
def test_expressions_as_filters(table: lakebed.Table, condition: pl.Expr) -> None:
    """An expression of polars as a filter of a table keeps the rows that polars keeps."""
    wanted = table.to_polars().filter(condition)["id"].to_list()
    assert table.to_arrow(["id"], condition)["id"].to_pylist() == wanted


@pytest.mark.parametrize("condition", NOT_UNDERSTOOD, ids=str)
def test_what_is_not_understood_is_left_to_polars(lasting: Warehouse, condition: pl.Expr) -> None:
    """What a table can not say exactly is no filter of its own, and says who can."""
    lasting.lake.drop_table("refused", if_exists=True)
    table = wide_table(lasting, "refused")
    assert understood(condition, table.arrow_schema) is None
    assert understood_part(condition, table.arrow_schema) is None
    with lasting.refuses(InvalidArgument, "scan_polars"):
        table.to_arrow(filter=condition)


@pytest.mark.parametrize("condition", PARTLY, ids=str)
def test_parts_of_a_conjunction_go_down(lasting: Warehouse, condition: pl.Expr) -> None:
    """Of a conjunction what is understood prunes, and the rest is left to polars."""
    schema = pa.schema([("id", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("big", pa.int64())])
    assert understood(condition, schema) is None
    assert understood_part(condition, schema) is not None


def test_files_are_left_out(warehouse: Warehouse) -> None:
    """A lazy frame with a filter opens only the files that may hold matching rows."""
    table = warehouse.table("t", {"k": "BIGINT", "v": "STRING"})
    for start in range(0, 40, 10):
        table.write(pa.table({"k": range(start, start + 10), "v": [str(i) for i in range(10)]}))
    context = table._opened.context
    for split in table.scan(pc.field("k") >= 10).splits:
        for file in split.files:
            context.fileio.delete(context.data_file_path(split.partition, split.bucket, file.file_name))
    lazy = table.scan_polars()
    assert lazy.filter(col("k") < 7, col("v") != "3").select("v").collect()["v"].to_list() == list("012456")
    assert "lakebed" in lazy.explain()


def test_a_lazy_frame_shows_one_moment(warehouse: Warehouse) -> None:
    """Rows and columns of a lazy frame are those of the time it was made."""
    table = warehouse.table("t", {"k": "BIGINT"}, pa.table({"k": [1, 2]}))
    lazy = table.to_polars(lazy=True)
    table.write(pa.table({"k": [3]}))
    table.alter(lakebed.AddColumn("v", "STRING"))
    assert lazy.collect()["k"].to_list() == [1, 2]
