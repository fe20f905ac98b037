"""Which snapshot of each table is read: one state of all of them, from which changes can be told.

Four rules. Only snapshots count whose changes are told: with `lookup` and `full-compaction` those of the last rows come
with the next compaction. A table that is read directly and through another materialized table is read as that one saw
it. Two materialized tables that read the same table have to have seen the same state of it. And tables of one sync,
also those below, are read at one batch of it that all of them have: so no transaction of the source is seen in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from lakebed.changes.told import is_told, shown_snapshot, told_snapshot
from lakebed.errors import CommitConflict, InvalidData, NotFound
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.sync_note import SyncedTable, SyncNote
from lakebed.options import LAKEBED_CDC_COLUMNS
from lakebed.records import dataclass
from lakebed.sql.session import SqlLake
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.views.batches import Notes, NothingYet, Sync, TableBatches
from lakebed.views.changes import shown_by
from lakebed.views.store import Cut, Definition, Place, SyncBatch, cut_of

_MOST_STEPS = 50
"""How many snapshots are looked at to find one that fits."""


@dataclass(frozen=True, slots=True)
class ChosenCut:
    """Snapshots of tables (None: there was none yet), the cut that they make, and the syncs that tables are of."""

    snapshots: Mapping[str, Snapshot | None]
    cut: Cut
    syncs: Mapping[str, Sync] = field(default_factory=dict)


def chosen_cut(
    lake: SqlLake,
    view: str,
    tables: Mapping[str, Table],
    before: Cut | None,
    most: Mapping[str, int] | None = None,
) -> ChosenCut:
    """The newest state of the tables that fits together; of syncs in `most` no batch above those.

    Raises NothingYet if there is none so far.
    """
    return _Choice(lake, view, tables, before, most or {}).made()


class _Again(Exception):
    """Something that was chosen has to be chosen otherwise."""


@dataclass
class _Choice:
    """One search. Batches of syncs, and materialized tables, only go back, so it comes to an end."""

    lake: SqlLake
    view: str
    tables: Mapping[str, Table]
    before: Cut | None
    most: Mapping[str, int]
    stacked: dict[str, Table] = field(init=False)
    syncs: dict[str, Sync] = field(default_factory=dict)
    """By user, with those of their tables that are read directly."""
    untold: set[str] = field(default_factory=set)
    """Tables of syncs that are read at snapshots that are not told: no others are there."""

    def __post_init__(self) -> None:
        self.stacked = {name: table for name, table in self.tables.items() if Definition.of(table) is not None}
        self.notes = Notes()
        self.batches: dict[str, TableBatches] = {}
        for name, table in self.tables.items():
            if name not in self.stacked:
                for note, mine in self.notes.of(table) or self._begun_meanwhile(table):
                    self.syncs.setdefault(note.user, Sync(note)).tables[name] = mine
        self._refuse_unnoted()
        self._refuse_lost()

    def _begun_meanwhile(self, table: Table) -> list[tuple[SyncNote, SyncedTable]]:
        """The syncs of a table that is made for one and in no note: one that has begun since, or none that has.

        A sync notes a table before it commits there: one with rows that is still in no note is written by none.
        """
        if LAKEBED_CDC_COLUMNS.key not in table.schema.options or opened_of(table).context.paths.branch != MAIN_BRANCH:
            return []
        if table.latest_snapshot() is None:
            raise NothingYet(f"`{table.name}` is made for a sync, which has not begun to fill it")
        self.notes.read_again()
        return self.notes.of(table)

    def _refuse_unnoted(self) -> None:
        """Raises if a table was of a sync, still has its batches, and nothing says any more how far that is."""
        seen = self.before.syncs if self.before is not None else {}
        for user, batch in seen.items():
            for name in set(batch.tables) & self.tables.keys() - self._synced() - self.stacked.keys():
                known = self._batches_of(name)
                if known.last(known.latest, user):
                    raise NotFound(
                        f"the note of the sync that writes `{name}`, of how far it is with all tables, is gone",
                        hint="start the sync again: it writes the note anew with its next batch",
                    )

    def _refuse_lost(self) -> None:
        """Raises if a table lacks changes that others of its sync have. Read alone, it is like one of no sync."""
        for sync in list(self.syncs.values()):
            for name, mine in list(sync.tables.items()):
                why = mine.lost or self._lost(sync, name)
                if not why:
                    continue
                if len(sync.tables) > 1:
                    others = ", ".join(f"`{each}`" for each in sorted(sync.tables) if each != name)
                    raise InvalidData(
                        f"`{name}` lacks changes of its sync that {others} may have: {why}",
                        hint="drop the tables of the sync and sync them anew, with a new checkpoint; or read "
                        f"`{name}` alone",
                    )
                del self.syncs[sync.user]

    def _lost(self, sync: Sync, name: str) -> str:
        known = self._batches_of(name)
        noted = known.newest_within({sync.user: sync.note.batch})
        if known.last(noted, sync.user) >= sync.tables[name].last:
            return ""
        return f"it was rolled back or made anew when it had batch {sync.tables[name].last}"

    # --- the search ----------------------------------------------------------------------------------------------

    def made(self) -> ChosenCut:
        """The cut."""
        while True:
            chosen = self._told()
            behind = {name for name in self._synced() if self._is_behind(name, chosen)}
            if not behind:
                return chosen
            if behind <= self.untold:
                name = min(behind)
                raise NothingYet(f"`{name}`: its sync has noted no batch behind what was seen of the table")
            self.untold |= behind

    def _is_behind(self, name: str, chosen: ChosenCut) -> bool:
        """Whether a table would go back behind what was seen of it before."""
        seen = self.before.tables.get(name) if self.before is not None else None
        return seen is not None and Place.of(chosen.snapshots[name]).id < seen.id

    def _told(self) -> ChosenCut:
        snapshots = {
            name: _newest(table, self.before, name) for name, table in self.tables.items() if name not in self._synced()
        }
        for name in self.stacked:
            if snapshots[name] is None:
                raise NothingYet(f"`{name}` has not been filled yet")
        bounds = {user: sync.newest(self.most.get(user)) for user, sync in self.syncs.items()}
        for _ in range(_MOST_STEPS):
            demanded = _agreed(self.view, self.stacked, snapshots)
            try:
                self._fit_stacked(snapshots, bounds)
                self._fit_synced(snapshots, bounds, demanded)
            except _Again:
                continue
            for name in self.tables.keys() & demanded.keys():
                snapshots[name] = _at(self.view, self.tables[name], demanded[name])
            places = {name: _place(self.tables[name], snapshots[name]) for name in self.tables}
            cut = Cut(places, demanded, self._places_of_syncs(snapshots, bounds))
            return ChosenCut(snapshots, cut, self._all_syncs(cut))
        raise CommitConflict(
            f"materialized table `{self.view}`: no state was found in which what it reads fits together",
            hint=f"refresh {', '.join(sorted(self.stacked)) or 'it'} again",
        )

    def _fit_synced(
        self, snapshots: dict[str, Snapshot | None], bounds: dict[str, int], demanded: Mapping[str, Place]
    ) -> None:
        """Chooses the snapshots of tables of syncs. Where one shows less than its batch, an earlier batch is taken."""
        is_changed = False
        for name in sorted(self._synced() - demanded.keys()):
            known = self._batches_of(name)
            mine = {user: bounds[user] for user, sync in self.syncs.items() if name in sync.tables}
            found = known.newest_within(mine)
            shown = shown_snapshot(known.context, found, told=name not in self.untold)
            if shown is None and found is not None:
                shown = shown_snapshot(known.context, found, told=False)
            if shown is None and found is not None:
                raise NothingYet(f"rows of `{name}` wait for a compaction that shows them")
            snapshots[name] = shown
            for user in mine:
                last = known.until(shown, user)
                if last is None or last >= bounds[user]:
                    continue
                if self.syncs[user].note.cut_at(last) is None and name not in self.untold:
                    self.untold.add(name)  # nothing so old is a cut: better one that is not told
                else:
                    bounds[user] = self.syncs[user].newest(last)
                is_changed = True
        if is_changed:
            raise _Again

    def _fit_stacked(self, snapshots: dict[str, Snapshot | None], bounds: dict[str, int]) -> None:
        """Chooses batches that what materialized tables have seen belongs to; else goes back with the one ahead."""
        windows: dict[str, dict[str, tuple[int, int | None]]] = {}
        for name in self.stacked:
            for user, window in self._windows(cut_of(snapshots[name]) or Cut()).items():
                windows.setdefault(user, {})[name] = window
        for user, mine in windows.items():
            first = max(low for low, _ in mine.values())
            ends = [high for _, high in mine.values() if high is not None]
            most = min([*ends, *([bounds[user]] if user in bounds else [])], default=None)
            found = self._batch_up_to(most, user, snapshots)
            if found is not None and found >= first:
                bounds[user] = found
                continue
            ahead = max(mine, key=lambda name: mine[name][0])
            earlier = _before(self.stacked[ahead], snapshots[ahead])
            if earlier is None or cut_of(earlier) is None:
                raise CommitConflict(
                    f"materialized table `{self.view}`: {', '.join(f'`{name}`' for name in sorted(mine))} have seen "
                    "different batches of a sync, or one that another table does not show yet",
                    hint=f"refresh all of them together: `lakebed refresh {' '.join([*sorted(mine), self.view])}`, "
                    "or in Python: lake.refresh_all(...)",
                )
            snapshots[ahead] = earlier
            raise _Again

    def _windows(self, cut: Cut) -> dict[str, tuple[int, int | None]]:
        """As of which batches of each sync the tables of a cut are, the first and the last (None: all since)."""
        found: dict[str, tuple[int, int | None]] = {}
        for name, place in cut.all.items():
            for user in {*(u for u, s in cut.syncs.items() if name in s.tables), *self._syncs_of(name)}:
                low, high = self._window(name, place, user, cut.syncs.get(user))
                first, last = found.get(user, (0, None))
                ends = [end for end in (last, high) if end is not None]
                found[user] = max(first, low), min(ends, default=None)
        return found

    def _window(self, name: str, place: Place, user: str, seen: SyncBatch | None) -> tuple[int, int | None]:
        """As of which batches a table is at a place; the one that was seen there if more can not be told any more."""
        unknown = (1, 0) if seen is None else (seen.batch, seen.batch)
        try:
            known = self._batches_of(name)
        except NotFound:
            return unknown
        found = known.find(place.id) if place.id else None
        if place.id and (found is None or Place.of(found) != place):
            return unknown
        return known.last(found, user), known.until(found, user)

    # --- what is known -------------------------------------------------------------------------------------------

    def _synced(self) -> set[str]:
        return {name for sync in self.syncs.values() for name in sync.tables}

    def _syncs_of(self, name: str) -> list[str]:
        return [user for user, sync in self.syncs.items() if name in sync.tables]

    def _batches_of(self, name: str) -> TableBatches:
        if name not in self.batches:
            table = self.tables[name] if name in self.tables else self.lake.table(name)
            self.notes.of(table)  # before its snapshots
            self.batches[name] = TableBatches(table)
        return self.batches[name]

    def _batch_up_to(self, most: int | None, user: str, snapshots: Mapping[str, Snapshot | None]) -> int | None:
        """The newest batch that is a cut; of those that were seen as one if the sync's note is gone."""
        note = self.notes.of_user(user)
        if note is not None:
            return note.cut_at(most)
        cuts = [cut_of(snapshots[name]) or Cut() for name in self.stacked]
        seen = [cut.syncs[user].batch for cut in cuts if user in cut.syncs]
        return max((batch for batch in seen if most is None or batch <= most), default=None)

    def _all_syncs(self, cut: Cut) -> dict[str, Sync]:
        """The syncs of tables that are read directly, and of those below."""
        notes = {user: self.notes.of_user(user) for user in cut.syncs}
        below = {user: Sync(note) for user, note in notes.items() if note is not None}
        return {**below, **self.syncs}

    def _places_of_syncs(
        self, snapshots: Mapping[str, Snapshot | None], bounds: Mapping[str, int]
    ) -> dict[str, SyncBatch]:
        names = {user: set(sync.tables) for user, sync in self.syncs.items()}
        for name in self.stacked:
            for user, seen in (cut_of(snapshots[name]) or Cut()).syncs.items():
                names.setdefault(user, set()).update(seen.tables)
        return {user: SyncBatch(bounds[user], tuple(sorted(found))) for user, found in names.items() if user in bounds}


