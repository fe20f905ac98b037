"""`df.writeStream.format("lakebed")`: each micro-batch as one commit, once, for those who know only Spark.

Spark moves no rows for such a sink, so every task writes to all the buckets its rows belong to, from a range of
sequence numbers of its own. Making the writer, running the tasks and committing happen in different processes, each of
which makes a writer anew: what the commit has to know travels with the messages of the tasks. `t.write_stream` makes
fewer files, and knows output mode `update`, which Spark refuses here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.records import dataclass
from lakebed.spark.stream.query import EventTime, SeenRows
from lakebed.spark.tasks import made_by, message_paths, remove_leftovers
from lakebed.spark.types import empty_rows
from lakebed.spark.write import WriteTask, check_columns, commit_job
from lakebed.table.alter import make_room
from lakebed.table.follow_up import catch_up
from lakebed.table.plans import plan_write
from lakebed.table.table import Table
from lakebed.write.commit import WriteCommit
from lakebed.write.sequence import BUCKET_STATES, BucketStates

_QUERY_ID = "sql.streaming.queryId"
"""Property of a task of a query, the same after every restart of it."""
_ROW_KIND = "rowkind"
_NO_QUERY = "no query"


@dataclass
class _MadeInBatch(WriterCommitMessage):  # type: ignore[misc]
    """What a task made, and for which query."""

    answer: str
    query_id: str
    job: str
    watermark_ms: int | None


class StreamTableWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writes micro-batches of rows with a schema; with `overwrite` each is the whole table."""

    def __init__(self, table: Table, schema: StructType, overwrite: bool, row_kind: str | None) -> None:
        incoming = empty_rows(schema)
        if row_kind is None and _ROW_KIND in schema.names and _ROW_KIND not in table.schema.field_names:
            row_kind = _ROW_KIND
        make_room(table, incoming.schema, row_kind)
        self._table = table
        self._row_kind = row_kind
        self._overwrite: dict[str, Any] | None = {} if overwrite else None
        self._event_time = EventTime.of(schema)
        self._context, _ = plan_write(table, _NO_QUERY, 1)
        check_columns(self._context, row_kind, incoming)
        self._states = _current_states(self._context)
        self._job = self._context.ids.new_id()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Makes the files of a task's rows."""
        query_id = _query_id()
        task = WriteTask(
            self._context,
            self._row_kind,
            self._overwrite,
            self._states.without_runs(),
            self._job,
            numbers_apart=True,
            commit_user=query_id,
        )
        seen = SeenRows(self._event_time)
        answer = json.dumps(task.run(seen.through(iterator)))
        return _MadeInBatch(answer, query_id, self._job, seen.watermark_ms)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commits what the tasks of a batch have made, unless it was committed before."""
        made = [message for message in messages if isinstance(message, _MadeInBatch)]
        if not made:
            return
        context, identity = plan_write(self._table, made[0].query_id, batchId + 1)
        attempt = Attempt(context.fileio)
        try:
            files = made_by(message.answer for message in made)
        except LakebedError:
            remove_leftovers(context, made[0].job)
            raise
        commit = WriteCommit(
            context,
            overwrite=None if self._overwrite is None else Overwrite.parse(context, self._overwrite),
            identity=identity,
            attempt=attempt,
            watermark=max((m.watermark_ms for m in made if m.watermark_ms is not None), default=None),
            states=_states_before(context, self._states, files),
        )
        if commit.is_committed():
            attempt.note(message_paths(context, files))
            attempt.give_up()
            remove_leftovers(context, made[0].job)
            catch_up(context, identity)
        else:
            commit_job(context, commit, attempt, made[0].job, lambda: files)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Removes what the tasks of a batch have made that came to nothing."""
        for job in {message.job for message in messages if isinstance(message, _MadeInBatch)}:
            remove_leftovers(self._context, job)


def _query_id() -> str:
    task = TaskContext.get()
    query_id = task.getLocalProperty(_QUERY_ID) if task is not None else None
    if query_id is None:
        raise InvalidArgument(
            "a task of a stream does not tell which query it belongs to, so a repeated batch could not be recognised",
            hint="write the stream with t.write_stream(df, checkpoint=...)",
        )
    return str(query_id)


def _current_states(context: TableContext) -> BucketStates:
    """Where sequence numbers stand now, for a table whose buckets tasks can share."""
    mode = context.bucket_mode
    if mode.indexes_keys:
        raise Unsupported(
            f"table `{context.name}` chooses buckets by an index of its keys, which "
            'df.writeStream.format("lakebed") can not share between tasks',
            hint="write with t.write_stream(df, checkpoint=...), or create the table with a fixed number of buckets",
        )
    latest = context.stores.snapshots.latest()
    if not mode.is_shared:
        return BucketStates(latest)
    remembered = context.memory[BUCKET_STATES]
    stores = context.stores
    states = BucketStates.load(stores, latest) if remembered is None else remembered.advanced_to(stores, latest)
    context.memory[BUCKET_STATES] = states
    return states


def _states_before(context: TableContext, now: BucketStates, messages: Sequence[CommitMessage]) -> BucketStates | None:
    """What the tasks' sequence numbers continue from; None where rows are not numbered."""
    if not context.bucket_mode.is_shared:
        return None
    bases = {message.base_snapshot_id for message in messages}
    if bases <= {now.snapshot_id}:
        return now
    snapshot = context.stores.snapshots.find(min(bases))
    return BucketStates() if snapshot is None else BucketStates.load(context.stores, snapshot)


__all__ = ["StreamTableWriter"]
