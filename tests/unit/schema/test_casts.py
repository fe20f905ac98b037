import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema
from lakebed.schema.casts import cast_array, default_scalar, is_castable
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import INT, STRING, DataField, parse_type

UTC = dt.UTC

# Rows: from. Columns: to. Y implicit, e explicit, - none. As the format describes it; texts of limited length apart.
MATRIX = """
                 BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL(10,2) STRING CHAR(9) BYTES BINARY(3) DATE TIME(3) TIMESTAMP(6) TIMESTAMP_LTZ(6)
BOOLEAN             Y       e       e      e    e      e     e        e           e      e       -      -       -     -         -             -
TINYINT             e       Y       Y      Y    Y      Y     Y        Y           e      e       -      -       -     -         -             -
SMALLINT            e       e       Y      Y    Y      Y     Y        Y           e      e       -      -       -     -         -             -
INT                 e       e       e      Y    Y      Y     Y        Y           e      e       -      -       -     -         e             e
BIGINT              e       e       e      e    Y      Y     Y        Y           e      e       -      -       -     -         e             e
FLOAT               -       e       e      e    e      Y     Y        Y           e      e       -      -       -     -         -             -
DOUBLE              -       e       e      e    e      e     Y        Y           e      e       -      -       -     -         -             -
DECIMAL(9,1)        -       e       e      e    e      Y     Y        Y           e      e       -      -       -     -         -             -
VARCHAR(7)          e       e       e      e    e      e     e        e           Y      e       e      e       e     e         e             e
CHAR(7)             e       e       e      e    e      e     e        e           Y      Y       e      e       e     e         e             e
BINARY(2)           -       -       -      -    -      -     -        -           e      e       Y      Y       -     -         -             -
VARBINARY(2)        -       -       -      -    -      -     -        -           e      e       Y      e       -     -         -             -
DATE                -       -       -      -    -      -     -        -           e      -       -      -       Y     -         e             e
TIME(3)             -       -       -      -    -      -     -        -           e      -       -      -       -     Y         e             e
TIMESTAMP(3)        -       -       -      e    e      -     -        -           e      -       -      -       Y     Y         Y             Y
TIMESTAMP_LTZ(3)    -       -       -      e    e      -     -        -           e      -       -      -       e     e         Y             Y
"""  # noqa: E501
_LINES = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = [(row[0], to, cell) for row in _LINES[1:] for to, cell in zip(_LINES[0], row[1:], strict=True)]


def cast(values, source: str, target: str) -> list:
    """Cast Python values and return Python values, after checking the result's Arrow type."""
    old, new = parse_type(source), parse_type(target)
    result = cast_array(pa.array(values, to_arrow_type(old)), old, new)
    result.validate(full=True)
    assert result.type == to_arrow_type(new)
    return result.to_pylist()


@pytest.mark.parametrize(("source", "target", "cell"), CELLS)
def test_every_cell_of_the_matrix(source, target, cell):
    """Whether a cast exists, and whether implicitly, is what the matrix says; what exists runs, also on nothing."""
    old, new = parse_type(source), parse_type(target)
    assert is_castable(old, new, explicit=True) == (cell in "Ye")
    assert is_castable(old, new, explicit=False) == (cell == "Y")
    if cell == "-":
        with pytest.raises(InvalidArgument, match="can not be cast"):
            cast([], source, target)
    else:
        assert cast([], source, target) == []
        assert cast([None, None], source, target) == [None, None]


