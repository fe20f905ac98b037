"""What a pipeline is made of: nodes that bring a table up to date from others, one step at a time.

A step is safe to repeat and to interrupt: where it is stands in the snapshot that it commits, or in the checkpoint of
its source. So a node keeps nothing that a restart would lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from lakebed.connectors import RowInsert
from lakebed.lineage import Dataset, Job, Run, begun, table_dataset
from lakebed.table.opened import opened_of
from lakebed.units import parse_duration
from lakebed.views.batches import Notes
from lakebed.views.insert import StreamingInsert
from lakebed.views.result import Refreshed

if TYPE_CHECKING:
    from lakebed.cdc import SyncRun
    from lakebed.lake import Lake

SOURCE, INSERT, VIEW = "source", "insert", "view"


class Node(Protocol):
    """One part of a pipeline. Names of tables are full: `database.table`."""

    name: str
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def pause_ms(self) -> int:
        """At least so long after the last step the next one begins."""
        ...

    def has_news(self) -> bool:
        """Whether a step may have something to do; cheap to ask."""
        ...

    def step(self) -> Refreshed:
        """Does what there is to do."""
        ...

    def behind_ms(self, now_ms: int) -> int | None:
        """For how long there has been something that no step has seen; None if there is nothing, or nobody knows."""
        ...

    def is_over(self) -> bool:
        """Whether no step will ever have anything to do again."""
        ...

    def says(self) -> str | None:
        """What goes on between two steps, for those who watch."""
        ...

    def close(self) -> None:
        """Lets go of what a step has begun and that goes on by itself."""
        ...


class _Quiet:
    """What most nodes have nothing to say to."""

    @property
    def pause_ms(self) -> int:
        """None: it follows as fast as it can."""
        return 0

    def behind_ms(self, now_ms: int) -> int | None:
        """Nobody knows."""
        return None

    def is_over(self) -> bool:
        """Tables may always change."""
        return False

    def says(self) -> str | None:
        """Nothing."""
        return None

    def close(self) -> None:
        """Nothing goes on by itself."""


# --- from tables of the lake -----------------------------------------------------------------------------------------


_State = tuple[int, str, tuple[tuple[str, int | None], ...]]
"""The number of a snapshot, what else tells it from others, and the last batch that all tables of its syncs have."""


class Seen:
    """Which states of some tables a node has seen, to know at little cost whether there are others."""

    def __init__(self, lake: Lake, names: Sequence[str]) -> None:
        self._lake = lake
        self._names = names
        self._states: dict[str, _State] = {}

    def now(self) -> dict[str, _State]:
        """The state of each table that is there.

        A sync notes a batch behind the commits of its tables, and only then may they be read: without the batch, the
        last rows would not be news any more when their turn comes.
        """
        notes, found = Notes(), {}
        for name in self._names:
            if not self._lake.has_table(name):
                continue
            table = self._lake.table(name)
            batches = tuple((note.user, note.cut_at()) for note, _ in notes.of(table))
            snapshot = table.latest_snapshot()
            place = (0, "") if snapshot is None else (snapshot.id, snapshot.uuid or str(snapshot.time_millis))
            found[name] = (*place, batches)
        return found

    def note(self, states: dict[str, _State]) -> None:
        """These have been seen."""
        self._states = states

    def has_news(self) -> bool:
        """Whether a table is at another state than the one that was seen."""
        return self.now() != self._states

    def behind_ms(self, now_ms: int) -> int | None:
        """Since when the first snapshot that was not seen is there."""
        waiting = []
        for name, (seen, _, _) in self._states.items():
            if not self._lake.has_table(name):
                continue
            snapshots = opened_of(self._lake.table(name)).current().stores.snapshots
            if (snapshots.latest_id() or 0) > seen and (first := snapshots.find(seen + 1)) is not None:
                waiting.append(max(0, now_ms - first.time_millis))
        return max(waiting, default=None)


class _TableNode(_Quiet):
    """A node that reads tables of the lake."""

    kind = ""

    def __init__(self, lake: Lake, name: str, reads: Sequence[str], writes: Sequence[str]) -> None:
        self._lake = lake
        self.name = name
        self.reads = tuple(reads)
        self.writes = tuple(writes)
        self._seen = Seen(lake, self.reads)

    def has_news(self) -> bool:
        """Whether a table that is read has another snapshot than at the last step that went well."""
        return self._seen.has_news()

    def behind_ms(self, now_ms: int) -> int | None:
        """The age of the first snapshot that no step has seen."""
        return self._seen.behind_ms(now_ms)

    def step(self) -> Refreshed:
        """A step; what comes to the tables meanwhile is for the next one."""
        states = self._seen.now()
        done = self._step()
        self._seen.note(states)
        return done

    def _step(self) -> Refreshed:
        raise NotImplementedError


class ViewNode(_TableNode):
    """Keeps a materialized table up to date; its first step makes it, if it is not there."""

    kind = VIEW

    def __init__(
        self, lake: Lake, name: str, reads: Sequence[str], create: Callable[[], Refreshed | None] | None = None
    ) -> None:
        super().__init__(lake, name, reads, (name,))
        self._create = create

    @property
    def pause_ms(self) -> int:
        """Its freshness, which may be altered while it runs."""
        if not self._lake.has_table(self.name):
            return 0
        freshness = self._lake.materialized(self.name).freshness
        return 0 if freshness is None else parse_duration(freshness)

    def has_news(self) -> bool:
        """Never while it is suspended."""
        if not self._lake.has_table(self.name):
            return True
        return not self._lake.materialized(self.name).is_suspended and super().has_news()

    def _step(self) -> Refreshed:
        if self._create is not None and not self._lake.has_table(self.name):
            return self._create() or Refreshed.nothing(self.name, "it is there already")
        return self._lake.refresh(self.name)


class InsertNode(_TableNode):
    """Sends changes of a query's result into a table, or a sink. Made at its first step, when all tables are there."""

    kind = INSERT

    def __init__(
        self, lake: Lake, name: str, reads: Sequence[str], target: str, make: Callable[[], StreamingInsert]
    ) -> None:
        super().__init__(lake, name, reads, (target,))
        self._make = make
        self._insert: StreamingInsert | None = None

    def _step(self) -> Refreshed:
        if self._insert is None:
            insert = self._make()
            insert.check()
            self._insert = insert
        return self._insert.step()

    def close(self) -> None:
        """Lets go of the target, if that is of another system."""
        if self._insert is not None:
            self._insert.close()


