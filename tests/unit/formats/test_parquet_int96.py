"""INT96 from raw bytes: the arithmetic, and the footer that shows the bytes."""

from __future__ import annotations

import io
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.format_samples import ArrayType, field, not_null, read, row, same, table, written

from lakebed.errors import Unsupported
from lakebed.formats.parquet.footer import int96_shown_as_bytes
from lakebed.formats.parquet.int96 import decoded, int96_columns
from lakebed.types import logical as lt

NANOS_PER_DAY = 86_400_000_000_000
EPOCH_DAY = 2440588


def stored(day: int, nanos: int) -> bytes:
    return struct.pack("<qi", nanos, day + EPOCH_DAY)


def timestamps(values: list[bytes | None], unit: str = "ns") -> list[int | None]:
    array = decoded(pa.array(values, pa.binary(12)), pa.timestamp(unit), "c", "some/file")
    assert array.type == pa.timestamp(unit)
    result: list[int | None] = array.cast(pa.int64()).to_pylist()
    return result


@given(st.integers(-(2**63), 2**63 - 1))
def test_both_ways_to_store_an_instant_read_the_same(instant: int) -> None:
    """Days rounded down with positive nanoseconds, and days rounded to zero with negative ones as Java has them."""
    day, nanos = divmod(instant, NANOS_PER_DAY)
    assert timestamps([stored(day, nanos), None]) == [instant, None]
    assert timestamps([stored(day + 1, nanos - NANOS_PER_DAY)]) == [instant]
    assert timestamps([stored(day, nanos)], "us") == [instant // 1000]


@pytest.mark.parametrize("instant", [2**63, -(2**63) - 1, 2**63 + 10**18, -(2**63) - 10**18])
def test_instants_beyond_nanoseconds_are_refused(instant: int) -> None:
    """An instant that 64-bit nanoseconds can not hold is an error, and fine as microseconds."""
    item = stored(*divmod(instant, NANOS_PER_DAY))
    with pytest.raises(Unsupported, match="`c`"):
        timestamps([stored(0, 0), item])
    assert timestamps([item], "us") == [instant // 1000]


def test_garbage_below_null_is_no_instant() -> None:
    """What the bytes of a null slot say does not matter."""
    values = pa.array([b"\xff" * 12, stored(0, 5)], pa.binary(12))
    nulled = pa.Array.from_buffers(values.type, 2, [pa.py_buffer(b"\x02"), values.buffers()[1]])
    assert decoded(nulled, pa.timestamp("ns"), "c", "f").cast(pa.int64()).to_pylist() == [None, 5]


def test_footer_shows_the_bytes_of_nested_columns_too() -> None:
    """Under the patched footer INT96 reads as bytes wherever it stands, and everything else as before."""
    moments = [0, -1, 10**18]
    pair = pa.struct([("x", pa.timestamp("ns")), ("y", pa.string())])
    table = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "t": pa.array(moments, pa.timestamp("ns")),
            "l": pa.array([[m, None] for m in moments], pa.list_(pa.timestamp("ns"))),
            "m": pa.array([[("k", m)] for m in moments], pa.map_(pa.string(), pa.timestamp("ns"))),
            "s": pa.array([{"x": m, "y": "a"} for m in moments], pair),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, row_group_size=2)
    plain = pq.ParquetFile(sink)
    assert int96_columns(plain, plain.schema_arrow) == {"t", "l", "m", "s"}
    raw = pq.ParquetFile(sink, metadata=int96_shown_as_bytes(plain.metadata)).read()
    assert raw.column("t").type == pa.binary(12)
    for name in table.column_names:
        wanted: Any = table.column(name).type
        column = decoded(raw.column(name).combine_chunks(), wanted, name, "f")
        assert column.cast(wanted).to_pylist() == table.column(name).to_pylist()


def test_only_fine_timestamps_are_int96_on_disk() -> None:
    """Coarser neighbours stay integers with statistics, decimals of 12 bytes stay decimals, and all reads back."""
    kinds = {
        "t9": lt.timestamp(9),
        "t3": lt.timestamp(3),
        "d": lt.decimal(28, 2),
        "l": ArrayType(lt.timestamp_ltz(7)),
        "r": row(("a", lt.timestamp(6)), ("b", not_null(lt.timestamp(9)))),
        "with.dot": lt.INT,
    }
    fields = [field(kind, name, i) for i, (name, kind) in enumerate(kinds.items())]
    moments = [0, -1, 10**18, None]
    rows = table(
        fields,
        moments,
        moments,
        [Decimal("1.00"), Decimal("-1.00"), None, None],
        [[m] for m in moments],
        [{"a": m, "b": -5} for m in moments[:3]] + [None],
        [1, 2, 3, None],
    )
    content, stats = written("parquet", fields, rows, row_group_rows=2)
    schema = pq.ParquetFile(io.BytesIO(content)).schema
    physical = {schema.column(i).path: schema.column(i).physical_type for i in range(len(schema))}
    assert physical == {
        "t9": "INT96",
        "t3": "INT64",
        "d": "FIXED_LEN_BYTE_ARRAY",
        "l.list.element": "INT96",
        "r.a": "INT64",
        "r.b": "INT96",
        "with.dot": "INT32",
    }
    assert same(read("parquet", content, fields)["l"], rows["l"])
    assert read("parquet", content, fields).drop_columns(["t3", "r"]).equals(rows.drop_columns(["t3", "r"]))
    assert [getattr(bound, "value", bound) for bound in (stats.columns["t9"].min, stats.columns["t9"].max)] == [
        -1,
        10**18,
    ]
    assert stats.columns["t3"].max is not None
