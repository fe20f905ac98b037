"""Events of the binary log: what a stretch of the log contains, found with numpy, and the few that are read one by one.

A `Segment` is a stretch of complete events in one buffer. Its kinds, times and places are arrays; rows are decoded
from it by `row_layout` and `row_values`. Statements, transaction ids and file names are rare and parsed singly.
"""

from __future__ import annotations

import tempfile
from enum import IntEnum
from typing import Any, Final

import numpy as np

from lakebed.cdc.sources.mysql.values.gather import PADDING, Array, Bytes
from lakebed.errors import CorruptFile, Unsupported
from lakebed.records import dataclass

HEADER: Final = 19
"""Bytes before the body of an event: time, kind, server, length, next place, flags."""


class Kind(IntEnum):
    """Kinds of events, as both servers number them."""

    QUERY = 2
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    WRITE_ROWS_1 = 23
    UPDATE_ROWS_1 = 24
    DELETE_ROWS_1 = 25
    HEARTBEAT = 27
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    MYSQL_GTID = 33
    MYSQL_ANONYMOUS_GTID = 34
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_2 = 41
    MYSQL_TAGGED_GTID = 42
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_1 = 166
    UPDATE_ROWS_COMPRESSED_1 = 167
    DELETE_ROWS_COMPRESSED_1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


def _kinds(*kinds: Kind) -> Array:
    mask = np.zeros(256, bool)
    mask[list(kinds)] = True
    return mask


IS_WRITE: Final = _kinds(Kind.WRITE_ROWS_1, Kind.WRITE_ROWS)
IS_UPDATE: Final = _kinds(Kind.UPDATE_ROWS_1, Kind.UPDATE_ROWS, Kind.PARTIAL_UPDATE_ROWS)
IS_DELETE: Final = _kinds(Kind.DELETE_ROWS_1, Kind.DELETE_ROWS)
IS_ROWS: Final = IS_WRITE | IS_UPDATE | IS_DELETE
IS_SECOND_VERSION: Final = _kinds(Kind.WRITE_ROWS, Kind.UPDATE_ROWS, Kind.DELETE_ROWS, Kind.PARTIAL_UPDATE_ROWS)
IS_MYSQL_GTID: Final = _kinds(Kind.MYSQL_GTID, Kind.MYSQL_TAGGED_GTID)
IS_GTID: Final = IS_MYSQL_GTID | _kinds(Kind.MARIADB_GTID)


class Segment:
    """Complete events of a stretch of the log, without checksums. `starts` and `ends` include their headers."""

    __slots__ = ("bytes", "ends", "kinds", "starts", "tables", "times")

    tables: Any
    """`LoggedTables` that row events of this segment refer to, which know segments; set by who cuts the log."""

    def __init__(self, data: Array, starts: Array, ends: Array) -> None:
        self.bytes = Bytes(data)
        self.starts = starts
        self.ends = ends
        self.kinds: Array = data[starts + 4]
        self.times: Array = self.bytes.little(starts, 4)
        if (self.kinds == Kind.MYSQL_ANONYMOUS_GTID).any():
            raise Unsupported(
                "the binary log holds a transaction without an id, which can not be followed",
                hint="SET GLOBAL gtid_mode = ON, and start again with a new checkpoint",
            )

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return len(self.bytes.data)

    def body(self, index: int) -> bytes:
        """What follows the header of an event."""
        content: bytes = self.bytes.data[self.starts[index] + HEADER : self.ends[index]].tobytes()
        return content

    def spilled(self) -> Segment:
        """The same events in a file without a name, out of memory: for transactions that go on and on."""
        with tempfile.TemporaryFile(prefix="lakebed-binlog-") as file:
            self.bytes.data.tofile(file)
            file.flush()
            copy = Segment(np.memmap(file, np.uint8, "r"), self.starts, self.ends)
        copy.tables = self.tables
        return copy

    def part(self, low: int, high: int) -> Segment:
        """Some of the events, in the same buffer."""
        return Segment(self.bytes.data, self.starts[low:high], self.ends[low:high])


def segment_of(events: list[bytes]) -> Segment:
    """A segment of single events."""
    ends = np.cumsum(np.array([len(event) for event in events], np.int64))
    starts = ends - np.array([len(event) for event in events], np.int64)
    return Segment(np.frombuffer(b"".join(events) + bytes(PADDING), np.uint8), starts, ends)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that the server logged as text: a change of tables, or a step of a transaction."""

    database: str
    text: str
    time_s: int
    micros: int = 0
    zone: str | None = None
    """The session's time zone, if the statement depends on it."""
    transaction: str = ""
    """The id of the transaction that it is."""


def statement(segment: Segment, index: int) -> Statement:
    """The statement of a QUERY event."""
    body = segment.body(index)
    database_length = body[8]
    variables = int.from_bytes(body[11:13], "little")
    at = 13 + variables
    database = body[at : at + database_length].decode("utf-8", "replace")
    text = body[at + database_length + 1 :].decode("utf-8", "replace")
    micros, zone = _clock(body[13:at])
    return Statement(database, text, int(segment.times[index]), micros, zone)


_FIXED_VARIABLES: Final = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 128: 3, 129: 8}
"""Bytes of what is noted with a statement, by its number; others have a length of their own."""
_CATALOG, _ZONE, _BARE_CATALOG, _INVOKER, _DATABASES = 2, 5, 6, 11, 12
_TOO_MANY_DATABASES: Final = 254
_MICROS: Final = (13, 128)


def _clock(variables: bytes) -> tuple[int, str | None]:
    """Fraction of the second and time zone among what is noted with a statement."""
    micros, at = 0, 0
    zone: str | None = None
    while at < len(variables):
        kind = variables[at]
        at += 1
        if kind in _FIXED_VARIABLES:
            size = _FIXED_VARIABLES[kind]
            if kind in _MICROS:
                micros = int.from_bytes(variables[at : at + size], "little")
            at += size
        elif kind in (_CATALOG, _ZONE, _BARE_CATALOG):
            length = variables[at]
            if kind == _ZONE:
                zone = variables[at + 1 : at + 1 + length].decode("utf-8", "replace")
            at += 1 + length + (kind == _CATALOG)
        elif kind == _INVOKER:
            at += 1 + variables[at]  # the user
            at += 1 + variables[at]  # and where from
        elif kind == _DATABASES:
            count = variables[at]
            at += 1
            for _ in range(0 if count == _TOO_MANY_DATABASES else count):
                at = variables.index(0, at) + 1
        else:
            break  # nothing of interest comes after these
    return micros, zone


def length_encoded(data: bytes, at: int) -> tuple[int, int]:
    """A number in the protocol's variable length, and the place behind it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise CorruptFile(
            "a length in the binary log is not understood", hint="this is a fault of the reader; report it"
        )
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


__all__ = [
    "HEADER",
    "IS_DELETE",
    "IS_GTID",
    "IS_MYSQL_GTID",
    "IS_ROWS",
    "IS_SECOND_VERSION",
    "IS_UPDATE",
    "IS_WRITE",
    "Kind",
    "Segment",
    "Statement",
    "length_encoded",
    "segment_of",
    "statement",
]
