"""What a process remembers of the tables of materialized ones from one refresh to the next: local copies of files in
which rows are found by key, and manifests. A refresh opens its tables anew, and would begin anew with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from lakebed.definition.memory import TableMemory
from lakebed.table.opened import OpenedTable, opened_of
from lakebed.table.table import Table

_KEPT: WeakKeyDictionary[Any, dict[tuple[str, int], TableMemory]] = WeakKeyDictionary()
"""By lake, then by where a table is and when it was made."""


def remembering(lake: Any, table: Table) -> Table:
    """The table, with what a refresh before knew of its files."""
    if type(table) is not Table:
        return table
    opened = opened_of(table)
    context = opened.context
    kept = _KEPT.setdefault(lake, {})
    place = (str(context.paths), context.schemas.get(0).time_millis)
    known = kept.get(place)
    memory = TableMemory() if known is None else known.handed_on()
    kept[place] = memory
    return Table(OpenedTable(replace(context, memory=memory), opened.overrides, opened.pinned))


__all__ = ["remembering"]
