"""Writes down how far a sync is: which tables it has, before their first commit, and each batch once all have it.

What is written and why stands in `lakebed.metadata.sync_note`; this is the one who writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lakebed.clock import SystemClock
from lakebed.commit.replay import last_identifiers
from lakebed.metadata.source_position import own_words
from lakebed.metadata.sync_note import SyncedTable, SyncNote, SyncNoteStore
from lakebed.table.opened import opened_of

if TYPE_CHECKING:
    from lakebed.table.table import Table

_BEING_COPIED = "it is being copied anew"

Settles = Callable[[str], str | None]
"""The source's own position at an offset, if all tables are as of it then."""


class SyncNotes:
    """The note of one sync, kept by the pipeline that makes its batches."""

    def __init__(self, source: str, settles: Settles | None = None, *, keeps_transactions: bool = True) -> None:
        self._source = source
        self._settles: Settles = settles or own_words
        self._keeps_transactions = keeps_transactions
        self._store: SyncNoteStore | None = None
        self._note: SyncNote | None = None

    def begin(
        self,
        user: str,
        tables: Mapping[str, Table],
        sources: Mapping[str, Iterable[str]],
        touched: Collection[str],
    ) -> None:
        """Told before the commits of a batch: the tables of the sync by name, what each holds, which get rows now.

        INVARIANT: a table is in the note before its first commit, or who reads it in between would take it for a table
        of no sync and show what the others do not have yet. One that has less than was noted was rolled back or made
        anew: no later batch brings that back, so it is noted for good before there is a later batch.
        """
        if not tables:
            return
        note = self._opened(user, tables)
        found: dict[str, SyncedTable] = {}
        for name, table in tables.items():
            known = note.tables.get(name, SyncedTable())
            known = replace(known, sources=tuple(sorted({*known.sources, *sources.get(name, ())})))
            if name in touched and not known.lost and _last(table, user) < known.last:
                known = replace(known, lost=f"it was rolled back or made anew when it had batch {known.last}")
            found[name] = known
        self._keep(note.with_tables(found))

    def leave_out(self, name: str, why: str) -> None:
        """A table is not followed any more, or not until it is copied anew."""
        if self._note is not None:
            known = self._note.tables.get(name, SyncedTable())
            lost = "" if known.lost == _BEING_COPIED else known.lost
            self._keep(self._note.with_tables({name: replace(known, lost=lost or f"it is not followed: {why}")}))

    def take_back(self, name: str) -> None:
        """A table that was left out is copied anew. It counts again once all tables are as of one position."""
        if self._note is not None:
            known = self._note.tables.get(name, SyncedTable())
            self._keep(self._note.with_tables({name: replace(known, lost=_BEING_COPIED)}))

    def end(self, batch: int, offset: str | None, touched: Mapping[str, Table]) -> None:
        """Told when all tables have a batch, which had rows for some of them."""
        note = self._note
        if note is None or batch <= note.batch:
            return  # no tables yet; or the batch was noted and came again
        lasts = {name: _last(table, note.user) for name, table in touched.items()}
        if any(last > batch for last in lasts.values()):
            return  # somebody has taken over and is further
        found = {name: replace(note.tables.get(name, SyncedTable()), last=last) for name, last in lasts.items()}
        position = None if offset is None else self._settles(offset)
        note = note.with_tables(found)
        copied = {name: replace(each, lost="") for name, each in note.tables.items() if each.lost == _BEING_COPIED}
        if position is not None and copied:
            # Older moments are given up: these tables have no rows of theirs.
            note = replace(note.with_tables(copied), stretches=())
        self._keep(note.after(batch, position))

    def _opened(self, user: str, tables: Mapping[str, Table]) -> SyncNote:
        """The note as this sync has left it, or a new one."""
        if self._note is not None and self._note.user == user:
            return self._note
        context = opened_of(next(iter(tables.values()))).context
        self._store = SyncNoteStore.beside(context.fileio, context.paths)
        self._note = self._store.read(user)
        if self._note is not None:
            return self._note
        return SyncNote(user, self._source, SystemClock().now_ms(), self._keeps_transactions)

    def _keep(self, note: SyncNote) -> None:
        if note != self._note:
            assert self._store is not None
            self._store.write(note)
            self._note = note


def _last(table: Table, user: str) -> int:
    """The last batch of a sync that is a commit of a table; 0 if there is none."""
    snapshots = opened_of(table).context.stores.snapshots
    return last_identifiers(snapshots, snapshots.latest()).get(user, 0)


__all__ = ["Settles", "SyncNotes"]
