"""A table as a Spark DataFrame: each part of it is read the way that is quickest.

Files that need no merge are read by Spark itself; the rest is merged in Arrow, in Spark's Python workers. A table that
is small enough is read here and now and travels as part of the query: no job is quicker than that, and Spark knows how
small it is when it plans joins.

The plan belongs to one snapshot. It is made from the columns and the filter of this call alone, so that nothing depends
on what else is asked of the DataFrame later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from lakebed.changes.read import ChangeRead
from lakebed.changes.splits import ChangeReader, ChangeSplit
from lakebed.definition.context import TableContext
from lakebed.errors import Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.fileio.together import answers_late, ask_together
from lakebed.lsm.sections import Section
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import VectorPlace
from lakebed.read.as_stored import is_as_stored, shows_what_is_stored
from lakebed.read.plan import ScanPlan
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.spark.filters import quoted, spark_condition
from lakebed.spark.hadoop import spark_prefix
from lakebed.spark.session import prepare_worker
from lakebed.spark.types import spark_schema
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot
from lakebed.types.transfer import to_transfer, transfer_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebed.table.table import Table


_Item = TypeVar("_Item")
_Group = TypeVar("_Group")

_LOCAL_BYTES = 2 << 20
LOCAL_ROWS = 50_000
"""What is read at once, as part of the plan: up to so many bytes of files, and rows in them."""

_TASK_BYTES = 64 << 20
_LEAST_TASK_BYTES = 8 << 20
"""Files of one task, about; small splits share one. Less than the second is not worth a task, not even an idle one."""
_FILE_BYTES = 256 << 10
"""What opening a file costs, in bytes that are read in the same time: thousands of small ones are much work."""

_LEAST_NATIVE_BYTES = 8 << 20
"""Size of files in a store, on average, from which on Spark's reader is as quick: it looks each up before it reads."""


