"""Writes one micro-batch after the other into a table, each as one commit and each once.

Most micro-batches are small, and a shuffle for a thousand rows takes longer than writing them. So the rows are not
moved between tasks: a task with few rows hands them to the driver, which writes those of all tasks together and keeps
what it knows of the table from batch to batch; a task with many writes them itself. Only if a batch was large are the
rows of the next brought together by bucket first, as `spark/write` does. Nothing of a batch is computed twice, but for
tables whose keys may be in any partition: there one task looks at the first rows, and a batch with more of them than
the driver takes begins anew, shared by key among tasks which keep what they know of the keys on their disks.
"""

from __future__ import annotations

import itertools
import json
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.cleanup import AbortedOnFailure
from lakebed.clock import RandomIds
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import shared_rules
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite
from lakebed.fileio.base import FileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import STREAM_WRITE_DURATION, STREAM_WRITTEN_ROWS
from lakebed.metrics.instruments import NOTHING, is_heard
from lakebed.records import dataclass
from lakebed.spark.distribute import distributed
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.session import prepare_worker
from lakebed.spark.stream.follow_ups import FollowUps
from lakebed.spark.stream.query import EventTime, SeenRows
from lakebed.spark.tasks import made_by, message_paths, remove_leftovers, run_pieces
from lakebed.spark.write import TASK_NUMBERS_BITS, WriteTask, check_columns, check_place, parallelism
from lakebed.table.alter import make_room
from lakebed.table.follow_up import FollowUp, catch_up
from lakebed.table.plans import plan_write
from lakebed.types.transfer import to_precision
from lakebed.write.commit import Committed, WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.placement.kept_keys import KeptPlace, can_keep
from lakebed.write.placement.table_keys import appended_since
from lakebed.write.sequence import BucketStates

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
    gives_up: bool = False
    """Whether it does neither with more rows."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row that says what became of the rows; none if there were none."""
        prepare_worker()
        seen = SeenRows(self.event_time)
        arriving, held = seen.through(batches), []
        for batch in arriving:
            held.append(batch)
            if seen.size_bytes > self.gathered_bytes:
                if self.gives_up:
                    yield _answer_row(None, None, seen)
                    return
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
    is_given_up: bool = False
    """Whether there were too many rows for that: nothing became of them."""

    @staticmethod
    def of(told: pa.Table) -> Answers:
        """Those in a table with a row for each task, or the first error that one tells of."""
        watermarks = [value for value in told["watermark_ms"].to_pylist() if value is not None]
        return Answers(
            made_by(answer for answer in told["answer"].to_pylist() if answer is not None),
            [pa.ipc.open_stream(rows.as_buffer()).read_all() for rows in told["rows"] if rows.is_valid],
            sum(told["size_bytes"].to_pylist()),
            max(watermarks, default=None),
            any(
                not answer.is_valid and not rows.is_valid
                for answer, rows in zip(told["answer"], told["rows"], strict=True)
            ),
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
        self._shares = KeyShares()
        self._follow_ups = FollowUps(table.location)

    def write(self, frame: DataFrame, query_id: str, batch_id: int) -> Snapshot | None:
        """Commits the rows of a batch; None if it had none, or was committed before."""
        with STREAM_WRITE_DURATION.timed(self._table.name, "query") as timing:
            committed = self._committed(frame, query_id, batch_id)
            if committed is None:
                timing.ended(NOTHING)
                return None
        if is_heard():
            rows = sum(file.row_count for message in committed.messages for file in message.new_files)
            STREAM_WRITTEN_ROWS.tell(rows, self._table.name, "query")
        return committed.snapshot

    def _committed(self, frame: DataFrame, query_id: str, batch_id: int) -> Committed | None:
        make_room(self._table, self._incoming.schema, self._row_kind)
        context, identity = plan_write(self._table, query_id, batch_id + 1)
        check_place(context)
        check_columns(context, self._row_kind, self._incoming)
        attempt = Attempt(context.fileio)
        replaced = None if self._overwrite is None else Overwrite.parse(context, self._overwrite)
        commit = WriteCommit(context, overwrite=replaced, identity=identity, attempt=attempt)
        if commit.is_committed():
            self._follow_ups.wait()
            catch_up(context, identity)
            return None
        batch = _Batch(context, commit, self._row_kind, self._overwrite, identity.user, attempt.fileio)
        job = context.ids.new_id()
        attempt.when_given_up(lambda: remove_leftovers(context, job))
        with attempt, batch:
            answers = self._answers(batch, frame, job)
            attempt.note(message_paths(context, answers.messages))
            messages = answers.messages + batch.written_here(answers)
            self._follow_ups.wait()
            commit.watermark = answers.watermark_ms
            committed = commit.run(messages)
        self._is_large = answers.size_bytes > (_GATHERED_BYTES if batch.is_crossing else _LARGE_BYTES)
        if committed is None:
            return None
        batch.remember(committed.snapshot)
        self._follow_up(frame.sparkSession, committed, lambda: _remove_leftovers(context, job, answers))
        return committed

    def _answers(self, batch: _Batch, frame: DataFrame, job: str) -> Answers:
        if not (batch.is_crossing and self._is_large):
            answers = self._told(batch, _placed(batch.context, frame, self._is_large), job)
            if not answers.is_given_up:
                return answers
        placed, kept = self._shares.placed(batch, frame)
        answers = self._told(batch, placed, job, kept)
        self._shares.note(batch, placed, kept)
        return answers

    def _told(self, batch: _Batch, placed: _Placed, job: str, kept: KeptPlace | None = None) -> Answers:
        task = BatchTask(batch.task(job, placed, kept), self._event_time, placed.gathered_bytes, placed.is_first_look)
        return Answers.of(until_workers_come(placed.frame.mapInArrow(task.run, _ANSWER_TYPES).toArrow))

    def _follow_up(self, spark: SparkSession, committed: Committed, tidy_up: Callable[[], None]) -> None:
        due = FollowUp(committed)

        def follow_up() -> None:
            due.run(run_pieces(lambda: spark))

        if due.is_awaited:
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
    is_taught: bool = False
    """Whether the table's keys come with the rows."""
    is_first_look: bool = False
    """Whether the rows come to the driver or have to be placed in another way."""


def _placed(context: TableContext, frame: DataFrame, is_large: bool | None) -> _Placed:
    mode = context.bucket_mode
    has_own_buckets = mode.places_alone
    if has_own_buckets and is_large is False:
        return _Placed(frame.coalesce(_MOST_TASKS), 0, _GATHERED_BYTES, is_shared=mode.is_shared)
    placed = distributed(context, frame, parallelism(frame.sparkSession))
    if has_own_buckets:
        return _Placed(placed.frame, placed.parts, 0 if is_large else _FIRST_GATHERED_BYTES, is_shared=False)
    # Who else gives keys their buckets must not do it at the same time: either the one task writes, or the driver.
    gathered_bytes = _GATHERED_BYTES if placed.parts <= 1 else -1
    is_crossing = mode.crosses_partitions
    return _Placed(placed.frame, placed.parts, gathered_bytes, is_shared=False, is_first_look=is_crossing)


class KeyShares:
    """Large batches of tables whose keys may be in any partition: each task gets a share of the keys.

    The first such batch brings the tasks all keys that there are, which they keep (`kept_keys`). Later ones need not,
    unless somebody has done to the table what kept keys can not follow.
    """

    def __init__(self) -> None:
        # Not the query's name: what one run of it removes at its end must not be what the next one has begun to keep.
        self._place = KeptPlace(RandomIds().new_id())
        self._parts = 0
        self._known_at: Snapshot | None = None
        self._remove: weakref.finalize[..., KeyShares] | None = None

    def placed(self, batch: _Batch, frame: DataFrame) -> tuple[_Placed, KeptPlace | None]:
        """The rows in tasks by the shares of their keys, and where the tasks keep those."""
        context, base, workers = batch.context, batch.base(), parallelism(frame.sparkSession)
        kept = self._place if can_keep() and not batch.replaces else None
        is_same = self._parts == shared_rules(context.options, workers).assigners
        is_known = is_same and appended_since(context.stores, self._known_at, base) is not None
        shared = distributed(context, frame, workers, base=base, shares_keys=True, teaches=not is_known)
        return _Placed(shared.frame, shared.parts, -1, is_shared=False, is_taught=shared.is_taught), kept

    def note(self, batch: _Batch, placed: _Placed, kept: KeptPlace | None) -> None:
        """To be called when tasks have done their work: they know the keys of the snapshot that they began with."""
        self._parts, self._known_at = placed.parts if kept is not None else 0, batch.base()
        if kept is not None and self._remove is None:
            # Where tasks run on the driver's machine; elsewhere what they keep goes when nobody has used it for long.
            self._remove = weakref.finalize(self, kept.remove, batch.context)


class _Batch(AbortedOnFailure):
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
        self.user = user
        self.is_crossing = context.bucket_mode.crosses_partitions
        self.replaces = overwrite is not None
        self._commit = commit
        self._row_kind = row_kind
        self._overwrite = overwrite
        self._fileio = fileio
        self._maker: FileMaker | None = None

    def base(self) -> Snapshot | None:
        """The snapshot that rows are written on top of; None if they replace it."""
        return None if self.replaces else self._commit.states().snapshot

    def task(self, job: str, placed: _Placed, kept: KeptPlace | None = None) -> WriteTask:
        """What a task does that writes its rows itself."""
        needs_states = self.context.bucket_mode.has_buckets
        return WriteTask(
            self.context,
            self._row_kind,
            self._overwrite,
            self._commit.states().without_runs() if needs_states else None,
            job,
            placed.parts,
            numbers_apart=placed.is_shared,
            commit_user=self.user,
            is_taught=placed.is_taught,
            kept_keys=kept,
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
            commit_user=self.user,
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
