"""Writes a DataFrame as one commit: rows are brought together by bucket, each task makes files, the driver commits.

Only the names and statistics of files travel to the driver, as JSON. A task that fails removes what it made; what a
task leaves behind that was killed, or ran twice, is found by the name of the job and removed after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed import errors
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.commit.written_files import WrittenFiles
from lakebed.errors import LakebedError, Unsupported
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import WRITE_MERGE_SCHEMA
from lakebed.spark.compact import spark_plans
from lakebed.spark.distribute import distributed
from lakebed.spark.leftovers import remove_leftovers
from lakebed.spark.process import prepare_worker
from lakebed.spark.types import empty_rows, to_precision
from lakebed.table.bucket_modes import BucketMode, WritePart, bucket_mode
from lakebed.table.bucket_state import BucketStates
from lakebed.table.compact import RunPlans
from lakebed.table.conform import Conformer
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.write_commit import WriteCommit
from lakebed.table.write_files import FileMaker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.table.table import Table

_PIECE_ROWS = 1 << 17
_PIECE_BYTES = 64 << 20
"""Batches from Spark are small; so many rows or bytes are handed on together."""

_TASK_NUMBERS_BITS = 32
"""Sequence numbers that one task has for itself: enough for any number of rows, and for millions of writes."""

_MOST_ASSIGNERS = 16
"""Each opens a bucket of its own: more of them would leave a small table in many small files."""


def write_frame(
    spark: SparkSession,
    table: Table,
    frame: DataFrame,
    row_kind: str | None = None,
    overwrite: bool | Mapping[str, Any] | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
) -> Snapshot | None:
    """Writes the frame's rows; None when there was nothing to commit, or it was committed before."""
    table.make_room(empty_rows(frame.schema).schema, row_kind)
    context, identity = table.plan_write(commit_user, commit_identifier)
    wanted = None if overwrite is None or overwrite is False else overwrite
    return WriteJob(context, row_kind, wanted, identity).run(spark, frame)


@dataclass(frozen=True)
class WriteJob:
    """One write of one table."""

    context: TableContext
    row_kind: str | None
    overwrite: bool | Mapping[str, Any] | None
    identity: CommitIdentity

    def run(self, spark: SparkSession, frame: DataFrame) -> Snapshot | None:
        """Makes the files on Spark and commits them here."""
        context = self.context
        if isinstance(context.fileio, MemoryFileIO):
            raise Unsupported(
                f"table `{context.name}` is in this process's memory, where Spark's workers can not see it",
                hint="keep the warehouse in a directory or an object store, or write Arrow data with t.write(...)",
            )
        self._check_columns(frame)
        fileio, written = WrittenFiles.watch(context.fileio)
        replaced = None if self.overwrite is None else Overwrite.parse(context, self.overwrite)
        commit = WriteCommit(context, overwrite=replaced, identity=self.identity, fileio=fileio, written=written)
        if commit.is_committed():
            commit.catch_up()
            return None
        needs_states = bucket_mode(context.schema, context.options) is not BucketMode.UNAWARE
        prefixes = (context.new_data_file_prefix(), context.new_changelog_file_prefix())

        def make() -> list[CommitMessage]:
            return self._make_files(spark, frame, commit.states() if needs_states else None, prefixes)

        return commit_job(context, commit, written, prefixes, make, spark_plans(lambda: spark))

    def _check_columns(self, frame: DataFrame) -> None:
        """Says what does not fit before anything runs."""
        completes = self.context.options[WRITE_MERGE_SCHEMA]
        conformer = Conformer(self.context.name, self.context.schema.fields, extra=self.row_kind, completes=completes)
        conformer.conform(empty_rows(frame.schema))

    def _make_files(
        self, spark: SparkSession, frame: DataFrame, states: BucketStates | None, prefixes: tuple[str, str]
    ) -> list[CommitMessage]:
        placed = distributed(self.context, frame, _parallelism(spark))
        task = WriteTask(self.context, self.row_kind, self.overwrite, states, prefixes, placed.parts)
        return run_tasks(task, placed.frame)


def run_tasks(task: WriteTask, frame: DataFrame) -> list[CommitMessage]:
    """Has each partition of a frame written by a task; what they made, or the first error that one tells of."""

    def make_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"answer": pa.array([json.dumps(task.run(batches))], pa.string())})

    return made_by(row[0] for row in frame.mapInArrow(make_files, "answer string").collect())


