"""Small tables on which worked examples are played: one commit after the other, with or without compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

import lakebed

N = None
Row = list[Any]
Change = Any
"""A row, or a kind and a row, or a list of these for one commit."""
Columns = str | Mapping[str, str]
"""Types by name, or names in one text, INT unless a type stands behind: `k a b:STRING`. The first is the key."""
Example = tuple[Columns, Mapping[str, str], Sequence[tuple[Change, Row | None]]]
"""Columns, options, and what is written with the one row that is visible afterwards."""

MODES = {
    "as-written": {"write-only": "true"},
    "compacted": {"write-only": "true"},
    "universal": {"num-sorted-run.compaction-trigger": "2"},
}
"""Without compaction; with a full one after each commit; with those that come due at two runs."""


def create(columns: Columns, options: Mapping[str, str], mode: str = "as-written") -> lakebed.Table:
    """A table of one bucket in a warehouse of its own."""
    if isinstance(columns, str):
        columns = dict((*name.split(":"), "INT")[:2] for name in columns.split())
    key = next(iter(columns))
    lake = lakebed.connect(f"memory://{uuid4()}")
    return lake.create_table(
        "t",
        {**columns, key: f"{columns[key]} NOT NULL"},
        primary_key=[key],
        options={"bucket": "1", **MODES[mode], **options},
    )


def write(table: lakebed.Table, change: Change, mode: str = "as-written") -> None:
    """One commit, and the compaction that the mode asks for."""
    changes = change if isinstance(change, list) and isinstance(change[0], list | tuple) else [change]
    changes = [item if isinstance(item, tuple) else ("+I", item) for item in changes]
    fields = [field.with_nullable(True) for field in table.arrow_schema]
    columns = [pa.array([row[i] for _, row in changes], field.type) for i, field in enumerate(fields)]
    rows = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    if "rowkind.field" in table.options:
        table.write(rows)
    else:
        table.write(rows.append_column("_kind", pa.array([kind for kind, _ in changes])), row_kind="_kind")
    if mode == "compacted":
        table.compact(full=True)


def shown(table: lakebed.Table, **arguments: Any) -> list[Row]:
    """What a read gives, by key."""
    found = table.to_arrow(**arguments)
    return [list(row.values()) for row in found.sort_by(found.column_names[0]).to_pylist()]


def levels(table: lakebed.Table) -> list[int]:
    """The level of each file."""
    return sorted(file.level for file in table.scan().files)


def play(example: Example, mode: str) -> None:
    """After each commit the table shows the row that the example says."""
    columns, options, steps = example
    table = create(columns, options, mode)
    for change, visible in steps:
        write(table, change, mode)
        assert shown(table) == ([] if visible is None else [visible])
