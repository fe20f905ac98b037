"""Files of which some rows are deleted, read by Spark itself.

Spark tells the place of each row in its file. A small table, sent to all tasks, has one bit for each row of each file;
rows whose bit is set are left out. Files are told apart by their sizes, the one thing that Spark knows of a file as a
number: joining by a name costs more than all the rest. So marked files that have the same size are not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import VectorPlace
from lakebed.spark.filters import quoted
from lakebed.spark.types import spark_schema
from lakebed.table.context import TableContext
from lakebed.table.splits import Split
from lakebed.types.logical import DataField

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_ROWS = 1 << 28
"""Rows of marked files in one read: their bits travel to every task."""

_FILE, _ROW, _GONE = "_lakebed_file", "_lakebed_row", "_lakebed_gone"
_OF_SPARK = "_metadata"
"""The column in which Spark tells where a row is from, unless the table has one of that name."""


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file, and where the vector of its deleted rows lies."""

    path: str
    file: DataFile
    vector: VectorPlace


def names_that_spark_reads(splits: Iterable[Split], fields: Iterable[DataField]) -> frozenset[str]:
    """Names of the marked files that Spark can read."""
    if any(field.name.lower() == _OF_SPARK for field in fields):
        return frozenset()
    marked = [file for split in splits for file in split.files if file.file_name in split.vectors]
    sizes = Counter(file.size_bytes for file in marked)
    found: set[str] = set()
    rows = 0
    for file in marked:
        rows += file.row_count
        if rows > MOST_ROWS:
            break
        if sizes[file.size_bytes] == 1:
            found.add(file.file_name)
    return frozenset(found)


def is_as_described(context: TableContext, path: str, file: DataFile) -> bool:
    """Whether the file has the size by which it is recognised."""
    return context.fileio.size(path) == file.size_bytes


def marked_frame(
    spark: SparkSession,
    context: TableContext,
    files: Sequence[MarkedFile],
    needed: Sequence[DataField],
    condition: Column | None,
) -> DataFrame:
    """Rows of these files that are not deleted and match, with these columns."""
    columns = [quoted(field.name) for field in needed]
    frame = spark.read.schema(spark_schema(needed)).parquet(*(marked.path for marked in files))
    frame = frame.select(
        *columns,
        sf.col(f"{_OF_SPARK}.file_size").alias(_FILE),
        sf.col(f"{_OF_SPARK}.row_index").alias(_ROW),
    )
    if condition is not None:
        frame = frame.filter(condition)
    bits = sf.broadcast(spark.createDataFrame(_bits(context, files)))
    word = sf.get(sf.col(_GONE), sf.shiftright(sf.col(_ROW), 6).cast("int"))
    is_gone = sf.bit_get(word, sf.col(_ROW).bitwiseAND(sf.lit(63)).cast("int"))
    return frame.join(bits, _FILE).filter(is_gone == 0).select(*columns)


def _bits(context: TableContext, files: Sequence[MarkedFile]) -> pa.Table:
    """One row for each file: its size, and 64 rows in each number."""
    words = []
    for marked in files:
        is_gone = np.zeros(-(-marked.file.row_count // 64) * 64, np.bool_)
        gone = context.vector_store.read(marked.vector)
        is_gone[gone[gone < marked.file.row_count]] = True
        words.append(np.packbits(is_gone, bitorder="little").view("<i8"))
    sizes = pa.array([marked.file.size_bytes for marked in files], pa.int64())
    return pa.table({_FILE: sizes, _GONE: pa.array(words, pa.list_(pa.int64()))})


__all__ = ["MOST_ROWS", "MarkedFile", "is_as_described", "marked_frame", "names_that_spark_reads"]
