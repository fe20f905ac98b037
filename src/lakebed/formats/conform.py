"""Fits Arrow data to the types of a list of columns, on the way into a file and on the way out of it.

Other writers choose other flavours of one type (INT96 timestamps, unnamed list elements, decimals of several widths).
What is the same thing in another flavour is converted; what is another thing is refused, so that a file that does not
belong to its schema never turns into plausible wrong values. Format specifics do not belong here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import CorruptFile, InvalidData, Unsupported
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField


@contextmanager
def as_corrupt(path: str) -> Iterator[None]:
    """Turns what pyarrow raises on bytes that make no sense into CorruptFile.

    An OSError that carries an errno comes from the file system, not from the content, and passes through.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise corrupt(path, str(error)) from error


def corrupt(path: str, reason: str) -> CorruptFile:
    """The error for a file whose bytes make no sense."""
    return CorruptFile(
        f"data file `{path}` can not be read: {reason}",
        hint="restore the file from a copy, or roll the table back to a snapshot that does not use it",
    )


def check_rows(found: int, promised: int, path: str) -> None:
    """Refuses a file in which the content ends before, or after, the place its footer names."""
    if found != promised:
        raise corrupt(path, f"its content reaches row {found}, its footer says {promised}")


def to_write(batch: pa.RecordBatch | pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """The rows as a table of exactly the Arrow types of `fields`; nulls where there must be none are refused."""
    schema = to_arrow_schema(fields)
    if list(batch.schema.names) != schema.names:
        raise InvalidData(
            f"rows have the columns {batch.schema.names}, the file has {schema.names}",
            hint="hand over the file's columns in the file's order",
        )
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        if column.type != field.type:
            column = _cast_to_write(column, field)
        _refuse_nulls(column, field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema) if columns else pa.Table.from_batches([], schema)


def _cast_to_write(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise InvalidData(
            f"column `{field.name}` of type {column.type} does not fit {field.type}: {error}",
            hint="cast the column to the table's type before writing",
        ) from error


def _refuse_nulls(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> None:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if any(_has_forbidden_null(chunk, field) for chunk in chunks):
        raise InvalidData(
            f"column `{field.name}` contains null where its type {field.type} "
            f"{'' if field.nullable else 'NOT NULL '}allows none",
            hint="fill the nulls, or make the column nullable",
        )


def _has_forbidden_null(array: pa.Array, field: pa.Field) -> bool:
    if not field.nullable and array.null_count:
        return True
    if not _declares_not_null(field.type):
        return False
    if pa.types.is_struct(field.type):
        # Members of a row that is null itself do not count, hence valid rows only.
        present = array.drop_null() if array.null_count else array
        return any(
            _has_forbidden_null(member, child) for member, child in zip(present.flatten(), field.type, strict=True)
        )
    if pa.types.is_map(field.type):
        entries = map_entries(array).flatten()
        return any(
            _has_forbidden_null(entries.field(i), child)
            for i, child in enumerate((field.type.key_field, field.type.item_field))
        )
    return _has_forbidden_null(array.flatten(), field.type.value_field)


def _declares_not_null(arrow: pa.DataType) -> bool:
    """Whether a part of the type must not be null (map keys always must not)."""
    if pa.types.is_map(arrow):
        return True
    return pa.types.is_nested(arrow) and any(
        not child.nullable or _declares_not_null(child.type)
        for child in (arrow.field(i) for i in range(arrow.num_fields))
    )


def map_entries(array: pa.MapArray) -> pa.ListArray:
    """A map column as a list column of its entries; slices and garbage beneath nulls are taken care of."""
    return array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))


def to_read(batch: pa.RecordBatch | pa.Table, fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """One chunk of a file as the columns `fields` in their order and Arrow types; absent ones are null."""
    relaxed = _relaxed_schema(tuple(fields))
    if isinstance(batch, pa.RecordBatch) and batch.num_columns and batch.schema == relaxed:
        return pa.RecordBatch.from_arrays(batch.columns, schema=relaxed)  # without what the file says of its columns
    present = set(batch.schema.names)
    columns = []
    for field in relaxed:
        if field.name in present:
            columns.append(_flavour(_only_chunk(batch.column(field.name)), field, path))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=relaxed)


@lru_cache
def _relaxed_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """Arrow fields that admit null. Files may hold null where this schema says NOT NULL (a column they lack, or a
    careless writer): the engine above decides what that means."""
    return pa.schema([field.with_nullable(True) for field in to_arrow_schema(fields)])


def _only_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _flavour(array: pa.Array, field: pa.Field, path: str) -> pa.Array:
    if array.type == field.type:
        return array
    if not _same_kind(array.type, field.type):
        raise _misfit(array, field, path, "the types have nothing in common")
    try:
        cast = pc.cast(array, options=pc.CastOptions(_all_nullable(field.type), allow_time_truncate=True))
    except pa.ArrowException as error:
        if "out of bounds timestamp" in str(error):
            raise Unsupported(
                f"column `{field.name}` of data file `{path}` has a timestamp that {field.type} can not hold: {error}",
                hint="only the years 1677 to 2262 can be read with nanoseconds; declare precision 6 for others",
            ) from error
        raise _misfit(array, field, path, str(error)) from error
    return cast if cast.type == field.type else pa.array(_Relabelled(cast, field.type))


@dataclass(frozen=True, slots=True)
class _Relabelled:
    """An array under a type that differs in nullability only.

    Arrow refuses to cast to NOT NULL members as soon as it sees a null, even one inside a row that is null itself.
    """

    array: pa.Array
    type: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.type.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]


def _all_nullable(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_map(arrow):
        return pa.map_(_all_nullable(arrow.key_type), _all_nullable(arrow.item_type))
    if pa.types.is_list(arrow):
        return pa.list_(pa.field(arrow.value_field.name, _all_nullable(arrow.value_type)))
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(child.name, _all_nullable(child.type)) for child in arrow])
    return arrow


def _misfit(array: pa.Array, field: pa.Field, path: str, reason: str) -> CorruptFile:
    return CorruptFile(
        f"column `{field.name}` of data file `{path}` is {array.type}, its schema says {field.type}: {reason}",
        hint="the file does not belong to the schema its manifest entry names; restore it, or roll back past it",
    )


def _same_kind(stored: pa.DataType, wanted: pa.DataType) -> bool:
    kind = _kind(stored)
    if kind != _kind(wanted):
        return False
    if kind == "row":
        members = {child.name: child.type for child in wanted}
        return all(_same_kind(child.type, members[child.name]) for child in stored if child.name in members)
    if kind == "map":
        return _same_kind(stored.key_type, wanted.key_type) and _same_kind(stored.item_type, wanted.item_type)
    return kind != "list" or _same_kind(stored.value_type, wanted.value_type)


def _kind(arrow: pa.DataType) -> str:
    """Types of one kind are flavours of each other. Days and times of day are integers in some formats."""
    checks = {
        "integer": (pa.types.is_signed_integer, pa.types.is_date32, pa.types.is_time32),
        "float": (pa.types.is_floating,),
        "decimal": (pa.types.is_decimal,),
        "bytes": (pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary),
        "timestamp": (pa.types.is_timestamp,),
        "row": (pa.types.is_struct,),
        "map": (pa.types.is_map,),
        "list": (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    }
    return next((kind for kind, tests in checks.items() if any(test(arrow) for test in tests)), str(arrow))
