"""Who writes and reads a table again and again: streams and syncs by the commits they left, readers by their notes.

Nobody has to be asked for it: a stream's commits carry numbers that count up under one user, and a reader with a name
notes in the table what it reads next. It is told as far as snapshots are kept.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, pairwise
from statistics import median
from typing import Any

from lakebed.commit.replay import SYNC_POSITION
from lakebed.definition.context import TableContext
from lakebed.errors import NotFound
from lakebed.explain.origins import deltas_back_from
from lakebed.metadata.data_file import FileSource
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.records import dataclass

_MOST_SNAPSHOTS = 200
"""So far back is looked: a page that shows all tables must not read all of their history."""


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """A stream or a sync that commits to a table."""

    user: str
    is_sync: bool
    commits: int
    """Of those that were looked at."""
    rows: int
    last_identifier: int
    first_ms: int
    last_ms: int
    usual_ms: int | None
    """The time that usually lies between two of its commits; None if it has made one only."""

    @property
    def rows_per_second(self) -> float | None:
        """Between the first and the last of these commits."""
        took_ms = self.last_ms - self.first_ms
        return None if took_ms <= 0 else 1000 * self.rows / took_ms

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"rate": self.rows_per_second}


@dataclass(frozen=True, slots=True)
class StreamReader:
    """A reader that has told the table its name."""

    consumer: str
    next_snapshot: int
    snapshots_behind: int
    behind_ms: int
    """How long the oldest commit has waited that it has not read."""
    bytes_behind: int
    """Of files that commits have brought since, as far as was looked."""
    noted_ms: int
    """When it last noted how far it is."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def stream_writers(context: TableContext) -> list[StreamWriter]:
    """Streams and syncs among those who made the newest snapshots; those that wrote last come first."""
    found: dict[str, list[Snapshot]] = defaultdict(list)
    for snapshot in islice(context.stores.snapshots.newest_first(), _MOST_SNAPSHOTS):
        is_of_rows = snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
        if is_of_rows and snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            found[snapshot.commit_user].append(snapshot)
    return [_writer(user, snapshots) for user, snapshots in found.items()]


def _writer(user: str, newest_first: list[Snapshot]) -> StreamWriter:
    newest, oldest = newest_first[0], newest_first[-1]
    gaps = [later.time_millis - earlier.time_millis for later, earlier in pairwise(newest_first)]
    return StreamWriter(
        user,
        SYNC_POSITION in (newest.properties or {}),
        len(newest_first),
        sum(snapshot.delta_record_count or 0 for snapshot in newest_first),
        newest.commit_identifier,
        oldest.time_millis,
        newest.time_millis,
        int(median(gaps)) if gaps else None,
    )


def stream_readers(context: TableContext, latest: Snapshot | None) -> list[StreamReader]:
    """Consumers of a table, and how far each is behind."""
    if latest is None:
        return []
    return [
        _reader(context, latest, consumer.id, consumer.next_snapshot, consumer.modified_ms)
        for consumer in context.stores.consumers.list()
    ]


def _reader(context: TableContext, latest: Snapshot, name: str, next_snapshot: int, noted_ms: int) -> StreamReader:
    behind = max(0, latest.id + 1 - next_snapshot)
    waits_ms = size_bytes = 0
    if behind:
        try:
            since_ms = context.stores.snapshots.get(next_snapshot).time_millis
            waits_ms = max(0, context.clock.now_ms() - since_ms)
        except NotFound:
            pass  # what it is to read next has expired: it will say so itself
        for delta in islice(deltas_back_from(context, latest), _MOST_SNAPSHOTS):
            if delta.snapshot.id < next_snapshot:
                break
            size_bytes += sum(
                entry.file.size_bytes for entry in delta.came.values() if entry.file.file_source != FileSource.COMPACT
            )
    return StreamReader(name, next_snapshot, behind, waits_ms, size_bytes, noted_ms)


__all__ = ["StreamReader", "StreamWriter", "stream_readers", "stream_writers"]
