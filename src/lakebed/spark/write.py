"""Writes a DataFrame as one commit: rows are brought together by bucket, each task makes files, the driver commits.

Only the names and statistics of files travel to the driver, as JSON. A task that fails removes what it made; what a
task leaves behind that was killed, or ran twice, is found by the name of the job and removed after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import Unsupported
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BUCKET,
    LAKEBED_ONE_PROCESS_WRITE_MAX_SIZE,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET,
    WRITE_MERGE_SCHEMA,
    Options,
)
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.rewrite.rows_by_key import RowRewrite
from lakebed.schema.system_columns import VALUE_KIND
from lakebed.spark.clustered import in_stretches
from lakebed.spark.distribute import distributed
from lakebed.spark.filters import quoted
from lakebed.spark.known_keys import learn
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.tasks import answer_batch, answer_of, made_by, message_paths, remove_leftovers, run_pieces
from lakebed.spark.types import empty_rows
from lakebed.table.alter import make_room
from lakebed.table.follow_up import FollowUp, catch_up
from lakebed.table.plans import plan_write
from lakebed.types.transfer import to_precision
from lakebed.units import format_size
from lakebed.write.clustering import clustering_of
from lakebed.write.commit import WriteCommit
from lakebed.write.conform import Conformer
from lakebed.write.files import FileMaker
from lakebed.write.pieces import PieceWork
from lakebed.write.placement.kept_keys import KeptPlace
from lakebed.write.placement.postponed import in_writing_order
from lakebed.write.read_state import ReadState
from lakebed.write.sequence import BucketStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.table.table import Table


_PIECE_ROWS = 1 << 17
_PIECE_BYTES = 64 << 20
"""Batches from Spark are small; so many rows or bytes are handed on together."""
_KEPT_PIECE_ROWS = 1 << 20
"""The same where keys are looked for on disk: all that are kept are gone through for each piece."""

TASK_NUMBERS_BITS = 28
"""Sequence numbers that one task has for itself: enough for its rows, and for a commit a second for years."""

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
    make_room(table, empty_rows(frame.schema).schema, row_kind)
    context, identity = plan_write(table, commit_user, commit_identifier)
    wanted = None if overwrite is None or overwrite is False else overwrite
    return WriteJob(context, row_kind, wanted, identity).run(spark, frame)


@dataclass(frozen=True)
class WriteJob:
    """One write of one table."""

    context: TableContext
    row_kind: str | None
    overwrite: bool | Mapping[str, Any] | None
    identity: CommitIdentity
    read: ReadState | None = None
    """What the rows were computed from, if others must not have changed that meanwhile."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """What the snapshot says beside."""
    tells_pairs: bool = False
    """Whether rows are events with old rows among them, each of which has to come before the one in its place."""

    def run(self, spark: SparkSession, frame: DataFrame) -> Snapshot | None:
        """Makes the files on Spark and commits them here."""
        context = self.context
        check_place(context)
        check_columns(context, self.row_kind, empty_rows(frame.schema))
        attempt = Attempt(context.fileio)
        replaced = None if self.overwrite is None else Overwrite.parse(context, self.overwrite)
        commit = WriteCommit(
            context,
            overwrite=replaced,
            identity=self.identity,
            attempt=attempt,
            read=self.read,
            run_pieces=run_pieces(lambda: spark),
        )
        commit.properties |= self.properties
        if commit.is_committed():
            catch_up(context, self.identity)
            return None
        needs_states = context.bucket_mode.has_buckets
        job = context.ids.new_id()

        def make() -> list[CommitMessage]:
            return self.make_files(spark, frame, commit.states() if needs_states else None, job)

        return commit_job(context, commit, attempt, job, make, spark)

    def make_files(
        self, spark: SparkSession, frame: DataFrame, states: BucketStates | None, job: str
    ) -> list[CommitMessage]:
        """Has the rows written by tasks; nothing is visible yet."""
        base = states.snapshot if states is not None and self.overwrite is None else None
        clustering = None if self.identity.is_replayable else clustering_of(self.context)
        if clustering is not None and set(clustering.columns) <= set(frame.columns):
            frame = in_stretches(self.context, frame, clustering, parallelism(spark))
        placed = distributed(self.context, frame, parallelism(spark), base=base, shares_keys=True)
        task = WriteTask(
            self.context,
            self.row_kind,
            self.overwrite,
            states,
            job,
            placed.parts,
            commit_user=self.identity.user,
            is_taught=placed.is_taught,
            clusters=clustering is not None,
        )
        return run_tasks(task, self._in_turn(placed.frame) if self.tells_pairs else placed.frame)

    def _in_turn(self, frame: DataFrame) -> DataFrame:
        """INVARIANT: `-U` before `+U`, which a shuffle does not promise: the other way round the row would be gone."""
        from pyspark.sql import functions as sf

        assert self.row_kind is not None, "events have kinds"
        key = [quoted(name) for name in self.context.schema.primary_keys]
        return frame.sortWithinPartitions(*key, sf.desc(self.row_kind))


@dataclass(frozen=True)
class RewriteJob:
    """Puts the rows of a frame in the place of stored ones: written by tasks, merged by tasks, committed here."""

    rewrite: RowRewrite
    row_kind: str

    def run(self, spark: SparkSession, frame: DataFrame) -> Snapshot | None:
        """See `RowRewrite.write`."""
        context, storing = self.rewrite.context, self.rewrite.storing
        check_place(context)
        attempt, pieces = Attempt(context.fileio), run_pieces(lambda: spark)
        commit, replacement = self.rewrite.commit_of(attempt, pieces)
        job = context.ids.new_id()

        def make() -> list[CommitMessage]:
            rows = WriteJob(storing, self.row_kind, None, self.rewrite.identity)
            made = rows.make_files(spark, frame, self.rewrite.states(), job)
            attempt.note(message_paths(context, made))
            return self.rewrite.merged(made, replacement, PieceWork(storing, attempt, pieces))

        return commit_job(context, commit, attempt, job, make, spark)


def check_place(context: TableContext) -> None:
    """Raises if Spark's workers can not reach the table."""
    if isinstance(context.fileio, MemoryFileIO):
        raise Unsupported(
            f"table `{context.name}` is in this process's memory, where Spark's workers can not see it",
            hint="keep the warehouse in a directory or an object store, or write Arrow data with t.write(...)",
        )


