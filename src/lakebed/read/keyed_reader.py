"""Reads the rows of given keys from splits: a reader like any other, which sees of each file those keys only.

A file is left out by its smallest and largest key and by its indexes, parts of it by the statistics of row groups. Once
as many rows of a file were read as it holds, a local copy is made, in which a key is found without reading the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.memory import Slot
from lakebed.lsm.lookup.store import Accept, LookupLimits, LookupStore
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import NO_POSITIONS, Positions, Vectors
from lakebed.options import LOOKUP_CACHE_FILE_RETENTION, LOOKUP_CACHE_MAX_DISK_SIZE, LOOKUP_CACHE_MAX_MEMORY_SIZE
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import ordering
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataField
from lakebed.types.predicate import In, Predicate
from lakebed.types.sorted_search import find_keys

ReaderFor = Callable[[TableContext, tuple[DataField, ...]], SplitReader]
"""Makes a reader for columns."""

Span = tuple[int, int]
"""From where to where, in sorted keys, a file may hold them."""


@dataclass(frozen=True)
class KeyReader(SplitReader):
    """Reads splits of one bucket. `keys` are the key columns in ascending order, each key once."""

    keys: tuple[pa.Array, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    """For each file, by name, which of the keys it may hold."""
    copies: LookupStore | None = None

    def _file(
        self,
        split: Split,
        file: DataFile,
        fields: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int | None = None,
        deleted: Positions | None = None,
    ) -> Iterator[pa.RecordBatch]:
        keys = self._keys_of(file)
        if self.copies is not None and self.copies.is_worth_a_copy(file):
            yield from self._from_copy(self.copies, split, file, fields, keys)
            return
        names = self.context.merge_order.key
        count = 0
        for batch in super()._file(split, file, fields, self._condition(keys), batch_rows, deleted):
            count += batch.num_rows
            if not batch.num_rows:
                continue
            columns = [batch.column(name) for name in names]
            mine = _between(keys, columns)
            if not len(mine[0]):
                continue
            places, hits = find_keys(columns, mine)
            if np.any(hits):
                yield batch.take(pa.array(places[hits]))
        if self.copies is not None:
            self.copies.note_reading(file, count)

    def holds_none(self, split: Split, file: DataFile) -> bool:
        """Whether the file's indexes say that it holds none of the keys."""
        condition = self._condition(self._keys_of(file))
        if condition is None:
            return False
        return self._file_reader(self.fields).is_excluded(self._path(split, file), file, condition)

    def _keys_of(self, file: DataFile) -> list[pa.Array]:
        """Those of the keys that lie between the smallest and the largest key of a file."""
        start, stop = self.spans[file.file_name]
        return [column.slice(start, stop - start) for column in self.keys]

    def _condition(self, keys: Sequence[pa.Array]) -> Predicate | None:
        """What is true of the keys, column by column. Of floats nothing is said: NaN is a key, but equals nothing."""
        parts = [
            In(field.name, column.unique())
            for field, column in zip(self.context.key_fields, keys, strict=True)
            if not column.null_count and not pa.types.is_floating(column.type)
        ]
        return predicates.conjunction(parts) if parts else None

    def _from_copy(
        self,
        copies: LookupStore,
        split: Split,
        file: DataFile,
        fields: tuple[DataField, ...],
        keys: Sequence[pa.Array],
    ) -> Iterator[pa.RecordBatch]:
        run = SortedRun((file,))
        stored, accept = copied_rows(self, split, file)
        context = self.context
        asked = pa.RecordBatch.from_arrays(list(keys), names=list(context.merge_order.key))
        _, rows = copies.find([run], asked, context.key_types, stored.fields, stored.read, accept)
        if rows.num_rows:
            yield rows.select([field.name for field in fields])


