"""ORC data files.

Limits of pyarrow shape this file. Its reader knows timestamps as 64-bit nanoseconds only (years 1677 to 2262), so
values beyond are refused on writing instead of producing a file that can not be read back; and its writer stores
fractions of a second before 1970 in a way that no other reader understands, so these are refused as well. It ignores
the offset of sliced structs, so such columns are copied first, and it minds what lies below nulls (`pushed_nulls`). It
ends the process when it can not write while it is being destroyed, so it never gets to see that a write failed.
Statistics inside ORC files are out of reach too: a filter never leaves anything out here. The format has no checksums,
so files get those of `guarded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import CorruptFile, InvalidData, InvalidOption, InvalidSchema, Unsupported, did_you_mean
from lakebed.formats.base import FileStats, WriteSettings
from lakebed.formats.careful_sink import CarefulSink
from lakebed.formats.conform import as_corrupt, check_rows, map_entries, to_read, to_write
from lakebed.formats.guarded import BlockSums, find_guard
from lakebed.formats.pushed_nulls import with_pushed_nulls
from lakebed.formats.size_estimate import SizeEstimate
from lakebed.formats.statistics import StatsCollector
from lakebed.formats.text.settings import Written
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    is_root,
)

if TYPE_CHECKING:
    from pyarrow import orc

_CODECS = {
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "zlib": "zlib",
    "gzip": "zlib",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_LENGTH_DELIMITED = 2
"""In the encoding of ORC's messages, a value that has its size in front."""
_NANOS_PER_SECOND = 1_000_000_000
_OUT_OF_RANGE = "out of range for nanosecond resolution"


