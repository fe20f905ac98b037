"""Lakebed: Apache Paimon tables from Python, with a vectorised Arrow core and pipelines on Spark.

    import lakebed

    lake = lakebed.connect("warehouse")
    orders = lake.create_table("orders", {"id": "BIGINT NOT NULL", "state": "STRING"}, primary_key=["id"],
                               options={"bucket": "4"})
    orders.write(pa.table({"id": [1, 2], "state": ["new", "new"]}))
    orders.to_arrow()
"""

from lakebed import errors
from lakebed.lake import Lake, connect
from lakebed.metadata.snapshot import Snapshot
from lakebed.schema.changes import (
    AddColumn,
    After,
    DropColumn,
    First,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from lakebed.schema.table_schema import TableSchema
from lakebed.table.table import Table
from lakebed.table.write import TableWriter

__all__ = [
    "AddColumn",
    "After",
    "DropColumn",
    "First",
    "Lake",
    "RemoveOption",
    "RenameColumn",
    "SetOption",
    "Snapshot",
    "Table",
    "TableSchema",
    "TableWriter",
    "UpdateColumnComment",
    "UpdateColumnDefault",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "connect",
    "errors",
]
