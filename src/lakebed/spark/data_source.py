"""The door for those who know only Spark: `format("lakebed")` of `spark.read`, `readStream`, `df.write`, `writeStream`.

A Python data source is told neither columns nor filters (a schema that the user gives is all it can prune by), so
`t.to_spark` and SQL read less; and it can not ask for its rows in an order, so `t.write_spark` makes fewer files.
Filters that Spark could push are not used: a DataFrame keeps them for later queries that did not ask for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lakebed.catalog.base import Catalog
from lakebed.catalog.names import DEFAULT_DATABASE, TableName, parse_table_name
from lakebed.catalog.registry import open_catalog
from lakebed.changes.read import ChangeRead
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.options import (
    DYNAMIC_PARTITION_OVERWRITE,
    READ_CHANGE_FEED,
    READ_CHANGELOG,
    SCAN_SNAPSHOT_ID,
    SCAN_TIMESTAMP,
    SCAN_VERSION,
    WRITE_MERGE_SCHEMA,
    Options,
)
from lakebed.options.table import OPTIONS, find_option
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.spark.read import groups_of_changes, packed, parts_of
from lakebed.spark.session import prepare_worker
from lakebed.spark.stream.columns import with_feed
from lakebed.spark.stream.source import stream_columns, stream_reader
from lakebed.spark.stream.writer_format import StreamTableWriter
from lakebed.spark.tasks import made_by, message_paths, remove_leftovers
from lakebed.spark.types import empty_rows, spark_schema
from lakebed.spark.write import StagedSize, StagedWrite, WriteTask, commit_job
from lakebed.table.alter import make_room
from lakebed.table.plans import plan_read, plan_write
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.write.commit import WriteCommit
from lakebed.write.sequence import BucketStates


class LakebedDataSource(DataSource):  # type: ignore[misc]
    """Tables by the format name `lakebed`."""

    is_bound: ClassVar[bool] = False
    """Whether the table is inside, and need not be named."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)`."""
        return "lakebed"

    def schema(self) -> StructType:
        """The table's columns, and those that options of a stream ask for: it is not known yet whether it is one."""
        if "provider" in self.options and not self.is_bound:
            # Told for CREATE TABLE alone. Spark would make the table, and forget what the options say of it.
            raise Unsupported(
                "CREATE TABLE ... USING lakebed makes a table of Spark's own catalog, which Spark could not read",
                hint="make the table with lake.sql('CREATE TABLE ...'); lake.attach(spark) gives tables of a lake "
                "names in Spark's catalog",
            )
        table, options = self._found()
        try:
            columns = spark_schema(from_arrow_schema(self._table().arrow_schema))
        except (NotFound, InvalidArgument):
            # There is no such state to read, but a stream may begin at a time before the first snapshot.
            columns = stream_columns(table, options)
        return with_feed(columns, Options(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """A reader of the table as a stream."""
        return stream_reader(*self._found(), schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns that the schema names."""
        if Options(self._found()[1])[READ_CHANGE_FEED]:
            raise Unsupported(
                f"`{READ_CHANGE_FEED.key}` is for streams",
                hint="use spark.readStream, or read changes with t.changes(since=..., until=...)",
            )
        planned = plan_read(self._table(), [field.name for field in schema.fields], None)
        if isinstance(planned, ChangeRead):
            return _ChangeReader(planned)
        reader, plan = planned
        return _TableReader(reader, packed(parts_of(plan.splits)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer of rows with that schema, in place of what is there or in addition to it."""
        table, row_kind = self._table(), self.options.get("rowkind") or self.options.get("row_kind")
        make_room(table, empty_rows(schema).schema, row_kind)
        return _TableWriter(table, overwrite, row_kind)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """A writer of the micro-batches of a stream."""
        row_kind = self.options.get("rowkind") or self.options.get("row_kind")
        return StreamTableWriter(self._table(), schema, overwrite, row_kind)

    def _table(self) -> Table:
        table, options = self._found()
        return table.with_options(options) if options else table

    def _found(self) -> tuple[Table, dict[str, str]]:
        return _find_table({key: value for key, value in self.options.items() if key not in ("rowkind", "row_kind")})


def bound_source(catalog: Catalog, table: TableName, name: str) -> type[LakebedDataSource]:
    """A data source of one table, by a name of its own. It travels with all that it needs, keys of the store included:
    inside of what is pickled, not in options, which Spark shows."""

    class BoundDataSource(LakebedDataSource):
        is_bound = True

        @classmethod
        def name(cls) -> str:
            return name

        def _found(self) -> tuple[Table, dict[str, str]]:
            known = {key: value for key, value in self.options.items() if find_option(key) is not None}
            return catalog.table(table), {_spelling().get(key, key): value for key, value in known.items()}

    return BoundDataSource


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
        for batch in self._reader.read_each(partition.splits):
            yield to_transfer(batch, schema)


@dataclass
class _Changes(InputPartition):  # type: ignore[misc]
    """Changes that one task reads."""

    changes: ChangeRead


class _ChangeReader(DataSourceReader):  # type: ignore[misc]
    """Changes come in the order of their commits: each task reads what follows that of the one before it."""

    def __init__(self, changes: ChangeRead) -> None:
        self._groups = groups_of_changes(changes)
        self._schema = changes.schema

    def partitions(self) -> Sequence[InputPartition]:
        return [_Changes(group) for group in self._groups] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        schema = transfer_schema(from_arrow_schema(self._schema))
        for batch in partition.changes.batches() if isinstance(partition, _Changes) else ():
            yield to_transfer(batch, schema)


@dataclass
class _Made(WriterCommitMessage):  # type: ignore[misc]
    """What a task made: JSON, as everywhere."""

    answer: str
    staged_bytes: int


class _TableWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Every task writes its rows to files of all the buckets they belong to.

    Tasks number their rows from ranges that do not meet, so that of two rows of a key the same one wins everywhere.
    Where an index of keys chooses the buckets, which tasks can not share, rows are staged for the commit to place.
    """

    def __init__(self, table: Table, overwrite: bool, row_kind: str | None) -> None:
        context, identity = plan_write(table)
        mode = context.bucket_mode
        self._context = context
        self._identity = identity
        self._overwrite = True if overwrite else None
        states = None
        if mode.is_shared:
            states = BucketStates.load(context.stores, context.stores.snapshots.latest())
        job = context.ids.new_id()
        is_direct = mode.places_alone or context.lets_rows_wait
        self._staged = None if is_direct else StagedWrite(context, job)
        if self._staged is None:
            user = identity.user
            self._task = WriteTask(
                context,
                row_kind,
                self._overwrite,
                states,
                job,
                numbers_apart=mode.is_shared,
                commit_user=user,
                clusters=True,
            )
        else:
            self._task = self._staged.task(row_kind, self._overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        size = StagedSize()
        rows = iterator if self._staged is None else self._staged.counted(iterator, size)
        return _Made(json.dumps(self._task.run(rows)), size.size_bytes)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        context = self._context
        attempt = Attempt(context.fileio)
        replaced = None if self._overwrite is None else Overwrite.parse(context, self._overwrite)
        commit = WriteCommit(
            context,
            overwrite=replaced,
            identity=self._identity,
            attempt=attempt,
            states=self._task.states,
        )
        told = [made for made in messages if isinstance(made, _Made)]

        def make() -> list[CommitMessage]:
            made = made_by(task.answer for task in told)
            if self._staged is None:
                return made
            self._staged.check_size(sum(task.staged_bytes for task in told))
            attempt.note(message_paths(context, made))  # they go with the commit, whatever becomes of it
            return self._staged.placed(made, replaced, commit.states, attempt.fileio)

        commit_job(context, commit, attempt, self._task.job, make)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        remove_leftovers(self._context, self._task.job)


# --- From the options of `spark.read.format("lakebed")` to the table they name: a path, or a warehouse and a name -


_PLACE = frozenset({"path", "warehouse", "table"})
_STORES = ("s3.", "fs.", "gs.", "az.", "azure.", "oss.", "google.")


_OF_OTHERS = {
    "versionasof": f"{SCAN_VERSION.key}, with a snapshot or a tag",
    **dict.fromkeys(("snapshot-id", "startingversion"), SCAN_SNAPSHOT_ID.key),
    **dict.fromkeys(("timestampasof", "as-of-timestamp", "startingtimestamp"), SCAN_TIMESTAMP.key),
    **dict.fromkeys(("readchangefeed", "readchangedata"), READ_CHANGELOG.key),
    **dict.fromkeys(("mergeschema", "merge-schema"), WRITE_MERGE_SCHEMA.key),
    **dict.fromkeys(("partitionoverwritemode", "overwrite-mode"), DYNAMIC_PARTITION_OVERWRITE.key),
    "overwriteschema": "lake.replace_table(name, schema) before",
    "replacewhere": "t.write_spark(df, overwrite={'day': ...}), for partitions",
}
"""Options of Delta and Iceberg, which would be passed over: a read would show another state than it was asked for."""


def _find_table(options: Mapping[str, str]) -> tuple[Table, dict[str, str]]:
    """The table as it is, and those of the options that are options of tables."""
    given = {key.lower(): value for key, value in options.items()}
    other = next((key for key in options if key.lower() in _OF_OTHERS), None)
    if other is not None:
        raise InvalidOption(f"option `{other}` is not of Paimon", hint=f"write {_OF_OTHERS[other.lower()]}")
    storage = {key: value for key, value in given.items() if key.startswith(_STORES)}
    table = _table(given, storage)
    dynamic = {
        _spelling().get(key, key): value for key, value in given.items() if key not in _PLACE and key not in storage
    }
    known = {key: value for key, value in dynamic.items() if "." in key or "-" in key or find_option(key) is not None}
    return table, known


@cache
def _spelling() -> dict[str, str]:
    """Keys with capitals by what Spark makes of them: it does not tell capitals from small letters."""
    keys = (key for option in OPTIONS for key in (option.key, *option.aliases))
    return {key.lower(): key for key in keys if key != key.lower()}


def _table(given: Mapping[str, str], storage: Mapping[str, str]) -> Table:
    path = given.get("path")
    warehouse, name = given.get("warehouse"), given.get("table")
    if warehouse is not None and name is not None:
        return open_catalog(warehouse, storage).table(parse_table_name(name, DEFAULT_DATABASE))
    if path is None:
        raise InvalidArgument(
            'format("lakebed") was given no table',
            hint='name its directory in load(path) or save(path), or set the options "warehouse" and "table"; '
            "saveAsTable and CREATE TABLE ... USING lakebed make tables of Spark's own catalog, which are none of the "
            "lake: write a DataFrame with t.write_spark(df), and name tables in Spark with lake.attach(spark)",
        )
    parent, _, table = path.rstrip("/").rpartition("/")
    root, _, database = parent.rpartition("/")
    if not database.endswith(".db"):
        raise InvalidArgument(
            f"{path} is not the directory of a table", hint="tables lie at <warehouse>/<database>.db/<table>"
        )
    branch, separator, view = table.partition("$")
    parsed = parse_table_name(f"{branch}{separator}{view}", database.removesuffix(".db"))
    return open_catalog(root or "/", storage).table(parsed)


__all__ = ["LakebedDataSource", "bound_source"]
