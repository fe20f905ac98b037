"""Tables as streams of a Spark query: `t.read_stream()` and `spark.readStream.format("lakebed")`.

Spark asks one process on the driver where the stream stands and what a micro-batch consists of, and tasks read the
pieces as Arrow batches. Planning reads metadata only and starts no job. All that must outlive the process is in the
offsets, so a query that is started again reads the very same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lakebed.changes.position import StreamPosition
from lakebed.changes.stream import StreamLimits, StreamScan
from lakebed.changes.views import ROWKIND_FIELD
from lakebed.definition.arguments import filter_argument, names_argument
from lakebed.definition.context import TableContext
from lakebed.errors import NotFound, Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.options import CONTINUOUS_DISCOVERY_INTERVAL, READ_CHANGELOG
from lakebed.read.reader import projected_fields
from lakebed.records import dataclass
from lakebed.spark.filters import quoted, spark_condition
from lakebed.spark.session import prepare_worker
from lakebed.spark.stream.batches import Piece, StreamBatch, StreamOffset, batch_between, next_batch, task_pieces
from lakebed.spark.stream.columns import (
    EvolvingScan,
    StreamColumns,
    check_fits,
    fits,
    shows_kinds,
    stream_schema,
    with_kinds,
)
from lakebed.spark.types import spark_schema
from lakebed.spark.worker_python import early_workers
from lakebed.table.plans import plan_stream
from lakebed.table.table import Table
from lakebed.types import predicate as predicates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_IDLE_SNAPSHOTS = 5
"""Snapshots without changes (compactions) do not make a batch of their own, until there are so many of them."""

_numbers = count(1)


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """One table in one streaming query."""

    def __init__(self, context: TableContext, schema: StructType) -> None:
        self._columns = StreamColumns.of(context, schema)
        self._scan = StreamScan(context, self._columns.table_columns)
        self._first: StreamOffset | None = None
        self._until: int | None = None
        self._idle: tuple[StreamPosition, StreamOffset] | None = None
        self._planned: tuple[dict[str, Any], StreamBatch] | None = None
        self._quiet_since_ms: int | None = None
        self._recorded: int | None = None

    # --- on the driver -------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        """Where the query begins. Spark asks again until there is a batch: the answer stays."""
        if self._first is None:
            with _in_spark_words():
                self._first = StreamOffset(self._scan.start(), is_first=True)
        return self._first.to_members()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One of the limits that the options set: Spark knows one at a time. All of them count."""
        limits = self._scan.limits
        for limit, kind in (
            (limits.max_rows, ReadMaxRows),
            (limits.max_files, ReadMaxFiles),
            (limits.max_bytes, ReadMaxBytes),
            (limits.min_rows, ReadMinRows),
        ):
            if limit is not None:
                return kind(limit)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends: at its start if there is nothing to read."""
        if self._rests():
            return start
        limits = StreamLimits() if isinstance(limit, ReadAllAvailable) else self._scan.limits
        begin = StreamOffset.from_members(start)
        with _in_spark_words():
            batch = next_batch(self._scan, self._past_idle(begin), limits, self._until)
        if not self._is_due(begin, batch, limits):
            self._quiet_since_ms = self._scan.context.clock.now_ms()
            return start
        self._quiet_since_ms = None
        members = batch.end.to_members()
        self._planned = ({"start": start, "end": members}, batch)
        return members

    def _rests(self) -> bool:
        """Whether it is too early to look again. How often Spark asks is up to the trigger, unless an option is set."""
        context = self._scan.context
        if self._quiet_since_ms is None or self._until is not None:
            return False
        if not context.options.has(CONTINUOUS_DISCOVERY_INTERVAL):
            return False
        return context.clock.now_ms() < self._quiet_since_ms + context.options[CONTINUOUS_DISCOVERY_INTERVAL]

    def _is_due(self, begin: StreamOffset, batch: StreamBatch, limits: StreamLimits) -> bool:
        if batch.pieces:
            return self._until is not None or batch.is_enough(limits, self._scan.context.clock.now_ms())
        if begin.position.is_full:
            return batch.end.position != begin.position
        self._idle = (begin.position, batch.end)
        return batch.end.position.snapshot - begin.position.snapshot >= _MOST_IDLE_SNAPSHOTS

    def _past_idle(self, begin: StreamOffset) -> StreamOffset:
        """The offset behind snapshots that were found to hold no changes: these may expire before others come."""
        if self._idle is None or self._idle[0] != begin.position:
            return begin
        return replace(self._idle[1], is_first=begin.is_first, began=None)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the stream would stand if it had read everything: for those who watch how far it is behind."""
        return StreamPosition((self._scan.latest_id() or 0) + 1).to_members()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From here on no snapshot counts that is not there yet."""
        self._until = (self._scan.latest_id() or 0) + 1

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The pieces between two offsets, by tasks."""
        if self._planned is not None and self._planned[0] == {"start": start, "end": end}:
            batch = self._planned[1]
        else:
            with _in_spark_words():
                batch = batch_between(self._scan, StreamOffset.from_members(start), StreamOffset.from_members(end))
        return [_Pieces(group) for group in task_pieces(self._scan.context, batch.pieces)]

    def commit(self, end: dict[str, Any]) -> None:
        """Records what the consumer has: only whole snapshots, and none before the first state is through."""
        position = StreamOffset.from_members(end).position
        if self._scan.consumer_id is not None and not position.is_full and position.snapshot != self._recorded:
            self._scan.acknowledge(position.snapshot - 1, position.seen)
            self._recorded = position.snapshot

    # --- in tasks ------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one task."""
        assert isinstance(partition, _Pieces)
        prepare_worker()
        scan = EvolvingScan(self._scan, self._columns.table_columns)
        for piece in partition.pieces:
            with _in_spark_words(), self._scan.watching(piece.position):
                for rows in scan.read(piece.split):
                    shaped = self._columns.shaped(rows, piece)
                    if shaped.num_rows:
                        yield shaped


