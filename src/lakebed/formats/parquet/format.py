"""Parquet data files, the default format.

Timestamps finer than microseconds are INT96, the only form in which released Java reads them; 64-bit nanoseconds of
other writers are read as well. Pages carry checksums, which are verified on reading, and the footer gets one from
`guarded`, so a damaged file is an error and not wrong rows. Which rows a query wants is decided above; here only whole
row groups are left out, on the evidence of their statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.formats.base import FileStats, Stretches, WriteSettings
from lakebed.formats.careful_sink import CarefulSink
from lakebed.formats.conform import as_corrupt, check_rows, to_read, to_write
from lakebed.formats.guarded import find_guard, guard_of_tail
from lakebed.formats.hidden_nulls import without_hidden_nulls
from lakebed.formats.parquet.footer import bytes_declared_int96, footer_of_tail, int96_shown_as_bytes, tail_bytes
from lakebed.formats.parquet.int96 import RAW, decoded, encoded, int96_columns
from lakebed.formats.parquet.prune import kept_row_groups
from lakebed.formats.parquet.schema import dictionary_columns, leaf_columns, parquet_schema
from lakebed.formats.size_estimate import SizeEstimate
from lakebed.formats.statistics import StatsCollector
from lakebed.formats.text.settings import Written
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataField

_CODECS = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "brotli": "brotli",
    "none": "none",
    "uncompressed": "none",
}
_FINE_TIMESTAMPS = (pa.timestamp("ns"), pa.timestamp("ns", tz="UTC"))
_AT_HAND = (pa.OSFile, pa.MemoryMappedFile, pa.BufferReader)
_READ_BYTES = 256 * 1024
"""Of a file at hand this much of each column is read at a time; of others, whole columns of a row group."""
_FOOTER_BOUND_BYTES = 4096
"""Parquet's C++ writer leaves longer values out of a row group's statistics."""


class ParquetFormat:
    """The format `parquet`."""

    name = "parquet"
    default_compression = "zstd"
    tells_compression_by_name = False

    def check(self, fields: Sequence[DataField]) -> None:
        """Parquet stores every type."""

    def check_compression(self, compression: str) -> None:
        """Refuses what Parquet has no codec for."""
        _codec(compression)

    def guards(self, compression: str) -> bool:
        """Checksums do not depend on compression."""
        return True

    def open_writer(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> ParquetWriter:
        """Starts a file."""
        return ParquetWriter(stream, fields, settings)

    def open_reader(self, source: pa.NativeFile, path: str, written: Written | None = None) -> ParquetReader:
        """Reads a file's footer."""
        return ParquetReader(source, path)


