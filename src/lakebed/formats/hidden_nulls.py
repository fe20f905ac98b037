"""Takes nulls out of NOT NULL members where only a null ROW around them hides them.

A ROW that is null has members of no meaning, and Arrow leaves them null. pyarrow's Parquet writer looks at the members
of a NOT NULL field alone and refuses them. Which nulls are allowed is checked before (`conform`), not here.
"""

from __future__ import annotations

import pyarrow as pa


def without_hidden_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values; members that are NOT NULL have arbitrary values instead of nulls below a null ROW."""
    if not _has_required_member(column.type):
        return column
    return pa.chunked_array([_rebuilt(chunk) for chunk in column.chunks], column.type)


def _has_required_member(arrow: pa.DataType) -> bool:
    if pa.types.is_map(arrow):
        return _has_required_member(arrow.key_type) or _has_required_member(arrow.item_type)
    parts = [arrow.field(i) for i in range(arrow.num_fields)] if pa.types.is_nested(arrow) else []
    if pa.types.is_struct(arrow) and not all(part.nullable for part in parts):
        return True
    return any(_has_required_member(part.type) for part in parts)


def _rebuilt(array: pa.Array) -> pa.Array:
    if pa.types.is_struct(array.type):
        fields = list(array.type)
        # `field` leaves the validity of the row itself out, unlike `flatten`.
        members = [_rebuilt(array.field(i)) for i in range(len(fields))]
        members = [
            member if field.nullable else _without_validity(member)
            for member, field in zip(members, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    if pa.types.is_map(array.type):
        fields = [array.type.key_field, array.type.item_field]
        entries = pa.StructArray.from_arrays([_rebuilt(array.keys), _rebuilt(array.items)], fields=fields)
        return _with_child(array, entries)
    if pa.types.is_list(array.type):
        return _with_child(array, _rebuilt(array.values))
    return array


def _with_child(array: pa.Array, child: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], offset=array.offset, children=[child])


def _without_validity(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays(
            [array.field(i) for i in range(array.type.num_fields)], fields=list(array.type)
        )
    if pa.types.is_map(array.type):
        fields = [array.type.key_field, array.type.item_field]
        children = [pa.StructArray.from_arrays([array.keys, array.items], fields=fields)]
    else:
        children = [array.values] if pa.types.is_list(array.type) else []
    own = array.buffers()[: array.type.num_buffers]
    return pa.Array.from_buffers(array.type, len(array), [None, *own[1:]], offset=array.offset, children=children)
