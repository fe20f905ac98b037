"""Avro object container files in memory: the framing, and the compression of blocks.

Framing is not left to fastavro, so that damage is found wherever the container can tell: sync markers, record counts,
bytes left over in a block, and the checksum of all of it that the headers of our own files carry, whatever their codec.
Logical types are ignored: a timestamp stays the integer it is on disk.

Readers take what other writers produce: any codec below, other record names, reordered or extra fields, nullable roots.
This module knows no record kind; each `…Store` brings its `RecordSchema`.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.metadata.avro_decoder import Decoder, compile_decoder, read_long
from lakebed.metadata.corruption import corrupt, too_new

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Record = dict[str, Any]

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CHECKSUM_KEY = "lakebed.crc32"
"""Header entry of ours: covers the schema, the codec, the marker and all blocks."""
_CHECKSUM_BYTES = 9
"""Eight digits, and the zero that ends the header's entries."""
_SCHEMA_CHECKSUM_KEY = "lakebed.schema-crc32"
"""What it was in earlier versions: covers the schema alone."""
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    zlib.error,
    zstd.ZstdError,
)
"""What parsers raise on bytes that make no sense."""


class RecordSchema:
    """The fields of one kind of record: what we write, and what we insist on when reading.

    A field of type `["null", …]` may be missing in a file that is read; all others must be there. `builders` says, by
    record name, what to make of the values of a record's fields.
    """

    def __init__(
        self, name: str, fields: Sequence[Mapping[str, Any]], builders: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.record: Record = {"type": "record", "name": name, "fields": list(fields)}
        self.builders = builders
        self.json_text = json.dumps(self.record).encode()

    @cached_property
    def array(self) -> Any:
        """The schema as fastavro wants it for writing."""
        return _array_of(_without_logical_types(self.record))


class UnknownVersion(Exception):
    """Raised by a builder for a record that follows another version of the format."""


def optional(name: str, kind: Any) -> Record:
    """A nullable field, null first and null by default: the one order that every reader takes."""
    return {"name": name, "type": ["null", kind], "default": None}


def required(name: str, kind: Any) -> Record:
    """A field that is always there."""
    return {"name": name, "type": kind}


# Writing -------------------------------------------------------------------------------------------------------------


class ContainerWriter:
    """Collects blocks of records into the bytes of one file."""

    def __init__(self, schema: RecordSchema, compression: str, level: int) -> None:
        self._schema = schema
        self._codec = codec_name(compression)
        self._level = level
        self._sync = os.urandom(_SYNC_BYTES)
        self._parts: list[bytes] = []
        self.size_bytes = len(self._header(0))

    def append(self, records: Sequence[Record]) -> None:
        """Add the records as one block."""
        if not records:
            return
        import fastavro  # see `_array_of`

        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, self._schema.array, records)
        count = _long(len(records))
        # An encoded array is its count, the items, and a closing zero: the items alone are the block.
        payload = _compress(self._codec, encoded.getvalue()[len(count) : -1], self._level)
        self._parts += [count, _long(len(payload)), payload, self._sync]
        self.size_bytes += sum(map(len, self._parts[-4:]))

    def finish(self) -> bytes:
        """The whole file."""
        blocks = b"".join(self._parts)
        return self._header(zlib.crc32(self._schema.json_text + self._codec.encode() + self._sync + blocks)) + blocks

    def _header(self, checksum: int) -> bytes:
        entries = {
            "avro.schema": self._schema.json_text,
            "avro.codec": self._codec.encode(),
        }
        pairs = b"".join(_prefixed(key.encode()) + _prefixed(value) for key, value in entries.items())
        # The checksum comes last: what stands before it is the same in all files of a schema.
        last = _prefixed(_CHECKSUM_KEY.encode()) + _long(_CHECKSUM_BYTES - 1) + _checksum_end(checksum)
        return _MAGIC + _long(len(entries) + 1) + pairs + last + self._sync