def test_nullability_does_not_decide():
    """A type and its NOT NULL form cast into each other without any work."""
    values = pa.array([1, 2], pa.int32())
    assert cast_array(values, parse_type("INT NOT NULL"), INT) is values
    assert is_castable(parse_type("INT"), parse_type("INT NOT NULL"), explicit=False)


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("BOOLEAN", "TINYINT", [True, False, None], [1, 0, None]),
        ("BOOLEAN", "DOUBLE", [True, False, None], [1.0, 0.0, None]),
        ("BOOLEAN", "DECIMAL(3, 1)", [True, None], [Decimal("1.0"), None]),
        ("BOOLEAN", "DECIMAL(2, 2)", [True, False], [None, Decimal("0.00")]),
        ("BOOLEAN", "STRING", [True, False, None], ["true", "false", None]),
        ("BOOLEAN", "VARCHAR(2)", [True, False], ["tr", "fa"]),
        ("BIGINT", "TINYINT", [300, -129, 127, None], [44, 127, 127, None]),
        ("BIGINT", "INT", [2**31, -(2**31) - 1], [-(2**31), 2**31 - 1]),
        ("TINYINT", "BIGINT", [-128, None], [-128, None]),
        ("BIGINT", "FLOAT", [16777217, 2**62], [16777216.0, float(2**62)]),
        ("BIGINT", "DOUBLE", [2**53 + 1], [float(2**53)]),
        ("INT", "BOOLEAN", [0, 2, -1, None], [False, True, True, None]),
        ("INT", "DECIMAL(5, 2)", [999, 1000, -999, None], [Decimal("999.00"), None, Decimal("-999.00"), None]),
        ("BIGINT", "STRING", [-5, None], ["-5", None]),
        ("INT", "CHAR(4)", [12345, 7], ["1234", "7   "]),
        ("INT", "TIMESTAMP(3)", [-1, None], [dt.datetime(1969, 12, 31, 23, 59, 59), None]),
        ("BIGINT", "TIMESTAMP_LTZ(6)", [86400], [dt.datetime(1970, 1, 2, tzinfo=UTC)]),
        ("DOUBLE", "INT", [1.9, -1.9, 3e9, -3e9, float("nan"), None], [1, -1, 2**31 - 1, -(2**31), 0, None]),
        ("DOUBLE", "BIGINT", [1e30, -1e30, -0.5], [2**63 - 1, -(2**63), 0]),
        ("DOUBLE", "TINYINT", [300.7, 3e9, -1.5], [44, -1, -1]),
        ("FLOAT", "SMALLINT", [70000.0, None], [4464, None]),
        ("DOUBLE", "FLOAT", [1e300, 0.1], [float("inf"), float(np.float32(0.1))]),
        ("FLOAT", "DOUBLE", [0.1], [0.10000000149011612]),
        ("DOUBLE", "DECIMAL(5, 2)", [1.005, -1.005, 999.995, 999.994], ["1.01", "-1.01", None, "999.99"]),
        ("DOUBLE", "DECIMAL(38, 0)", [1e37, 1e38, 0.5], ["10000000000000000000000000000000000000", None, "1"]),
        ("FLOAT", "DECIMAL(20, 18)", [0.1], ["0.100000001490116120"]),
        ("DECIMAL(6, 3)", "DECIMAL(5, 2)", ["12.345", "-12.345", "999.995"], ["12.35", "-12.35", None]),
        ("DECIMAL(6, 3)", "DECIMAL(10, 5)", ["12.345", None], ["12.34500", None]),
        ("DECIMAL(38, 0)", "DECIMAL(38, 38)", ["0", "1"], ["0E-38", None]),
        ("DECIMAL(6, 3)", "INT", ["12.999", "-12.999", None], [12, -12, None]),
        ("DECIMAL(6, 1)", "TINYINT", ["300.5"], [44]),
        ("DECIMAL(38, 2)", "BIGINT", ["99999999999999999999.00"], [7766279631452241919]),
        ("DECIMAL(6, 3)", "DOUBLE", ["12.345", "0.1", None], [12.345, 0.1, None]),
        ("DECIMAL(38, 20)", "DOUBLE", ["0.1", "-123456789012345678.9"], [0.1, -123456789012345678.9]),
        ("DECIMAL(6, 3)", "FLOAT", ["0.1"], [float(np.float32(0.1))]),
        ("DECIMAL(6, 2)", "STRING", ["12.50", "0.00", None], ["12.50", "0.00", None]),
        ("DECIMAL(38, 20)", "STRING", ["0.00000000000000000001", "-7"],
         ["0.00000000000000000001", "-7.00000000000000000000"]),
    ],
)  # fmt: skip
def test_numbers(source, target, values, expected):
    """Numbers wrap, cut, stop and round as in Java."""

    def decimals(items, type_text):
        return [Decimal(v) if isinstance(v, str) else v for v in items] if "DECIMAL" in type_text else items

    assert cast(decimals(values, source), source, target) == decimals(expected, target)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"), (0.0, "0.0"), (-0.0, "-0.0"), (1e10, "1.0E10"), (1e7, "1.0E7"), (9999999.0, "9999999.0"),
        (12345678.9, "1.23456789E7"), (0.001, "0.001"), (0.00099, "9.9E-4"), (1e-5, "1.0E-5"), (123.456, "123.456"),
        (100.0, "100.0"), (float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (5e-324, "4.9E-324"), (-2.5e-7, "-2.5E-7"),
    ],
)  # fmt: skip
def test_doubles_are_spelled_like_in_java(value, text):
    """The text of a double is Java's: a point always, an exponent outside 0.001 to 10 million."""
    assert cast([value, None, value], "DOUBLE", "STRING") == [text, None, text]


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1e-45, "1.4E-45"), (3.4e38, "3.4E38"), (16777216.0, "1.6777216E7"), (1.5, "1.5")]
)
def test_floats_have_their_own_digits(value, text):
    """A float is spelled with the digits a float needs, not those of the double next to it."""
    assert cast([value], "FLOAT", "STRING") == [text]