# --- from other systems ----------------------------------------------------------------------------------------------


class RowsNode(_Quiet):
    """Reads rows of another system by position, straight into a table."""

    def __init__(self, insert: RowInsert, kind: str) -> None:
        self._insert = insert
        self.name = insert.name
        self.kind = kind
        self.reads: tuple[str, ...] = ()
        self.writes: tuple[str, ...] = (insert.target,)

    def has_news(self) -> bool:
        """Only a read tells."""
        return not self._insert.has_ended

    def is_over(self) -> bool:
        """Once the source has given its last row."""
        return self._insert.has_ended

    def step(self) -> Refreshed:
        """What has come since the last one."""
        return self._insert.step()

    def close(self) -> None:
        """Lets go of the target, if that is of another system."""
        self._insert.close()


class SyncNode(_Quiet):
    """Lands tables of a database or a log of changes: a query of Spark that goes on by itself, and is started again."""

    kind = SOURCE

    def __init__(self, name: str, writes: Sequence[str], start: Callable[[], SyncRun], *, once: bool) -> None:
        self.name = name
        self.reads: tuple[str, ...] = ()
        self.writes = tuple(writes)
        self._start = start
        self._once = once
        self._run: SyncRun | None = None
        self._is_over = False

    def has_news(self) -> bool:
        """Whether it does not run."""
        return self._run is None or not self._run.is_active

    def is_over(self) -> bool:
        """After it has caught up, if that is all it was to do."""
        return self._is_over

    def step(self) -> Refreshed:
        """Starts it; says why it ended, if it did, and starts it at the next step."""
        if self._run is not None:
            run, self._run = self._run, None
            run.wait(0)  # raises what went wrong
        self._run = self._start()
        if not self._once:
            return Refreshed.nothing(self.name, "it has started")
        try:
            self._run.wait()
        finally:
            rows, self._run = self._run.progress.rows, None
        self._is_over = True
        return Refreshed(self.name, "incremental" if rows else "none", "changes of the source", inserted=rows)

    def behind_ms(self, now_ms: int) -> int | None:
        """How old the last change was when it came into the lake."""
        lag = None if self._run is None else self._run.progress.lag_seconds
        return None if lag is None else int(lag * 1000)

    def says(self) -> str | None:
        """How far it is."""
        if self._run is None:
            return None
        told = self._run.progress
        return f"{told.phase}, {told.rows:,} changes, {told.rows_per_second:,.0f}/s"

    def close(self) -> None:
        """Ends it behind its batch."""
        if self._run is not None:
            self._run.stop()
            self._run = None


def traced(lake: Lake, node: Node) -> Run | None:
    """Begins to tell lineage of a node that runs as long as its pipeline; refreshes and syncs tell of themselves."""
    if not isinstance(node, InsertNode | RowsNode):
        return None

    def tables(names: Sequence[str]) -> list[Dataset]:
        return [table_dataset(lake.table(name)) for name in names if lake.has_table(name)]

    return begun(
        lambda: Job(
            f"insert.{node.writes[0]}.{node.name}",
            "INSERT",
            lambda: tables(node.reads),
            lambda: tables(node.writes),
            is_stream=True,
        )
    )