def encode(schema: RecordSchema, records: Sequence[Record], compression: str, level: int) -> bytes:
    """A file that holds these records in one block (no block at all when there are none)."""
    writer = ContainerWriter(schema, compression, level)
    writer.append(records)
    return writer.finish()


# Reading -------------------------------------------------------------------------------------------------------------


def decode(data: bytes, schema: RecordSchema, path: str) -> list[Any]:
    """What the schema's builders made of the records of a file."""
    try:
        return _decode(data, schema, path)
    except UnknownVersion as error:
        raise too_new(path, str(error)) from error
    except _DAMAGE as error:
        raise corrupt(path, f"its Avro content can not be decoded ({type(error).__name__}: {error})") from error


_KEPT_HEADERS = 4


def _decode(data: bytes, schema: RecordSchema, path: str) -> list[Any]:
    if not data.startswith(_MAGIC):
        raise corrupt(path, "it does not begin like an Avro container file")
    header = _known_header(data, schema) or _read_header(data, schema, path)
    decoder, decompress = header.decoder, _DECOMPRESS[header.codec]
    at = len(header.start)
    checksum = b""
    if header.checksum_so_far is not None:
        checksum, at = _take(data, at, _CHECKSUM_BYTES)
    sync, at = _take(data, at, _SYNC_BYTES)
    if header.checksum_so_far is not None:
        found = zlib.crc32(memoryview(data)[at:], zlib.crc32(sync, header.checksum_so_far))
        if checksum != _checksum_end(found):
            raise corrupt(path, "it does not match its checksum")
    records: list[Any] = []
    while at < len(data):
        count, at = read_long(data, at)
        size_bytes, at = read_long(data, at)
        payload, at = _take(data, at, size_bytes)
        marker, at = _take(data, at, _SYNC_BYTES)
        if marker != sync:
            raise corrupt(path, "a block does not end where it should")
        if count < 0:
            raise corrupt(path, f"a block claims to hold {count} records")
        records += decoder(decompress(payload), count)
    return records


@dataclass(frozen=True, slots=True)
class _Header:
    """How a file begins, up to its checksum or else its marker, and what that says."""

    start: bytes
    codec: str
    decoder: Decoder
    checksum_so_far: int | None
    """Of schema and codec; the marker and all blocks follow. None: the file has no checksum."""


_headers: dict[RecordSchema, tuple[_Header, ...]] = {}
"""The last few headers of each schema: those of one writer are all alike, and longer than the rest of a small file."""


def _known_header(data: bytes, schema: RecordSchema) -> _Header | None:
    return next((known for known in _headers.get(schema, ()) if data.startswith(known.start)), None)


def _read_header(data: bytes, schema: RecordSchema, path: str) -> _Header:
    entries, end = _read_map(data, len(_MAGIC))
    text = entries["avro.schema"]
    if _SCHEMA_CHECKSUM_KEY in entries and entries[_SCHEMA_CHECKSUM_KEY] != b"%08x" % zlib.crc32(text):
        raise corrupt(path, "the checksum of its header does not match")
    codec = entries.get("avro.codec", b"null").decode()
    if codec not in _DECOMPRESS:
        raise corrupt(path, f"its codec `{codec[:40]}` is not one that Avro files use")
    so_far = None
    if _CHECKSUM_KEY in entries:
        so_far = zlib.crc32(text + entries.get("avro.codec", b""))
        end -= _CHECKSUM_BYTES
        if not data[:end].endswith(_prefixed(_CHECKSUM_KEY.encode()) + _long(_CHECKSUM_BYTES - 1)):
            raise corrupt(path, "its checksum is not where it should be")
    header = _Header(data[:end], codec, _decoder(text, schema), so_far)
    _headers[schema] = (header, *_headers.get(schema, ()))[:_KEPT_HEADERS]
    return header


