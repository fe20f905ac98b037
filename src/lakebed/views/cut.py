"""Which snapshot of each table a refresh reads: one state of all of them, from which changes can be told.

Three rules. Only snapshots count whose changes are told: with `lookup` and `full-compaction` those of the last rows
come with the next compaction. A table that is read directly and through another materialized table is read as that one
saw it. And two materialized tables that read the same table have to have seen the same state of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakebed.changes.told import is_told, told_snapshot
from lakebed.errors import CommitConflict, NotFound
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.views.store import Cut, Definition, Place, cut_of

_MOST_STEPS = 50
"""How many snapshots are looked at to find one that fits."""


@dataclass(frozen=True, slots=True)
class ChosenCut:
    """Snapshots of tables (None: there was none yet), and the cut that they make."""

    snapshots: Mapping[str, Snapshot | None]
    cut: Cut


def chosen_cut(view: str, tables: Mapping[str, Table], before: Cut | None) -> ChosenCut:
    """The newest state of the tables that fits together."""
    snapshots = {name: _newest(table, before, name) for name, table in tables.items()}
    stacked = {name: table for name, table in tables.items() if Definition.of(table) is not None}
    demanded = _agreed(view, stacked, snapshots)
    for name in tables.keys() & demanded.keys():
        snapshots[name] = _at(view, tables[name], demanded[name])
    places = {name: _place(tables[name], found) for name, found in snapshots.items()}
    return ChosenCut(snapshots, Cut(places, demanded))


def _place(table: Table, snapshot: Snapshot | None) -> Place:
    is_complete = is_told(opened_of(table).current(), snapshot)
    return replace(Place.of(snapshot), is_told=is_complete)


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
