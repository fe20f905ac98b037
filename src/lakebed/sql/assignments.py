"""SET clauses: which columns get which values, down to members of rows.

`SET d.c2 = x` stands for a whole new value of `d` with all other members as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.sql.insert_columns import find_column
from lakebed.sql.statements import Assignment, Sql
from lakebed.sql.views import quoted
from lakebed.types.logical import DataField, DataType, RowType

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
