"""Reads one data file as the table's current schema wants it.

A file was written under some schema version: columns are found by id through that version, lifted to today's names and
types, partition columns come from the manifest, and columns that the file predates are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.base import FileIO
from lakebed.formats import format_of_file
from lakebed.metadata.data_file import DataFile
from lakebed.schema.evolution import Evolution, map_fields
from lakebed.schema.system_columns import is_reserved
from lakebed.schema.table_schema import TableSchema
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import FLOATS, DataField, DataType, is_nested, is_root, same_ignoring_nullability
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import to_expression

SYSTEM_COLUMNS = frozenset({SEQUENCE_NUMBER, VALUE_KIND})


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of one table for one projection. `schema_of` gives the schema of an id (cached by its store)."""

    fileio: FileIO
    schema_of: Callable[[int], TableSchema]
    wanted: tuple[DataField, ...]
    partition_keys: frozenset[str] = frozenset()
    batch_rows: int = 65536
    use_threads: bool = True

    def read(
        self, path: str, file: DataFile, partition: Callable[[str], pa.Scalar], predicate: Predicate | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(position of the first row, batch) pairs with the wanted columns.

        `predicate` only skips row groups that can not match; rows are not filtered.
        """
        system = [field for field in self.wanted if field.name in SYSTEM_COLUMNS]
        stored = [field for field in self.wanted if field.name not in SYSTEM_COLUMNS | self.partition_keys]
        evolution = map_fields(stored, self.schema_of(file.schema_id))
        wanted_schema = to_arrow_schema(self.wanted)
        rows_seen = 0
        for position, batch in self._physical(path, file, [*system, *evolution.file_fields], predicate, evolution):
            lifted = evolution.apply(batch.select([field.name for field in evolution.file_fields]))
            columns = []
            for field in self.wanted:
                if field.name in SYSTEM_COLUMNS:
                    columns.append(batch.column(field.name))
                elif field.name in self.partition_keys:
                    columns.append(pa.repeat(partition(field.name), batch.num_rows))
                else:
                    columns.append(lifted.column(field.name))
            rows_seen += batch.num_rows
            yield position, _batch(columns, wanted_schema, batch.num_rows)
        if predicate is None and rows_seen != file.row_count:
            raise CorruptFile(
                f"data file {path} holds {rows_seen} rows, its manifest says {file.row_count}",
                hint="the file was replaced or cut: restore it, or roll the table back to a snapshot without it",
            )

    def _physical(
        self,
        path: str,
        file: DataFile,
        fields: Sequence[DataField],
        predicate: Predicate | None,
        evolution: Evolution,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        if not fields:
            # Only partition columns are wanted: the row count is all that matters.
            yield from _empty_batches(file.row_count, self.batch_rows)
            return
        try:
            source = self.fileio.open_input(path)
        except FileMissing as error:
            raise FileMissing(
                f"data file {path} of the table is gone",
                hint="its snapshot was probably expired while you read: open the table again and repeat the read",
            ) from error
        with source, format_of_file(file.file_name).open_reader(source, path) as reader:
            self._check_columns(reader.column_names, fields, file, path)
            yield from reader.read(
                fields,
                filter=_pushed(predicate, evolution),
                batch_rows=self.batch_rows,
                use_threads=self.use_threads,
            )

    def _check_columns(self, found: Sequence[str], fields: Sequence[DataField], file: DataFile, path: str) -> None:
        """Refuses a file whose columns are not those of its schema.

        Lacking one is no proof: migrated files may predate a column. With a stranger in its place, it is another file.
        """
        lacking = [field.name for field in fields if field.name not in found]
        if not lacking:
            return
        known = self.schema_of(file.schema_id).field_names
        strangers = [name for name in found if name not in known and not is_reserved(name)]
        if strangers:
            raise CorruptFile(
                f"data file {path} lacks column `{lacking[0]}` of its schema and has `{strangers[0]}`",
                hint="the file was damaged or replaced: restore it, or roll the table back to a snapshot without it",
            )


def _pushed(predicate: Predicate | None, evolution: Evolution) -> pc.Expression | None:
    """The part of the predicate that the file's own columns can answer, under their old names."""
    if predicate is None:
        return None
    names = {}
    for field in evolution.wanted:
        old = evolution.old_field_of(field.name)
        # Only unchanged types, since a literal may not even exist in an older, narrower one; and only types whose
        # statistics bound all values, since one other column would keep the reader from skipping anything.
        if old is not None and same_ignoring_nullability(old.type, field.type) and _is_bounded(old.type):
            names[field.name] = old.name
    part = predicates.project_onto(predicate, frozenset(names))
    return None if part is None else to_expression(predicates.rename(part, names))


def _is_bounded(data_type: DataType) -> bool:
    return not is_nested(data_type) and not is_root(data_type, FLOATS)


def _batch(columns: list[pa.Array], schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    # Without columns only this way keeps the number of rows.
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), row_count, [None]))


def _empty_batches(row_count: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for position in range(0, row_count, batch_rows):
        yield position, _batch([], pa.schema([]), min(batch_rows, row_count - position))
