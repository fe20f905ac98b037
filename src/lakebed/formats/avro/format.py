"""Avro data files: the container around encoded records, with zstandard blocks by default.

Writing is vectorised (`encode`); reading goes through fastavro one block at a time (`decode`) and is an order of
magnitude slower, which is bearable because Avro serves small, short-lived files. Avro keeps no statistics, so a
filter never leaves anything out here. Blocks carry the checksums of their codecs (`codecs`), the header one of its
own; blocks that are not compressed are not guarded.
"""

from __future__ import annotations

import io
import itertools
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.checksums import crc32_text
from lakebed.formats.avro.codecs import UNDECODABLE, codec_name, compressor, decompressor, has_checksum
from lakebed.formats.avro.decode import plain_schema, to_columns, without_null
from lakebed.formats.avro.encode import encode_long, encode_records
from lakebed.formats.avro.schema import avro_schema
from lakebed.formats.base import FileStats, WriteSettings
from lakebed.formats.conform import as_corrupt, corrupt, to_read, to_write
from lakebed.formats.statistics import StatsCollector
from lakebed.formats.text.settings import Written
from lakebed.types.logical import DataField

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CHECKSUM_KEY = "lakebed.header-crc32"
"""Header entry of ours: a bit flip in a field's name would otherwise pass for a column that the file lacks."""
_BLOCK_BYTES = 256 * 1024
_ENCODE_ROWS = 32 * 1024