def check_columns(context: TableContext, row_kind: str | None, empty: pa.RecordBatch) -> None:
    """Says what of such rows does not fit before anything runs."""
    completes = context.options[WRITE_MERGE_SCHEMA]
    Conformer(context.name, context.schema.fields, extra=row_kind, completes=completes).conform(empty)


def run_tasks(task: WriteTask, frame: DataFrame) -> list[CommitMessage]:
    """Has each partition of a frame written by a task; what they made, or the first error that one tells of."""

    def make_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer_batch(task.run(batches))

    answers = frame.mapInArrow(make_files, "answer string")
    return made_by(row[0] for row in until_workers_come(answers.collect))


def commit_job(
    context: TableContext,
    commit: WriteCommit,
    attempt: Attempt,
    job: str,
    make_files: Callable[[], list[CommitMessage]],
    spark: SparkSession | None = None,
) -> Snapshot | None:
    """Commits what the tasks of a job make, and removes whatever of it does not become part of the table.

    With a session, what the commit makes due runs as jobs of it.
    """
    attempt.when_given_up(lambda: remove_leftovers(context, job))
    with attempt:
        messages = make_files()
        attempt.note(message_paths(context, messages))
        committed = commit.run(messages)
    if committed is None:
        return None
    remove_leftovers(context, job, messages)
    FollowUp(committed).run(None if spark is None else run_pieces(lambda: spark))
    return committed.snapshot


