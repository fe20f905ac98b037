"""Finds the current rows of given keys in a primary-key table, without reading more than these keys may lie in.

Partition and bucket follow from the key; within a bucket a file must hold a key between its smallest and largest, and
its indexes must not say otherwise. What is left is read for these keys only, and merged as in any read.

    rows = t.lookup(keys)                          # here
    finder = t.key_lookup(["name"])                # of one snapshot; can be sent to the tasks of a Spark job
    found, rows = finder.find(batch)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.fixed import assign_buckets
from lakebed.bucket.hashing import Hashes
from lakebed.definition.context import TableContext
from lakebed.definition.fit import Place, fit
from lakebed.definition.incoming import to_batches
from lakebed.definition.partition_spec import key_hashes, partitions_of
from lakebed.definition.row_rules import shows_waiting_rows, vectors_at
from lakebed.errors import InvalidArgument, InvalidData, Unsupported, did_you_mean
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import Vectors
from lakebed.metadata.hash_index import HashIndexStore, hash_entries
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import LOOKUP_DURATION, LOOKUP_KEYS, LOOKUP_ROWS
from lakebed.options import (
    BUCKET_FUNCTION_TYPE,
    POSTPONE_MERGE_ON_READ,
    SCAN_FALLBACK_BRANCH,
    SCAN_PARTITIONS,
    SCAN_PRIMARY_BRANCH,
    SOURCE_SPLIT_OPEN_FILE_COST,
    SOURCE_SPLIT_TARGET_SIZE,
)
from lakebed.read.keyed_reader import KeyReader, lookup_store, ranked, spans_of
from lakebed.read.live_buckets import LIVE_BUCKETS, LiveBuckets
from lakebed.read.reader import threads_for
from lakebed.read.splits import BucketFiles, Split, SplitRules, append_splits, keyed_splits
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.arrow import to_arrow_schema, to_arrow_type
from lakebed.types.binary_row import EMPTY_ROW
from lakebed.types.logical import DataField, with_nullable

_Rows = npt.NDArray[np.int64]
"""Positions of keys among those that are asked for."""


@dataclass(frozen=True)
class KeyLookup:
    """Rows of one snapshot (None: an empty table) by key. Plain data: it can be pickled, and used by many threads."""

    context: TableContext
    snapshot: Snapshot | None
    fields: tuple[DataField, ...]

    @staticmethod
    def of(context: TableContext, snapshot: Snapshot | None, columns: Sequence[str] | None) -> KeyLookup:
        """A lookup of these columns, all of them by default, if the table allows any."""
        if not context.has_key:
            raise InvalidArgument(
                f"table `{context.name}` has no primary key, so its rows can not be looked up",
                hint="name the columns to look up by in `by`, or filter a read: t.to_arrow(filter=...)",
            )
        refuse_unreachable(context)
        return KeyLookup(context, snapshot, chosen_fields(context, columns))

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows that are found."""
        return to_arrow_schema(self.fields)

    def rows(self, keys: Any) -> pa.Table:
        """The rows of these keys, in the order of the keys; a key without a row gives none."""
        return self.find(keys)[1]

    def find(self, keys: Any) -> tuple[pa.Array, pa.Table]:
        """For each key whether there is a row, and the rows, in the order of the keys."""
        with LOOKUP_DURATION.timed(self.context.name):
            names = list(self.context.schema.primary_keys)
            distinct, ranks = distinct_keys(self.context, keys)
            besides = (part for part in self.context.schema.fields_of(names) if part not in self.fields)
            wanted = self.fields + tuple(besides)
            found = pa.Table.from_batches(self._read(distinct, wanted), schema=to_arrow_schema(wanted))
            places = _places(distinct, found.select(names).combine_chunks())[ranks]
            hits = places >= 0
            rows = found.select(self.schema.names).take(pa.array(places[hits]))
        LOOKUP_KEYS.tell(len(hits), self.context.name)
        LOOKUP_ROWS.tell(rows.num_rows, self.context.name)
        return pa.array(hits), rows

    # --- inside --------------------------------------------------------------------------------------------------

    def _read(self, keys: pa.RecordBatch, fields: tuple[DataField, ...]) -> list[pa.RecordBatch]:
        """Rows of distinct keys in ascending order, in any order."""
        if not keys.num_rows or self.snapshot is None:
            return []
        reader = KeyReader(self.context, fields, copies=lookup_store(self.context))
        vectors = vectors_at(self.context, self.snapshot)
        jobs = [
            (replace(reader, keys=columns, spans=spans), split)
            for partition, bucket, total, files, mine in self._buckets(keys)
            for columns, spans in [narrowed(self.context, keys, mine, files)]
            for split in self._splits(BucketFiles(partition, bucket, total, tuple(files)), spans, vectors)
        ]
        sizes = (file.size_bytes for _, split in jobs for file in split.files)
        threads = min(len(jobs), threads_for(self.context, sizes))
        if threads <= 1:
            return [batch for job, split in jobs for batch in job.read(split)]
        with ThreadPoolExecutor(threads, thread_name_prefix="lakebed-lookup") as pool:
            done = pool.map(lambda job: list(replace(job[0], use_threads=False).read(job[1])), jobs)
            return [batch for batches in done for batch in batches]

    def _buckets(self, keys: pa.RecordBatch) -> Iterator[tuple[bytes, int, int, list[DataFile], _Rows]]:
        """Buckets that may hold keys: their files that are shown, and which of the keys."""
        lowest = self.context.lowest_visible_level
        live = buckets_at(self.context, self.snapshot)
        for partition, bucket, total, files, mine in buckets_of_keys(self.context, self.snapshot, keys, live):
            shown = [file for file in files if file.level >= lowest]
            if shown:
                yield partition, bucket, total, shown, mine

    def _splits(self, bucket: BucketFiles, spans: dict[str, tuple[int, int]], vectors: Vectors) -> list[Split]:
        context = self.context
        options = context.options
        rules = SplitRules(options[SOURCE_SPLIT_TARGET_SIZE], options[SOURCE_SPLIT_OPEN_FILE_COST])
        is_unique = context.has_keys_once and all(file.level > 0 for file in bucket.files)
        kept = replace(bucket, files=tuple(file for file in bucket.files if file.file_name in spans))
        made = append_splits(kept, rules) if is_unique else keyed_splits(kept, context.key_types, rules)
        return [split.masked_by(vectors) for split in made]