@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        ("BOOLEAN", ["t", "TRUE", "y", "Yes", "1", None], [True] * 5 + [None]),
        ("BOOLEAN", ["F", "false", "n", "NO", "0", None], [False] * 5 + [None]),
        ("BIGINT", ["9223372036854775807", "-9223372036854775808", "+7", "-007", "12.9", ".5", "-.5", "000"],
         [2**63 - 1, -(2**63), 7, -7, 12, 0, 0, 0]),
        ("TINYINT", ["-128", "127", None], [-128, 127, None]),
        ("DOUBLE", ["1.5", " 2 ", "1e3", "1.5f", "2D", "-Infinity", "1e400", "+3", None],
         [1.5, 2.0, 1000.0, 1.5, 2.0, float("-inf"), float("inf"), 3.0, None]),
        ("FLOAT", ["0.1", "1e39"], [float(np.float32(0.1)), float("inf")]),
        ("DECIMAL(5, 2)", ["1.005", "-1.005", "1e2", "1e3", "1e999999", "1e-999999", ".5", None],
         [Decimal("1.01"), Decimal("-1.01"), Decimal("100.00"), None, None, Decimal("0.00"), Decimal("0.50"), None]),
        ("DATE", ["2024-05-14", "19857", "2024-5-1 09:30:00", "2024-5", "0001-01-01", None],
         [dt.date(2024, 5, 14)] * 2 + [dt.date(2024, 5, 1)] * 2 + [dt.date(1, 1, 1), None]),
        ("TIME(3)", ["01:02:03.004", "3723004", "1:2", "01:02:03.0045", "01:02:03+01:00", None],
         [dt.time(1, 2, 3, 4000)] * 2 + [dt.time(1, 2), dt.time(1, 2, 3, 5000), dt.time(2, 2, 3), None]),
        ("TIMESTAMP(3)", ["2024-01-02 03:04:05.678912", "2024-1-2T03:04", "2024-02-31", "1500", None],
         [dt.datetime(2024, 1, 2, 3, 4, 5, 678000), dt.datetime(2024, 1, 2, 3, 4), dt.datetime(2024, 2, 29),
          dt.datetime(1970, 1, 1, 0, 0, 1, 500000), None]),
        ("TIMESTAMP(0)", ["2024-01-02 03:04:05.9", "1969-12-31 23:59:59.9"],
         [dt.datetime(2024, 1, 2, 3, 4, 5), dt.datetime(1969, 12, 31, 23, 59, 59)]),
        ("TIMESTAMP_LTZ(6)", ["2024-01-02 03:04:05.678912"], [dt.datetime(2024, 1, 2, 3, 4, 5, 678912, UTC)]),
        ("BYTES", ["ä", None], [b"\xc3\xa4", None]),
        ("BINARY(3)", ["ab", "abcd"], [b"ab\0", b"abc"]),
        ("CHAR(3)", ["ä", "😀xyz", "abc", None], ["ä  ", "😀xy", "abc", None]),
        ("VARCHAR(3)", ["ä", "😀xyz", None], ["ä", "😀xy", None]),
    ],
)  # fmt: skip
def test_texts_are_read_like_in_java(target, values, expected):
    """Texts that Java's casts read mean the same here."""
    assert cast(values, "STRING", target) == expected


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("BOOLEAN", "maybe"), ("BOOLEAN", " true"), ("BOOLEAN", ""),
        ("INT", ""), ("INT", "+"), ("INT", "1e3"), ("INT", " 1"), ("INT", "2147483648"), ("INT", "1.x"), ("INT", "١"),
        ("BIGINT", "9223372036854775808"), ("BIGINT", "-9223372036854775809"), ("BIGINT", "1" * 30),
        ("TINYINT", "128"), ("DOUBLE", "1,5"), ("DOUBLE", ""), ("DOUBLE", "inf"), ("DOUBLE", "0x1p3"),
        ("DECIMAL(5, 2)", " 1"), ("DECIMAL(5, 2)", "1_0"), ("DECIMAL(5, 2)", "NaN"), ("DECIMAL(5, 2)", ""),
        ("DATE", "2024-02-30"), ("DATE", "2024-13-01"), ("DATE", "tomorrow"), ("DATE", "10000-01-01"), ("DATE", ""),
        ("DATE", "9999999999"),
        ("TIME(0)", "25:00:00"), ("TIME(0)", "noon"), ("TIME(0)", "86400000"),
        ("TIMESTAMP(3)", "2024-01-02 25:00:00"), ("TIMESTAMP(3)", "yesterday"), ("TIMESTAMP(3)", "2024-01-02 03:04"),
        ("TIMESTAMP(9)", "2500-01-01"), ("TIMESTAMP_LTZ(3)", "1500"),
    ],
)  # fmt: skip
def test_text_that_can_not_be_read_is_shown(target, text):
    """A text that is no value of the type raises an error that shows text and type, instead of a silent NULL."""
    with pytest.raises(InvalidData, match="can not be read") as caught:
        cast([None, text], "STRING", target)
    assert repr(text) in caught.value.message
    assert str(parse_type(target)) in caught.value.message


