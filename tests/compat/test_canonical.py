"""The canonical row form: nothing is rounded on the way in or out, and different rows never look the same."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .judges import assert_same_rows, canonical_rows
from .judges.canonical import arrow_table
from .judges.paimon_types import arrow_schema, json_fields

FIELDS = [
    ("single", "FLOAT", True),
    ("price", "DECIMAL(38, 18)", True),
    ("raw", "BYTES", True),
    ("day", "DATE", True),
    ("clock", "TIME(3)", True),
    ("at", "TIMESTAMP(9)", True),
    ("zoned", "TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
    ("nested", "ARRAY<ROW<k STRING, m MAP<INT, TIMESTAMP(9)>>>", True),
]


@settings(deadline=None)  # the first conversion makes pyarrow load pandas
@given(
    single=st.none() | st.floats(width=32),
    price=st.none() | st.decimals(min_value=-(10**19), max_value=10**19, places=18),
    raw=st.none() | st.binary(max_size=8),
    day=st.none() | st.integers(-1_000_000, 3_000_000),
    clock=st.none() | st.integers(0, 86_399_999),
    nanos=st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    micros=st.none() | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
)
def test_arrow_survives_the_round_trip(
    single: float | None,
    price: Decimal | None,
    raw: bytes | None,
    day: int | None,
    clock: int | None,
    nanos: int | None,
    micros: int | None,
) -> None:
    """An Arrow row turned canonical and back is the same row, down to the bits of floats and the last nanosecond."""
    schema = arrow_schema(json_fields(FIELDS))
    nested = [None, {"k": None, "m": None}, {"k": "x", "m": [(2, nanos), (1, None)]}]
    values = [single, price, raw, day, clock, nanos, micros, nested]
    columns = [pa.array([value], field.type) for value, field in zip(values, schema, strict=True)]
    table = pa.Table.from_arrays(columns, schema=schema)
    again = arrow_table(canonical_rows(table), schema)
    assert canonical_rows(again) == canonical_rows(table)
    flat = [name for name in schema.names if name not in ("nested", "single")]
    assert again.select(flat).equals(table.select(flat))
    assert repr(again["single"].to_pylist()) == repr(table["single"].to_pylist())


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0.0, -0.0), ("1.50", "1.5"), (None, ""), (0.1, 0.10000000149011612), ([], None)],
)
def test_rows_that_differ_in_any_way_are_not_the_same(one: object, other: object) -> None:
    """The comparison is stricter than ==, which takes 1, 1.0 and True for equal."""
    with pytest.raises(AssertionError, match="1 rows instead of 1"):
        assert_same_rows([{"a": one}], [{"a": other}])


def test_repeated_rows_count() -> None:
    """A row that occurs twice is not the same as one that occurs once."""
    with pytest.raises(AssertionError, match="2 rows instead of 1"):
        assert_same_rows([{"a": 1}, {"a": 1}], [{"a": 1}])


def test_a_value_finer_than_its_column_is_an_error() -> None:
    """Test data that a column cannot hold is refused instead of rounded."""
    schema = arrow_schema(json_fields([("at", "TIMESTAMP(3)", True)]))
    with pytest.raises(ValueError, match="whole number of ms"):
        arrow_table([{"at": "2024-01-02T03:04:05.123456"}], schema)


def test_nested_field_ids_follow_the_format() -> None:
    """Columns are numbered before their nested fields, nested fields after what they contain."""
    fields = json_fields(
        [("a", "INT", False), ("r", "ROW<x INT, y ROW<z STRING> NOT NULL>", True), ("b", "DATE", True)]
    )
    row = fields[1]["type"]
    assert [field["id"] for field in fields] == [0, 1, 5]
    assert [(field["name"], field["id"]) for field in row["fields"]] == [("x", 2), ("y", 4)]
    assert row["fields"][1]["type"] == {"type": "ROW NOT NULL", "fields": [{"id": 3, "name": "z", "type": "STRING"}]}
    assert fields[0]["type"] == "INT NOT NULL"


@pytest.mark.parametrize("text", ["MAP<INT>", "DECIMAL(1", "INT INT", "ARRAY<>", "ROW<x>", "INT;"])
def test_broken_type_texts_are_refused(text: str) -> None:
    """A typo in a test's column type is reported, not guessed at."""
    with pytest.raises((ValueError, IndexError)):
        json_fields([("a", text, True)])
