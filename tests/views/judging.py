"""Whether a materialized table is what its query gives, and whether its changelog tells how it came to be."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa

from lakebed.lake import Lake


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((key, _plain(each)) for key, each in value.items())
    return value


def bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows without their order; zeros of two signs differ."""
    return Counter(tuple(map(_plain, row.values())) for row in rows.to_pylist())


def types_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """Names and types of columns."""
    return [(field.name, str(field.type).replace(" not null", "")) for field in schema]


def difference(lake: Lake, name: str, query: str, engine: str = "auto") -> str | None:
    """What is wrong with a materialized table; None if it is what a computation of the query from scratch gives."""
    expected, found = lake.query(query, engine=engine).arrow(), lake.query(f"SELECT * FROM {name}").arrow()
    if types_of(expected.schema) != types_of(found.schema):
        return f"types {types_of(expected.schema)} became {types_of(found.schema)}"
    if bag(expected) != bag(found):
        return f"missing {bag(expected) - bag(found)}, too many {bag(found) - bag(expected)}"
    return None


def folded(lake: Lake, name: str) -> str | None:
    """What is wrong with the changelog; None if it tells, event by event, how the rows that are there came to be."""
    table = lake.table(name)
    state: Counter[tuple[Any, ...]] = Counter()
    for event in table.changes(columns=table.schema.field_names).to_pylist():
        kind = event.pop("rowkind")
        row = tuple(map(_plain, event.values()))
        state[row] += 1 if kind in ("+I", "+U") else -1
        if state[row] < 0:
            return f"{kind} of a row that was not there: {row}"
    shown = bag(table.to_arrow(list(table.schema.field_names)))
    return None if +state == shown else f"folds to {+state}, is {shown}"
