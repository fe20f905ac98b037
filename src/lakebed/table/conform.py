"""Turns whatever a user hands over into rows of the table, or says what does not fit.

Columns are matched by name. A missing or extra column, a null where none may be, a value that does not fit its type:
each is an error that names the column, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, did_you_mean
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_field, to_arrow_schema
from lakebed.types.logical import (
    BINARIES,
    MAX_LENGTH,
    STRING,
    STRINGS,
    AtomicType,
    DataField,
    TypeRoot,
    is_root,
    with_nullable,
)


def to_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Record batches of pyarrow, pandas, polars data, or anything with the Arrow PyCapsule interface."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif isinstance(data, pa.RecordBatchReader):
        yield from data
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    elif isinstance(data, list | tuple) and data and all(isinstance(item, pa.RecordBatch) for item in data):
        yield from data
    else:
        raise InvalidData(
            f"data of type {type(data).__module__}.{type(data).__qualname__} can not be written",
            hint="pass a pyarrow Table or RecordBatch, a pandas or polars DataFrame, or any Arrow PyCapsule object",
        )


@dataclass(frozen=True, slots=True)
class Conformer:
    """Fits batches to a table's columns. `extra` names a column that may come along (the row kind)."""

    table: str
    fields: tuple[DataField, ...]
    extra: str | None = None
    nullable_keys: bool = False

    def conform(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """The batch with the table's columns in their order and types, and the extra column."""
        self._check_names(batch.schema.names)
        columns = [self._column(field, batch.column(field.name)) for field in self.fields]
        rows = pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(self.fields))
        return rows, batch.column(self.extra) if self.extra else None

    def _check_names(self, given: Sequence[str]) -> None:
        wanted = [field.name for field in self.fields]
        twice = {name for name in given if given.count(name) > 1} if len(set(given)) < len(given) else set()
        if twice:
            raise InvalidData(
                f"data for table `{self.table}` has column `{min(twice)}` twice", hint="rename or drop one of them"
            )
        extra = [name for name in given if name not in wanted and name != self.extra]
        if extra:
            raise InvalidData(
                f"data for table `{self.table}` has column `{extra[0]}`, which the table has not",
                hint=f"{did_you_mean(extra[0], wanted)} Drop the column, or add it to the table first",
            )
        missing = [name for name in [*wanted, *([self.extra] if self.extra else [])] if name not in given]
        if missing:
            raise InvalidData(
                f"data for table `{self.table}` lacks column `{missing[0]}`",
                hint=f"add it (null where there is no value); the table's columns are {', '.join(wanted)}",
            )

    def _column(self, field: DataField, column: pa.Array) -> pa.Array:
        if not field.type.nullable and column.null_count:
            raise InvalidData(
                f"table `{self.table}`: column `{field.name}` is NOT NULL, the data has {column.null_count} nulls",
                hint="fill or drop those rows",
            )
        column = _cast(self.table, field, column)
        _check_length(self.table, field, column)
        if field.default_value is not None and column.null_count:
            column = column.fill_null(_default_of(field))
        return column


def _cast(table: str, field: DataField, column: pa.Array) -> pa.Array:
    wanted = to_arrow_field(field).type
    if column.type.equals(wanted):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    refusal = _refusal(column.type, wanted)
    if refusal is None:
        try:
            return pc.cast(column, wanted, safe=True)
        except pa.ArrowException as error:
            refusal = str(error).splitlines()[0]
    raise InvalidData(
        f"table `{table}`: column `{field.name}` is {field.type}, {column.type} in the data does not fit: {refusal}",
        hint=f"cast the column to {wanted} yourself, the way you want misfits handled",
    )


def _refusal(given: pa.DataType, wanted: pa.DataType) -> str | None:
    """Casts that Arrow would do but that guess at a meaning."""
    types = pa.types
    text = types.is_string(given) or types.is_large_string(given) or types.is_string_view(given)
    wants_text = types.is_string(wanted)
    if text != wants_text and not (types.is_null(given)):
        return "text is not converted silently"
    if types.is_timestamp(given) and types.is_timestamp(wanted) and (given.tz is None) != (wanted.tz is None):
        return "one is an instant, the other a wall-clock time"
    if types.is_temporal(given) != types.is_temporal(wanted) and not types.is_null(given):
        return "times and numbers are not converted silently"
    if types.is_boolean(given) != types.is_boolean(wanted) and not types.is_null(given):
        return "booleans and other values are not converted silently"
    return None


def _check_length(table: str, field: DataField, column: pa.Array) -> None:
    if not isinstance(field.type, AtomicType) or not is_root(field.type, STRINGS | BINARIES):
        return
    limit = field.type.length
    if field.type.root is TypeRoot.BLOB or limit == MAX_LENGTH:
        return
    lengths = pc.utf8_length(column) if is_root(field.type, STRINGS) else pc.binary_length(column)
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > limit:
        raise InvalidData(
            f"table `{table}`: column `{field.name}` is {field.type}, the data has a value of length {longest}",
            hint="shorten the values, or widen the column first",
        )


def _default_of(field: DataField) -> pa.Scalar:
    text = field.default_value or ""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        text = text[1:-1]
    return cast_array(pa.array([text], pa.string()), STRING, with_nullable(field.type, True))[0]
