"""Lakebed: Apache Paimon tables from Python, with a vectorised Arrow core and pipelines on Spark.

    import lakebed

    lake = lakebed.connect("warehouse")
    orders = lake.create_table("orders", {"id": "BIGINT NOT NULL", "state": "STRING"}, primary_key=["id"],
                               options={"bucket": "4"})
    orders.write(pa.table({"id": [1, 2], "state": ["new", "new"]}))
    orders.to_arrow()

Names are loaded when first used: importing the package costs next to nothing, and starts nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lakebed import errors, metrics
from lakebed.version import VERSION

if TYPE_CHECKING:
    from lakebed.lake import Lake, connect
    from lakebed.metadata.snapshot import Snapshot
    from lakebed.pipelines.pipeline import Pipeline, pipeline
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
    from lakebed.table.writer import TableWriter

__version__ = VERSION

__all__ = [
    "AddColumn",
    "After",
    "DropColumn",
    "First",
    "Lake",
    "Pipeline",
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
    "__version__",
    "connect",
    "errors",
    "metrics",
    "pipeline",
]

_HOMES = {
    "Lake": "lake",
    "connect": "lake",
    "Pipeline": "pipelines.pipeline",
    "pipeline": "pipelines.pipeline",
    "Snapshot": "metadata.snapshot",
    "TableSchema": "schema.table_schema",
    "Table": "table.table",
    "TableWriter": "table.writer",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module `lakebed` has no attribute `{name}`")
    # What has no home of its own is a schema change.
    value: object = getattr(import_module(f"lakebed.{_HOMES.get(name, 'schema.changes')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
