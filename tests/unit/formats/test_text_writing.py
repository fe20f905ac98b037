"""CSV, JSON and text files that we write: what is read back is what was written, or the write is refused."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidData, InvalidOption, InvalidSchema
from lakebed.formats import FORMATS, WriteSettings, Written, format_of_file
from lakebed.formats.base64_text import to_base64
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField, parse_type

COMPRESSIONS = {"none": "", "gzip": ".gz", "deflate": ".deflate", "bzip2": ".bz2", "zstd": ".zst"}


def _fields(types: dict[str, str]) -> tuple[DataField, ...]:
    return tuple(DataField(at, name, parse_type(text)) for at, (name, text) in enumerate(types.items()))


def _content(kind: str, rows: pa.Table, fields: tuple[DataField, ...], **more: Any) -> bytes:
    sink = pa.BufferOutputStream()
    writer = FORMATS[kind].open_writer(
        sink, fields, WriteSettings(compression=more.get("compression", "none"), table_options=more.get("options", {}))
    )
    for start in range(0, rows.num_rows, 3):
        writer.write(rows.slice(start, 3))
    assert writer.close().row_count == rows.num_rows
    return bytes(sink.getvalue())


def _read(name: str, content: bytes, fields: tuple[DataField, ...], options: dict[str, str]) -> pa.Table:
    with format_of_file(name).open_reader(pa.BufferReader(content), name, Written(fields, options)) as reader:
        batches = [batch for _, batch in reader.read(fields)]
    return pa.Table.from_batches(batches, to_arrow_schema(fields))


def _line(kind: str, values: list[Any], **options: str) -> str:
    """One column of texts, as it stands in a file."""
    fields = _fields({"s": "STRING"})
    return _content(kind, pa.table([pa.array(values, pa.string())], ["s"]), fields, options=options).decode()


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NASTY_TEXT = st.text(st.sampled_from(",;\"'\\|\t \x01\x1f\ufeff\u00a0\u2028~ab1<>ü😀\x00"), max_size=6)
LINES = st.text(st.sampled_from('\n\r<>ab",\\'), max_size=6)
DATES = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "DECIMAL(38, 10)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda units: Decimal(f"{units}E-10")),
    "DATE": DATES,
    "TIME(0)": st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    "TIMESTAMP(0)": st.datetimes(dt.datetime(1, 1, 1)).map(lambda moment: moment.replace(microsecond=0)),
    "TIMESTAMP(6)": st.datetimes(dt.datetime(1, 1, 1)),
    "BYTES": st.binary(max_size=7),
    "STRING": ANY_TEXT | NASTY_TEXT,
}
NESTED = {
    "ARRAY<STRING>": st.lists(st.none() | VALUES["STRING"] | LINES, max_size=3),
    "MAP<STRING, INT>": st.dictionaries(VALUES["STRING"], st.none() | st.integers(0, 9), max_size=3).map(
        lambda entries: list(entries.items())
    ),
    "MAP<DATE, ARRAY<BYTES>>": st.dictionaries(DATES, st.lists(st.none() | st.binary(max_size=3), max_size=2)).map(
        lambda entries: list(entries.items())
    ),
    "ROW<a INT, b ROW<c STRING>>": st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 9), "b": st.none() | st.fixed_dictionaries({"c": st.none() | LINES})}
    ),
}
CSV_SETTINGS = [
    {"csv.null-literal": "(null)"},
    {"csv.null-literal": "(null)", "csv.include-header": "true", "csv.field-delimiter": ";"},
    {"csv.null-literal": "(null)", "csv.quote-character": "'", "csv.escape-character": "|"},
    {"csv.null-literal": "(null)", "csv.field-delimiter": "-", "csv.quote-character": "1"},
    {"csv.null-literal": "(null)", "csv.field-delimiter": "\t", "csv.line-delimiter": "\r\n"},
    {"csv.null-literal": "(null)", "csv.line-delimiter": "<\n>", "csv.include-header": "true"},
]


@st.composite
def _tables(draw: st.DrawFn, strategies: dict[str, st.SearchStrategy[Any]]) -> tuple[pa.Table, tuple[DataField, ...]]:
    types = draw(st.lists(st.sampled_from(sorted(strategies)), min_size=1, max_size=4))
    fields = _fields({f"c{at}": text for at, text in enumerate(types)})
    rows = draw(st.integers(1, 8))
    schema = to_arrow_schema(fields)
    columns = [
        pa.array(draw(st.lists(st.none() | strategies[text], min_size=rows, max_size=rows)), schema.field(at).type)
        for at, text in enumerate(types)
    ]
    table = pa.table(columns, schema=schema)
    begin = draw(st.integers(0, rows - 1))
    return table.slice(begin), fields


def _same(left: pa.Table, right: pa.Table) -> None:
    # NaN equals nothing: texts of values are compared.
    assert [list(map(str, row.values())) for row in left.to_pylist()] == [
        list(map(str, row.values())) for row in right.to_pylist()
    ]


@settings(max_examples=150, deadline=None)
@given(_tables(VALUES), st.sampled_from(CSV_SETTINGS), st.sampled_from(list(COMPRESSIONS)))
def test_csv_gives_back_what_it_got(
    table: tuple[pa.Table, tuple[DataField, ...]], options: dict[str, str], compression: str
) -> None:
    """Random rows of all types, under all kinds of settings: the same, unless a line end in a text is refused."""
    rows, fields = table
    texts = "".join(
        value or "" for column in rows.columns if column.type == pa.string() for value in column.to_pylist()
    )
    if ("\n" in texts or "\r" in texts) and options.get("csv.line-delimiter") != "<\n>":
        with pytest.raises(InvalidData, match="line end"):
            _content("csv", rows, fields, options=options)
        return
    content = _content("csv", rows, fields, options=options, compression=compression)
    _same(_read("a.csv" + COMPRESSIONS[compression], content, fields, options), rows)


@settings(max_examples=150, deadline=None)
@given(_tables(VALUES | NESTED | {"STRING": VALUES["STRING"] | LINES}), st.sampled_from(["\n", "\r", "\r\n", "<\n>"]))
def test_json_gives_back_what_it_got(table: tuple[pa.Table, tuple[DataField, ...]], line_end: str) -> None:
    """Random rows of all types, nested ones too."""
    rows, fields = table
    options = {"json.line-delimiter": line_end}
    _same(_read("a.json", _content("json", rows, fields, options=options), fields, options), rows)


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY_TEXT | NASTY_TEXT | LINES, min_size=1, max_size=8), st.sampled_from(["\n", "\r", "\r\n", "<\n>"]))
def test_text_gives_back_what_it_got(texts: list[str], line_end: str) -> None:
    """Random texts, unless they have a line end in them."""
    fields, options = _fields({"s": "STRING NOT NULL"}), {"text.line-delimiter": line_end}
    rows = pa.table([pa.array(texts)], schema=to_arrow_schema(fields))
    ends = "\r\n" if line_end != "<\n>" else [line_end]
    if any(end in text for text in texts for end in ends):
        with pytest.raises(InvalidData, match="line"):
            _content("text", rows, fields, options=options)
        return
    content = _content("text", rows, fields, options=options)
    assert _read("a.text", content, _fields({"s": "STRING"}), options).column(0).to_pylist() == texts


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n", "<\n>"])
def test_lines_may_be_cut_anywhere(line_end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that end within a line, or within the end of a line, make no line of their own."""
    fields, options = _fields({"s": "STRING"}), {"text.line-delimiter": line_end}
    texts = ["", "a", "bb", "ccc", "", "", "dddd"] * 3
    content = _content("text", pa.table([pa.array(texts)], ["s"]), fields, options=options)
    for size in range(1, 9):
        monkeypatch.setattr("lakebed.formats.text.stream._BLOCK_BYTES", size)
        assert _read("a.text", content, fields, options).column(0).to_pylist() == texts


