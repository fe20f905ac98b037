"""Writes rows into data files of about the target size and describes each file for the manifest.

Files of a primary-key table get the `_KEY_` copies of their key columns in front, since the oldest readers look there.
A writer that fails or is aborted removes every file it has made: nothing refers to them yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakebed.cleanup import AbortedOnFailure, on_failure
from lakebed.clock import Clock
from lakebed.datafiles.index.build import FileIndexBuilder, IndexSpec
from lakebed.datafiles.statistics import key_statistics, value_statistics
from lakebed.errors import StorageError
from lakebed.fileio.base import FileIO, OutputFile
from lakebed.formats.base import FileFormat, FileStats, FormatWriter, WriteSettings
from lakebed.metadata.data_file import EMPTY_STATS, INDEX_SUFFIX, DataFile, FileSource, creation_time_from_epoch
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.binary_row import EMPTY_ROW, encode_row
from lakebed.types.key_value import KEY_PREFIX, SEQUENCE_NUMBER
from lakebed.types.logical import DataField
from lakebed.types.row_kind import is_retract

_log = logging.getLogger(__name__)

_ROWS_BETWEEN_SIZE_CHECKS = 65536
_LEAST_ROWS_BETWEEN_SIZE_CHECKS = 1024

_COMPRESSION_NAMES = {"zstd": "zst", "gzip": "gz", "bzip2": "bz2", "none": ""}
"""Compressions that file names call otherwise."""


@dataclass(frozen=True)
class FileLayout:
    """What stands in the files of a table: its columns and, for a primary-key table, its key."""

    schema_id: int
    fields: tuple[DataField, ...]
    key: tuple[DataField, ...] = ()
    tracks_rows: bool = False
    """Rows have ids and, for sequence numbers, the snapshots that wrote them: both are for the commit to give."""
    carries_ids: bool = False
    """Rows were in the table before: their ids, and the sequence numbers of those that did not change, are columns."""

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Columns of a file as rows are handed to its format."""
        return to_arrow_schema(self.physical)

    @cached_property
    def physical(self) -> tuple[DataField, ...]:
        """Columns of a file in their order."""
        if self.carries_ids:
            return (*self.fields, *system_columns.TRACKING_FIELDS)
        if not self.key:
            return self.fields
        return (
            *(system_columns.key_field(column) for column in self.key),
            system_columns.SEQUENCE_NUMBER,
            system_columns.VALUE_KIND,
            *self.fields,
        )


@dataclass(frozen=True, slots=True)
class WriteRules:
    """How files are made: format, size, statistics."""

    format: FileFormat
    settings: WriteSettings
    target_size_bytes: int
    target_row_count: int | None = None
    stats_mode_of: Callable[[str], str] = field(default=lambda _: "truncate(16)")
    dense_stats: bool = True
    indexes: tuple[IndexSpec, ...] = ()
    index_in_manifest_bytes: int = 500
    """Size up to which the indexes of a file stand in its manifest entry instead of a file beside it."""
    names_compression: bool = False

    @property
    def extension(self) -> str:
        """How names of files end: the format, after the compression if it is to be named, or before if it must be."""
        compression = _COMPRESSION_NAMES.get(self.settings.compression, self.settings.compression)
        if compression and self.format.tells_compression_by_name:
            return f"{self.format.name}.{compression}"
        return f"{compression}.{self.format.name}" if self.names_compression and compression else self.format.name


