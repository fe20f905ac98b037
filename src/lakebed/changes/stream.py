"""Plans what a stream reader reads next: first the table's state, if the mode asks for it, then snapshot by snapshot.

A position comes in, a plan with the position after it goes out. So a reader may stop anywhere, keep its position
wherever it likes, and go on elsewhere: the scan keeps nothing but the pieces it cut last, for who takes them a few at a
time. What has expired is an error, never a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate

import pyarrow as pa

from lakebed.changes.position import SeenSnapshot, StreamPosition
from lakebed.changes.splits import (
    ChangeReader,
    ChangeSplit,
    about_rows,
    change_splits,
    refuse_unfollowable,
    state_splits,
)
from lakebed.changes.start import consumer_id, created_since_ms, start_position
from lakebed.definition.changelog_rules import check_producer
from lakebed.definition.context import AUDIT_LOG, TableContext
from lakebed.definition.moments import History
from lakebed.errors import FileMissing, InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    CONSUMER_ID,
    CONSUMER_IGNORE_PROGRESS,
    READ_STREAM_MAXBYTESPERTRIGGER,
    READ_STREAM_MAXFILESPERTRIGGER,
    READ_STREAM_MAXROWSPERTRIGGER,
    READ_STREAM_MAXTRIGGERDELAYMS,
    READ_STREAM_MINROWSPERTRIGGER,
    SCAN_BOUNDED_WATERMARK,
    STREAMING_READ_SNAPSHOT_DELAY,
    Options,
)
from lakebed.read.reader import projected_fields
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.types.predicate import Predicate


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What is left to read of one snapshot, and where the stream goes on after it."""

    snapshot: Snapshot
    position: StreamPosition
    splits: tuple[ChangeSplit, ...]
    is_whole: bool = True
    """Whether these are all that is left of the snapshot."""

    @property
    def end(self) -> StreamPosition:
        """The position after the plan."""
        return self.after(len(self.splits))

    def after(self, count: int) -> StreamPosition:
        """The position after the first `count` splits: after all of a snapshot, the changes of the next one."""
        seen = SeenSnapshot.of(self.snapshot)
        if self.is_whole and count >= len(self.splits):
            return StreamPosition(self.snapshot.id + 1, seen=seen)
        return replace(self.position, index=self.position.index + count, seen=seen)

    def first(self, count: int) -> StreamPlan:
        """A plan of its first splits."""
        return self if count >= len(self.splits) else replace(self, splits=self.splits[:count], is_whole=False)


