"""Where a streaming INSERT sends its rows: the seam between what is computed and who keeps it, and how far that is.

INVARIANT: rows and how far they lead count together or not at all, whoever the target is, and of two runners that began
with the same state the rows of one count. What keeps nothing (a screen) begins anew with each process.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.views import refuse_view
from lakebed.errors import Unsupported
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import COMMIT_FORCE_CREATE_SNAPSHOT
from lakebed.sql.session import SqlLake
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.table.writer import TableWriter
from lakebed.types.logical import DataField
from lakebed.views.apply import KIND
from lakebed.views.inserts.sent import as_rows_of
from lakebed.views.inserts.sink import Sink, TableSink
from lakebed.views.inserts.state import InsertState, next_step, user_of
from lakebed.views.sources import pinned_at
from lakebed.write.placement.postponed import for_stream


class Standing(Protocol):
    """A target as it is when a step begins."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that it takes."""

    @property
    def sink(self) -> Sink:
        """Which kinds of rows, of which queries."""

    @property
    def state(self) -> InsertState | None:
        """How far the INSERT is; None if it has sent nothing."""

    @property
    def number(self) -> int:
        """Of the step that begins here."""

    def stored(self) -> Table | None:
        """The rows that it holds, where they can be read."""

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Takes rows, and the state that they lead to; says whether they count, and in which snapshot."""


class InsertTarget(Protocol):
    """Who takes the rows of a streaming INSERT."""

    @property
    def anew(self) -> str:
        """What has to be done for all rows to be sent again."""

    @property
    def says(self) -> str:
        """How rows get there, where that is not plain."""

    def look(self, reads: Collection[str], *, begins: bool) -> Standing:
        """The target as it is now, for a query that reads these tables. Unless a step `begins`, nobody who writes is
        disturbed, and what only a connection would tell is not asked for."""

    def close(self) -> None:
        """Lets go of it."""


class TableTarget:
    """A table of the lake. How far the INSERT is lies in the properties of its snapshots."""

    def __init__(self, lake: SqlLake, table: str, insert: str) -> None:
        self._lake = lake
        self._table = table
        self._insert = insert

    @property
    def anew(self) -> str:
        """What was sent has to go first."""
        return (
            f"empty `{self._table}` of its rows and run it under another name, which in SQL is a query that is written "
            "otherwise: it sends all rows again then"
        )

    @property
    def says(self) -> str:
        """Nothing more."""
        return ""

    def look(self, reads: Collection[str], *, begins: bool) -> Standing:
        """The newest snapshot."""
        table = self._lake.table(self._table)
        refuse_view(opened_of(table).current())
        if table.name in reads:
            raise Unsupported(
                f"INSERT INTO {self._table} reads the table that it writes, and would never end",
                hint="write to another table",
            )
        return _TableStanding(table, self._insert)

    def close(self) -> None:
        """Nothing is held."""


class _TableStanding:
    def __init__(self, table: Table, insert: str) -> None:
        context = opened_of(table).current()
        self._table = table
        self._insert = insert
        self._base: Snapshot | None = context.stores.snapshots.latest()
        self.fields = table.schema.fields
        self.state = InsertState.of(context, self._base, insert)
        self.number = next_step(context, self._base, insert)

    @property
    def sink(self) -> Sink:
        return TableSink(opened_of(self._table).current())

    def stored(self) -> Table | None:
        return None if self._base is None else pinned_at(self._table, self._base)

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        opened = opened_of(self._table).with_options({COMMIT_FORCE_CREATE_SNAPSHOT.key: "true"})
        has_key = bool(self._table.primary_key)
        # INVARIANT: the number says which state the rows were computed from. Of two runners that began with the same
        # state one is dropped as a replay, or its rows would be sent twice.
        writer = TableWriter(
            for_stream(opened.folded()),
            row_kind=KIND if has_key else None,
            identity=CommitIdentity(user_of(self._insert), state.step),
            properties=state.to_properties(self._insert),
        )
        with writer:
            if rows.num_rows:
                writer.write(as_rows_of(rows, self.fields, has_key=has_key))
            snapshot = writer.commit()
        return snapshot is not None, None if snapshot is None else snapshot.id


__all__ = ["InsertTarget", "Standing", "TableTarget"]