class AvroFormat:
    """The format `avro`."""

    name = "avro"
    default_compression = "zstd"
    tells_compression_by_name = False

    def check(self, fields: Sequence[DataField]) -> None:
        """Refuses types and names that Avro has no room for."""
        avro_schema(fields)

    def check_compression(self, compression: str) -> None:
        """Refuses what Avro has no codec for."""
        codec_name(compression)

    def guards(self, compression: str) -> bool:
        """Checksums belong to codecs."""
        return has_checksum(compression)

    def open_writer(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> AvroWriter:
        """Starts a file."""
        return AvroWriter(stream, fields, settings)

    def open_reader(self, source: pa.NativeFile, path: str, written: Written | None = None) -> AvroReader:
        """Reads a file's header."""
        return AvroReader(source, path)


class AvroWriter:
    """Encodes rows as they come and writes a block whenever enough bytes have gathered."""

    def __init__(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> None:
        self._stream = stream
        self._fields = tuple(fields)
        codec = codec_name(settings.compression)
        self._compress = compressor(codec, settings.zstd_level)
        self._stats = StatsCollector(fields, settings.stats_columns)
        self._sync = secrets.token_bytes(_SYNC_BYTES)
        self._parts: list[memoryview] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        schema = json.dumps(avro_schema(fields))
        checksum = _header_checksum(schema.encode(), codec.encode(), self._sync)
        stream.write(_header({"avro.schema": schema, "avro.codec": codec, _CHECKSUM_KEY: checksum}, self._sync))

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Appends rows."""
        rows = to_write(batch, self._fields)
        self._stats.add(rows)
        for start in range(0, rows.num_rows, _ENCODE_ROWS):
            part = rows.slice(start, _ENCODE_ROWS).combine_chunks()
            columns = [column.chunk(0) for column in part.columns]
            self._append(encode_records(columns, self._fields))

    def _append(self, records: pa.LargeBinaryArray) -> None:
        offsets = np.frombuffer(records.buffers()[1], np.int64)[records.offset : records.offset + len(records) + 1]
        content = memoryview(records.buffers()[2])
        row = 0
        while row < len(records):
            # At least one row, or a row larger than a block would never get in.
            room = max(1, _BLOCK_BYTES - self._pending_bytes)
            end = min(len(records), int(np.searchsorted(offsets, offsets[row] + room)))
            self._parts.append(content[offsets[row] : offsets[end]])
            self._pending_rows += end - row
            self._pending_bytes += int(offsets[end] - offsets[row])
            row = end
            if self._pending_bytes >= _BLOCK_BYTES:
                self._flush()

    def _flush(self) -> None:
        block = self._compress(b"".join(self._parts))
        self._stream.write(encode_long(self._pending_rows) + encode_long(len(block)))
        self._stream.write(block)
        self._stream.write(self._sync)
        self._parts, self._pending_rows, self._pending_bytes = [], 0, 0

    def bytes_written(self) -> int:
        """Blocks written, plus the uncompressed bytes of the block that is filling."""
        return int(self._stream.tell()) + self._pending_bytes

    def close(self) -> FileStats:
        """Writes the last block."""
        if self._pending_rows:
            self._flush()
        return self._stats.result()


def _header(metadata: dict[str, str], sync: bytes) -> bytes:
    def sized(text: str) -> bytes:
        return encode_long(len(text.encode())) + text.encode()

    entries = b"".join(sized(key) + sized(value) for key, value in metadata.items())
    return _MAGIC + encode_long(len(metadata)) + entries + b"\x00" + sync


def _header_checksum(schema: bytes, codec: bytes, sync: bytes) -> str:
    return crc32_text(schema + codec + sync)


@contextmanager
def _avro_as_corrupt(path: str) -> Iterator[None]:
    """As `as_corrupt`, for the many things Python code raises on bytes that make no sense."""
    try:
        with as_corrupt(path):
            yield
    except (ValueError, LookupError, TypeError, ArithmeticError, EOFError, *UNDECODABLE) as error:
        raise corrupt(path, str(error)) from error


class AvroReader:
    """Reads blocks one after the other."""

    can_skip = False

    def __init__(self, source: pa.NativeFile, path: str) -> None:
        self._source = source
        self._path = path
        self._row_count: int | None = None
        with _avro_as_corrupt(path):
            source.seek(0)
            if source.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it does not start like an Avro file")
            metadata = self._read_metadata()
            self._sync = _exactly(source, _SYNC_BYTES)
            self._first_block = source.tell()
            checksum = metadata.get(_CHECKSUM_KEY)
            found = _header_checksum(metadata["avro.schema"], metadata.get("avro.codec", b""), self._sync)
            if checksum is not None and checksum.decode() != found:
                raise ValueError("its header does not match its checksum")
            root = json.loads(metadata["avro.schema"])
            self._plain_root = plain_schema(root)
            self._members: list[dict[str, Any]] = without_null(root, path)["fields"]
            if not all(isinstance(member["name"], str) and "type" in member for member in self._members):
                raise ValueError("its schema has a field without name or type")
            codec = metadata.get("avro.codec", b"null").decode()
        self._decompress = decompressor(codec, path, is_ours=checksum is not None)

    def _read_metadata(self) -> dict[str, bytes]:
        metadata = {}
        while count := _read_long(self._source):
            if count < 0:
                _read_long(self._source)
            for _ in range(abs(count)):
                key = _exactly(self._source, _read_long(self._source)).decode()
                metadata[key] = _exactly(self._source, _read_long(self._source))
        return metadata

    @property
    def column_names(self) -> list[str]:
        """Top-level columns in file order."""
        return [member["name"] for member in self._members]

    @property
    def row_count(self) -> int:
        """Number of rows; Avro has no footer, so the blocks are counted once."""
        if self._row_count is None:
            self._row_count = sum(rows for rows, _ in self._blocks(skip_content=True))
        return self._row_count

    def _blocks(self, *, skip_content: bool) -> Iterator[tuple[int, bytes]]:
        """Row count and decompressed content of each block."""
        position = self._first_block
        with _avro_as_corrupt(self._path):
            end = self._source.size()
        while position < end:
            with _avro_as_corrupt(self._path):
                self._source.seek(position)
                rows, size = _read_long(self._source), _read_long(self._source)
                if rows < 0 or size < 0 or self._source.tell() + size + _SYNC_BYTES > end:
                    raise ValueError("a block reaches beyond the end of the file")
                position = self._source.tell() + size + _SYNC_BYTES
                content = b""
                if skip_content:
                    self._source.seek(position - _SYNC_BYTES)
                else:
                    content = self._decompress(_exactly(self._source, size))
                if _exactly(self._source, _SYNC_BYTES) != self._sync:
                    raise ValueError("a block does not end with the file's marker")
            yield rows, content

    def read(
        self,
        fields: Sequence[DataField],
        *,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_rows: int = 65536,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See `FormatReader.read`. `filter` leaves nothing out and `use_threads` changes nothing here."""
        names = {field.name for field in fields}
        members = [member for member in self._members if member["name"] in names]
        position = 0
        for records in _regrouped(self._decoded(members), batch_rows):
            with _avro_as_corrupt(self._path):
                columns = to_columns(records, members, self._path)
            rows = _batch(columns, [member["name"] for member in members], len(records))
            yield position, to_read(rows, fields, self._path)
            position += len(records)

    def _decoded(self, members: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """The records of each block, reduced to the given members."""
        import fastavro  # here, because importing it takes long and few tables need it
        from fastavro.schema import SchemaParseException

        reduced = None
        if len(members) < len(self._members):
            root = without_null(self._plain_root, self._path)
            reduced = {**root, "fields": [plain_schema(member) for member in members]}
        header = _header({"avro.schema": json.dumps(self._plain_root), "avro.codec": "null"}, self._sync)
        for rows, content in self._blocks(skip_content=not members):
            if not members:
                yield [{}] * rows
                continue
            # fastavro decodes files, not blocks: each block is made to look like a file of its own.
            file = io.BytesIO(header + encode_long(rows) + encode_long(len(content)) + content + self._sync)
            with _avro_as_corrupt(self._path):
                try:
                    records = list(fastavro.reader(file, reduced))
                except SchemaParseException as error:
                    raise ValueError(f"its schema makes no sense: {error}") from error
                if len(records) != rows:
                    raise ValueError(f"a block has {len(records)} rows instead of {rows}")
            yield records

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The stream belongs to the caller; there is nothing else to let go of."""


def _regrouped(blocks: Iterator[list[dict[str, Any]]], rows: int) -> Iterator[list[dict[str, Any]]]:
    records = itertools.chain.from_iterable(blocks)
    while group := list(itertools.islice(records, rows)):
        yield group


def _batch(columns: list[pa.Array], names: list[str], rows: int) -> pa.RecordBatch:
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, names=names)


def _read_long(source: pa.NativeFile) -> int:
    value, shift = 0, 0
    while True:
        byte = _exactly(source, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
        if shift > 63:
            raise ValueError("an integer is too long")


def _exactly(source: pa.NativeFile, size: int) -> bytes:
    if size < 0:
        raise ValueError("a size is negative")
    if size > source.size():  # to ask for it would take the memory first
        raise EOFError("the file ends too early")
    content: bytes = source.read(size)
    if len(content) != size:
        raise EOFError("the file ends too early")
    return content


AVRO = AvroFormat()
