"""Rows of a COPY and messages of a replication, thousands at a time: read from the socket where nothing is encrypted.

libpq hands out one message a call, which takes Python longer than the server takes to make it. The protocol's frames
are simple: a letter, a length, the rest. So once libpq has connected and the server knows who we are, the command is
sent and its answer read here; libpq takes no part in it any more. On encrypted connections it has to.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lakebed.cdc.sources.postgres.connect import first_line
from lakebed.cdc.sources.postgres.log.messages import Messages, Numbers
from lakebed.cleanup import on_failure

if TYPE_CHECKING:
    import psycopg

FRAME_BYTES: Final = 5
"""A letter and a length in front of each message."""

_FRAME = struct.Struct(">xI")
_COPY_DATA, _COPY_OUT, _COPY_BOTH, _ERROR, _READY = b"dHWEZ"
_DONE = frozenset(b"cCZ")
"""What ends a copy: that it is done, how many rows there were, and that the server is ready for more."""
_PASSING = frozenset(b"NSA")
"""Messages that may come at any time and say nothing to us: notices, settings, notifications."""

_ROOM_BYTES = 1 << 20
_MOST_BYTES = 4 << 20
_GATHER_S = 0.005
_GATHERED_BYTES = 256 << 10
"""The server sends each change by itself. Whoever reads as soon as there is one reads a few dozen at a time, at five
times the CPU for us and a third more for the server; so behind a few, more are let come together."""
_READS_OF_A_RECORD = 3
"""After so many the last part of an encrypted record is read, of which the socket knows nothing any more."""
_ENCRYPTED = b"SELECT 1 FROM pg_stat_gssapi WHERE pid = pg_backend_pid() AND encrypted"


class CopyRefused(Exception):
    """The server does not begin to copy; the connection is as before."""


class CopyFrames:
    """A connection that copies out, or both ways; the latter must not end."""

    def __init__(self, connection: psycopg.Connection[Any], command: str) -> None:
        self._raw = connection.pgconn
        self._is_plain = not _is_encrypted(self._raw)
        self._ends = False
        self.is_over = False
        """Whether all is received, and the connection as before."""
        self._buffer = bytearray(_ROOM_BYTES)
        self._filled = 0
        self._trickles = False
        self._socket: socket.socket | None = None
        if self._is_plain:
            self._socket = socket.socket(fileno=os.dup(self._raw.socket))
            with on_failure(self._socket.close):
                self._begin(command.encode())
        else:
            self._begin_by_libpq(command.encode())

    def receive(self, timeout_s: float) -> Messages:
        """What has arrived, with the frame in front of each message; waits so long for the first."""
        if self._trickles:
            time.sleep(_GATHER_S)
        # Some may be here already: a short answer comes together with the news that it begins.
        arrived = self._arrived(0.0)
        if not len(arrived) and not self.is_over:
            arrived = self._arrived(timeout_s)
        self._trickles = 0 < len(arrived.data) < _GATHERED_BYTES
        return arrived

    def _arrived(self, timeout_s: float) -> Messages:
        readable, _, _ = select.select([self._raw.socket], [], [], timeout_s)
        if self._socket is None:
            return self._received_by_libpq()
        if readable:
            self._fill(self._socket)
        return self._cut()

    def send(self, message: bytes) -> None:
        """Sends one message."""
        if self._socket is None:
            self._raw.put_copy_data(message)
            self._raw.flush()
        else:
            self._send(b"d" + (len(message) + 4).to_bytes(4, "big") + message)

    def close(self) -> None:
        """Lets go of the socket; the connection is closed by who opened it."""
        if self._socket is not None:
            self._socket.close()

    # --- by ourselves -----------------------------------------------------------------------------------------------

    def _begin(self, command: bytes) -> None:
        import psycopg

        assert self._socket is not None
        self._send(b"Q" + (len(command) + 5).to_bytes(4, "big") + command + b"\0")
        error = ""
        while True:
            select.select([self._raw.socket], [], [], None)
            self._fill(self._socket)
            at = 0
            while (end := self._end_of(at)) is not None:
                kind, body = self._buffer[at], bytes(self._buffer[at + FRAME_BYTES : end])
                at = end
                if kind in (_COPY_BOTH, _COPY_OUT):
                    self._ends = kind == _COPY_OUT
                    self._drop(at)
                    return
                if kind == _ERROR:
                    error = _error_text(body)
                elif kind == _READY:
                    self._drop(at)
                    raise CopyRefused(error)
                elif kind not in _PASSING:
                    raise psycopg.OperationalError(f"the server answered with {chr(kind)!r} instead of a stream")
            self._drop(at)

    def _fill(self, source: socket.socket) -> None:
        """Takes over what is there, up to a few megabytes, so that everybody gets a turn."""
        import psycopg

        while self._filled < _MOST_BYTES or self._end_of(0) is None:
            if len(self._buffer) - self._filled < _ROOM_BYTES:
                self._buffer += bytes(max(_ROOM_BYTES, len(self._buffer)))
            try:
                with memoryview(self._buffer) as view:
                    count = source.recv_into(view[self._filled :])
            except BlockingIOError:
                return
            except OSError as error:
                raise psycopg.OperationalError(first_line(error)) from error
            if not count:
                raise psycopg.OperationalError("the server closed the connection")
            self._filled += count

    def _end_of(self, at: int) -> int | None:
        """Where the message that begins there ends; None if it is not all there."""
        if at + FRAME_BYTES > self._filled:
            return None
        end: int = at + 1 + _FRAME.unpack_from(self._buffer, at)[0]
        return end if end <= self._filled else None

    def _cut(self) -> Messages:
        """All whole messages."""
        import psycopg

        ends, at = [], 0
        buffer, filled, length_at = self._buffer, self._filled - FRAME_BYTES, _FRAME.unpack_from
        # A length tells where the next begins, so nothing but a loop finds them all.
        while at <= filled:
            end = at + 1 + length_at(buffer, at)[0]
            if end > self._filled:
                break
            ends.append(end)
            at = end
        with memoryview(buffer) as view:
            data = bytes(view[:at])
        self._drop(at)
        borders: Numbers = np.array([0, *ends], np.int64)
        lengths = borders[1:] - borders[:-1]
        kinds = np.frombuffer(data, np.uint8)[borders[:-1]] if ends else np.zeros(0, np.uint8)
        is_data = kinds == _COPY_DATA
        others = set(kinds[~is_data].tolist()) - _PASSING
        if _ERROR in others:
            raise psycopg.OperationalError(_first_error(data, ends, lengths))
        if others - (_DONE if self._ends else frozenset()):
            raise psycopg.OperationalError("the server ended the stream")
        self.is_over = _READY in others
        messages = Messages(data, lengths, FRAME_BYTES)
        return messages if is_data.all() else messages.taken(is_data)

    def _drop(self, count: int) -> None:
        rest = self._buffer[count : self._filled]
        self._filled = len(rest)
        if len(self._buffer) > 4 * _MOST_BYTES and len(rest) < _MOST_BYTES:
            self._buffer = bytearray(_ROOM_BYTES + len(rest))  # it was a very long message
        self._buffer[: len(rest)] = rest

    def _send(self, data: bytes) -> None:
        import psycopg

        assert self._socket is not None
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                select.select([], [self._raw.socket], [], 1.0)
            except OSError as error:
                raise psycopg.OperationalError(first_line(error)) from error

    # --- through libpq ----------------------------------------------------------------------------------------------

    def _begin_by_libpq(self, command: bytes) -> None:
        import psycopg
        from psycopg.pq import ConnStatus, ExecStatus

        result = self._raw.exec_(command)
        if result.status in (ExecStatus.COPY_BOTH, ExecStatus.COPY_OUT):
            self._ends = result.status == ExecStatus.COPY_OUT
            return
        text = result.get_error_message()
        if self._raw.status != ConnStatus.OK:
            raise psycopg.OperationalError(text)  # the server went away
        raise CopyRefused(text)

    def _received_by_libpq(self) -> Messages:
        """All that is there. libpq takes one encrypted record at a time, and the server makes one of each message."""
        found: list[bytes] = []
        size_bytes = unchanged = 0
        while not self.is_over and size_bytes < _MOST_BYTES and unchanged < _READS_OF_A_RECORD:
            count = len(found)
            self._consume(found)
            size_bytes += sum(map(len, found[count:]))
            readable, _, _ = select.select([self._raw.socket], [], [], 0.0)
            unchanged = unchanged + 1 if len(found) == count and not readable else 0
        return Messages.of(found, FRAME_BYTES)

    def _consume(self, found: list[bytes]) -> None:
        """Reads once, and adds the messages that are whole now."""
        import psycopg

        self._raw.consume_input()
        if self._raw.status != psycopg.pq.ConnStatus.OK:
            raise psycopg.OperationalError("the replication connection was lost")
        while True:
            length, data = self._raw.get_copy_data(1)
            if length > 0:
                found.append(b"d" + (length + 4).to_bytes(4, "big") + bytes(data))
            elif length == 0:
                return
            elif self._ends and length == -1 and self._finished():
                self.is_over = True
                return
            else:
                result = self._raw.get_result()
                text = result.get_error_message() if result is not None else "the server ended the stream"
                raise psycopg.OperationalError(first_line(Exception(text)))

    def _finished(self) -> bool:
        from psycopg.pq import ExecStatus

        while (result := self._raw.get_result()) is not None:
            if result.status != ExecStatus.COMMAND_OK:
                return False
        return True


def _is_encrypted(raw: Any) -> bool:
    return bool(raw.ssl_in_use) or raw.exec_(_ENCRYPTED).ntuples > 0


def _first_error(data: bytes, ends: list[int], lengths: Any) -> str:
    for end, length in zip(ends, lengths.tolist(), strict=True):
        if data[end - length] == _ERROR:
            return _error_text(data[end - length + FRAME_BYTES : end])
    return "the server ended the stream"


def _error_text(body: bytes) -> str:
    """What an error says: fields of a letter and a text each."""
    fields = {field[:1]: field[1:].decode(errors="replace") for field in body.split(b"\0") if field}
    return fields.get(b"M", "the server refused")


__all__ = ["FRAME_BYTES", "CopyFrames", "CopyRefused"]
