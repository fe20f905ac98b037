"""One replication connection that stays open: receives the log as it is written and keeps it until it is committed.

Runs in a thread of the process that plans batches. Raw messages are gathered to segments; large amounts go to files
that tasks can read. The server is told to forget only what `forget` names. When the connection is lost, everything that
is not committed is dropped and received again: repeating is always right.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.connect import connect, first_line, translated
from lakebed.cdc.sources.postgres.lsn import format_lsn
from lakebed.cdc.sources.postgres.messages import MICROSECONDS_1970_TO_2000, Messages
from lakebed.cdc.sources.postgres.names import quote_name, quote_option
from lakebed.cdc.sources.postgres.peek import MESSAGES_PER_CHUNK
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.slot import require_slot, slot_in_use
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.errors import LakebedError, StorageError

if TYPE_CHECKING:
    import psycopg

_SEGMENT_BYTES = 8 << 20
_MEMORY_BYTES = 64 << 20
_INLINE_BYTES = 4 << 20
_SPOOL_BYTES = 8 << 30
_STATUS_S = 5.0
_IDLE_S = 0.2
_HEADER_BYTES = 25


@dataclass(slots=True)
class Segment:
    """Messages of transactions from `first` to `last`, by where their commits begin. In memory or in a file."""

    first: int
    last: int
    size_bytes: int
    data: bytes | None = None
    path: str | None = None


class ReplicationStream:
    """Receives from `start` on. All methods but `_run` and what it calls belong to the planning thread."""

    def __init__(self, settings: PostgresSettings, state: SourceState, start: int) -> None:
        self._settings = settings
        self._state = state
        self._lock = threading.Condition()
        self._committed = start
        self._segments: list[Segment] = []
        self._reset(start)
        self._error: LakebedError | None = None
        self._is_stopped = False
        state.clear_segments()
        self._thread = threading.Thread(target=self._run, name="lakebed-replication", daemon=True)
        self._thread.start()

    # --- for the planner --------------------------------------------------------------------------------------------

    def complete_lsn(self) -> int:
        """All transactions whose commit begins before this position have been received."""
        with self._lock:
            self._raise()
            return self._complete

    def has_changes(self, start: int) -> bool:
        """Whether a transaction from `start` on was received."""
        with self._lock:
            return self._last_commit >= start

    def segments(self, start: int, end: int) -> list[Segment]:
        """What was received from `start` to `end`; waits until all of it is there."""
        deadline = time.monotonic() + self._settings.wait_ms / 1000
        with self._lock:
            while self._complete < end:
                self._raise()
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"{self._settings.place} has not sent its log up to {format_lsn(end)}",
                        hint="see the server's log; restart the sync, or raise `wait_ms`",
                    )
                self._lock.wait(_IDLE_S)
            self._cut()
            found = [segment for segment in self._segments if segment.last >= start and segment.first < end]
            if sum(segment.size_bytes for segment in found) > _INLINE_BYTES:
                for segment in found:
                    self._spill(segment)
            return [Segment(one.first, one.last, one.size_bytes, one.data, one.path) for one in found]

    def forget(self, lsn: int) -> None:
        """Everything before a position is committed: the server is told so, and what is kept of it is removed."""
        with self._lock:
            self._committed = max(self._committed, lsn)
            gone = [segment for segment in self._segments if segment.last < lsn]
            self._segments = [segment for segment in self._segments if segment.last >= lsn]
            self._status_due = 0.0
        for segment in gone:
            if segment.path is not None:
                self._state.delete_segment(segment.path)

    def stop(self) -> None:
        """Ends the connection."""
        self._is_stopped = True
        self._thread.join(timeout=10)
        with contextlib.suppress(LakebedError):
            self._state.clear_segments()

    def _raise(self) -> None:
        if self._error is not None:
            # A new one each time: the old would gather a traceback with every question.
            raise type(self._error)(self._error.message, hint=self._error.hint)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _reset(self, start: int) -> None:
        self._segments = []
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_first = -1
        self._relations: dict[bytes, bytes] = {}
        self._known: list[bytes] = []
        self._commit = -1
        self._complete = start
        self._last_commit = -1
        self._status_due = 0.0

    def _run(self) -> None:
        import psycopg

        while not self._is_stopped:
            try:
                with contextlib.closing(connect(self._settings, replication=True, patient=True)) as connection:
                    self._begin(connection)
                    self._receive(connection)
            except psycopg.OperationalError:
                time.sleep(_IDLE_S)  # the server went away: begin again behind what is committed
            except psycopg.Error as error:
                self._fail(translated(self._settings, error))
                return
            except LakebedError as error:
                self._fail(error)
                return

    def _fail(self, error: LakebedError) -> None:
        with self._lock:
            self._error = error
            self._lock.notify_all()

    def _begin(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg
        from psycopg.pq import ConnStatus, ExecStatus

        settings = self._settings
        with connect(settings, patient=True) as asking:
            require_slot(asking, settings, self._committed)
        with self._lock:
            for segment in self._segments:
                if segment.path is not None:
                    self._state.delete_segment(segment.path)
            self._reset(self._committed)
        command = (
            f"START_REPLICATION SLOT {quote_name(settings.slot)} LOGICAL {format_lsn(self._committed)} "
            f"(proto_version '1', publication_names {quote_option(quote_name(settings.publication))})"
        )
        deadline = time.monotonic() + settings.wait_ms / 1000
        while not self._is_stopped:
            result = connection.pgconn.exec_(command.encode())
            if result.status == ExecStatus.COPY_BOTH:
                return
            text = result.get_error_message()
            if connection.pgconn.status != ConnStatus.OK:
                raise psycopg.OperationalError(text)  # the server went away
            if "is active for PID" not in text or time.monotonic() > deadline:
                error = StorageError(text, hint="see the server's log")
                raise slot_in_use(settings, Exception(text)) if "is active for PID" in text else error
            time.sleep(_IDLE_S)

    def _receive(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg

        raw = connection.pgconn
        while not self._is_stopped:
            with self._lock:
                wal_end, reply = self._drain(raw)
                if wal_end > self._complete and (self._commit < 0 or wal_end <= self._commit):
                    self._complete = wal_end
                self._lock.notify_all()
                is_due = reply or time.monotonic() >= self._status_due
                is_full = sum(segment.size_bytes for segment in self._segments) > _SPOOL_BYTES
            if is_due:
                self._send_status(raw)
            timeout = min(_IDLE_S, max(self._status_due - time.monotonic(), 0.01))
            if is_full:
                time.sleep(timeout)  # the server waits with us
                continue
            readable, _, _ = select.select([raw.socket], [], [], timeout)
            if readable:
                raw.consume_input()
            if raw.status != psycopg.pq.ConnStatus.OK:
                raise psycopg.OperationalError("the replication connection was lost")

    def _drain(self, raw: Any) -> tuple[int, bool]:
        """Takes over all that has arrived; the last position that the server named, and if it wants an answer."""
        import psycopg

        wal_end, reply = -1, False
        pending, get = self._pending, raw.get_copy_data
        while True:
            length, data = get(1)
            if length <= 0:
                if length == -1:
                    result = raw.get_result()
                    text = result.get_error_message() if result is not None else "the server ended the stream"
                    raise psycopg.OperationalError(first_line(Exception(text)))
                return wal_end, reply
            message = bytes(data)
            if message[0] == 0x77:  # w: a piece of the log, behind a header
                tag = message[_HEADER_BYTES]
                if tag == 0x42:  # B: where the transaction's commit begins
                    self._commit = int.from_bytes(message[_HEADER_BYTES + 1 : _HEADER_BYTES + 9], "big")
                    if self._pending_first < 0:
                        self._pending_first = self._commit
                elif tag == 0x43:  # C: where the commit record ends
                    self._last_commit, self._commit = self._commit, -1
                    end = int.from_bytes(message[_HEADER_BYTES + 10 : _HEADER_BYTES + 18], "big")
                    self._complete = max(self._complete, end)
                elif tag == 0x52:  # R: comes once for all segments
                    self._relations[message[_HEADER_BYTES + 1 : _HEADER_BYTES + 5]] = message
                pending.append(message)
                self._pending_bytes += length
                if self._pending_bytes >= _SEGMENT_BYTES or len(pending) >= MESSAGES_PER_CHUNK:
                    self._cut()
                    pending = self._pending
            else:  # k: a sign of life
                wal_end = max(wal_end, int.from_bytes(message[1:9], "big"))
                reply = reply or message[17] != 0

    def _cut(self) -> None:
        """Makes a segment of what is pending. It begins with the descriptions of all tables known by now."""
        if not self._pending:
            return
        last = self._commit if self._commit >= 0 else self._last_commit
        first = self._pending_first if self._pending_first >= 0 else last
        data = Messages.of([*self._known, *self._pending], _HEADER_BYTES).to_bytes()
        self._segments.append(Segment(first, last, len(data), data))
        self._known = list(self._relations.values())
        self._pending, self._pending_bytes = [], 0
        self._pending_first = self._commit
        in_memory = [segment for segment in self._segments if segment.data is not None]
        if sum(segment.size_bytes for segment in in_memory) > _MEMORY_BYTES:
            for segment in in_memory:
                self._spill(segment)

    def _spill(self, segment: Segment) -> None:
        if segment.data is not None:
            segment.path, segment.data = self._state.write_segment(segment.data), None

    def _send_status(self, raw: Any) -> None:
        """Tells the server what it may forget: what is committed, never more."""
        with self._lock:
            lsn = self._committed.to_bytes(8, "big")
            self._status_due = time.monotonic() + _STATUS_S
        now = time.time_ns() // 1000 - MICROSECONDS_1970_TO_2000
        raw.put_copy_data(b"r" + lsn + lsn + lsn + now.to_bytes(8, "big") + b"\0")
        raw.flush()


__all__ = ["ReplicationStream", "Segment"]
