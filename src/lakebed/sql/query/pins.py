"""Which snapshot each table of a statement is read at: the same for all places that name it."""

from __future__ import annotations

from dataclasses import field

from sqlglot import exp

from lakebed.options import SCAN_CREATION_TIME_MILLIS, SCAN_FILE_CREATION_TIME_MILLIS, SCAN_MODE
from lakebed.records import dataclass
from lakebed.sql.query.references import Reference
from lakebed.table.system.handle import DefinedTable
from lakebed.table.table import Table

_MODES = (SCAN_MODE, SCAN_FILE_CREATION_TIME_MILLIS, SCAN_CREATION_TIME_MILLIS)


@dataclass(frozen=True)
class Pins:
    """Tables as they were when the statement first met them."""

    _pinned: dict[str, Table] = field(default_factory=dict)

    def pin(self, table: Table) -> Table:
        """The table as it is now, for all texts of the statement."""
        return self._pinned.setdefault(table.name, table.pinned())

    def pin_anew(self, table: Table) -> Table:
        """The table as it is by now, for texts that follow."""
        self._pinned.pop(table.name, None)
        return self.pin(table)

    def shared(self, reference: Reference, *, must_pin: bool = True) -> Table:
        """The table at one snapshot for all references without a snapshot of their own.

        Without `must_pin` it is pinned only if it was before: a table that is named once needs none.
        """
        is_placed = bool(reference.node.meta.keys() & {"options", "version"})
        if is_placed or isinstance(reference.node.this, exp.Func) or isinstance(reference.table, DefinedTable):
            return reference.table
        if any(option.key in reference.table.options for option in _MODES):
            return reference.table  # shows something else than a snapshot
        if must_pin:
            return self.pin(reference.table)
        return self._pinned.get(reference.table.name, reference.table)
