"""Old files under a new schema: which columns to read from a file, and how its batches become what is wanted now.

Columns are matched by field id, never by name: a renamed column is found, a dropped and re-added one is not. Matching
goes on inside ROWs and through ARRAYs and MAPs. The plan is made once per file version; a file of the current version
passes through untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument, InvalidData, InvalidSchema
from lakebed.records import dataclass
from lakebed.schema.casts import cast_array, is_castable
from lakebed.schema.system_columns import KEY_ID_OFFSET, KEY_PREFIX, SYSTEM_IDS, key_field
from lakebed.schema.table_schema import TableSchema
from lakebed.types.arrow import to_arrow_schema, to_arrow_type
from lakebed.types.logical import (
    INTEGERS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    same_ignoring_nullability,
)

_Convert = Callable[[pa.Array], pa.Array]
_WIDTH = {TypeRoot.TINYINT: 1, TypeRoot.SMALLINT: 2, TypeRoot.INT: 4, TypeRoot.BIGINT: 8}


@dataclass(frozen=True, slots=True)
class _ColumnPlan:
    """Where one wanted column comes from: a column of the file (none: all null) and a conversion (none: as it is)."""

    wanted: DataField
    old: DataField | None
    index: int
    convert: _Convert | None

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        if self.old is None:
            return pa.nulls(batch.num_rows, to_arrow_type(self.wanted.type))
        values = batch.column(self.index)
        if self.convert is None:
            return values
        try:
            return self.convert(values)
        except InvalidData as error:
            raise InvalidData(
                f"column `{self.wanted.name}`, once `{self.old.name}` {self.old.type}: {error.message}", hint=error.hint
            ) from error


@dataclass(frozen=True, slots=True)
class Evolution:
    """The way from a file's columns to the wanted ones. Reads of one file ask `file_fields` of it, then `apply`."""

    wanted: tuple[DataField, ...]
    file_fields: tuple[DataField, ...]
    is_identity: bool
    _plans: tuple[_ColumnPlan, ...] = field(repr=False)
    _schema: pa.Schema = field(repr=False)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with exactly the columns `file_fields`, as the wanted columns. Costs nothing when nothing changed.

        A file that has none of the wanted columns is read as a batch without columns that still counts its rows.
        """
        if self.is_identity:
            return batch
        names = [column.name for column in self.file_fields]
        if batch.schema.names != names:
            raise InvalidArgument(
                f"batch has columns {batch.schema.names}, the file was to be read as {names}",
                hint="read exactly `file_fields`, in that order",
            )
        columns = [plan.column(batch) for plan in self._plans]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def old_field_of(self, new_name: str) -> DataField | None:
        """The file's column behind a wanted column; None when the file predates it."""
        return self._plan_of(new_name).old

    def old_name_of(self, new_name: str) -> str | None:
        """The name a wanted column has in the file; None when the file predates it."""
        old = self.old_field_of(new_name)
        return None if old is None else old.name

    def can_push(self, new_name: str) -> bool:
        """Whether a filter on a wanted column holds for the file's own values under the old name.

        True for an unchanged type and for integers that became wider; a literal beyond the old type's range must still
        be kept away from the file. Any other cast may map different old values to one new value, or reorder them.
        """
        plan = self._plan_of(new_name)
        if plan.old is None:
            return False
        old, new = plan.old.type, plan.wanted.type
        return same_ignoring_nullability(old, new) or _is_wider_integer(old, new)

    def _plan_of(self, new_name: str) -> _ColumnPlan:
        for plan in self._plans:
            if plan.wanted.name == new_name:
                return plan
        raise InvalidArgument(f"column `{new_name}` is not among the wanted ones", hint="ask for it in `map_fields`")


def map_fields(wanted: Sequence[DataField], file_schema: TableSchema) -> Evolution:
    """The plan that turns columns of a file written with `file_schema` into `wanted`.

    System columns are taken as they are; `_KEY_` columns follow the column they copy.
    """
    by_id = {column.id: column for column in file_schema.fields}
    places: dict[int, int] = {}
    file_fields: list[DataField] = []
    plans = []
    for column in wanted:
        old = _old_field(column, by_id)
        if old is None:
            plans.append(_ColumnPlan(column, None, -1, None))
            continue
        if old.id not in places:
            places[old.id] = len(file_fields)
            file_fields.append(old)
        plans.append(_ColumnPlan(column, old, places[old.id], _conversion(old.type, column.type, column.name)))
    is_identity = all(
        plan.old is not None and plan.index == place and _is_same(plan.old, plan.wanted)
        for place, plan in enumerate(plans)
    )
    return Evolution(tuple(wanted), tuple(file_fields), is_identity, tuple(plans), to_arrow_schema(wanted))


