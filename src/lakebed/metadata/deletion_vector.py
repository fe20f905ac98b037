"""Deletion vectors: which rows of a data file are gone, as roaring bitmaps of row positions in index files.

    file    byte 1, then vectors back to back
    vector  int32 size of what follows up to the checksum · int32 magic · bitmap · int32 CRC-32 of magic and bitmap

A vector has one of two forms. With 32 bits the bitmap is a portable roaring bitmap and the magic is big endian; with 64
bits there are several of them, each with the upper half of its positions, and the magic is little endian. What an index
manifest calls the length of a vector is its size for the one, and all its bytes for the other. This module knows bytes
and places; which vectors a snapshot has is for its index manifest to say.
"""

from __future__ import annotations

import array
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO
from lakebed.metadata.corruption import corrupt
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, DeletionVectorRange, IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.records import dataclass

Positions = npt.NDArray[np.int64]
"""Row positions in a data file: ascending, each once."""
NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)

_VERSION = b"\x01"
_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_INT = struct.Struct(">i")
_FRONT = _BACK = 4
_AROUND = _FRONT + _BACK
"""Bytes of a vector that its size leaves out: the size itself and the checksum."""


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where to read the vector of a data file. `cardinality` counts its positions, if known."""

    path: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class VectorRules:
    """The form of new vectors, and the size at which an index file of them is full (None: never)."""

    bits: int = 32
    target_size_bytes: int | None = None


def encode_vector(positions: npt.ArrayLike, *, bits: int = 32) -> bytes:
    """A vector with its size and checksum."""
    values = np.asarray(positions, dtype=np.int64)
    is_wide = bits == 64
    bitmap: BitMap | BitMap64 = (
        BitMap64(array.array("Q", values.tobytes()))
        if is_wide
        else BitMap(array.array("I", values.astype(np.uint32).tobytes()))
    )
    bitmap.run_optimize()
    body = (_MAGIC_64 if is_wide else _MAGIC_32) + bitmap.serialize()
    return _INT.pack(len(body)) + body + _checksum(body)


def decode_vector(data: bytes, path: str) -> Positions:
    """Positions of a vector in either form; `path` names its file in errors."""
    size, body, checksum = data[:_FRONT], data[_FRONT:-_BACK], data[-_BACK:]
    if len(data) < _AROUND + len(_MAGIC_32) or _INT.unpack(size)[0] != len(body):
        raise corrupt(path, "a deletion vector has another size than it says")
    if _checksum(body) != checksum:
        raise corrupt(path, "the checksum of a deletion vector does not match")
    magic, payload = body[: len(_MAGIC_32)], body[len(_MAGIC_32) :]
    try:
        if magic == _MAGIC_32:
            return np.frombuffer(BitMap.deserialize(payload).to_array(), dtype=np.uint32).astype(np.int64)
        if magic == _MAGIC_64:
            return np.frombuffer(BitMap64.deserialize(payload).to_array(), dtype=np.uint64).astype(np.int64)
    except ValueError as error:
        raise corrupt(path, f"a deletion vector is no roaring bitmap: {error}") from error
    raise corrupt(path, f"a deletion vector begins with {magic.hex()}, which is no known form")


def _checksum(body: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(body))


def _length_of(vector: bytes) -> int:
    """What an index manifest records as the length of a vector."""
    return len(vector) if vector[_FRONT:].startswith(_MAGIC_64) else len(vector) - _AROUND


class DeletionVectorStore:
    """Reads and writes the index files of one table that hold deletion vectors."""

    def __init__(self, fileio: FileIO, paths: TablePaths, new_id: Callable[[], object] = uuid4) -> None:
        self._fileio = fileio
        self._paths = paths
        self._new_id = new_id

    def places(self, entries: Iterable[IndexEntry]) -> dict[str, VectorPlace]:
        """Where the vectors of data files lie, by the names of the data files."""
        return {
            part.data_file_name: VectorPlace(self._path(entry), part.offset, part.length, part.cardinality)
            for entry in entries
            if entry.index_type == DELETION_VECTORS_INDEX
            for part in entry.deletion_vector_ranges or ()
        }

    def read(self, place: VectorPlace) -> Positions:
        """The positions of one vector."""
        try:
            with self._fileio.open_input(place.path) as source:
                data = source.read_at(place.length + _AROUND, place.offset)
        except FileMissing as error:
            raise FileMissing(
                f"deletion vectors {place.path} of the table are gone",
                hint="the snapshot was probably expired while you read: open the table again and repeat the read",
            ) from error
        if data[_FRONT:].startswith(_MAGIC_64):
            data = data[: place.length]
        positions = decode_vector(data, place.path)
        if place.cardinality is not None and place.cardinality != len(positions):
            raise corrupt(place.path, f"a vector has {len(positions)} positions instead of {place.cardinality}")
        return positions

    def write(
        self, partition: bytes, bucket: int, vectors: Mapping[str, Positions], rules: VectorRules
    ) -> list[IndexEntry]:
        """New index files with these vectors, by data file; as many as the target size asks for."""
        entries: list[IndexEntry] = []
        body = bytearray(_VERSION)
        ranges: list[DeletionVectorRange] = []
        for name, positions in vectors.items():
            vector = encode_vector(positions, bits=rules.bits)
            ranges.append(DeletionVectorRange(name, len(body), _length_of(vector), len(positions)))
            body += vector
            if rules.target_size_bytes is not None and len(body) > rules.target_size_bytes:
                entries.append(self._write(partition, bucket, bytes(body), tuple(ranges)))
                body, ranges = bytearray(_VERSION), []
        if ranges:
            entries.append(self._write(partition, bucket, bytes(body), tuple(ranges)))
        return entries

    def _write(self, partition: bytes, bucket: int, body: bytes, ranges: tuple[DeletionVectorRange, ...]) -> IndexEntry:
        name = f"index-{self._new_id()}-0"
        self._fileio.write_bytes(self._paths.index_file(name), body)
        return IndexEntry(partition, bucket, DELETION_VECTORS_INDEX, name, len(body), len(ranges), ranges)

    def _path(self, entry: IndexEntry) -> str:
        return entry.external_path or self._paths.index_file(entry.file_name)


Vectors = Mapping[str, VectorPlace]
"""Where the deletion vectors of data files lie, by the names of the data files."""


__all__ = [
    "NO_POSITIONS",
    "DeletionVectorStore",
    "Positions",
    "VectorPlace",
    "VectorRules",
    "decode_vector",
    "encode_vector",
]
