"""Defaults of nested columns: their texts are read, and fill what is NULL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import InvalidData
from lakebed.schema.casts import default_scalar, filled
from lakebed.types.logical import DataField, parse_type

CASES: list[tuple[str, str, Any]] = [
    ("ARRAY<INT>", "[1, 2, 3]", [1, 2, 3]),
    ("ARRAY<INT>", "[]", []),
    ("ARRAY<STRING>", "[a, 'b, c', null, \"d\"]", ["a", "b, c", None, "d"]),
    ("ARRAY<ARRAY<INT>>", "[[1, 2], [], null]", [[1, 2], [], None]),
    ("MAP<STRING, INT>", "{a -> 1, b -> null}", [("a", 1), ("b", None)]),
    ("MAP<STRING, STRING>", "{}", []),
    ("MAP<STRING, ARRAY<STRING>>", "{a->[x, y]}", [("a", ["x", "y"])]),
    ("ROW<a BOOLEAN, b INT>", "{true, 30}", {"a": True, "b": 30}),
    ("ROW<a STRING, r ROW<b DOUBLE, c DATE>>", "{x, {1.5, 2024-01-02}}", None),
    ("ROW<a STRING>", "null", None),
]


@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_texts_of_nested_values(kind: str, text: str, value: Any) -> None:
    """Brackets, separators, quotes and nulls are understood."""
    found = default_scalar(DataField(0, "c", parse_type(kind), default_value=text)).as_py()
    if text.startswith("{x"):
        assert (found["a"], found["r"]["b"], str(found["r"]["c"])) == ("x", 1.5, "2024-01-02")
    else:
        assert found == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("ARRAY<INT>", "1, 2"), ("ARRAY<INT>", "[x]"), ("MAP<STRING, INT>", "{a = 1}"), ("ROW<a INT, b INT>", "{1}")],
)
def test_texts_that_are_no_values(kind: str, text: str) -> None:
    """A text that does not fit the type is refused."""
    with pytest.raises(InvalidData):
        default_scalar(DataField(0, "c", parse_type(kind), default_value=text))


def test_nulls_are_filled() -> None:
    """Nested and atomic columns alike, sliced ones too; other rows stay."""
    lists = pa.array([[9], [1], None, []], pa.list_(pa.int32())).slice(1)
    assert filled(lists, pa.scalar([7], lists.type)).to_pylist() == [[1], [7], []]
    rows = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))
    assert filled(rows, pa.scalar({"a": 5}, rows.type)).to_pylist() == [{"a": 1}, {"a": 5}]
    assert filled(pa.array([1, None]), pa.scalar(3)).to_pylist() == [1, 3]
