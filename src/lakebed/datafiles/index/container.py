"""The container that holds all indexes of one data file.

    int64 magic · int32 version · int32 bytes of the head · int32 columns
    for each column: name · int32 indexes · for each: kind · int32 start (from the container's first byte) · int32 bytes
    int32 bytes of what later versions may add · the indexes themselves

All numbers are big endian, names are in Java's UTF-8. An index that starts at -1 is empty: the column holds nothing.
Behind the last index our own containers have a mark and the CRC-32 of all before it, where other readers do not look.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from lakebed.errors import CorruptFile
from lakebed.options import FILE_INDEX_READ_ENABLED
from lakebed.records import dataclass

Indexes = Mapping[str, Mapping[str, bytes | None]]
"""By column, then by kind; None is an index of no values."""

_MAGIC = 1493475289347502
_VERSION = 1
_EMPTY = -1
_FRONT = struct.Struct(">qii")
_PLACE = struct.Struct(">ii")
_INT = struct.Struct(">i")
_MARK = b"lakebed-crc32"
_SUM = struct.Struct(">I")


def pack(indexes: Indexes) -> bytes:
    """The bytes of a container."""
    head_bytes = _FRONT.size + _INT.size + _INT.size
    head_bytes += sum(len(_utf(column)) + _INT.size for column in indexes)
    head_bytes += sum(len(_utf(kind)) + _PLACE.size for kinds in indexes.values() for kind in kinds)
    head = [_FRONT.pack(_MAGIC, _VERSION, head_bytes), _INT.pack(len(indexes))]
    body: list[bytes] = []
    at = head_bytes
    for column, kinds in indexes.items():
        head += [_utf(column), _INT.pack(len(kinds))]
        for kind, payload in kinds.items():
            if payload is None:
                head += [_utf(kind), _PLACE.pack(_EMPTY, 0)]
                continue
            head += [_utf(kind), _PLACE.pack(at, len(payload))]
            body.append(payload)
            at += len(payload)
    packed = b"".join([*head, _INT.pack(0), *body])
    return packed + _MARK + _SUM.pack(zlib.crc32(packed))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a container an index lies."""

    column: str
    kind: str
    start: int
    size_bytes: int

    @property
    def is_empty(self) -> bool:
        """Whether it is an index of no values."""
        return self.start == _EMPTY


def unpack(data: bytes, path: str) -> dict[str, dict[str, bytes | None]]:
    """The indexes of a container; `path` is named when it is none."""
    found: dict[str, dict[str, bytes | None]] = {}
    for place in contents(data, path):
        end = place.start + place.size_bytes
        if not place.is_empty and not 0 <= place.start <= end <= len(data):
            raise unreadable(path, f"an index of column `{place.column}` lies outside of it")
        found.setdefault(place.column, {})[place.kind] = None if place.is_empty else data[place.start : end]
    return found


def contents(data: bytes, path: str) -> list[Place]:
    """What is in a container, without looking at it; `path` is named when it is none."""
    end = len(data) - _SUM.size
    if data[: max(0, end)].endswith(_MARK) and data[end:] != _SUM.pack(zlib.crc32(data[: end - len(_MARK)])):
        raise unreadable(path, "it does not match its checksum")
    try:
        magic, version, _ = _FRONT.unpack_from(data)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError("it does not begin like one")
        return _places(data)
    except (struct.error, ValueError) as error:
        raise unreadable(path, str(error)) from error


def unreadable(path: str, why: str) -> CorruptFile:
    """The error for an index that makes no sense."""
    return CorruptFile(
        f"the file index of {path} can not be read: {why}",
        hint=f"restore the file, or read with `{FILE_INDEX_READ_ENABLED.key}` = `false`",
    )


def _places(data: bytes) -> list[Place]:
    at = _FRONT.size
    (columns,) = _INT.unpack_from(data, at)
    at += _INT.size
    found = []
    for _ in range(columns):
        column, at = _text(data, at)
        (kinds,) = _INT.unpack_from(data, at)
        at += _INT.size
        for _ in range(kinds):
            kind, at = _text(data, at)
            found.append(Place(column, kind, *_PLACE.unpack_from(data, at)))
            at += _PLACE.size
    return found


def _utf(text: str) -> bytes:
    """As Java writes names: a length, zero in two bytes, and characters beyond the first 65536 as two halves."""
    halves = text.encode("utf-16-be", "surrogatepass")
    units = (halves[i : i + 2].decode("utf-16-be", "surrogatepass") for i in range(0, len(halves), 2))
    data = b"".join(b"\xc0\x80" if unit == "\0" else unit.encode("utf-8", "surrogatepass") for unit in units)
    return struct.pack(">H", len(data)) + data


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    end = at + 2 + length
    if end > len(data):
        raise ValueError("a name is cut off")
    text = data[at + 2 : end].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return text.encode("utf-16", "surrogatepass").decode("utf-16"), end
