"""CSV, JSON and text files of other engines: every value as it was written, and nothing made up of what is damaged."""

from __future__ import annotations

import bz2
import gzip
import zlib
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import CorruptFile, Unsupported
from lakebed.formats import Written, format_of_file
from lakebed.types.logical import DataField, parse_type


def _fields(*types: str) -> tuple[DataField, ...]:
    return tuple(DataField(at, f"c{at}", parse_type(text)) for at, text in enumerate(types))


def _rows(name: str, content: bytes, types: tuple[str, ...], options: dict[str, str] | None = None) -> list[Any]:
    fields = _fields(*types)
    with format_of_file(name).open_reader(pa.BufferReader(content), name, Written(fields, options or {})) as reader:
        batches = [batch for _, batch in reader.read(fields)]
    for batch in batches:
        batch.validate(full=True)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


ATOMS = ("BOOLEAN", "TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(20, 3)", "DATE", "TIME(3)", "TIMESTAMP(0)")
ATOMS = (*ATOMS, "TIMESTAMP(6)", "BYTES", "CHAR(5)")
SPELLED = (
    (
        "true",
        "-128",
        "-9223372036854775808",
        "3.4028235E38",
        "4.9E-324",
        "-12345678901234567.890",
        "0001-01-01",
        "01:02:03.4",
        "1969-12-31 23:59:59",
        "9999-12-31 23:59:59.999999",
        "AP8=",
        "ab",
    ),
    (
        "FALSE",
        "127",
        "9223372036854775807",
        "-Infinity",
        "1.0E10",
        "0.001",
        "9999-12-31",
        "23:59:59.999",
        "2024-02-29 00:00:00",
        "2020-01-02 03:04:05.120000",
        "",
        "é😀",
    ),
)
VALUES = [
    (
        True,
        -128,
        -(2**63),
        3.4028234663852886e38,
        5e-324,
        Decimal("-12345678901234567.890"),
        date(1, 1, 1),
        time(1, 2, 3, 400000),
        datetime(1969, 12, 31, 23, 59, 59),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        b"\x00\xff",
        "ab",
    ),
    (
        False,
        127,
        2**63 - 1,
        float("-inf"),
        10000000000.0,
        Decimal("0.001"),
        date(9999, 12, 31),
        time(23, 59, 59, 999000),
        datetime(2024, 2, 29),
        datetime(2020, 1, 2, 3, 4, 5, 120000),
        b"",
        "é😀",
    ),
]


def test_every_type_as_csv_spells_it() -> None:
    """Limits of all types come out exactly; the null text stands for null in each of them."""
    lines = [*(",".join(row) for row in SPELLED), ",".join(["N"] * len(ATOMS))]
    options = {"csv.null-literal": "N"}
    assert _rows("a.csv", "\n".join(lines).encode(), ATOMS, options) == [*VALUES, (None,) * len(ATOMS)]


def test_every_type_as_json_spells_it() -> None:
    """The same as JSON texts; a column that a row lacks is null."""
    lines = ["{" + ",".join(f'"c{at}":"{text}"' for at, text in enumerate(row)) + "}" for row in SPELLED]
    assert _rows("a.json", "\n".join([*lines, "{}"]).encode(), ATOMS) == [*VALUES, (None,) * len(ATOMS)]


def test_nanoseconds() -> None:
    """All nine digits of a time are read."""
    fields = _fields("TIMESTAMP(9)")
    content = pa.BufferReader(b"2020-01-02 03:04:05.123456789\n")
    with format_of_file("a.csv").open_reader(content, "a.csv", Written(fields, {})) as reader:
        ((_, rows),) = reader.read(fields)
    assert rows.column(0).cast(pa.int64()).to_pylist() == [1577934245_123456789]


def test_quotes_escapes_and_line_ends_in_csv() -> None:
    """Quoted values hold delimiters, line ends, quotes and escapes; lines may end as on Windows."""
    content = b'1,"a,b\r\nc"\r\n2,"say \\"hi\\" \\\\ ""you"""\r\n3,\r\n'
    assert _rows("a.csv", content, ("INT", "STRING")) == [(1, "a,b\r\nc"), (2, 'say "hi" \\ "you"'), (3, None)]


def test_settings_of_csv_under_all_their_names() -> None:
    """Delimiter, quote, escape, null text and header are those of the table, under either key of each."""
    content = b"id;name\n1;'a;^'b'\nNULL;NULL\n"
    wanted = [(1, "a;'b"), (None, None)]
    long = {"csv.field-delimiter": ";", "csv.quote-character": "'", "csv.escape-character": "^"}
    long |= {"csv.null-literal": "NULL", "csv.include-header": "true"}
    short = {"delimiter": ";", "quote": "'", "escape": "^", "nullvalue": "NULL", "header": "true"}
    assert _rows("a.csv", content, ("INT", "STRING"), long) == wanted
    assert _rows("a.csv", content, ("INT", "STRING"), short) == wanted


def test_nested_values_in_json() -> None:
    """Arrays, maps and rows within each other, null at every depth, and null apart from empty."""
    types = ("ARRAY<INT>", "MAP<STRING, ARRAY<DATE>>", "ROW<x INT, y ROW<z STRING>>", "MAP<INT, STRING>")
    content = (
        b'{"c0":["1",null],"c1":{"k":["2020-01-02",null],"l":null},"c2":{"x":"1","y":{"z":"q"}},"c3":{"7":"s"}}\n'
        b'{"c0":[],"c1":{},"c2":{"x":null,"y":null},"c3":{"8":null}}\n'
        b'{"c0":null,"c1":null,"c2":null,"c3":null}\n'
    )
    assert _rows("a.json", content, types) == [
        ([1, None], [("k", [date(2020, 1, 2), None]), ("l", None)], {"x": 1, "y": {"z": "q"}}, [(7, "s")]),
        ([], [], {"x": None, "y": None}, [(8, None)]),
        (None, None, None, None),
    ]