def distinct_keys(context: TableContext, keys: Any) -> tuple[pa.RecordBatch, _Rows]:
    """The keys that a caller hands over, each once and in ascending order, and for each given one which it is."""
    asked = asked_columns(context, keys, context.schema.fields_of(context.schema.primary_keys))
    ranks = ranked(asked.columns) if asked.num_rows else np.zeros(0, np.int64)
    _, firsts = np.unique(ranks, return_index=True)
    return asked.take(pa.array(firsts)), ranks


def buckets_of_keys(
    context: TableContext, snapshot: Snapshot | None, keys: pa.RecordBatch, live: LiveBuckets
) -> Iterator[tuple[bytes, int, int, list[DataFile], _Rows]]:
    """Those of the buckets that may hold keys: partition, number, how many there are, files, and which of the keys."""
    indexes = hash_entries(context.stores, snapshot)
    for partition, rows in _by_partition(context, keys, live):
        buckets = live.of_partition(partition)
        if not buckets:
            continue
        mine = keys.take(pa.array(rows))
        chooser = _BucketChooser(context, mine, indexes.get(partition, {}))
        for (bucket, total), files in buckets.items():
            chosen = rows[chooser.keys_of(bucket, total)]
            if len(chosen) and files:
                yield partition, bucket, total, files, chosen


def _by_partition(context: TableContext, keys: pa.RecordBatch, live: LiveBuckets) -> Iterator[tuple[bytes, _Rows]]:
    """Where the keys do not tell their partition, they may lie in any."""
    every = np.arange(keys.num_rows)
    if not set(context.schema.partition_keys) <= set(context.schema.primary_keys):
        yield from ((partition, every) for partition in live.partitions)
    elif not context.schema.partition_keys:
        yield EMPTY_ROW, every
    else:
        numbers, partitions = partitions_of(context, keys)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(partitions)))
        yield from zip(partitions, np.split(order, ends[:-1]), strict=True)


def narrowed(
    context: TableContext, keys: pa.RecordBatch, mine: _Rows, files: list[DataFile]
) -> tuple[tuple[pa.Array, ...], dict[str, tuple[int, int]]]:
    """The key columns of a bucket in their order, and where in them the keys of each file are."""
    columns = [keys.column(part.name).take(pa.array(mine)) for part in context.key_fields]
    order = pa.array(ordering.argsort(ordering.key_codes(columns)))
    sorted_columns = tuple(column.take(order) for column in columns)
    return sorted_columns, spans_of(files, sorted_columns, context)


class _BucketChooser:
    """Which keys of a partition a bucket may hold: by their hashes, or as the index of a dynamic bucket tells."""

    def __init__(self, context: TableContext, keys: pa.RecordBatch, indexes: Mapping[int, IndexEntry]) -> None:
        self._context = context
        self._keys = keys
        self._indexes = indexes
        self._assigned: dict[int, npt.NDArray[Any]] = {}
        self._hashes: Hashes | None = None

    def keys_of(self, bucket: int, total: int) -> npt.NDArray[np.bool_]:
        """A mask over the keys."""
        if total > 0:
            if total not in self._assigned:
                self._assigned[total] = self._fixed(total)
            return np.asarray(self._assigned[total] == bucket)
        entry = self._indexes.get(bucket)
        if entry is None:
            return np.ones(self._keys.num_rows, np.bool_)
        if self._hashes is None:
            self._hashes = key_hashes(self._context, self._keys)
        known = HashIndexStore(self._context.fileio, self._context.paths).read(entry)
        return np.isin(self._hashes, known)

    def _fixed(self, total: int) -> npt.NDArray[Any]:
        """Uses the bucket count of the files: partitions may have been written with different ones."""
        context = self._context
        parts = context.schema.fields_of(context.schema.bucket_keys)
        columns = [self._keys.column(part.name) for part in parts]
        return assign_buckets(columns, [part.type for part in parts], total, context.options[BUCKET_FUNCTION_TYPE])


