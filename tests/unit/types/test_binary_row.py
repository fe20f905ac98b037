"""The BinaryRow codec: known bytes, a row-by-row model, round trips, nested values, damaged rows."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import CorruptFile, InvalidArgument, InvalidData, Unsupported
from lakebed.types import binary_row
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import EMPTY_ROW, decode_row, decode_rows, encode_row, encode_rows
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot

TS_NS = pa.scalar(1704164645123456789, pa.timestamp("ns"))
MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 123456)

# (types, values, hex of the serialized row)
KNOWN_ROWS: list[tuple[str, list[Any], str]] = [
    ("", [], "00000000 0000000000000000"),
    ("INT", [1], "00000001 0000000000000000 0100000000000000"),
    ("INT", [-1], "00000001 0000000000000000 ffffffff00000000"),
    ("INT", [None], "00000001 0001000000000000 0000000000000000"),
    ("BIGINT", [1234567890123], "00000001 0000000000000000 cb04fb711f010000"),
    ("SMALLINT", [-300], "00000001 0000000000000000 d4fe000000000000"),
    ("BOOLEAN", [True], "00000001 0000000000000000 0100000000000000"),
    ("FLOAT", [1.5], "00000001 0000000000000000 0000c03f00000000"),
    ("DOUBLE", [2.25], "00000001 0000000000000000 0000000000000240"),
    ("STRING", [""], "00000001 0000000000000000 0000000000000080"),
    ("STRING", ["a"], "00000001 0000000000000000 6100000000000081"),
    ("STRING", ["paimon!"], "00000001 0000000000000000 7061696d6f6e2187"),
    ("STRING", ["12345678"], "00000001 0000000000000000 0800000010000000 3132333435363738"),
    ("STRING", ["apache-paimon"], "00000001 0000000000000000 0d00000010000000 6170616368652d70 61696d6f6e000000"),
    ("BYTES", [b"\1\2\3"], "00000001 0000000000000000 0102030000000083"),
    ("DATE", [dt.date(2024, 5, 14)], "00000001 0000000000000000 914d000000000000"),
    ("TIME(3)", [dt.time(1, 2, 3, 4000)], "00000001 0000000000000000 fcce380000000000"),
    ("DECIMAL(10, 2)", [Decimal("123.45")], "00000001 0000000000000000 3930000000000000"),
    (
        "DECIMAL(20, 2)",
        [Decimal("123.45")],
        "00000001 0000000000000000 0200000010000000 3039000000000000 0000000000000000",
    ),
    (
        "DECIMAL(20, 2)",
        [Decimal("-1.00")],
        "00000001 0000000000000000 0100000010000000 9c00000000000000 0000000000000000",
    ),
    ("TIMESTAMP(3)", [MOMENT.replace(microsecond=123000)], "00000001 0000000000000000 03d920c88c010000"),
    ("TIMESTAMP(6)", [MOMENT], "00000001 0000000000000000 40f5060010000000 03d920c88c010000"),
    ("TIMESTAMP_LTZ(6)", [MOMENT], "00000001 0000000000000000 40f5060010000000 03d920c88c010000"),
    ("TIMESTAMP(9)", [TS_NS], "00000001 0000000000000000 55f8060010000000 03d920c88c010000"),
    ("TIMESTAMP(6)", [None], "00000001 0001000000000000 0000000010000000 0000000000000000"),
    ("INT|STRING", [1, "a"], "00000002 0000000000000000 0100000000000000 6100000000000081"),
    (
        "STRING|BIGINT",
        ["2024-01-01", 7],
        "00000002 0000000000000000 0a00000018000000 0700000000000000 323032342d30312d 3031000000000000",
    ),
    (
        "STRING|STRING",
        ["hello world", "second value"],
        "00000002 0000000000000000 0b00000018000000 0c00000028000000 68656c6c6f20776f 726c640000000000"
        "7365636f6e642076 616c756500000000",
    ),
    (
        "INT|STRING|DOUBLE",
        [None, "x", 1.0],
        "00000003 0001000000000000 0000000000000000 7800000000000081 000000000000f03f",
    ),
    (
        "ROW<a INT, b STRING>",
        [{"a": 9, "b": "nested"}],
        "00000001 0000000000000000 1800000010000000 0000000000000000 0900000000000000 6e65737465640086",
    ),
    (
        "ARRAY<INT>",
        [[1, None, 3]],
        "00000001 0000000000000000 1800000010000000 0300000002000000 0100000000000000 0300000000000000",
    ),
    (
        "MAP<STRING, BIGINT>",
        [[("k", 7)]],
        "00000001 0000000000000000 2400000010000000 1000000001000000 000000006b000000 0000008101000000"
        "0000000007000000 0000000000000000",
    ),
    ("|".join(["INT"] * 57), [None] * 57, "00000039 00ffffffffffffff 0100000000000000" + "00" * 57 * 8),
]


def types_of(text: str) -> list[DataType]:
    return [lt.parse_type(part) for part in text.split("|")] if text else []


@pytest.mark.parametrize(("text", "values", "expected"), KNOWN_ROWS)
def test_known_rows(text: str, values: list[Any], expected: str) -> None:
    """Rows have the very bytes that other implementations write, and come back as the values they were made of."""
    types = types_of(text)
    encoded = encode_row(values, types)
    assert encoded.hex() == expected.replace(" ", "")
    columns = [value if isinstance(value, pa.Scalar) else pa.array([value], to_arrow_type(data_type))[0]
               for value, data_type in zip(values, types, strict=True)]  # fmt: skip
    assert decode_row(encoded, types) == columns


def test_empty_row_is_the_row_without_fields() -> None:
    """The constant is what encoding no columns gives, for any number of rows."""
    assert encode_row([], []) == EMPTY_ROW
    assert encode_rows([], [], length=3).to_pylist() == [EMPTY_ROW] * 3
    assert decode_rows([EMPTY_ROW], []) == []


# --- a model, one row and one value at a time ------------------------------------------------------------------------


def model_row(values: list[Any], types: list[AtomicType]) -> bytes:
    """A row without prefix; values are unscaled integers for decimals and (millis, nanos) for timestamps."""
    head = (len(types) + 8 + 63) // 64 * 8
    bits, slots, variable = 0, b"", b""
    for position, (value, data_type) in enumerate(zip(values, types, strict=True)):
        pointer = (head + 8 * len(types) + len(variable)) << 32
        is_wide = (data_type.root is TypeRoot.DECIMAL and data_type.precision > 18) or (
            data_type.root in lt.TIMESTAMPS and data_type.precision > 3
        )
        space = 16 if data_type.root is TypeRoot.DECIMAL else 8
        if value is None:
            bits |= 1 << (position + 8)
            slots += struct.pack("<Q", pointer if is_wide else 0)
            variable += bytes(space if is_wide else 0)
            continue
        match data_type.root:
            case TypeRoot.DECIMAL if is_wide:
                size = next(n for n in range(1, 17) if -(1 << (8 * n - 1)) <= value < 1 << (8 * n - 1))
                slots += struct.pack("<Q", pointer | size)
                variable += value.to_bytes(size, "big", signed=True).ljust(16, b"\0")
            case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if is_wide:
                slots += struct.pack("<Q", pointer | value[1])
                variable += struct.pack("<q", value[0])
            case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
                slots += struct.pack("<q", value[0])
            case root if root in lt.STRINGS | lt.BINARIES:
                data = value.encode() if isinstance(value, str) else value
                if len(data) <= 7:
                    slots += data.ljust(7, b"\0") + bytes([0x80 | len(data)])
                else:
                    slots += struct.pack("<Q", pointer | len(data))
                    variable += data + bytes(-len(data) % 8)
            case root:
                slots += struct.pack("<" + MODEL_FORMATS[root], value).ljust(8, b"\0")
    return bits.to_bytes(head, "little") + slots + variable


MODEL_FORMATS = {
    TypeRoot.BOOLEAN: "?",
    TypeRoot.TINYINT: "b",
    TypeRoot.SMALLINT: "h",
    TypeRoot.INT: "i",
    TypeRoot.DATE: "i",
    TypeRoot.TIME: "i",
    TypeRoot.FLOAT: "f",
    TypeRoot.BIGINT: "q",
    TypeRoot.DOUBLE: "d",
    TypeRoot.DECIMAL: "q",
}


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def split_ticks(ticks: int, unit: str) -> tuple[int, int]:
    nanos = ticks * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    return nanos // 10**6, nanos % 10**6


def raw_values(data_type: AtomicType) -> tuple[st.SearchStrategy[Any], pa.DataType]:
    """Values to draw, and the Arrow type to build from them before it is viewed as the column's type."""
    match data_type.root:
        case TypeRoot.BOOLEAN:
            return st.booleans(), pa.bool_()
        case TypeRoot.DECIMAL:
            limit = 10**data_type.precision - 1
            return st.integers(-limit, limit), to_arrow_type(data_type)
        case TypeRoot.FLOAT:
            return st.floats(width=32, allow_nan=False), pa.float32()
        case TypeRoot.DOUBLE:
            return st.floats(allow_nan=False), pa.float64()
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            return signed(53 if data_type.precision == 0 else 64), pa.int64()
        case TypeRoot.TIME:
            return st.integers(0, 86_399_999), pa.int32()
        case root if root in lt.STRINGS:
            return st.text(max_size=12) | st.text("abc", max_size=40), pa.string()
        case root if root in lt.BINARIES:
            return st.binary(max_size=40), pa.binary()
        case root:
            width = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.BIGINT: 64}.get(root, 32)
            return signed(width), {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]


