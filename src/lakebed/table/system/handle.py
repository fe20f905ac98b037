"""The handle of an opened system table: reads like any table, and refuses everything else."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from lakebed.definition.arguments import names_argument
from lakebed.definition.context import TableContext
from lakebed.errors import Unsupported
from lakebed.metadata.snapshot import Snapshot
from lakebed.schema.table_schema import TableSchema
from lakebed.table.system.base import SystemTable, TableState
from lakebed.table.table import Table
from lakebed.types.predicate_parse import to_predicate


class DefinedTable(Table):
    """A table whose rows are made by a definition instead of being read from data files."""

    def __init__(
        self,
        definition: SystemTable[Any, Any],
        context: TableContext,
        *,
        overrides: Mapping[str, str] | None = None,
        pinned: Snapshot | None = None,
    ) -> None:
        super().__init__(context, overrides=overrides, pinned=pinned)
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

    def to_arrow(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:  # noqa: A002
        """Matching rows as one Arrow table; `filter` as for any table."""
        predicate = to_predicate(filter, self.arrow_schema)
        names = None if columns is None else names_argument(columns, "columns")
        return self._definition.read(self._source(), names, predicate)

    def to_batches(self, columns: Sequence[str] | None = None, filter: Any = None) -> Iterator[pa.RecordBatch]:  # noqa: A002
        """Matching rows batch by batch."""
        return iter(self.to_arrow(columns, filter).to_batches())

    def _readable(self) -> NoReturn:
        raise Unsupported(
            f"`{self.name}` is a system table: it has no files, changes or plans of its own",
            hint="read it with to_arrow(columns, filter), or open the table itself for the rest",
        )


class SystemTableHandle(DefinedTable):
    """A system table of one table, such as `t$snapshots`, of the latest state or of an earlier one."""

    def _source(self) -> TableState:
        return TableState(self._current(), self._pinned)

    def at(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: int | str | dt.datetime | dt.date | None = None,
    ) -> Table:
        """The system table of an earlier state. Those that list history, such as snapshots and tags, stay the same."""
        return self._of(super().at(snapshot=snapshot, tag=tag, timestamp=timestamp))

    def with_options(self, options: Mapping[str, object]) -> Table:
        """The system table under options for this handle only, such as `scan.snapshot-id`."""
        return self._of(super().with_options(options))

    def _of(self, table: Table) -> Table:
        return SystemTableHandle(self._definition, table._context, overrides=table._overrides, pinned=table._pinned)


__all__ = ["DefinedTable", "SystemTableHandle"]
