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
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.metadata.corruption import corrupt, too_new
from lakebed.records import dataclass

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
    if text == ours.json_text:  # a file of our own: no type in it is named in place of being told
        return compile_decoder(ours.record, ours.record, ours.builders)
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


# --- Turns the schema of an Avro file into a Python function that decodes its records straight into our dataclasses
#
# Manifests are read at every planning, and a general decoder spends most of its time on finding out, value after
# value, what it already knew from the schema, and on dictionaries that are thrown away at once. The function made
# here takes about half as long. Fields are matched by name: a writer may reorder them, add others, or lack those that
# are optional in our schema.
#
# The generated text holds numbers and names of our own choosing only, never anything from the file.


Decoder = Callable[[bytes, int], list[Any]]
"""Decodes so many records from the bytes of a block; `LookupError` or `ValueError` when they do not fit exactly."""

_NUMBERS = ("int", "long", "enum")
_WIDTHS = {"boolean": 1, "float": 4, "double": 8}
_MAX_DEPTH = 32
"""Deeper types are not metadata; and a type that contains itself has no end."""


def compile_decoder(theirs: Any, ours: Any, builders: Mapping[str, Callable[..., Any]]) -> Decoder:
    """A decoder for blocks of a writer's schema that yields what the builder of our record makes of each record.

    Builders are found by record name and called with the values of our fields, by position; `None` stands for an
    optional field that the writer does not have. Arrays come as tuples. `ValueError` when the schemas do not fit.
    """
    compiler = _Compiler(builders)
    record = compiler.required(theirs, ours, "the record")
    lines = [
        "def decode(d, count):",
        " p = 0",
        " records = []",
        " for _ in range(count):",
        *compiler.lines,
        f"  records.append({record})",
        " if p != len(d): raise ValueError('a block does not end with its last record')",
        " return records",
    ]
    scope: dict[str, Any] = dict(compiler.scope)
    exec("\n".join(lines), scope)
    decoder: Decoder = scope["decode"]
    return decoder


