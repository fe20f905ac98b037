"""Reads one data file as the table's current schema wants it.

A file was written under some schema version: columns are found by id through that version, lifted to today's names and
types, partition columns come from the manifest, and columns that the file predates are null. Rows that a deletion
vector marks are left out, by their positions in the file. Where a row lies, and which id it has, are columns made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.datafiles.index.probe import excludes
from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.base import FileIO
from lakebed.formats import Stretches, Written, format_of_file
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.deletion_vector import NO_POSITIONS, Positions
from lakebed.options import DATA_FILE_THIN_MODE
from lakebed.records import dataclass
from lakebed.schema.evolution import Evolution, map_fields
from lakebed.schema.system_columns import (
    PLACE_FIELDS,
    ROW_ID,
    ROW_INDEX,
    TRACKED_SEQUENCE_NUMBER,
    TRACKING_FIELDS,
    is_reserved,
    key_field,
)
from lakebed.schema.system_columns import SEQUENCE_NUMBER as SEQUENCE_FIELD
from lakebed.schema.system_columns import VALUE_KIND as KIND_FIELD
from lakebed.schema.table_schema import TableSchema
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import FLOATS, DataField, DataType, is_nested, is_root, same_ignoring_nullability
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import to_expression
from lakebed.types.predicate_ranges import with_ranges

_SYSTEM_COLUMNS = frozenset({SEQUENCE_NUMBER, VALUE_KIND, ROW_ID.name})
READ_WHOLE_BYTES = 256 << 10
"""Files up to this size are read in one go: a store answers one request sooner than one for each column."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How files of one schema version become the wanted columns. Made once: small files would take longer to plan than
    to read."""

    evolution: Evolution
    stored: tuple[DataField, ...]
    """What is read of a file: system columns, and those that the evolution asks for."""
    evolving: tuple[str, ...]
    made_up: frozenset[str]
    """Wanted columns that tell where a row lies."""
    reads_kinds: bool
    needs_places: bool
    is_as_stored: bool
    """Whether the wanted columns are just those that are read."""
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of one table for one projection. `schema_of` gives the schema of an id (cached by its store)."""

    fileio: FileIO
    schema_of: Callable[[int], TableSchema]
    wanted: tuple[DataField, ...]
    partition_keys: frozenset[str] = frozenset()
    batch_rows: int = 65536
    use_threads: bool = True
    orders_by_snapshot: bool = False
    """Whether rows have the number of their snapshot, which stands in the manifest, until they are compacted."""
    uses_indexes: bool = True
    """Whether files are left out if their indexes say that no row matches."""
    tells_kinds: bool = True
    """Whether kinds of rows come as they are stored. If not, they only tell retracts from other rows, and a
    compacted file that has none is not asked for them."""
    _plans: dict[tuple[int, bool], _Plan] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By schema id, and whether kinds are read."""

    def read(
        self,
        path: str,
        file: DataFile,
        partition: Callable[[str], pa.Scalar],
        predicate: Predicate | None = None,
        deleted: Positions = NO_POSITIONS,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(position of the first row, batch) pairs with the wanted columns, without the deleted rows.

        `predicate` only skips files and row groups that can not match; rows are not filtered.
        """
        plan = self._plan(file)
        if predicate is not None and self._is_excluded(path, file, predicate, plan.evolution):
            return
        for position, batch in self._physical(path, file, plan.stored, predicate, plan.evolution):
            batch, places = _without(batch, position, deleted, with_places=plan.needs_places)
            if plan.is_as_stored:
                yield position, _batch(batch.columns, plan.schema, batch.num_rows)
                continue
            lifted = plan.evolution.apply(batch.select(plan.evolving))
            columns = []
            for wanted in self.wanted:
                if wanted.name in plan.made_up:
                    columns.append(pa.array(places) if wanted == ROW_INDEX else pa.repeat(path, len(places)))
                elif wanted.name == SEQUENCE_NUMBER and self.orders_by_snapshot and not _is_compacted(file, path):
                    columns.append(pa.repeat(pa.scalar(file.min_sequence_number, pa.int64()), batch.num_rows))
                elif wanted.name == VALUE_KIND and not plan.reads_kinds:
                    columns.append(pa.array(np.zeros(batch.num_rows, dtype=np.int8)))
                elif wanted.name in _SYSTEM_COLUMNS:
                    columns.append(_tracked(wanted, batch.column(wanted.name), file, places))
                elif wanted.name in self.partition_keys:
                    columns.append(pa.repeat(partition(wanted.name), batch.num_rows))
                else:
                    columns.append(lifted.column(wanted.name))
            yield position, _batch(columns, plan.schema, batch.num_rows)

    def _plan(self, file: DataFile) -> _Plan:
        # Not every writer counts the retracts of files that it writes first.
        has_none = file.level > 0 and file.delete_row_count == 0
        kind = (file.schema_id, self.tells_kinds or not has_none)
        found = self._plans.get(kind)
        if found is None:
            found = self._plans[kind] = self._planned(*kind)
        return found

    def _planned(self, schema_id: int, reads_kinds: bool) -> _Plan:
        made_up = frozenset(wanted.name for wanted in self.wanted if wanted in PLACE_FIELDS)
        known = _SYSTEM_COLUMNS | made_up | self.partition_keys
        system = [wanted for wanted in self.wanted if wanted.name in _SYSTEM_COLUMNS]
        if not reads_kinds:
            system = [wanted for wanted in system if wanted.name != VALUE_KIND]
        evolution = map_fields(
            [wanted for wanted in self.wanted if wanted.name not in known], self.schema_of(schema_id)
        )
        return _Plan(
            evolution,
            (*system, *evolution.file_fields),
            tuple(column.name for column in evolution.file_fields),
            made_up,
            reads_kinds,
            bool(made_up) or ROW_ID in system,
            evolution.is_identity and evolution.file_fields == self.wanted,
            to_arrow_schema(self.wanted),
        )

    def is_excluded(self, path: str, file: DataFile, predicate: Predicate) -> bool:
        """Whether the file's indexes say that no row matches."""
        return self._is_excluded(path, file, predicate, self._plan(file).evolution)

    def _is_excluded(self, path: str, file: DataFile, predicate: Predicate, evolution: Evolution) -> bool:
        if not self.uses_indexes:
            return False
        index = file.embedded_index
        if index is None and file.index_file is not None:
            try:
                index = self.fileio.read_bytes(f"{path.rpartition('/')[0]}/{file.index_file}")
            except FileMissing:
                return False  # the rows are what counts
        return index is not None and excludes(index, path, predicate, lambda name: unchanged_field(evolution, name))

    def stretches(self, path: str, file: DataFile, predicate: Predicate | None) -> Stretches | None:
        """What `read` would open of a file's row groups; None if its format has none."""
        from lakebed.formats.parquet.format import ParquetReader  # of no use to who only reads other formats

        plan = self._plan(file)
        source = self._open(path, file)
        with source, format_of_file(file.file_name).open_reader(source, path, self._written(file)) as reader:
            if not isinstance(reader, ParquetReader):
                return None
            return reader.stretches(plan.stored, _pushed(predicate, plan.evolution))

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
            source = self._open(path, file)
        except FileMissing as error:
            raise FileMissing(
                f"data file {path} of the table is gone",
                hint="its snapshot was probably expired while you read: open the table again and repeat the read",
            ) from error
        with source, format_of_file(file.file_name).open_reader(source, path, self._written(file)) as reader:
            self._check_columns(reader.column_names, fields, file, path)
            pushed, rows_seen = _pushed(predicate, evolution), 0
            for position, batch in reader.read(
                fields,
                filter=pushed,
                batch_rows=self.batch_rows,
                # To hand a few rows to other threads takes longer than to read them.
                use_threads=self.use_threads and file.size_bytes > READ_WHOLE_BYTES,
            ):
                rows_seen += batch.num_rows
                yield position, batch
            found = reader.row_count if pushed is not None and reader.can_skip else rows_seen
            if found != file.row_count:
                raise CorruptFile(
                    f"data file {path} holds {found} rows, its manifest says {file.row_count}",
                    hint="the file was replaced or cut: restore it, or roll the table back to a snapshot without it",
                )

    def _written(self, file: DataFile) -> Written:
        """What text files do not say of themselves."""
        schema = self.schema_of(file.schema_id)
        fields = schema.fields
        if file.write_cols is not None:
            of_name = {column.name: column for column in (*fields, *TRACKING_FIELDS)}
            fields = tuple(of_name[name] for name in file.write_cols if name in of_name)
        if schema.primary_keys:
            is_thin = schema.options.get(DATA_FILE_THIN_MODE.key, "").lower() == "true"
            keys = [] if is_thin else [key_field(schema.field(name)) for name in schema.trimmed_primary_key]
            fields = (*keys, SEQUENCE_FIELD, KIND_FIELD, *fields)
        return Written(fields, schema.options)

    def _open(self, path: str, file: DataFile) -> pa.NativeFile:
        if file.size_bytes <= READ_WHOLE_BYTES:
            return pa.BufferReader(self.fileio.read_bytes(path))
        return self.fileio.open_input(path)

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