def made_by(answers: Iterable[str]) -> list[CommitMessage]:
    """What tasks say that they made, or the first error that one tells of."""
    told = [json.loads(answer) for answer in answers]
    for answer in told:
        if "error" in answer:
            raise revived(answer["error"])
    return [CommitMessage.from_json(body) for answer in told for body in answer["messages"]]


def commit_job(
    context: TableContext,
    commit: WriteCommit,
    written: WrittenFiles,
    prefixes: tuple[str, str],
    make_files: Callable[[], list[CommitMessage]],
    run_plans: RunPlans | None = None,
) -> Snapshot | None:
    """Commits what the tasks of a job make, and removes whatever of it does not become part of the table."""
    try:
        messages = make_files()
        written.note(message_paths(context, messages))
        snapshot = commit.run(messages)
    except BaseException:
        if not commit.may_be_visible:
            written.take_back()
            remove_leftovers(context, prefixes)
        raise
    if snapshot is not None:
        remove_leftovers(context, prefixes, messages)
        commit.follow_up(messages, run_plans)
    return snapshot


@dataclass(frozen=True)
class WriteTask:
    """What each task does. `parts` is how many of them share the dynamic buckets of a table.

    With `numbers_apart` tasks may write to the same bucket: each numbers its rows from a range of its own.
    """

    context: TableContext
    row_kind: str | None
    overwrite: bool | Mapping[str, Any] | None
    states: BucketStates | None
    prefixes: tuple[str, str]
    parts: int = 0
    numbers_apart: bool = False
    carries_ids: bool = False
    """Whether rows come with the ids they have."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        """Makes the files of these rows, and says what it made, or what is wrong with the rows.

        A row that does not fit is an answer and no failure: running the task again would not mend it.
        """
        prepare_worker()
        fileio, written = WrittenFiles.watch(self.context.fileio)
        maker = self._maker(fileio)
        try:
            for piece in _pieces(batches):
                maker.write(to_precision(piece, self.context.schema.fields), lambda: None)
            return {"messages": [message.to_json() for message in maker.finish()]}
        except LakebedError as error:
            maker.abort()
            written.take_back()
            return {"error": {"class": type(error).__name__, "message": error.message, "hint": error.hint}}
        except BaseException:
            maker.abort()
            written.take_back()
            raise

    def _maker(self, fileio: FileIO) -> FileMaker:
        from pyspark import TaskContext  # runs where Spark is

        task = TaskContext.get()
        attempt, number = (task.taskAttemptId(), task.partitionId()) if task is not None else (0, 0)
        states = self.states or BucketStates()
        if self.numbers_apart:
            states = states.leaving_out(number << _TASK_NUMBERS_BITS)
        return FileMaker(
            self.context,
            row_kind=self.row_kind,
            overwrite=None if self.overwrite is None else Overwrite.parse(self.context, self.overwrite),
            states=lambda: states,
            fileio=fileio,
            prefixes=(f"{self.prefixes[0]}-{attempt}", f"{self.prefixes[1]}-{attempt}"),
            part=WritePart(number, self.parts) if self.parts else None,
            carries_ids=self.carries_ids,
        )


def _parallelism(spark: SparkSession) -> int:
    """How many tasks work at a time, about."""
    return max(1, min(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), _MOST_ASSIGNERS))


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= _PIECE_ROWS or size_bytes >= _PIECE_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows, size_bytes = [], 0, 0
    if rows:
        yield pa.Table.from_batches(waiting).combine_chunks()


def revived(body: Mapping[str, str]) -> LakebedError:
    """The error that a task has told of."""
    kind = getattr(errors, body["class"], LakebedError)
    error: LakebedError = kind(body["message"], hint=body["hint"])
    return error


def message_paths(context: TableContext, messages: Iterable[CommitMessage]) -> list[str]:
    """All files behind the messages."""
    paths = []
    for message in messages:
        files = (*message.new_files, *message.changelog_files)
        names = [name for file in files for name in (file.file_name, *file.extra_files)]
        paths += [context.data_file_path(message.partition, message.bucket, name) for name in names]
        paths += [context.paths.index_file(entry.file_name) for entry in message.new_index_files]
    return paths
