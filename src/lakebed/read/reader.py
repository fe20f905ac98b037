"""Reads planned splits as Arrow batches: evolve, merge, drop retracts, filter, project."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import cast

import numpy as np
import pyarrow as pa

from lakebed.datafiles.read_file import READ_WHOLE_BYTES, FileReader
from lakebed.definition.branch import context_on_branch
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import lowest_level_counts
from lakebed.definition.shown_defaults import stored_part, with_defaults
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.fileio.base import FileIO
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.together import ReadAhead, answers_late
from lakebed.formats.base import Stretches
from lakebed.lsm.merge_runs import came_one_after_the_other, merge_levels, merge_runs, read_runs
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.levels import with_level
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import NO_POSITIONS, Positions
from lakebed.metadata.entries import SMALL_BYTES
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import SCAN_READ_TIME, SCAN_ROWS
from lakebed.metrics.instruments import is_heard
from lakebed.options import (
    DATA_EVOLUTION_ENABLED,
    FILE_INDEX_READ_ENABLED,
    LAKEBED_PARALLELISM,
    READ_BATCH_SIZE,
    Options,
)
from lakebed.read.plan import plan_scan
from lakebed.read.splits import Split, columns_by_file, needs_merge, refuse_parts_of_rows
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema, to_arrow_type, under_schema
from lakebed.types.logical import DataField
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.predicate_stats import ColumnStats, may_match
from lakebed.types.row_kind import is_retract


def projected_fields(context: TableContext, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """The columns a caller asked for, in the order asked; all of them for None."""
    if columns is None:
        return context.shown_fields
    if isinstance(columns, str):
        raise InvalidArgument(f"columns is the text {columns!r}", hint="pass a list of column names")
    if len(set(columns)) != len(columns):
        raise InvalidArgument("columns names a column twice", hint="name each column once")
    hidden = {field.name: field for field in context.hidden_fields}
    return tuple(hidden[name] if name in hidden else context.schema.field(name) for name in columns)


_KEPT_RAW_ROWS = 1 << 19
_KEPT_MERGE_ROWS = 1 << 18
"""Rows of a run that are read at a time when everything is kept. A merge holds as many of each of its runs."""


@dataclass(frozen=True)
class SplitReader:
    """Reads splits of one table for one projection and filter."""

    context: TableContext
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None
    use_threads: bool = True
    keeps_everything: bool = False
    """Whether the caller holds all rows in the end: then more of them are read at a time, which is quicker."""
    source: FileIO | None = None
    """Where files come from, if not from the table's own file system: see `reading_ahead`."""

    def __getstate__(self) -> dict[str, object]:
        """What another process needs: not what was worked out from it."""
        return {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the batches that come out."""
        return to_arrow_schema(self.fields)

    @property
    def showing_nulls(self) -> SplitReader:
        """The same without defaults in place of null; what the filter says of them is left to the caller."""
        return replace(self, context=self.context.showing_nulls, predicate=self._stored)

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Matching rows of a split; no empty batches."""
        return _counted(self._rows_of(split), self.context.name) if is_heard() else self._rows_of(split)

    def _rows_of(self, split: Split) -> Iterator[pa.RecordBatch]:
        if split.branch:
            yield from self._of_branch(split)
            return
        for section in split.sections:
            for batch in self._section(split, section):
                batch = self._placed(split, with_defaults(batch, self.context.shown_defaults))
                rows = self._filtered(batch)
                if rows.num_rows:
                    yield rows.select(self.schema.names)

    def _of_branch(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Rows of another branch, which has schemas, keys and options of its own."""
        there = context_on_branch(self.context, split.branch)
        names = [field.name for field in self.fields]
        reader = replace(self, context=there, fields=projected_fields(there, names))
        for batch in reader._rows_of(replace(split, branch="")):
            yield under_schema(batch, self.schema)

    def read_all(self, splits: Sequence[Split]) -> list[pa.RecordBatch]:
        """Matching rows of splits, in their order, read by as many threads as the table's options allow."""
        ahead = self.reading_ahead(splits)
        pieces = [piece for split in splits for piece in pieces_of(split)]
        threads = threads_for(self.context, (file.size_bytes for piece in pieces for file in piece.files))
        if min(threads, len(pieces)) <= 1:
            return [batch for piece in pieces for batch in ahead.read(piece)]
        # With enough pieces for all threads, reading the columns of one in parallel would only cost.
        reader = ahead if len(pieces) < threads else replace(ahead, use_threads=False)
        with ThreadPoolExecutor(min(threads, len(pieces)), thread_name_prefix="lakebed-read") as pool:
            return [batch for batches in pool.map(lambda piece: list(reader.read(piece)), pieces) for batch in batches]

    def read_each(self, splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
        """Matching rows of splits, in their order, one batch after the other."""
        wanted = list(splits)
        reader = self.reading_ahead(wanted)
        for split in wanted:
            yield from reader.read(split)

    def reading_ahead(self, splits: Sequence[Split]) -> SplitReader:
        """The same for splits that will be read in this order: where answers are late, small files come beforehand."""
        if self.source is not None or not self._in_files or not answers_late(self.context.fileio):
            return self
        paths = [
            self._path(split, file)
            for split in splits
            if not split.branch
            for file in split.files
            if file.size_bytes <= READ_WHOLE_BYTES
        ]
        return self if len(paths) < 2 else replace(self, source=cast(FileIO, ReadAhead(self.context.fileio, paths)))

    def read_newest(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The newest row of each key, a retract too, with its kind; of the filter only what it says of keys is used."""
        rows = self._batch_rows(_KEPT_MERGE_ROWS)
        for section in split.sections:
            runs = [self._keyed_run(split, run, self._merge_fields, rows) for run in section.runs]
            yield from merge_runs(runs, self.context.merge_order, self.context.reading_engine)

    def read_stored(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Rows of a split file by file as they are stored: unmerged, retracts included, unfiltered."""
        for section in split.sections:
            if not self.context.has_key and len(section.runs) > 1:
                yield from self._stitched(split, section)
                continue
            if self.context.options[DATA_EVOLUTION_ENABLED]:
                refuse_parts_of_rows(section.files, self.context.name)
            for file in section.files:
                yield from self._file(split, file, self.fields, None)

    def read_file(self, split: Split, file: DataFile) -> Iterator[pa.RecordBatch]:
        """What one file of a split holds, whether or not that is all of its rows' columns."""
        yield from self._file(split, file, self.fields, None)

    @cached_property
    def _stored(self) -> Predicate | None:
        """What the filter says of the values in files."""
        return stored_part(self.predicate, self.context.schema, self.context.shown_defaults)

    @cached_property
    def needed(self) -> tuple[DataField, ...]:
        """Asked for, plus what the filter looks at."""
        return self._with_columns(self.fields, predicates.columns(self.predicate) if self.predicate else frozenset())

    @cached_property
    def _in_files(self) -> tuple[DataField, ...]:
        """What of it comes with the rows of a file. At least one column where rows are merged."""
        found = tuple(field for field in self.needed if field not in self.context.split_fields)
        return found or self.context.key_fields[:1]

    @cached_property
    def _merge_fields(self) -> tuple[DataField, ...]:
        """What a merge needs besides: keys, user sequence, and the system columns."""
        order = self.context.merge_order
        wanted = frozenset(field.name for field in self._in_files)
        besides = self.context.merge_engine.needed_columns(wanted) | {*order.key, *order.sequence_fields}
        needed = self._with_columns(self._in_files, besides)
        return (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *needed)

    @cached_property
    def _unnumbered_fields(self) -> tuple[DataField, ...]:
        return tuple(field for field in self._merge_fields if field is not system_columns.SEQUENCE_NUMBER)

    def _with_columns(self, fields: tuple[DataField, ...], names: frozenset[str]) -> tuple[DataField, ...]:
        missing = names - {field.name for field in fields}
        known = (*self.context.schema.fields, *self.context.hidden_fields)
        return fields + tuple(field for field in known if field.name in missing)

    def _section(self, split: Split, section: Section) -> Iterator[pa.RecordBatch]:
        if not self.context.has_key and len(section.runs) > 1:
            yield from self._stitched(split, section)
        elif not self.context.has_key:
            yield from self._run(split, section.runs[0], self._in_files, self._stored, self._batch_rows(_KEPT_RAW_ROWS))
        elif needs_merge(section):
            self._check_has_place()
            rows = self._batch_rows(_KEPT_MERGE_ROWS)
            if lowest_level_counts(self.context):
                levelled = [self._levelled(split, run, self._key_part, rows) for run in section.runs]
                yield from map(_visible, merge_levels(levelled, self.context.merge_order, self.context.reading_engine))
                return
            fields = self._merge_fields
            if came_one_after_the_other(section):
                fields = self._unnumbered_fields
            runs = [self._keyed_run(split, run, fields, rows) for run in section.runs]
            columns = [field.name for field in self._in_files]
            yield from read_runs(runs, self.context.merge_order, self.context.reading_engine, columns)
        else:
            fields = (system_columns.VALUE_KIND, *self._in_files)
            for batch in self._run(split, section.runs[0], fields, self._stored, self._batch_rows(_KEPT_RAW_ROWS)):
                yield _visible(batch)

    def _stitched(self, split: Split, section: Section) -> Iterator[pa.RecordBatch]:
        """Rows whose columns lie in several files. Nothing is skipped: all files must give the same rows."""
        store, vectors = self.context.vector_store, split.vectors
        marks = [store.read(vectors[file.file_name]) for file in section.files if file.file_name in vectors]
        deleted = np.unique(np.concatenate(marks)) if marks else NO_POSITIONS
        wanted = self._in_files or (system_columns.ROW_INDEX,)  # or the number of rows would be lost
        rows: dict[str, pa.ChunkedArray] = {}
        for file, fields in columns_by_file(section, wanted, self.context.schemas.get):
            batches = self._file(split, file, tuple(fields), None, deleted=deleted)
            part = pa.Table.from_batches(batches, schema=to_arrow_schema(fields))
            rows.update(zip(part.column_names, part.columns, strict=True))
        schema = to_arrow_schema(wanted)
        table = pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema)
        yield from table.to_batches(max_chunksize=self.context.options[READ_BATCH_SIZE])

    def _levelled(
        self, split: Split, run: SortedRun, predicate: Predicate | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a run with the levels of their files."""
        for file in run.files:
            for batch in self._file(split, file, self._merge_fields, predicate, batch_rows):
                yield with_level(batch, file.level)

    def _batch_rows(self, when_kept: int) -> int:
        """Rows to read at a time: what the table's options say, or more if the caller keeps all of them anyway."""
        option = self.context.options[READ_BATCH_SIZE]
        return when_kept if self.keeps_everything and not self.context.options.has(READ_BATCH_SIZE) else option

    @cached_property
    def _key_part(self) -> Predicate | None:
        """What the filter says of keys.

        INVARIANT: rows are dropped before they are merged by their keys only: without a newer row that does not match
        an older one would come back that does.
        """
        if self.predicate is None:
            return None
        return predicates.project_onto(self.predicate, frozenset(self.context.merge_order.key))

    @cached_property
    def _row_part(self) -> Predicate | None:
        """The same, unless it may fail for a row that the merge takes away."""
        return None if self._key_part is None or predicates.is_opaque(self._key_part) else self._key_part

    def _keyed_run(
        self, split: Split, run: SortedRun, fields: tuple[DataField, ...], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a run whose keys match: the others need not be merged, and those behind the last one not be read."""
        for batch in self._run(split, run, fields, self._key_part, batch_rows):
            rows = batch if self._row_part is None else batch.filter(evaluate(self._row_part, batch))
            if rows.num_rows:
                yield rows
            if self._row_part is not None and batch.num_rows and not self._may_match_behind(batch):
                return

    def _may_match_behind(self, batch: pa.RecordBatch) -> bool:
        """Whether keys that come after those of a batch may match: they begin with its last value, or a larger one."""
        assert self._row_part is not None
        first = self.context.merge_order.key[0]
        last = batch.column(first)[-1:]
        if last.null_count:  # nulls come first: any key may follow
            return True
        stats = ColumnStats(last, pa.nulls(1, last.type), pa.array([0], pa.int64()))
        return bool(may_match(self._row_part, {first: stats}, np.ones(1, np.int64))[0])

    def _run(
        self,
        split: Split,
        run: SortedRun,
        fields: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        for file in run.files:
            yield from self._file(split, file, fields, predicate, batch_rows)

    def _file(
        self,
        split: Split,
        file: DataFile,
        fields: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int | None = None,
        deleted: Positions | None = None,
    ) -> Iterator[pa.RecordBatch]:
        context = self.context
        reader = self._file_reader(fields, batch_rows)
        path = self._path(split, file)
        values = context.partition_values(split.partition)
        if deleted is None:
            place = split.vectors.get(file.file_name)
            deleted = NO_POSITIONS if place is None else context.vector_store.read(place)
        for _, batch in reader.read(path, file, values.__getitem__, predicate, deleted):
            yield batch

    @cached_property
    def _file_readers(self) -> dict[tuple[tuple[DataField, ...], int | None], FileReader]:
        return {}

    def _file_reader(self, fields: tuple[DataField, ...], batch_rows: int | None = None) -> FileReader:
        """The reader of files for these columns: one for all of them, since it remembers what it has worked out."""
        found = self._file_readers.get((fields, batch_rows))
        if found is None:
            found = self._file_readers[fields, batch_rows] = self._new_file_reader(fields, batch_rows)
        return found

    def _new_file_reader(self, fields: tuple[DataField, ...], batch_rows: int | None) -> FileReader:
        context = self.context
        return FileReader(
            self.source or context.fileio,
            context.schemas.get,
            fields,
            frozenset(context.schema.partition_keys),
            batch_rows or context.options[READ_BATCH_SIZE],
            # Arrow has a thread for each core, or none.
            self.use_threads and parallelism(context.options) >= pa.cpu_count(),
            context.orders_by_snapshot,
            context.options[FILE_INDEX_READ_ENABLED],
            tells_kinds=system_columns.VALUE_KIND in self.fields,
        )

    def _path(self, split: Split, file: DataFile) -> str:
        return file.external_path or self.context.data_file_path(split.partition, split.bucket, file.file_name)

    def is_excluded(self, split: Split, file: DataFile) -> bool:
        """Whether the file's indexes say that no row matches. REQUIRES: rows of the file are not merged."""
        if self._stored is None:
            return False
        return self._file_reader(self._in_files).is_excluded(self._path(split, file), file, self._stored)

    def stretches(self, split: Split, section: Section, file: DataFile) -> Stretches | None:
        """What is opened of a file of a section; None if its format is not divided into row groups."""
        is_merged = self.context.has_key and needs_merge(section)
        kinds = (system_columns.VALUE_KIND,) if self.context.has_key else ()
        fields = self._merge_fields if is_merged else (*kinds, *self._in_files)
        predicate = self._key_part if is_merged else self._stored
        return self._file_reader(fields).stretches(self._path(split, file), file, predicate)

    def _check_has_place(self) -> None:
        asked = [field.name for field in self.needed if field in system_columns.PLACE_FIELDS]
        if asked:
            raise Unsupported(
                f"column `{asked[0]}` of table `{self.context.name}`: rows that are merged lie in no single file",
                hint="compact the table fully, or leave the column out",
            )

    def _placed(self, split: Split, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With the columns that tell bucket and partition, if they are needed."""
        context = self.context
        for field in (field for field in self.needed if field in context.split_fields):
            if field == system_columns.BUCKET:
                column = pa.array(np.full(batch.num_rows, split.bucket, np.int32))
            else:
                column = _partition_column(context.partition_values(split.partition), field, batch.num_rows)
            batch = batch.append_column(to_arrow_schema([field]).field(0), column)
        return batch

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.predicate is None or batch.num_rows == 0:
            return batch
        return batch.filter(evaluate(self.predicate, batch))


def _counted(batches: Iterator[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    """The same batches, while somebody listens to how many rows they have, and how long it takes to read them."""
    rows, seconds = 0, 0.0
    try:
        while True:
            began = perf_counter()
            batch = next(batches, None)
            seconds += perf_counter() - began
            if batch is None:
                return
            rows += batch.num_rows
            yield batch
    finally:
        SCAN_ROWS.tell(rows, table)
        SCAN_READ_TIME.tell(seconds, table)


def parallelism(options: Options) -> int:
    """How many threads work for one table at a time."""
    return options[LAKEBED_PARALLELISM] or os.cpu_count() or 1


def threads_for(context: TableContext, sizes: Iterable[int]) -> int:
    """How many threads read files of these sizes: of a few small ones on a local disk none beside the caller's."""
    if isinstance(context.fileio, LocalFileIO) and sum(sizes) < SMALL_BYTES:
        return 1
    return parallelism(context.options)


def pieces_of(split: Split) -> list[Split]:
    """Parts of a split that share no key, each as a split of its own."""
    pieces = []
    for section in split.sections:
        alone = section.runs[0].files if not needs_merge(section) else ()
        sections = [Section((SortedRun((file,)),)) for file in alone] or [section]
        pieces += [split.with_sections((piece,)) for piece in sections]
    return pieces


def _partition_column(values: Mapping[str, pa.Scalar], field: DataField, row_count: int) -> pa.Array:
    kind = to_arrow_type(field.type)
    if not values:
        return pa.StructArray.from_buffers(kind, row_count, [None])
    return pa.StructArray.from_arrays([pa.repeat(value, row_count) for value in values.values()], fields=list(kind))


def _visible(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without the retracts."""
    retracts = is_retract(key_value.kinds(rows))
    return rows.filter(pa.array(~retracts)) if np.any(retracts) else rows


# --- The rows of one snapshot, for those who go through a whole table ---------------------------------------------


def rows_of(
    context: TableContext, snapshot: Snapshot, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Merged rows batch by batch, of these columns; all of them without."""
    reader = SplitReader(context, projected_fields(context, columns), None)
    yield from reader.read_each(plan_scan(context, snapshot, None).splits)
