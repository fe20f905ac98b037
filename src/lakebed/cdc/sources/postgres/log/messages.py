"""Messages of the logical replication protocol, many at once: their bytes in one buffer, and where each begins.

Messages of the output plugin `pgoutput` begin with a letter that says what they are. Numbers in them are big-endian
and lie anywhere, which numpy reads through views that begin at every byte. Rare messages are read one by one here; row
changes are the matter of `pgoutput`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.records import dataclass

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

MICROSECONDS_1970_TO_2000 = 946_684_800_000_000


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as a Relation message names it."""

    name: str
    is_key: bool
    type_oid: int
    type_modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the stream describes it at one moment. Two that are equal have rows of the same form."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Messages:
    """Some messages. `starts[i]` is where message i begins; its end is where the next begins."""

    def __init__(self, data: bytes | memoryview, lengths: Numbers, header_bytes: int = 0) -> None:
        self.data = data
        self._ends: Numbers = np.cumsum(lengths)
        self._header_bytes = header_bytes
        self.starts: Numbers = self._ends - lengths + header_bytes
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.tags: Bytes = np.zeros(len(lengths), np.uint8)
        has_tag = lengths > header_bytes  # the end of a copy is a header alone, behind which there may be nothing
        self.tags[has_tag] = self.bytes[self.starts[has_tag]]
        self.buffer = pa.py_buffer(data)

    @classmethod
    def of(cls, messages: Sequence[bytes], header_bytes: int = 0) -> Messages:
        """Messages that came one by one, each behind a header of that length."""
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        return cls(b"".join(messages), lengths, header_bytes)

    @classmethod
    def from_bytes(cls, stored: bytes | memoryview) -> Messages:
        """Inverse of `to_bytes`. A view of memory is not copied."""
        count, header_bytes = int.from_bytes(stored[:8], "little"), stored[8]
        lengths = np.frombuffer(stored, np.uint32, count, 16).astype(np.int64)
        return cls(stored[16 + 4 * count :], lengths, header_bytes)

    def to_bytes(self) -> bytes:
        """All in one piece: how many, their headers, their lengths, and they themselves."""
        return b"".join(stored_pieces([self]))

    def taken(self, keep: np.ndarray[Any, np.dtype[np.bool_]]) -> Messages:
        """Only those messages."""
        lengths = np.diff(self._ends, prepend=0)
        # Messages that stand behind one another are copied together.
        edges = np.flatnonzero(np.diff(np.concatenate([[False], keep, [False]])))
        begins = np.concatenate([[0], self._ends])
        pieces = [self.data[begins[first] : begins[last]] for first, last in zip(edges[::2], edges[1::2], strict=True)]
        return Messages(b"".join(pieces), lengths[keep], self._header_bytes)

    def behind(self, header_bytes: int) -> Messages:
        """The same messages behind headers of another length."""
        return Messages(self.data, np.diff(self._ends, prepend=0), header_bytes)

    def pieces(self, most: int) -> Iterator[Messages]:
        """The messages in pieces of so many; nothing is copied."""
        if len(self) <= most:
            yield self
            return
        for first in range(0, len(self), most):
            piece = copy(self)
            piece.starts, piece.tags = self.starts[first : first + most], self.tags[first : first + most]
            piece._ends = self._ends[first : first + most]
            yield piece

    def bodies(self) -> pa.Buffer:
        """All messages behind one another, without their headers."""
        count = len(self)
        edges = np.empty(2 * count + 1, np.int64)
        edges[0:-1:2], edges[1::2] = self.starts - self._header_bytes, self.starts
        edges[-1] = self._ends[-1] if count else 0
        # Headers and bodies take turns; Arrow gathers every second.
        both = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 2 * count, [None, pa.py_buffer(edges), self.buffer])
        return both.take(pa.array(2 * np.arange(count) + 1)).buffers()[2]

    def whole(self, index: int) -> bytes:
        """One message with its header."""
        start = int(self.starts[index]) - self._header_bytes
        return bytes(self.data[start : int(self._ends[index])])

    def __len__(self) -> int:
        return len(self.starts)

    def int16(self, at: Numbers) -> Numbers:
        """Two-byte numbers at those places."""
        return self._numbers(at, ">i2", 2)

    def int32(self, at: Numbers) -> Numbers:
        """Four-byte numbers at those places."""
        return self._numbers(at, ">i4", 4)

    def uint32(self, at: Numbers) -> Numbers:
        """Four-byte numbers without sign at those places."""
        return self._numbers(at, ">u4", 4)

    def int64(self, at: Numbers) -> Numbers:
        """Eight-byte numbers at those places."""
        return self._numbers(at, ">i8", 8)

    def _numbers(self, at: Numbers, kind: str, width: int) -> Numbers:
        if not len(at):
            return np.zeros(0, np.int64)
        # A number at every byte: overlapping, unaligned, but only those asked for are read.
        view: Any = np.ndarray((len(self.data) - width + 1,), kind, self.data, 0, (1,))
        found: Numbers = view[at].astype(np.int64)
        return found

    def one(self, index: int) -> MessageReader:
        """A reader of one message, behind its letter."""
        start, end = int(self.starts[index]) + 1, int(self._ends[index])
        return MessageReader(bytes(self.data[start:end]), 0, end - start)


def stored_pieces(parts: Sequence[Messages]) -> list[bytes | memoryview]:
    """Messages of some parts, which have headers of the same length, as `Messages.to_bytes`, but not put together."""
    lengths = [np.diff(part._ends, prepend=0).astype(np.uint32).tobytes() for part in parts]
    count, header_bytes = sum(map(len, parts)), parts[0]._header_bytes
    head = count.to_bytes(8, "little") + header_bytes.to_bytes(8, "little")
    return [head, *lengths, *(part.data for part in parts)]


class MessageReader:
    """Reads a single message field by field."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._at = start
        self._end = end

    def number(self, width: int, signed: bool = False) -> int:
        """The next number."""
        value = int.from_bytes(self._data[self._at : self._at + width], "big", signed=signed)
        self._at += width
        if self._at > self._end:
            raise InvalidData("a replication message is cut off", hint="this is a fault of the connection; restart")
        return value

    def text(self) -> str:
        """The next text, which ends with a zero byte."""
        end = self._data.index(b"\0", self._at, self._end)
        value = self._data[self._at : end].decode()
        self._at = end + 1
        return value

    def relation(self) -> Relation:
        """All of a Relation message."""
        oid, schema, name = self.number(4), self.text(), self.text()
        identity = chr(self.number(1))
        columns = []
        for _ in range(self.number(2)):
            flags, column = self.number(1), self.text()
            columns.append(RelationColumn(column, bool(flags & 1), self.number(4), self.number(4, signed=True)))
        return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))

    def truncated(self) -> list[int]:
        """The tables of a Truncate message."""
        count, _ = self.number(4), self.number(1)
        return [self.number(4) for _ in range(count)]


__all__ = ["MICROSECONDS_1970_TO_2000", "MessageReader", "Messages", "Relation", "RelationColumn", "stored_pieces"]
