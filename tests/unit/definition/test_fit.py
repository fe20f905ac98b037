"""Every table type against many kinds of Arrow input: a value arrives unchanged, or is refused. Nothing in between."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.definition.exact_values import exact
from tests.unit.warehouse_under_test import Warehouse

from lakebed.definition.fit import Place, fit
from lakebed.errors import InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import parse_type

MOMENT = dt.datetime(2024, 5, 1, 1, 2, 3)
DAY = dt.date(2024, 5, 1)
HALF_DAY = pa.array([12 * 3600 * 1000]).view(pa.date64())

INPUTS: dict[str, pa.Array] = {
    "truth": pa.array([True, None]),
    "small": pa.array([1, None], pa.int8()),
    "300": pa.array([300], pa.int16()),
    "int64": pa.array([7, None], pa.int64()),
    "2**62": pa.array([2**62], pa.int64()),
    "2**53+1": pa.array([2**53 + 1], pa.int64()),
    "2**24+1": pa.array([2**24 + 1], pa.int64()),
    "uint8": pa.array([200], pa.uint8()),
    "uint64": pa.array([2**63], pa.uint64()),
    "half": pa.array([1.5], pa.float16()),
    "float": pa.array([1.5], pa.float32()),
    "whole double": pa.array([2.0, None], pa.float64()),
    "0.1": pa.array([0.1], pa.float64()),
    "no number": pa.array([float("nan"), float("inf"), -0.0], pa.float64()),
    "1e300": pa.array([1e300], pa.float64()),
    "9e18": pa.array([2.0**63], pa.float64()),
    "1.25": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
    "1.239": pa.array([Decimal("1.239")], pa.decimal128(10, 3)),
    "12345.00": pa.array([Decimal("12345.00")], pa.decimal128(10, 2)),
    "decimal256": pa.array([Decimal(7)], pa.decimal256(50, 0)),
    "decimal32": pa.array([Decimal("0.5")], pa.decimal32(5, 1)),
    "text": pa.array(["ab", None]),
    "long text": pa.array(["abcd"]),
    "digits": pa.array(["12"], pa.large_string()),
    "text view": pa.array(["ab"], pa.string_view()),
    "text dictionary": pa.array(["ab", None, "ab"]).dictionary_encode(),
    "int dictionary": pa.array([1, 2], pa.int8()).dictionary_encode(),
    "wide characters": pa.array(["äöü"]),
    "forged text": pa.array([b"\xff"]).view(pa.string()),
    "bytes": pa.array([b"ab", None]),
    "long bytes": pa.array([b"abcd"]),
    "no text": pa.array([b"\xff\xfe"]),
    "large bytes": pa.array([b"ab"], pa.large_binary()),
    "fixed bytes": pa.array([b"abc"], pa.binary(3)),
    "bytes view": pa.array([b"ab"], pa.binary_view()),
    "day": pa.array([DAY, None]),
    "date64": pa.array([DAY], pa.date64()),
    "half a day": HALF_DAY,
    "time s": pa.array([dt.time(1, 2, 3)], pa.time32("s")),
    "time ms": pa.array([dt.time(1, 2, 3, 4000)], pa.time32("ms")),
    "time us": pa.array([dt.time(1, 2, 3, 4005)], pa.time64("us")),
    "time ns": pa.array([dt.time(1, 2, 3, 4000)], pa.time64("ns")),
    "moment s": pa.array([MOMENT], pa.timestamp("s")),
    "moment ms": pa.array([MOMENT.replace(microsecond=4000)], pa.timestamp("ms")),
    "moment us": pa.array([MOMENT.replace(microsecond=4005)], pa.timestamp("us")),
    "moment ns": pa.array([1234567890123456789], pa.timestamp("ns")),
    "midnight": pa.array([dt.datetime(2024, 5, 1), None], pa.timestamp("us")),
    "far future": pa.array([10**11], pa.timestamp("s")),
    "instant": pa.array([MOMENT], pa.timestamp("us", "America/New_York")),
    "instant utc": pa.array([MOMENT], pa.timestamp("ms", "UTC")),
    "duration": pa.array([5], pa.duration("ms")),
    "nulls": pa.nulls(2),
    "none": pa.array([], pa.int64()),
    "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "list slice": pa.array([[9], [1, 2], None, [3]], pa.list_(pa.int64())).slice(1, 2),
    "list with null": pa.array([[1, None]], pa.list_(pa.int32())),
    "list of 2**40": pa.array([[2**40]], pa.large_list(pa.int64())),
    "fixed list": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
    "list view": pa.array([[1, 2], None], pa.list_view(pa.int32())),
    "list of digits": pa.array([["1", "2"]]),
    "list of texts": pa.array([["abc"], ["abcd"]]),
    "list of fractions": pa.array([[1.5]]),
    "list of truths": pa.array([[True]]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
    "map slice": pa.array([[("z", 9)], [("a", 1)], None], pa.map_(pa.string(), pa.int64())).slice(1),
    "map to 2**40": pa.array([[("a", 2**40)]], pa.map_(pa.string(), pa.int64())),
    "map to null": pa.array([[("a", None)]], pa.map_(pa.string(), pa.int32())),
    "map to digits": pa.array([[("1", "1")]], pa.map_(pa.string(), pa.string())),
    "row": pa.array([{"a": 1, "b": "x"}, None]),
    "row turned": pa.array([{"b": "x", "a": 1}], pa.struct([("b", pa.string()), ("a", pa.int32())])),
    "row and more": pa.array([{"a": 1, "b": "x", "c": 9}]),
    "row too small": pa.array([{"a": 1}]),
    "row with null": pa.array([{"a": None, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())])),
    "row of digits": pa.array([{"a": "1", "b": "x"}]),
    "row twice": pa.StructArray.from_arrays([pa.array([1]), pa.array([2]), pa.array(["x"])], names=["a", "a", "b"]),
    "variant": pa.array([{"value": b"1", "metadata": b"2"}]),
}

ACCEPTED: dict[str, str] = {
    "BOOLEAN": "truth",
    "TINYINT": "small|int64|whole double|decimal256|int dictionary",
    "SMALLINT": "small|300|int64|uint8|whole double|decimal256|int dictionary|12345.00",
    "INT": "small|300|int64|2**24+1|uint8|whole double|decimal256|int dictionary|12345.00",
    "BIGINT": "small|300|int64|2**62|2**53+1|2**24+1|uint8|whole double|decimal256|int dictionary|12345.00",
    "FLOAT": "small|300|int64|uint8|half|float|whole double|no number|9e18|int dictionary",
    "DOUBLE": "small|300|int64|2**24+1|uint8|half|float|whole double|0.1|no number|1e300|9e18|int dictionary",
    "DECIMAL(5, 2)": "small|300|int64|uint8|1.25|decimal256|decimal32|int dictionary",
    "DECIMAL(38, 10)": "small|300|int64|2**62|2**53+1|2**24+1|uint8|uint64|1.25|1.239|12345.00|decimal256|decimal32"
    "|int dictionary",
    "CHAR(3)": "text|digits|text view|text dictionary|wide characters",
    "VARCHAR(3)": "text|digits|text view|text dictionary|wide characters",
    "STRING": "text|long text|digits|text view|text dictionary|wide characters",
    "BINARY(3)": "bytes|no text|large bytes|fixed bytes|bytes view",
    "VARBINARY(3)": "bytes|no text|large bytes|fixed bytes|bytes view",
    "BYTES": "bytes|long bytes|no text|large bytes|fixed bytes|bytes view",
    "BLOB": "bytes|long bytes|no text|large bytes|fixed bytes|bytes view",
    "DATE": "day|date64|midnight",
    "TIME": "time s|time ms|time ns",
    "TIME(3)": "time s|time ms|time ns",
    "TIMESTAMP(0)": "day|date64|moment s|midnight|far future",
    "TIMESTAMP(3)": "day|date64|moment s|moment ms|midnight|far future",
    "TIMESTAMP(6)": "day|date64|moment s|moment ms|moment us|midnight|far future",
    "TIMESTAMP(9)": "day|date64|moment s|moment ms|moment us|moment ns|midnight",
    "TIMESTAMP_LTZ(3)": "instant|instant utc",
    "TIMESTAMP_LTZ(6)": "instant|instant utc",
    "ARRAY<INT>": "list|list slice|list with null|fixed list|list view",
    "ARRAY<INT NOT NULL>": "list|list slice|fixed list|list view",
    "ARRAY<VARCHAR(3)>": "list of digits",
    "ARRAY<STRING>": "list of digits|list of texts",
    "MAP<STRING, INT>": "map|map slice|map to null",
    "MAP<STRING, BIGINT>": "map|map slice|map to null|map to 2**40",
    "MULTISET<STRING>": "map|map slice",
    "ROW<a INT, b STRING>": "row|row turned|row with null",
    "ROW<a INT NOT NULL, b STRING>": "row|row turned",
    "VARIANT": "variant",
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_matrix(text: str) -> None:
    """For a table type and each kind of input: exactly the listed inputs are taken, and those mean the same after."""
    wanted = parse_type(text)
    accepted = {*ACCEPTED[text].split("|"), "nulls"}
    taken: set[str] = set()
    refusals: list[str] = []
    for name, given_values in INPUTS.items():
        try:
            fitted = fit(given_values, wanted, Place("db.t", "c"))
        except InvalidData as error:
            refusals.append(error.message)
            continue
        taken |= {name} - {"none"}
        fitted.validate(full=True)
        assert fitted.type == to_arrow_type(wanted)
        assert [exact(value) for value in fitted] == [exact(value) for value in given_values], name
    assert taken == accepted
    assert all("table `db.t`: column `c" in message for message in refusals)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=8), st.data())
def test_integers_arrive_unchanged_or_not_at_all(numbers: list[int | None], data: st.DataObject) -> None:
    """For any integers and any numeric type, values are the same after the fit or the fit is refused."""
    text = data.draw(st.sampled_from(["TINYINT", "SMALLINT", "INT", "FLOAT", "DOUBLE", "DECIMAL(9, 3)"]))
    values = pa.array(numbers, pa.int64())
    try:
        fitted = fit(values, parse_type(text), Place("t", "c"))
    except InvalidData:
        return
    assert [exact(value) for value in fitted] == [exact(value) for value in values]


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=8), st.data())
def test_floats_arrive_unchanged_or_not_at_all(numbers: list[float | None], data: st.DataObject) -> None:
    """For any floats and any numeric type, values are the same after the fit or the fit is refused."""
    text = data.draw(st.sampled_from(["TINYINT", "INT", "BIGINT", "FLOAT", "DECIMAL(38, 10)"]))
    values = pa.array(numbers, pa.float64())
    try:
        fitted = fit(values, parse_type(text), Place("t", "c"))
    except InvalidData:
        return
    assert [exact(value) for value in fitted] == [exact(value) for value in values]


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("INT", pa.array([2**40]), ["`c` is INT", "int64", "1099511627776", "int32"]),
        ("INT", pa.array([1.5]), ["1.5"]),
        ("FLOAT", pa.array([0.1]), ["0.1 would lose a part of its value", "cast it to float"]),
        ("DECIMAL(5, 2)", pa.array([0.1]), ["decimals are exact and floats are not"]),
        ("DECIMAL(5, 2)", pa.array([12345]), ["DECIMAL(5, 2)", "does not fit in precision 5"]),
        ("DATE", pa.array([MOMENT]), ["2024-05-01 01:02:03 would lose a part of its value"]),
        ("TIMESTAMP(6)", INPUTS["instant"], ["instants are not turned into wall-clock times"]),
        ("TIMESTAMP_LTZ(6)", INPUTS["moment us"], ["wall-clock times are not turned into instants"]),
        ("VARCHAR(3)", INPUTS["long text"], ["VARCHAR(3)", "length 4", "widen"]),
        ("STRING", INPUTS["forged text"], ["UTF-8", "BYTES"]),
        ("STRING", pa.array([1]), ["numbers are not turned into texts"]),
        ("ARRAY<VARCHAR(3)>", INPUTS["list of texts"], ["`c.element`", "length 4"]),
        ("ARRAY<INT NOT NULL>", INPUTS["list with null"], ["`c.element` is NOT NULL", "nulls in it (1 of them)"]),
        ("ARRAY<INT>", pa.array([1]), ["it is no list"]),
        ("MAP<STRING, INT>", INPUTS["map to digits"], ["`c.value`", "texts are not turned into numbers"]),
        ("ROW<a INT, b STRING>", INPUTS["row and more"], ["it has `c`"]),
        ("ROW<a INT, b STRING>", INPUTS["row too small"], ["it lacks `b`", "members a, b"]),
        ("ROW<a INT, b STRING>", INPUTS["row of digits"], ["`c.a`"]),
        ("ROW<a INT NOT NULL, b STRING>", INPUTS["row with null"], ["`c.a` is NOT NULL", "nulls in it (1 of them)"]),
        ("ROW<r ROW<a INT>>", pa.array([{"r": {"aa": 1}}]), ["`c.r`", "it has `aa`", "did you mean `a`?"]),
    ],
)
def test_refusals_name_the_part_and_the_reason(text: str, values: pa.Array, said: list[str]) -> None:
    """An error names the column, down to the part of a nested one, both types, and what is wrong."""
    with pytest.raises(InvalidData) as raised:
        fit(values, parse_type(text), Place("db.t", "c"))
    for part in said:
        assert part in str(raised.value)


EXAMPLES: dict[str, Any] = {
    "BOOLEAN": True,
    "TINYINT": -128,
    "SMALLINT": 32767,
    "INT": -(2**31),
    "BIGINT": 2**63 - 1,
    "FLOAT": 0.5,
    "DOUBLE": 0.1,
    "DECIMAL(5, 2)": Decimal("-999.99"),
    "DECIMAL(38, 10)": Decimal("1234567890123456789012345678.0123456789"),
    "CHAR(3)": "ab",
    "VARCHAR(3)": "äöü",
    "STRING": "日本 \U0001f9d0",
    "BYTES": b"\x00\xff",
    "DATE": dt.date(1, 1, 1),
    "TIME(3)": dt.time(23, 59, 59, 999000),
    "TIMESTAMP(0)": dt.datetime(1999, 12, 31, 23, 59, 59),
    "TIMESTAMP(6)": dt.datetime(2024, 2, 29, 12, 0, 0, 123456),
    "TIMESTAMP_LTZ(3)": dt.datetime(2024, 2, 29, 12, 0, 0, 123000, dt.UTC),
    "ARRAY<INT>": [1, None, 3],
    "ARRAY<ROW<x INT, y STRING>>": [{"x": 1, "y": None}, None],
    "MAP<STRING, ARRAY<INT>>": [("k", [1]), ("l", None)],
    "ROW<a INT NOT NULL, b STRING>": {"a": 1, "b": "x"},
}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_all_types_through_a_table(warehouse: Warehouse, file_format: str) -> None:
    """A row of every type, and a row of nulls, come back as they were written in each file format."""
    columns = {f"c{number}": text for number, text in enumerate(EXAMPLES)}
    table = warehouse.table("t", columns, options={"file.format": file_format})
    full = dict(zip(columns, EXAMPLES.values(), strict=True))
    rows = pa.Table.from_pylist([full], schema=table.arrow_schema)
    table.write(rows)
    assert table.to_arrow().equals(rows)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_of_nulls_through_a_table(warehouse: Warehouse, file_format: str) -> None:
    """Null in every column that may be null comes back as null."""
    columns = {f"c{number}": text for number, text in enumerate(EXAMPLES) if "NOT NULL" not in text}
    table = warehouse.table("t", columns, options={"file.format": file_format})
    rows = pa.Table.from_pylist([{}, {}], schema=table.arrow_schema)
    table.write(rows)
    assert table.to_arrow().equals(rows)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_rows_with_members_that_must_not_be_null(warehouse: Warehouse, file_format: str) -> None:
    """NOT NULL members bind rows that are there; a row that is null as a whole is fine, however it comes."""
    table = warehouse.table("t", {"id": "INT", "r": "ROW<a INT NOT NULL>"}, options={"file.format": file_format})
    table.write(pa.table({"id": [1, 2], "r": [{"a": 1}, None]}))
    table.write(pa.table({"id": [3], "r": pa.nulls(1)}))
    assert table.to_arrow().sort_by("id")["r"].to_pylist() == [{"a": 1}, None, None]


def test_null_variants(warehouse: Warehouse) -> None:
    """A VARIANT may be null although its two parts may not."""
    table = warehouse.table("t", {"v": "VARIANT"})
    rows = pa.table({"v": pa.array([{"value": b"1", "metadata": b"2"}, None])})
    table.write(rows)
    assert table.to_arrow()["v"].to_pylist() == rows["v"].to_pylist()
