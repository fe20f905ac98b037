"""Checksums inside Parquet and ORC files, in a gap that their readers step over.

Both formats end with a tail (footer and what describes it) whose length counts from the end of the file, and find all
other parts by their positions. So whatever lies between the last part and the tail is seen by nobody who does not look
for it. There a guard is put:

    uint32 CRC-32 of each block of the content · uint32 CRC-32 of the tail · uint64 bytes of the content
    uint32 bytes of a block (0: the content has checksums of its own) · uint32 CRC-32 of the guard so far
    a mark of 16 bytes

Content is everything before the guard. Its blocks are verified when they are read, and before anything decodes them: a
read of one column verifies the blocks of that column. Files without a guard, as other engines write them, are read as
they are; a guard is looked for, not counted on to be at its place, so that a damaged length does not hide it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.records import dataclass

_MARK = bytes.fromhex("8f1d4c616b65626564204352433332f7")
_FRONT = struct.Struct("<IQI")
_OWN = struct.Struct("<I")
_BLOCK_BYTES = 64 * 1024
_LOOK_BYTES = 64 * 1024
"""How much of the end of a file is searched for a guard at least."""
_KEPT_BYTES = 1024 * 1024


class Broken(pa.ArrowInvalid):  # type: ignore[misc]
    """The content of a file does not match its guard. Of pyarrow's errors, as what its own readers find is."""


class BlockSums:
    """Checksums of the blocks of a file that is being written."""

    def __init__(self) -> None:
        self._sums: list[int] = []
        self._open = 0
        self._open_bytes = 0
        self._size_bytes = 0

    def add(self, data: bytes | memoryview) -> None:
        """Takes the next bytes of the file."""
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            part = view[at : at + _BLOCK_BYTES - self._open_bytes]
            self._open = zlib.crc32(part, self._open)
            self._open_bytes += len(part)
            at += len(part)
            if self._open_bytes == _BLOCK_BYTES:
                self._close_block()
        self._size_bytes += len(view)

    def _close_block(self) -> None:
        self._sums.append(self._open)
        self._open = self._open_bytes = 0

    def guard(self, tail: bytes) -> bytes:
        """The guard for all bytes that were added, and the tail that is to follow."""
        if self._open_bytes:
            self._close_block()
        return _guard(self._sums, tail, self._size_bytes, _BLOCK_BYTES)


def guard_of_tail(tail: bytes, content_bytes: int) -> bytes:
    """A guard for the tail alone, where the content has checksums of its own."""
    return _guard([], tail, content_bytes, 0)


def _guard(sums: list[int], tail: bytes, content_bytes: int, block_bytes: int) -> bytes:
    front = np.array(sums, "<u4").tobytes() + _FRONT.pack(zlib.crc32(tail), content_bytes, block_bytes)
    return front + _OWN.pack(zlib.crc32(front)) + _MARK


@dataclass(frozen=True, slots=True)
class Guarded:
    """A file with a guard, whose tail was verified."""

    source: pa.NativeFile
    sums: npt.NDArray[np.uint32]
    content_bytes: int
    block_bytes: int
    tail: bytes

    def checked(self) -> pa.NativeFile:
        """The file, every block of its content verified before it is given out."""
        if isinstance(self.source, pa.BufferReader):
            self._check(0, self.source.read_at(self.content_bytes, 0))
            return self.source
        return pa.PythonFile(_CheckedFile(self), mode="r")

    def blocks(self, start: int, end: int) -> tuple[int, bytes]:
        """The blocks that hold these bytes, verified, and where they begin; guard and tail come as they are."""
        first = start // self.block_bytes * self.block_bytes
        last = -(-end // self.block_bytes) * self.block_bytes
        data = self.source.read_at(last - first, first)
        self._check(first, data)
        return first, data

    def _check(self, start: int, data: bytes) -> None:
        view = memoryview(data)[: max(0, self.content_bytes - start)]
        for at in range(0, len(view), self.block_bytes):
            block = view[at : at + self.block_bytes]
            if zlib.crc32(block) != self.sums[(start + at) // self.block_bytes]:
                raise Broken(f"the {len(block)} bytes from {start + at} on do not match their checksum")


def find_guard(source: pa.NativeFile, tail_bytes: Callable[[bytes], int]) -> Guarded | None:
    """The guard of a file, if it has one; raises Broken if the tail does not match it.

    `tail_bytes` says how long the tail is, by the last bytes of the file.
    """
    size = int(source.size())
    end = _end_of(source, _LOOK_BYTES)
    expected = tail_bytes(end)
    at = end.rfind(_MARK)
    if at < 0 and len(end) < size:
        end = _end_of(source, expected + _LOOK_BYTES)
        at = end.rfind(_MARK)
    if at < 0:
        return None
    tail = end[at + len(_MARK) :]
    guard = _opened(source, size - len(end) + at, tail)
    if guard is None:
        # A mark in another place belongs to a file that is a value in this one.
        if len(tail) == expected:
            raise Broken("its checksums are damaged")
        return None
    if zlib.crc32(tail) != guard[0]:
        raise Broken("its footer does not match its checksum")
    return guard[1]


def _end_of(source: pa.NativeFile, count: int) -> bytes:
    size = int(source.size())
    return bytes(source.read_at(min(count, size), max(0, size - count)))


def _opened(source: pa.NativeFile, mark_at: int, tail: bytes) -> tuple[int, Guarded] | None:
    """The guard before a mark, and the checksum that it has for the tail; None if it makes no sense."""
    own_at = mark_at - _OWN.size
    front_at = own_at - _FRONT.size
    if front_at < 0:
        return None
    tail_sum, content_bytes, block_bytes = _FRONT.unpack(source.read_at(_FRONT.size, front_at))
    count = -(-content_bytes // block_bytes) if block_bytes else 0
    if content_bytes + count * _OWN.size != front_at:
        return None
    guard = source.read_at(own_at - content_bytes, content_bytes)
    if _OWN.unpack(source.read_at(_OWN.size, own_at))[0] != zlib.crc32(guard):
        return None
    sums = np.frombuffer(guard, "<u4", count)
    return tail_sum, Guarded(source, sums, content_bytes, block_bytes, tail)


class _CheckedFile:
    """What pyarrow reads a guarded file through. It keeps what it has read last: small parts lie beside each other."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._at = 0
        self._kept = (0, b"")
        self.closed = False

    @cached_property
    def _size(self) -> int:
        return int(self._guarded.source.size())

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        start, end = self._at, self._size if size < 0 else min(self._at + size, self._size)
        first, data = self._kept
        if start < first or end > first + len(data):
            first, data = self._guarded.blocks(start, end)
            # Whole columns are not read twice, and would take memory.
            self._kept = (first, data) if len(data) <= _KEPT_BYTES else (0, b"")
        self._at = max(start, end)
        return data[start - first : end - first]

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    def close(self) -> None:
        """Leaves the file open: it belongs to the caller."""
        self.closed = True

    def readable(self) -> bool:
        """Asked by pyarrow."""
        return True

    def writable(self) -> bool:
        """Asked by pyarrow."""
        return False

    def seekable(self) -> bool:
        """Asked by pyarrow."""
        return True
