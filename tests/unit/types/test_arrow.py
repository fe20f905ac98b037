"""Logical types as Arrow types and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.errors import InvalidSchema
from lakebed.testing.strategies import ATOMIC_TYPES
from lakebed.types import logical as lt
from lakebed.types.arrow import from_arrow_schema, from_arrow_type, timestamp_unit, to_arrow_field, to_arrow_type
from lakebed.types.logical import AtomicType, DataField, parse_type, walk_fields


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("BOOLEAN", pa.bool_()),
        ("DECIMAL(38, 18)", pa.decimal128(38, 18)),
        ("CHAR(3)", pa.string()),
        ("BINARY(4)", pa.binary()),
        ("TIME(0)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("s")),
        ("TIMESTAMP(1)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(3)", pa.timestamp("ms", "UTC")),
        ("ARRAY<INT NOT NULL>", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
        ("ROW<x INT NOT NULL>", pa.struct([pa.field("x", pa.int32(), nullable=False)])),
    ],
)
def test_columns_have_one_arrow_type_in_memory(text: str, arrow: pa.DataType) -> None:
    """The read shape of each type."""
    assert to_arrow_type(parse_type(text)) == arrow


def test_units_hold_all_digits_of_a_precision() -> None:
    """Every precision gets the coarsest unit that loses nothing."""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}
    for precision in range(10):
        unit = timestamp_unit(precision)
        assert digits[unit] >= precision
        assert all(other < precision for other in digits.values() if other < digits[unit])


@pytest.mark.parametrize("data_type", ATOMIC_TYPES, ids=str)
def test_arrow_types_come_back_as_the_same_shape(data_type: AtomicType) -> None:
    """A schema taken from Arrow stores what Arrow holds: lengths are lost, the Arrow type is not."""
    arrow = to_arrow_type(data_type)
    assert to_arrow_type(from_arrow_type(arrow, "c")) == (pa.time32("ms") if pa.types.is_time(arrow) else arrow)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.large_string(), lt.STRING),
        (pa.string_view(), lt.STRING),
        (pa.large_binary(), lt.BYTES),
        (pa.binary(16), lt.binary(16)),
        (pa.dictionary(pa.int32(), pa.string()), lt.STRING),
        (pa.decimal256(20, 3), lt.decimal(20, 3)),
        (pa.date64(), lt.DATE),
        (pa.time64("us"), lt.time(6)),
        (pa.timestamp("ns", "Asia/Shanghai"), lt.timestamp_ltz(9)),
        (pa.list_(pa.int8(), 3), lt.ArrayType(lt.TINYINT)),
        (pa.large_list(pa.int8()), lt.ArrayType(lt.TINYINT)),
    ],
)
def test_arrow_types_of_other_libraries_are_understood(arrow: pa.DataType, expected: lt.DataType) -> None:
    """What pandas, polars and friends hand over finds a table type."""
    assert from_arrow_type(arrow, "c") == expected


@pytest.mark.parametrize(
    ("arrow", "advice"),
    [
        (pa.uint8(), "int16"),
        (pa.uint64(), "decimal128"),
        (pa.null(), "type"),
        (pa.duration("s"), "int64"),
        (pa.decimal256(60, 2), "cast"),
        (pa.decimal128(5, -1), "cast"),
        (pa.month_day_nano_interval(), "cast"),
        (pa.list_(pa.uint32()), "int64"),
    ],
)
def test_types_without_a_counterpart_name_the_column_and_a_way_out(arrow: pa.DataType, advice: str) -> None:
    """The error says which column it is and what to cast it to, inside nested types too."""
    with pytest.raises(InvalidSchema, match="`c`") as caught:
        from_arrow_type(arrow, "c")
    assert advice in (caught.value.hint or "")


def test_schemas_are_numbered_and_keep_comments_and_nullability() -> None:
    """Every column and member gets its own id; comments travel as metadata, both ways."""
    schema = pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False, metadata={"comment": "the key"}),
            pa.field("r", pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())])),
            pa.field("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    fields = from_arrow_schema(schema)
    ids = [field.id for field in walk_fields(fields)]
    assert sorted(ids) == [0, 1, 2, 3, 4]
    assert fields[0] == DataField(0, "a", lt.with_nullable(lt.INT, False), "the key")
    assert [to_arrow_field(field) for field in fields] == list(schema)
    assert to_arrow_field(fields[0]).metadata == {b"comment": b"the key"}
    assert isinstance(fields[2].type, lt.MapType)
    assert not fields[2].type.key.nullable
