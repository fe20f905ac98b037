"""What a data file format offers: the contract that Parquet, ORC, Avro and the formats of text fulfil.

Callers hand over Arrow data and a list of columns and get Arrow data back; everything that is particular to a format
stays behind these names. Nothing here knows tables, paths or file systems: streams come in from outside and are closed
outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.text.settings import Written
from lakebed.records import dataclass
from lakebed.types.logical import DataField

_DEFAULT_ROW_GROUP_ROWS = 128 * 1024
"""Large enough that scans and dictionaries pay off, small enough that a pruned read skips something, and that a file of
some hundred thousand rows keeps all cores busy: engines read row groups, not files, side by side."""

DEFAULT_ROW_GROUP_BYTES = 128 * 1024 * 1024
"""Arrow bytes buffered before a row group is written; what bounds a writer's memory when rows are wide."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Least and greatest value and number of nulls of one column of one file; None stands for unknown.

    The scalars have the column's Arrow type and are not shortened. A column with nulls only has no `min` and no `max`
    and a `null_count` equal to the file's row count.
    """

    min: pa.Scalar | None
    max: pa.Scalar | None
    null_count: int | None


@dataclass(frozen=True, slots=True)
class FileStats:
    """What a writer knows of the file it finished. Columns without asked-for statistics are absent."""

    row_count: int
    columns: dict[str, ColumnStats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """How a file is written. `stats_columns` names the columns that need statistics; None means all."""

    compression: str = "zstd"
    zstd_level: int = 1
    row_group_rows: int = _DEFAULT_ROW_GROUP_ROWS
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    stats_columns: frozenset[str] | None = None
    table_options: Mapping[str, str] = field(default_factory=dict)
    """How files of text are spelled stands among the options of their table."""


class FormatWriter(Protocol):
    """Writes one file."""

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Appends rows. The columns are exactly those the writer was opened with, in that order."""

    def bytes_written(self) -> int:
        """Estimate of the file's size so far, rows that are still buffered included."""

    def close(self) -> FileStats:
        """Completes the content of the file. The stream stays open: it belongs to the caller."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """What a read with a filter opens of a file that is divided into row groups."""

    all: int
    read: int
    size_bytes: int
    """Of the columns that are read, compressed."""


class FormatReader(Protocol):
    """Reads one file; a context manager that lets go of buffers, not of the stream."""

    @property
    def column_names(self) -> list[str]:
        """Top-level columns in file order."""

    @property
    def row_count(self) -> int:
        """Number of rows in the file."""

    @property
    def can_skip(self) -> bool:
        """Whether a filter may leave out stretches of the file. Then the file counts its rows in its footer."""

    def read(
        self,
        fields: Sequence[DataField],
        *,
        filter: pc.Expression | None = None,  # noqa: A002 - the word pyarrow's own readers use
        batch_rows: int = 65536,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yields (position of the first row in the file, rows); positions increase and may have gaps.

        Columns are found by name and come in the order and the Arrow types of `fields`; one that the file lacks reads
        as null. `filter` only leaves out stretches of the file in which its statistics prove that no row matches:
        rows that do not match still come through.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class FileFormat(Protocol):
    """One file format. Stateless: one instance serves everybody."""

    @property
    def name(self) -> str:
        """The word for it in table options, and its file extension."""

    @property
    def default_compression(self) -> str:
        """The compression of files where nobody asks for one."""

    @property
    def tells_compression_by_name(self) -> bool:
        """Whether files are compressed as a whole, which readers know by the end of their names."""

    def check(self, fields: Sequence[DataField]) -> None:
        """Raises InvalidSchema, naming the column, when a column can not be stored in this format."""

    def check_compression(self, compression: str) -> None:
        """Raises InvalidOption when files of this format can not have a compression."""

    def guards(self, compression: str) -> bool:
        """Whether files that are written with this compression carry checksums of all they hold."""

    def open_writer(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> FormatWriter:
        """Starts a file on an output stream."""

    def open_reader(self, source: pa.NativeFile, path: str, written: Written | None = None) -> FormatReader:
        """Opens a file for reading; `path` is for error messages, and text files tell their compression by its end.

        `written` is for files that do not describe themselves.
        """