@dataclass(frozen=True)
class WriteTask:
    """What each task does. `parts` is how many of them share the dynamic buckets of a table.

    With `numbers_apart` tasks may write to the same bucket: each numbers its rows from a range of its own.
    """

    context: TableContext
    row_kind: str | None
    overwrite: bool | Mapping[str, Any] | None
    states: BucketStates | None
    job: str
    parts: int = 0
    numbers_apart: bool = False
    carries_ids: bool = False
    """Whether rows come with the ids they have."""
    commit_user: str | None = None
    is_taught: bool = False
    """Whether the table's keys come with the rows."""
    kept_keys: KeptPlace | None = None
    """Where keys are kept on the disks of workers, if others like this one will follow."""
    clusters: bool = False
    """Whether rows are sorted as the table says before they are cut into files."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
        """Makes the files of these rows, and says what it made, or what is wrong with the rows."""

        def work(context: TableContext, fileio: FileIO) -> list[CommitMessage]:
            with self._maker(context, fileio) as maker:
                looks_on_disk = self.kept_keys is not None and not self.is_taught
                for piece in _pieces(batches, _KEPT_PIECE_ROWS if looks_on_disk else _PIECE_ROWS):
                    rows = learn(maker, piece) if self.is_taught else piece
                    maker.write(to_precision(rows, context.schema.fields), lambda: None)
                return maker.finish()

        return answer_of(self.context, self.job, work)

    def _maker(self, context: TableContext, fileio: FileIO) -> FileMaker:
        from pyspark import TaskContext  # runs where Spark is

        task = TaskContext.get()
        number = task.partitionId() if task is not None else 0
        states = self.states or BucketStates()
        if self.numbers_apart:
            states = states.leaving_out(number << TASK_NUMBERS_BITS)
        return FileMaker(
            context,
            row_kind=self.row_kind,
            overwrite=None if self.overwrite is None else Overwrite.parse(context, self.overwrite),
            states=lambda: states,
            fileio=fileio,
            part=WritePart(number, self.parts) if self.parts else None,
            carries_ids=self.carries_ids,
            commit_user=self.commit_user,
            is_taught=self.is_taught,
            kept_keys=self.kept_keys,
            clusters=self.clusters,
        )


def parallelism(spark: SparkSession) -> int:
    """How many tasks work at a time, about."""
    return max(1, min(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), _MOST_ASSIGNERS))


def _pieces(batches: Iterable[pa.RecordBatch], most_rows: int = _PIECE_ROWS) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= most_rows or size_bytes >= _PIECE_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows, size_bytes = [], 0, 0
    if rows:
        yield pa.Table.from_batches(waiting).combine_chunks()


# --- Writes whose tasks can not choose buckets: they write rows down as they come, and one process does the rest --
#
# `df.write.format("lakebed")` can not have rows brought together by key, and an index of keys can not be shared
# between tasks that get any rows. So rows wait in files of their partitions, as rows of postponed buckets do, but
# only until the commit: nothing refers to these files, and they go with it. Spark commits in a process that has no
# session, so all rows go through it: what is more than an option allows is refused, not done slowly in silence.


@dataclass
class StagedSize:
    """How much a task has got."""

    size_bytes: int = 0


@dataclass(frozen=True)
class StagedWrite:
    """One such write."""

    context: TableContext
    job: str

    def task(self, row_kind: str | None, overwrite: bool | None) -> WriteTask:
        """What each task does."""
        waiting = {BUCKET.key: str(POSTPONE_BUCKET), POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "false"}
        context = self.context.with_schema(self.context.schema, Options({**self.context.options.raw, **waiting}))
        return WriteTask(context, row_kind, overwrite, None, self.job)

    def counted(self, batches: Iterable[pa.RecordBatch], size: StagedSize) -> Iterator[pa.RecordBatch]:
        """The rows of a task, as long as they alone are not too much already."""
        for batch in batches:
            size.size_bytes += batch.nbytes
            self.check_size(size.size_bytes)
            yield batch

    def check_size(self, size_bytes: int) -> None:
        """Raises where so much had better not go through one process."""
        most_bytes = int(self.context.options[LAKEBED_ONE_PROCESS_WRITE_MAX_SIZE])
        if size_bytes <= most_bytes:
            return
        waits = (
            f", or set {POSTPONE_BATCH_WRITE_FIXED_BUCKET.key} to false" if self.context.bucket_mode.postpones else ""
        )
        raise Unsupported(
            f'df.write.format("lakebed") would place more than {format_size(most_bytes)} of rows of table '
            f"`{self.context.name}` in one process, as tasks of a data source can not exchange rows by key",
            hint="write with t.write_spark(df), or lake.sql('INSERT INTO ...'), which share the rows between tasks"
            f"{waits}; or raise the option {LAKEBED_ONE_PROCESS_WRITE_MAX_SIZE.key}",
        )

    def placed(
        self,
        staged: Sequence[CommitMessage],
        overwrite: Overwrite | None,
        states: Callable[[], BucketStates],
        fileio: FileIO,
    ) -> list[CommitMessage]:
        """The rows that tasks have written down, in files of their buckets."""
        reader = SplitReader(self.context, (VALUE_KIND, *self.context.schema.fields))
        files: dict[bytes, list[DataFile]] = defaultdict(list)
        for message in staged:
            files[message.partition] += message.new_files
        with FileMaker(self.context, row_kind=None, overwrite=overwrite, states=states, fileio=fileio) as maker:
            for partition, found in files.items():
                sections = tuple(Section((SortedRun((file,)),)) for file in in_writing_order(found))
                for batch in reader.read_stored(Split(partition, POSTPONE_BUCKET, sections)):
                    maker.write_stored(batch.drop_columns([VALUE_KIND.name]), batch.column(VALUE_KIND.name))
            return maker.finish()


__all__ = ["StagedSize", "StagedWrite"]
