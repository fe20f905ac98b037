"""Which partitions a procedure is about: named, by a condition, or by how long they have been idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from lakebed.clock import Clock, SystemClock
from lakebed.definition.condition import Unclear, condition_predicate
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.maintenance.partitions import Partition
from lakebed.options import PARTITION_DEFAULT_NAME, Options
from lakebed.schema.casts import cast_array
from lakebed.spark.errors import spark_errors
from lakebed.sql.parse.query import read_expression
from lakebed.sql.partition_specs import existing_partitions, named_columns, parse_specs
from lakebed.sql.session import SqlLake
from lakebed.sql.words.cursor import Cursor
from lakebed.table.table import Table
from lakebed.types.logical import INT, STRING, DataField, with_nullable
from lakebed.types.predicate import Always, Comparison, IsNull, Op, Predicate, conjunction, disjunction
from lakebed.types.predicate_evaluate import to_expression
from lakebed.units import parse_duration

_NUMBER = DataField(0, "_lakebed_number", INT)


def chosen_partitions(
    lake: SqlLake, table: Table, partitions: str | None, where: str | None, idle_time: str | None = None
) -> Predicate | None:
    """A filter on partition columns; None for all partitions."""
    if partitions and where:
        raise InvalidArgument("partitions and where do not go together", hint="leave one of them out")
    found: list[Predicate] = []
    if partitions:
        found.append(_partitions_filter(table, partitions))
    if where:
        found.append(_where(lake, table, where))
    if idle_time:
        found.append(_idle(table, idle_time, SystemClock()))
    return conjunction(found) if found else None


def _partitions_filter(table: Table, text: str) -> Predicate:
    """The filter that `dt=1,hh=2;dt=3` stands for."""
    specs = [named_columns(table, spec) for spec in parse_specs(text)]
    return disjunction([_spec_filter(table, spec) for spec in specs])


def _spec_filter(table: Table, spec: Mapping[str, str | None]) -> Predicate:
    """The filter of one partition, or of those that agree with the spec: values are texts of the column's type."""
    default = Options(table.options)[PARTITION_DEFAULT_NAME]
    kinds = {field.name: with_nullable(field.type, True) for field in table.schema.fields}
    parts: list[Predicate] = []
    for column, text in spec.items():
        if text is None or text == default:
            parts.append(IsNull(column))
            continue
        try:
            value = cast_array(pa.array([text]), STRING, kinds[column])[0]
        except LakebedError as error:
            raise InvalidArgument(
                f"`{text}` is no value of partition column `{column}` ({kinds[column]})",
                hint="give a value of the column's type",
            ) from error
        parts.append(_is(column, value))
    return conjunction(parts)


def _where(lake: SqlLake, table: Table, where: str) -> Predicate:
    """A condition on partition columns; Spark evaluates what is more than comparisons with constants."""
    cursor = Cursor(where)
    condition = read_expression(cursor)
    cursor.end()
    names = {name.lower(): name for name in table.partition_by}
    used = {column.name for column in condition.tree.find_all(exp.Column)}
    others = sorted(name for name in used if name.lower() not in names)
    if others:
        raise InvalidArgument(
            f"condition `{where}` names `{others[0]}`, which is not a partition column of table `{table.name}`",
            hint=f"choose whole partitions by {', '.join(table.partition_by) or 'nothing: the table has none'}",
        )
    try:
        return condition_predicate(condition.tree, table.schema.arrow_schema)
    except Unclear:
        return _evaluated(lake, table, where)


def _evaluated(lake: SqlLake, table: Table, where: str) -> Predicate:
    """Those of the partitions that are there now for which Spark finds the condition true."""
    from lakebed.spark.read import arrow_frame  # pyspark is heavy: only when it is used

    values = _partition_rows(table, existing_partitions(table))
    fields = [field for field in table.schema.fields if field.name in table.partition_by]
    numbered = values.append_column(_NUMBER.name, pa.array(range(values.num_rows), pa.int32()))
    with spark_errors():
        kept = arrow_frame(lake.spark, numbered, [*fields, _NUMBER]).filter(where).select(_NUMBER.name).collect()
    parts = [conjunction([_is(name, values.column(name)[row[0]]) for name in values.column_names]) for row in kept]
    return disjunction(parts) if parts else Always(False)


def _is(column: str, value: pa.Scalar) -> Predicate:
    return Comparison(column, Op.EQ, value) if value.is_valid else IsNull(column)


def _partition_rows(table: Table, partitions: Sequence[Partition]) -> pa.Table:
    """The values of partitions, with the types of their columns."""
    fields = [field for field in table.schema.fields if field.name in table.partition_by]
    return pa.table(
        {
            field.name: cast_array(
                pa.array([item.values[field.name] for item in partitions], pa.string()), STRING, field.type
            )
            for field in fields
        }
    )


def _idle(table: Table, idle_time: str, clock: Clock) -> Predicate:
    """Partitions to which nothing was written for so long."""
    since_ms = clock.now_ms() - parse_duration(idle_time)
    idle = [item for item in existing_partitions(table) if (item.last_update_ms or 0) < since_ms]
    return disjunction([_spec_filter(table, item.values) for item in idle]) if idle else Always(False)


def agreeing_partitions(table: Table, chosen: Predicate) -> list[Partition]:
    """The partitions that a filter on partition columns keeps."""
    found = existing_partitions(table)
    numbered = _partition_rows(table, found).append_column("#", pa.array(range(len(found))))
    return [found[index] for index in numbered.filter(to_expression(chosen)).column("#").to_pylist()]
