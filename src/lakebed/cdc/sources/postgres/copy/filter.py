"""Which streamed changes a copy holds already: for each table, the borders of its parts and the snapshot of each.

INVARIANT: it stays in place until the log is behind every snapshot; then nothing of the stream can be in the copy any
more. Taken away earlier, changes that a part holds would come a second time, and put old rows over newer ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.postgres.log.pgoutput import DecodedRows, Truncation
from lakebed.cdc.sources.postgres.log.relations import FollowedTable
from lakebed.cdc.sources.postgres.names import quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.state import CopiedPart, CopyPart
from lakebed.records import dataclass
from lakebed.types.row_kind import RowKind

if TYPE_CHECKING:
    import psycopg


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
        if part.takes_place and not part.is_again:
            tables[part.oid] = []  # a new copy in the place of an older one, whose parts do not count any more
        if not part.is_again:
            tables.setdefault(part.oid, []).append(FilteredPart(part, copied))
    return {
        oid: TableFilter(tuple(found))
        for oid, found in tables.items()
        if any(filtered.copied.lsn > start for filtered in found)
    }


# ------------------------------------------------------------------------------------------------------------------
# Which transactions a snapshot of the copy has seen: the rule that joins copy and stream without gap or duplicate.
#
# A part of a table that was copied under a snapshot holds what every transaction did that the snapshot sees, and
# nothing of any other. A streamed change of that part is dropped if and only if its transaction is seen. Positions in
# the log can not decide this: a commit stands in the log before it is visible.


_EPOCH = 1 << 32


@dataclass(frozen=True, slots=True)
class TransactionSnapshot:
    """A value of `pg_current_snapshot()`: `xmin:xmax:xip,…` with 64-bit transaction ids."""

    xmin: int
    xmax: int
    in_progress: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> TransactionSnapshot:
        """The snapshot that the server's text stands for."""
        xmin, xmax, in_progress = text.split(":")
        return cls(int(xmin), int(xmax), tuple(int(xid) for xid in in_progress.split(",") if xid))

    def sees(self, xids: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether committed transactions are seen. The stream names them with 32 bits, of the epoch next to ours."""
        full = self.widen(xids)
        seen: np.ndarray[Any, np.dtype[np.bool_]] = full < self.xmax
        if self.in_progress:
            seen &= (full < self.xmin) | ~np.isin(full, np.array(self.in_progress, np.int64))
        return seen

    def widen(self, xids: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """32-bit ids as 64-bit ones: the nearest to this snapshot, which is at most half an epoch away."""
        base = self.xmax
        distance = (np.asarray(xids, np.int64) - base) & (_EPOCH - 1)
        near: np.ndarray[Any, np.dtype[np.int64]] = base + np.where(distance < _EPOCH // 2, distance, distance - _EPOCH)
        return near


# --- Values of rows that moved from one part of the copy to another between the two snapshots ---------------------
#
# The part that a row left was copied after the move, the part that it came to before: the copy has it in neither, and
# a long value that the update did not touch is nowhere in the stream. It is asked of the database. This needs a
# change of a key, a value stored apart and a copy under way, all at once; rows are looked up one by one.


def with_moved_values(
    rows: DecodedRows,
    keep: np.ndarray[Any, np.dtype[np.bool_]],
    table: FollowedTable,
    connection: psycopg.Connection[Any],
) -> DecodedRows:
    """The rows, with values for new halves of moves whose old half is not kept.

    A row that is gone by now keeps its mark: whoever writes it says that the value is missing.
    """
    is_lone = np.zeros(len(keep), bool)
    is_lone[1:] = keep[1:] & ~keep[:-1] & (rows.kinds[1:] == RowKind.INSERT) & (rows.kinds[:-1] == RowKind.DELETE)
    unchanged, columns = dict(rows.unchanged), list(rows.columns)
    for place, marks in rows.unchanged.items():
        for row in np.flatnonzero(marks & is_lone).tolist():
            found = connection.execute(_query(rows, table, place, row).encode()).fetchone()
            if found is not None:
                value = pa.array([found[0]], pa.string())
                columns[place] = pa.concat_arrays([columns[place][:row], value, columns[place][row + 1 :]])
                unchanged[place] = unchanged[place].copy()
                unchanged[place][row] = False
    return replace(rows, columns=columns, unchanged=unchanged)


def _query(rows: DecodedRows, table: FollowedTable, place: int, row: int) -> str:
    names = table.description.names
    conditions = [f"{quote_name(names[key])} = {quote_value(rows.columns[key][row].as_py())}" for key in table.key]
    source = quote_table(table.name.schema, table.name.table)
    return f"SELECT {quote_name(names[place])}::text FROM {source} WHERE {' AND '.join(conditions)}"


__all__ = ["FilteredPart", "TableFilter", "TransactionSnapshot", "table_filters", "with_moved_values"]
