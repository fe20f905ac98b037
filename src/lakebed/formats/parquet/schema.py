"""Columns as a Parquet schema: Arrow fields that carry the field ids which other readers may look for.

pyarrow derives everything else (physical type, annotation, repetition, list and map group names) from the Arrow type;
bytes stand for timestamps that become INT96 (see `int96`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.parquet.int96 import RAW
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType

_ID_KEY = "PARQUET:field_id"
_PART_BASE = 536870911
_PARTS_PER_COLUMN = 1024
_MAX_ID = 2147483647


def parquet_schema(fields: Sequence[DataField]) -> pa.Schema:
    """The Arrow schema to write a file with."""
    return pa.schema([_field(field) for field in fields])


def leaf_columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Paths and types of the leaf columns that a schema turns into in Parquet, in their order."""
    return [leaf for field in schema for leaf in _leaves(field.name, field.type)]


def _leaves(path: str, arrow: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_map(arrow):
        yield from _leaves(f"{path}.key_value.key", arrow.key_type)
        yield from _leaves(f"{path}.key_value.value", arrow.item_type)
    elif pa.types.is_list(arrow):
        yield from _leaves(f"{path}.list.element", arrow.value_type)
    elif pa.types.is_struct(arrow):
        for child in arrow:
            yield from _leaves(f"{path}.{child.name}", child.type)
    else:
        yield path, arrow


def _field(field: DataField) -> pa.Field:
    return _with_id(field.name, _type(field.type, field.id, 0), field.type.nullable, field.id)


def _with_id(name: str, arrow: pa.DataType, nullable: bool, field_id: int) -> pa.Field:
    # Ids are 32 bits wide in Parquet; a part of a column with an enormous id goes without one.
    metadata = {_ID_KEY: str(field_id)} if 0 <= field_id <= _MAX_ID else None
    return pa.field(name, arrow, nullable=nullable, metadata=metadata)


def _type(data_type: DataType, column_id: int, depth: int) -> pa.DataType:
    """`column_id` is that of the nearest enclosing column or ROW member, `depth` counts the parts below it."""

    def part(name: str, part_type: DataType, *, nullable: bool, is_key: bool = False) -> pa.Field:
        distance = _PARTS_PER_COLUMN * column_id + depth + 1
        part_id = _PART_BASE - distance if is_key else _PART_BASE + distance
        return _with_id(name, _type(part_type, column_id, depth + 1), nullable, part_id)

    match data_type:
        case AtomicType():
            return RAW if data_type.root in lt.TIMESTAMPS and data_type.precision > 6 else to_arrow_type(data_type)
        case ArrayType(element):
            return pa.list_(part("element", element, nullable=element.nullable))
        case MapType(key, value):
            return pa.map_(part("key", key, nullable=False, is_key=True), part("value", value, nullable=value.nullable))
        case MultisetType(element):
            return pa.map_(part("key", element, nullable=False, is_key=True), part("value", lt.INT, nullable=False))
        case RowType(members):
            return pa.struct([_field(member) for member in members])


# --- Which columns of a Parquet file are worth a dictionary --------------------------------------------------------
#
# A dictionary of values that hardly repeat costs time twice, to build and to give up, and leaves a larger file; keys,
# sequence numbers and measures are of that kind. A look at the first rows tells them apart. Decimals of more than 18
# digits never get one: Java looks up the shortest form of a literal in the dictionary, where all values have the full
# length, and leaves out row groups in which it does not find it.

_SAMPLE_ROWS = 32 * 1024
_SAMPLE_SHARE = 8
"""One row in so many is looked at: to count different values takes longer than to write them, once they are many."""
_MIN_ROWS = 4 * 1024
"""Too few rows to judge, and too few for it to matter."""

_MAX_INTEGER_DIGITS = 18
"""Decimals of more digits are byte arrays in Parquet."""

_UNIQUE_SHARE = 0.9
"""With the largest sample this means about 160000 different values: more than a dictionary page holds. With a smaller
one, that a value of the file comes less than twice."""


def dictionary_columns(rows: pa.Table) -> list[str]:
    """Paths of the leaf columns to encode with a dictionary, judged by the first rows."""
    sample = rows.slice(0, max(_MIN_ROWS, min(_SAMPLE_ROWS, rows.num_rows // _SAMPLE_SHARE)))
    repeating = [field for column, field in zip(sample.columns, rows.schema, strict=True) if _repeats(column)]
    return [path for path, arrow in leaf_columns(pa.schema(repeating)) if not _is_long_decimal(arrow)]


def _repeats(column: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(column.type) or len(column) < _MIN_ROWS:
        return True
    values = len(column) - column.null_count
    return bool(pc.count_distinct(column, mode="only_valid").as_py() <= _UNIQUE_SHARE * values)


def _is_long_decimal(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow) and arrow.precision > _MAX_INTEGER_DIGITS)
