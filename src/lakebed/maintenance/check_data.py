"""Whether data files hold what their metadata says: every file is read once, whole columns at a time.

Asked for by `check(deep=True)`. Readers skip files by what manifests say of them, merge runs because their keys are in
order, and look for a key in the bucket that it belongs to, all without looking: here it is looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.fixed import assign_buckets
from lakebed.changes.range import read_changes
from lakebed.changes.splits import lowest_level_told
from lakebed.commit.index_changes import current_entries
from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, producer
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import key_hashes
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import LakebedError
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.hash_index import HashIndexStore, hash_entries
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import BUCKET_FUNCTION_TYPE, DATA_EVOLUTION_ENABLED, RECORD_LEVEL_EXPIRE_TIME
from lakebed.read.plan import FileSieve, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, held_fields
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import decode_row
from lakebed.types.logical import DataField, is_nested
from lakebed.types.ordering import key_codes, sort_codes
from lakebed.types.row_kind import is_retract


def check_data(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> list[str]:
    """One sentence for every data file, deletion vector or index of keys that is not as its metadata says."""
    findings = []
    for entry in live:
        place = f"{context.bucket_place(entry.partition, entry.bucket)}: {entry.file.file_name}"
        try:
            rows = _stored_rows(context, entry)
            findings += [f"{place} {sentence}" for sentence in _check_file(context, entry, rows)]
        except LakebedError as error:
            findings.append(f"{place} can not be read: {error.message}")
    return [*findings, *_check_marks(context, snapshot, live), *_check_key_indexes(context, snapshot, live)]


def _stored_rows(context: TableContext, entry: ManifestEntry) -> pa.Table:
    system = (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND) if context.has_key else ()
    fields = context.schema.fields
    if context.options[DATA_EVOLUTION_ENABLED] and entry.file.write_cols is not None:
        fields = held_fields(entry.file, fields, context.schemas.get)
    reader = SplitReader(context, (*system, *fields), None)
    split = Split(entry.partition, entry.bucket, (Section((SortedRun((entry.file,)),)),))
    batches = list(reader.read_file(split, entry.file))
    return pa.Table.from_batches(batches) if batches else reader.schema.empty_table()


def _check_file(context: TableContext, entry: ManifestEntry, rows: pa.Table) -> Iterator[str]:
    file = entry.file
    if rows.num_rows != file.row_count:
        yield f"holds {rows.num_rows} rows, its manifest says {file.row_count}"
    if not rows.num_rows:
        return
    batch = rows.combine_chunks().to_batches()[0]
    if context.has_key:
        yield from _check_numbers(context, file, batch, is_waiting=entry.bucket < 0)
        if entry.bucket >= 0:
            yield from _check_keys(context, file, batch)
    if entry.total_buckets > 0 and context.bucket_mode.hashes_keys:
        yield from _check_bucket(context, entry, batch)
    yield from _check_statistics(context, file, batch)


# --- keys and numbers ------------------------------------------------------------------------------------------------


def _check_numbers(context: TableContext, file: DataFile, batch: pa.RecordBatch, *, is_waiting: bool) -> Iterator[str]:
    numbers = key_value.sequence_numbers(batch)
    low, high = int(numbers.min()), int(numbers.max())
    if not is_waiting and (low < file.min_sequence_number or high > file.max_sequence_number):
        yield (
            f"has sequence numbers from {low} to {high}, its manifest says {file.min_sequence_number} to "
            f"{file.max_sequence_number}"
        )
    retracts = int(np.count_nonzero(is_retract(key_value.kinds(batch))))
    if file.delete_row_count not in (None, retracts) and not context.may_miscount_retracts(file):
        yield f"has {retracts} retract rows, its manifest says {file.delete_row_count}"


def _check_keys(context: TableContext, file: DataFile, batch: pa.RecordBatch) -> Iterator[str]:
    fields = context.key_fields
    if any(is_nested(field.type) for field in fields):
        return
    columns = [batch.column(field.name) for field in fields]
    bounds = [decode_row(row, context.key_types) for row in (file.min_key, file.max_key)]
    ends = [[_as(bound[n], field) for n, field in enumerate(fields)] for bound in bounds]
    # One code for all: the bounds are compared as rows before the first and behind the last one.
    together = [
        pa.concat_arrays([pa.array([ends[0][n]], column.type), column, pa.array([ends[1][n]], column.type)])
        for n, column in enumerate(columns)
    ]
    codes = [code for column in together for code in key_codes([column])]
    order = np.lexsort(codes[::-1])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    same = _equal_neighbours(codes)
    inner = ranks[1:-1]
    if np.any(inner[1:] < inner[:-1]):
        yield "has keys that are not in order"
    if np.any(same[1:-1]):
        yield "has a key more than once"
    # Equal keys keep their places, so none of the rows stands before a smallest key that is its own.
    if inner.min() < ranks[0] or inner.max() > ranks[-1]:
        yield "has keys outside of the range that its manifest tells"


def _equal_neighbours(codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """For each pair of rows one after the other whether they have the same key."""
    same = np.ones(len(codes[0]) - 1, dtype=bool)
    for column in codes:
        same &= column[1:] == column[:-1]
    return same


def _as(value: pa.Scalar, field: DataField) -> pa.Scalar:
    return value.cast(to_arrow_type(field.type)) if value.is_valid else value


def _check_bucket(context: TableContext, entry: ManifestEntry, batch: pa.RecordBatch) -> Iterator[str]:
    fields = context.schema.fields_of(context.schema.bucket_keys)
    columns, types = [batch.column(field.name) for field in fields], [field.type for field in fields]
    found = assign_buckets(columns, types, entry.total_buckets, context.options[BUCKET_FUNCTION_TYPE])
    wrong = int(np.count_nonzero(found != entry.bucket))
    if wrong:
        yield f"has {wrong} rows that belong to other buckets of {entry.total_buckets}"


# --- statistics ------------------------------------------------------------------------------------------------------


def _check_statistics(context: TableContext, file: DataFile, batch: pa.RecordBatch) -> Iterator[str]:
    """Bounds enclose all values but nulls and NaN; null counts are exact. Of files of today's schema only."""
    if file.schema_id != context.schema.id:
        return
    schema = context.schema
    fields = schema.fields if file.value_stats_cols is None else tuple(schema.fields_of(file.value_stats_cols))
    stats = file.value_stats
    if not fields or len(stats.null_counts or ()) != len(fields):
        return
    types = [field.type for field in fields]
    lows, highs = decode_row(stats.min_values, types), decode_row(stats.max_values, types)
    for n, field in enumerate(fields):
        if field.name not in batch.schema.names:
            continue
        column = batch.column(field.name)
        count = (stats.null_counts or ())[n]
        if count is not None and count != column.null_count:
            yield f"has {column.null_count} nulls in column `{field.name}`, its manifest says {count}"
        if is_nested(field.type):
            continue
        if _is_below(column, lows[n], field) or _is_below(column, highs[n], field, above=True):
            yield f"has values in column `{field.name}` outside of the range that its manifest tells"