def build(data_type: AtomicType, raw: list[Any]) -> pa.Array:
    """The column of a type from drawn values."""
    arrow = to_arrow_type(data_type)
    if data_type.root is TypeRoot.DECIMAL:
        limbs = [((v or 0) & (2**64 - 1), ((v or 0) >> 64) & (2**64 - 1)) for v in raw]
        valid = np.packbits(np.array([v is not None for v in raw], bool), bitorder="little")
        data = np.array(limbs, np.uint64).reshape(-1)
        return pa.Array.from_buffers(arrow, len(raw), [pa.py_buffer(valid), pa.py_buffer(data)])
    built = pa.array(raw, raw_values(data_type)[1])
    return built if built.type == arrow else built.view(arrow)


ATOMIC_TYPES: list[AtomicType] = [
    lt.BOOLEAN,
    lt.TINYINT,
    lt.SMALLINT,
    lt.INT,
    lt.BIGINT,
    lt.FLOAT,
    lt.DOUBLE,
    lt.DATE,
    lt.time(0),
    lt.time(9),
    lt.char(5),
    lt.varchar(100),
    lt.STRING,
    lt.binary(8),
    lt.BYTES,
    lt.BLOB,
    *(lt.decimal(p, s) for p, s in ((1, 0), (9, 2), (18, 6), (19, 4), (30, 30), (38, 0), (38, 18))),
    *(lt.timestamp(p) for p in (0, 3, 4, 6, 7, 9)),
    *(lt.timestamp_ltz(p) for p in (0, 1, 3, 6, 9)),
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[AtomicType], list[list[Any]]]:
    """Column types and raw values, with nulls in some columns."""
    types = draw(st.lists(st.sampled_from(ATOMIC_TYPES), min_size=1, max_size=6))
    rows = draw(st.integers(0, 40))
    columns = []
    for data_type in types:
        values = raw_values(data_type)[0]
        if draw(st.booleans()):
            values = st.none() | values
        columns.append(draw(st.lists(values, min_size=rows, max_size=rows)))
    return types, columns