def test_not_a_number_has_no_decimal():
    """NaN and infinities raise on the way to a decimal, as in Java."""
    for value in (float("nan"), float("inf")):
        with pytest.raises(InvalidData, match=str(value)):
            cast([1.0, value], "DOUBLE", "DECIMAL(5, 2)")


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("DATE", "STRING", [dt.date(2024, 5, 14), dt.date(1, 1, 1), None], ["2024-05-14", "0001-01-01", None]),
        ("DATE", "TIMESTAMP(3)", [dt.date(2024, 5, 14), None], [dt.datetime(2024, 5, 14), None]),
        ("DATE", "TIMESTAMP_LTZ(0)", [dt.date(1969, 12, 31)], [dt.datetime(1969, 12, 31, tzinfo=UTC)]),
        ("TIME(3)", "STRING", [3723004, 3600000, 120, None], ["01:02:03.004", "01:00:00.0", "00:00:00.12", None]),
        ("TIME(0)", "STRING", [3723004], ["01:02:03"]),
        ("TIME(1)", "STRING", [3723054], ["01:02:03.0"]),
        ("TIME(3)", "TIMESTAMP(6)", [3723004, None], [dt.datetime(1970, 1, 1, 1, 2, 3, 4000), None]),
        ("TIME(3)", "TIMESTAMP(0)", [3723004], [dt.datetime(1970, 1, 1, 1, 2, 3)]),
        ("TIMESTAMP(3)", "BIGINT", [-1, -1500, 1500, None], [0, -1, 1, None]),
        ("TIMESTAMP(0)", "INT", [2**31, -5], [-(2**31), -5]),
        ("TIMESTAMP(6)", "BIGINT", [-1, -1_000_001], [0, -1]),
        ("TIMESTAMP(3)", "DATE", [-1, 0, 86400000], [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1970, 1, 2)]),
        ("TIMESTAMP(6)", "TIME(3)", [-1, 1_500_999], [dt.time(23, 59, 59, 999000), dt.time(0, 0, 1, 500000)]),
        ("TIMESTAMP(0)", "TIME(3)", [86401, -1], [dt.time(0, 0, 1), dt.time(23, 59, 59)]),
        ("TIMESTAMP(3)", "STRING", [0, 1500, None], ["1970-01-01 00:00:00.000", "1970-01-01 00:00:01.500", None]),
        ("TIMESTAMP(0)", "STRING", [0], ["1970-01-01 00:00:00"]),
        ("TIMESTAMP(4)", "STRING", [1_500_000, 1], ["1970-01-01 00:00:01.5000", "1970-01-01 00:00:00.000001"]),
        ("TIMESTAMP_LTZ(9)", "STRING", [5], ["1970-01-01 00:00:00.000000005"]),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", [-1, 1_999_999], [dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
                                                           dt.datetime(1970, 1, 1, 0, 0, 1, 999000)]),
        ("TIMESTAMP(3)", "TIMESTAMP(0)", [-1, -1500, 1999], [dt.datetime(1970, 1, 1),
                                                             dt.datetime(1969, 12, 31, 23, 59, 59),
                                                             dt.datetime(1970, 1, 1, 0, 0, 1)]),
        ("TIMESTAMP(3)", "TIMESTAMP(1)", [1999], [dt.datetime(1970, 1, 1, 0, 0, 1, 900000)]),
        ("TIMESTAMP(6)", "TIMESTAMP(5)", [1_234_567], [dt.datetime(1970, 1, 1, 0, 0, 1, 234560)]),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", [1999, None], [dt.datetime(1970, 1, 1, 0, 0, 1, 999000, UTC), None]),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6)", [1], [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        ("TIMESTAMP_LTZ(3)", "DATE", [-1], [dt.date(1969, 12, 31)]),
    ],
)  # fmt: skip
def test_dates_and_times(source, target, values, expected):
    """Points in time convert in UTC, losing digits by cutting."""
    assert cast(values, source, target) == expected


