"""The binary log from a position on, as committed pieces up to any later position: a connection and its transactions.

A reader stands behind a complete transaction. It can be kept and asked again for what came since, which saves the
server the search for the place; it never needs to be.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from lakebed.cdc.sources.mysql.log.dump import PIECE, BinlogDump
from lakebed.cdc.sources.mysql.log.events import Kind, Segment
from lakebed.cdc.sources.mysql.log.table_map import LoggedTables
from lakebed.cdc.sources.mysql.log.transactions import Piece, Transactions, XaId
from lakebed.cdc.sources.mysql.settings import ServerSettings, rows
from lakebed.cleanup import on_failure
from lakebed.errors import InvalidData, NotFound, StorageError
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition

_RECONNECT_S = 30
_ARTIFICIAL = 0x20  # of the flags of an event that is not in the file


class LogReader:
    """Reads committed pieces from a server's log. Rows come with the tables they are of."""

    def __init__(
        self,
        settings: ServerSettings,
        start: MariaDbPosition | MySqlPosition,
        replica_id: int,
        piece_bytes: int = PIECE,
    ) -> None:
        self._settings = settings
        self._piece_bytes = piece_bytes
        self._replica_id = replica_id
        self._transactions = Transactions(start, self._find_prepared)
        self._dump = BinlogDump(settings, start, replica_id, piece_bytes)
        self._segments = _by_file(self._dump)
        self._left: tuple[Segment, int] | None = None

    @property
    def position(self) -> MariaDbPosition | MySqlPosition:
        """Behind the last transaction that was given out."""
        return self._transactions.position

    def read_to(self, end: MariaDbPosition | MySqlPosition) -> Iterator[Piece]:
        """Everything after the position, up to `end`, which must lie in the log already or soon."""
        while not self._covers(end):
            segment, at = self._left or (self._next_segment(), 0)
            pieces, stop = self._transactions.take(segment, at, end)
            self._left = (segment, stop) if stop < len(segment) else None
            yield from pieces
            if self._left is not None and not self._covers(end):
                raise InvalidData(
                    f"the binary log goes past {end} before it gets there: it is at {self.position}",
                    hint="the log was written anew or belongs to another server; start again with a new checkpoint",
                )

    def skip_to(self, end: MariaDbPosition | MySqlPosition, most_bytes: int) -> MariaDbPosition | MySqlPosition:
        """The position at `end`, or behind about so many bytes of the log if that comes first."""
        seen = 0
        while seen < most_bytes and not self._covers(end):
            segment, at = self._left or (self._next_segment(), 0)
            _, stop = self._transactions.take(segment, at, end)
            self._left = (segment, stop) if stop < len(segment) else None
            seen += int(segment.ends[-1] - segment.starts[0])
        return self.position

    def close(self) -> None:
        """Ends the connection."""
        self._dump.close()

    def _next_segment(self) -> Segment:
        """The next stretch of the log. A connection that ends is opened anew behind the last complete transaction."""
        try:
            return next(self._segments)
        except StorageError:
            self._dump.close()
        deadline = time.monotonic() + _RECONNECT_S
        while True:
            self._transactions.start_over()
            try:
                self._dump = BinlogDump(self._settings, self.position, self._replica_id, self._piece_bytes)
                self._segments = _by_file(self._dump)
                return next(self._segments)
            except StorageError:
                self._dump.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _covers(self, end: MariaDbPosition | MySqlPosition) -> bool:
        position = self.position
        if isinstance(position, MariaDbPosition) and isinstance(end, MariaDbPosition):
            return position.covers(end)
        return isinstance(position, MySqlPosition) and isinstance(end, MySqlPosition) and position.covers(end)

    def _find_prepared(self, xa_id: XaId) -> list[Piece]:
        """The rows of a two-phase transaction that was prepared before this reader began: searched for backwards."""
        connection = self._settings.connect_patiently()
        try:
            files = [str(row[0]) for row in rows(connection, "SHOW BINARY LOGS")]
        finally:
            connection.close()
        for file in reversed(files):
            found = self._prepared_in(file, xa_id)
            if found is not None:
                return found
        raise NotFound(
            f"the binary log of {self._settings} no longer holds a prepared transaction that is committed now",
            hint="changes are lost to this stream: start it with a new checkpoint, which copies the tables again; "
            "keep binary logs for longer than prepared transactions live (binlog_expire_logs_seconds)",
        )

    def _prepared_in(self, file: str, xa_id: XaId) -> list[Piece] | None:
        """The rows of the last transaction of that id which was prepared in a file and not ended in it."""
        empty = MySqlPosition() if isinstance(self.position, MySqlPosition) else MariaDbPosition()
        # The commit that is looked for may stand in the same file: then it ends the search.
        search = _Search(empty, xa_id, self.position)
        # Not our own id: a server ends the older of two connections with the same.
        dump = BinlogDump(self._settings, (file, 4), self._replica_id ^ 1)
        try:
            for segment in _by_file(dump):
                if search.look_at(segment):
                    break
        finally:
            dump.close()
        return search.found


class _Search:
    """Looks through one file of the log for a prepared transaction."""

    def __init__(
        self, empty: MariaDbPosition | MySqlPosition, xa_id: XaId, before: MariaDbPosition | MySqlPosition
    ) -> None:
        self.found: list[Piece] | None = None
        self._xa_id = xa_id
        self._before = before
        self._transactions = Transactions(empty, lambda _: [])

    def look_at(self, segment: Segment) -> bool:
        """Whether the search is over: at the file's end, or where the reader stands that asks."""
        flags = segment.bytes.little(segment.starts + 17, 2)
        over = bool(((segment.kinds == Kind.ROTATE) & (flags & np.uint64(_ARTIFICIAL) == 0)).any())
        _, stop = self._transactions.take(segment, 0, self._before)
        self.found = self._transactions.prepared.get(self._xa_id)
        return over or stop < len(segment)


def _by_file(dump: BinlogDump) -> Iterator[Segment]:
    """Segments that lie within one file of the log each, with the tables of that file.

    Numbers of tables are only good within a file: a server that starts again counts anew.
    """
    tables = LoggedTables()
    for segment in dump.segments():
        cuts = np.flatnonzero(segment.kinds == Kind.FORMAT_DESCRIPTION).tolist()
        for low, high in zip([0, *cuts], [*cuts, len(segment)], strict=True):
            if low in cuts:
                tables = LoggedTables()
            if high > low:
                part = segment if high - low == len(segment) else segment.part(low, high)
                tables.note(part)
                part.tables = tables
                yield part


# ------------------------------------------------------------------------------------------------------------------
# Connections to a log that outlive a task: the next batch often begins where the last one ended, in the same process.
#
# Opening a connection makes the server search its log files for the position. A kept connection saves that; one that
# stands elsewhere is replaced, one that the server has ended connects anew, and nothing depends on there being one.


_KEPT: dict[tuple[ServerSettings, int], LogReader] = {}


@contextmanager
def borrow_reader(
    settings: ServerSettings, start: MariaDbPosition | MySqlPosition, replica_id: int
) -> Iterator[LogReader]:
    """A reader that stands at a position. It is kept if the work with it goes well."""
    key = (settings, replica_id)
    reader = _KEPT.pop(key, None)
    if reader is not None and str(reader.position) != str(start):
        reader.close()
        reader = None
    if reader is None:
        reader = LogReader(settings, start, replica_id)
    with on_failure(reader.close):
        yield reader
    _KEPT[key] = reader


__all__ = ["LogReader", "borrow_reader"]
