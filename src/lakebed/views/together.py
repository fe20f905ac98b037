"""Several materialized tables refreshed in one round: those below first, all from the same batch of a sync.

Each by itself would see whatever batch is the newest when its turn comes, and what reads two of them would find no
state in which they fit together as long as the sync goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebed.sql.session import SqlLake
from lakebed.table.table import Table
from lakebed.views.batches import Notes
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.refresh import refresh_view
from lakebed.views.result import Refreshed
from lakebed.views.sources import tables_of
from lakebed.views.store import Definition, definition_of


def refresh_together(lake: SqlLake, names: Sequence[str] = (), *, full: bool = False) -> list[Refreshed]:
    """Refreshes the materialized tables of these names; all of the current database that are active without any."""
    chosen = list(names) or [each.name for each in lake.materialized_tables() if not each.is_suspended]
    views = {table.name: table for table in map(lake.table, chosen)}
    below = {name: _below(lake, table) for name, table in views.items()}
    most = _newest_batches(table for tables in below.values() for table in tables.values())
    return [refresh_view(lake, name, full=full, most=most) for name in _in_order(below)]


def _below(lake: SqlLake, view: Table) -> dict[str, Table]:
    definition = definition_of(view)
    return tables_of(LakeIn(lake, definition.database), read_sql(definition.query))


def _newest_batches(tables: Iterable[Table]) -> dict[str, int]:
    """The newest batch of each sync at which all its tables are as of one position."""
    notes = Notes()
    found: dict[str, int] = {}
    for table in tables:
        if Definition.of(table) is None:
            for note, _ in notes.of(table):
                batch = note.cut_at()
                if batch is not None:
                    found[note.user] = batch
    return found


def _in_order(below: dict[str, dict[str, Table]]) -> list[str]:
    """Tables that others read come before those."""
    ordered: list[str] = []

    def place(name: str) -> None:
        if name not in ordered:
            for read in below[name]:
                if read in below:
                    place(read)
            ordered.append(name)

    for name in below:
        place(name)
    return ordered


__all__ = ["refresh_together"]
