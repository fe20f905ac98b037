"""Rows and columns as plain Python has them: dicts of columns, lists of dicts, of dataclasses or of pydantic models.

    [{"id": 1, "state": "new"}, {"id": 2}]      {"id": [1, 2], "state": ["new", None]}      [Order(1, "new"), Order(2)]

A key that a row lacks is null there. Types of values are found by Arrow and then fitted to the table like those of any
other data; a class tells the columns of a new table by its annotations.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidData, InvalidSchema
from lakebed.types.arrow import as_data_type, from_arrow_schema, to_arrow_type
from lakebed.types.logical import DataField

_PLAIN: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.time: pa.time32("ms"),
}


# --- rows ------------------------------------------------------------------------------------------------------------


def are_python_rows(data: Any) -> bool:
    """Whether the data are columns or rows of plain Python."""
    if isinstance(data, Mapping):
        return bool(data) and all(_is_column(values) for values in data.values())
    return isinstance(data, list | tuple) and bool(data) and all(_is_row(row) for row in data)


def _is_column(values: Any) -> bool:
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return is_sequence or isinstance(values, pa.Array | pa.ChunkedArray) or hasattr(values, "__array__")


def _is_row(row: Any) -> bool:
    return isinstance(row, Mapping) or _is_record(row)


def _is_record(row: Any) -> bool:
    """A dataclass or a pydantic model, with values; a field of a schema is no row."""
    return not isinstance(row, type | DataField) and (dataclasses.is_dataclass(row) or hasattr(row, "model_dump"))


def nearest_form(data: Any) -> str | None:
    """What to write for data that are nearly rows: one row without its list, or rows without the names of columns."""
    if _is_row(data):
        return "a row is written as a list of one: [row]"
    if isinstance(data, list | tuple) and data and all(isinstance(row, list | tuple) for row in data):
        return "name the columns: [dict(zip(t.columns, row)) for row in rows], or pandas.DataFrame(rows, columns=[...])"
    return None


def python_columns(data: Any, known: pa.Schema | None = None) -> pa.Table:
    """The rows as an Arrow table; `known` are the columns of the table that they are for."""
    columns = data if isinstance(data, Mapping) else _columns_of_rows([_as_mapping(row) for row in data])
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InvalidData(f"column name {name!r} is no text", hint="name columns by text")
        kind = known.field(name).type if known is not None and name in known.names else None
        arrays[name] = _array(name, values, kind)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise InvalidData(f"columns have different numbers of rows: {told}", hint="give every column the same length")
    return pa.table(arrays)


def _as_mapping(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "model_dump"):
        found: Mapping[str, Any] = row.model_dump()
        return found
    return dataclasses.asdict(row)


def _columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _array(name: str, values: Any, kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if kind is not None and pa.types.is_map(kind):
            return pa.array([None if each is None else _entries(each) for each in values], kind)
        found = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f"column `{name}`: {error}", hint="give a column values of one type") from error
    return pa.nulls(len(found), kind) if kind is not None and pa.types.is_null(found.type) else found


def _entries(value: Any) -> Any:
    return list(value.items()) if isinstance(value, Mapping) else value


# --- columns of a class ----------------------------------------------------------------------------------------------


def is_record_type(given: Any) -> bool:
    """Whether it is a dataclass or the class of a pydantic model."""
    return isinstance(given, type) and (dataclasses.is_dataclass(given) or hasattr(given, "model_fields"))


def fields_of_type(given: type) -> tuple[DataField, ...]:
    """The columns that a class tells by its annotations: what may be None is nullable."""
    return from_arrow_schema(pa.schema(_members(given)))


def fields_of_rows(data: Any) -> tuple[DataField, ...] | None:
    """The columns of rows, if they are instances of one class that tells them."""
    if isinstance(data, list | tuple) and data and _is_record(data[0]) and len({type(row) for row in data}) == 1:
        return fields_of_type(type(data[0]))
    return None


def _members(given: type) -> list[pa.Field]:
    names = [field.name for field in dataclasses.fields(given)] if dataclasses.is_dataclass(given) else None
    told = typing.get_type_hints(given, include_extras=True)
    models: Mapping[str, Any] = getattr(given, "model_fields", {})
    return [_member(given, name, told[name]) for name in (models if names is None else names)]


def _member(owner: type, name: str, annotation: Any) -> pa.Field:
    kind, nullable = _annotated(annotation, f"{owner.__name__}.{name}")
    return pa.field(name, kind, nullable=nullable)


def _annotated(annotation: Any, column: str) -> tuple[pa.DataType, bool]:
    """The type that an annotation stands for, and whether it may be null."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        said = [extra for extra in arguments[1:] if isinstance(extra, str | pa.DataType)]
        nullable = _is_optional(arguments[0])
        return (to_arrow_type(as_data_type(said[0], column)), nullable) if said else _annotated(arguments[0], column)
    if origin in (typing.Union, types.UnionType):
        present = [each for each in arguments if each is not type(None)]
        if len(present) == 1:
            return _annotated(present[0], column)[0], len(present) < len(arguments)
    if origin in (list, Sequence) and len(arguments) == 1:
        kind, nullable = _annotated(arguments[0], column)
        return pa.list_(pa.field("element", kind, nullable=nullable)), False
    if origin in (dict, Mapping) and len(arguments) == 2:
        key, (value, nullable) = _annotated(arguments[0], column)[0], _annotated(arguments[1], column)
        return pa.map_(key, pa.field("value", value, nullable=nullable)), False
    if origin is typing.Literal and all(isinstance(each, str) for each in arguments):
        return pa.string(), False
    if is_record_type(annotation):
        return pa.struct(_members(annotation)), False
    found = _PLAIN.get(annotation)
    if found is None:
        raise InvalidSchema(
            f"`{column}` is annotated {annotation}, which stands for no column type",
            hint='say the type beside it: Annotated[Decimal, "DECIMAL(10, 2)"]',
        )
    return found, False


def _is_optional(annotation: Any) -> bool:
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return is_union and type(None) in typing.get_args(annotation)


__all__ = ["are_python_rows", "fields_of_rows", "fields_of_type", "is_record_type", "python_columns"]
