"""Decides batch by batch what is read next: parts of the copy first, then the log up to where it is safe.

Lives on the driver for as long as the stream runs, and knows nothing of Spark. Everything it says can be said again
after a restart: it is computed from the offsets, which Spark keeps, and from the state beside the checkpoint.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.postgres.connect import connect, translated
from lakebed.cdc.sources.postgres.copy.filter import TableFilter, table_filters
from lakebed.cdc.sources.postgres.copy.read import copy_part
from lakebed.cdc.sources.postgres.discover import Discovery
from lakebed.cdc.sources.postgres.log.messages import Messages
from lakebed.cdc.sources.postgres.log.peek import MESSAGES_PER_CHUNK, peek
from lakebed.cdc.sources.postgres.log.replication import ReplicationStream, Segment
from lakebed.cdc.sources.postgres.names import Offset, parse_lsn
from lakebed.cdc.sources.postgres.prepare import prepare
from lakebed.cdc.sources.postgres.server.slot import advance_slot, require_slot
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import CopiedPart, CopyPart, SourceState
from lakebed.cdc.sources.postgres.stream_read import SchemaNotice, read_stream
from lakebed.errors import InvalidData, LakebedError
from lakebed.records import dataclass

if TYPE_CHECKING:
    import psycopg

Answer = TypeVar("Answer")

_PEEKED_BYTES: Final = 32 << 20
"""So much of the log is looked at in one go by a stream that ends; for more, a connection is kept."""
_LEAST_BATCH_BYTES: Final = 64 << 20
_PIECE_BYTES: Final = 32 << 20
_MOST_PIECES: Final = 16
_ORDINAL_BITS: Final = 32
_ASK_S: Final = 1.0
"""So often it is looked whether somebody has asked for a new copy."""


@dataclass(frozen=True, slots=True)
class CopyPiece:
    """A task's work: one part of the copy."""

    part: CopyPart


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A task's work: a piece of the log. Without `segments` the task looks at the slot itself."""

    start: int
    end: int
    segments: tuple[Segment, ...] | None
    filters: Mapping[int, TableFilter]
    notices: tuple[SchemaNotice, ...]
    number: int = 0
    """Among the pieces of a batch, which are decoded at the same time."""


def read_piece(settings: PostgresSettings, state: SourceState, piece: CopyPiece | LogPiece) -> Iterator[pa.RecordBatch]:
    """The envelope rows of a piece."""
    if isinstance(piece, CopyPiece):
        yield from copy_part(settings, state, piece.part)
        return
    messages = peek(settings, piece.start, piece.end) if piece.segments is None else _stored(state, piece.segments)
    first = piece.number << _ORDINAL_BITS
    for batch in read_stream(settings, state, piece.start, piece.end, messages, piece.filters, piece.notices):
        ordinals, *others = batch.columns
        yield pa.RecordBatch.from_arrays([pc.add(ordinals, first), *others], schema=batch.schema)


def _stored(state: SourceState, segments: tuple[Segment, ...]) -> Iterator[Messages]:
    for segment in segments:
        data = segment.data if segment.data is not None else state.read_segment(segment.path or "")
        yield from Messages.from_bytes(data).pieces(MESSAGES_PER_CHUNK)


