"""Tables of other systems in a plain SELECT: those whose rows have an end are read, others are refused.

A query sees such a table as if it were a view: the columns of the source under a name that nothing else has, and the
computed ones beside them. So both engines need to know the rows of the source only.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakebed.errors import Unsupported
from lakebed.records import dataclass
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.session import SqlLake, connector_table, connector_tables
from lakebed.sql.words.names import CATALOGS, quoted
from lakebed.types.transfer import to_transfer, transfer_schema

_RAW = "rows of "
_STEP_ROWS = 1 << 18


def other_table(lake: SqlLake, node: exp.Table) -> ConnectorTable | None:
    """The table of another system that a node of a query names."""
    if not connector_tables(lake) or isinstance(node.this, exp.Func):
        return None
    parts = [part.name for part in node.parts]
    if len(parts) == 3 and parts[0].lower() in CATALOGS:
        parts = parts[1:]
    found = connector_table(lake, ".".join(parts)) if len(parts) < 3 else None
    if found is not None and node.meta.keys() & {"options", "version"}:
        raise Unsupported(
            f"`{found.full_name}` is a table of connector `{found.connector}`, which takes no hints and no times",
            hint="give the options in its definition, and leave them out of the query",
        )
    return found


def raw_table(lake: SqlLake, node: exp.Table) -> ConnectorTable | None:
    """The table whose source a node means, in the text of `seen_as`."""
    if not node.name.startswith(_RAW):
        return None
    return connector_table(lake, node.name.removeprefix(_RAW))


def raw_name(table: ConnectorTable) -> str:
    """What the rows of the source are called in the text of `seen_as`."""
    return f"{_RAW}{table.full_name}"


def seen_as(table: ConnectorTable) -> str:
    """The query that stands for the table."""
    from lakebed.sql.connectors.reading import reading_text  # connectors are loaded only where there are tables of one

    return reading_text(table, quoted(raw_name(table)))


def check_bounded(table: ConnectorTable) -> None:
    """Raises for a table whose rows never end."""
    from lakebed.sql.connectors.registry import is_bounded

    if not is_bounded(table):
        raise Unsupported(
            f"table `{table.full_name}` of connector `{table.connector}` has no end that a SELECT could wait for",
            hint="SET 'execution.runtime-mode' = 'streaming' first, to see rows as they come; or write INSERT INTO t "
            f"SELECT ... FROM {table.name} into a file, and type: lakebed run FILE"
            + (", or set 'number-of-rows'" if table.connector == "datagen" else ""),
        )


@dataclass(frozen=True)
class SourceRows:
    """All rows of a source that has an end, read anew each time."""

    table: ConnectorTable

    @property
    def schema(self) -> pa.Schema:
        """The columns, with Spark's types."""
        return transfer_schema(self.table.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key that is declared."""
        return self.table.primary_key

    def plan(self, names: Any) -> None:
        """Nothing to plan: there is nothing to choose from."""

    def define(self, connection: Any, view: str) -> None:
        """Shows the rows to DuckDB under a name."""
        connection.register(view, self.rows())

    def rows(self) -> pa.Table:
        """The rows."""
        from lakebed.sql.connectors.registry import local_reader

        reader = local_reader(self.table, paced=False)
        schema, found, place, is_end = self.schema, [], None, False
        while not is_end:
            rows, place, is_end = reader.read(place, _STEP_ROWS)
            found += [to_transfer(batch, schema) for batch in rows.to_batches()]
        return pa.Table.from_batches(found, schema=schema)