class OrcFormat:
    """The format `orc`."""

    name = "orc"
    default_compression = "zstd"
    tells_compression_by_name = False

    def check(self, fields: Sequence[DataField]) -> None:
        """Refuses types that ORC has no room for, and those that can not be written right."""
        for field in fields:
            unfit = _unfit_part(field.type)
            if unfit is not None:
                raise InvalidSchema(
                    f"column `{field.name}`: ORC files can not store {unfit}",
                    hint="use file.format parquet",
                )

    def check_compression(self, compression: str) -> None:
        """Refuses what ORC has no codec for."""
        _codec(compression)

    def guards(self, compression: str) -> bool:
        """Checksums do not depend on compression."""
        return True

    def open_writer(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> OrcWriter:
        """Starts a file."""
        self.check(fields)
        return OrcWriter(stream, fields, settings)

    def open_reader(self, source: pa.NativeFile, path: str, written: Written | None = None) -> OrcReader:
        """Reads a file's footer."""
        return OrcReader(source, path)


def _unfit_part(data_type: DataType) -> str | None:
    parts: tuple[DataType, ...] = ()
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            return str(data_type)
        case ArrayType(element) | MultisetType(element):
            parts = (element,)
        case MapType(key, value):
            parts = (key, value)
        case RowType(members):
            parts = tuple(member.type for member in members)
    return next((unfit for part in parts if (unfit := _unfit_part(part)) is not None), None)


class OrcWriter:
    """Hands rows to pyarrow's ORC writer, which cuts stripes itself."""

    def __init__(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> None:
        self._stream = stream
        self._fields = tuple(fields)
        self._codec = _codec(settings.compression)
        self._schema = pa.schema([pa.field(field.name, _stored(to_arrow_type(field.type))) for field in fields])
        self._sums = BlockSums()
        self._sink = CarefulSink(stream, self._sums.add)
        self._file = self._open(self._sink.file)
        self._stats = StatsCollector(fields, settings.stats_columns)
        self._size = SizeEstimate(self._sample_bytes)
        # The schema reaches the file with the first rows; a file without rows needs it as well.
        self._file.write(self._schema.empty_table())
        self._sink.check()

    def _open(self, sink: pa.NativeFile) -> orc.ORCWriter:
        from pyarrow import orc  # loads file systems and TLS, which few tables need

        return orc.ORCWriter(sink, compression=self._codec)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Appends rows."""
        rows = to_write(batch, self._fields)
        if not rows.num_rows:
            return
        self._stats.add(rows)
        columns = [_to_stored(column, field) for column, field in zip(rows.columns, self._schema, strict=True)]
        stored = pa.Table.from_arrays(columns, schema=self._schema)
        self._size.add(stored)
        self._file.write(stored)
        self._sink.check()

    def _sample_bytes(self, sample: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        with self._open(sink) as file:
            file.write(sample)
        return int(sink.getvalue().size)

    def bytes_written(self) -> int:
        """Stripes written, or an estimate where rows still wait for their stripe to fill."""
        return max(int(self._stream.tell()), self._size.file_bytes())

    def close(self) -> FileStats:
        """Writes the last stripe, the guard and the footer."""
        self._sink.hold()
        self._file.close()
        end = self._sink.release()
        tail = end[len(end) - _tail_bytes(end) :]
        self._sink.write(end[: len(end) - len(tail)])
        self._sink.write(self._sums.guard(tail) + tail)
        self._sink.check()
        return self._stats.result()


def _stored(arrow: pa.DataType) -> pa.DataType:
    """The type a column has inside the file: ORC has one resolution of timestamps and no time of day."""
    if pa.types.is_time32(arrow):
        return pa.int32()
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("ns", tz=arrow.tz)
    if pa.types.is_map(arrow):
        return pa.map_(_stored(arrow.key_type), _stored(arrow.item_type))
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _stored(arrow.value_type)))
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(child.name, _stored(child.type)) for child in arrow])
    return arrow


def _to_stored(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if _contains_struct(field.type):
        column = column.take(pa.array(np.arange(len(column))))
    try:
        stored = column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InvalidData(
            f"column `{field.name}` has a timestamp that ORC files can not hold here: {error}",
            hint="use file.format parquet for instants before 1677-09-22 or after 2262-04-11",
        ) from error
    if any(_has_early_fraction(chunk) for chunk in stored.chunks):
        raise InvalidData(
            f"column `{field.name}` has a timestamp before 1970 with a fraction of a second, which other readers would "
            "not find in an ORC file written here",
            hint="use file.format parquet, or TIMESTAMP(0) for the column",
        )
    if _contains_struct(field.type):
        return pa.chunked_array([with_pushed_nulls(chunk) for chunk in stored.chunks], field.type)
    return stored


def _has_early_fraction(array: pa.Array) -> bool:
    if pa.types.is_timestamp(array.type):
        nanos = array.view(pa.int64()).drop_null().to_numpy()
        return bool(np.any((nanos < 0) & (nanos % _NANOS_PER_SECOND != 0)))
    if pa.types.is_map(array.type):
        array = map_entries(array)
    return pa.types.is_nested(array.type) and any(
        _has_early_fraction(part) for part in (array.flatten() if pa.types.is_struct(array.type) else [array.flatten()])
    )


def _contains_struct(arrow: pa.DataType) -> bool:
    return pa.types.is_struct(arrow) or (
        pa.types.is_nested(arrow) and any(_contains_struct(arrow.field(i).type) for i in range(arrow.num_fields))
    )


def _codec(compression: str) -> str:
    codec = _CODECS.get(compression.lower())
    if codec is None:
        raise InvalidOption(
            f"orc files can not have the compression `{compression}`", hint=did_you_mean(compression, _CODECS)
        )
    return codec


def _tail_bytes(end: bytes) -> int:
    """Size of an ORC file's metadata, footer and postscript, by its last bytes; 0 if they make no sense.

    The last byte is the size of the postscript, a message that begins with whole numbers: (1) the size of the footer,
    (5) that of the metadata.
    """
    script = end[-1 - end[-1] : -1] if end else b""
    sizes, at = {1: 0, 5: 0}, 0
    try:
        while at < len(script):
            key, at = _varint(script, at)
            number, wire = key >> 3, key & 7
            value, at = _varint(script, at)
            if wire == _LENGTH_DELIMITED:
                at += value
            elif number in sizes:
                sizes[number] = value
    except IndexError:
        return 0
    return sum(sizes.values()) + len(script) + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


class OrcReader:
    """Reads stripes one after the other."""

    can_skip = False

    def __init__(self, source: pa.NativeFile, path: str) -> None:
        self._path = path
        with as_corrupt(path):
            guarded = find_guard(source, _tail_bytes)
            from pyarrow import orc

            self._file = orc.ORCFile(source if guarded is None else guarded.checked())
            self._schema: pa.Schema = self._file.schema

    @property
    def column_names(self) -> list[str]:
        """Top-level columns in file order."""
        return list(self._schema.names)

    @property
    def row_count(self) -> int:
        """Number of rows according to the footer."""
        return int(self._file.nrows)

    def read(
        self,
        fields: Sequence[DataField],
        *,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_rows: int = 65536,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See `FormatReader.read`. `filter` leaves nothing out and `use_threads` changes nothing here."""
        wanted = [field.name for field in fields if field.name in self._schema.names]
        # Without columns pyarrow would forget how many rows a stripe has; any one column tells.
        loaded = wanted or self._schema.names[:1]
        position = 0
        for stripe in range(self._file.nstripes):
            table = self._stripe(stripe, loaded)
            for start in range(0, table.num_rows, batch_rows):
                batch = to_read(_trimmed(table.slice(start, batch_rows), fields), fields, self._path)
                yield position, batch
                position += batch.num_rows
        check_rows(position, self.row_count, self._path)

    def _stripe(self, stripe: int, columns: list[str]) -> pa.RecordBatch:
        try:
            with as_corrupt(self._path):
                return self._file.read_stripe(stripe, columns=columns)
        except CorruptFile as error:
            if _OUT_OF_RANGE not in error.message:
                raise
            raise Unsupported(
                f"data file `{self._path}` has a timestamp outside the years 1677 to 2262, which can not be read "
                "from ORC files here",
                hint="rewrite the table with file.format parquet by the engine that wrote it",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The stream belongs to the caller; there is nothing else to let go of."""


def _trimmed(batch: pa.RecordBatch, fields: Sequence[DataField]) -> pa.RecordBatch:
    """CHAR columns of other writers arrive blank-padded to their length, and ORC readers take the blanks off."""
    for field in fields:
        index = batch.schema.get_field_index(field.name)
        if index >= 0 and _contains_char(field.type):
            batch = batch.set_column(index, field.name, _without_blanks(batch.column(index), field.type))
    return batch


def _without_blanks(array: pa.Array, data_type: DataType) -> pa.Array:
    match data_type:
        case AtomicType(root=TypeRoot.CHAR):
            return pc.utf8_rtrim(array, characters=" ")
        case ArrayType(element):
            values = _without_blanks(array.values, element)
            return pa.ListArray.from_arrays(_own_offsets(array), values, mask=array.is_null())
        case MapType(key, value):
            keys, items = _without_blanks(array.keys, key), _without_blanks(array.items, value)
            return pa.MapArray.from_arrays(_own_offsets(array), keys, items, mask=array.is_null())
        case RowType(members):
            type_of = {member.name: member.type for member in members}
            parts = [
                _without_blanks(part, type_of[child.name]) if child.name in type_of else part
                for part, child in zip(array.flatten(), array.type, strict=True)
            ]
            return pa.StructArray.from_arrays(parts, names=[child.name for child in array.type], mask=array.is_null())
    return array


def _own_offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    # pyarrow takes no mask together with offsets that are a slice of something.
    return pa.array(array.offsets.to_numpy().copy(), pa.int32())


def _contains_char(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element):
            return _contains_char(element)
        case MapType(key, value):
            return _contains_char(key) or _contains_char(value)
        case RowType(members):
            return any(_contains_char(member.type) for member in members)
    return is_root(data_type, TypeRoot.CHAR)


ORC = OrcFormat()