def _parts(segments: Sequence[Segment]) -> list[tuple[Segment, ...]]:
    """Segments that tasks decode at the same time: each has what it needs to be decoded by itself."""
    total = sum(segment.size_bytes for segment in segments)
    wanted = max(1, min(_MOST_PIECES, total // _PIECE_BYTES))
    parts: list[list[Segment]] = [[]]
    size_bytes = 0
    for segment in segments:
        if parts[-1] and size_bytes >= len(parts) * total / wanted:
            parts.append([])
        parts[-1].append(segment)
        size_bytes += segment.size_bytes
    return [tuple(part) for part in parts]


def _placed(notices: Sequence[SchemaNotice], ends: Sequence[int]) -> list[tuple[SchemaNotice, ...]]:
    """The notices of each part: one goes with the first in which changes may lie behind it, or else with the last."""
    found: list[list[SchemaNotice]] = [[] for _ in ends]
    for notice in notices:
        part = next((number for number, end in enumerate(ends) if end >= notice.lsn), len(ends) - 1)
        found[part].append(notice)
    return [tuple(mine) for mine in found]


def _flushed_lsn(connection: psycopg.Connection[Any], settings: PostgresSettings, start: int) -> int:
    """Where the log ends, if the slot still has everything from `start` on."""
    require_slot(connection, settings, start)
    row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    return parse_lsn(row[0])


def _move_log(connection: psycopg.Connection[Any]) -> None:
    """Writes a few bytes that nobody is sent, so that there is a position behind what was seen."""
    connection.execute("SELECT pg_logical_emit_message(true, 'lakebed', '')")


class StreamPlanner:
    """Offsets and pieces of one stream."""

    def __init__(self, settings: PostgresSettings, state: SourceState) -> None:
        self._settings = settings
        self._state = state
        self._discovery = Discovery(settings, state)
        self._connection: psycopg.Connection[Any] | None = None
        self._stream: ReplicationStream | None = None
        self._is_finite = False
        self._last_lsn: int | None = None
        self._looked_at = self._asked_at = -float("inf")
        self._moved_at = time.monotonic()
        self._copied: dict[int, CopiedPart] = {}
        self._carried: dict[int, tuple[SchemaNotice, ...]] = {}
        self._forgotten: set[int] = set()
        self._is_begun = False

    # --- offsets ----------------------------------------------------------------------------------------------------

    def initial(self) -> Offset:
        """Where a new stream begins: makes publication and slot, if they are not there."""
        return Offset(0, prepare(self._settings, self._state))

    def end_at_now(self) -> None:
        """The stream ends with what is there now, and looks at the slot instead of keeping a connection."""
        self._is_finite = True

    def latest(self, start: Offset, limit_bytes: int | None) -> Offset:
        """How far the next batch goes. The same as `start` if there is nothing to do."""
        self._look_around(start)
        total = len(self._state.parts())
        if start.chunks < total:
            return Offset(min(total, start.chunks + self._settings.copy_chunks_per_batch), start.lsn)
        end = self._log_end(start, limit_bytes)
        if limit_bytes is not None:
            end = min(end, start.lsn + limit_bytes)
        if end <= start.lsn and self._discovery.due(start.lsn) and not self._is_finite:
            self._ask(_move_log)  # nothing changes any more, and there is something to tell
        if end <= start.lsn or self._is_quiet(start, end):
            return start
        self._moved_at = time.monotonic()
        return Offset(start.chunks, end)

    def _log_end(self, start: Offset, limit_bytes: int | None) -> int:
        if not self._is_finite:
            if self._uses_replication(start.lsn):
                return self._replication(start.lsn).complete_lsn()
            return self._ask(lambda connection: _flushed_lsn(connection, self._settings, start.lsn))
        if self._last_lsn is None:
            self._last_lsn = self._ask(lambda connection: _flushed_lsn(connection, self._settings, start.lsn))
        if not self._uses_replication(start.lsn):
            return self._last_lsn
        # A batch takes what is there, but not much less than a good one: the next arrives while it is written.
        wanted = min(self._last_lsn, start.lsn + min(limit_bytes or _LEAST_BATCH_BYTES, _LEAST_BATCH_BYTES))
        return min(self._last_lsn, self._replication(start.lsn).complete_lsn(wanted))

    def _is_quiet(self, start: Offset, end: int) -> bool:
        """Whether the log moved without a change of ours, and it is too early to tell the server to forget it."""
        if self._is_finite or not self._uses_replication(start.lsn) or self._discovery.due(end):
            return False
        if start.lsn < self._copied_until(start) <= end:
            return False  # behind this position all tables are as of one moment, which somebody may wait for
        if self._replication(start.lsn).has_changes(start.lsn):
            return False
        return time.monotonic() < self._moved_at + self._settings.heartbeat_ms / 1000

    def _look_around(self, start: Offset) -> None:
        now = time.monotonic()
        is_due = now >= self._looked_at + self._settings.discovery_ms / 1000 and self._last_lsn is None
        if not is_due and now >= self._asked_at + _ASK_S and self._last_lsn is None:
            self._asked_at = now
            is_due = bool(self._state.requests.all())
        if not is_due and not self._discovery.waits_for(start.lsn):
            return
        self._ask(lambda connection: self._discovery.look(connection, start.lsn))
        self._looked_at = now

    # --- pieces -----------------------------------------------------------------------------------------------------

    def pieces(self, start: Offset, end: Offset) -> list[CopyPiece | LogPiece]:
        """What tasks read for the batch between two offsets."""
        if end.chunks > start.chunks:
            return [CopyPiece(part) for part in self._state.parts()[start.chunks : end.chunks]]
        if end.lsn <= start.lsn:
            return []
        if not self._is_begun:
            self._state.clear_payloads()
            self._is_begun = True
        self._carried[end.lsn] = self._discovery.due(end.lsn)
        filters, notices = self._filters(start), self._carried[end.lsn]
        if not self._uses_replication(start.lsn, end.lsn):
            return [LogPiece(start.lsn, end.lsn, None, filters, notices)]
        parts = _parts(self._replication(start.lsn).segments(start.lsn, end.lsn))
        told = _placed(notices, [part[-1].last if part else start.lsn for part in parts])
        return [
            LogPiece(start.lsn, end.lsn, part, filters, mine, number)
            for number, (part, mine) in enumerate(zip(parts, told, strict=True))
        ]

    def _filters(self, start: Offset) -> Mapping[int, TableFilter]:
        parts = self._state.parts()[: start.chunks]
        return table_filters([(part, self._copied_part(part)) for part in parts], start.lsn)

    def _copied_until(self, start: Offset) -> int:
        """Where the log was when the last part of the copy was read."""
        return max((self._copied_part(part).lsn for part in self._state.parts()[: start.chunks]), default=0)

    def _copied_part(self, part: CopyPart) -> CopiedPart:
        if part.index not in self._copied:
            copied = self._state.copied(part.index)
            if copied is None:
                raise InvalidData(
                    f"part {part.index} of the copy ({part.schema}.{part.table}) is not in {self._state.root}",
                    hint="the directory beside the checkpoint was changed; restore it, or begin with a new checkpoint",
                )
            self._copied[part.index] = copied
        return self._copied[part.index]

    # --- ends -------------------------------------------------------------------------------------------------------

    def commit(self, end: Offset) -> None:
        """The server may forget what is before `end`, and so may we.

        INVARIANT: Spark calls this when the batch is noted, which is after all its tables were committed. A slot can
        not be moved back: what is forgotten before it is in the lake is lost.
        """
        self._discovery.told(self._carried.pop(end.lsn, ()))
        if self._stream is not None:
            self._stream.forget(end.lsn)
        else:
            self._ask(lambda connection: advance_slot(connection, self._settings, end.lsn))
        self._state.delete_payloads(end.lsn)
        self._forget_copies(end)

    def _forget_copies(self, end: Offset) -> None:
        """Removes rows of the copy once the stream is past all snapshots."""
        parts = self._state.parts()
        if end.chunks < len(parts) or len(self._forgotten) == len(parts):
            return
        copied = [self._copied_part(part) for part in parts]
        if all(part.lsn <= end.lsn for part in copied):
            for index, part in enumerate(copied):
                if index not in self._forgotten:
                    self._state.forget(part)
                    self._forgotten.add(index)

    def stop(self) -> None:
        """Lets go of connections, and of what a next run would read again."""
        with contextlib.suppress(LakebedError):
            self._state.clear_payloads()
        if self._stream is not None:
            self._stream.stop()
            self._stream = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- connections ------------------------------------------------------------------------------------------------

    def _uses_replication(self, start: int, end: int | None = None) -> bool:
        """Whether a connection is kept: to follow without end, and to catch up on much, which then comes meanwhile."""
        if self._settings.mode != "auto":
            return self._settings.mode == "replication"
        if not self._is_finite or self._stream is not None:
            return True
        last = end if self._last_lsn is None else self._last_lsn
        return last is not None and last - start > _PEEKED_BYTES

    def _replication(self, start: int) -> ReplicationStream:
        if self._stream is None:
            self._stream = ReplicationStream(self._settings, self._state, start)
        return self._stream

    def _ask(self, question: Callable[[psycopg.Connection[Any]], Answer]) -> Answer:
        """Asks through the connection that is kept; through a new one if the server went away in the meantime."""
        import psycopg

        deadline = time.monotonic() + self._settings.wait_ms / 1000
        while True:
            if self._connection is None:
                self._connection = connect(self._settings, patient=True)
            try:
                return question(self._connection)
            except psycopg.OperationalError as error:
                self._connection.close()
                self._connection = None
                if time.monotonic() > deadline:
                    raise translated(self._settings, error) from error
            except psycopg.Error as error:
                raise translated(self._settings, error) from error


__all__ = ["CopyPiece", "LogPiece", "StreamPlanner", "read_piece"]