@dataclass(frozen=True)
class HybridRead:
    """One planned read. `must_filter` tells whether rows that do not match must go, or may stay."""

    reader: SplitReader
    plan: ScanPlan
    must_filter: bool = True

    def frame(self, spark: SparkSession) -> DataFrame:
        """The DataFrame. Nothing is read yet, unless the table is small."""
        if _is_small(self.plan):
            return _local_frame(spark, self.reader, self.plan.splits)
        self._check_reachable()
        native, marked, merged = self._by_path(spark)
        frames = []
        if native:
            frames.append(self._native_frame(spark, native))
        if marked:
            frames.append(self._marked_frame(spark, marked))
        if merged:
            frames.append(self._merged_frame(spark, merged))
        if not frames:
            return _local_frame(spark, self.reader, ())
        return reduce(lambda left, right: left.unionAll(right), frames)

    # --- which way -----------------------------------------------------------------------------------------------

    def _by_path(self, spark: SparkSession) -> tuple[list[str], list[MarkedFile], list[Split]]:
        """Paths for Spark's reader, files with marked rows for it, and splits for ours."""
        predicate = self.reader.predicate
        may_be_native = self._is_native_table() and (
            predicate is None or not self.must_filter or spark_condition(predicate) is not None
        )
        prefix = self._prefix(spark) if may_be_native else None
        may_be_native = prefix is not None
        paths: list[str] = []
        marked: list[MarkedFile] = []
        merged: list[Split] = []
        for split in self.plan.splits:
            rest = [section for section in split.sections if not (may_be_native and self._is_native(split, section))]
            if rest:
                merged.append(replace(split, sections=tuple(rest)))
            for section in split.sections:
                for file in () if section in rest else section.files:
                    if not self.reader.is_excluded(split, file):
                        path = f"{prefix}{self._path(split, file)}"
                        vector = split.vectors.get(file.file_name)
                        if vector is None:
                            paths.append(path)
                        else:
                            marked.append(MarkedFile(path, file, vector))
        return paths, marked, merged

    def _path(self, split: Split, file: DataFile) -> str:
        return self.reader.context.data_file_path(split.partition, split.bucket, file.file_name)

    @cached_property
    def _marked_names(self) -> frozenset[str]:
        """Files with marked rows that Spark can read: it tells them by their sizes, which are looked at."""
        names = _names_that_spark_reads(self.plan.splits, self.reader.needed)
        found = [
            (file, self._path(split, file))
            for split in self.plan.splits
            for section in split.sections
            for file in section.files
            if file.file_name in split.vectors and file.file_name in names and is_as_stored(self.reader, split, section)
        ]
        fileio = self.reader.context.fileio
        sizes = ask_together(fileio, [partial(fileio.size, path) for _, path in found])
        return frozenset(
            file.file_name for (file, _), size in zip(found, sizes, strict=True) if size == file.size_bytes
        )

    def _is_native_table(self) -> bool:
        return shows_what_is_stored(self.reader) and all(_is_native_type(field.type) for field in self.reader.needed)

    def _prefix(self, spark: SparkSession) -> str | None:
        """What Spark finds the table's files by; None if it had better not look for them."""
        fileio = self.reader.context.fileio
        files = self.plan.files
        if answers_late(fileio) and sum(file.size_bytes for file in files) < _LEAST_NATIVE_BYTES * len(files):
            return None
        split = next((split for split in self.plan.splits if split.files), None)
        return None if split is None else spark_prefix(spark, fileio, self._path(split, split.files[0]))

    def _is_native(self, split: Split, section: Section) -> bool:
        """Whether Spark finds in these files just the rows that the table shows, under the same names and types."""
        return is_as_stored(self.reader, split, section) and all(
            file.file_name not in split.vectors or file.file_name in self._marked_names for file in section.files
        )

    def _check_reachable(self) -> None:
        if isinstance(self.reader.context.fileio, MemoryFileIO):
            raise Unsupported(
                f"table `{self.reader.context.name}` is in this process's memory, where Spark's workers can not see it",
                hint="keep the warehouse in a directory or an object store",
            )

    # --- the ways ------------------------------------------------------------------------------------------------

    def _native_frame(self, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        predicate = self.reader.predicate if self.must_filter else None
        condition = None if predicate is None else spark_condition(predicate)
        if condition is None:
            return spark.read.schema(spark_schema(self.reader.fields)).parquet(*paths)
        frame = spark.read.schema(spark_schema(self.reader.needed)).parquet(*paths)
        return frame.filter(condition).select(*(quoted(field.name) for field in self.reader.fields))

    def _marked_frame(self, spark: SparkSession, files: Sequence[MarkedFile]) -> DataFrame:
        predicate = self.reader.predicate if self.must_filter else None
        condition = None if predicate is None else spark_condition(predicate)
        needed = self.reader.fields if condition is None else self.reader.needed
        frame = _frame_of_marked(spark, self.reader.context, files, needed, condition)
        return frame.select(*(quoted(field.name) for field in self.reader.fields))

    def _merged_frame(self, spark: SparkSession, splits: Sequence[Split]) -> DataFrame:
        parallelism = _parallelism(spark)
        groups = packed(parts_of(splits, parallelism), parallelism)
        reader = replace(self.reader, use_threads=False, keeps_everything=False)
        return _frame_of_groups(spark, groups, reader.fields, reader.read_each)


def table_frame(
    spark: SparkSession,
    table: Table,
    columns: Sequence[str] | None = None,
    filter: Any = None,  # noqa: A002
    *,
    must_filter: bool = True,
) -> DataFrame:
    """The table's rows. With `must_filter` false the filter only helps to read less: the caller filters anyway."""
    if isinstance(table, DefinedTable):
        rows = table.to_arrow(columns, filter)
        return arrow_frame(spark, rows, from_arrow_schema(rows.schema))
    return planned_frame(spark, plan_read(table, columns, filter), must_filter=must_filter)


def planned_frame(
    spark: SparkSession, planned: tuple[SplitReader, ScanPlan] | ChangeRead, *, must_filter: bool = True
) -> DataFrame:
    """The rows of a read that is planned already."""
    if isinstance(planned, ChangeRead):
        return _changes_frame(spark, planned)
    return HybridRead(*planned, must_filter).frame(spark)


def is_small(planned: tuple[SplitReader, ScanPlan] | ChangeRead) -> bool:
    """Whether the rows of a planned read are few enough to be read at once, in this process."""
    return _is_small(planned.plan() if isinstance(planned, ChangeRead) else planned[1])


def _changes_frame(spark: SparkSession, changes: ChangeRead) -> DataFrame:
    """Changes in their order, read by several tasks: each reads a part of them, and the next task what follows it."""
    fields = from_arrow_schema(changes.schema)
    if _is_small(changes.plan()):
        return arrow_frame(spark, changes.to_table(), fields)
    groups = groups_of_changes(changes, _parallelism(spark))
    return _frame_of_groups(spark, groups, fields, lambda group: group.batches())


def groups_of_changes(changes: ChangeRead, parallelism: int = 1) -> list[ChangeRead]:
    """Changes in parts, one for each task, in their order."""
    groups = packed(changes.pieces(), parallelism, lambda piece: _work(piece.plan().files))
    return [ChangeRead.joined(group) for group in groups]


def changes_frame(spark: SparkSession, reader: ChangeReader, splits: Sequence[ChangeSplit]) -> DataFrame:
    """What commits have changed, as `t.changes` tells it, in its order, read by several tasks."""
    fields = from_arrow_schema(reader.schema)
    size_bytes, rows = _size([file for item in splits for file in item.split.files])
    if size_bytes <= _LOCAL_BYTES and rows <= LOCAL_ROWS:
        return arrow_frame(spark, reader.read_all(splits), fields)
    groups = packed(splits, _parallelism(spark), lambda item: _work(item.split.files))
    return _frame_of_groups(spark, groups, fields, lambda group: chain.from_iterable(map(reader.read, group)))


def _frame_of_groups(
    spark: SparkSession,
    groups: Sequence[_Group],
    fields: Sequence[DataField],
    read: Callable[[_Group], Iterable[pa.RecordBatch]],
) -> DataFrame:
    """What the groups hold, one task for each."""
    schema = transfer_schema(fields)

    def read_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in read(groups[number]):
                    yield to_transfer(rows, schema)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(read_groups, spark_schema(fields))


def _parallelism(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _local_frame(spark: SparkSession, reader: SplitReader, splits: Sequence[Split]) -> DataFrame:
    rows = pa.Table.from_batches(reader.read_all(splits), schema=reader.schema)
    return arrow_frame(spark, rows, reader.fields)


def arrow_frame(spark: SparkSession, rows: pa.Table, fields: Sequence[DataField]) -> DataFrame:
    """Rows that are here already, as a DataFrame."""
    schema = transfer_schema(fields)
    batches = [_copied(to_transfer(batch, schema)) for batch in rows.to_batches()]
    table = pa.Table.from_batches(batches, schema=schema) if batches else schema.empty_table()
    frame: DataFrame = spark.createDataFrame(table, schema=spark_schema(fields))
    return frame


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with nested columns in memory of their own: PySpark fails over nulls in parts of larger arrays."""
    if not any(pa.types.is_nested(column.type) for column in batch.columns):
        return batch
    everything = pa.array(np.arange(batch.num_rows))
    columns = [column.take(everything) if pa.types.is_nested(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_small(plan: ScanPlan) -> bool:
    size_bytes, rows = _size(plan.files)
    return size_bytes <= _LOCAL_BYTES and rows <= LOCAL_ROWS


def _size(files: Sequence[DataFile]) -> tuple[int, int]:
    return sum(file.size_bytes for file in files), sum(file.row_count for file in files)


def are_few(files: Sequence[DataFile]) -> bool:
    """Whether the rows of files are few enough to be read in this process, in whatever format they are written anew."""
    size_bytes, rows = _size(files)
    return size_bytes <= _LOCAL_BYTES // 4 and rows <= LOCAL_ROWS


def _work(files: Sequence[DataFile]) -> int:
    """How much it is to read files, in bytes: they count by their sizes and by their number."""
    return sum(file.size_bytes for file in files) + _FILE_BYTES * len(files)


def _work_of_split(split: Any) -> int:
    return _work(split.files)


def packed(
    items: Sequence[_Item], parallelism: int = 1, size_of: Callable[[_Item], int] = _work_of_split
) -> list[list[_Item]]:
    """Items in groups, one for each task, in their order: groups of about the same work, and some for everybody."""
    sizes = [size_of(item) for item in items]
    total_bytes = max(1, sum(sizes))
    tasks = max(-(-total_bytes // _TASK_BYTES), min(parallelism, total_bytes // _LEAST_TASK_BYTES), 1)
    if tasks > parallelism:
        tasks += -tasks % parallelism  # all of them are busy to the end
    groups: list[list[_Item]] = [[] for _ in range(tasks)]
    before_bytes = 0
    for item, size_bytes in zip(items, sizes, strict=True):
        middle = before_bytes + size_bytes // 2
        groups[min(middle * tasks // total_bytes, tasks - 1)].append(item)
        before_bytes += size_bytes
    return [group for group in groups if group]


def parts_of(splits: Sequence[Split], parallelism: int = 1, most_bytes: int = _TASK_BYTES) -> list[Split]:
    """The splits, in their order, those that are more than one task's work in parts: sections are read apart."""
    most_bytes = max(_LEAST_TASK_BYTES, min(most_bytes, sum(map(_work_of_split, splits)) // parallelism))
    parts: list[Split] = []
    for split in splits:
        sections: list[Section] = []
        size_bytes = 0
        for section in split.sections:
            work_bytes = _work(section.files)
            if sections and size_bytes + work_bytes > most_bytes:
                parts.append(split.with_sections(tuple(sections)))
                sections, size_bytes = [], 0
            sections.append(section)
            size_bytes += work_bytes
        parts.append(split.with_sections(tuple(sections)))
    return parts


def _is_native_type(data_type: DataType) -> bool:
    """Whether Spark reads such a column from Parquet files as we do."""
    match data_type:
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            return data_type.precision <= 6
        case AtomicType(root=root):
            return root not in (TypeRoot.TIME, TypeRoot.VARIANT, TypeRoot.BLOB)
        case ArrayType(element):
            return _is_native_type(element)
        case MapType(key, value):
            return _is_native_type(key) and _is_native_type(value)
        case RowType(fields):
            return all(_is_native_type(part.type) for part in fields)
        case MultisetType():
            return False


# --- Files of which some rows are deleted, read by Spark itself ---------------------------------------------------
#
# Spark tells the place of each row in its file. A small table, sent to all tasks, has one bit for each row of each
# file; rows whose bit is set are left out. Files are told apart by their sizes, the one thing that Spark knows of a
# file as a number: joining by a name costs more than all the rest. So marked files that have the same size are not
# read here.


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


def _names_that_spark_reads(splits: Iterable[Split], fields: Iterable[DataField]) -> frozenset[str]:
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


def _frame_of_marked(
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


__all__ = [
    "LOCAL_ROWS",
    "MOST_ROWS",
    "HybridRead",
    "MarkedFile",
    "are_few",
    "arrow_frame",
    "changes_frame",
    "groups_of_changes",
    "is_small",
    "packed",
    "parts_of",
    "planned_frame",
    "table_frame",
]
