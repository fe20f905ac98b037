"""The door for those who know only Spark: `spark.read.format("lakebed")` and `df.write.format("lakebed")`.

A Python data source is told neither columns nor filters (a schema that the user gives is all it can prune by), so
`t.to_spark` and SQL read less; and it can not ask for its rows in an order, so `t.write_spark` makes fewer files.
Filters that Spark could push are not used: a DataFrame keeps them for later queries that did not ask for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lakebed.commit.written_files import WrittenFiles
from lakebed.errors import Unsupported
from lakebed.spark.leftovers import remove_leftovers
from lakebed.spark.place import open_table
from lakebed.spark.process import prepare_worker
from lakebed.spark.read import packed
from lakebed.spark.types import empty_rows, spark_schema, to_transfer, transfer_schema
from lakebed.spark.write import WriteTask, commit_job, made_by
from lakebed.table.bucket_modes import BucketMode, bucket_mode
from lakebed.table.bucket_state import BucketStates
from lakebed.table.change_read import ChangeRead
from lakebed.table.overwrite import Overwrite
from lakebed.table.read import SplitReader
from lakebed.table.splits import Split
from lakebed.table.table import Table
from lakebed.table.write_commit import WriteCommit
from lakebed.types.arrow import from_arrow_schema


class LakebedDataSource(DataSource):  # type: ignore[misc]
    """Tables by the format name `lakebed`."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)`."""
        return "lakebed"

    def schema(self) -> StructType:
        """The table's columns."""
        return spark_schema(from_arrow_schema(self._table().arrow_schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns that the schema names."""
        planned = self._table().plan_read([field.name for field in schema.fields], None)
        if isinstance(planned, ChangeRead):
            return _ChangeReader(planned)
        reader, plan = planned
        return _TableReader(reader, packed(plan.splits))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer of rows with that schema, in place of what is there or in addition to it."""
        table, row_kind = self._table(), self.options.get("rowkind") or self.options.get("row_kind")
        table.make_room(empty_rows(schema).schema, row_kind)
        return _TableWriter(table, overwrite, row_kind)

    def _table(self) -> Table:
        return open_table({key: value for key, value in self.options.items() if key not in ("rowkind", "row_kind")})


@dataclass
class _Splits(InputPartition):  # type: ignore[misc]
    """Splits that one task reads."""

    splits: list[Split]


class _TableReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, reader: SplitReader, groups: Sequence[list[Split]]) -> None:
        self._reader = reader
        self._groups = groups

    def partitions(self) -> Sequence[InputPartition]:
        return [_Splits(group) for group in self._groups] or [_Splits([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Splits)
        prepare_worker()
        schema = transfer_schema(self._reader.fields)
        for split in partition.splits:
            for batch in self._reader.read(split):
                yield to_transfer(batch, schema)


class _ChangeReader(DataSourceReader):  # type: ignore[misc]
    """Changes come in the order of their commits: one task reads them all."""

    def __init__(self, changes: ChangeRead) -> None:
        self._changes = changes

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        schema = transfer_schema(from_arrow_schema(self._changes.schema))
        for batch in self._changes.batches():
            yield to_transfer(batch, schema)


@dataclass
class _Made(WriterCommitMessage):  # type: ignore[misc]
    """What a task made: JSON, as everywhere."""

    answer: str


class _TableWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Every task writes its rows to files of all the buckets they belong to.

    Tasks number their rows from ranges that do not meet, so that of two rows of a key the same one wins everywhere.
    """

    def __init__(self, table: Table, overwrite: bool, row_kind: str | None) -> None:
        context, identity = table.plan_write()
        mode = bucket_mode(context.schema, context.options)
        if mode not in (BucketMode.FIXED, BucketMode.UNAWARE):
            raise Unsupported(
                f'table `{table.name}` chooses buckets by an index of its keys, which df.write.format("lakebed") '
                "can not share between tasks",
                hint="write with t.write_spark(df) or INSERT INTO, or create the table with a fixed number of buckets",
            )
        self._context = context
        self._identity = identity
        self._overwrite = True if overwrite else None
        states = None
        if mode is BucketMode.FIXED:
            states = BucketStates.load(context.stores, context.stores.snapshots.latest())
        prefixes = (context.new_data_file_prefix(), context.new_changelog_file_prefix())
        self._task = WriteTask(context, row_kind, self._overwrite, states, prefixes, numbers_apart=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Made(json.dumps(self._task.run(iterator)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        context = self._context
        fileio, written = WrittenFiles.watch(context.fileio)
        replaced = None if self._overwrite is None else Overwrite.parse(context, self._overwrite)
        commit = WriteCommit(
            context,
            overwrite=replaced,
            identity=self._identity,
            fileio=fileio,
            written=written,
            states=self._task.states,
        )
        answers = [made.answer for made in messages if isinstance(made, _Made)]
        commit_job(context, commit, written, self._task.prefixes, lambda: made_by(answers))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        remove_leftovers(self._context, self._task.prefixes)


__all__ = ["LakebedDataSource"]
