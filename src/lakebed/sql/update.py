"""UPDATE: the rows that match, with new values, written over the old ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from lakebed.errors import InvalidArgument
from lakebed.spark.failures import spark_errors
from lakebed.sql.assignments import assigned_texts
from lakebed.sql.changed_rows import KIND, ChangedRows
from lakebed.sql.insert_columns import find_column
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Assignment, Sql, Update
from lakebed.sql.target_rows import TargetRows, change_rows
from lakebed.sql.views import quoted
from lakebed.table.statement_rules import Sets, Statement, Way

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def update(lake: SqlLake, statement: Update) -> None:
    """UPDATE."""
    change_rows(lake, statement.target, statement.alias, lambda target: _update(target, statement))


def _update(target: TargetRows, statement: Update) -> None:
    sets = sets_of(target, statement.assignments)
    refuse_key_update(target, set(sets.columns))
    rewrites = target.rule(Statement.UPDATE, sets).way is Way.REWRITE
    target.change(Statement.UPDATE, partial(_new_rows, statement), is_unique=True, rewrites=rewrites)


def _new_rows(statement: Update, target: TargetRows) -> DataFrame:
    from lakebed.spark.assign import changed_rows  # pyspark is heavy: only when it is used

    fields = target.table.schema.fields
    values = assigned_texts(statement.assignments, fields, target.table.name, target.column, _value_of(target))
    view = target.view([statement.where] if statement.where else [], is_alone=True)
    where = f" WHERE {target.planner.text(statement.where)}" if statement.where else ""
    places = ChangedRows.place_columns(target.pinned)
    new = [values.get(field.name, target.stored_column(field.name)) for field in fields]
    text = ", ".join([*new, *map(target.column, places)])
    frame = target.planner.views.sql(f"SELECT {text} FROM {view} AS {quoted(target.alias)}{where}")
    with spark_errors():
        return changed_rows(frame, fields, set(values), places, KIND, "+U", target.kind_field)


def sets_of(target: TargetRows, assignments: Sequence[Assignment]) -> Sets:
    """Columns that get new values, and whether these may be null. A part of a row is set in a row that is there."""
    fields = target.table.schema.fields
    found: dict[str, bool] = {}
    for assignment in assignments:
        field = find_column(assignment.path[0], fields, target.table.name)
        is_given = len(assignment.path) > 1 or _is_value(assignment.value.tree)
        found[field.name] = field.type.nullable and not is_given
    return Sets(found, moves=not found.keys().isdisjoint(target.table.partition_by))


def _is_value(node: exp.Expression) -> bool:
    """A literal other than NULL."""
    node = node.unnest()
    return isinstance(node, exp.Literal | exp.Boolean) or (isinstance(node, exp.Neg) and _is_value(node.this))


def refuse_key_update(target: TargetRows, columns: set[str]) -> None:
    """Raises if columns of the primary key are to be set: the row would become another one."""
    keys = columns & set(target.table.primary_key)
    if keys:
        raise InvalidArgument(
            f"`{min(keys)}` belongs to the primary key of table `{target.table.name}`, which can not be updated",
            hint="delete the row and insert another one",
        )


def _value_of(target: TargetRows) -> Callable[[Sql], str]:
    def text(sql: Sql) -> str:
        return "NULL" if is_default(sql) else target.planner.text(sql)

    return text


def is_default(sql: Sql) -> bool:
    """The word DEFAULT: columns put their default in place of NULL when rows are written."""
    return sql.text.strip().upper() == "DEFAULT"
