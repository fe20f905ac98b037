"""Rows that users hand over, in whatever form, as record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakebed.definition.python_rows import are_python_rows, nearest_form, python_columns
from lakebed.errors import InvalidData


def arrow_rows(data: Any, known: pa.Schema) -> Any:
    """The data, of plain Python as an Arrow table; `known` are the columns of the table that they are for."""
    if isinstance(data, list | tuple) and not data:
        return known.empty_table()
    return python_columns(data, known) if are_python_rows(data) else data


def to_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Record batches of pyarrow, pandas, polars data, or anything with the Arrow PyCapsule interface.

    Data without rows give one empty batch, so that its columns are checked all the same.
    """
    if _are_batches(data):
        yield from data
        return
    if isinstance(data, pa.RecordBatch):
        yield data
        return
    try:
        reader = _reader(data)
        is_empty = True
        for batch in reader:
            is_empty = False
            yield batch
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(data, error) from error
    if is_empty:
        yield pa.RecordBatch.from_pylist([], schema=reader.schema)


def is_spark_frame(data: Any) -> bool:
    """Whether it is a DataFrame of Spark's, which can be read as Arrow, too: all of it, through this process."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "sparkSession")


def reader_of(data: Any) -> pa.RecordBatchReader:
    """The data as a stream of batches, whose schema is known before any of them is read."""
    batches = [data] if isinstance(data, pa.RecordBatch) else data
    try:
        if _are_batches(batches):
            return pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        return _reader(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(data, error) from error


def _are_batches(data: Any) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(item, pa.RecordBatch) for item in data)


def _unreadable(data: Any, error: Exception) -> InvalidData:
    return InvalidData(
        f"data of type {_type_name(data)} can not be read as a table: {error}",
        hint="give columns with different names and, in each, values of one type",
    )


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise InvalidData(
        f"data of type {_type_name(data)} can not be written",
        hint=nearest_form(data)
        or "pass a pyarrow Table or RecordBatch, a pandas or polars DataFrame, any Arrow PyCapsule object, a dict of "
        "columns, or a list of dicts or dataclasses",
    )


def _type_name(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins.")
