"""One replication connection that stays open: receives the log as it is written and keeps it until it is committed.

Runs in a thread of the process that plans batches. Raw messages are gathered to segments; large amounts go to files
that tasks can read. The server is told to forget only what `forget` names. When the connection is lost, everything that
is not committed is dropped and received again: repeating is always right.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from lakebed.cdc.sources.postgres.connect import connect, translated
from lakebed.cdc.sources.postgres.log.frames import FRAME_BYTES, CopyFrames, CopyRefused
from lakebed.cdc.sources.postgres.log.messages import MICROSECONDS_1970_TO_2000, Messages, stored_pieces
from lakebed.cdc.sources.postgres.names import format_lsn, quote_name, quote_option
from lakebed.cdc.sources.postgres.server.slot import require_slot, slot_in_use
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.errors import LakebedError, StorageError
from lakebed.records import dataclass

if TYPE_CHECKING:
    import psycopg

_SEGMENT_BYTES = 8 << 20
_MEMORY_BYTES = 64 << 20
_INLINE_BYTES = 4 << 20
_SPOOL_BYTES = 8 << 30
_STATUS_S = 5.0
_IDLE_S = 0.2
_HEADER_BYTES = FRAME_BYTES + 25
"""In front of each message of the plugin: its frame, and where in the log it is from."""
_LOG = ord("w")
_BEGIN, _COMMIT, _RELATION = b"BCR"


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

    def complete_lsn(self, wanted: int = 0) -> int:
        """All transactions whose commit begins before this position have been received; waits until it is `wanted`."""
        with self._lock:
            self._wait_for(wanted)
            self._raise()
            return self._complete

    def has_changes(self, start: int) -> bool:
        """Whether a transaction from `start` on was received."""
        with self._lock:
            return self._last_commit >= start

    def segments(self, start: int, end: int) -> list[Segment]:
        """What was received from `start` to `end`; waits until all of it is there."""
        with self._lock:
            self._wait_for(end)
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

    def _wait_for(self, lsn: int) -> None:
        wait_s, begin = self._settings.wait_ms / 1000, time.monotonic()
        while self._complete < lsn:
            self._raise()
            if time.monotonic() > max(begin, self._heard_at) + wait_s:
                raise StorageError(
                    f"{self._settings.place} has not sent its log up to {format_lsn(lsn)}",
                    hint="see the server's log; restart the sync, or raise `wait_ms`",
                )
            self._lock.wait(_IDLE_S)

    def _raise(self) -> None:
        if self._error is not None:
            # A new one each time: the old would gather a traceback with every question.
            raise type(self._error)(self._error.message, hint=self._error.hint)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _reset(self, start: int) -> None:
        self._segments = []
        self._pending: list[Messages] = []
        self._pending_bytes = 0
        self._pending_first = -1
        self._relations: dict[bytes, bytes] = {}
        self._known: list[bytes] = []
        self._commit = -1
        self._open = b""
        self._complete = start
        self._received = 0
        self._heard_at = time.monotonic()
        self._last_commit = -1
        self._status_due = 0.0

    def _run(self) -> None:
        import psycopg

        while not self._is_stopped:
            try:
                with (
                    contextlib.closing(connect(self._settings, replication=True, patient=True)) as connection,
                    contextlib.closing(self._begin(connection)) as frames,
                ):
                    self._receive(frames)
            except psycopg.OperationalError as error:
                # The server went away: begin again behind what is committed. If it never sends anything, say why.
                if time.monotonic() > self._heard_at + self._settings.wait_ms / 1000:
                    self._fail(translated(self._settings, error))
                    return
                time.sleep(_IDLE_S)
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

    def _begin(self, connection: psycopg.Connection[Any]) -> CopyFrames:
        settings = self._settings
        with connect(settings, patient=True) as asking:
            require_slot(asking, settings, self._committed)
        with self._lock:
            for segment in self._segments:
                if segment.path is not None:
                    self._state.delete_segment(segment.path)
            heard_at = self._heard_at
            self._reset(self._committed)
            self._heard_at = heard_at
        command = (
            f"START_REPLICATION SLOT {quote_name(settings.slot)} LOGICAL {format_lsn(self._committed)} "
            f"(proto_version '1', publication_names {quote_option(quote_name(settings.publication))})"
        )
        deadline = time.monotonic() + settings.wait_ms / 1000
        while True:
            try:
                return CopyFrames(connection, command)
            except CopyRefused as refused:
                text = str(refused)
                if "is active for PID" not in text or time.monotonic() > deadline:
                    error = StorageError(text, hint="see the server's log")
                    raise slot_in_use(settings, refused) if "is active for PID" in text else error from refused
            time.sleep(_IDLE_S)

    def _receive(self, frames: CopyFrames) -> None:
        import psycopg

        timeout, begun = 0.0, time.monotonic()
        while not self._is_stopped:
            arrived = frames.receive(timeout)
            with self._lock:
                wants_answer = self._take(arrived)
                if len(arrived):
                    self._heard_at = time.monotonic()
                elif time.monotonic() > max(self._heard_at, begun) + self._settings.wait_ms / 1000:
                    raise psycopg.OperationalError("the server is silent: the network may be cut")
                self._lock.notify_all()
                is_due = wants_answer or time.monotonic() >= self._status_due
                is_full = sum(segment.size_bytes for segment in self._segments) > _SPOOL_BYTES
            if is_due:
                self._send_status(frames, is_asked=wants_answer)
            timeout = min(_IDLE_S, max(self._status_due - time.monotonic(), 0.01))
            while is_full and not self._is_stopped and time.monotonic() < self._status_due:
                time.sleep(timeout)  # the server waits with us
                is_full = sum(segment.size_bytes for segment in self._segments) > _SPOOL_BYTES

    def _take(self, arrived: Messages) -> bool:
        """Takes over what has arrived; whether the server wants an answer."""
        if not len(arrived):
            return False
        is_log = arrived.tags == _LOG
        wal_end, wants_answer = -1, False
        if not is_log.all():  # the others are signs of life
            signs = arrived.starts[~is_log]
            wal_end = int(arrived.int64(signs + 1).max())
            self._received = max(self._received, wal_end)
            wants_answer = bool(arrived.bytes[signs + 17].any())
            arrived = arrived.taken(is_log)
        messages = arrived.behind(_HEADER_BYTES)
        if len(messages):
            self._note(messages)
            self._pending.append(messages)
            self._pending_bytes += len(messages.data)
            if self._pending_bytes >= _SEGMENT_BYTES:
                self._cut()
        if wal_end > self._complete and (self._commit < 0 or wal_end <= self._commit):
            self._complete = wal_end
        return wants_answer

    def _note(self, messages: Messages) -> None:
        """Where transactions begin and end, and which tables are described."""
        begins, commits = np.flatnonzero(messages.tags == _BEGIN), np.flatnonzero(messages.tags == _COMMIT)
        if len(begins):
            lsns = messages.int64(messages.starts[begins[[0, -1]]] + 1)
            if self._pending_first < 0:
                self._pending_first = int(lsns[0])
            self._commit, self._open = int(lsns[1]), messages.whole(begins[-1])
        if len(commits):
            at = messages.starts[commits[-1:]]
            self._last_commit = int(messages.int64(at + 2)[0])
            self._complete = max(self._complete, int(messages.int64(at + 10)[0]))
            if not len(begins) or commits[-1] > begins[-1]:
                self._commit, self._open = -1, b""
        for index in np.flatnonzero(messages.tags == _RELATION).tolist():  # comes once for all segments
            whole = messages.whole(index)
            self._relations[whole[_HEADER_BYTES + 1 : _HEADER_BYTES + 5]] = whole

    def _cut(self) -> None:
        """Makes a segment of what is pending.

        It begins with the descriptions of all tables and the transaction that were known before, so that each segment
        can be decoded by itself.
        """
        if not self._pending:
            return
        last = self._commit if self._commit >= 0 else self._last_commit
        first = self._pending_first if self._pending_first >= 0 else last
        pieces = stored_pieces([Messages.of(self._known, _HEADER_BYTES), *self._pending])
        size_bytes = sum(map(len, pieces))
        if size_bytes >= _SEGMENT_BYTES:
            self._segments.append(Segment(first, last, size_bytes, path=self._state.write_segment(pieces)))
        else:
            self._segments.append(Segment(first, last, size_bytes, b"".join(pieces)))
        self._known = [*self._relations.values(), *([self._open] if self._open else [])]
        self._pending, self._pending_bytes = [], 0
        self._pending_first = self._commit
        in_memory = [segment for segment in self._segments if segment.data is not None]
        if sum(segment.size_bytes for segment in in_memory) > _MEMORY_BYTES:
            for segment in in_memory:
                self._spill(segment)

    def _spill(self, segment: Segment) -> None:
        if segment.data is not None:
            segment.path, segment.data = self._state.write_segment([segment.data]), None

    def _send_status(self, frames: CopyFrames, *, is_asked: bool) -> None:
        """Tells the server what it may forget, and asks for a sign of life.

        INVARIANT: what is committed, never what was merely received. The server keeps nothing behind the position that
        it is told, and what was received is gone with this process.

        A server that shuts down waits for everybody to have what it sent, and asks. It counts what is written where
        nobody says what is safe (0): so it is told, and may end, while its slot stays where it is.
        """
        with self._lock:
            safe = self._committed.to_bytes(8, "big")
            received = max(self._received, self._committed).to_bytes(8, "big")
            self._status_due = time.monotonic() + _STATUS_S
        now = (time.time_ns() // 1000 - MICROSECONDS_1970_TO_2000).to_bytes(8, "big")
        frames.send(b"r" + safe + safe + safe + now + (b"\0" if is_asked else b"\1"))
        if is_asked:
            frames.send(b"r" + received + bytes(8) + bytes(8) + now + b"\0")


__all__ = ["ReplicationStream", "Segment"]