def model_value(value: Any, data_type: AtomicType) -> Any:
    if value is not None and data_type.root in lt.TIMESTAMPS:
        return split_ticks(value, to_arrow_type(data_type).unit)
    return value


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(0, 3), st.integers(0, 3))
def test_random_rows_equal_the_model_and_come_back(
    table: tuple[list[AtomicType], list[list[Any]]], skip: int, drop: int
) -> None:
    """Any rows, taken from slices with offsets, have the model's bytes and decode to the same columns."""
    types, raw = table
    size = max(len(raw[0]) - skip - drop, 0)
    columns = [build(data_type, values).slice(skip, size) for data_type, values in zip(types, raw, strict=True)]
    kept = [values[skip : skip + size] for values in raw]

    plain = encode_rows(columns, types, arity_prefix=False)
    expected = [
        model_row([model_value(values[row], data_type) for values, data_type in zip(kept, types, strict=True)], types)
        for row in range(size)
    ]
    assert plain.to_pylist() == expected

    decoded = decode_rows(encode_rows(columns, types), types)
    for column, back in zip(columns, decoded, strict=True):
        back.validate(full=True)
        assert back.equals(column)
    loose = decode_rows(encode_rows(columns, types, reserve_nulls=False), types)
    assert all(back.equals(column) for back, column in zip(loose, columns, strict=True))