def test_times_beyond_nanoseconds_are_an_error():
    """A value outside the reach of nanoseconds raises instead of wrapping."""
    for source, value in (("BIGINT", 10**12), ("DATE", dt.date(2500, 1, 1)), ("TIMESTAMP(3)", 10**14)):
        with pytest.raises(InvalidData, match=r"TIMESTAMP\(9\)"):
            cast([value], source, "TIMESTAMP(9)")


@pytest.mark.parametrize(
    ("source", "values", "expected"),
    [
        ("ARRAY<INT>", [[1, None, 3], [], None], ["[1, null, 3]", "[]", None]),
        ("ARRAY<ARRAY<DOUBLE>>", [[[1.0], None]], ["[[1.0], null]"]),
        ("MAP<STRING, DOUBLE>", [[("a", 1.0), ("b", None)], [], None], ["{a -> 1.0, b -> null}", "{}", None]),
        ("ROW<a INT, b STRING>", [{"a": 1, "b": "x"}, {"a": None, "b": None}, None], ["{1, x}", "{null, null}", None]),
        ("ROW<d DATE>", [{"d": dt.date(2024, 5, 14)}], ["{2024-05-14}"]),
    ],
)
def test_nested_values_as_text(source, values, expected):
    """Nested values are spelled with brackets, arrows and `null`, also when the array is a slice."""
    assert cast(values, source, "STRING") == expected
    old = parse_type(source)
    padded = pa.array([values[0], *values], to_arrow_type(old))
    assert cast_array(padded.slice(1), old, STRING).to_pylist() == expected


def test_nested_casts_that_do_not_exist():
    """Nested types turn into text only, and only when all their parts can."""
    assert is_castable(parse_type("ARRAY<INT>"), parse_type("VARCHAR(5)"), explicit=True)
    assert cast([[1, 2, 3]], "ARRAY<INT>", "VARCHAR(5)") == ["[1, 2"]
    assert not is_castable(parse_type("ARRAY<INT>"), STRING, explicit=False)
    for source, target in [("ARRAY<INT>", "ARRAY<BIGINT>"), ("ARRAY<VARIANT>", "STRING"), ("MULTISET<INT>", "STRING")]:
        assert not is_castable(parse_type(source), parse_type(target), explicit=True)
    assert not is_castable(STRING, parse_type("ARRAY<INT>"), explicit=True)
    assert not is_castable(parse_type("BLOB"), parse_type("BYTES"), explicit=True)


