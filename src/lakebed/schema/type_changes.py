"""A column's new type, taken apart into the changes that lead to it.

A ROW keeps its members by name: those that are new are added, those that are gone dropped, the others changed in place.
ARRAY and MAP are entered likewise. Only what is left, a change of an atomic type, is a change of type.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.schema import changes as sc
from lakebed.schema.field_paths import edited_type
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import ArrayType, DataType, MapType, MultisetType, RowType, same_ignoring_nullability

Path = tuple[str, ...]


def type_changes(schema: TableSchema, path: Path, new: DataType, keeps_nullability: bool) -> Iterator[sc.SchemaChange]:
    """What makes the column at the path one of the new type; with `keeps_nullability` it may be NULL as before."""
    found: list[DataType] = []

    def see(data_type: DataType) -> DataType:
        found.append(data_type)
        return data_type

    edited_type(schema.fields, path, see)
    (old,) = found
    if keeps_nullability:
        yield from _inside(path, old, new)
    else:
        yield from _between(path, old, new)


def _between(path: Path, old: DataType, new: DataType) -> Iterator[sc.SchemaChange]:
    if type(old) is not type(new) or not isinstance(old, RowType | ArrayType | MapType | MultisetType):
        if old != new:
            yield sc.UpdateColumnType(path, new)
        return
    yield from _inside(path, old, new)
    if old.nullable != new.nullable:
        yield sc.UpdateColumnNullability(path, new.nullable)


def _inside(path: Path, old: DataType, new: DataType) -> Iterator[sc.SchemaChange]:
    """Changes of the type, not of whether the whole may be NULL."""
    if isinstance(old, RowType) and isinstance(new, RowType):
        yield from _members(path, old, new)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _between((*path, "element"), old.element, new.element)
    elif isinstance(old, MapType) and isinstance(new, MapType) and same_ignoring_nullability(old.key, new.key):
        yield from _between((*path, "value"), old.value, new.value)
    elif not same_ignoring_nullability(old, new):
        yield sc.UpdateColumnType(path, new, keep_nullability=True)


def _members(path: Path, old: RowType, new: RowType) -> Iterator[sc.SchemaChange]:
    before = {member.name: member for member in old.fields}
    after = {member.name: member for member in new.fields}
    for name, member in after.items():
        if name in before:
            yield from _between((*path, name), before[name].type, member.type)
        else:
            yield sc.AddColumn((*path, name), member.type, member.description)
    for name in before:
        if name not in after:
            yield sc.DropColumn((*path, name))
    kept = [name for name in before if name in after]
    if [*kept, *(name for name in after if name not in before)] != list(after):
        previous: str | None = None
        for name in after:
            yield sc.UpdateColumnPosition((*path, name), sc.First() if previous is None else sc.After(previous))
            previous = name