@lru_cache(maxsize=64)
def _decoder(text: bytes, ours: RecordSchema) -> Decoder:
    """The decoder for a writer's schema. Files of one writer share their schema, so it is made once."""
    from fastavro.schema import SchemaParseException, expand_schema  # see `_array_of`

    try:
        return compile_decoder(expand_schema(json.loads(text)), ours.record, ours.builders)
    except SchemaParseException as error:
        raise ValueError(f"the schema of its writer makes no sense: {error}") from error


def _without_logical_types(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_without_logical_types(member) for member in kind]
    if isinstance(kind, dict):
        return {key: _without_logical_types(member) for key, member in kind.items() if key != "logicalType"}
    return kind


def _array_of(record: Any) -> Any:
    """A parsed fastavro schema for arrays of that record, marked so that fastavro does not parse it at every call."""
    # Imported here because it takes longer than all of this package: no command that only looks around needs it.
    import fastavro

    named: dict[str, Any] = {}
    items = fastavro.parse_schema(record, named)
    return {"type": "array", "items": items, "__fastavro_parsed": True, "__named_schemas": named}


# Codecs --------------------------------------------------------------------------------------------------------------


def _unsnappy(payload: bytes) -> bytes:
    body, checksum = payload[:-4], payload[-4:]
    size_bytes = shift = at = 0
    while True:
        byte = body[at]
        size_bytes |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if size_bytes > 64 * len(body):
        raise ValueError("a snappy block claims an impossible size")
    plain: bytes = pa.Codec("snappy").decompress(body, decompressed_size=size_bytes, asbytes=True)
    if zlib.crc32(plain).to_bytes(4, "big") != checksum:
        raise ValueError("checksum mismatch in a snappy block")
    return plain


_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda payload: payload,
    "deflate": lambda payload: zlib.decompress(payload, -15),
    "zstandard": zstd.decompress,
    "snappy": _unsnappy,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
_CODEC_NAMES = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "deflate": "deflate",
    "snappy": "snappy",
    "none": "null",
    "null": "null",
}


def codec_name(compression: str) -> str:
    """Avro's name for a compression we write."""
    codec = _CODEC_NAMES.get(compression.lower())
    if codec is None:
        raise InvalidOption(
            f"manifest compression `{compression}` is not one that can be written",
            hint=did_you_mean(compression, _CODEC_NAMES),
        )
    return codec


def _compress(codec: str, plain: bytes, level: int) -> bytes:
    if codec == "zstandard":
        names = zstd.CompressionParameter
        parameters: dict[int, int] = {names.compression_level: level, names.checksum_flag: 1}
        return bytes(zstd.compress(plain, options=parameters))
    if codec == "deflate":
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(plain) + deflate.flush()
    if codec == "snappy":
        packed: bytes = pa.Codec("snappy").compress(plain, asbytes=True)
        return packed + zlib.crc32(plain).to_bytes(4, "big")
    return plain


# Primitives ----------------------------------------------------------------------------------------------------------


def _long(value: int) -> bytes:
    """A non-negative number as Avro writes longs: zigzag, seven bits per byte, least significant first."""
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _prefixed(value: bytes) -> bytes:
    return _long(len(value)) + value


def _checksum_end(checksum: int) -> bytes:
    """A checksum, and the end of the header's entries, of which it is the last."""
    return b"%08x" % checksum + _long(0)


def _take(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    end = at + count
    if count < 0 or end > len(data):
        raise EOFError("the file ends too early")
    return data[at:end], end


def _read_map(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    entries: dict[str, bytes] = {}
    while True:
        count, at = read_long(data, at)
        if count == 0:
            return entries, at
        if count < 0:
            # A negative count is followed by the block's size, which only serves to skip it.
            count = -count
            _, at = read_long(data, at)
        for _ in range(count):
            size_bytes, at = read_long(data, at)
            key, at = _take(data, at, size_bytes)
            size_bytes, at = read_long(data, at)
            value, at = _take(data, at, size_bytes)
            entries[key.decode()] = value
