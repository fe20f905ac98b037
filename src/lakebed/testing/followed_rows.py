"""Applies envelope chunks to plain dictionaries: what a lake must hold after following a source, row by row.

Slow on purpose. Tells when a source breaks its promises: an insert of a key that is there, a change of one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lakebed.cdc.envelope import COPY, ROWS, TRUNCATE, UNCHANGED, Chunk, Description, SourceName, payload_columns
from lakebed.types.row_kind import RowKind


def plain_values(column: pa.Array) -> list[Any]:
    """Values to compare: times as numbers, since Python has no years beyond 1 to 9999; NaN as a text."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type):
        column = column.cast(pa.list_(pa.int64()))
    values: list[Any] = column.to_pylist()
    return [str(value) if isinstance(value, float) else value for value in values]


class FollowedRows:
    """Tables by name; rows by key."""

    def __init__(self, *, is_strict: bool = True) -> None:
        self.tables: dict[SourceName, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self.descriptions: dict[SourceName, Description] = {}
        self.is_strict = is_strict
        self.faults: list[str] = []

    def apply(self, chunks: Iterable[Chunk]) -> None:
        """Applies chunks in the order of their ordinals."""
        for chunk in sorted(chunks, key=lambda chunk: chunk.ordinal):
            rows = self.tables.setdefault(chunk.name, {})
            self.descriptions[chunk.name] = Description.from_text(chunk.columns)
            if chunk.kind == TRUNCATE:
                rows.clear()
            elif chunk.kind == ROWS:
                self._change(chunk, rows)

    def _change(self, chunk: Chunk, rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
        batch = chunk.rows()
        columns = {name: plain_values(column) for name, column in payload_columns(batch).items()}
        key = self.descriptions[chunk.name].primary_key
        names = self.descriptions[chunk.name].names
        moved: dict[str, Any] | None = None
        for i, kind in enumerate(batch.column(0).to_pylist()):
            row = {name: columns[name][i] for name in names}
            place = tuple(row[name] for name in key)
            before = rows.get(place)
            if kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE):
                moved = before
                if before is None:
                    self._fault(chunk, kind, place)
                if kind == RowKind.DELETE:
                    rows.pop(place, None)
                continue
            if (before is None) != (kind == RowKind.INSERT) and chunk.phase != COPY:
                self._fault(chunk, kind, place)
            filled = before if kind == RowKind.UPDATE_AFTER else moved
            for name in names:
                if UNCHANGED + name in columns and columns[UNCHANGED + name][i]:
                    if filled is None:
                        self._fault(chunk, kind, place)
                    else:
                        row[name] = filled[name]
            rows[place] = row

    def _fault(self, chunk: Chunk, kind: int, place: tuple[Any, ...]) -> None:
        if self.is_strict:
            self.faults.append(f"{RowKind(kind).name} of {chunk.name} {place} in chunk {chunk.ordinal}")


__all__ = ["FollowedRows", "plain_values"]
