"""Which partitions a procedure is about: named, by a condition, or by how long they have been idle."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.options import PARTITION_DEFAULT_NAME, Options
from lakebed.schema.casts import cast_array
from lakebed.sql.conditions import to_predicate
from lakebed.sql.cursor import Cursor
from lakebed.sql.parse_query import read_expression
from lakebed.sql.partition_specs import check_columns, existing_partitions, parse_specs
from lakebed.table.partitions import Partition
from lakebed.table.table import Table
from lakebed.types.logical import STRING
from lakebed.types.predicate import Always, Predicate, columns, conjunction, disjunction
from lakebed.types.predicate_evaluate import to_expression
from lakebed.units import parse_duration


def chosen_partitions(
    table: Table, partitions: str | None, where: str | None, idle_time: str | None = None
) -> Predicate | None:
    """A filter on partition columns; None for all partitions."""
    if partitions and where:
        raise InvalidArgument("partitions and where do not go together", hint="leave one of them out")
    found: list[Predicate] = []
    if partitions:
        found.append(partitions_filter(table, partitions))
    if where:
        found.append(_condition(table, where))
    if idle_time:
        found.append(_idle(table, idle_time))
    return conjunction(found) if found else None


def partitions_filter(table: Table, text: str) -> Predicate:
    """The filter that `dt=1,hh=2;dt=3` stands for."""
    specs = parse_specs(text)
    for spec in specs:
        check_columns(table, spec)
    return disjunction([_spec_filter(table, spec) for spec in specs])


def _spec_filter(table: Table, spec: Mapping[str, str | None]) -> Predicate:
    default = Options(table.options)[PARTITION_DEFAULT_NAME]
    texts = []
    for column, value in spec.items():
        if value is None or value == default:
            texts.append(f"`{column}` IS NULL")
            continue
        quoted = "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        texts.append(f"`{column}` = {quoted}")
    return _condition(table, " AND ".join(texts))


def _condition(table: Table, where: str) -> Predicate:
    cursor = Cursor(where)
    condition = read_expression(cursor)
    cursor.end()
    found = to_predicate(condition.tree, table.schema.fields)
    if found is None:
        raise InvalidArgument(
            f"condition `{where}` is more than comparisons of columns with constants",
            hint="compare partition columns of the table with constants",
        )
    others = sorted(columns(found) - set(table.partition_by))
    if others:
        raise InvalidArgument(
            f"condition `{where}` names `{others[0]}`, which is not a partition column of table `{table.name}`",
            hint=f"choose whole partitions by {', '.join(table.partition_by) or 'nothing: the table has none'}",
        )
    return found


def _idle(table: Table, idle_time: str) -> Predicate:
    """Partitions to which nothing was written for so long."""
    since_ms = time.time() * 1000 - parse_duration(idle_time)
    idle = [item for item in existing_partitions(table) if (item.last_update_ms or 0) < since_ms]
    return disjunction([_spec_filter(table, item.values) for item in idle]) if idle else Always(False)


def agreeing_partitions(table: Table, chosen: Predicate) -> list[Partition]:
    """The partitions that a filter on partition columns keeps."""
    found = existing_partitions(table)
    names = set(table.partition_by)
    fields = [field for field in table.schema.fields if field.name in names]
    columns_of = {
        field.name: cast_array(pa.array([item.values[field.name] for item in found], pa.string()), STRING, field.type)
        for field in fields
    }
    kept = pa.table(columns_of).append_column("#", pa.array(range(len(found)))).filter(to_expression(chosen))
    return [found[index] for index in kept.column("#").to_pylist()]