class _Compiler:
    """Collects the statements that read one record; `d` is the block and `p` the position of the next byte in it."""

    def __init__(self, builders: Mapping[str, Callable[..., Any]]) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"long": read_long, "length": _length, "items": _items, "unfit": _unfit}
        self._builders = builders
        self._depth = 2
        self._nesting = 0
        self._variables = 0

    def required(self, theirs: Any, ours: Any, where: str) -> str:
        """Read a value that must not be null; the name of the variable that then holds it."""
        value = self.value(theirs, ours, where)
        if isinstance(theirs, list) and "null" in theirs:
            self._emit(f"if {value} is None: unfit('null where a value is required')")
        return value

    def value(self, theirs: Any, ours: Any, where: str) -> str:
        """Read a value of their type, for a field of our type; `ours` is `None` for one that we do not want."""
        if self._nesting > _MAX_DEPTH:
            raise ValueError(f"{where} is nested too deeply")
        if isinstance(theirs, list):
            return self._union(theirs, ours, where)
        kind = theirs["type"] if isinstance(theirs, dict) else theirs
        wanted = _not_null(ours)
        if wanted is not None:
            wanted_kind = wanted["type"] if isinstance(wanted, dict) else wanted
            if kind != wanted_kind and not (kind in _NUMBERS[:2] and wanted_kind in _NUMBERS[:2]):
                raise ValueError(f"{where} is not of type {wanted_kind}")
        self._nesting += 1
        value = self._by_kind(kind, theirs, wanted, where)
        self._nesting -= 1
        return value

    def _by_kind(self, kind: Any, theirs: Any, ours: Any, where: str) -> str:
        if kind in _NUMBERS:
            return self._number()
        if kind in ("bytes", "string"):
            return self._bytes(".decode()" if kind == "string" else "")
        if kind == "record":
            return self._record(theirs, ours, where)
        if kind == "array":
            return self._array(theirs["items"], ours and ours["items"], where)
        if kind == "map":
            members = [{"name": "key", "type": "string"}, {"name": "value", "type": theirs["values"]}]
            return self._array({"type": "record", "fields": members}, None, where)
        if kind in _WIDTHS or kind == "fixed":
            self._emit(f"p += {int(theirs['size']) if kind == 'fixed' else _WIDTHS[kind]}")
            return "None"
        if kind == "null":
            return "None"
        raise ValueError(f"{where} is of a type that Avro does not know")

    def _number(self) -> str:
        name = self._variable()
        self._emit("b = d[p]")
        self._emit(f"if b > 127: {name}, p = long(d, p)")
        self._emit("else:")
        self._emit(f" {name} = (b >> 1) ^ -(b & 1)")
        self._emit(" p += 1")
        return name

    def _bytes(self, conversion: str) -> str:
        name = self._variable()
        self._emit("b = d[p]")
        # Continued in the next byte, or negative.
        self._emit("if b & 0x81: n, p = length(d, p)")
        self._emit("else: n = b >> 1; p += 1")
        self._emit(f"{name} = d[p:p + n]{conversion}")
        self._emit("p += n")
        return name

    def _record(self, theirs: Any, ours: Any, where: str) -> str:
        wanted = {field["name"]: field["type"] for field in ours["fields"]} if ours else {}
        there = {}
        for field in theirs["fields"]:
            name, kind = field["name"], wanted.get(field["name"])
            is_required = kind is not None and not isinstance(kind, list)
            read = self.required if is_required else self.value
            there[name] = read(field["type"], kind, f"{where}.{name}" if kind else "an unknown field")
        if not ours:
            return "None"
        for name, kind in wanted.items():
            if name not in there and not isinstance(kind, list):
                raise ValueError(f"{where} has no {name}")
        builder = f"build{len(self.scope)}"
        self.scope[builder] = self._builders[ours["name"]]
        result = self._variable()
        self._emit(f"{result} = {builder}({', '.join(there.get(name, 'None') for name in wanted)})")
        return result

    def _array(self, their_items: Any, our_items: Any, where: str) -> str:
        if their_items == "null" or (isinstance(their_items, dict) and not their_items.get("fields", True)):
            raise ValueError(f"{where} holds items of no size")
        array, loop = self._variable(), self._variable()
        self._emit(f"{array} = ()")
        self._emit("b = d[p]")
        self._emit("p += 1")
        self._emit("if b:")
        self._depth += 1
        self._emit(f"{array} = []")
        self._emit("while b:")
        self._depth += 1
        self._emit("if b & 0x81: n, p = items(d, p - 1)")
        self._emit("else: n = b >> 1")
        self._emit(f"for {loop} in range(n):")
        self._depth += 1
        item = self.value(their_items, our_items, f"{where}.items")
        self._emit(f"{array}.append({item})")
        self._depth -= 1
        self._emit("b = d[p]")
        self._emit("p += 1")
        self._depth -= 1
        self._emit(f"{array} = tuple({array})")
        self._depth -= 1
        return array

    def _union(self, theirs: list[Any], ours: Any, where: str) -> str:
        result = self._variable()
        index = self._variable()
        self._emit(f"{index} = d[p]")
        self._emit("p += 1")
        for position, branch in enumerate(theirs):
            self._emit(f"{'elif' if position else 'if'} {index} == {position * 2}:")
            self._depth += 1
            wanted = None if branch == "null" else ours
            self._emit(f"{result} = {self.value(branch, wanted, where)}")
            self._depth -= 1
        self._emit("else: unfit('a union has no such branch')")
        return result

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _emit(self, line: str) -> None:
        self.lines.append(" " * self._depth + line)


def _not_null(ours: Any) -> Any:
    """Our type without null."""
    return next(kind for kind in ours if kind != "null") if isinstance(ours, list) else ours


# Called by generated code, for what does not fit in one byte ---------------------------------------------------------
def read_long(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a position, and the position after it."""
    raw = shift = 0
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than 64 bits")


def _length(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_long(data, at)
    if number < 0:
        raise ValueError("a length is negative")
    return number, at


def _items(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in this part of an array; a negative one is followed by the size of the part."""
    number, at = read_long(data, at)
    return (number, at) if number >= 0 else (-number, read_long(data, at)[1])


def _unfit(what: str) -> None:
    raise ValueError(what)