def buckets_at(context: TableContext, snapshot: Snapshot | None) -> LiveBuckets:
    """The buckets at a snapshot, from what this handle or worker knew last."""
    memory = context.memory
    known = memory[LIVE_BUCKETS]
    found = LiveBuckets.load(context.stores, snapshot) if known is None else known.moved_to(context.stores, snapshot)
    memory[LIVE_BUCKETS] = found
    return found


def _places(asked: pa.RecordBatch, found: pa.Table) -> _Rows:
    """For each asked key the row that was found for it, or -1."""
    places = np.full(asked.num_rows, -1, np.int64)
    if found.num_rows:
        columns = [
            pa.concat_arrays([mine, *theirs.chunks]) for mine, theirs in zip(asked.columns, found.columns, strict=True)
        ]
        ranks = ranked(columns)
        slots = np.full(int(ranks.max()) + 1, -1, np.int64)
        slots[ranks[asked.num_rows :]] = np.arange(found.num_rows)
        places = slots[ranks[: asked.num_rows]]
    return places


# --- Keys to look up, from whatever a caller has: a table, a DataFrame, dicts, or the values of a key of one column


def refuse_unreachable(context: TableContext) -> None:
    """Raises if reads of the table show rows that a lookup does not know of."""
    for option in (SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH, SCAN_PARTITIONS):
        if context.options.has(option):
            raise Unsupported(
                f"table `{context.name}` is opened with `{option.key}`, with which rows can not be looked up",
                hint="open the table, or each of its branches, without the option",
            )
    if shows_waiting_rows(context):
        raise Unsupported(
            f"table `{context.name}`: rows that wait for their bucket can not be looked up",
            hint=f"compact the table, which gives them one, and look up without `{POSTPONE_MERGE_ON_READ.key}`",
        )


def chosen_fields(context: TableContext, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """The columns to look up; all of them for None."""
    names = context.schema.field_names if columns is None else columns
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise InvalidArgument(f"columns names `{twice[0]}` twice", hint="name each column once")
    return tuple(context.schema.fields_of(names))


def asked_columns(context: TableContext, keys: Any, parts: Sequence[DataField]) -> pa.RecordBatch:
    """The columns to look up by of whatever a caller hands over, under their types. Other columns are left out.

    A null in a column that has none is a key that is not there, as in a join.
    """
    given = _as_table(context, keys, parts)
    lacking = [part.name for part in parts if part.name not in given.column_names]
    if lacking:
        raise InvalidData(
            f"keys for table `{context.name}` lack column `{lacking[0]}`",
            hint=f"the columns to look up by are {', '.join(part.name for part in parts)}; name other ones, such as "
            f"the first of the key, in `by`; {did_you_mean(lacking[0], given.column_names)}",
        )
    columns = []
    for part in parts:
        if given.column_names.count(part.name) > 1:
            raise InvalidData(f"keys have column `{part.name}` twice", hint="rename or drop one of them")
        column = given.column(part.name).combine_chunks()
        columns.append(fit(column, with_nullable(part.type, True), Place(context.name, part.name)))
    return pa.RecordBatch.from_arrays(columns, names=[part.name for part in parts])


def _as_table(context: TableContext, keys: Any, parts: Sequence[DataField]) -> pa.Table:
    names = [part.name for part in parts]
    is_listed = isinstance(keys, list | tuple) and not all(isinstance(item, pa.RecordBatch) for item in keys)
    if isinstance(keys, list | tuple) and not keys:
        return pa.table({name: [] for name in names})
    try:
        if is_listed and all(isinstance(item, dict) for item in keys):
            found = [name for name in names if any(name in item for item in keys)]
            return pa.Table.from_pydict({name: [item.get(name) for item in keys] for name in found})
        if is_listed or not _are_columns(keys):
            if len(parts) > 1:
                raise InvalidData(
                    f"table `{context.name}` is looked up by {len(parts)} columns, one list of values is given",
                    hint=f"pass a table or dicts with {', '.join(names)}",
                )
            values = keys if isinstance(keys, pa.Array | pa.ChunkedArray) else pa.array(keys)
            return pa.table({names[0]: values})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(
            f"keys for table `{context.name}` can not be read: {error}",
            hint=f"pass a table, a DataFrame, dicts, or values of {to_arrow_type(parts[0].type)}",
        ) from error
    batches = list(to_batches(keys))
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in names})


def _are_columns(keys: Any) -> bool:
    """Whether keys come in named columns, rather than as the values of one."""
    is_column = isinstance(keys, pa.Array | pa.ChunkedArray | np.ndarray) or type(keys).__name__ in ("Series", "Index")
    return not is_column


__all__ = [
    "KeyLookup",
    "asked_columns",
    "buckets_at",
    "buckets_of_keys",
    "chosen_fields",
    "distinct_keys",
    "narrowed",
    "refuse_unreachable",
]
