"""Nulls inside nulls: nothing is lost, and ORC files hold ROWs within ROWs, ARRAYs and MAPs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakebed.formats import FORMATS, WriteSettings
from lakebed.formats.pushed_nulls import with_pushed_nulls
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField, parse_type

LEAF = "ROW<s STRING, i INT>"
TYPES = [
    f"ROW<x INT, r {LEAF}>",
    f"ROW<q ROW<x INT, r {LEAF}>, z INT>",
    f"ARRAY<ROW<r {LEAF}, i INT>>",
    f"ROW<l ARRAY<{LEAF}>, i INT>",
    f"MAP<STRING, ROW<r {LEAF}>>",
    f"ROW<a STRING, m MAP<STRING, ROW<s STRING, l ARRAY<{LEAF}>, r {LEAF}>>>",
]


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        made = st.fixed_dictionaries({field.name: _values(field.type) for field in kind})
    elif pa.types.is_map(kind):
        made = st.dictionaries(st.sampled_from("abc"), _values(kind.item_type), max_size=2).map(
            lambda d: list(d.items())
        )
    elif pa.types.is_list(kind):
        made = st.lists(_values(kind.value_type), max_size=3)
    else:
        made = st.sampled_from("xyz") if pa.types.is_string(kind) else st.integers(0, 9)
    return st.none() | made


@st.composite
def _columns(draw: st.DrawFn) -> tuple[DataField, pa.Array]:
    field = DataField(0, "c", parse_type(draw(st.sampled_from(TYPES))))
    kind = to_arrow_schema([field]).field(0).type
    return field, pa.array(draw(st.lists(_values(kind), max_size=12)), kind)


@given(_columns())
def test_values_stay(case: tuple[DataField, pa.Array]) -> None:
    """The column means what it meant before."""
    _, column = case
    pushed = with_pushed_nulls(column)
    pushed.validate(full=True)
    assert pushed.to_pylist() == column.to_pylist()


@given(_columns(), st.integers(0, 12))
def test_orc_files_give_back_what_went_in(case: tuple[DataField, pa.Array], cut: int) -> None:
    """ROWs at any depth come back from an ORC file, with nulls anywhere, also if written in slices."""
    field, column = case
    rows = pa.RecordBatch.from_arrays([column], schema=to_arrow_schema([field]))
    sink = pa.BufferOutputStream()
    writer = FORMATS["orc"].open_writer(sink, [field], WriteSettings())
    for part in (rows.slice(0, cut), rows.slice(cut)):
        writer.write(part)
    writer.close()
    with FORMATS["orc"].open_reader(pa.BufferReader(sink.getvalue()), "x") as reader:
        found = [value for _, batch in reader.read([field]) for value in batch.column(0).to_pylist()]
    assert found == column.to_pylist()
