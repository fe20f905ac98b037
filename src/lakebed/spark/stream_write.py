"""Writes one micro-batch after the other into a table, each as one commit and each once.

Most micro-batches are small, and a shuffle for a thousand rows takes longer than writing them. So the rows are not
moved between tasks: a task with few rows hands them to the driver, which writes those of all tasks together and keeps
what it knows of the table from batch to batch; a task with many writes them itself. Only if a batch was large are the
rows of the next brought together by bucket first, as `spark/write` does. Nothing of a batch is computed twice.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.commit.written_files import WrittenFiles
from lakebed.fileio.base import FileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.spark.compact import spark_plans
from lakebed.spark.distribute import distributed
from lakebed.spark.event_time import EventTime, SeenRows
from lakebed.spark.follow_ups import FollowUps
from lakebed.spark.leftovers import message_paths, remove_leftovers
from lakebed.spark.process import prepare_worker
from lakebed.spark.tasks import made_by, run_pieces
from lakebed.spark.types import to_precision
from lakebed.spark.write import TASK_NUMBERS_BITS, WriteTask, check_columns, check_place, parallelism
from lakebed.table.bucket_modes import BucketMode, bucket_mode
from lakebed.table.bucket_state import BucketStates
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.write_commit import WriteCommit
from lakebed.table.write_files import FileMaker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.table.table import Table

_GATHERED_BYTES = 1 << 20
"""Rows that a task hands to the driver at most: more are written sooner where they are, and by several at a time."""
_FIRST_GATHERED_BYTES = 256 << 10
"""The same while it is not known how large the batches are, and there may be hundreds of tasks."""
_MOST_TASKS = 16
"""Tasks of a small batch. A bucket gets at most one file from each if the batch turns out to be large."""
_LARGE_BYTES = 64 << 20
"""From here on a shuffle costs less than the many files that it saves."""

ANSWER = pa.schema(
    [("answer", pa.string()), ("rows", pa.binary()), ("size_bytes", pa.int64()), ("watermark_ms", pa.int64())]
)
_ANSWER_TYPES = "answer string, rows binary, size_bytes bigint, watermark_ms bigint"


@dataclass(frozen=True)
class BatchTask:
    """What each task of a micro-batch does: up to so many bytes of rows it hands on, more it writes."""

    write: WriteTask
    event_time: EventTime
    gathered_bytes: int

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row that says what became of the rows; none if there were none."""
        prepare_worker()
        seen = SeenRows(self.event_time)
        arriving, held = seen.through(batches), []
        for batch in arriving:
            held.append(batch)
            if seen.size_bytes > self.gathered_bytes:
                answer = json.dumps(self.write.run(itertools.chain(held, arriving)))
                yield _answer_row(answer, None, seen)
                return
        if held:
            yield _answer_row(None, _packed(held), seen)


@dataclass(frozen=True, slots=True)
class Answers:
    """What the tasks of a micro-batch say: files they made, rows they hand on."""

    messages: list[CommitMessage]
    rows: list[pa.Table]
    size_bytes: int
    watermark_ms: int | None

    @staticmethod
    def of(told: pa.Table) -> Answers:
        """Those in a table with a row for each task, or the first error that one tells of."""
        watermarks = [value for value in told["watermark_ms"].to_pylist() if value is not None]
        return Answers(
            made_by(answer for answer in told["answer"].to_pylist() if answer is not None),
            [pa.ipc.open_stream(rows.as_buffer()).read_all() for rows in told["rows"] if rows.is_valid],
            sum(told["size_bytes"].to_pylist()),
            max(watermarks, default=None),
        )


