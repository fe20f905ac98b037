"""The connection on which a server sends its binary log: logging in is PyMySQL's, the packets are cut here.

The server sends one packet per event. They are received in large pieces and cut into `Segment`s; nothing is parsed.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import numpy as np

from lakebed.cdc.sources.mysql.log.compressed import expanded
from lakebed.cdc.sources.mysql.log.events import Kind, Segment
from lakebed.cdc.sources.mysql.settings import ServerSettings, answering, rows
from lakebed.cdc.sources.mysql.tagged_ids import id_set
from lakebed.cdc.sources.mysql.values.gather import PADDING, Array
from lakebed.cleanup import on_failure
from lakebed.errors import LakebedError, NotFound, StorageError, Unsupported
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition

_DUMP: Final = 0x12
_DUMP_GTID: Final = 0x1E
PIECE: Final = 4 << 20
"""So much of the log is decoded at once, about."""
_CHECKSUM: Final = 4
_HEARTBEAT_S: Final = 5
_SILENCE_S: Final = 60


class BinlogDump:
    """A server's binary log from a position on. Ends when it is closed; the server sends what comes as it comes."""

    def __init__(
        self,
        settings: ServerSettings,
        start: MariaDbPosition | MySqlPosition | tuple[str, int],
        replica_id: int,
        piece_bytes: int = PIECE,
    ) -> None:
        self.settings = settings
        self._piece_bytes = piece_bytes
        self.connection = settings.connect_patiently(read_timeout=None)
        with on_failure(self.close):
            self._ask(start, replica_id)
        self._rest = b""

    def close(self) -> None:
        """Ends the connection."""
        # Not the protocol's farewell: the server is in the middle of sending.
        self.connection._force_close()

    def segments(self) -> Iterator[Segment]:
        """Stretches of the log. Blocks until there is something; heartbeats make an empty segment once in a while."""
        while True:
            data, filled = self._receive()
            starts, ends, rest = cut(data, filled)
            self._rest = bytes(data[rest:filled])
            if len(starts):
                starts += 1  # before each event stands a byte that says whether it is one
                buffer = np.frombuffer(data, np.uint8)
                self._refuse_errors(buffer, starts, ends)
                segment = Segment(buffer, starts, self._without_checksums(buffer, starts, ends))
                yield from expanded(segment, self._piece_bytes)

    def _ask(self, start: MariaDbPosition | MySqlPosition | tuple[str, int], replica_id: int) -> None:
        variables = {
            "master_heartbeat_period": str(_HEARTBEAT_S * 1_000_000_000),
            "source_heartbeat_period": str(_HEARTBEAT_S * 1_000_000_000),
            # Says that we know of checksums; the server then sends events as they stand in its files.
            "master_binlog_checksum": "@@GLOBAL.binlog_checksum",
            "source_binlog_checksum": "@@GLOBAL.binlog_checksum",
            "slave_uuid": f"'{UUID(int=replica_id)}'",
        }
        if not isinstance(start, MySqlPosition):
            variables["mariadb_slave_capability"] = "4"
        if isinstance(start, MariaDbPosition):
            variables["slave_connect_state"] = f"'{start}'"
            variables["slave_gtid_strict_mode"] = "0"
            variables["slave_gtid_ignore_duplicates"] = "0"
        rows(self.connection, "SET " + ", ".join(f"@{name} = {value}" for name, value in variables.items()))
        ((checksum,),) = rows(self.connection, "SELECT @@GLOBAL.binlog_checksum")
        self._checksum_size = 0 if checksum == "NONE" else _CHECKSUM
        if isinstance(start, MySqlPosition):
            ids = id_set(start.servers)
            payload = struct.pack("<BHIIQI", _DUMP_GTID, 0, replica_id, 0, 4, len(ids)) + ids
        else:
            file, place = start if isinstance(start, tuple) else ("", 4)
            payload = struct.pack("<BIHI", _DUMP, place, 0, replica_id) + file.encode()
        with answering(self.connection):
            self.connection._write_bytes(header(len(payload)) + payload)

    def _receive(self) -> tuple[bytearray, int]:
        """A buffer that begins with what was left over, and how much of it is filled: at least one whole packet."""
        wanted = self._piece_bytes
        if len(self._rest) >= HEADER:
            wanted = max(wanted, 2 * (len(self._rest) + packet_length(self._rest)))
        data = bytearray(wanted + PADDING)
        filled = len(self._rest)
        data[:filled] = self._rest
        view = memoryview(data)
        socket = self.connection._sock
        first = True
        while filled < wanted and (first or more_at_once(socket)):
            count = self._receive_into(socket, view[filled:wanted])
            if count == 0:
                break  # what came before may say why
            filled += count
            first = filled < HEADER or filled < HEADER + packet_length(data)
        view.release()
        if filled == len(self._rest):
            raise StorageError(
                f"the server {self.settings} ended the connection that reads its binary log",
                hint="was the server stopped, or does another reader use the same replica id?",
            )
        return data, filled

    def _receive_into(self, socket: Any, view: memoryview) -> int:
        deadline = time.monotonic() + _SILENCE_S
        socket.settimeout(_SILENCE_S)
        try:
            count: int = socket.recv_into(view)
        except OSError as error:
            silent = time.monotonic() >= deadline
            reason = f"was silent for {_SILENCE_S} s" if silent else f"broke: {error}"
            raise StorageError(
                f"the connection that reads the binary log of {self.settings} {reason}",
                hint="the stream goes on from its last offset when it is started again",
            ) from error
        return count

    def _without_checksums(self, data: Any, starts: Any, ends: Any) -> Any:
        """Where events end without their checksums. Each file of the log says in its description if it has any."""
        sizes = np.full(len(starts), self._checksum_size)
        for i in np.flatnonzero(data[starts + 4] == Kind.FORMAT_DESCRIPTION):
            # The last byte of the description is the way of the checksum; its own checksum is always there.
            self._checksum_size = _CHECKSUM if data[ends[i] - _CHECKSUM - 1] == 1 else 0
            sizes[i:] = self._checksum_size
            sizes[i] = _CHECKSUM
        return ends - sizes

    def _refuse_errors(self, data: Any, starts: Any, ends: Any) -> None:
        states = data[starts - 1]
        if not states.any():
            return
        bad = int(np.flatnonzero(states)[0])
        if states[bad] == 0xFF:
            body = data[starts[bad] : ends[bad]].tobytes()
            raise _refusal(self.settings, int.from_bytes(body[:2], "little"), body[2:].decode("utf-8", "replace"))
        raise StorageError(
            f"the server {self.settings} ended the stream of its binary log", hint="start again: nothing is lost"
        )


