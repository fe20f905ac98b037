"""Schemas, rows and writers for tests of single data files."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from lakebed.clock import FixedClock
from lakebed.datafiles.read_file import FileReader
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter, WriteRules
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.formats import FORMATS
from lakebed.formats.base import WriteSettings
from lakebed.metadata.data_file import DataFile
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import DataField, parse_type


def fields(**types: str) -> tuple[DataField, ...]:
    """Columns numbered in order."""
    return tuple(DataField(number, name, parse_type(text)) for number, (name, text) in enumerate(types.items()))


def schema_of(columns: tuple[DataField, ...], schema_id: int = 0) -> TableSchema:
    """A schema version with these columns, ids as they are."""
    return TableSchema(schema_id, columns, max(column.id for column in columns), (), (), {}, None, 0)


@dataclass
class Bucket:
    """A directory to write data files into and read them from."""

    layout: FileLayout
    file_format: str = "parquet"
    fileio: MemoryFileIO = field(default_factory=lambda: MemoryFileIO(uuid4().hex))
    made: list[str] = field(default_factory=list)

    def path(self, name: str) -> str:
        return f"{self.fileio.name}/bucket-0/{name}"

    def rules(self, **more: Any) -> WriteRules:
        settings = {"format": FORMATS[self.file_format], "settings": WriteSettings(), "target_size_bytes": 1 << 30}
        return WriteRules(**{**settings, **more})

    def writer(self, *, first_sequence_number: int = 0, fileio: FileIO | None = None, **rules: Any) -> RollingWriter:
        numbers = itertools.count(len(self.made))

        def new_name() -> str:
            self.made.append(f"data-{next(numbers)}.{self.file_format}")
            return self.made[-1]

        return RollingWriter(
            fileio or self.fileio,
            self.path,
            new_name,
            self.layout,
            self.rules(**rules),
            FixedClock(1_700_000_000_000),
            first_sequence_number=first_sequence_number,
        )

    def written(self, rows: pa.RecordBatch, **rules: Any) -> list[DataFile]:
        """The files these rows become."""
        writer = self.writer(**rules)
        writer.write(rows)
        return writer.close()

    def written_to(self, fileio: FileIO, rows: pa.RecordBatch, **rules: Any) -> list[DataFile]:
        """The same through another view of the file system."""
        writer = self.writer(fileio=fileio, **rules)
        writer.write(rows)
        return writer.close()

    def reader(self, wanted: tuple[DataField, ...], *schemas: TableSchema, **more: Any) -> FileReader:
        by_id = {schema.id: schema for schema in schemas}
        return FileReader(self.fileio, by_id.__getitem__, wanted, **more)

    def left(self) -> list[str]:
        """Names of the files that are there."""
        return sorted(status.name for status in self.fileio.list_directory(f"{self.fileio.name}/bucket-0"))