def _without(
    batch: pa.RecordBatch, position: int, deleted: Positions, *, with_places: bool
) -> tuple[pa.RecordBatch, Positions]:
    """Rows that are not deleted, and their positions if asked for. The batch begins at a position of the file."""
    count = batch.num_rows
    places = np.arange(position, position + count, dtype=np.int64) if with_places else NO_POSITIONS
    if not len(deleted):
        return batch, places
    start, stop = np.searchsorted(deleted, (position, position + count))
    if start == stop:
        return batch, places
    gone = deleted[start:stop] - position
    if with_places:
        places = np.delete(places, gone)
    if not batch.num_columns:
        return _batch([], pa.schema([]), count - int(stop - start)), places
    return batch.filter(_kept(count, gone)), places


def _kept(count: int, gone: Positions) -> pa.BooleanArray:
    """A mask that leaves out a few rows, bit by bit: to make one bit of each byte would take longer than to filter."""
    bits = np.full(-(-count // 8), 0xFF, np.uint8)
    np.bitwise_and.at(bits, gone >> 3, ~np.left_shift(np.uint8(1), (gone & 7).astype(np.uint8)))
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)])


def _tracked(field: DataField, column: pa.Array, file: DataFile, places: Positions) -> pa.Array:
    """Ids and sequence numbers that stand in the file, and those that follow from its manifest entry."""
    if not column.null_count:
        return column
    if field == ROW_ID and file.first_row_id is not None:
        return pc.coalesce(column, pa.array(places + file.first_row_id))
    if field == TRACKED_SEQUENCE_NUMBER:
        return pc.fill_null(column, file.max_sequence_number)
    return column


