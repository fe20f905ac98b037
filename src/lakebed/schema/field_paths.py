"""Finding and editing a column, or a part of a nested one, by its path.

A path is a tuple of names: members of a ROW by their name, the elements of an ARRAY as `element`, the values of a MAP
as `value`. Edits return new types; nothing is changed in place. What may be edited is decided in `draft`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakebed.errors import InvalidArgument, InvalidSchema, NotFound, did_you_mean
from lakebed.types.logical import ArrayType, DataField, DataType, MapType, RowType

Path = tuple[str, ...]

ELEMENT, VALUE = "element", "value"


def to_path(name: str | Sequence[str], fields: Sequence[DataField]) -> Path:
    """The path that a name stands for: a tuple as it is, a text split at its dots unless a column bears it whole."""
    if not isinstance(name, str):
        path = tuple(name)
    elif any(column.name == name for column in fields) or name.partition(".")[0] not in {f.name for f in fields}:
        path = (name,)
    else:
        path = tuple(name.split("."))
    if not path:
        raise InvalidArgument("a schema change names no column", hint="give a column name or a path of names")
    return path


def shown(path: Path) -> str:
    """The path as users write it."""
    return ".".join(path)


def edited_members(
    fields: tuple[DataField, ...], path: Path, edit: Callable[[list[DataField]], None]
) -> tuple[DataField, ...]:
    """The columns after `edit` changed the list of members that the last name of the path belongs to."""

    def edit_row(row: DataType) -> DataType:
        if not isinstance(row, RowType):
            raise InvalidSchema(
                f"`{shown(path[:-1])}` has type {row}, it has no member `{path[-1]}`",
                hint=f"only a ROW has members; write `{ELEMENT}` or `{VALUE}` to reach the inside of an ARRAY or MAP",
            )
        members = list(row.fields)
        edit(members)
        return replace(row, fields=tuple(members))

    return edited_type(fields, path[:-1], edit_row)


def edited_type(
    fields: tuple[DataField, ...], path: Path, change: Callable[[DataType], DataType]
) -> tuple[DataField, ...]:
    """The columns after `change` replaced the type at the path; the empty path is the row of all columns."""
    row = _replaced(RowType(fields), path, 0, change)
    assert isinstance(row, RowType)
    return row.fields


def position_of(members: Sequence[DataField], path: Path) -> int:
    """Index of the member that the last name of the path is."""
    for index, member in enumerate(members):
        if member.name == path[-1]:
            return index
    names = [member.name for member in members]
    raise NotFound(f"there is no column `{shown(path)}`", hint=did_you_mean(path[-1], names))


def _replaced(data_type: DataType, path: Path, depth: int, change: Callable[[DataType], DataType]) -> DataType:
    if depth == len(path):
        return change(data_type)
    name = path[depth]
    match data_type:
        case RowType(fields):
            members = list(fields)
            index = position_of(members, path[: depth + 1])
            inner = _replaced(members[index].type, path, depth + 1, change)
            members[index] = replace(members[index], type=inner)
            return replace(data_type, fields=tuple(members))
        case ArrayType(element) if name == ELEMENT:
            return replace(data_type, element=_replaced(element, path, depth + 1, change))
        case MapType(_, value) if name == VALUE:
            return replace(data_type, value=_replaced(value, path, depth + 1, change))
    raise NotFound(
        f"there is no column `{shown(path)}`: {data_type} has no part `{name}`",
        hint=f"name members of a ROW, `{ELEMENT}` of an ARRAY or `{VALUE}` of a MAP",
    )
