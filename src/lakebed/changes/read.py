"""A read of changes, or of a view that shows them: from the call's arguments to the batches it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakebed.changes.diff import StateDiff
from lakebed.changes.events import EventSource, JoinedEvents, StateEvents, StoredEvents
from lakebed.changes.range import DIFF, ChangeRange, entries_of
from lakebed.changes.views import ChangeView, view_of
from lakebed.definition.arguments import filter_argument
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History
from lakebed.definition.shown_defaults import stored_part
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import SCAN_PARTITIONS
from lakebed.read.plan import FileSieve, ScanPlan
from lakebed.read.scan_options import in_scanned_partitions
from lakebed.records import dataclass
from lakebed.types import predicate as predicates
from lakebed.types.logical import DataField
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate


@dataclass(frozen=True)
class ChangeRead:
    """What is read, and how it is shown."""

    view: ChangeView
    columns: tuple[str, ...]
    predicate: Predicate | None
    source: EventSource
    snapshot: Snapshot | None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        schema = self.view.schema
        return pa.schema([schema.field(name) for name in self.columns])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Matching events in order; no empty batches."""
        schema = self.schema
        for batch in self.view.shown(self.source.read()):
            rows = batch if self.predicate is None else batch.filter(evaluate(self.predicate, batch))
            if rows.num_rows and not self.columns:
                yield rows.select([])
            elif rows.num_rows:
                # What a merge has computed may have lost the word that a column holds no nulls.
                yield pa.RecordBatch.from_arrays([rows.column(name) for name in self.columns], schema=schema)

    def to_table(self) -> pa.Table:
        """All of them."""
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def pieces(self) -> list[ChangeRead]:
        """The same events in pieces, in order, each of which can be read anywhere."""
        return [replace(self, source=source) for source in self.source.pieces(self.view.tells_pairs)]

    @staticmethod
    def joined(pieces: Sequence[ChangeRead]) -> ChangeRead:
        """Pieces of one read as one. REQUIRES: at least one."""
        return replace(pieces[0], source=JoinedEvents([piece.source for piece in pieces]))

    def plan(self) -> ScanPlan:
        """Which files are opened."""
        return ScanPlan(self.snapshot, self.source.splits)


@dataclass(frozen=True)
class ChangeReading:
    """A call's arguments, checked against a view of one table."""

    view: ChangeView
    columns: tuple[str, ...]
    predicate: Predicate | None

    @staticmethod
    def asked(view: ChangeView, columns: Sequence[str] | None, condition: Any) -> ChangeReading:
        """Checks what the caller asks for."""
        schema = view.schema
        names = tuple(schema.names) if columns is None else tuple(columns)
        if len(set(names)) != len(names):
            raise InvalidArgument("columns names a column twice", hint="name each column once")
        for name in names:
            if name not in schema.names:
                raise NotFound(f"`{view.context.name}` has no column `{name}`", hint=did_you_mean(name, schema.names))
        return ChangeReading(view, names, filter_argument(condition, schema))

    @property
    def table_part(self) -> Predicate | None:
        """What the filter says of the rows of the table."""
        return self.view.table_part(self.predicate)

    def of_state(self, plan: ScanPlan) -> ChangeRead:
        """The rows of a state as they were written.

        REQUIRES: planned with no more than the table's part of the filter.
        """
        return self._read(StateEvents(self._context, plan.splits, self._fields, self.table_part), plan.snapshot)

    def of_range(self, asked: ChangeRange | None) -> ChangeRead:
        """The changes of a range; of none, nothing."""
        sieve = self._sieve
        if asked is None:
            return self._read(StoredEvents(self._context, (), self._fields), None)
        if asked.mode == DIFF:
            return self._read(
                StateDiff.between(self._context, asked.before, asked.after, sieve, self.view.tells_pairs), asked.after
            )
        entries = self._matching(entries_of(self._context, asked, sieve), sieve)
        last = History(self._context.stores).changes(asked.until)
        return self._read(StoredEvents(self._context, entries, self._fields), last)

    def of_difference(self, before: Snapshot | None, after: Snapshot | None) -> ChangeRead:
        """What makes one state the other, with the old rows of updates."""
        return self._read(StateDiff.between(self._context, before, after, self._sieve), after)

    @property
    def _context(self) -> TableContext:
        return self.view.context

    @property
    def _sieve(self) -> FileSieve:
        latest = self._context.stores.snapshots.latest() if self._context.options.has(SCAN_PARTITIONS) else None
        return FileSieve(self._context, in_scanned_partitions(self._context, latest, self._stored_part))

    @property
    def _stored_part(self) -> Predicate | None:
        return stored_part(self.table_part, self._context.schema, self._context.shown_defaults)

    @property
    def _fields(self) -> tuple[DataField, ...]:
        looked_at = predicates.columns(self.predicate) if self.predicate else frozenset()
        return self.view.fields_for(frozenset(self.columns) | looked_at)

    def _matching(self, entries: list[ManifestEntry], sieve: FileSieve) -> list[ManifestEntry]:
        """Files that may hold a match. No row of theirs hides one of another file, so each is judged alone."""
        if self._stored_part is None:
            return entries
        kept = sieve.may_hold_matches([entry.file for entry in entries])
        return [entry for entry, keep in zip(entries, kept.tolist(), strict=True) if keep]

    def _read(self, source: EventSource, snapshot: Snapshot | None) -> ChangeRead:
        return ChangeRead(self.view, self.columns, self.predicate, source, snapshot)


def change_reading(context: TableContext, columns: Sequence[str] | None, condition: Any) -> ChangeReading:
    """A reading in the form that the table's name asks for."""
    return ChangeReading.asked(view_of(context), columns, condition)


__all__ = ["ChangeRead", "ChangeReading", "change_reading"]