def _is_compacted(file: DataFile, path: str) -> bool:
    if file.file_source is None:
        raise CorruptFile(
            f"data file {path}: its manifest does not tell whether it was written or compacted, so its place in the "
            "order of snapshots is unknown",
            hint="`sequence.snapshot-ordering` is for tables that had it from the start",
        )
    return file.file_source == FileSource.COMPACT


def _pushed(predicate: Predicate | None, evolution: Evolution) -> pc.Expression | None:
    """The part of the predicate that the file's own columns can answer, under their old names."""
    if predicate is None:
        return None
    names = {}
    for wanted in evolution.wanted:
        old = unchanged_field(evolution, wanted.name)
        # Only types whose statistics bound all values, since one other column would keep the reader from skipping
        # anything.
        if old is not None and _is_bounded(old.type):
            names[wanted.name] = old.name
    part = predicates.project_onto(predicate, frozenset(names))
    return None if part is None else to_expression(with_ranges(predicates.rename(part, names)))


def unchanged_field(evolution: Evolution, name: str) -> DataField | None:
    """The file's own column behind a wanted one, if its type is still the same: a literal of today need not even exist
    in an older, narrower one."""
    now = next((field for field in evolution.wanted if field.name == name), None)
    old = None if now is None else evolution.old_field_of(name)
    if now is None or old is None or not same_ignoring_nullability(old.type, now.type):
        return None
    return old


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