class RollingWriter(AbortedOnFailure):
    """Streams batches of one bucket into files. REQUIRES for a key: batches in key order, one row per key and file."""

    def __init__(
        self,
        fileio: FileIO,
        path_of: Callable[[str], str],
        new_file_name: Callable[[], str],
        layout: FileLayout,
        rules: WriteRules,
        clock: Clock,
        *,
        level: int = 0,
        source: FileSource = FileSource.APPEND,
        first_sequence_number: int = 0,
    ) -> None:
        self._fileio = fileio
        self._path_of = path_of
        self._new_file_name = new_file_name
        self._layout = layout
        self._rules = rules
        self._clock = clock
        self._level = level
        self._source = source
        self._next_sequence_number = first_sequence_number
        self._schema = layout.arrow_schema
        self._open: _OpenFile | None = None
        self._files: list[DataFile] = []

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows (key-value shape for a key), rolling to a new file when one is full."""
        with on_failure(self.abort):
            step = self._rows_between_size_checks(rows)
            for offset in range(0, rows.num_rows, step):
                self._write_slice(rows.slice(offset, step))

    def close(self) -> list[DataFile]:
        """Finishes the open file and returns all files, which are durable now."""
        with on_failure(self.abort):
            self._roll()
        return self._files

    def abort(self) -> None:
        """Removes every file of this writer. What can not be removed is an orphan, and no reason to fail once more."""
        open_file, self._open = self._open, None
        files, self._files = self._files, []
        try:
            if open_file is not None:
                open_file.discard()
            for name in (name for file in files for name in (file.file_name, *file.extra_files)):
                self._fileio.delete(self._path_of(name))
        except StorageError as error:
            _log.warning("left an unreferenced file behind: %s", error.message)

    def _rows_between_size_checks(self, rows: pa.RecordBatch) -> int:
        """Fewer where files are to be small, or rows are large."""
        fitting = int(rows.num_rows) * self._rules.target_size_bytes // max(1, int(rows.nbytes))
        return max(_LEAST_ROWS_BETWEEN_SIZE_CHECKS, min(_ROWS_BETWEEN_SIZE_CHECKS, fitting // 4))

    def _write_slice(self, rows: pa.RecordBatch) -> None:
        while rows.num_rows:
            if self._open is None:
                name = self._new_file_name()
                output = self._fileio.open_output(self._path_of(name))
                self._open = _OpenFile(name, output, self._layout, self._rules)
            room = rows.num_rows
            if self._rules.target_row_count is not None:
                room = min(room, self._rules.target_row_count - self._open.row_count)
            self._open.write(rows.slice(0, room), self._schema)
            rows = rows.slice(room)
            if self._open.is_full():
                self._roll()

    def _roll(self) -> None:
        if self._open is None:
            return
        stats, size_bytes = self._open.finish()
        made, self._open = self._open, None
        self._files.append(self._describe(made, stats, size_bytes))
        self._files[-1] = self._with_index(self._files[-1], made.index())

    def _with_index(self, file: DataFile, index: bytes | None) -> DataFile:
        if index is None:
            return file
        if len(index) <= self._rules.index_in_manifest_bytes:
            return replace(file, embedded_index=index)
        name = file.file_name + INDEX_SUFFIX
        self._fileio.write_bytes(self._path_of(name), index)
        return replace(file, extra_files=(name,))

    def _describe(self, made: _OpenFile, stats: FileStats, size_bytes: int) -> DataFile:
        layout = self._layout
        value_stats, stats_columns = value_statistics(
            layout.fields, stats.columns, self._rules.stats_mode_of, dense=self._rules.dense_stats
        )
        if layout.key:
            types = [column.type for column in layout.key]
            sequence = stats.columns[SEQUENCE_NUMBER]
            assert sequence.min is not None
            assert sequence.max is not None
            first, last = sequence.min.as_py(), sequence.max.as_py()
            min_key, max_key = encode_row(made.first_key, types), encode_row(made.last_key, types)
            key_columns = {column.name: stats.columns[KEY_PREFIX + column.name] for column in layout.key}
            key_stats = key_statistics(layout.key, key_columns)
        elif layout.tracks_rows:
            first, last = _tracked_range(stats) if layout.carries_ids else (0, 0)
            min_key = max_key = EMPTY_ROW
            key_stats = EMPTY_STATS
        else:
            first, last = self._next_sequence_number, self._next_sequence_number + stats.row_count - 1
            self._next_sequence_number = last + 1
            min_key = max_key = EMPTY_ROW
            key_stats = EMPTY_STATS
        return DataFile(
            file_name=made.name,
            size_bytes=size_bytes,
            row_count=stats.row_count,
            min_key=min_key,
            max_key=max_key,
            key_stats=key_stats,
            value_stats=value_stats,
            min_sequence_number=first,
            max_sequence_number=last,
            schema_id=layout.schema_id,
            level=self._level,
            extra_files=(),
            creation_time_ms=creation_time_from_epoch(self._clock.now_ms()),
            delete_row_count=made.delete_row_count,
            embedded_index=None,
            file_source=self._source,
            value_stats_cols=self._stats_columns(stats_columns),
            external_path=None,
            first_row_id=None,
            write_cols=tuple(field.name for field in layout.physical) if layout.carries_ids else None,
            write_cols_sequences=None,
        )

    def _stats_columns(self, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        # Where a file names its columns, readers take statistics without names to be of those, ids included.
        if self._layout.carries_ids and columns is None:
            return tuple(field.name for field in self._layout.fields)
        return columns


def _tracked_range(stats: FileStats) -> tuple[int, int]:
    """Smallest and largest sequence number; 0 stands for the snapshot that the commit will make."""
    numbers = stats.columns[SEQUENCE_NUMBER]
    if numbers.min is None or numbers.max is None:
        return 0, 0
    return numbers.min.as_py(), 0 if numbers.null_count else numbers.max.as_py()


class _OpenFile:
    """A file being written."""

    def __init__(self, name: str, output: OutputFile, layout: FileLayout, rules: WriteRules) -> None:
        self.name = name
        self.row_count = 0
        self.delete_row_count = 0
        self._arrow_bytes = 0
        self.first_key: list[pa.Scalar] = []
        self.last_key: list[pa.Scalar] = []
        self._layout = layout
        self._rules = rules
        self._output = output
        self._index = FileIndexBuilder(rules.indexes) if rules.indexes else None
        with on_failure(self.discard):
            self._writer: FormatWriter = rules.format.open_writer(output.stream, layout.physical, rules.settings)

    def write(self, rows: pa.RecordBatch, schema: pa.Schema) -> None:
        key = [rows.column(column.name) for column in self._layout.key]
        if key:
            if not self.first_key:
                self.first_key = [column[0] for column in key]
            self.last_key = [column[-1] for column in key]
            self.delete_row_count += int(np.count_nonzero(is_retract(key_value.kinds(rows))))
        self._writer.write(pa.RecordBatch.from_arrays([*key, *rows.columns], schema=schema))
        if self._index is not None:
            self._index.add(rows)
        self.row_count += rows.num_rows
        self._arrow_bytes += rows.nbytes

    def is_full(self) -> bool:
        if self._rules.target_row_count is not None and self.row_count >= self._rules.target_row_count:
            return True
        if self._arrow_bytes < self._rules.target_size_bytes:
            return False  # files are smaller than their rows in memory; an exact answer may cost a sample
        return self._writer.bytes_written() >= self._rules.target_size_bytes

    def finish(self) -> tuple[FileStats, int]:
        stats = self._writer.close()
        self._output.close()
        return stats, self._output.size_bytes

    def index(self) -> bytes | None:
        """The indexes of all rows; None where nothing is indexed."""
        return None if self._index is None else self._index.finish()

    def discard(self) -> None:
        self._output.abort()
