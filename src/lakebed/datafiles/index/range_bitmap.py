"""Range bitmaps: the values of a column as numbers by rank, bit by bit, so that ranges of them can be selected.

    int32 bytes of the head · byte 1 · int32 rows · int32 distinct values · smallest and largest value · int32 bytes of
    the dictionary · dictionary · slices

    dictionary  int32 bytes of its head · byte 1 · int32 chunks · int32 bytes of their places · int32 bytes of chunks
                places · chunks: byte 1 · first value · int32 its rank · int32 place of the others · int32 how many
                (numbers: int32 bytes of them · int32 width; texts: int32 bytes of their places · int32 bytes of them)
                the other values of each chunk (texts: their places before them)
    slices      int32 bytes of the head · byte 1 · byte slices · int32 bytes of the rows with a value · int32 bytes of
                places and lengths of the slices · these · rows with a value · for each bit of a rank the rows with it

All numbers are big endian. Without any value there is no smallest and largest one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakebed.datafiles.index.distinct import INT, NULL, DistinctColumn, ValueReader, encoded
from lakebed.datafiles.index.values import is_bytes, is_indexable, width_of
from lakebed.types.logical import BINARIES, FLOATS, AtomicType, DataType, TypeRoot, is_root
from lakebed.types.predicate import Op
from lakebed.units import parse_size

SETTINGS = ("chunk-size",)

_DEFAULT_CHUNK = "16kb"
_NARROW = frozenset({TypeRoot.BOOLEAN, TypeRoot.TINYINT, TypeRoot.SMALLINT})
"""Types whose values stand in chunks of one."""
_MOMENTS = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_VERSION = b"\x01"
_SLICES_WITHOUT_VALUES = 64


def supports(data_type: DataType) -> bool:
    """Whether columns of this type can have such an index."""
    is_too_fine = isinstance(data_type, AtomicType) and data_type.root in _MOMENTS and data_type.precision > 6
    return is_indexable(data_type) and not is_root(data_type, BINARIES) and not is_too_fine


class RangeBitmapBuilder:
    """Takes the values of a column and gives the index."""

    def __init__(self, data_type: DataType, settings: Mapping[str, str]) -> None:
        self._type = data_type
        self._chunk_bytes = _chunk_bytes(settings, data_type)
        self._column = DistinctColumn(data_type)

    def add(self, column: pa.Array) -> None:
        """Values of the next rows."""
        self._column.add(column)

    def finish(self) -> bytes:
        """The index."""
        distinct = self._column.finish()
        values, codes = distinct.values, distinct.codes
        bounds = [values[0], values[-1]] if values else []
        dictionary = _dictionary(values, self._chunk_bytes, is_text=is_bytes(self._type))
        head = b"".join([_VERSION, INT.pack(len(codes)), INT.pack(len(values)), *bounds, INT.pack(len(dictionary))])
        return INT.pack(len(head)) + head + dictionary + _slices(codes, len(values))


def _dictionary(values: Sequence[bytes], limit_bytes: int, *, is_text: bool) -> bytes:
    places, chunks, others = [], [], []
    chunks_bytes = others_bytes = start = 0
    while start < len(values):
        following = values[start + 1 : start + 1 + limit_bytes]  # a value takes a byte at least
        stop = start + 1 + _fitting(following, limit_bytes, is_text=is_text)
        members = values[start + 1 : stop]
        offsets = np.cumsum([0, *map(len, members)])[:-1].astype(">i4").tobytes() if is_text else b""
        keys = b"".join(members)
        ends = (len(offsets), len(keys)) if is_text else (len(keys), len(values[start]))
        chunk = _VERSION + values[start] + struct.pack(">5i", start, others_bytes, len(members), *ends)
        places.append(INT.pack(chunks_bytes))
        chunks.append(chunk)
        others.append(offsets + keys)
        chunks_bytes += len(chunk)
        others_bytes += len(offsets) + len(keys)
        start = stop
    head = _VERSION + struct.pack(">3i", len(chunks), INT.size * len(places), chunks_bytes)
    return b"".join([INT.pack(len(head)), head, *places, *chunks, *others])


def _fitting(values: Sequence[bytes], limit_bytes: int, *, is_text: bool) -> int:
    """How many values fit into one chunk behind its first. Texts have as much room again for their places."""
    most = limit_bytes // INT.size if is_text else len(values)
    sizes = np.cumsum([len(value) for value in values])
    return min(most, int(np.searchsorted(sizes, limit_bytes, side="right")))


def _slices(codes: npt.NDArray[np.int64], count: int) -> bytes:
    rows = np.flatnonzero(codes != NULL)
    ranks = codes[rows]
    bits = max((count - 1).bit_length(), 1) if count else _SLICES_WITHOUT_VALUES
    known = BitMap(rows.astype(np.uint32)).serialize()
    parts = [BitMap(rows[(ranks >> bit) & 1 == 1].astype(np.uint32)).serialize() for bit in range(bits)]
    sizes = np.array([len(part) for part in parts])
    table = np.stack([np.cumsum(sizes) - sizes, sizes], axis=1).astype(">i4").tobytes()
    head = _VERSION + bytes([bits]) + struct.pack(">ii", len(known), len(table)) + table
    return b"".join([INT.pack(len(head)), head, known, *parts])


class _Head:
    """What stands before the dictionary."""

    def __init__(self, payload: bytes, data_type: DataType) -> None:
        reader = ValueReader(payload, data_type)
        head_bytes = reader.number()
        version = reader.byte()
        if version != 1:
            raise ValueError(f"version {version} of a range bitmap is not known")
        self.rows, self.count = reader.number(), reader.number()
        self.low, self.high = (reader.value(), reader.value()) if self.count else (b"", b"")
        self.dictionary_at = INT.size + head_bytes
        self.slices_at = self.dictionary_at + reader.number()


def may_contain(payload: bytes, values: pa.Array, data_type: DataType) -> npt.NDArray[np.bool_]:
    """Which of the values, none of them null, the file holds."""
    head = _Head(payload, data_type)
    known = set(_values(payload, data_type, head)) if head.count else set()
    return np.array([value in known for value in encoded(values, data_type)], np.bool_)


def may_compare(payload: bytes, op: Op, literal: pa.Scalar, data_type: DataType) -> bool:
    """Whether the file may hold a value that is less, or greater, than this one."""
    head = _Head(payload, data_type)
    if not head.count:
        return False
    (sought,) = encoded(pa.array([literal], literal.type), data_type)
    low, high, value = (_ordered(item, data_type) for item in (head.low, head.high, sought))
    if any(item != item for item in (low, high, value)):  # NaN says nothing
        return True
    match op:
        case Op.LT:
            return bool(low < value)  # type: ignore[operator]
        case Op.LE:
            return bool(low <= value)  # type: ignore[operator]
        case Op.GT:
            return bool(high > value)  # type: ignore[operator]
        case Op.GE:
            return bool(high >= value)  # type: ignore[operator]
        case _:
            return True


def has_nulls(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds a null."""
    head = _Head(payload, data_type)
    if not head.count:
        return head.rows > 0
    at = head.slices_at
    (head_bytes,) = INT.unpack_from(payload, at)
    (known_bytes,) = INT.unpack_from(payload, at + INT.size + 2)
    start = at + INT.size + head_bytes
    return len(BitMap.deserialize(payload[start : start + known_bytes])) < head.rows


