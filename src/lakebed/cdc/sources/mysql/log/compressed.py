"""Compressed parts of the binary log, unpacked before anything else looks at them.

MySQL compresses whole transactions (`binlog_transaction_compression`): one event holds all others of a transaction in a
stream of zstd. MariaDB compresses statements and rows one by one (`log_bin_compress`). Sessions may turn either on by
themselves, so both are always expected. A transaction is unpacked piece by piece: however well it was compressed, what
is in memory at once is one event of the log and a piece of what is in it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.mysql.log.events import HEADER, Kind, Segment, length_encoded
from lakebed.cdc.sources.mysql.values.gather import PADDING, Array
from lakebed.errors import CorruptFile, Unsupported

_PLAIN: Final = {
    Kind.QUERY_COMPRESSED: Kind.QUERY,
    Kind.WRITE_ROWS_COMPRESSED_1: Kind.WRITE_ROWS_1,
    Kind.UPDATE_ROWS_COMPRESSED_1: Kind.UPDATE_ROWS_1,
    Kind.DELETE_ROWS_COMPRESSED_1: Kind.DELETE_ROWS_1,
    Kind.WRITE_ROWS_COMPRESSED: Kind.WRITE_ROWS,
    Kind.UPDATE_ROWS_COMPRESSED: Kind.UPDATE_ROWS,
    Kind.DELETE_ROWS_COMPRESSED: Kind.DELETE_ROWS,
}
_IS_COMPRESSED: Final = np.isin(np.arange(256), [*_PLAIN, Kind.TRANSACTION_PAYLOAD])
_END_OF_FIELDS, _PAYLOAD_SIZE, _COMPRESSION = 0, 1, 2
_ZSTD, _NONE = 0, 255
_LENGTH_AT: Final = 9  # of an event, in its header


def expanded(segment: Segment, piece_bytes: int) -> Iterator[Segment]:
    """The same events, nothing of them compressed, in segments of about so many bytes."""
    compressed = np.flatnonzero(_IS_COMPRESSED[segment.kinds])
    if not len(compressed):
        yield segment
        return
    gathered = _Gathered()
    at = 0
    for index in compressed.tolist():
        gathered.add_events(segment, at, index)
        at = index + 1
        event = segment.bytes.data[segment.starts[index] : segment.ends[index]]
        of_transaction = segment.kinds[index] == Kind.TRANSACTION_PAYLOAD
        for content, ends in _contents(event, piece_bytes) if of_transaction else [_plain(event)]:
            gathered.add(content, ends)
            if gathered.size >= piece_bytes:
                yield gathered.take()
    gathered.add_events(segment, at, len(segment))
    if gathered.size:
        yield gathered.take()


class _Gathered:
    """Events from several buffers, on their way into one."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.size = 0
        self._parts: list[Array] = []
        self._starts: list[Array] = []
        self._ends: list[Array] = []

    def add_events(self, segment: Segment, low: int, high: int) -> None:
        """Some events of a segment, with whatever stands between them."""
        if high > low:
            first = segment.starts[low]
            self._append(
                segment.bytes.data[first : segment.ends[high - 1]],
                segment.starts[low:high] - first,
                segment.ends[low:high] - first,
            )

    def add(self, content: Array, ends: list[int]) -> None:
        """Whole events, one right behind the other."""
        self._append(content, np.array([0, *ends[:-1]], np.int64), np.array(ends, np.int64))

    def take(self) -> Segment:
        """A segment of what was gathered, which is forgotten."""
        data = np.concatenate([*self._parts, np.zeros(PADDING, np.uint8)])
        segment = Segment(data, np.concatenate(self._starts), np.concatenate(self._ends))
        self._forget()
        return segment

    def _append(self, part: Array, starts: Array, ends: Array) -> None:
        self._parts.append(part)
        self._starts.append(starts + self.size)
        self._ends.append(ends + self.size)
        self.size += len(part)


