"""Values as a column of a table stores them, for the embedded engine: the rules of `spark.store_assignment`.

Storing is casting, as far as the table takes the type at all; what CAST is proven to do is proven here. What a column
does not take, and members of rows that have to find their places, are left to Spark, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakebed.algebra.relations import Project, Relation
from lakebed.expressions import kinds
from lakebed.expressions.casts import cast
from lakebed.expressions.nodes import Column, Expression, NotProven, call
from lakebed.sql.bind.scope import Bound
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    is_root,
)
from lakebed.types.transfer import transfer_schema

_MOMENTS = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
_OPAQUE = (TypeRoot.VARIANT, TypeRoot.BLOB)
"""Types whose values the embedded engine does not carry."""


def carried_kind(field: DataField) -> pa.DataType:
    """The type in which the engine carries values of a column."""
    if any(root in _OPAQUE for root in _roots(field.type)):
        raise NotProven(f"column `{field.name}` of type {field.type}")
    found = transfer_schema([field]).field(0).type
    kinds.duckdb_name(found)
    return found


def _roots(data_type: DataType) -> list[TypeRoot]:
    match data_type:
        case AtomicType(root=root):
            return [root]
        case ArrayType(element) | MultisetType(element):
            return _roots(element)
        case MapType(key, value):
            return [*_roots(key), *_roots(value)]
        case RowType(fields):
            return [root for part in fields for root in _roots(part.type)]


def stored(value: Expression, field: DataField, *, by_place: bool = False) -> Expression:
    """The value in the type of a column; NotProven if the column may not take it. Members go by name, or by place."""
    kind = carried_kind(field)
    if value.type == kinds.STRING and (kinds.is_numeric(kind) or kind == kinds.BOOLEAN):
        return _read(value, kind, field.name)
    if not _is_storable(value.type, kind, by_place):
        given, wanted = kinds.spark_name(value.type), kinds.spark_name(kind)
        raise NotProven(f"{given} for column `{field.name}`", f"Spark knows what a column of type {wanted} takes")
    return padded(cast(value, kind), field)


def _read(value: Expression, kind: pa.DataType, column: str) -> Expression:
    """What a text spells; an error, never null, if it spells nothing."""
    shown = f"column `{column}` is of type {kinds.spark_name(kind).lower()}, which does not take "
    told = shown.replace("'", "''").replace("{", "{{").replace("}", "}}")
    failure = f"error('{told}''' || {{0}} || '''')"
    template = f"(CASE WHEN {{0}} IS NULL OR {{1}} IS NOT NULL THEN {{1}} ELSE {failure} END)"
    return call(template, value, cast(value, kind, is_try=True), type=kind, nullable=True, can_fail=True)


def _is_storable(given: pa.DataType, target: pa.DataType, by_place: bool) -> bool:
    if given in (target, kinds.NULL):
        return True
    if kinds.is_nested(given) or kinds.is_nested(target):
        return _is_nested_storable(given, target, by_place)
    if target == kinds.STRING:
        return True
    if kinds.is_numeric(given):
        return kinds.is_numeric(target)
    if given == kinds.STRING:
        return target in (*_MOMENTS, kinds.BINARY)
    return given in _MOMENTS and target in _MOMENTS


def _is_nested_storable(given: pa.DataType, target: pa.DataType, by_place: bool) -> bool:
    if pa.types.is_list(given) and pa.types.is_list(target):
        return _is_storable(given.value_type, target.value_type, by_place)
    if pa.types.is_map(given) and pa.types.is_map(target):
        return bool(given.key_type == target.key_type) and _is_storable(given.item_type, target.item_type, by_place)
    if pa.types.is_struct(given) and pa.types.is_struct(target) and given.num_fields == target.num_fields:
        return (by_place or _are_in_place(given, target)) and all(
            _is_storable(mine.type, theirs.type, by_place) for mine, theirs in zip(given, target, strict=True)
        )
    return False


def _are_in_place(given: pa.DataType, target: pa.DataType) -> bool:
    """Whether members have the names of those in their places, or none at all: `col1`, `col2`, as Spark has it."""
    names, wanted = [part.name for part in given], [part.name for part in target]
    is_unnamed = names == [f"col{number}" for number in range(1, len(names) + 1)]
    if is_unnamed and not set(names) <= {name.lower() for name in wanted}:
        return True
    return [name.lower() for name in names] == [name.lower() for name in wanted]


def padded(value: Expression, field: DataField) -> Expression:
    """Text of fixed length with blanks at the end; text that is too long stays, to be refused."""
    if not is_root(field.type, TypeRoot.CHAR):
        return value
    return call(padded_text("{0}", field), value, type=kinds.STRING, nullable=value.nullable)


def padded_text(column: str, field: DataField) -> str:
    """The same of a column of DuckDB's."""
    assert isinstance(field.type, AtomicType)
    length = field.type.length
    return f"(CASE WHEN length({column}) < {length} THEN rpad({column}, {length}, ' ') ELSE {column} END)"


def values_of(bound: Bound) -> tuple[Relation, tuple[Expression, ...]]:
    """What a query computes its columns from, and how: constants among them can be seen."""
    relation = bound.relation
    return (relation.input, relation.values) if isinstance(relation, Project) else (relation, relation.columns)


def projected(relation: Relation, values: Sequence[Expression], names: Sequence[str]) -> Bound:
    """Other columns of a relation. All of them may be null: what a column takes is looked at when rows are written."""
    columns = tuple(Column(type=value.type, id=f"stored_{n}") for n, value in enumerate(values))
    return Bound(Project(columns=columns, input=relation, values=tuple(values)), tuple(names))