def _is_below(column: pa.Array, bound: pa.Scalar, field: DataField, *, above: bool = False) -> bool:
    values = column.drop_null()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not bound.is_valid or not len(values):
        return False
    codes = sort_codes(pa.concat_arrays([values, pa.array([_as(bound, field)], values.type)]))
    if pa.types.is_floating(values.type):  # the two zeros are one value to statistics
        numbers = values.to_numpy(zero_copy_only=False)
        limit = bound.as_py()
        return bool(np.any(numbers > limit) if above else np.any(numbers < limit))
    return bool(np.any(codes[:-1] > codes[-1]) if above else np.any(codes[:-1] < codes[-1]))


# --- index files -----------------------------------------------------------------------------------------------------


def _check_marks(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> Iterator[str]:
    files = {entry.file.file_name: entry.file for entry in live}
    store = context.vector_store
    entries = current_entries(context.stores, snapshot)
    told = {part.data_file_name: part.cardinality for entry in entries for part in entry.deletion_vector_ranges or ()}
    for name, place in store.places(entries).items():
        try:
            positions = store.read(place)
        except LakebedError as error:
            yield f"the deletion vector of {name} can not be read: {error.message}"
            continue
        if name in files and len(positions) and int(positions[-1]) >= files[name].row_count:
            yield f"the deletion vector of {name} marks row {positions[-1]}, the file has {files[name].row_count}"
        if told.get(name) is not None and told[name] != len(positions):
            yield f"the deletion vector of {name} marks {len(positions)} rows, the index manifest says {told[name]}"


def _check_key_indexes(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> Iterator[str]:
    """No key is in two buckets of a partition, and each bucket's index knows the keys of its rows."""
    if not context.bucket_mode.has_hash_index:
        return
    store = HashIndexStore(context.fileio, context.paths)
    indexed: dict[tuple[bytes, int], npt.NDArray[Any]] = {}
    for partition, entries in hash_entries(context.stores, snapshot).items():
        for bucket, index in entries.items():
            try:
                indexed[partition, bucket] = np.sort(store.read(index))
            except LakebedError as error:
                yield f"{context.bucket_place(partition, bucket)}: its index of keys can not be read: {error.message}"
    yield from _shared_hashes(context, indexed)
    reader = SplitReader(context, context.key_fields, None)
    for partition, bucket in sorted({(entry.partition, entry.bucket) for entry in live}):
        known = indexed.get((partition, bucket))
        if known is None:
            continue
        files = [entry.file for entry in live if (entry.partition, entry.bucket) == (partition, bucket)]
        split = Split(partition, bucket, tuple(Section((SortedRun((file,)),)) for file in files))
        missing = 0
        for batch in reader.read_stored(split):
            missing += int(np.count_nonzero(~np.isin(key_hashes(context, batch), known)))
        if missing:
            yield f"{context.bucket_place(partition, bucket)}: its index does not know the keys of {missing} rows"


def _shared_hashes(context: TableContext, indexed: Mapping[tuple[bytes, int], npt.NDArray[Any]]) -> Iterator[str]:
    for partition in sorted({partition for partition, _ in indexed}):
        mine = [hashes for (where, _), hashes in indexed.items() if where == partition]
        together = np.concatenate(mine)
        shared = len(together) - len(np.unique(together))
        if shared:
            place = context.partition_directory(partition) or "the table"
            yield f"{place}: {shared} keys are in the indexes of more than one bucket"


# --- changelogs ------------------------------------------------------------------------------------------------------


def check_told(context: TableContext, history: Sequence[Snapshot]) -> list[str]:
    """Whether the changes that a table tells make each state that is told of the next one.

    Rows that have expired leave without a word, so nothing can be said of tables that have such.
    """
    made_by = producer(context.options)
    if not context.has_key or made_by not in (LOOKUP, FULL_COMPACTION) or len(history) < 2:
        return []
    if context.options[RECORD_LEVEL_EXPIRE_TIME] is not None:
        return []
    fields = [field for field in context.schema.fields if not is_nested(field.type)]
    findings = []
    states = {}
    for before, after in pairwise(history):
        same = before.schema_id == after.schema_id == context.schema.id and before.id == after.id - 1
        if not same:
            continue
        try:
            for snapshot in (before, after):
                if snapshot.id not in states:
                    states[snapshot.id] = _told_state(context, snapshot, fields)
            changes = read_changes(context, before.id, after.id, context.schema.field_names)
        except LakebedError as error:
            findings.append(f"snapshot {after.id}: its changes can not be compared: {error.message}")
            continue
        wrong = _difference(states.pop(before.id), states[after.id], changes, [field.name for field in fields])
        if wrong:
            findings.append(f"snapshot {after.id}: its changes do not make the rows before it those after it: {wrong}")
    return findings


def _told_state(context: TableContext, snapshot: Snapshot, fields: list[DataField]) -> pa.Table:
    lowest, sieve = lowest_level_told(context), FileSieve(context, None)
    live = [entry for entry in live_files(context.stores, snapshot) if entry.file.level >= lowest]
    splits = splits_of(context, [entry for entry in live if entry.bucket >= 0], sieve, vectors_at(context, snapshot))
    reader = SplitReader(context, tuple(fields), None)
    return pa.Table.from_batches(reader.read_all(splits), schema=reader.schema)


def _difference(before: pa.Table, after: pa.Table, changes: pa.Table, names: list[str]) -> str:
    """In words how many rows are too many or too few; empty if none."""
    kinds = changes.column("rowkind")
    signs = pc.if_else(pc.starts_with(kinds, "+"), 1, -1).cast(pa.int64())
    parts = [(before.select(names), 1), (changes.select(names), signs), (after.select(names), -1)]
    weighed = []
    for rows, sign in parts:
        weights = pa.array(np.full(rows.num_rows, sign), pa.int64()) if isinstance(sign, int) else sign
        weighed.append(rows.cast(before.select(names).schema).append_column("_lakebed_weight", weights))
    summed = pa.concat_tables(weighed).group_by(names).aggregate([("_lakebed_weight", "sum")])
    wrong = summed.filter(pc.not_equal(summed.column("_lakebed_weight_sum"), 0))
    if not wrong.num_rows:
        return ""
    totals = wrong.column("_lakebed_weight_sum")
    more, less = pc.sum(pc.greater(totals, 0)).as_py() or 0, pc.sum(pc.less(totals, 0)).as_py() or 0
    return f"{more} rows are told and not there, {less} are there and not told"


__all__ = ["check_data", "check_told"]
