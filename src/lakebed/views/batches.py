"""Which batches of syncs are in the snapshots of tables: what a cut through tables of one sync is made of.

A sync says in a note which batches all of its tables have (`lakebed.metadata.sync_note`); a snapshot of a table says
which batch of each sync is the last in it. Whoever commits in between hands that on, so compactions and other writers
do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from lakebed.commit.replay import last_identifiers
from lakebed.errors import NotFound
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.sync_note import SyncedTable, SyncNote, SyncNoteStore
from lakebed.records import dataclass
from lakebed.table.opened import opened_of
from lakebed.table.table import Table


class NothingYet(Exception):
    """Why there is no state of some tables yet that fits together."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Sync:
    """A sync, and those of its tables that somebody reads, by their full names."""

    note: SyncNote
    tables: dict[str, SyncedTable] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """Who commits its batches."""
        return self.note.user

    def newest(self, most: int | None = None) -> int:
        """The newest batch, up to one, at which all its tables are as of one position."""
        found = self.note.cut_at(most)
        if found is not None:
            return found
        named = ", ".join(f"`{name}`" for name in sorted(self.tables))
        if self.note.stretches:
            raise NothingYet(f"{named}: no batch before {most} of the sync has all tables as of one position")
        raise NothingYet(
            f"{named}: the sync from {self.note.source} is still copying tables, each as of another moment"
        )


class Notes:
    """Notes of syncs by the databases of tables, each read once: before any snapshot is looked at.

    INVARIANT: a note is never ahead of the tables. Read after a snapshot, it could name a batch that came to another
    table since, of which that snapshot has nothing.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[SyncNote]] = {}

    def of(self, table: Table) -> list[tuple[SyncNote, SyncedTable]]:
        """The syncs that write a table. Of two that hold the same table of a source, the later one counts."""
        context = opened_of(table).context
        if context.paths.branch != MAIN_BRANCH:
            return []
        store = SyncNoteStore.beside(context.fileio, context.paths)
        if store.directory not in self._known:
            self._known[store.directory] = store.all()
        name = context.paths.root.rpartition("/")[2]
        found: list[tuple[SyncNote, SyncedTable]] = []
        held: set[str] = set()
        for note in self._known[store.directory]:
            mine = note.tables.get(name)
            if mine is None or (found and (not mine.sources or held & set(mine.sources))):
                continue
            found.append((note, mine))
            held |= set(mine.sources)
        return found

    def read_again(self) -> None:
        """Forgets what was read: something was seen that came later. REQUIRES: nothing was chosen by it yet."""
        self._known = {}

    def of_user(self, user: str) -> SyncNote | None:
        """The note of a sync, if it was among those that were read."""
        return next((note for notes in self._known.values() for note in notes if note.user == user), None)


class TableBatches:
    """The batches in the snapshots of one table, as of the first time that anybody asked."""

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self.context = opened_of(table).current()
        self._store = self.context.stores.snapshots
        self.latest = self._store.latest()
        self._earliest = (self._store.earliest_id() or 1) if self.latest is not None else 1

    def last(self, snapshot: Snapshot | None, user: str) -> int:
        """The last batch of a sync in a snapshot; 0 if there is none."""
        return last_identifiers(self._store, snapshot).get(user, 0)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot, if it is there."""
        return self._store.find(snapshot_id)

    def oldest(self) -> Snapshot | None:
        """The oldest snapshot."""
        return self._store.earliest()

    def newest_where(self, fits: Callable[[Snapshot], bool]) -> Snapshot | None:
        """The newest snapshot of those that fit, which are all up to one; None if that was before the first."""
        if self.latest is None:
            return None
        low, high, at, step = self._earliest - 1, self.latest.id + 1, self.latest.id, 1
        while at > low:
            if fits(self._get(at)):
                low = at
                break
            high, at, step = at, max(low, at - step), step * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(self._get(middle)) else (low, middle)
        if 0 < low < self._earliest:
            raise NotFound(
                f"the snapshot of `{self.name}` that belongs to the others has expired: the oldest is {self._earliest}",
                hint="keep snapshots longer (`snapshot.time-retained`), and read again when the sync is further",
            )
        return self._get(low) if low else None

    def newest_within(self, bounds: Mapping[str, int]) -> Snapshot | None:
        """The newest snapshot that has no batch above those given, by sync."""
        return self.newest_where(lambda each: all(self.last(each, user) <= most for user, most in bounds.items()))

    def until(self, snapshot: Snapshot | None, user: str) -> int | None:
        """The last batch of a sync as of which a snapshot shows the table; None if none after it has rows for it."""
        mine = self.last(snapshot, user)
        if self.latest is None or self.last(self.latest, user) <= mine:
            return None
        low, high = 0 if snapshot is None else snapshot.id, self.latest.id
        low = max(low, self._earliest - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.last(self._get(middle), user) > mine else (middle, high)
        return self.last(self._get(high), user) - 1

    def _get(self, snapshot_id: int) -> Snapshot:
        return self._store.get(snapshot_id)


__all__ = ["Notes", "NothingYet", "Sync", "TableBatches"]
