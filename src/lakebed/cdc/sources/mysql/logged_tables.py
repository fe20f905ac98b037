"""The tables that rows of a log file refer to by number."""

from __future__ import annotations

import numpy as np

from lakebed.cdc.sources.mysql.events import HEADER, Kind, Segment
from lakebed.cdc.sources.mysql.gather import Array
from lakebed.cdc.sources.mysql.table_map import TableMap, parse_table_map, table_name
from lakebed.errors import CorruptFile

_NO_TABLE = 0xFFFFFF  # of an empty event that only ends a statement


class LoggedTables:
    """Numbers of tables and what TABLE_MAP events said of them. Bodies are kept and parsed when rows are wanted."""

    def __init__(self) -> None:
        self._bodies: dict[int, bytes] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._parsed: dict[int, TableMap] = {}

    def note(self, segment: Segment) -> None:
        """Takes in the TABLE_MAP events of a segment."""
        events = np.flatnonzero(segment.kinds == Kind.TABLE_MAP)
        numbers, first = np.unique(table_numbers(segment, events), return_index=True)
        for number, index in zip(numbers.tolist(), events[first].tolist(), strict=True):
            if number not in self._bodies:
                body = segment.body(index)
                self._bodies[number] = body
                self._names[number] = table_name(body)

    def name(self, number: int) -> tuple[str, str] | None:
        """Database and table; None for the number that stands for none."""
        if number not in self._names:
            if number == _NO_TABLE:
                return None
            raise CorruptFile(
                f"the binary log has rows of a table (number {number}) that it did not describe",
                hint="this is a fault of the reader; report it",
            )
        return self._names[number]

    def table(self, number: int, *, mariadb: bool) -> TableMap:
        """The table of a number."""
        if number not in self._parsed:
            self._parsed[number] = parse_table_map(self._bodies[number], mariadb=mariadb)
        return self._parsed[number]


def table_numbers(segment: Segment, events: Array) -> Array:
    """The table's number in each of some TABLE_MAP or row events."""
    return segment.bytes.little(segment.starts[events] + HEADER, 6).astype(np.int64)


__all__ = ["LoggedTables", "table_numbers"]