class StreamScan:
    """One table as a stream, under the schema and the options of its context."""

    def __init__(
        self, context: TableContext, columns: Sequence[str] | None = None, predicate: Predicate | None = None
    ) -> None:
        if context.view not in ("", AUDIT_LOG):
            raise Unsupported(
                f"`{context.name}` is a view, which can not be followed",
                hint=f"follow `{context.name.removesuffix(f'${context.view}')}` instead",
            )
        check_producer(context.schema, context.options, context.name)
        refuse_unfollowable(context)
        self.context = context
        self._history = History(context.stores)
        self._cut: tuple[SeenSnapshot, bool, list[ChangeSplit]] | None = None
        self._reader = ChangeReader(context, projected_fields(context, columns), predicate)
        self._row_part = about_rows(context, predicate)
        self.limits = StreamLimits.of(context.options, context.name)
        self.consumer_id = consumer_id(context.options)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows: their kind, then the columns."""
        return self._reader.schema

    def start(self) -> StreamPosition:
        """Where a new reader begins."""
        position = start_position(self.context, self._history)
        if position.is_full or position.seen is not None:
            return position
        before = self._history.changes(position.snapshot - 1)
        return position if before is None else replace(position, seen=SeenSnapshot.of(before))

    def plan(self, position: StreamPosition) -> StreamPlan | None:
        """What is to be read at a position; None if there is nothing yet. An empty plan: go on at its end.

        No more than the table's options allow at a time, and nothing as long as less is there than they ask for.
        """
        plan = self.whole_plan(position)
        if plan is None or not self._is_enough(plan):
            return None
        return plan.first(self.limits.count([item.split for item in plan.splits]))

    def whole_plan(self, position: StreamPosition) -> StreamPlan | None:
        """All that is left of the snapshot at a position, however much that is; None if there is nothing yet."""
        snapshot = self._snapshot_at(position)
        self._check_lineage(position)
        if snapshot is None or self.is_over(position) or self._is_too_young(snapshot, position):
            return None
        with self.watching(position):
            splits = self._splits(snapshot, position)
        if position.index > len(splits):
            raise InvalidArgument(
                f"table `{self.context.name}`: position {position.to_members()} is past the {len(splits)} pieces of "
                f"snapshot {snapshot.id}",
                hint="a position holds for the table, the options and the filter it was taken with",
            )
        return StreamPlan(snapshot, position, tuple(splits[position.index :]))

    def read(self, plan: StreamPlan) -> pa.Table:
        """All rows of a plan, kind first."""
        with self.watching(plan.position):
            return self._reader.read_all(plan.splits)

    def read_split(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of one split of a plan."""
        return self._reader.read(split)

    def is_over(self, position: StreamPosition) -> bool:
        """Whether the stream ends here: the next snapshot, or the state just read, is past the watermark asked for."""
        bound = self.context.options[SCAN_BOUNDED_WATERMARK]
        if bound is None or position.is_full or position.index:
            return False
        coming = self._history.changes(position.snapshot) or self._history.changes(position.snapshot - 1)
        return coming is not None and coming.watermark is not None and coming.watermark > bound

    def acknowledge(self, snapshot_id: int, seen: SeenSnapshot | None = None) -> None:
        """Records that the consumer has this snapshot and all before it. Snapshots after it will not expire.

        `seen` is the last snapshot that was read, if that is known: it is how a rollback is noticed later.
        """
        if self.consumer_id is None:
            raise InvalidArgument(
                f"table `{self.context.name}` is read without a name to keep progress under",
                hint=f"set `{CONSUMER_ID.key}`, or keep the position yourself",
            )
        last_list = seen.delta_manifest_list if seen is not None and seen.id == snapshot_id else None
        self.context.stores.consumers.record(self.consumer_id, snapshot_id + 1, last_list)

    def latest_id(self) -> int | None:
        """Id of the newest snapshot of the table."""
        return self._history.latest_id()

    def _splits(self, snapshot: Snapshot, position: StreamPosition) -> list[ChangeSplit]:
        seen = SeenSnapshot.of(snapshot)
        if self._cut is not None and self._cut[:2] == (seen, position.is_full):
            return self._cut[2]
        if position.is_full:
            splits = state_splits(self.context, snapshot, created_since_ms(self.context.options), self._row_part)
        else:
            splits = change_splits(self.context, snapshot, self._row_part)
        self._cut = (seen, position.is_full, splits)
        return splits

    def _is_enough(self, plan: StreamPlan) -> bool:
        """Whether as many rows wait as the options ask for, or the first of them has waited as long as they allow."""
        limits = self.limits
        if limits.min_rows is None or limits.max_delay_ms is None or plan.position.is_full:
            return True
        waiting_since_ms, rows = plan.snapshot.time_millis, 0
        coming: StreamPlan | None = plan
        while coming is not None:
            rows += sum(row_count(item.split) for item in coming.splits)
            if rows >= limits.min_rows:
                return True
            coming = self.whole_plan(coming.end)
        if not rows:
            return True  # nothing to wait for: snapshots without changes are passed over
        return self.context.clock.now_ms() >= waiting_since_ms + limits.max_delay_ms

    def _check_lineage(self, position: StreamPosition) -> None:
        """Raises if the snapshot that was read last was taken away: another one has its id, or older ones are left."""
        seen = position.seen
        if seen is None:
            return
        found = self._history.changes(seen.id)
        if found is None and self._has_older(seen.id):
            raise NotFound(
                f"table `{self.context.name}`: the stream has read a snapshot {seen.id} that is gone, while older ones "
                "are there",
                hint="the table was rolled back, and what was read may not be true any more; " + self._anew(),
            )
        if found is not None and SeenSnapshot.of(found) != seen:
            raise NotFound(
                f"table `{self.context.name}`: the stream has read a snapshot {seen.id} that is gone; the one that is "
                "there now is another",
                hint="the table was rolled back or created anew, and what was read may not be true any more; "
                + self._anew(),
            )

    def _has_older(self, snapshot_id: int) -> bool:
        """Whether an older snapshot is there: they expire oldest first."""
        earliest = self._history.earliest_id()
        return earliest is not None and earliest < snapshot_id and self._history.changes(earliest) is not None

    def _snapshot_at(self, position: StreamPosition) -> Snapshot | None:
        # The latest id first: what is not beyond it and not there has expired, however fast commits come.
        latest = self._history.latest_id() or 0
        if position.snapshot == latest + 1:
            return None
        if position.snapshot > latest:
            raise NotFound(
                f"table `{self.context.name}`: the stream stands at snapshot {position.snapshot}, but the latest is "
                f"{latest}",
                hint="the table was rolled back or created anew; " + self._anew(),
            )
        found = (self._history.state if position.is_full else self._history.changes)(position.snapshot)
        if found is None:
            raise self._expired(position)
        return found

    def _is_too_young(self, snapshot: Snapshot, position: StreamPosition) -> bool:
        delay_ms = self.context.options[STREAMING_READ_SNAPSHOT_DELAY]
        if delay_ms is None or position.is_full:
            return False
        return self.context.clock.now_ms() < snapshot.time_millis + delay_ms

    @contextmanager
    def watching(self, position: StreamPosition) -> Iterator[None]:
        """Files that vanish with their snapshot while they are read are told as what they are: expired."""
        try:
            yield
        except FileMissing as error:
            found = (self._history.state if position.is_full else self._history.changes)(position.snapshot)
            if found is None:
                raise self._expired(position) from error
            raise

    def _expired(self, position: StreamPosition) -> NotFound:
        earliest = self._history.earliest_id()
        return NotFound(
            f"table `{self.context.name}`: the stream stands at snapshot {position.snapshot}, which has expired; "
            f"the earliest is {earliest}",
            hint=f"{self._anew()}; or take the gap and start with `scan.mode` = `from-snapshot` at {earliest}; a "
            f"`{CONSUMER_ID.key}` keeps snapshots until they are read",
        )

    def _anew(self) -> str:
        if self.consumer_id is None:
            return "start without a position, which reads the whole table first"
        return f"start without a position and with `{CONSUMER_IGNORE_PROGRESS.key}`, which reads the whole table first"


