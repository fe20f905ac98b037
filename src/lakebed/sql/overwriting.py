"""What INSERT OVERWRITE replaces.

A PARTITION clause names it, unless Spark's `partitionOverwriteMode` is `dynamic`: then, and where nothing is named, it
is the partitions of the new rows. If the session says `static`, an overwrite that names no partition value replaces the
whole table, as Spark does; if it says nothing, `dynamic-partition-overwrite` of the table decides, as in Flink.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Insert
from lakebed.sql.values import Scalar, Value
from lakebed.table.table import Table

_MODE = "spark.sql.sources.partitionOverwriteMode"
_DYNAMIC = "dynamic-partition-overwrite"


def overwrite_of(
    lake: SqlLake, table: Table, statement: Insert, fixed: Mapping[str, Value]
) -> tuple[Table, bool | dict[str, Any] | None]:
    """The table to write to, and the `overwrite` argument of the write."""
    if not statement.overwrite:
        return table, None
    if not table.partition_by:
        return table, {}
    mode = _session_mode(lake)
    if mode == "dynamic":
        return table.with_options({_DYNAMIC: "true"}), True
    if fixed:
        return table, {name: _spec_value(value) for name, value in fixed.items()}
    # BY NAME is Spark's, where an overwrite without partitions means the whole table.
    return table, {} if statement.by_name or mode == "static" else True


def _session_mode(lake: SqlLake) -> str | None:
    """What the session says about it; None if nobody has set it, though Spark has a default."""
    if not lake.is_spark_started:
        return None
    said = {key.lower(): value for key, value in lake.spark.conf.getAll.items()}.get(_MODE.lower())
    return None if said is None else str(said).lower()


def _spec_value(value: Value) -> Any:
    if not isinstance(value, Scalar):
        return None
    given = value.value
    if isinstance(given, bool):
        return "true" if given else "false"
    return str(given) if isinstance(given, dt.date | Decimal | int) else given