@given(st.lists(st.none() | st.binary(max_size=10), max_size=20), st.integers(0, 3))
def test_base64(values: list[bytes | None], begin: int) -> None:
    """All at once is the same as one by one, in slices too."""
    array = pa.array(values, pa.binary())[begin:]
    expected = [None if value is None else base64.b64encode(value).decode() for value in values[begin:]]
    assert to_base64(array).to_pylist() == expected


def test_quotes_only_where_they_are_needed() -> None:
    """What reads as it stands has none; escapes are doubled, quotes escaped, blanks kept from being a row of nulls."""
    assert _line("csv", ["a b", "x,y", 'q"', "b\\", " ", None, "\ufeffx"]) == (
        'a b\n"x,y"\n"q\\""\n"b\\\\"\n" "\n\n"\ufeffx"\n'
    )


def test_json_spells_controls_as_java_does() -> None:
    """Short forms where there are some, capitals where not; nothing else is escaped but quotes and escapes."""
    assert _line("json", ['\b\t\n\x1f\x7f"\\ü/', None]) == ('{"s":"\\b\\t\\n\\u001F\x7f\\"\\\\ü/"}\n{"s":null}\n')


@pytest.mark.parametrize(
    ("kind", "values", "options", "words"),
    [
        ("csv", ["a", ""], {}, "stands for null"),
        ("csv", ["NULL"], {"csv.null-literal": "NULL"}, "stands for null"),
        ("csv", ["a\nb"], {}, "line end"),
        ("csv", ["a\rb"], {}, "line end"),
        ("csv", ["a||b"], {"csv.line-delimiter": "|#"}, None),
        ("csv", ["a|#b"], {"csv.line-delimiter": "|#"}, "ends a line"),
        ("json", ["a"], {"json.line-delimiter": "a"}, "ends a line"),
        ("text", ["a\nb"], {}, "line end"),
        ("text", [None], {}, "null"),
        ("text", ["a#"], {"text.line-delimiter": "#"}, "ends a line"),
    ],
)
def test_what_would_come_back_as_something_else(
    kind: str, values: list[Any], options: dict[str, str], words: str | None
) -> None:
    """Texts that the reader of such files takes for nulls, or for two lines, are refused with a hint."""
    if words is None:
        assert _line(kind, values, **options)
        return
    with pytest.raises(InvalidData, match=words) as caught:
        _line(kind, values, **options)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "value"),
    [("DATE", -800_000), ("DATE", 3_000_000), ("TIMESTAMP(3)", 10**15), ("TIMESTAMP(1)", 1234)],
)
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_moments_without_a_text(kind: str, text: str, value: int) -> None:
    """Years that have not four digits, and digits that the type cuts off when it is read."""
    counts = pa.array([None, value], pa.int32() if text == "DATE" else pa.int64())
    rows = pa.table({"c": counts.cast(pa.date32() if text == "DATE" else pa.timestamp("ms"))})
    with pytest.raises(InvalidData, match="column `c`"):
        _content(kind, rows, _fields({"c": text}))


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("csv", {"c": "ARRAY<INT>"}),
        ("csv", {"c": "TIMESTAMP_LTZ(3)"}),
        ("csv", {"c": "VARIANT"}),
        ("json", {"c": "ARRAY<TIMESTAMP_LTZ(3)>"}),
        ("json", {"c": "MAP<BYTES, INT>"}),
        ("json", {"c": "MULTISET<INT>"}),
        ("text", {"a": "STRING", "b": "STRING"}),
        ("text", {"a": "INT"}),
    ],
)
def test_types_without_texts(kind: str, types: dict[str, str]) -> None:
    """A column that such files can not hold is named."""
    with pytest.raises(InvalidSchema, match="`") as caught:
        FORMATS[kind].check(_fields(types))
    assert caught.value.hint


@pytest.mark.parametrize(("kind", "compression"), [("text", "gzip"), ("csv", "snappy"), ("json", "lz4")])
def test_compressions_that_nobody_could_undo(kind: str, compression: str) -> None:
    """Names of text files do not tell one; those that Hadoop cuts into blocks are not written."""
    with pytest.raises(InvalidOption, match=compression):
        FORMATS[kind].open_writer(
            pa.BufferOutputStream(), _fields({"s": "STRING"}), WriteSettings(compression=compression)
        )
