"""Points in time in queries: `VERSION AS OF`, `TIMESTAMP AS OF`, `FOR SYSTEM_TIME AS OF`, as options of a read."""

from __future__ import annotations

from sqlglot import exp

from lakebed.errors import InvalidArgument
from lakebed.options import SCAN_TIMESTAMP_MILLIS, SCAN_VERSION
from lakebed.sql.session import SqlLake
from lakebed.table.time_travel import to_millis


def travel_options(lake: SqlLake, version: exp.Version | None) -> dict[str, str]:
    """The options that say what the clause says; none without a clause."""
    if version is None:
        return {}
    value = version.args.get("expression")
    if str(version.name or version.this).upper() == "VERSION":
        return {SCAN_VERSION.key: _version(value)}
    return {SCAN_TIMESTAMP_MILLIS.key: str(_moment_ms(lake, value))}


def _version(value: exp.Expression | None) -> str:
    if isinstance(value, exp.Literal):
        return str(value.this)
    raise InvalidArgument("VERSION AS OF needs a literal", hint="name a snapshot, as 3, or a tag, as 'monthly'")


def _moment_ms(lake: SqlLake, value: exp.Expression | None) -> int:
    """Epoch milliseconds: a text or TIMESTAMP literal of the local zone, or whole seconds; else Spark computes it."""
    if isinstance(value, exp.Literal) and not value.is_string:
        return int(float(value.this) * 1000)
    literal = value.this if isinstance(value, exp.Cast) else value
    if isinstance(literal, exp.Literal) and literal.is_string:
        return to_millis(str(literal.this))
    if value is None or value.find(exp.Column, exp.Query):
        raise InvalidArgument("TIMESTAMP AS OF needs a moment", hint="write it like '2024-05-14 13:45:00'")
    row = lake.spark.sql(f"SELECT unix_micros(CAST({value.sql('spark')} AS TIMESTAMP))").first()
    if row is None or row[0] is None:
        raise InvalidArgument("TIMESTAMP AS OF is null", hint="write it like '2024-05-14 13:45:00'")
    return int(row[0]) // 1000
