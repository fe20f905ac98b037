"""Aggregate functions by all their spellings, and `count`, which other engines know as `sum`."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidOption


def _create(name: str, options: dict[str, object], kind: str = "BIGINT") -> lakebed.Table:
    lake = lakebed.connect(f"memory://functions-{name}")
    return lake.create_table(
        "t",
        {"id": "INT NOT NULL", "n": kind, "v": "STRING"},
        primary_key=["id"],
        options={"bucket": 1, "merge-engine": "aggregation", **options},
    )


@pytest.mark.parametrize("spelling", ["first_not_null_value", "first-non-null-value", "FIRST_NON_NULL_VALUE"])
def test_spellings_are_stored_as_one(spelling: str) -> None:
    """Hyphens, capitals and the older name end up as the name that Paimon writes."""
    table = _create(spelling, {"fields.v.aggregate-function": spelling})
    assert table.options["fields.v.aggregate-function"] == "first_non_null_value"


@pytest.mark.parametrize("kind", ["INT", "BIGINT"])
def test_n46_count_counts_values(kind: str) -> None:
    """N-46: every value counts one, null counts nothing, a retract takes one back; stored as a sum."""
    table = _create(f"count-{kind}", {"fields.n.aggregate-function": "count"}, kind)
    assert table.options["fields.n.aggregate-function"] == "sum"
    assert table.options["lakebed.count-fields"] == "n"
    table.write(pa.table({"id": pa.array([1, 1, 1, 2], pa.int32()), "n": ["a", None, "b", None], "v": ["x"] * 4}))
    assert table.to_arrow().sort_by("id")["n"].to_pylist() == [2, 0]
    more = pa.table({"id": pa.array([1, 2], pa.int32()), "n": [5.5, 1.0], "v": ["x", "x"], "op": ["-U", "+U"]})
    table.write(more, row_kind="op")
    assert table.to_arrow().sort_by("id")["n"].to_pylist() == [1, 1]
    table.compact(full=True)
    assert table.to_arrow().sort_by("id")["n"].to_pylist() == [1, 1]


def test_count_follows_a_renamed_column() -> None:
    """The mark of a counting column moves with its name."""
    table = _create("rename", {"fields.n.aggregate-function": "count"})
    table.alter(lakebed.RenameColumn("n", "many"))
    table.write(pa.table({"id": pa.array([1, 1], pa.int32()), "many": ["a", "b"], "v": ["x", "y"]}))
    assert table.to_arrow()["many"].to_pylist() == [2]


def test_count_needs_an_integer_column_and_a_new_table() -> None:
    """A counting column holds numbers, and counts from the first row on."""
    with pytest.raises(InvalidOption, match="`count` does not take column `n` of type STRING"):
        _create("text", {"fields.n.aggregate-function": "count"}, "STRING")
    table = _create("later", {})
    with pytest.raises(InvalidOption, match="can not begin to count"):
        table.alter(lakebed.SetOption("fields.n.aggregate-function", "count"))
