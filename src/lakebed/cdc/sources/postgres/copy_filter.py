"""Which streamed changes a copy holds already: for each table, the borders of its parts and the snapshot of each.

Stays in place until the log is behind every snapshot; then nothing of the stream can be in the copy any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.postgres.pgoutput import DecodedRows, Truncation
from lakebed.cdc.sources.postgres.relations import FollowedTable
from lakebed.cdc.sources.postgres.state import CopiedPart, CopyPart
from lakebed.cdc.sources.postgres.visibility import TransactionSnapshot


@dataclass(frozen=True, slots=True)
class FilteredPart:
    """A part of a table, and how it was copied."""

    part: CopyPart
    copied: CopiedPart


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Parts of one table, ascending by key."""

    parts: tuple[FilteredPart, ...]

    def keep(self, rows: DecodedRows, table: FollowedTable) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows the copy does not hold."""
        places = self._places(rows, table)
        keep = np.ones(len(rows.kinds), bool)
        for place in np.unique(places):
            snapshot = TransactionSnapshot.parse(self.parts[place].copied.snapshot)
            is_here = places == place
            keep[is_here] = ~snapshot.sees(rows.xids[is_here])
        return keep

    def holding(self, truncation: Truncation) -> list[CopiedPart]:
        """Parts that were copied after the table was truncated."""
        xid = np.array([truncation.xid])
        return [
            filtered.copied
            for filtered in self.parts
            if TransactionSnapshot.parse(filtered.copied.snapshot).sees(xid)[0]
        ]

    def _places(self, rows: DecodedRows, table: FollowedTable) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The part that each row belongs to."""
        if len(self.parts) == 1:
            return np.zeros(len(rows.kinds), np.int64)
        first = self.parts[0].part
        borders = [filtered.part.lower for filtered in self.parts[1:]]
        column = rows.columns[_place_of(rows, table, first.key_column)]
        if first.key_spelling == "integer":
            keys: Any = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
            edges: Any = np.array([int(border or 0) for border in borders], np.int64)
        else:
            keys, edges = np.array(column.to_pylist(), "S36"), np.array(borders, "S36")
        places: np.ndarray[Any, np.dtype[np.int64]] = np.searchsorted(edges, keys, side="right")
        return places


def _place_of(rows: DecodedRows, table: FollowedTable, name: str | None) -> int:
    names = [column.name for column in rows.relation.columns]
    # Renamed since: the key's first column is still the first.
    return names.index(name) if name in names else names.index(table.description.primary_key[0])


def table_filters(parts: Iterable[tuple[CopyPart, CopiedPart]], start: int) -> Mapping[int, TableFilter]:
    """Filters by table for a stream from `start` on. Tables whose snapshots are all behind it have none."""
    tables: dict[int, list[FilteredPart]] = {}
    for part, copied in parts:
        if not part.is_again:
            tables.setdefault(part.oid, []).append(FilteredPart(part, copied))
    return {
        oid: TableFilter(tuple(found))
        for oid, found in tables.items()
        if any(filtered.copied.lsn > start for filtered in found)
    }


__all__ = ["FilteredPart", "TableFilter", "table_filters"]