def test_rows_are_read_from_slices() -> None:
    """A sliced bytes array, a large one and a list of bytes all decode alike."""
    types = [lt.STRING, lt.BIGINT]
    columns = [pa.array([f"value number {i}" for i in range(50)]), pa.array(range(50))]
    rows = encode_rows(columns, types).slice(7, 20)
    wanted = [column.slice(7, 20) for column in columns]
    for given_rows in (rows, rows.cast(pa.large_binary()), rows.to_pylist()):
        assert all(a.equals(b) for a, b in zip(decode_rows(given_rows, types), wanted, strict=True))


def test_some_fields_alone() -> None:
    """Those that are chosen are read as with all others, in the order in which they are named."""
    types = [lt.INT, lt.STRING, lt.BIGINT]
    rows = encode_rows([pa.array([1, None]), pa.array(["a long text", "b"]), pa.array([3, 4])], types)
    everything = decode_rows(rows, types)
    assert decode_rows(rows, types, [2, 1]) == [everything[2], everything[1]]
    assert decode_rows(rows, types, []) == []


def test_block_borders_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows encoded in several blocks are the rows of a single block."""
    types = [lt.STRING, lt.timestamp(6)]
    columns = [
        pa.array([None if i % 5 == 0 else "x" * (i % 23) for i in range(100)]),
        pa.array([None if i % 7 == 0 else i * 1001 for i in range(100)], pa.timestamp("us")),
    ]
    whole = encode_rows(columns, types)
    monkeypatch.setattr(binary_row, "_BLOCK_ROWS", 9)
    assert encode_rows(columns, types).equals(whole)


@pytest.mark.parametrize("arrow", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_other_forms_of_text(arrow: pa.DataType) -> None:
    """Text in any Arrow form, also chunked, gives the same rows."""
    texts = pa.array(["", "short", None, "long enough to spill", "exactly8"])
    wanted = encode_rows([texts], [lt.STRING])
    assert encode_rows([texts.cast(arrow)], [lt.STRING]).equals(wanted)
    chunked = pa.chunked_array([texts.slice(0, 2).cast(arrow), texts.slice(2).cast(arrow)])
    assert encode_rows([chunked], [lt.STRING]).equals(wanted)


def test_bytes_under_a_null_do_not_leak() -> None:
    """What an Arrow buffer holds at a null stays out of the row."""
    valid = pa.py_buffer(b"\x05")
    texts = pa.Array.from_buffers(
        pa.string(), 3, [valid, pa.py_buffer(np.array([0, 3, 15, 16], np.int32)), pa.py_buffer(b"abcSECRETSECRETd")]
    )
    numbers = pa.Array.from_buffers(pa.int64(), 3, [valid, pa.py_buffer(np.array([1, 99, 3]))])
    types = [lt.STRING, lt.BIGINT]
    wanted = encode_rows([pa.array(["abc", None, "d"]), pa.array([1, None, 3])], types)
    assert encode_rows([texts, numbers], types).equals(wanted)


def test_one_very_long_value_among_short_ones() -> None:
    """Rows far longer than the rest take the path for single rows, with the same bytes."""
    texts = ["s", "a" * 9, "b" * 10_001, "c" * 12] * 8 + ["d" * 100_003]
    types = [lt.STRING]
    plain = encode_rows([pa.array(texts)], types, arity_prefix=False)
    assert plain.to_pylist() == [model_row([text], [lt.STRING]) for text in texts]
    assert decode_rows(encode_rows([pa.array(texts)], types), types)[0].to_pylist() == texts


# --- nested ----------------------------------------------------------------------------------------------------------

NESTED_TYPES: list[DataType] = [
    ArrayType(lt.BOOLEAN),
    ArrayType(lt.SMALLINT),
    ArrayType(lt.STRING),
    ArrayType(lt.decimal(25, 3)),
    ArrayType(lt.timestamp(6)),
    ArrayType(ArrayType(lt.TINYINT)),
    MapType(lt.INT, lt.STRING),
    MapType(lt.STRING, ArrayType(lt.DOUBLE)),
    MultisetType(lt.STRING),
    RowType((DataField(0, "a", lt.timestamp(6)), DataField(1, "b", lt.STRING), DataField(2, "c", ArrayType(lt.INT)))),
    ArrayType(RowType((DataField(0, "x", lt.decimal(20, 1)), DataField(1, "y", MapType(lt.INT, lt.BYTES))))),
    lt.VARIANT,
]


def nested_values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case ArrayType(element):
            return st.lists(st.none() | nested_values(element), max_size=40)
        case MapType(key, value):
            return st.dictionaries(nested_values(key), st.none() | nested_values(value), max_size=4).map(
                lambda entries: list(entries.items())
            )
        case MultisetType(element):
            return st.dictionaries(nested_values(element), st.integers(1, 9), max_size=4).map(
                lambda entries: list(entries.items())
            )
        case RowType(fields):
            return st.fixed_dictionaries({f.name: st.none() | nested_values(f.type) for f in fields})
        case AtomicType(root=TypeRoot.VARIANT):
            return st.fixed_dictionaries({"value": st.binary(max_size=20), "metadata": st.binary(max_size=9)})
        case AtomicType(root=TypeRoot.DECIMAL):
            limit = 10**data_type.precision - 1
            return st.integers(-limit, limit).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -data_type.scale)))  # fmt: skip  # noqa: E501
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
        case AtomicType():
            return raw_values(data_type)[0]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_nested_values_come_back(data: st.DataObject) -> None:
    """Nested columns of any depth, beside plain ones and in slices, survive the round trip."""
    nested = data.draw(st.sampled_from(NESTED_TYPES))
    values = data.draw(st.lists(st.none() | nested_values(nested), min_size=1, max_size=8))
    column = pa.array([None, *values], to_arrow_type(nested)).slice(1)
    types = [lt.STRING, nested, lt.INT]
    columns = [pa.array(["some longer text"] * len(values)), column, pa.array(range(len(values)), pa.int32())]
    decoded = decode_rows(encode_rows(columns, types), types)
    for back, wanted in zip(decoded, columns, strict=True):
        back.validate(full=True)
        assert back.type == wanted.type
        assert back.to_pylist() == wanted.to_pylist()


def test_nested_arrays_have_their_own_offsets() -> None:
    """An array of texts keeps short ones in 8-byte slots and counts offsets from its own start."""
    row = encode_row([["ab", None, "longer text"]], [ArrayType(lt.STRING)])
    array = row[4 + 8 + 8 :]
    assert array[:8] == struct.pack("<iI", 3, 0b010)
    assert array[8:16] == b"ab\0\0\0\0\0\x82"
    assert array[24:32] == struct.pack("<ii", 11, 32)
    assert array[32:] == b"longer text".ljust(16, b"\0")


def test_null_members_of_nested_rows_reserve_nothing() -> None:
    """Only the outermost row reserves space for null timestamps."""
    nested = RowType((DataField(0, "t", lt.timestamp(6)),))
    assert len(encode_row([{"t": None}], [nested])) == 4 + 8 + 8 + 16
    assert len(encode_row([None], [lt.timestamp(6)])) == 4 + 8 + 8 + 8


# --- wrong input -----------------------------------------------------------------------------------------------------


def damaged(types: list[DataType], values: list[Any], position: int, replacement: bytes) -> bytes:
    row = bytearray(encode_row(values, types))
    row[position : position + len(replacement)] = replacement
    return bytes(row)


TEXT = encode_row(["apache-paimon"], [lt.STRING])
WIDE = lt.decimal(20, 0)


@pytest.mark.parametrize(
    ("row", "types", "complaint"),
    [
        (b"", [lt.INT], "too few"),
        (b"\0\0", [lt.INT], "too few"),
        (EMPTY_ROW, [lt.INT], "0 fields"),
        (encode_row([1, 2], [lt.INT, lt.INT]), [lt.INT], "2 fields"),
        (encode_row([1], [lt.INT])[:-1], [lt.INT], "15 bytes"),
        (TEXT[:-8], [lt.STRING], "past the end"),
        (damaged([lt.STRING], ["apache-paimon"], 16, b"\xff\xff\xff\x7f"), [lt.STRING], "past the end"),
        (damaged([lt.STRING], ["abc"], 19, b"\x88"), [lt.STRING], "7 bytes"),
        (damaged([lt.STRING], ["abc"], 12, b"\xff"), [lt.STRING], "field 0"),
        (damaged([WIDE, lt.STRING], [1, "apache-paimon"], 12, b"\x11"), [WIDE, lt.STRING], "more than 16"),
        (damaged([lt.time(3)], [0], 15, b"\xff"), [lt.time(3)], "outside of a day"),
        (damaged([WIDE], [1], 12, b"\x00"), [WIDE], "no bytes"),
        (damaged([WIDE], [1], 12, b"\x10\0\0\0\x10\0\0\0\x7f"), [WIDE], "20 digits"),
        (damaged([lt.decimal(3, 0)], [1], 12, b"\xe8\x03"), [lt.decimal(3, 0)], "3 digits"),
        (damaged([lt.timestamp(6)], [0], 12, b"\xff\xff\xff\xff"), [lt.timestamp(6)], "nanoseconds"),
        (damaged([lt.timestamp(6)], [0], 16, b"\x11"), [lt.timestamp(6)], "past the end"),
        (damaged([ArrayType(lt.INT)], [[1]], 20, b"\xff\xff\xff\xff"), [ArrayType(lt.INT)], "elements"),
        (damaged([ArrayType(lt.INT)], [[1]], 20, b"\x09"), [ArrayType(lt.INT)], "elements"),
        (damaged([MapType(lt.INT, lt.INT)], [[(1, 2)]], 20, b"\x70"), [MapType(lt.INT, lt.INT)], "first part"),
        (damaged([MapType(lt.INT, lt.INT)], [[(1, 2)]], 24, b"\0"), [MapType(lt.INT, lt.INT)], "keys"),
        (damaged([MapType(lt.INT, lt.INT)], [[(1, 2)]], 28, b"\1"), [MapType(lt.INT, lt.INT)], "null key"),
    ],
)
def test_damaged_rows_are_refused(row: bytes, types: list[DataType], complaint: str) -> None:
    """Bytes that can not be a row of these types give CorruptFile, whose text says what is wrong."""
    with pytest.raises(CorruptFile, match=complaint):
        decode_row(row, types)


def test_missing_row_is_refused() -> None:
    """A null among the rows is damage, not an empty row."""
    with pytest.raises(CorruptFile, match="row 1 is missing"):
        decode_rows([EMPTY_ROW, None], [])  # type: ignore[list-item]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_random_damage_never_escapes(data: st.DataObject) -> None:
    """Whatever bytes are changed or cut, decoding gives values or one of our errors."""
    nested = data.draw(st.sampled_from(NESTED_TYPES))
    types = [lt.STRING, WIDE, lt.timestamp(9), nested]
    drawn = data.draw(st.lists(nested_values(nested), min_size=1, max_size=3))
    columns = [
        pa.array(["some longer text"] * len(drawn)),
        pa.array([Decimal(1)] * len(drawn), to_arrow_type(WIDE)),
        pa.array([1] * len(drawn), pa.timestamp("ns")),
        pa.array(drawn, to_arrow_type(nested)),
    ]
    rows = [bytearray(row) for row in encode_rows(columns, types).to_pylist()]
    for _ in range(data.draw(st.integers(1, 4))):
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.integers(4, len(row) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del rows[0][data.draw(st.integers(0, len(rows[0]) - 1)) :]
    try:
        for column in decode_rows([bytes(row) for row in rows], types):
            column.validate(full=True)
    except (CorruptFile, Unsupported):
        pass


def test_timestamps_beyond_arrow_are_named() -> None:
    """A nanosecond timestamp of the year 9999 is a valid row, but no Arrow value."""
    millis = 253402300799999
    row = damaged([lt.timestamp(9)], [0], 20, struct.pack("<q", millis))
    with pytest.raises(Unsupported, match="field 0"):
        decode_row(row, [lt.timestamp(9)])
    assert decode_row(row, [lt.timestamp(6)])[0].as_py() == dt.datetime(9999, 12, 31, 23, 59, 59, 999000)


def test_wrong_calls_are_named() -> None:
    """Columns that do not match, values that do not fit and rows that are no bytes are told apart from damage."""
    with pytest.raises(InvalidArgument, match="2 columns"):
        encode_rows([pa.array([1]), pa.array([2])], [lt.BIGINT])
    with pytest.raises(InvalidArgument, match="not clear"):
        encode_rows([pa.array([1]), pa.array([2, 3])], [lt.BIGINT, lt.BIGINT])
    with pytest.raises(InvalidArgument, match="not clear"):
        encode_rows([], [])
    with pytest.raises(InvalidArgument, match="1 values"):
        encode_row([1], [lt.INT, lt.INT])
    with pytest.raises(InvalidData, match="INT"):
        encode_row(["text"], [lt.INT])
    with pytest.raises(InvalidData, match="INT"):
        encode_rows([pa.array([1 << 40])], [lt.INT])
    with pytest.raises(InvalidData, match="milliseconds"):
        encode_rows([pa.array([1 << 60], pa.timestamp("s"))], [lt.timestamp(0)])
    with pytest.raises(InvalidArgument, match="not bytes"):
        decode_rows([1], [lt.INT])  # type: ignore[list-item]


def test_zero_rows() -> None:
    """No rows encode to an empty array and decode to empty columns of the right types."""
    types = [*ATOMIC_TYPES, *NESTED_TYPES]
    columns = [pa.array([], to_arrow_type(data_type)) for data_type in types]
    rows = encode_rows(columns, types)
    assert rows.type == pa.binary()
    assert [column.type for column in decode_rows(rows, types)] == [column.type for column in columns]