def _event_ends(data: bytes) -> list[int]:
    """Where each of some events ends: their headers tell how long they are. The last may lack its end."""
    ends: list[int] = []
    at = 0
    while at + HEADER <= len(data):
        length = int.from_bytes(data[at + _LENGTH_AT : at + _LENGTH_AT + 4], "little")
        if length < HEADER:
            raise _not_understood("has an event that is shorter than its header")
        if at + length > len(data):
            break
        at += length
        ends.append(at)
    return ends


def _contents(event: Array, piece_bytes: int) -> Iterator[tuple[Array, list[int]]]:
    """The events of a compressed transaction, in pieces of whole events, and where each of them ends."""
    begin, size, compression = _payload(event[: HEADER + 64].tobytes())
    payload = event[begin : begin + size]
    if len(payload) != size:
        raise _not_understood("ends before its time")
    rest = b""
    try:
        stream = _unpacked(pa.py_buffer(np.ascontiguousarray(payload)), compression)
        while data := stream.read(max(piece_bytes, len(rest))):
            data = rest + data
            ends = _event_ends(data)
            whole = ends[-1] if ends else 0
            rest = data[whole:]
            if whole:
                yield np.frombuffer(data, np.uint8)[:whole], ends
    except OSError as error:
        raise _not_understood("can not be unpacked") from error
    if rest:
        raise _not_understood("ends in the middle of an event")


def _unpacked(payload: pa.Buffer, compression: int) -> pa.NativeFile:
    packed = pa.BufferReader(payload)
    if compression == _NONE:
        return packed
    if compression == _ZSTD:
        return pa.CompressedInputStream(packed, "zstd")
    raise Unsupported(
        f"the binary log holds a transaction that is compressed in an unknown way (number {compression})",
        hint="SET GLOBAL binlog_transaction_compression = OFF, let clients connect anew, and start again with a new "
        "checkpoint",
    )


def _payload(head: bytes) -> tuple[int, int, int]:
    """Where the payload of a compressed transaction begins, its size, and how it is compressed."""
    at, size, compression = HEADER, -1, _ZSTD
    while True:
        field, at = length_encoded(head, at)
        if field == _END_OF_FIELDS:
            break
        length, at = length_encoded(head, at)
        if field == _PAYLOAD_SIZE:
            size, _ = length_encoded(head, at)
        elif field == _COMPRESSION:
            compression, _ = length_encoded(head, at)
        at += length
    return at, size, compression


def _not_understood(what: str) -> CorruptFile:
    return CorruptFile(
        f"a compressed transaction of the binary log {what}", hint="this is a fault of the reader; report it"
    )


def _plain(compressed: Array) -> tuple[Array, list[int]]:
    """An event that MariaDB compressed by itself, and where it ends."""
    event = compressed.tobytes()
    kind = Kind(event[4])
    if kind is Kind.QUERY_COMPRESSED:
        database, variables = event[HEADER + 8], int.from_bytes(event[HEADER + 11 : HEADER + 13], "little")
        at = HEADER + 13 + variables + database + 1
    else:
        at = HEADER + (8 if kind < Kind.WRITE_ROWS_COMPRESSED else 8 + int.from_bytes(event[27:29], "little"))
        width, at = length_encoded(event, at)
        at += (width + 7) // 8 * (2 if kind in (Kind.UPDATE_ROWS_COMPRESSED_1, Kind.UPDATE_ROWS_COMPRESSED) else 1)
    size_of_length = event[at] & 0x07
    if event[at] & 0xE0 != 0x80 or (event[at] & 0x70) >> 4 != 0:
        raise CorruptFile("a compressed event of the binary log has an unknown form", hint="set log_bin_compress=OFF")
    body = event[HEADER:at] + zlib.decompress(event[at + 1 + size_of_length :])
    length = (HEADER + len(body)).to_bytes(4, "little")
    plain = event[:4] + bytes([_PLAIN[kind]]) + event[5:_LENGTH_AT] + length + event[_LENGTH_AT + 4 : HEADER] + body
    return np.frombuffer(plain, np.uint8), [len(plain)]


__all__ = ["expanded"]
