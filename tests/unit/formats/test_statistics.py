"""Statistics that writers return: exact, untruncated and never too narrow."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.formats.format_samples import SAMPLES, array, field, table, written

from lakebed.types import logical as lt

EVERY_FORMAT = pytest.mark.parametrize("name", list(SAMPLES))
ORDERED = [
    pytest.param(name, data_type, values, id=f"{name}-{label}")
    for name in SAMPLES
    for label, (data_type, values) in SAMPLES[name].items()
    if not lt.is_nested(data_type) and not lt.is_root(data_type, lt.FLOATS)
]


@pytest.mark.parametrize(("name", "data_type", "values"), ORDERED)
def test_bounds_are_exact_and_of_the_columns_type(name: str, data_type: Any, values: list[Any]) -> None:
    """Least and greatest value over several row groups, as scalars of the column's type."""
    fields = [field(data_type)]
    rows = table(fields, [None, None, *values])
    _, stats = written(name, fields, rows, row_group_rows=2)
    both = pc.min_max(array(data_type, values))
    found = stats.columns["c"]
    assert found.min is not None
    assert found.min.type == both["min"].type
    assert (found.min.equals(both["min"]), found.max.equals(both["max"]), found.null_count) == (True, True, 2)


@EVERY_FORMAT
def test_floats_are_careful(name: str) -> None:
    """NaN takes the bounds away, zeros are widened to both signs, infinities are values like others."""
    fields = [
        field(lt.DOUBLE, "nan", 1),
        field(lt.FLOAT, "zero", 2),
        field(lt.DOUBLE, "inf", 3),
        field(lt.DOUBLE, "z", 4),
    ]
    rows = table(fields, [1.0, math.nan, 2.0], [0.0, -0.0, 0.0], [math.inf, -math.inf, None], [-0.0, -0.0, None])
    for group in (1, 100):
        _, stats = written(name, fields, rows, row_group_rows=group)
        assert (stats.columns["nan"].min, stats.columns["nan"].max) == (None, None)
        for label in ("zero", "z"):
            low, high = stats.columns[label].min, stats.columns[label].max
            assert (math.copysign(1, low.as_py()), math.copysign(1, high.as_py())) == (-1, 1)
            assert (low.as_py(), high.as_py()) == (0, 0)
        assert (stats.columns["inf"].min.as_py(), stats.columns["inf"].max.as_py()) == (-math.inf, math.inf)


@EVERY_FORMAT
def test_long_values_and_byte_order(name: str) -> None:
    """Values of any length bound their column, and text is ordered by its UTF-8 bytes."""
    fields = [field(lt.STRING, "long", 1), field(lt.STRING, "order", 2), field(lt.BYTES, "bytes", 3)]
    long_text = "z" * 100_000
    rows = table(fields, ["b", long_text, "a"], ["\U00010000", "\uffff", "z"], [b"\x7f", b"\x80", b""])
    for group in (1, 100):
        _, stats = written(name, fields, rows, row_group_rows=group)
        assert (stats.columns["long"].min.as_py(), stats.columns["long"].max.as_py()) == ("a", long_text)
        assert (stats.columns["order"].min.as_py(), stats.columns["order"].max.as_py()) == ("z", "\U00010000")
        assert (stats.columns["bytes"].min.as_py(), stats.columns["bytes"].max.as_py()) == (b"", b"\x80")


@EVERY_FORMAT
def test_only_wanted_columns_have_statistics(name: str) -> None:
    """`stats_columns` chooses; nested columns count nulls only."""
    fields = [field(lt.INT, "a", 1), field(lt.INT, "b", 2), field(lt.ArrayType(lt.INT), "l", 3)]
    rows = table(fields, [1, 2], [3, None], [[1], None])
    _, stats = written(name, fields, rows, stats_columns=frozenset({"b", "l"}))
    assert set(stats.columns) == {"b", "l"}
    assert stats.columns["b"].max == pa.scalar(3, pa.int32())
    assert (stats.columns["l"].min, stats.columns["l"].max, stats.columns["l"].null_count) == (None, None, 1)
    assert written(name, fields, rows, stats_columns=frozenset())[1].columns == {}
