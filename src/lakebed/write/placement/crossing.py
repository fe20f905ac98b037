"""Keys that do not tell their partition: an index of all keys of the table knows where each is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.dynamic import BucketFiller
from lakebed.bucket.hashing import Hashes
from lakebed.bucket.key_places import UNKNOWN, KeyPlaces
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import CROSS_PARTITION, WritePart, assigner_rules
from lakebed.definition.context import TableContext
from lakebed.definition.memory import Slot
from lakebed.definition.partition_spec import Overwrite, partitions_of
from lakebed.errors import CommitConflict, InvalidData, LakebedError, NotFound
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import CROSS_PARTITION_UPSERT_INDEX_TTL, MERGE_ENGINE
from lakebed.records import dataclass
from lakebed.types.binary_row import decode_rows
from lakebed.types.row_kind import RowKind
from lakebed.write.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.write.placement.kept_keys import KeptKeys, KeptPlace
from lakebed.write.placement.table_keys import (
    EVERYTHING,
    KnownKeys,
    TableKeys,
    WrittenKeys,
    appended_since,
    is_worth_following,
    only_compacted_since,
    share_mark,
)


class Crossing(Placement):
    """A key that comes with another partition leaves the one it was in, or stays, as the merge engine has it."""

    mode = CROSS_PARTITION

    def __init__(self, setup: PlacementSetup) -> None:
        super().__init__(setup)
        kept = setup.kept_keys if setup.overwrite is None else None
        self._keys = CrossPartition(setup.context, setup.base, setup.part, is_taught=setup.is_taught, kept=kept)
        self._checked_id: int | None = None

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        if self.setup.overwrite is not None and rows.num_rows:
            self.check_replaced(partitions_of(self.context, rows))
        return PlacedRows(*self._keys.place(rows, kinds))

    def learn(self, known: KnownKeys, row_count: int) -> None:
        self._keys.learn(known, row_count)

    def finish(self) -> None:
        if self.setup.overwrite is not None:
            latest = self.context.stores.snapshots.latest()
            self._keys.check_replaced(self.setup.overwrite, latest)
            self._checked_id = latest.id if latest is not None else 0
        self._keys.finish()

    @property
    def base_snapshot_id(self) -> int | None:
        return self._checked_id

    def remember(self, snapshot: Snapshot) -> None:
        self._keys.remember(snapshot)

    def abort(self) -> None:
        self._keys.abort()

    def file_prefix(self, prefix: str) -> str:
        return prefix if self.setup.part is None else f"{prefix}-{share_mark(self.setup.part)}"

    @classmethod
    def check_overwrite(
        cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None
    ) -> None:
        # What others have brought to partitions that stay may have keys of these rows.
        _check_only_crossing(context, messages, latest)

    @classmethod
    def check_commit(cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
        _check_only_crossing(context, messages, latest)


# ------------------------------------------------------------------------------------------------------------------
# Upserts across partitions: the key does not hold all partition columns, so a row may move its key to another one.
#
# An index of all keys says where each lies; it is read from the table's files when the first row comes, and handed on
# from one write of a handle to the next, which reads what others wrote meanwhile. Where writers share the work, each
# knows the keys of its share: it reads them all and keeps its own, others read them (`KnownKeys`) and bring it those
# (`learn`), or they are on its disk from the last time (`kept_keys`). What happens to a row whose key lies in another
# partition depends on the merge engine:
#
#     deduplicate                  the old row is deleted where it is, the new one goes to its own partition
#     partial-update, aggregation  the row goes to the partition where its key is
#     first-row                    the row is left out


Numbers = npt.NDArray[np.int64]


class MovedRows(NamedTuple):
    """Rows with the partition values and the bucket of where they go, and their kinds."""

    rows: pa.RecordBatch
    kinds: pa.Array
    buckets: Numbers


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
    `is_taught` the keys of the snapshot are brought (`learn`) instead of being read. With `kept` they stay on this
    machine's disk, and only those that rows ask for come into memory.
    """

    def __init__(
        self,
        context: TableContext,
        base: Callable[[], Snapshot | None] | None,
        part: WritePart | None = None,
        *,
        is_taught: bool = False,
        kept: KeptPlace | None = None,
    ) -> None:
        self._context = context
        self._base = base
        self._is_taught = is_taught
        self._part = part or EVERYTHING
        self._opened: KeyIndexState | None = None
        self._kept_place = kept
        self._kept: KeptKeys | None = None
        self._keys = TableKeys(context)
        # As many assigners as there are writers, whatever the options say of them.
        self._rules = replace(assigner_rules(context.options), channels=1, assigners=self._part.count)

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> MovedRows:
        """The rows as they are to be written, in their order."""
        if not rows.num_rows:
            return MovedRows(rows, kinds, np.empty(0, np.int64))
        batch = self._keyed(rows)
        engine = self._context.options[MERGE_ENGINE]
        if engine == Deduplicate.name:
            return self._with_deletes(rows, kinds, batch)
        partitions, buckets = self._kept_places(batch)
        if engine == FirstRow.name:
            stays = partitions == batch.partitions
            keep = pa.array(stays)
            return MovedRows(rows.filter(keep), kinds.filter(keep), buckets[stays])
        return MovedRows(self._moved(rows, partitions), kinds, buckets)

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys lie, and of how many rows their bucket has. Where a key is known to be stays."""
        state = self._state
        if self._kept is None:
            state.learn(known, row_count)
        else:
            self._kept.learn(known, row_count)

    def finish(self) -> None:
        """To be called after the last row."""
        if self._kept_place is not None and self._is_taught:
            _ = self._state  # also a share without keys is known from now on
        if self._kept is not None:
            self._kept.finish()

    def abort(self) -> None:
        """To be called instead if the rows are given up."""
        if self._kept is not None:
            self._kept.close()

    def check_replaced(self, overwrite: Overwrite, latest: Snapshot | None) -> None:
        """Refuses an overwrite that leaves a partition in which one of its keys is: the key would be there twice."""
        if self._opened is None:
            return
        written = set(self._opened.partitions)

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            entries = [entry for entry in entries if entry.bucket >= 0]
            gone = {entry.partition for entry in overwrite.replaced(entries, written)}
            return [entry for entry in entries if entry.partition not in gone]

        for known in self._keys.stored(latest, keep):
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
            self._context.memory[KEY_INDEX] = self._opened

    # --- where keys go -------------------------------------------------------------------------------------------

    def _keyed(self, rows: pa.RecordBatch) -> _Batch:
        numbers, partitions = partitions_of(self._context, rows)
        global_numbers = np.array([self._state.number(partition) for partition in partitions], np.int64)
        hashes, keys = self._keys.hashed(rows)
        encoded = keys.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, first_rows = np.unique(codes, return_index=True)
        entries = self._entries(hashes[first_rows], encoded.dictionary)
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

    def _with_deletes(self, rows: pa.RecordBatch, kinds: pa.Array, batch: _Batch) -> MovedRows:
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
    ) -> MovedRows:
        """Rows and deletes in the order of arrival; what is given besides the rows is in the order of keys."""
        count = rows.num_rows
        back = np.empty(count, np.int64)
        back[order] = np.arange(count)
        if not np.any(leaves):
            return MovedRows(rows, kinds, buckets[back])
        leaves, before, old_buckets, buckets = leaves[back], before[back], old_buckets[back], buckets[back]
        taken = np.repeat(np.arange(count), 1 + leaves)
        is_delete = np.append(taken[1:] == taken[:-1], False)
        indices = pa.array(taken)
        targets = np.where(is_delete, before[taken], batch.partitions[taken])
        new_kinds = np.where(is_delete, np.int8(RowKind.DELETE), np.asarray(kinds)[taken]).astype(np.int8)
        placed = np.where(is_delete, old_buckets[taken], buckets[taken])
        return MovedRows(self._moved(rows.take(indices), targets), pa.array(new_kinds), placed)

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

    def _entries(self, hashes: Hashes, keys: pa.Array) -> Numbers:
        """The entries of keys, which come into memory if they are known on disk only."""
        state = self._state
        entries = state.places.find(hashes, keys)
        asked = np.flatnonzero(entries == UNKNOWN)
        if self._kept is None or not len(asked):
            return entries
        found = self._kept.find(keys.take(pa.array(asked)))
        if not state.counts and not state.fillers:
            for (number, bucket), count in self._kept.counts().items():
                of_partition = state.counts.setdefault(state.number(self._kept.partitions[number]), {})
                of_partition[bucket] = count
        numbers = np.array([state.number(partition) for partition in self._kept.partitions], np.int64)
        rows = asked[found.rows]
        entries[rows] = np.arange(len(state.places), len(state.places) + len(rows))
        partitions = numbers[found.partitions] if len(rows) else found.partitions
        state.places.add(hashes[rows], keys.take(pa.array(rows)), partitions, found.buckets)
        return entries

    @property
    def _state(self) -> KeyIndexState:
        if self._opened is None:
            self._opened = KeyIndexState() if self._base is None else self._state_at(self._base())
        return self._opened

    def _state_at(self, snapshot: Snapshot | None) -> KeyIndexState:
        memory = self._context.memory
        if self._kept_place is not None:
            place, part = self._kept_place, self._part
            self._kept = KeptKeys(self._context, place, part, snapshot, is_taught=self._is_taught)
        if self._is_taught or self._kept_place is not None:
            return KeyIndexState(snapshot)
        if self._part.count == 1:
            remembered = memory.take(KEY_INDEX)
            if remembered is not None and self._has_followed(remembered, snapshot):
                return remembered
        return self._loaded(snapshot)

    def _has_followed(self, state: KeyIndexState, snapshot: Snapshot | None) -> bool:
        """Brings an index to a later snapshot; whether that could be done."""
        ttl_ms = self._context.options[CROSS_PARTITION_UPSERT_INDEX_TTL]
        if ttl_ms is not None and self._context.clock.now_ms() - state.read_ms > ttl_ms:
            return False  # keys are forgotten by reading anew
        appends = appended_since(self._context.stores, state.snapshot, snapshot)
        if appends is None or (appends and not is_worth_following(appends, snapshot)):
            return False
        moves = self._context.options[MERGE_ENGINE] == Deduplicate.name
        try:
            for written in self._keys.written(appends):
                state.follow(written, moves=moves)
        except LakebedError:
            return False  # a file is gone: its snapshot was expired meanwhile
        if appends:
            state.count_anew()
        return True

    def _loaded(self, snapshot: Snapshot | None) -> KeyIndexState:
        state = KeyIndexState(snapshot, self._context.clock.now_ms())
        for known in self._keys.stored(snapshot):
            state.learn(known.of_part(self._part), len(known.keys))
        return state


def _check_only_crossing(context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
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


# ------------------------------------------------------------------------------------------------------------------
# Where all keys of a table are, in memory: what a writer across partitions knows, and hands on to the next write.


@dataclass(slots=True)
class KeyIndexState:
    """All keys of a table and where they are; partitions have numbers in the order of their appearance."""

    snapshot: Snapshot | None = None
    read_ms: int = 0
    """When it was read from the table."""
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

    def follow(self, written: Iterable[WrittenKeys], *, moves: bool) -> None:
        """Takes note of what a commit wrote: new keys, and known ones if they move. Where a key was deleted stays."""
        for each in written:
            known = each.known.chosen(~each.is_gone)
            entries = self.places.find(known.hashes, known.keys)
            is_new = entries == UNKNOWN
            number = self.number(known.partition)
            if moves:
                self.places.partitions[entries[~is_new]] = number
                self.places.buckets[entries[~is_new]] = known.bucket
            new = known.chosen(is_new)
            count = len(new.keys)
            where = np.full(count, number, np.int64), np.full(count, known.bucket, np.int64)
            self.places.add(new.hashes, new.keys, *where)

    def count_anew(self) -> None:
        """Counts the rows of buckets by the keys that are there."""
        self.fillers, self.counts = {}, {}
        packed = self.places.partitions.astype(np.int64) << 16 | self.places.buckets.astype(np.int64)
        for place, count in zip(*(found.tolist() for found in np.unique(packed, return_counts=True)), strict=True):
            self.counts.setdefault(place >> 16, {})[place & 0xFFFF] = count

    def number(self, partition: bytes) -> int:
        """The number of a partition."""
        if partition not in self.numbers:
            self.numbers[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self.numbers[partition]


def _first_of_each(keys: pa.Array) -> npt.NDArray[np.bool_]:
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[np.unique(codes, return_index=True)[1]] = True
    return is_first


KEY_INDEX: Slot[KeyIndexState] = Slot("key index")


__all__ = ["Crossing"]