# --- How much of a table a stream takes at a time: the options `read.stream.*` ------------------------------------
#
# The most it takes ends a piece between two splits; the least makes it wait until enough has come, or long enough.


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """None: no limit."""

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    min_rows: int | None = None
    max_delay_ms: int | None = None

    @staticmethod
    def of(options: Options, table: str) -> StreamLimits:
        """What the options say."""
        least = (options[READ_STREAM_MINROWSPERTRIGGER], options[READ_STREAM_MAXTRIGGERDELAYMS])
        if (least[0] is None) != (least[1] is None):
            given, lacking = READ_STREAM_MINROWSPERTRIGGER.key, READ_STREAM_MAXTRIGGERDELAYMS.key
            if least[0] is None:
                given, lacking = lacking, given
            raise InvalidOption(
                f"table `{table}`: `{given}` says nothing without `{lacking}`",
                hint="set both: how many rows a stream waits for, and how long",
            )
        most_rows = options[READ_STREAM_MAXROWSPERTRIGGER]
        if least[0] is not None and most_rows is not None and least[0] > most_rows:
            raise InvalidOption(
                f"table `{table}`: `{READ_STREAM_MINROWSPERTRIGGER.key}` is {least[0]}, more than the {most_rows} of "
                f"`{READ_STREAM_MAXROWSPERTRIGGER.key}`",
                hint="raise the most, or lower the least",
            )
        return StreamLimits(
            options[READ_STREAM_MAXFILESPERTRIGGER], options[READ_STREAM_MAXBYTESPERTRIGGER], most_rows, *least
        )

    def count(self, splits: Sequence[Split]) -> int:
        """How many of the splits are taken together: all that fit, and always one."""
        fitting = len(splits)
        for limit, sizes in (
            (self.max_files, (len(split.files) for split in splits)),
            (self.max_bytes, (split.size_bytes for split in splits)),
            (self.max_rows, (row_count(split) for split in splits)),
        ):
            if limit is not None:
                fitting = min(fitting, sum(total <= limit for total in accumulate(sizes)))
        return max(fitting, min(1, len(splits)))


def row_count(split: Split) -> int:
    """Rows in the files of a split."""
    return sum(file.row_count for file in split.files)


__all__ = ["StreamLimits", "row_count"]
