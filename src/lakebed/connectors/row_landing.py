"""Landing of a source of rows: an INSERT of all its columns into `landed__<name>`, for queries that join or group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.connectors.landing import create_landing, landed_columns, landed_name, metadata_name
from lakebed.connectors.row_insert import RowInsert
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.words.names import quoted

if TYPE_CHECKING:
    from lakebed.lake import Lake


def landing_insert(lake: Lake, table: ConnectorTable) -> RowInsert:
    """The INSERT that lands a source of rows; makes the landed table if it is not there.

    Its name follows from the table's: a pipeline that is started again goes on with it.
    """
    create_landing(lake, table)
    facts = {metadata_name(column.key): name for name, column in table.metadata.items()}
    shown = [
        f"{quoted(facts[name])} AS {quoted(name)}" if name in facts else quoted(name) for name in landed_columns(table)
    ]
    source = f"{quoted(table.database)}.{quoted(table.name)}"
    return RowInsert(
        lake,
        table,
        landed_name(table),
        f"SELECT {', '.join(shown)} FROM {source}",
        name=f"landing-{table.full_name}",
        database=table.database,
        columns=tuple(landed_columns(table)),
    )