def test_bytes():
    """Bytes are cut, filled with zeros, and read as UTF-8 with replacement of what is none."""
    assert cast([b"abcd", b"a", None], "BYTES", "BINARY(2)") == [b"ab", b"a\0", None]
    assert cast([b"abcd", b"a"], "BYTES", "VARBINARY(2)") == [b"ab", b"a"]
    assert cast(["ä".encode(), None], "BYTES", "STRING") == ["ä", None]
    assert cast([b"\xff\xfe", b"ab"], "BYTES", "VARCHAR(1)") == ["�", "a"]


def test_default_values():
    """A DEFAULT is the text as the column's type, quotes taken off; without one it is null."""

    def default(type_text, text):
        return default_scalar(DataField(0, "c", parse_type(type_text), default_value=text)).as_py()

    assert default("INT", "7") == 7
    assert default("STRING", "'it''s'") == "it''s"
    assert default("STRING", "'") == "'"
    assert default("DATE", "'2024-05-14'") == dt.date(2024, 5, 14)
    assert default("INT", None) is None
    assert default("ARRAY<INT>", "[1]") == [1]
    with pytest.raises(InvalidSchema, match="`c`"):
        default("VARIANT", "1")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_java_text_of_a_double_reads_back(values):
    """The text of any double, read again, is that double."""
    texts = cast(values, "DOUBLE", "STRING")
    assert all("." in text for text in texts)
    assert cast(texts, "STRING", "DOUBLE") == values


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e40, 1e40) | st.floats(-100, 100)), st.integers(1, 38), st.data())
def test_double_to_decimal_equals_exact_arithmetic(values, precision, data):
    """Vectorised rounding of doubles agrees with decimal arithmetic on their shortest text, value by value."""
    scale = data.draw(st.integers(0, precision))
    target = f"DECIMAL({precision}, {scale})"
    expected = cast([repr(value) for value in values], "STRING", target)
    assert cast(values, "DOUBLE", target) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.decimals(-(10**20), 10**20, places=6)), st.integers(1, 38), st.data())
def test_decimal_to_decimal_equals_exact_arithmetic(values, precision, data):
    """Vectorised rescaling of decimals agrees with decimal arithmetic, value by value."""
    scale = data.draw(st.integers(0, precision))
    target = f"DECIMAL({precision}, {scale})"
    expected = cast([format(value, "f") for value in values], "STRING", target)
    assert cast(values, "DECIMAL(38, 6)", target) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()))
def test_integer_casts_wrap_and_read_back(values):
    """Narrowing keeps the low bits, and the text of an integer reads back."""
    low = [None if v is None else ((v + 2**15) % 2**16) - 2**15 for v in values]
    assert cast(values, "BIGINT", "SMALLINT") == low
    assert cast(cast(values, "BIGINT", "STRING"), "STRING", "BIGINT") == values


@pytest.mark.parametrize("target", ["TIMESTAMP(0)", "TIMESTAMP(2)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)"])
@settings(max_examples=40, deadline=None)
@given(st.lists(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)) | st.none(), min_size=1))
def test_canonical_timestamps_read_the_same_either_way(target, values):
    """Arrow's parser and the parser for odd texts agree on texts that both can read."""
    texts = [None if value is None else value.isoformat(sep=" ") for value in values]
    odd = "2024-1-2T03:04"  # one such text sends the whole column to the other parser
    assert cast(texts, "STRING", target) == cast([*texts, odd], "STRING", target)[:-1]
    days = [None if text is None else text[:10] for text in texts]
    assert cast(days, "STRING", "DATE") == cast([*days, "2024-1"], "STRING", "DATE")[:-1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.decimals(-9999, 9999, places=2), min_size=1), st.integers(4, 10), st.data())
def test_plain_decimals_read_the_same_either_way(values, precision, data):
    """Arrow's parser and exact arithmetic agree on texts that need no rounding."""
    target = f"DECIMAL({precision}, {data.draw(st.integers(0, precision))})"
    texts = [format(value, "f") for value in values]
    assert cast(texts, "STRING", target) == cast([*texts, "1e0"], "STRING", target)[:-1]
