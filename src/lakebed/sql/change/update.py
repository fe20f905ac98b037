"""UPDATE: the rows that match, with new values, written over the old ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from lakebed.definition.statement_rules import Sets, Statement, Way
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.sql.change.finder import Changed, Found
from lakebed.sql.change.insert import find_column
from lakebed.sql.change.target_rows import TargetRows, change_rows
from lakebed.sql.change.write_rows import ChangedRows
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Assignment, Sql, Update
from lakebed.sql.words.names import quoted
from lakebed.types.logical import DataField, DataType, RowType


def update(lake: SqlLake, statement: Update) -> None:
    """UPDATE."""
    change_rows(lake, statement.target, statement.alias, lambda target: _update(target, statement))


def _update(target: TargetRows, statement: Update) -> None:
    sets = sets_of(target, statement.assignments)
    _refuse_key_update(target, set(sets.columns))
    rewrites = target.rule(Statement.UPDATE, sets).way is Way.REWRITE
    target.change(Statement.UPDATE, partial(_new_rows, statement), is_unique=True, rewrites=rewrites)


def _new_rows(statement: Update, target: TargetRows) -> Found:
    fields = target.table.schema.fields
    values = assigned_texts(statement.assignments, fields, target.table.name, target.column, _value_of(target))
    view = target.view([statement.where] if statement.where else [], is_alone=True)
    where = f" WHERE {target.finder.text(statement.where)}" if statement.where else ""
    places = ChangedRows.place_columns(target.pinned)
    new = [values.get(field.name, target.stored_column(field.name)) for field in fields]
    columns = ", ".join([*new, *map(target.column, places)])
    text = f"SELECT {columns} FROM {view} AS {quoted(target.alias)}{where}"
    return target.finder.changed(text, Changed(fields, frozenset(values), places, "+U", target.kind_field))


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


def _refuse_key_update(target: TargetRows, columns: set[str]) -> None:
    """Raises if columns of the primary key are to be set: the row would become another one."""
    keys = columns & set(target.table.primary_key)
    if keys:
        raise InvalidArgument(
            f"`{min(keys)}` belongs to the primary key of table `{target.table.name}`, which can not be updated",
            hint="delete the row and insert another one",
        )


def _value_of(target: TargetRows) -> Callable[[Sql], str]:
    def text(sql: Sql) -> str:
        return "NULL" if is_default(sql) else target.finder.text(sql)

    return text


def is_default(sql: Sql) -> bool:
    """The word DEFAULT: columns put their default in place of NULL when rows are written."""
    return sql.text.strip().upper() == "DEFAULT"


# --- SET clauses: which columns get which values, down to members of rows -----------------------------------------
#
# `SET d.c2 = x` stands for a whole new value of `d` with all other members as they were.


Paths = list[tuple[tuple[str, ...], Sql]]


def assigned_texts(
    assignments: Sequence[Assignment],
    fields: Sequence[DataField],
    table: str,
    column_text: Callable[[str], str],
    value_text: Callable[[Sql], str],
) -> dict[str, str]:
    """Expressions of the new values, by column; columns that keep their values are left out."""
    by_column: dict[str, Paths] = {}
    for assignment in assignments:
        field = find_column(assignment.path[0], fields, table)
        by_column.setdefault(field.name, []).append((assignment.path[1:], assignment.value))
    types = {field.name: field.type for field in fields}
    return {
        name: _value(paths, types[name], column_text(name), f"`{name}`", value_text)
        for name, paths in by_column.items()
    }


def _value(paths: Paths, data_type: DataType, old: str, place: str, value_text: Callable[[Sql], str]) -> str:
    whole = [sql for path, sql in paths if not path]
    if len(paths) > 1 and whole:
        raise InvalidArgument(
            f"column {place} is set twice, as a whole and in parts"
            if len(whole) < len(paths)
            else f"{place} is set twice",
            hint="set each column or member once",
        )
    if whole:
        return f"({value_text(whole[0])})"
    if not isinstance(data_type, RowType):
        raise InvalidArgument(
            f"{place} is of type {data_type}, of which no part can be set",
            hint="set the whole value, as in m = map(...)",
        )
    inner: dict[str, Paths] = {}
    for path, sql in paths:
        inner.setdefault(_member(path[0], data_type, place), []).append((path[1:], sql))
    parts = []
    for field in data_type.fields:
        text = f"{old}.{quoted(field.name)}"
        if field.name in inner:
            text = _value(inner[field.name], field.type, text, f"{place}.`{field.name}`", value_text)
        parts.append(f"{_text(field.name)}, {text}")
    return f"named_struct({', '.join(parts)})"


def _member(name: str, data_type: RowType, place: str) -> str:
    for field in data_type.fields:
        if field.name.lower() == name.lower():
            return field.name
    known = [field.name for field in data_type.fields]
    raise NotFound(f"{place} has no member `{name}`", hint=did_you_mean(name, known))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
