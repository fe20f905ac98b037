"""The handle of an opened system table: reads like any table, and refuses everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from lakebed.definition.arguments import filter_argument, names_argument
from lakebed.errors import Unsupported
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import OpenedTable
from lakebed.table.system.base import SystemTable, TableState
from lakebed.table.table import Table


class OpenedDefinition(OpenedTable):
    """A table without files: what it shows is made by a definition."""

    def readable(self) -> NoReturn:
        """Refused: there is nothing to plan."""
        raise Unsupported(
            f"`{self.name}` is a system table: it has no files, changes or plans of its own",
            hint="read it with to_arrow(columns, filter), or open the table itself for the rest",
        )


class DefinedTable(Table, ABC):
    """A table whose rows are made by a definition instead of being read from data files."""

    def __init__(self, definition: SystemTable[Any, Any], opened: OpenedDefinition) -> None:
        super().__init__(opened)
        self._definition = definition

    @abstractmethod
    def _source(self) -> Any:
        """What the definition makes rows from."""

    @property
    def schema(self) -> TableSchema:
        """The columns of the system table."""
        return self._definition.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what `to_arrow` returns."""
        return self._definition.arrow_schema

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Empty: rows are not addressed by key."""
        return ()

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Empty: a system table has no partitions of its own."""
        return ()

    @property
    def comment(self) -> str | None:
        """None."""
        return None

    needs_condition: ClassVar[bool] = False
    """Whether rows are made from what a filter says, so that a query has to hand its conditions down."""

    def _planned(self, columns: Sequence[str] | None, filter: Any) -> pa.Table:  # noqa: A002
        predicate = filter_argument(filter, self.arrow_schema)
        names = None if columns is None else names_argument(columns, "columns")
        return self._definition.read(self._source(), names, predicate)

    def _fixed(self) -> DefinedTable:
        return self


class SystemTableHandle(DefinedTable):
    """A system table of one table, such as `t$snapshots`, of the latest state or of an earlier one.

    Those that list history, such as snapshots and tags, stay the same at an earlier state.
    """

    def __init__(self, definition: SystemTable[Any, Any], opened: OpenedTable) -> None:
        super().__init__(definition, OpenedDefinition(opened.context, opened.overrides, opened.pinned))

    def _source(self) -> TableState:
        return TableState(self._opened.current(), self._opened.pinned)

    def _as(self, opened: OpenedTable) -> Table:
        return SystemTableHandle(self._definition, opened)


__all__ = ["DefinedTable", "OpenedDefinition", "SystemTableHandle"]
