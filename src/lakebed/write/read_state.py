"""What a statement that changes rows has read of a table, so that nothing that others write meanwhile is lost.

UPDATE, DELETE and MERGE compute new rows from those they have read. A commit of them is refused if somebody else wrote
one of the same keys in between: the new rows know nothing of theirs, and would take their place. Other keys, and
compactions, do not matter. An overwrite of all that was read tolerates nothing but compactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.lsm.sections import Section, SortedRun, key_bounds
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket, delta_entries, in_buckets
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.types.binary_row import encode_rows


@dataclass(frozen=True, slots=True)
class ReadState:
    """The snapshot that was read; None for a table without any."""

    snapshot: Snapshot | None

    def check_unchanged(self, context: TableContext, latest: Snapshot | None) -> None:
        """Raises if the table has other rows by now."""
        if any(True for _ in self._written_since(context, latest)):
            raise _conflict(context, "rows were written")

    def check(self, context: TableContext, messages: Sequence[CommitMessage], latest: Snapshot | None) -> None:
        """Raises if somebody else has written keys that these messages have, or deleted rows where they write."""
        ours: dict[Bucket, list[DataFile]] = defaultdict(list)
        for message in messages:
            ours[message.partition, message.bucket] += message.new_files
        # Rows that wait for their bucket may be of any key.
        waiting = {(partition, POSTPONE_BUCKET) for partition, _ in ours}
        keep = in_buckets({*ours, *waiting})
        theirs: dict[Bucket, list[DataFile]] = defaultdict(list)
        for snapshot in self._written_since(context, latest):
            for entry in keep(_delta(context, snapshot)):
                if entry.kind == EntryKind.DELETE:
                    raise _conflict(context, "rows were replaced")
                if entry.bucket == POSTPONE_BUCKET:
                    raise _conflict(context, "rows were written that wait for their buckets")
                theirs[entry.partition, entry.bucket].append(entry.file)
        for bucket, files in theirs.items():
            if _share_a_key(context, bucket, ours[bucket], files):
                raise _conflict(context, "rows of the same keys were written")

    def _written_since(self, context: TableContext, latest: Snapshot | None) -> Iterator[Snapshot]:
        """Snapshots since then that changed rows, or an error if they can not be told any more."""
        before, snapshots = self.snapshot, context.stores.snapshots
        first, last = before.id if before is not None else 0, latest.id if latest is not None else 0
        try:
            if last < first or (before is not None and snapshots.get(first) != before):
                raise _conflict(context, "the table was rolled back")
            for number in range(first + 1, last + 1):
                snapshot = snapshots.get(number)
                if snapshot.commit_kind not in (CommitKind.COMPACT, CommitKind.ANALYZE):
                    yield snapshot
        except NotFound as error:
            raise _conflict(context, "snapshots have expired") from error


def _delta(context: TableContext, snapshot: Snapshot) -> list[ManifestEntry]:
    try:
        return delta_entries(context.stores, snapshot)
    except FileMissing as error:
        raise _conflict(context, "snapshots have expired") from error


def _share_a_key(context: TableContext, bucket: Bucket, ours: Sequence[DataFile], theirs: Sequence[DataFile]) -> bool:
    """Whether files of one bucket have a key in common. Key ranges answer for most; else the keys are compared."""
    low, high = key_bounds([*ours, *theirs], context.key_types)
    count = len(ours)
    close = [
        theirs[other]
        for other in range(len(theirs))
        if any(low[count + other] <= high[own] and low[own] <= high[count + other] for own in range(count))
    ]
    if not close:
        return False
    known = _keys(context, bucket, ours)
    return bool(pc.any(pc.is_in(_keys(context, bucket, close), value_set=known)).as_py())


def _keys(context: TableContext, bucket: Bucket, files: Sequence[DataFile]) -> pa.Array:
    reader = SplitReader(context, tuple(context.key_fields), use_threads=False)
    split = Split(*bucket, tuple(Section((SortedRun((file,)),)) for file in files))
    parts = [encode_rows(batch.columns, context.key_types, arity_prefix=False) for batch in reader.read_stored(split)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())


def _conflict(context: TableContext, what: str) -> CommitConflict:
    return CommitConflict(
        f"table `{context.name}`: {what} while this statement worked on what it had read before",
        hint="run the statement again: nothing was changed",
    )


__all__ = ["ReadState"]
