"""Which columns of a Parquet file are worth a dictionary.

A dictionary of values that hardly repeat costs time twice, to build and to give up, and leaves a larger file; keys,
sequence numbers and measures are of that kind. A look at the first rows tells them apart. Decimals of more than 18
digits never get one: Java looks up the shortest form of a literal in the dictionary, where all values have the full
length, and leaves out row groups in which it does not find it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.parquet.schema import leaf_columns

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