class ParquetWriter:
    """Collects rows until a row group is full; every flush is one row group."""

    def __init__(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> None:
        self._stream = stream
        self._sink = CarefulSink(stream)
        self._fields = tuple(fields)
        self._settings = settings
        self._schema = parquet_schema(fields)
        self._leaves = leaf_columns(self._schema)
        self._int96 = frozenset(i for i, (_, arrow) in enumerate(self._leaves) if arrow == RAW)
        self._codec = _codec(settings.compression)
        self._file: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._stats = StatsCollector(fields, settings.stats_columns)
        self._bounds_known: list[set[str]] = []
        self._size = SizeEstimate(self._sample_bytes)

    def _open(self, sink: pa.NativeFile, first_rows: pa.Table) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            sink,
            self._schema,
            compression=self._codec,
            compression_level=self._settings.zstd_level if self._codec == "zstd" else None,
            use_dictionary=dictionary_columns(first_rows),
            store_decimal_as_integer=True,
            # The columns asked for decide the types on reading; a second copy of the schema would only cost bytes.
            store_schema=False,
            write_page_checksum=True,
            # The order of INT96 is undefined, and these are the bounds of its bytes.
            write_statistics=[path for path, arrow in self._leaves if arrow != RAW] if self._int96 else True,
        )

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Appends rows, and writes row groups as they fill."""
        rows = to_write(batch, self._fields)
        self._size.add(rows)
        limit = self._settings.row_group_rows
        while self._pending_rows + rows.num_rows >= limit:
            room = limit - self._pending_rows
            self._hold(rows.slice(0, room))
            self._flush()
            rows = rows.slice(room)
        if rows.num_rows:
            self._hold(rows)
        if self._pending_bytes >= self._settings.row_group_bytes:
            self._flush()

    def _hold(self, rows: pa.Table) -> None:
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes

    def _flush(self) -> None:
        group = pa.concat_tables(self._pending)
        footer_tells = {name for name in self._stats.bounded() if self._footer_tells(group.column(name))}
        self._stats.add(group, bounds_later=footer_tells)
        self._bounds_known.append(set(self._stats.bounded()) - footer_tells)
        if self._file is None:
            self._file = self._open(self._sink.file, group)
        self._file.write_table(self._with_ids(group), row_group_size=group.num_rows)
        self._sink.check()
        self._size.observe(self._stream.tell(), self._pending_bytes)
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _footer_tells(self, column: pa.ChunkedArray) -> bool:
        """Whether the footer will hold this column's bounds: not those of INT96, nor of long values."""
        return column.type not in _FINE_TIMESTAMPS and not _has_long_values(column)

    def _with_ids(self, rows: pa.Table) -> pa.Table:
        columns = [
            without_hidden_nulls(encoded(column, field.type))
            for column, field in zip(rows.columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _sample_bytes(self, sample: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        with self._open(sink, sample) as file:
            file.write_table(self._with_ids(sample))
        return int(sink.getvalue().size)

    def bytes_written(self) -> int:
        """Size of the row groups written, plus an estimate for the rows that wait."""
        return max(int(self._stream.tell()), self._size.file_bytes())

    def close(self) -> FileStats:
        """Writes the last row group and the footer."""
        if self._pending_rows:
            self._flush()
        if self._file is None:
            self._file = self._open(self._sink.file, self._schema.empty_table())
        self._sink.hold()
        self._file.close()
        end = self._sink.release()
        if self._int96:
            end = bytes_declared_int96(end, self._int96)
        tail = end[len(end) - tail_bytes(end) :]
        self._sink.write(end[: len(end) - len(tail)])
        self._sink.write(guard_of_tail(tail, self._sink.tell()) + tail)
        self._sink.check()
        self._take_footer_bounds(self._file.writer.metadata)
        return self._stats.result()

    def _take_footer_bounds(self, footer: pq.FileMetaData) -> None:
        leaf_of = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
        type_of = {field.name: to_arrow_type(field.type) for field in self._fields}
        for name in self._stats.bounded():
            for group, known in enumerate(self._bounds_known):
                if name in known:
                    continue
                statistics = footer.row_group(group).column(leaf_of[name]).statistics
                if statistics is not None and statistics.null_count == footer.row_group(group).num_rows:
                    continue
                if statistics is None or not statistics.has_min_max:
                    self._stats.give_up(name)
                    break
                self._stats.widen(name, *_scalars(statistics, type_of[name]))


def _scalars(statistics: pq.Statistics, arrow: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """Bounds of a column chunk as Arrow scalars. Times go by their raw integers: datetime objects lack the range."""
    if pa.types.is_temporal(arrow) or pa.types.is_integer(arrow):
        raw = pa.array([statistics.min_raw, statistics.max_raw], pa.int64())
        if pa.types.is_timestamp(arrow) and arrow.unit == "s":
            raw = raw.cast(pa.timestamp("ms")).cast(pa.timestamp("s")).cast(pa.int64())
        storage = pa.int64() if arrow.bit_width == 64 else pa.int32()
        both = raw.cast(storage).cast(arrow)
    else:
        both = pa.array([statistics.min, statistics.max], arrow)
    return both[0], both[1]


def _has_long_values(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return False
    longest = pc.max(pc.binary_length(column)).as_py()
    return longest is not None and longest > _FOOTER_BOUND_BYTES


def _codec(compression: str) -> str:
    codec = _CODECS.get(compression.lower())
    if codec is None:
        raise InvalidOption(
            f"parquet files can not have the compression `{compression}`", hint=did_you_mean(compression, _CODECS)
        )
    return codec


class ParquetReader:
    """Reads row groups one after the other, so that memory does not grow with the file."""

    can_skip = True

    def __init__(self, source: pa.NativeFile, path: str) -> None:
        self._source = source
        self._path = path
        with as_corrupt(path):
            guarded = find_guard(source, tail_bytes)
            self._file = self._open(None if guarded is None else footer_of_tail(guarded.tail))
            self._schema: pa.Schema = self._file.schema_arrow
        self._int96 = int96_columns(self._file, self._schema)

    def _open(self, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
        is_at_hand = isinstance(self._source, _AT_HAND)
        return pq.ParquetFile(
            self._source,
            metadata=footer,
            # Reading ahead saves round trips to a store; of a file at hand it only makes a second copy.
            pre_buffer=not is_at_hand,
            buffer_size=_READ_BYTES if is_at_hand and not isinstance(self._source, pa.BufferReader) else 0,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )

    @property
    def column_names(self) -> list[str]:
        """Top-level columns in file order."""
        return list(self._schema.names)

    @property
    def row_count(self) -> int:
        """Number of rows according to the footer."""
        return int(self._file.metadata.num_rows)

    def read(
        self,
        fields: Sequence[DataField],
        *,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_rows: int = 65536,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See `FormatReader.read`."""
        groups: Sequence[int] = range(self._file.metadata.num_row_groups)
        if filter is not None:
            groups = kept_row_groups(self._source, self._schema, fields, filter, self._path)
        for position, end, run in _runs(self._file.metadata, groups, batch_rows):
            for batch in self._batches(fields, run, batch_rows, use_threads):
                yield position, batch
                position += batch.num_rows
            # Checksums cover the content of pages, not their headers: a damaged header shows as missing rows.
            check_rows(position, end, self._path)

    def stretches(self, fields: Sequence[DataField], filter: pc.Expression | None) -> Stretches:  # noqa: A002
        """What `read` would read: how many row groups of how many, and the bytes of the columns in them."""
        footer = self._file.metadata
        groups: Sequence[int] = range(footer.num_row_groups)
        if filter is not None:
            groups = kept_row_groups(self._source, self._schema, fields, filter, self._path)
        names = {field.name for field in fields}
        columns = [n for n in range(footer.num_columns) if footer.schema.column(n).path.split(".")[0] in names]
        size = sum(footer.row_group(group).column(n).total_compressed_size for group in groups for n in columns)
        return Stretches(footer.num_row_groups, len(groups), size)

    def _batches(
        self, fields: Sequence[DataField], groups: list[int], batch_rows: int, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        wanted = [field for field in fields if field.name in self._schema.names]
        raw = [field for field in wanted if field.name in self._int96]
        with as_corrupt(self._path):
            file = self._open(int96_shown_as_bytes(self._file.metadata)) if raw else self._file
            batches = file.iter_batches(
                batch_rows, groups, columns=[field.name for field in wanted], use_threads=use_threads
            )
        while True:
            with as_corrupt(self._path):
                batch = next(batches, None)
            if batch is None:
                return
            for field in raw:
                index = batch.schema.get_field_index(field.name)
                column = decoded(batch.column(index), to_arrow_type(field.type), field.name, self._path)
                batch = batch.set_column(index, field.name, column)
            yield to_read(batch, fields, self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The stream belongs to the caller; there is nothing else to let go of."""


def _runs(footer: pq.FileMetaData, groups: Sequence[int], batch_rows: int) -> Iterator[tuple[int, int, list[int]]]:
    """Neighbouring row groups, taken together while they are smaller than a batch, with the rows they span."""
    if footer.num_row_groups == 1:
        if groups:
            yield 0, footer.num_rows, [0]
        return
    first_rows = [0]
    for group in range(footer.num_row_groups):
        first_rows.append(first_rows[-1] + footer.row_group(group).num_rows)
    run: list[int] = []
    for group in groups:
        if run and (group != run[-1] + 1 or first_rows[group] - first_rows[run[0]] >= batch_rows):
            yield first_rows[run[0]], first_rows[run[-1] + 1], run
            run = []
        run.append(group)
    if run:
        yield first_rows[run[0]], first_rows[run[-1] + 1], run


PARQUET = ParquetFormat()