class BatchWriter:
    """The function that Spark calls for each micro-batch of a query."""

    def __init__(
        self,
        table: Table,
        incoming: pa.RecordBatch,
        row_kind: str | None,
        overwrite: dict[str, Any] | None,
        event_time: EventTime,
    ) -> None:
        self._table = table
        self._incoming = incoming
        self._row_kind = row_kind
        self._overwrite = overwrite
        self._event_time = event_time
        self._is_large: bool | None = None
        self._follow_ups = FollowUps()

    def write(self, frame: DataFrame, query_id: str, batch_id: int) -> Snapshot | None:
        """Commits the rows of a batch; None if it had none, or was committed before."""
        self._table.make_room(self._incoming.schema, self._row_kind)
        context, identity = self._table.plan_write(query_id, batch_id + 1)
        check_place(context)
        check_columns(context, self._row_kind, self._incoming)
        fileio, written = WrittenFiles.watch_together(context.fileio)
        replaced = None if self._overwrite is None else Overwrite.parse(context, self._overwrite)
        commit = WriteCommit(context, overwrite=replaced, identity=identity, fileio=fileio, written=written)
        if commit.is_committed():
            self._follow_ups.wait()
            commit.catch_up()
            return None
        batch = _Batch(context, commit, self._row_kind, self._overwrite, identity.user, fileio)
        job = context.ids.new_id()
        try:
            answers = self._answers(batch, frame, job)
            written.note(message_paths(context, answers.messages))
            messages = answers.messages + batch.written_here(answers)
            self._follow_ups.wait()
            commit.watermark = answers.watermark_ms
            snapshot = commit.run(messages)
        except BaseException:
            batch.abort()
            if not commit.may_be_visible:
                written.take_back()
                remove_leftovers(context, job)
            raise
        self._is_large = answers.size_bytes > _LARGE_BYTES
        if snapshot is not None:
            batch.remember(snapshot)
            self._follow_up(frame.sparkSession, commit, messages, lambda: _remove_leftovers(context, job, answers))
        return snapshot

    def _answers(self, batch: _Batch, frame: DataFrame, job: str) -> Answers:
        placed = _placed(batch.context, frame, self._is_large)
        task = BatchTask(batch.task(job, placed), self._event_time, placed.gathered_bytes)
        return Answers.of(placed.frame.mapInArrow(task.run, _ANSWER_TYPES).toArrow())

    def _follow_up(
        self, spark: SparkSession, commit: WriteCommit, messages: list[CommitMessage], tidy_up: Callable[[], None]
    ) -> None:
        def follow_up() -> None:
            commit.follow_up(messages, spark_plans(lambda: spark), run_pieces(lambda: spark))

        if commit.is_compaction_awaited:
            follow_up()
            self._follow_ups.run(tidy_up)
        else:
            self._follow_ups.run(tidy_up, follow_up)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Rows in the tasks that get them. `parts` of them share dynamic buckets; with `is_shared` any bucket is shared."""

    frame: DataFrame
    parts: int
    gathered_bytes: int
    is_shared: bool


def _placed(context: TableContext, frame: DataFrame, is_large: bool | None) -> _Placed:
    mode = bucket_mode(context.schema, context.options)
    has_own_buckets = mode in (BucketMode.FIXED, BucketMode.UNAWARE)
    if has_own_buckets and is_large is False:
        return _Placed(frame.coalesce(_MOST_TASKS), 0, _GATHERED_BYTES, is_shared=mode is BucketMode.FIXED)
    placed = distributed(context, frame, parallelism(frame.sparkSession))
    if has_own_buckets:
        return _Placed(placed.frame, placed.parts, 0 if is_large else _FIRST_GATHERED_BYTES, is_shared=False)
    # Who else gives keys their buckets must not do it at the same time: either the one task writes, or the driver.
    return _Placed(placed.frame, placed.parts, _GATHERED_BYTES if placed.parts <= 1 else -1, is_shared=False)


class _Batch:
    """What is written for one micro-batch on the driver."""

    def __init__(
        self,
        context: TableContext,
        commit: WriteCommit,
        row_kind: str | None,
        overwrite: dict[str, Any] | None,
        user: str,
        fileio: FileIO,
    ) -> None:
        self.context = context
        self._commit = commit
        self._row_kind = row_kind
        self._overwrite = overwrite
        self._user = user
        self._fileio = fileio
        self._maker: FileMaker | None = None

    def task(self, job: str, placed: _Placed) -> WriteTask:
        """What a task does that writes its rows itself."""
        needs_states = bucket_mode(self.context.schema, self.context.options) is not BucketMode.UNAWARE
        return WriteTask(
            self.context,
            self._row_kind,
            self._overwrite,
            self._commit.states().without_runs() if needs_states else None,
            job,
            placed.parts,
            numbers_apart=placed.is_shared,
            commit_user=self._user,
        )

    def written_here(self, answers: Answers) -> list[CommitMessage]:
        """Writes the rows that tasks hand on, as if they were one."""
        if not answers.rows:
            return []
        left_out = _MOST_TASKS << TASK_NUMBERS_BITS if answers.messages else 0
        self._maker = FileMaker(
            self.context,
            row_kind=self._row_kind,
            overwrite=None if self._overwrite is None else Overwrite.parse(self.context, self._overwrite),
            states=lambda: self._states(left_out),
            fileio=self._fileio,
            commit_user=self._user,
        )
        rows = pa.concat_tables(answers.rows).combine_chunks()
        self._maker.write(to_precision(rows, self.context.schema.fields), lambda: None)
        return self._maker.finish()

    def _states(self, left_out: int) -> BucketStates:
        states = self._commit.states()
        return states.leaving_out(left_out) if left_out else states

    def remember(self, snapshot: Snapshot) -> None:
        """To be called once the batch is committed."""
        if self._maker is not None:
            self._maker.remember(snapshot)

    def abort(self) -> None:
        """Gives up what is not finished."""
        if self._maker is not None:
            self._maker.abort()


def _remove_leftovers(context: TableContext, job: str, answers: Answers) -> None:
    """Removes what attempts at tasks that do not count have left, if any task has written anything."""
    if answers.messages:
        remove_leftovers(context, job, answers.messages)


def _packed(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _answer_row(answer: str | None, rows: bytes | None, seen: SeenRows) -> pa.RecordBatch:
    columns = [[answer], [rows], [seen.size_bytes], [seen.watermark_ms]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ANSWER, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ANSWER)


__all__ = ["Answers", "BatchTask", "BatchWriter"]
