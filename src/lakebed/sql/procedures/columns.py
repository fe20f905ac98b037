"""Changes of columns for which Flink has no statement."""

from __future__ import annotations

from lakebed.schema.changes import UpdateColumnDefault
from lakebed.sql.procedures.registry import DONE, TABLE, Parameter, Procedure, Rows, SqlLake


def _alter_default(lake: SqlLake, table: str, column: str, default_value: str | None = None) -> Rows:
    lake.table(table).alter(UpdateColumnDefault(column, default_value))
    return DONE


PROCEDURES = (
    Procedure(
        "alter_column_default_value",
        (TABLE, Parameter("column", required=True), Parameter("default_value")),
        _alter_default,
    ),
)