def test_texts_in_json() -> None:
    """Escapes, characters beyond 16 bits, numbers without quotes, and a byte-order mark."""
    content = '\ufeff{"c0":"a\\n\\"\\\\\\u00e9\\ud83d\\ude00","c1":1.50}\r\n{"c0":"","c1":2}\r\n'.encode()
    assert _rows("a.json", content, ("STRING", "DECIMAL(5, 2)")) == [
        ('a\n"\\é😀', Decimal("1.50")),
        ("", Decimal("2.00")),
    ]


def test_lines_of_text() -> None:
    """A line is a row, an empty one too; the last may lack its end."""
    assert _rows("a.text", b"a,b\r\n\nc", ("STRING",)) == [("a,b",), ("",), ("c",)]
    assert _rows("a.text", b"\n", ("STRING",)) == [("",)]


@pytest.mark.parametrize("name", ["csv", "json"])
def test_compressions_by_extension(name: str) -> None:
    """A file is unpacked by the end of its name, and one that is cut, or has a flipped bit, is refused."""
    content = {"csv": b"1,a\n", "json": b'{"c0":"1","c1":"a"}\n'}[name] * 1000
    for extension, packed in {
        "gz": gzip.compress(content),
        "bz2": bz2.compress(content),
        "deflate": zlib.compress(content),
        "zst": pa.compress(content, "zstd", asbytes=True),
    }.items():
        assert _rows(f"a.{name}.{extension}", packed, ("INT", "STRING")) == [(1, "a")] * 1000
        with pytest.raises(CorruptFile):
            _rows(f"a.{name}.{extension}", packed[:-5], ("INT", "STRING"))
    flipped = bytearray(gzip.compress(content))
    flipped[-6] ^= 1
    with pytest.raises(CorruptFile):
        _rows(f"a.{name}.gz", bytes(flipped), ("INT", "STRING"))


@pytest.mark.parametrize(
    ("name", "content", "types"),
    [
        ("a.csv", b"1\n", ("INT", "STRING")),
        ("a.csv", b"1,2,3\n", ("INT", "STRING")),
        ("a.csv", b"1.5\n", ("INT",)),
        ("a.csv", b"128\n", ("TINYINT",)),
        ("a.csv", b"yes\n", ("BOOLEAN",)),
        ("a.csv", b"A\n", ("BYTES",)),
        ("a.csv", b"99999.99\n", ("DECIMAL(4, 2)",)),
        ("a.csv", b"2020-13-01\n", ("DATE",)),
        ("a.csv", b"\xff\n", ("STRING",)),
        ("a.json", b'{"c0":"1"\n', ("INT",)),
        ("a.json", b"null\n", ("INT",)),
        ("a.json", b'{"c0":{}}\n', ("INT",)),
        ("a.json", b'{"c0":"1"}\n', ("ARRAY<INT>",)),
        ("a.json", b'{"c0":NaN}\n', ("DOUBLE",)),
        ("a.json", b'{"c0":"\xff"}\n', ("STRING",)),
        ("a.text", b"\x1f\x8b\x08", ("STRING",)),
    ],
)
def test_what_makes_no_sense_is_damage(name: str, content: bytes, types: tuple[str, ...]) -> None:
    """No value is made up for a text that spells none."""
    with pytest.raises(CorruptFile, match=name):
        _rows(name, content, types)


@pytest.mark.parametrize(
    ("name", "types", "options", "named"),
    [
        ("a.csv", ("INT",), {"csv.mode": "DROPMALFORMED"}, "csv.mode"),
        ("a.csv", ("INT",), {"csv.field-delimiter": "||"}, "csv.field-delimiter"),
        ("a.csv", ("INT",), {"csv.line-delimiter": "a,"}, "csv.line-delimiter"),
        ("a.json", ("INT",), {"json.line-delimiter": "aba"}, "json.line-delimiter"),
        ("a.csv", ("ARRAY<INT>",), {}, "c0"),
        ("a.csv", ("TIMESTAMP(3) WITH LOCAL TIME ZONE",), {}, "time zone"),
        ("a.json", ("ARRAY<TIMESTAMP(3) WITH LOCAL TIME ZONE>",), {}, "time zone"),
        ("a.json", ("MAP<BYTES, INT>",), {}, "keys"),
        ("a.text", ("STRING", "INT"), {}, "2 columns"),
        ("a.csv.snappy", ("INT",), {}, "snappy"),
        ("a.json.lz4", ("INT",), {}, "lz4"),
    ],
)
def test_what_can_not_be_read_is_named(name: str, types: tuple[str, ...], options: dict[str, str], named: str) -> None:
    """Spellings, types and compressions that are not known for certain are refused."""
    with pytest.raises(Unsupported, match=named):
        _rows(name, b"1\n", types, options)


def test_long_files_come_in_batches() -> None:
    """Positions count on from block to block, and lines that cross the end of a block are whole."""
    fields = _fields("INT", "STRING")
    lines = b"".join(b'{"c0":"%d","c1":"%s"}\n' % (at, b"x" * 3000) for at in range(3000))
    with format_of_file("a.json").open_reader(pa.BufferReader(lines), "a.json", Written(fields, {})) as reader:
        parts = list(reader.read(fields[:1], batch_rows=1000))
        assert reader.row_count == 3000
    assert [position for position, _ in parts][:2] == [0, 1000]
    assert pa.Table.from_batches([rows for _, rows in parts]).column(0).to_pylist() == list(range(3000))
