"""Messages of the logical replication protocol, many at once: their bytes in one buffer, and where each begins.

Messages of the output plugin `pgoutput` begin with a letter that says what they are. Numbers in them are big-endian
and lie anywhere, which numpy reads through views that begin at every byte. Rare messages are read one by one here; row
changes are the matter of `pgoutput`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidData

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

    def __init__(self, data: bytes, lengths: Numbers, header_bytes: int = 0) -> None:
        self.data = data
        self._ends: Numbers = np.cumsum(lengths)
        self._header_bytes = header_bytes
        self.starts: Numbers = self._ends - lengths + header_bytes
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.tags: Bytes = self.bytes[self.starts] if len(lengths) else np.zeros(0, np.uint8)
        self.buffer = pa.py_buffer(data)

    @classmethod
    def of(cls, messages: Sequence[bytes], header_bytes: int = 0) -> Messages:
        """Messages that came one by one, each behind a header of that length."""
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        return cls(b"".join(messages), lengths, header_bytes)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Messages:
        """Inverse of `to_bytes`."""
        count, header_bytes = int.from_bytes(stored[:8], "little"), stored[8]
        lengths = np.frombuffer(stored, np.uint32, count, 16).astype(np.int64)
        return cls(stored[16 + 4 * count :], lengths, header_bytes)

    def to_bytes(self) -> bytes:
        """All in one piece: how many, their headers, their lengths, and they themselves."""
        lengths = np.diff(self._ends, prepend=0).astype(np.uint32)
        head = len(self).to_bytes(8, "little") + self._header_bytes.to_bytes(8, "little")
        return head + lengths.tobytes() + self.data

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
        return MessageReader(self.data, int(self.starts[index]) + 1, int(self._ends[index]))


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


__all__ = ["MICROSECONDS_1970_TO_2000", "MessageReader", "Messages", "Relation", "RelationColumn"]