def _old_field(column: DataField, by_id: dict[int, DataField]) -> DataField | None:
    if column.id in SYSTEM_IDS:
        return column
    if column.id >= KEY_ID_OFFSET and column.name.startswith(KEY_PREFIX):
        origin = by_id.get(column.id - KEY_ID_OFFSET)
        return None if origin is None else key_field(origin)
    return by_id.get(column.id)


def _is_same(old: DataField, new: DataField) -> bool:
    return old.name == new.name and old.type == new.type


def _is_wider_integer(old: DataType, new: DataType) -> bool:
    if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
        return False
    return {old.root, new.root} <= INTEGERS and _WIDTH[old.root] <= _WIDTH[new.root]


def _conversion(old: DataType, new: DataType, column: str) -> _Convert | None:
    """How values of the old type become the new type; None when they are the same already."""
    match old, new:
        case RowType(), RowType():
            return _row_conversion(old, new, column)
        case ArrayType(), ArrayType():
            return _list_conversion(old, new, column)
        case ((MapType() | MultisetType()), (MapType() | MultisetType())) if type(old) is type(new):
            return _map_conversion(old, new, column)
    if same_ignoring_nullability(old, new):
        return None
    if not is_castable(old, new, explicit=True):
        raise InvalidSchema(
            f"column `{column}` was {old} and is {new} now, and no cast exists",
            hint="the schema was changed by another engine in a way that old files can not follow; rewrite them there",
        )
    return lambda values: cast_array(values, old, new)


def _row_conversion(old: RowType, new: RowType, column: str) -> _Convert | None:
    places = {member.id: place for place, member in enumerate(old.fields)}
    sources: list[tuple[int | None, _Convert | None]] = []
    for member in new.fields:
        place = places.get(member.id)
        inner = None if place is None else _conversion(old.fields[place].type, member.type, f"{column}.{member.name}")
        sources.append((place, inner))
    unchanged = len(old.fields) == len(new.fields) and all(
        place == index and inner is None and _is_same_member(old.fields[index], new.fields[index])
        for index, (place, inner) in enumerate(sources)
    )
    if unchanged:
        return None
    arrow = to_arrow_type(new)

    def convert(values: pa.Array) -> pa.Array:
        parts = values.flatten()
        children = []
        for (place, inner), child in zip(sources, arrow, strict=True):
            if place is None:
                children.append(pa.nulls(len(values), child.type))
            else:
                children.append(parts[place] if inner is None else inner(parts[place]))
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=values.is_null())

    return convert


def _is_same_member(old: DataField, new: DataField) -> bool:
    return old.name == new.name and old.type.nullable == new.type.nullable


def _list_conversion(old: ArrayType, new: ArrayType, column: str) -> _Convert | None:
    inner = _conversion(old.element, new.element, column)
    if inner is None and old.element.nullable == new.element.nullable:
        return None
    arrow = to_arrow_type(new)

    def convert(values: pa.Array) -> pa.Array:
        elements = values.flatten()
        elements = elements if inner is None else inner(elements)
        return pa.ListArray.from_arrays(_offsets(values), elements, type=arrow, mask=values.is_null())

    return convert


def _map_conversion(old: MapType | MultisetType, new: MapType | MultisetType, column: str) -> _Convert | None:
    (old_key, old_value), (new_key, new_value) = _key_and_value(old), _key_and_value(new)
    key_inner = _conversion(old_key, new_key, column)
    value_inner = _conversion(old_value, new_value, column)
    if key_inner is None and value_inner is None and old_value.nullable == new_value.nullable:
        return None
    arrow = to_arrow_type(new)

    def convert(values: pa.Array) -> pa.Array:
        entries = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
        keys, items = entries.flatten().flatten()
        keys = keys if key_inner is None else key_inner(keys)
        items = items if value_inner is None else value_inner(items)
        return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=arrow, mask=values.is_null())

    return convert


def _key_and_value(data_type: MapType | MultisetType) -> tuple[DataType, DataType]:
    if isinstance(data_type, MultisetType):
        return data_type.element, _COUNT
    return data_type.key, data_type.value


_COUNT = AtomicType(TypeRoot.INT, nullable=False)


def _offsets(lists: pa.Array) -> pa.Array:
    """Offsets of the lists into their flattened elements, where null lists have none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
