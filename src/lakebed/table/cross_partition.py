"""Upserts across partitions: the key does not hold all partition columns, so a row may move its key to another one.

An index of all keys says where each lies; it is read from the table's files when the first row comes, and handed on
from one write of a handle to the next as long as nobody else wrote. Where writers share the work, each knows the keys
of its share: it reads them all and keeps its own, or others read them (`KnownKeys`) and bring it those (`learn`). What
happens to a row whose key lies in another partition depends on the merge engine:

    deduplicate                  the old row is deleted where it is, the new one goes to its own partition
    partial-update, aggregation  the row goes to the partition where its key is
    first-row                    the row is left out
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.dynamic import BucketFiller
from lakebed.bucket.hashing import Hashes, hash_rows
from lakebed.bucket.key_places import UNKNOWN, KeyPlaces
from lakebed.commit.message import CommitMessage
from lakebed.errors import CommitConflict, InvalidData, NotFound
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.data_file import creation_time_to_epoch
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.options import (
    CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM,
    CROSS_PARTITION_UPSERT_INDEX_TTL,
    MERGE_ENGINE,
)
from lakebed.table.bucket_modes import WritePart, assigner_rules
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.read import SplitReader
from lakebed.table.routing import partitions_of
from lakebed.table.scan import FileSieve, splits_of
from lakebed.table.splits import Split
from lakebed.table.vectors import vectors_at
from lakebed.types.binary_row import decode_rows, encode_rows
from lakebed.types.row_kind import RowKind

Numbers = npt.NDArray[np.int64]
KeepEntries = Callable[[list[ManifestEntry]], list[ManifestEntry]]


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows with the partition values and the bucket of where they go, and their kinds."""

    rows: pa.RecordBatch
    kinds: pa.Array
    buckets: Numbers


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Keys of one partition and bucket, as bytes and with their hashes."""

    partition: bytes
    bucket: int
    hashes: Hashes
    keys: pa.Array

    def chosen(self, mask: npt.NDArray[np.bool_]) -> KnownKeys:
        """Some of them."""
        return replace(self, hashes=self.hashes[mask], keys=self.keys.filter(pa.array(mask)))


@dataclass(slots=True)
class KeyIndexState:
    """All keys of a table and where they are; partitions have numbers in the order of their appearance."""

    snapshot: Snapshot | None = None
    places: KeyPlaces = field(default_factory=KeyPlaces)
    partitions: list[bytes] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    counts: dict[int, dict[int, int]] = field(default_factory=dict)
    """Rows in each bucket of a partition when the index was read."""
    fillers: dict[int, BucketFiller] = field(default_factory=dict)

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys lie, and of how many rows their bucket has. Where a key is known to be stays."""
        number = self.number(known.partition)
        in_bucket = self.counts.setdefault(number, {})
        in_bucket[known.bucket] = in_bucket.get(known.bucket, 0) + row_count
        is_new = _first_of_each(known.keys) & (self.places.find(known.hashes, known.keys) == UNKNOWN)
        new = known.chosen(is_new)
        count = len(new.keys)
        where = np.full(count, number, np.int64), np.full(count, known.bucket, np.int64)
        self.places.add(new.hashes, new.keys, *where)

    def number(self, partition: bytes) -> int:
        """The number of a partition."""
        if partition not in self.numbers:
            self.numbers[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self.numbers[partition]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of a batch by their keys. `codes` number the distinct keys, `entries` are those of each distinct key."""

    partitions: Numbers
    hashes: Hashes
    codes: Numbers
    first_rows: Numbers
    keys: pa.Array
    entries: Numbers


class CrossPartition:
    """Finds the place of every row of one write, and what else must be written for it.

    `base` is asked for the snapshot to start from; None for a write that replaces what it writes to. `part` is set
    where several writers share the work: each gets the keys of its share, and hands out buckets of its own. With
    `is_taught` the keys of the snapshot are brought (`learn`) instead of being read.
    """

    def __init__(
        self,
        context: TableContext,
        base: Callable[[], Snapshot | None] | None,
        part: WritePart | None = None,
        *,
        is_taught: bool = False,
    ) -> None:
        self._context = context
        self._base = base
        self._is_taught = is_taught
        self._part = part or WritePart(0, 1)
        self._opened: KeyIndexState | None = None
        # As many assigners as there are writers, whatever the options say of them.
        self._rules = replace(assigner_rules(context.options), channels=1, assigners=self._part.count)
        self._key_fields = context.schema.fields_of(context.schema.primary_keys)
        self._key_types = [column.type for column in self._key_fields]

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        """The rows as they are to be written, in their order."""
        if not rows.num_rows:
            return PlacedRows(rows, kinds, np.empty(0, np.int64))
        batch = self._keyed(rows)
        engine = self._context.options[MERGE_ENGINE]
        if engine == Deduplicate.name:
            return self._with_deletes(rows, kinds, batch)
        partitions, buckets = self._kept_places(batch)
        if engine == FirstRow.name:
            stays = partitions == batch.partitions
            keep = pa.array(stays)
            return PlacedRows(rows.filter(keep), kinds.filter(keep), buckets[stays])
        return PlacedRows(self._moved(rows, partitions), kinds, buckets)

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys lie, and of how many rows their bucket has. Where a key is known to be stays."""
        self._state.learn(known, row_count)

    def check_replaced(self, overwrite: Overwrite, latest: Snapshot | None) -> None:
        """Refuses an overwrite that leaves a partition in which one of its keys is: the key would be there twice."""
        if self._opened is None:
            return
        written = set(self._opened.partitions)

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            entries = [entry for entry in entries if entry.bucket >= 0]
            gone = {entry.partition for entry in overwrite.replaced(entries, written)}
            return [entry for entry in entries if entry.partition not in gone]

        for known in self._stored_keys(latest, keep):
            if np.any(self._opened.places.find(known.hashes, known.keys) != UNKNOWN):
                raise InvalidData(
                    f"table `{self._context.name}`: a row of this overwrite has a key that is also in partition "
                    f"{self._context.partition_directory(known.partition)}, which is not replaced",
                    hint="overwrite the whole table with overwrite={}, or write the rows without overwrite",
                )

    def remember(self, snapshot: Snapshot) -> None:
        """Lets the next write of this handle start from here: what was written is committed."""
        if self._opened is not None and self._base is not None and self._part.count == 1:
            self._opened.snapshot = snapshot
            self._context.memory.key_index = self._opened

    # --- where keys go -------------------------------------------------------------------------------------------

    def _keyed(self, rows: pa.RecordBatch) -> _Batch:
        numbers, partitions = partitions_of(self._context, rows)
        global_numbers = np.array([self._state.number(partition) for partition in partitions], np.int64)
        hashes, keys = self._hashed(rows)
        encoded = keys.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, first_rows = np.unique(codes, return_index=True)
        entries = self._state.places.find(hashes[first_rows], encoded.dictionary)
        return _Batch(global_numbers[numbers], hashes, codes, first_rows, encoded.dictionary, entries)

    def _kept_places(self, batch: _Batch) -> tuple[Numbers, Numbers]:
        """Partition and bucket of each row: where its key is, or else where the key's first row comes to."""
        places = self._state.places
        partitions, buckets = batch.partitions[batch.first_rows], np.empty(len(batch.entries), np.int64)
        known, new = batch.entries != UNKNOWN, batch.entries == UNKNOWN
        partitions[known] = places.partitions[batch.entries[known]]
        buckets[known] = places.buckets[batch.entries[known]]
        hashes = batch.hashes[batch.first_rows]
        buckets[new] = self._new_buckets(partitions[new], hashes[new])
        places.add(hashes[new], batch.keys.filter(pa.array(new)), partitions[new], buckets[new])
        return partitions[batch.codes], buckets[batch.codes]

    def _with_deletes(self, rows: pa.RecordBatch, kinds: pa.Array, batch: _Batch) -> PlacedRows:
        """Every row goes to its own partition; before it a delete to the one where its key was."""
        count = rows.num_rows
        order = np.argsort(batch.codes, kind="stable")
        codes, partitions = batch.codes[order], batch.partitions[order]
        is_first = np.append(True, codes[1:] != codes[:-1])
        stored_partition, stored_bucket = self._stored_places(batch)
        before = np.where(is_first, stored_partition[codes], np.roll(partitions, 1))
        comes = before != partitions
        comes_rows = order[comes]
        by_arrival = np.argsort(comes_rows, kind="stable")
        placed = np.empty(len(comes_rows), np.int64)
        arrived = comes_rows[by_arrival]
        placed[by_arrival] = self._new_buckets(batch.partitions[arrived], batch.hashes[arrived])
        # A row that stays where its key is has the bucket of the row before it.
        anchors = np.where(is_first, stored_bucket[codes], 0)
        anchors[comes] = placed
        last_anchor = np.maximum.accumulate(np.where(is_first | comes, np.arange(count), 0))
        buckets = anchors[last_anchor]
        old_buckets = np.where(is_first, stored_bucket[codes], np.roll(buckets, 1))
        leaves = comes & (before != UNKNOWN)
        self._leave(before[leaves], old_buckets[leaves])
        self._keep_places(batch, partitions, buckets, is_first)
        return self._joined(rows, kinds, batch, order, buckets, leaves, before, old_buckets)

    def _stored_places(self, batch: _Batch) -> tuple[Numbers, Numbers]:
        """Where each key of a batch was before it; UNKNOWN for new ones."""
        known = batch.entries != UNKNOWN
        partitions, buckets = np.full(len(known), UNKNOWN, np.int64), np.zeros(len(known), np.int64)
        partitions[known] = self._state.places.partitions[batch.entries[known]]
        buckets[known] = self._state.places.buckets[batch.entries[known]]
        return partitions, buckets

    def _keep_places(
        self, batch: _Batch, partitions: Numbers, buckets: Numbers, is_first: npt.NDArray[np.bool_]
    ) -> None:
        """Notes where the last row of each key came to. Rows are in the order of their keys' codes."""
        last = np.append(np.flatnonzero(is_first)[1:], len(is_first)) - 1
        places, known = self._state.places, batch.entries != UNKNOWN
        new = ~known
        places.partitions[batch.entries[known]] = partitions[last][known]
        places.buckets[batch.entries[known]] = buckets[last][known]
        hashes = batch.hashes[batch.first_rows]
        places.add(hashes[new], batch.keys.filter(pa.array(new)), partitions[last][new], buckets[last][new])

    def _joined(
        self,
        rows: pa.RecordBatch,
        kinds: pa.Array,
        batch: _Batch,
        order: Numbers,
        buckets: Numbers,
        leaves: npt.NDArray[np.bool_],
        before: Numbers,
        old_buckets: Numbers,
    ) -> PlacedRows:
        """Rows and deletes in the order of arrival; what is given besides the rows is in the order of keys."""
        count = rows.num_rows
        back = np.empty(count, np.int64)
        back[order] = np.arange(count)
        if not np.any(leaves):
            return PlacedRows(rows, kinds, buckets[back])
        leaves, before, old_buckets, buckets = leaves[back], before[back], old_buckets[back], buckets[back]
        taken = np.repeat(np.arange(count), 1 + leaves)
        is_delete = np.append(taken[1:] == taken[:-1], False)
        indices = pa.array(taken)
        targets = np.where(is_delete, before[taken], batch.partitions[taken])
        new_kinds = np.where(is_delete, np.int8(RowKind.DELETE), np.asarray(kinds)[taken]).astype(np.int8)
        placed = np.where(is_delete, old_buckets[taken], buckets[taken])
        return PlacedRows(self._moved(rows.take(indices), targets), pa.array(new_kinds), placed)

    def _moved(self, rows: pa.RecordBatch, partitions: Numbers) -> pa.RecordBatch:
        """The rows with the values of these partitions."""
        columns = decode_rows(self._state.partitions, self._context.partition_types)
        indices = pa.array(partitions)
        for column, values in zip(self._context.partition_fields, columns, strict=True):
            index = rows.schema.get_field_index(column.name)
            rows = rows.set_column(index, rows.schema.field(index), values.take(indices))
        return rows

    def _new_buckets(self, partitions: Numbers, hashes: Hashes) -> Numbers:
        """Buckets for keys that come to these partitions, in the order in which they come."""
        buckets = np.empty(len(partitions), np.int64)
        for number in np.unique(partitions).tolist():
            mine = np.flatnonzero(partitions == number)
            buckets[mine] = self._filler(number).place(hashes[mine])
        return buckets

    def _leave(self, partitions: Numbers, buckets: Numbers) -> None:
        places, counts = np.unique(np.stack([partitions, buckets]), axis=1, return_counts=True)
        for number, bucket, count in zip(*places.tolist(), counts.tolist(), strict=True):
            self._filler(number).release(bucket, count)

    def _filler(self, number: int) -> BucketFiller:
        fillers = self._state.fillers
        if number not in fillers:
            fillers[number] = BucketFiller(self._rules, self._part.number, self._state.counts.get(number, {}))
        return fillers[number]

    # --- the index -----------------------------------------------------------------------------------------------

    @property
    def _state(self) -> KeyIndexState:
        if self._opened is None:
            self._opened = KeyIndexState() if self._base is None else self._state_at(self._base())
        return self._opened

    def _state_at(self, snapshot: Snapshot | None) -> KeyIndexState:
        memory = self._context.memory
        if self._is_taught:
            return KeyIndexState(snapshot)
        if self._part.count == 1:
            remembered, memory.key_index = memory.key_index, None
            if remembered is not None and only_compacted_since(self._context.stores, remembered.snapshot, snapshot):
                return remembered
        return self._loaded(snapshot)

    def _loaded(self, snapshot: Snapshot | None) -> KeyIndexState:
        state, part = KeyIndexState(snapshot), self._part
        for known in self._stored_keys(snapshot):
            mine = known if part.count == 1 else known.chosen(shares_of(known.hashes, part.count) == part.number)
            state.learn(mine, len(known.keys))
        return state

    def _stored_keys(self, snapshot: Snapshot | None, keep: KeepEntries | None = None) -> Iterator[KnownKeys]:
        """Keys of all rows that there are, also of those that reads do not show yet."""
        splits = self.splits(snapshot, keep)
        threads = min(self._context.options[CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM], max(len(splits), 1))
        with ThreadPoolExecutor(threads, thread_name_prefix="lakebed-keys") as pool:
            for begin in range(0, len(splits), threads):
                for found in pool.map(lambda split: list(self.keys_in(split)), splits[begin : begin + threads]):
                    yield from found

    def splits(self, snapshot: Snapshot | None, keep: KeepEntries | None = None) -> list[Split]:
        """What has to be read to know all keys of a snapshot, or of those of its files that `keep` keeps."""
        context = self._context
        sieve = FileSieve(context, None)
        entries = live_files(context.stores, snapshot, keep_entries=sieve.keep_entries)
        entries = entries if keep is None else keep(entries)
        return self._young(splits_of(context, entries, sieve, vectors_at(context, snapshot)))

    def keys_in(self, split: Split) -> Iterator[KnownKeys]:
        """The keys of a split. May run in a task."""
        reader = SplitReader(self._context, tuple(self._key_fields), use_threads=False)
        for batch in reader.read(split):
            yield KnownKeys(split.partition, split.bucket, *self._hashed(batch))

    def _young(self, splits: Iterable[Split]) -> list[Split]:
        """Without those whose keys have been forgotten, if the table forgets them."""
        ttl_ms = self._context.options[CROSS_PARTITION_UPSERT_INDEX_TTL]
        if ttl_ms is None:
            return list(splits)
        limit_ms = self._context.clock.now_ms() - ttl_ms
        return [
            split
            for split in splits
            if any(creation_time_to_epoch(file.creation_time_ms or 0) >= limit_ms for file in split.files)
        ]

    def _hashed(self, rows: pa.RecordBatch) -> tuple[Hashes, pa.Array]:
        columns = [rows.column(column.name) for column in self._key_fields]
        return hash_rows(columns, self._key_types), encode_rows(columns, self._key_types, arity_prefix=False)


def shares_of(hashes: Hashes, count: int) -> Numbers:
    """Which of so many writers each key belongs to."""
    shares: Numbers = np.abs(hashes.astype(np.int64)) % count
    return shares


def check_only_crossing(context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
    """Refuses messages if anybody else wrote since they were begun: the same key may have come to two partitions."""
    for base_id in {message.base_snapshot_id for message in messages}:
        try:
            base = context.stores.snapshots.get(base_id) if base_id else None
        except NotFound:
            base = None
        if (base_id and base is None) or not only_compacted_since(context.stores, base, latest):
            raise CommitConflict(
                f"table `{context.name}`: another job wrote since this write began, and keys that may be in any "
                "partition allow one writer at a time",
                hint="write again; include the partition columns in the primary key for several writers at once",
            )


def only_compacted_since(stores: MetadataStores, before: Snapshot | None, after: Snapshot | None) -> bool:
    """Whether a state has the same rows as an earlier one because nothing but compactions lies in between."""
    if after is None or before is None:
        return after is before
    if after.id < before.id:
        return False
    try:
        if stores.snapshots.get(before.id) != before:
            return False
        between = (stores.snapshots.get(number) for number in range(before.id + 1, after.id + 1))
        return all(snapshot.commit_kind == CommitKind.COMPACT for snapshot in between)
    except NotFound:
        return False  # expired, or rolled back


def _first_of_each(keys: pa.Array) -> npt.NDArray[np.bool_]:
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[np.unique(codes, return_index=True)[1]] = True
    return is_first
