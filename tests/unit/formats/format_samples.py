"""Columns of every type with telling values, and shortcuts to write and read files in memory."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebed.formats import FORMATS, FileStats, WriteSettings
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_schema, to_arrow_type
from lakebed.types.logical import ArrayType, DataField, DataType, MapType, MultisetType, RowType

DAY_1, DAY_LAST = -719162, 2932896  # 0001-01-01 and 9999-12-31
SECOND_1, SECOND_LAST = DAY_1 * 86400, DAY_LAST * 86400 + 86399


def row(*members: tuple[str, DataType]) -> RowType:
    return RowType(tuple(DataField(100 + i, name, data_type) for i, (name, data_type) in enumerate(members)))


def not_null(data_type: DataType) -> DataType:
    return lt.with_nullable(data_type, False)


ATOMS: dict[str, tuple[DataType, list[Any]]] = {
    "boolean": (lt.BOOLEAN, [True, False]),
    "tinyint": (lt.TINYINT, [-128, 127, 0]),
    "smallint": (lt.SMALLINT, [-32768, 32767, 0]),
    "int": (lt.INT, [-(2**31), 2**31 - 1, 0, -1, 63, 64, -64, -65]),
    "bigint": (lt.BIGINT, [-(2**63), 2**63 - 1, 0, 1 << 62, 8191, 8192, -8192, -8193]),
    "float": (lt.FLOAT, [math.inf, -math.inf, math.nan, -0.0, 1.5, 3.4028234663852886e38]),
    "double": (lt.DOUBLE, [math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7976931348623157e308]),
    "decimal9": (lt.decimal(9, 2), [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.00"), Decimal("-0.01")]),
    "decimal18": (
        lt.decimal(18, 0),
        [Decimal(10**18 - 1), Decimal(1 - 10**18), Decimal(127), Decimal(-128), Decimal(128)],
    ),
    "decimal38": (
        lt.decimal(38, 10),
        [Decimal("9999999999999999999999999999.9999999999"), Decimal("-9999999999999999999999999999.9999999999")],
    ),
    "char": (lt.char(5), ["abc", "", "äöü"]),
    "varchar": (lt.varchar(20), ["abc ", "", "日本"]),
    "string": (lt.STRING, ["", "x" * 5000, "\U0001f600", "\x00z"]),
    "bytes": (lt.BYTES, [b"", b"\xff\x00", b"\x80" * 300]),
    "date": (lt.DATE, [DAY_1, DAY_LAST, 0, -1]),
    "time": (lt.time(3), [0, 86_399_999]),
}
BINARIES: dict[str, tuple[DataType, list[Any]]] = {
    "binary": (lt.binary(3), [b"abc", b"\xff\xff\xff"]),
    "varbinary": (lt.varbinary(3), [b"", b"abc"]),
}
COARSE_TIMES: dict[str, tuple[DataType, list[Any]]] = {
    f"{kind}{precision}": (of(precision), [SECOND_1 * unit, SECOND_LAST * unit + unit - 1, 0, -1, -unit - 1])
    for kind, of in (("timestamp", lt.timestamp), ("ltz", lt.timestamp_ltz))
    for precision, unit in ((0, 1), (3, 1000), (6, 10**6))
}
NEAR_TIMES: dict[str, tuple[DataType, list[Any]]] = {
    f"{kind}{precision}": (of(precision), [-9_223_372_036 * unit, 9_223_372_035 * unit + unit - 1, 0, -unit])
    for kind, of in (("timestamp", lt.timestamp), ("ltz", lt.timestamp_ltz))
    for precision, unit in ((0, 1), (3, 1000), (6, 10**6))
}
NEAR_FINE_TIMES: dict[str, tuple[DataType, list[Any]]] = {
    f"{kind}9": (of(9), [-9_223_372_036 * 10**9, 2**63 - 1, 0, -(10**9)])
    for kind, of in (("timestamp", lt.timestamp), ("ltz", lt.timestamp_ltz))
}
"""What ORC takes: years that nanoseconds hold, and whole seconds before 1970."""
FINE_TIMES: dict[str, tuple[DataType, list[Any]]] = {
    "timestamp9": (lt.timestamp(9), [-(2**63) + 1, 2**63 - 1, 0, -1, -1_000_000_001]),
    "ltz9": (lt.timestamp_ltz(9), [-(2**63) + 1, 2**63 - 1, 0, -1]),
}
NESTED: dict[str, tuple[DataType, list[Any]]] = {
    "array": (ArrayType(lt.INT), [[1, None, 3], [], [None]]),
    "array_not_null": (ArrayType(not_null(lt.STRING)), [["a", ""], []]),
    "array_of_array": (ArrayType(ArrayType(lt.decimal(10, 2))), [[[Decimal("1.25"), None], None, []], []]),
    "map": (MapType(not_null(lt.STRING), lt.BIGINT), [[("a", 1), ("b", None)], []]),
    "map_int_key": (MapType(not_null(lt.INT), lt.STRING), [[(1, "x"), (2, None)], []]),
    "map_of_row": (MapType(not_null(lt.DATE), row(("x", lt.INT))), [[(1, {"x": 5}), (2, None), (3, {"x": None})], []]),
    "row": (row(("x", lt.INT), ("y", lt.STRING)), [{"x": 1, "y": "q"}, {"x": None, "y": None}]),
    "row_not_null": (row(("x", not_null(lt.INT))), [{"x": 1}, {"x": -1}]),
    "array_of_row": (ArrayType(row(("k", lt.STRING), ("v", lt.DOUBLE))), [[{"k": "a", "v": 0.5}, None], []]),
    "array_of_time": (ArrayType(lt.time(3)), [[1, None], []]),
    "row_of_times": (
        row(("t", lt.timestamp(0)), ("u", lt.timestamp_ltz(6))),
        [{"t": 1, "u": 2}, {"t": None, "u": -1_000_000}],
    ),
}
MULTISETS: dict[str, tuple[DataType, list[Any]]] = {
    "multiset": (MultisetType(not_null(lt.STRING)), [[("a", 2), ("b", 1)], []]),
    "multiset_int": (MultisetType(not_null(lt.INT)), [[(7, 2)], []]),
}
ROWS_IN_ROWS: dict[str, tuple[DataType, list[Any]]] = {
    "row_in_row": (row(("x", lt.INT), ("y", row(("z", lt.STRING)))), [{"x": 1, "y": {"z": "q"}}, {"x": 2, "y": None}]),
    "array_in_row": (row(("l", ArrayType(row(("z", lt.INT))))), [{"l": [{"z": 1}, None]}, {"l": []}, {"l": None}]),
}
VARIANTS: dict[str, tuple[DataType, list[Any]]] = {"variant": (lt.VARIANT, [{"value": b"\x01", "metadata": b""}])}

SAMPLES = {
    "parquet": ATOMS | BINARIES | COARSE_TIMES | FINE_TIMES | NESTED | ROWS_IN_ROWS | MULTISETS | VARIANTS,
    "orc": ATOMS | BINARIES | NEAR_TIMES | NEAR_FINE_TIMES | NESTED | ROWS_IN_ROWS | MULTISETS,
    "avro": ATOMS | BINARIES | COARSE_TIMES | NESTED | ROWS_IN_ROWS | MULTISETS,
}


def field(data_type: DataType, name: str = "c", field_id: int = 1) -> DataField:
    return DataField(field_id, name, data_type)


def array(data_type: DataType, values: list[Any]) -> pa.Array:
    arrow = to_arrow_type(data_type)
    if pa.types.is_temporal(arrow):
        return pa.array(values, pa.int64()).cast(pa.int64() if arrow.bit_width == 64 else pa.int32()).cast(arrow)
    return pa.array(values, arrow)


def table(fields: list[DataField], *columns: list[Any]) -> pa.Table:
    arrays = [array(f.type, column) for f, column in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=to_arrow_schema(fields))


def written(
    format_name: str, fields: list[DataField], *batches: pa.Table | pa.RecordBatch, **settings: Any
) -> tuple[bytes, FileStats]:
    stream = pa.BufferOutputStream()
    writer = FORMATS[format_name].open_writer(stream, fields, WriteSettings(**settings))
    for batch in batches:
        writer.write(batch)
    stats = writer.close()
    assert not stream.closed
    return stream.getvalue().to_pybytes(), stats


def read(format_name: str, content: bytes, fields: list[DataField], **options: Any) -> pa.Table:
    """All rows; checks on the way that positions are consecutive."""
    expected = 0
    batches = []
    with FORMATS[format_name].open_reader(pa.BufferReader(content), "some/file") as reader:
        for position, batch in reader.read(fields, **options):
            assert position == expected
            expected += batch.num_rows
            batches.append(batch)
        assert reader.row_count == expected
    relaxed = pa.schema([f.with_nullable(True).remove_metadata() for f in to_arrow_schema(fields)])
    return pa.Table.from_batches(batches, relaxed)


def same(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> bool:
    """Equal to the bit as far as floats go: NaN equals NaN, -0.0 is not 0.0."""
    return left.type == right.type and repr(left.to_pylist()) == repr(right.to_pylist())
