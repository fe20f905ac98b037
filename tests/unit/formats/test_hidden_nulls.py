"""Nulls of NOT NULL members below a null ROW."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.formats.format_samples import ArrayType, field, not_null, read, row, table, written

from lakebed.formats.hidden_nulls import without_hidden_nulls
from lakebed.types import logical as lt
from lakebed.types.logical import DataType, MapType

INNER = row(("x", not_null(lt.INT)), ("y", not_null(lt.STRING)))
CASES: dict[str, tuple[DataType, list[object]]] = {
    "row": (INNER, [None, {"x": 1, "y": "a"}]),
    "row_in_row": (row(("r", not_null(INNER)), ("n", INNER)), [None, {"r": {"x": 1, "y": ""}, "n": None}]),
    "array_in_row": (row(("l", not_null(ArrayType(not_null(lt.INT))))), [None, {"l": [1, 2]}, {"l": []}]),
    "map_in_row": (row(("m", not_null(MapType(not_null(lt.INT), lt.INT)))), [None, {"m": [(1, None)]}]),
    "array_of_row": (ArrayType(INNER), [None, [None, {"x": 1, "y": "a"}], []]),
    "map_of_row": (MapType(not_null(lt.INT), INNER), [None, [(1, None), (2, {"x": 5, "y": "b"})]]),
    "variant": (lt.VARIANT, [None, {"value": b"\x01", "metadata": b""}]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("format_name", ["parquet", "avro", "orc"])
def test_null_rows_with_required_members_come_back(format_name: str, name: str) -> None:
    """A null ROW with NOT NULL members is written and read back as null, at any depth and from a slice."""
    data_type, values = CASES[name]
    if (format_name == "orc" and name in ("row_in_row", "variant")) or (format_name, name) == ("avro", "variant"):
        pytest.skip("the format does not take the type")
    fields = [field(data_type)]
    rows = table(fields, [values[-1], *values])
    content, _ = written(format_name, fields, rows.slice(1))
    assert read(format_name, content, fields)["c"].to_pylist() == rows["c"].to_pylist()[1:]


def test_columns_without_required_members_are_left_alone() -> None:
    """Where no member is NOT NULL nothing is copied."""
    column = pa.chunked_array([pa.array([None, {"x": 1}])])
    assert without_hidden_nulls(column) is column