def _place(table: Table, snapshot: Snapshot | None) -> Place:
    context = opened_of(table).current()
    return replace(Place.of(snapshot), is_told=is_told(context, snapshot), shown_by=shown_by(context))


def _newest(table: Table, before: Cut | None, name: str) -> Snapshot | None:
    """The newest snapshot whose changes are told; the newest of all if none since the last cut is."""
    context = opened_of(table).current()
    latest = context.stores.snapshots.latest()
    since = before.tables[name].id if before is not None and name in before.tables else 0
    found = told_snapshot(context, latest)
    return latest if found is None or found.id < since else found


def _agreed(view: str, stacked: Mapping[str, Table], snapshots: dict[str, Snapshot | None]) -> dict[str, Place]:
    """What the materialized tables below have seen of their own tables; goes back to where they agree."""
    at_odds = ""
    for _ in range(_MOST_STEPS):
        cuts = {name: cut_of(snapshots[name]) or Cut() for name in stacked}
        seen: dict[str, dict[str, Place]] = {}
        for name, cut in cuts.items():
            for table, place in cut.all.items():
                seen.setdefault(table, {})[name] = place
        for name in stacked:
            if name in seen:  # a materialized table that is also read by another one
                seen[name][name] = Place.of(snapshots[name])
        at_odds = next((table for table, places in seen.items() if len(set(places.values())) > 1), "")
        if not at_odds:
            return {table: next(iter(places.values())) for table, places in seen.items()}
        ahead = max(seen[at_odds], key=lambda name: seen[at_odds][name].id)
        earlier = _before(stacked[ahead], snapshots[ahead])
        if earlier is None:
            break
        snapshots[ahead] = earlier
    raise CommitConflict(
        f"materialized table `{view}`: the materialized tables that it reads have seen different states of `{at_odds}`",
        hint=f"refresh {', '.join(sorted(seen[at_odds]))} first, then `{view}`",
    )


def _before(table: Table, snapshot: Snapshot | None) -> Snapshot | None:
    if snapshot is None or snapshot.id <= 1:
        return None
    return opened_of(table).current().stores.snapshots.find(snapshot.id - 1)


def _at(view: str, table: Table, place: Place) -> Snapshot | None:
    """The snapshot at a place."""
    if place.id == 0:
        return None
    found = opened_of(table).current().stores.snapshots.find(place.id)
    if found is None or Place.of(found) != place:
        raise NotFound(
            f"materialized table `{view}`: snapshot {place.id} of `{table.name}`, which a materialized table that it "
            "reads has seen, is gone",
            hint="refresh the materialized tables that it reads, then this one; and keep snapshots longer",
        )
    return found
