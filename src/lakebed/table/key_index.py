"""The index of keys behind one write to a dynamic-bucket table: opened with the first row, written with the last.

Two writers at once may give a new key two different buckets, and nothing could merge its rows ever after. So a commit
is refused when the index of a partition it writes to is no longer the one it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from lakebed.bucket.base import Buckets
from lakebed.bucket.hashing import Hashes
from lakebed.commit.message import CommitMessage
from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import Bucket
from lakebed.metadata.hash_index import HashEntries, hash_entries
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.bucket_modes import WritePart, assigner_rules, shared_rules
from lakebed.table.context import TableContext
from lakebed.table.hash_indexes import KNOWN_BUCKETS, HashIndexes


class KeyIndex:
    """Knows which bucket each key has, and keeps the buckets' index files complete.

    `base` is asked for the snapshot to start from; None for a write that replaces what it writes to, where no key is
    known. `part` is set where several writers share the work.
    """

    def __init__(
        self,
        context: TableContext,
        fileio: FileIO,
        base: Callable[[], Snapshot | None] | None,
        part: WritePart | None = None,
    ) -> None:
        self._context = context
        self._fileio = fileio
        self._base = base
        self._part = part
        self._opened: HashIndexes | None = None
        self._written: dict[Bucket, IndexEntry] = {}

    def assign(self, partition: bytes, hashes: Hashes) -> Buckets:
        """The bucket of each key of a partition, given its hash."""
        with _of_a_base(self._context):
            return self._indexes().assign(partition, hashes)

    def files(self, buckets: Collection[Bucket]) -> Mapping[Bucket, IndexEntry]:
        """Writes the index files of those of these buckets that have new keys."""
        if self._opened is not None:
            hashes = self._opened.take_new()
            with _of_a_base(self._context):
                self._written = self._opened.write({bucket: hashes[bucket] for bucket in buckets if bucket in hashes})
        return self._written

    def remember(self) -> None:
        """Lets the next write of this handle start from here: what was written is committed."""
        if self._opened is not None:
            self._context.memory[KNOWN_BUCKETS] = self._opened.to_remember(self._written)

    def _indexes(self) -> HashIndexes:
        if self._opened is None:
            context, part = self._context, self._part
            self._opened = HashIndexes(
                self._fileio,
                context.paths,
                {} if self._base is None else hash_entries(context.stores, self._base()),
                assigner_rules(context.options) if part is None else shared_rules(context.options, part.count),
                share=None if part is None else part.number,
                remembered=context.memory[KNOWN_BUCKETS] if part is None else None,
                new_id=context.ids.new_id,
            )
        return self._opened


def check_only_writer(context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
    """Refuses messages whose keys got their buckets from an index that is not the table's any more."""
    latest_id = latest.id if latest is not None else 0
    bases = {message.base_snapshot_id for message in messages} - {latest_id}
    if not bases:
        return
    now = hash_entries(context.stores, latest)
    for base_id in bases:
        then = _entries_at(context, base_id)
        for message in messages:
            partition = message.partition
            if message.base_snapshot_id == base_id and then.get(partition, {}) != now.get(partition, {}):
                where = context.partition_directory(partition)
                raise CommitConflict(
                    f"table `{context.name}`{f', partition {where}' if where else ''}: another job gave keys their "
                    "buckets since this write began",
                    hint="write again; a partition with dynamic buckets can have one writer at a time",
                )


def _entries_at(context: TableContext, snapshot_id: int) -> HashEntries:
    with _of_a_base(context):
        return hash_entries(context.stores, context.stores.snapshots.get(snapshot_id) if snapshot_id else None)


@contextmanager
def _of_a_base(context: TableContext) -> Iterator[None]:
    """Files of the snapshot that a write began from, which may have expired meanwhile."""
    try:
        yield
    except (NotFound, FileMissing) as error:
        raise CommitConflict(
            f"table `{context.name}`: the snapshot from which this write began has expired: whether another job gave "
            "keys their buckets since then can not be told",
            hint="write again, in smaller parts or with a longer `snapshot.time-retained`",
        ) from error
