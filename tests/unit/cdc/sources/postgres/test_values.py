"""Texts of every type, also the odd ones, become the values that the lake holds, or an error, or null by choice."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cdc.sources.postgres.values.forms import Form, PgType, form_of
from lakebed.cdc.sources.postgres.values.values import Place, bit_strings, hex_strings, parse_values, split_arrays
from lakebed.errors import InvalidData
from lakebed.types.arrow import to_arrow_type

_NAMES = (
    "bool bit varbit int2 int4 int8 float4 float8 numeric bpchar varchar text json jsonb uuid bytea date time "
    "timestamp timestamptz interval"
)
_OIDS = {name: 10 + place for place, name in enumerate(_NAMES.split())}
TYPES = {oid: PgType(oid, name, "b", "X", 0, -1, 0, ",", True) for name, oid in _OIDS.items()}
TYPES |= {100 + oid: PgType(100 + oid, f"_{name}", "b", "A", 0, -1, oid, ",", True) for name, oid in _OIDS.items()}
TYPES[500] = PgType(500, "mood", "e", "E", 0, -1, 0, ",", False)
TYPES[501] = PgType(501, "price", "d", "N", _OIDS["numeric"], ((12 << 16) | 2) + 4, 0, ",", False)
TYPES[502] = PgType(502, "text", "b", "S", 0, -1, 0, ",", False)
TYPES[503] = PgType(503, "pair", "c", "C", 0, -1, 0, ",", False)


def _form(name: str, typmod: int = -1) -> Form:
    form = form_of(TYPES, _OIDS[name], typmod)
    assert form is not None
    return form


def _parse(form: Form, *texts: str | None, keeps_null: bool = True) -> list[Any]:
    place = Place("s.t", "c", keeps_null, lambda row: f"id={row}")
    parsed = parse_values(pa.array(texts, pa.string()), form, place)
    assert parsed.type == to_arrow_type(form.type)
    parsed.validate(full=True)
    if pa.types.is_date(parsed.type):
        return parsed.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(parsed.type):
        return parsed.cast(pa.int64()).to_pylist()
    return parsed.to_pylist()


@pytest.mark.parametrize(
    ("name", "typmod", "expected"),
    [
        ("bool", -1, "BOOLEAN"),
        ("bit", 1, "BOOLEAN"),
        ("bit", 9, "BINARY(2)"),
        ("varbit", 16, "BINARY(2)"),
        ("varbit", -1, "BYTES"),
        ("int2", -1, "SMALLINT"),
        ("int4", -1, "INT"),
        ("int8", -1, "BIGINT"),
        ("float4", -1, "FLOAT"),
        ("float8", -1, "DOUBLE"),
        ("numeric", ((10 << 16) | 3) + 4, "DECIMAL(10, 3)"),
        ("numeric", -1, "DECIMAL(38, 18)"),
        ("numeric", ((40 << 16) | 3) + 4, "STRING"),
        ("numeric", ((5 << 16) | (-2 & 0x7FF)) + 4, "STRING"),
        ("bpchar", 9, "CHAR(5)"),
        ("varchar", 24, "VARCHAR(20)"),
        ("varchar", -1, "STRING"),
        ("uuid", -1, "STRING"),
        ("jsonb", -1, "STRING"),
        ("bytea", -1, "BYTES"),
        ("date", -1, "DATE"),
        ("time", 3, "TIME(3)"),
        ("timestamp", -1, "TIMESTAMP(6)"),
        ("timestamptz", 0, "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    ],
)
def test_types_map_as_documented(name: str, typmod: int, expected: str) -> None:
    """Every type of the table of types, with its modifiers."""
    assert str(_form(name, typmod).type) == expected


def test_domains_enums_and_what_has_no_counterpart() -> None:
    """A domain is what it is made of, an enum is text; types of extensions, composites and intervals have no place."""
    assert str(form_of(TYPES, 501, -1).type) == "DECIMAL(12, 2)"  # type: ignore[union-attr]
    assert str(form_of(TYPES, 500, -1).type) == "STRING"  # type: ignore[union-attr]
    assert str(form_of(TYPES, 100 + _OIDS["int4"], -1).type) == "ARRAY<INT>"  # type: ignore[union-attr]
    for oid in (502, 503, 999, _OIDS["interval"], 100 + _OIDS["interval"]):
        assert form_of(TYPES, oid, -1) is None
    assert str(form_of(TYPES, 503, -1, as_text=True).type) == "STRING"  # type: ignore[union-attr]


def test_plain_values() -> None:
    """Usual texts of each type."""
    assert _parse(_form("bool"), "t", "f", None) == [True, False, None]
    assert _parse(_form("bit", 1), "1", "0") == [True, False]
    assert _parse(_form("int2"), "-32768", "32767") == [-32768, 32767]
    assert _parse(_form("int8"), "-9223372036854775808") == [-(2**63)]
    assert _parse(_form("float8"), "1e-300", "Infinity", "-Infinity", None)[:3] == [1e-300, float("inf"), float("-inf")]
    assert _parse(_form("numeric", ((5 << 16) | 2) + 4), "123.45", "-0.01") == [Decimal("123.45"), Decimal("-0.01")]
    assert _parse(_form("text"), "", None, "NULL") == ["", None, "NULL"]
    assert [str(value) for value in _parse(_form("time"), "23:59:59.999999", "00:00:00")] == [
        "23:59:59.999000",
        "00:00:00",
    ]


def test_dates_outside_the_usual_calendar() -> None:
    """Years before Christ and of five digits are numbers like any other."""
    assert _parse(_form("date"), "1970-01-01", "0001-12-31 BC", "0044-03-15 BC", "12024-02-29", "5874897-12-31") == [
        *(0, -719163, -735160, 3672207, 2145042905),
    ]
    stamps = _parse(_form("timestamp"), "0001-01-01 00:00:00", "0001-12-31 23:59:59.5 BC", "294276-12-31 23:59:59")
    assert stamps == [-62135596800 * 10**6, (-62135596800 - 1) * 10**6 + 500_000, None]
    assert _parse(_form("timestamptz", 0), "12024-01-01 00:00:01+00") == [317273587201]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (_form("timestamp"), "infinity"),
        (_form("timestamptz"), "-infinity"),
        (_form("date"), "infinity"),
        (_form("time"), "24:00:00"),
        (_form("numeric"), "NaN"),
        (_form("numeric"), "Infinity"),
        (_form("numeric"), "1" + 50 * "0"),
        (_form("numeric"), "0.1234567890123456789"),
        (form_of(TYPES, 100 + _OIDS["int4"], -1), "{{1,2},{3,4}}"),
        (form_of(TYPES, 100 + _OIDS["int4"], -1), "[1:1][0:1]={{1,2}}"),
        (form_of(TYPES, 100 + _OIDS["date"], -1), "{infinity}"),
    ],
)
def test_values_that_the_type_does_not_have(form: Form, text: str) -> None:
    """By choice null; otherwise an error with column, value and key of that very row."""
    found = _parse(form, None, text)
    assert found[0] is None
    assert found[1] in (None, [None])
    with pytest.raises(InvalidData, match=r"column `c` of table `s.t` .* key id=1"):
        _parse(form, None, text, keeps_null=False)


_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), _TEXTS)))))
def test_arrays_are_taken_apart(arrays: list[list[str | None] | None]) -> None:
    """Any texts inside arrays, with quotes, commas, braces and backslashes, come back as they were."""

    def spelled(element: str | None) -> str:
        if element is None:
            return "NULL"
        needs_quotes = (
            element == "" or element.upper() == "NULL" or any(sign in element for sign in '{},"\\ \t\n\r\v\f')
        )
        escaped = element.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if needs_quotes else element

    texts = [None if array is None else "{" + ",".join(map(spelled, array)) + "}" for array in arrays]
    form = form_of(TYPES, 100 + _OIDS["text"], -1)
    assert form is not None
    assert _parse(form, *texts) == arrays


@given(st.lists(st.one_of(st.none(), st.binary())))
def test_bytes(values: list[bytes | None]) -> None:
    """Hexadecimal texts of any length, with nulls between them, also of a slice."""
    texts = pa.array([None if value is None else "\\x" + value.hex() for value in [b"skipped", *values]], pa.string())
    assert hex_strings(texts[1:]).to_pylist() == values


@given(st.lists(st.one_of(st.none(), st.text("01", max_size=70))))
def test_bits(values: list[str | None]) -> None:
    """Strings of bits are the number that they write."""
    found = bit_strings(pa.array(values, pa.string()), None).to_pylist()
    assert found == [
        None if text is None else int(text or "0", 2).to_bytes((len(text) + 7) // 8, "big") for text in values
    ]
    fixed = bit_strings(pa.array(values, pa.string()), 9).to_pylist()
    assert fixed == [None if text is None else int(text or "0", 2).to_bytes(9, "big") for text in values]


def test_bounds_of_arrays_are_left_out() -> None:
    """An array that begins at another number has its elements all the same."""
    offsets, elements = split_arrays(pa.array(["[5:6]={7,8}", "{9}"]))
    assert (offsets.tolist(), elements.to_pylist()) == ([0, 2, 3], ["7", "8", "9"])
