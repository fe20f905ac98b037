"""Rows that could not be read, kept as the source spells them: a table of the lake, written exactly once like the rest.

It has no key: nothing is ever changed in it. Who has cured the cause finds there which rows to look after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lakebed.cdc.batch.batch import POSITION
from lakebed.cdc.batch.commit import TableCommit, is_committed
from lakebed.cdc.envelope import Chunk
from lakebed.cdc.rules import DEAD_LETTERS

if TYPE_CHECKING:
    from lakebed.lake import Lake

_COLUMNS: Final = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.string()),
        ("op_ts", pa.timestamp("ms", tz="UTC")),
        ("kind", pa.string()),
        ("why", pa.string()),
        ("raw", pa.string()),
    ]
)


def put_aside(
    lake: Lake, database: str, chunks: Sequence[Chunk], user: str, identifier: int, properties: dict[str, str]
) -> int:
    """Adds the raw rows of some chunks, unless this batch has done so; how many they are."""
    name = f"`{database}`.`{DEAD_LETTERS}`"
    table = lake.table(name) if lake.has_table(name) else lake.create_table(name, _COLUMNS)
    rows = _rows(chunks, properties.get(POSITION))
    if is_committed(table, user, identifier):
        return 0
    commit = TableCommit(table, user, identifier, properties)
    commit.write(rows)
    commit.run()
    return int(rows.num_rows)


def _rows(chunks: Sequence[Chunk], position: str | None) -> pa.RecordBatch:
    pieces = []
    for chunk in chunks:
        raw = chunk.rows()
        count = raw.num_rows
        same = {"source": str(chunk.name), "position": position}
        columns = [
            pa.array([same[field.name]] * count, field.type) if field.name in same else raw.column(field.name)
            for field in _COLUMNS
        ]
        pieces.append(pa.RecordBatch.from_arrays(columns, schema=_COLUMNS))
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


__all__ = ["put_aside"]