def _refusal(settings: ServerSettings, code: int, text: str) -> LakebedError:
    text = text[6:] if text.startswith("#") else text
    if code == 1236 and ("purged" in text or "not in the master's binlog" in text or "Could not find" in text):
        return NotFound(
            f"the binary log of {settings} no longer holds what comes after the last offset: {text}",
            hint="changes are lost to this stream: start it with a new checkpoint, which copies the tables again; "
            "to keep logs for longer SET GLOBAL binlog_expire_logs_seconds = 604800 and write it into the server's "
            "configuration",
        )
    if code in (1045, 1227):
        return Unsupported(
            f"{settings} may not read the binary log: {text}",
            hint=f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{settings.user}'@'%'",
        )
    return StorageError(
        f"the server {settings} refuses its binary log (error {code}): {text}", hint="see its error log"
    )


# ------------------------------------------------------------------------------------------------------------------
# Packets of the MySQL protocol, cut out of what a socket delivered: the one loop that looks at packets one by one.


_LARGEST: Final = 0xFFFFFF
HEADER: Final = 4
_LENGTH: Final = struct.Struct("<I")


def packet_length(data: bytes | bytearray, at: int = 0) -> int:
    """Bytes of the packet whose header stands there."""
    return int(_LENGTH.unpack_from(data, at)[0]) & _LARGEST


def header(length: int, number: int = 0) -> bytes:
    """The header of a packet."""
    return _LENGTH.pack(length | number << 24)


def cut(data: bytearray, filled: int) -> tuple[Array, Array, int]:
    """Where the contents of whole messages begin and end, and where the first begins that is not whole.

    A message of 16 MiB or more comes in several packets; its parts are moved together within the buffer.
    """
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    unpack = _LENGTH.unpack_from
    while at + HEADER <= filled:
        length = unpack(data, at)[0] & _LARGEST
        end = at + HEADER + length
        if end > filled:
            break
        behind = end
        if length == _LARGEST:
            joined = _join(data, at, filled)
            if joined is None:
                break
            end, behind = joined
        starts.append(at + HEADER)
        ends.append(end)
        at = behind
    return np.array(starts, np.int64), np.array(ends, np.int64), at


def _join(data: bytearray, at: int, filled: int) -> tuple[int, int] | None:
    """Moves the parts of a message together: where it ends then, and where its packets end. None if some lack."""
    parts: list[tuple[int, int]] = []
    place = at
    length = _LARGEST
    while length == _LARGEST:
        if place + HEADER > filled:
            return None
        length = packet_length(data, place)
        parts.append((place + HEADER, place + HEADER + length))
        place += HEADER + length
    if place > filled:
        return None
    end = parts[0][1]
    for low, high in parts[1:]:
        data[end : end + high - low] = data[low:high]
        end += high - low
    return end, place


def more_at_once(socket: Any) -> bool:
    """Whether a socket has more to give without waiting."""
    if getattr(socket, "pending", lambda: 0)():  # what TLS has decrypted already
        return True
    readable, _, _ = select.select([socket], [], [], 0)
    return bool(readable)


__all__ = ["HEADER", "PIECE", "BinlogDump", "cut", "header", "more_at_once", "packet_length"]