def has_values(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds anything but nulls."""
    return _Head(payload, data_type).count > 0


def _values(payload: bytes, data_type: DataType, head: _Head) -> list[bytes]:
    """All values of the dictionary."""
    reader = ValueReader(payload, data_type, head.dictionary_at)
    head_bytes = reader.number()
    reader.byte()
    count, places_bytes, chunks_bytes = reader.number(), reader.number(), reader.number()
    chunks_at = head.dictionary_at + INT.size + head_bytes + places_bytes
    others = ValueReader(payload, data_type, chunks_at + chunks_bytes)
    reader.at = chunks_at
    found = []
    for _ in range(count):
        reader.byte()
        found.append(reader.value())
        _, _, members, first_bytes, _ = (reader.number() for _ in range(5))
        others.at += first_bytes if is_bytes(data_type) else 0
        found += [others.value() for _ in range(members)]
    return found


def _ordered(value: bytes, data_type: DataType) -> bytes | int | float:
    """Something that compares as a reader compares values, to whom both zeros are equal."""
    if is_bytes(data_type):
        return value[INT.size :]
    width = width_of(data_type)
    if is_root(data_type, FLOATS):
        return float(np.frombuffer(value, f">f{width.itemsize}")[0])
    return int(np.frombuffer(value, width.newbyteorder(">"))[0])


def check_settings(settings: Mapping[str, str]) -> None:
    """Raises on values that make no index."""
    parse_size(settings.get("chunk-size", _DEFAULT_CHUNK))


def _chunk_bytes(settings: Mapping[str, str], data_type: DataType) -> int:
    default = "0b" if is_root(data_type, _NARROW) else _DEFAULT_CHUNK
    return parse_size(settings.get("chunk-size", default))


__all__ = [
    "SETTINGS",
    "RangeBitmapBuilder",
    "check_settings",
    "has_nulls",
    "has_values",
    "may_compare",
    "may_contain",
    "supports",
]