@dataclass
class _Pieces(InputPartition):  # type: ignore[misc]
    """Pieces that one task reads, in this order."""

    pieces: list[Piece]


@contextmanager
def _in_spark_words() -> Iterator[None]:
    """Says what a position is for a streaming query, where an error tells to start without one."""
    try:
        yield
    except NotFound as error:
        if "position" not in error.hint:
            raise
        hint = f"{error.hint}. The position of a query is in its checkpoint: start it with a new checkpoint directory"
        raise NotFound(error.message, hint=hint) from error


def stream_reader(table: Table, options: Mapping[str, str], schema: StructType) -> TableStreamReader:
    """The reader of a DataFrame of this schema, under the latest version of the table's schema that it fits.

    The table may have changed since the DataFrame was made: columns that are renamed or gone are still there in an
    earlier version, under which newer files can be read as well.
    """
    context = plan_stream(table, options=options).context
    if fits(context.schema, schema, context.options):
        return TableStreamReader(context, schema)
    for schema_id in sorted(context.schemas.ids(), reverse=True):
        version = context.schemas.get(schema_id)
        if fits(version, schema, context.options):
            return TableStreamReader(plan_stream(table, options=options, schema_id=schema_id).context, schema)
    check_fits(context.schema, schema, context.options, table.name)
    raise AssertionError("unreachable")


def stream_columns(table: Table, options: Mapping[str, str]) -> StructType:
    """The columns of a stream of the table as options ask for it, without those of `read.change-feed`."""
    context = plan_stream(table, options=options).context
    columns = spark_schema(context.schema.fields)
    return with_kinds(columns) if shows_kinds(context) else columns


def stream_frame(
    spark: SparkSession,
    table: Table,
    columns: Sequence[str] | None,
    filter: Any,  # noqa: A002
    options: Mapping[str, object],
) -> DataFrame:
    """The table as a streaming DataFrame, with the kinds of its rows in front unless options say otherwise."""
    scan = plan_stream(table, options={READ_CHANGELOG.key: "true", **options})
    scan.start()  # what is wrong with the beginning is said now
    context = scan.context
    if isinstance(context.fileio, MemoryFileIO):
        raise Unsupported(
            f"table `{context.name}` is in this process's memory, where Spark's workers can not see it",
            hint="keep the warehouse in a directory or an object store, or follow the table with t.follow()",
        )
    predicate = filter_argument(filter, pa.schema([ROWKIND_FIELD, *context.schema.arrow_schema]))
    fields = projected_fields(context, None if columns is None else names_argument(columns, "columns"))
    shown = stream_schema(context, fields)
    if predicate is None:
        return _load(spark, context, shown)
    condition = spark_condition(predicate)
    if condition is None:
        raise Unsupported(
            f"Spark understands a part of the filter of table `{context.name}` differently",
            hint="filter the DataFrame: t.read_stream(...).filter(...)",
        )
    looked_at = predicates.columns(predicate) - set(shown.names)
    everything = with_kinds(stream_schema(context, context.schema.fields))
    besides = [field for field in everything.fields if field.name in looked_at]
    frame = _load(spark, context, StructType([*shown.fields, *besides])).filter(condition)
    return frame.select(*(quoted(name) for name in shown.names))


def _load(spark: SparkSession, context: TableContext, schema: StructType) -> DataFrame:
    """A streaming DataFrame of just this table, as it is open here: with its storage, options and schema version."""
    source = _source_of(context)
    with early_workers(spark):
        spark.dataSource.register(source)
    return spark.readStream.format(source.name()).schema(schema).load()


def _source_of(context: TableContext) -> type[DataSource]:
    """A data source for one table. The table travels with the class, so that what opens its storage is in no option."""
    own_name = f"lakebed_stream_{next(_numbers)}"

    class TableSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return own_name

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return TableStreamReader(context, schema)

    return TableSource


__all__ = ["TableStreamReader", "stream_columns", "stream_frame", "stream_reader"]
