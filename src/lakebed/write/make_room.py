"""Makes room in a table for what a write brings: columns and members it has not, and wider types.

Only where `write.merge-schema` asks for it; types grow only with `write.merge-schema.type-widening`, and change in
other ways only with `write.merge-schema.explicit-cast`. What is there never goes away. Rows that lack columns of the
table get nulls there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import pyarrow as pa

from lakebed.options import (
    WRITE_MERGE_SCHEMA,
    WRITE_MERGE_SCHEMA_EXPLICIT_CAST,
    WRITE_MERGE_SCHEMA_TYPE_WIDENING,
    Options,
)
from lakebed.records import dataclass
from lakebed.schema.casts import is_castable
from lakebed.schema.changes import AddColumn, SchemaChange
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.type_changes import type_changes
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
    same_ignoring_nullability,
    with_nullable,
)


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """What a write may change of a table's columns."""

    adds: bool = False
    widens: bool = False
    casts: bool = False

    @classmethod
    def of_options(cls, options: Options) -> Self:
        """What the options of a write allow."""
        if not options[WRITE_MERGE_SCHEMA]:
            return cls()
        return cls(True, options[WRITE_MERGE_SCHEMA_TYPE_WIDENING], options[WRITE_MERGE_SCHEMA_EXPLICIT_CAST])

    def changes_of(self, schema: TableSchema, incoming: Sequence[DataField]) -> list[SchemaChange]:
        """The changes after which the table takes these columns, as far as they are allowed."""
        if not self.adds:
            return []
        known = {field.name.lower(): field for field in schema.fields}
        fixed = {*schema.primary_keys, *schema.partition_keys}
        changes: list[SchemaChange] = []
        for column in incoming:
            field = known.get(column.name.lower())
            if field is None:
                changes.append(AddColumn(column.name, with_nullable(column.type, True)))
            elif field.name not in fixed:
                changes += type_changes(schema, (field.name,), self.merged(field.type, column.type), True)
        return changes

    def merged(self, old: DataType, new: DataType) -> DataType:
        """A type that holds what both hold, as far as allowed; else the old one."""
        match old, new:
            case RowType(fields), RowType(others):
                return replace(old, fields=self._members(fields, others))
            case ArrayType(element), ArrayType(other):
                return replace(old, element=self.merged(element, other))
            case MapType(_, value), MapType(_, other):
                return replace(old, value=self.merged(value, other))
            case AtomicType(), AtomicType() if self.widens and is_wider(old, new):
                return with_nullable(new, old.nullable)
            case _ if self.casts and not same_ignoring_nullability(old, new) and is_castable(old, new, explicit=True):
                return with_nullable(new, old.nullable)
        return old

    def _members(self, fields: tuple[DataField, ...], others: tuple[DataField, ...]) -> tuple[DataField, ...]:
        given = {field.name.lower(): field for field in others}
        kept = [
            replace(field, type=self.merged(field.type, given[field.name.lower()].type))
            if field.name.lower() in given
            else field
            for field in fields
        ]
        known = {field.name.lower() for field in fields}
        added = [
            replace(field, type=with_nullable(field.type, True)) for field in others if field.name.lower() not in known
        ]
        return (*kept, *added)


def relaxed(data_type: DataType) -> DataType:
    """The type with NULL allowed everywhere: that one write has none says nothing about the next."""
    match data_type:
        case RowType(fields):
            return RowType(tuple(replace(field, type=relaxed(field.type)) for field in fields))
        case ArrayType(element):
            return ArrayType(relaxed(element))
        case MapType(key, value):
            return MapType(with_nullable(relaxed(key), key.nullable), relaxed(value))
    return with_nullable(data_type, True)


def is_wider(old: AtomicType, new: AtomicType) -> bool:
    """Whether every value of the old type is one of the new type."""
    if same_ignoring_nullability(old, new) or not is_castable(old, new, explicit=False):
        return False
    if old.root == new.root == TypeRoot.DECIMAL:
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    if old.root == new.root:
        return (new.length, new.precision) > (old.length, old.precision)
    return True


def completed(batch: pa.RecordBatch, fields: Sequence[DataField], extra: str | None = None) -> pa.RecordBatch:
    """The rows with nulls for columns and members they lack, and names as the table spells them."""
    given = {name.lower(): batch.column(i) for i, name in enumerate(batch.schema.names) if name != extra}
    columns: dict[str, pa.Array] = {}
    for field in fields:
        column = given.pop(field.name.lower(), None)
        if column is None:
            columns[field.name] = pa.nulls(batch.num_rows, to_arrow_type(field.type))
        else:
            columns[field.name] = _completed(column, field.type)
    columns |= given  # what the table has not is for others to refuse
    if extra is not None and extra in batch.schema.names:
        columns[extra] = batch.column(extra)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _completed(array: pa.Array, data_type: DataType) -> pa.Array:
    if isinstance(data_type, RowType) and pa.types.is_struct(array.type):
        given = {child.name.lower(): array.field(i) for i, child in enumerate(array.type)}
        members: dict[str, pa.Array] = {}
        for member in data_type.fields:
            part = given.pop(member.name.lower(), None)
            missing = part is None
            members[member.name] = (
                pa.nulls(len(array), to_arrow_type(member.type)) if missing else _completed(part, member.type)
            )
        members |= given
        return pa.StructArray.from_arrays(list(members.values()), names=list(members), mask=array.is_null())
    if isinstance(data_type, ArrayType) and pa.types.is_list(array.type):
        values = _completed(array.flatten(), data_type.element)
        return pa.ListArray.from_arrays(_offsets(array), values, mask=array.is_null())
    return array


def _offsets(lists: pa.ListArray) -> pa.Array:
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


__all__ = ["SchemaMerge", "completed", "is_wider", "relaxed"]