@dataclass(frozen=True)
class CopiedRows:
    """Reads a file for a local copy of it."""

    reader: SplitReader
    split: Split

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Columns of copies."""
        return self.reader.fields

    def read(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        """All rows of the file."""
        section = Section((SortedRun((file,)),))
        return self.reader.read_stored(Split(self.split.partition, self.split.bucket, (section,)))


def copied_rows(reader: SplitReader, split: Split, file: DataFile) -> tuple[CopiedRows, Accept | None]:
    """How a file is copied, and which rows of the copy count; None if all do.

    Copies hold all rows of a file, as those do that compactions make: which rows are gone changes.
    """
    context = reader.context
    stored = SplitReader(context, _copied_fields(context), use_threads=reader.use_threads)
    place = split.vectors.get(file.file_name)
    deleted = NO_POSITIONS if place is None else context.vector_store.read(place)

    def accept(_: DataFile, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        return ~np.isin(np.asarray(rows.column(system_columns.ROW_INDEX.name)), deleted)

    return CopiedRows(stored, split), accept if len(deleted) else None


@dataclass(frozen=True)
class SoughtKeys:
    """Some keys of one bucket that are looked up in two states. What a file tells of them is read once for both.

    Rows of the files that both states have are in memory, as far as they are of these keys.
    """

    context: TableContext
    keys: tuple[pa.Array, ...]
    """The key columns in ascending order, each key once."""
    spans: Mapping[str, Span]
    shared: frozenset[str]
    """Files that both states have, with the same rows."""
    known: dict[tuple[str, tuple[DataField, ...]], list[pa.RecordBatch]] = field(default_factory=dict)

    @staticmethod
    def shared_by(
        context: TableContext,
        keys: tuple[pa.Array, ...],
        before: Sequence[DataFile],
        after: Sequence[DataFile],
        vectors: tuple[Vectors, Vectors],
    ) -> SoughtKeys:
        """Keys to be looked up in these files, from which the vectors take rows."""
        every = {file.file_name: file for file in (*before, *after)}
        names = {file.file_name for file in before} & {file.file_name for file in after}
        shared = frozenset(name for name in names if vectors[0].get(name) == vectors[1].get(name))
        return SoughtKeys(context, keys, spans_of(list(every.values()), keys, context) if every else {}, shared)

    def may_be_in(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Those of the files that may hold a key."""
        return [file for file in files if file.file_name in self.spans]

    def reader(self, context: TableContext, fields: tuple[DataField, ...]) -> SplitReader:
        """Reads these keys."""
        copies = lookup_store(self.context)
        return _SharingReader(context, fields, keys=self.keys, spans=self.spans, copies=copies, sought=self)


@dataclass(frozen=True)
class _SharingReader(KeyReader):
    """Remembers what shared files hold, until it is asked again."""

    sought: SoughtKeys | None = None

    def _file(
        self,
        split: Split,
        file: DataFile,
        fields: tuple[DataField, ...],
        predicate: Predicate | None,
        batch_rows: int | None = None,
        deleted: Positions | None = None,
    ) -> Iterator[pa.RecordBatch]:
        read = super()._file(split, file, fields, predicate, batch_rows, deleted)
        if self.sought is None or file.file_name not in self.sought.shared:
            yield from read
            return
        known, place = self.sought.known, (file.file_name, fields)
        batches = known.pop(place, None)
        if batches is None:
            batches = known[place] = list(read)
        yield from batches


def _between(keys: Sequence[pa.Array], columns: Sequence[pa.Array]) -> Sequence[pa.Array]:
    """Those of sorted keys that lie between the first and the last row of sorted columns."""
    last = len(columns[0]) - 1
    start = ordering.count_below(keys, ordering.sort_key(columns, 0))
    stop = ordering.count_not_above(keys, ordering.sort_key(columns, last))
    return [key.slice(start, max(0, stop - start)) for key in keys]


def _copied_fields(context: TableContext) -> tuple[DataField, ...]:
    """Columns of local copies."""
    row = (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *context.schema.fields)
    return (*row, system_columns.ROW_INDEX)


def spans_of(files: Sequence[DataFile], keys: Sequence[pa.Array], context: TableContext) -> dict[str, Span]:
    """Where in sorted keys those lie that a file may hold; files that can hold none are left out.

    REQUIRES: keys in ascending order, each once, and at least one file.
    """
    bounds = decode_rows([file.min_key for file in files] + [file.max_key for file in files], context.key_types)
    columns = [
        pa.concat_arrays([key, bound.cast(to_arrow_type(field.type))])
        for key, bound, field in zip(keys, bounds, context.key_fields, strict=True)
    ]
    ranks = ranked(columns)
    count = len(keys[0])
    own, low, high = ranks[:count], ranks[count : count + len(files)], ranks[count + len(files) :]
    starts, stops = np.searchsorted(own, low, "left"), np.searchsorted(own, high, "right")
    return {
        file.file_name: (start, stop)
        for file, start, stop in zip(files, starts.tolist(), stops.tolist(), strict=True)
        if start < stop
    }


def ranked(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """One number for each row that compares as the rows do; the same for equal rows."""
    codes = ordering.key_codes(columns)
    order = ordering.argsort(codes)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(ordering.changes([column[order] for column in codes])) - 1
    return ranks


# --- The local copies of a table's files in which its handle looks for rows ---------------------------------------


_LOOKUP_STORE: Slot[LookupStore] = Slot("lookup store", is_shared=True)


def lookup_store(context: TableContext) -> LookupStore:
    """Made when first asked for. Copies outlive what they were made for: the next one will ask for the same files."""
    memory, options = context.memory, context.options
    with memory.lock:
        store = memory[_LOOKUP_STORE]
        if store is None:
            limits = LookupLimits(
                options[LOOKUP_CACHE_MAX_DISK_SIZE],
                options[LOOKUP_CACHE_FILE_RETENTION],
                options[LOOKUP_CACHE_MAX_MEMORY_SIZE],
            )
            store = memory[_LOOKUP_STORE] = LookupStore(limits, context.clock)
        return store


__all__ = ["KeyReader", "ReaderFor", "SoughtKeys", "copied_rows", "lookup_store", "ranked", "spans_of"]
