"""UPDATE: the rows that match, with new values, written over the old ones."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import InvalidArgument
from lakebed.spark.failures import spark_errors
from lakebed.sql.assignments import assigned_texts
from lakebed.sql.changed_rows import KIND, ChangedRows
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql, Update
from lakebed.sql.target_rows import TargetRows, change_rows
from lakebed.sql.views import quoted


def update(lake: SqlLake, statement: Update) -> None:
    """UPDATE."""
    change_rows(lake, statement.target, statement.alias, lambda target: _update(target, statement))


def _update(target: TargetRows, statement: Update) -> None:
    target.check_updatable("update")
    fields = target.table.schema.fields
    values = assigned_texts(statement.assignments, fields, target.table.name, target.column, _value_of(target))
    refuse_key_update(target, set(values))
    view = target.view([statement.where] if statement.where else [], is_alone=True)
    where = f" WHERE {target.planner.text(statement.where)}" if statement.where else ""
    places = ChangedRows.place_columns(target.pinned)
    new = [values.get(field.name, target.column(field.name)) for field in fields]
    text = ", ".join([*new, *map(target.column, places)])
    frame = target.planner.views.sql(f"SELECT {text} FROM {view} AS {quoted(target.alias)}{where}")

    from lakebed.spark.assign import changed_rows  # pyspark is heavy: only when it is used

    with spark_errors():
        rows = changed_rows(frame, fields, set(values), places, KIND, "+U")
    target.write(rows, "UPDATE", is_unique=True)


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
