"""Rows of newer files for a stream that began before the table's columns changed.

Columns are matched by their ids, so added ones are left out, dropped ones are null and renamed ones go on. A column
whose type changed is read as the newer type and must fit into the old one: a read under the old schema would cut values
short, which is right for rows that are older than the change and wrong for those that are newer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData
from lakebed.schema.table_schema import TableSchema
from lakebed.table.stream_scan import StreamScan
from lakebed.table.stream_splits import ChangeSplit
from lakebed.types.logical import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    same_ignoring_nullability,
)

_ANEW = "make the DataFrame anew and start the query again with its checkpoint: it goes on with the columns of today"


class EvolvingScan:
    """Reads pieces of one table for one projection, whatever versions of the schema their files have."""

    def __init__(self, scan: StreamScan, columns: tuple[str, ...]) -> None:
        self._scan = scan
        self._columns = columns
        self._scans: dict[int, StreamScan] = {}

    def read(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """Rows of a piece; columns that have changed since are of their newer types."""
        newest = max(file.schema_id for file in split.split.files)
        if newest <= self._scan.context.schema.id:
            return self._scan.read_split(split)
        if newest not in self._scans:
            self._scans[newest] = self._with_types_of(self._scan.context.schemas.get(newest))
        return self._scans[newest].read_split(split)

    def _with_types_of(self, newer: TableSchema) -> StreamScan:
        context = self._scan.context
        types = {field.id: field.type for field in newer.fields}
        fields = []
        for field in context.schema.fields:
            new = types.get(field.id, field.type)
            if isinstance(new, AtomicType) and isinstance(field.type, AtomicType):
                fields.append(replace(field, type=new))
                continue
            if not _has_same_leaves(field.type, new):
                raise InvalidData(
                    f"column `{field.name}` of table `{context.name}` was {field.type} when the stream began, and is "
                    f"{new} now",
                    hint=_ANEW,
                )
            fields.append(field)
        schema = replace(context.schema, fields=tuple(fields))
        return StreamScan(context.with_schema(schema, context.options), self._columns)


def _has_same_leaves(old: DataType, new: DataType) -> bool:
    """Whether no value inside is of another type: members may come and go."""
    match old, new:
        case RowType(), RowType():
            types = {member.id: member.type for member in new.fields}
            return all(_has_same_leaves(member.type, types.get(member.id, member.type)) for member in old.fields)
        case ArrayType(), ArrayType():
            return _has_same_leaves(old.element, new.element)
        case MultisetType(), MultisetType():
            return _has_same_leaves(old.element, new.element)
        case MapType(), MapType():
            return _has_same_leaves(old.key, new.key) and _has_same_leaves(old.value, new.value)
    return same_ignoring_nullability(old, new)


def fitted(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column in the type that Spark expects. Spark's times are coarser; any other difference must lose nothing."""
    if column.type == field.type:
        return column
    is_coarser = any(kind(column.type) and kind(field.type) for kind in (pa.types.is_timestamp, pa.types.is_time))
    if is_coarser or pa.types.is_nested(field.type):
        return column.cast(field.type, safe=False)
    try:
        cast = column.cast(field.type)
        is_exact = _is_same(cast.cast(column.type), column)
    except pa.ArrowException:
        is_exact = False
    if not is_exact:
        raise InvalidData(
            f"column `{field.name}` was {field.type} when the stream began, and holds {column.type} values now that do "
            "not fit",
            hint=_ANEW,
        )
    return cast


def _is_same(back: pa.Array, column: pa.Array) -> bool:
    same = pc.equal(back, column)
    if pa.types.is_floating(column.type):
        same = pc.or_(same, pc.is_nan(column))
    return bool(pc.all(same, min_count=0).as_py())


__all__ = ["EvolvingScan", "fitted"]
