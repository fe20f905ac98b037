"""Work that Spark's tasks do for a commit: files that bear the job's name, and answers that say what was made.

What is wrong with a table or its rows is an answer too, and no failure: running the task again would not mend it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakebed import errors
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.errors import LakebedError
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.leftovers import JobIds, remove_leftovers
from lakebed.spark.process import prepare_worker
from lakebed.table.context import TableContext
from lakebed.table.elsewhere import Elsewhere, Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TASKS = 512

_HERE_BYTES = 16 << 20
"""So little is worked through faster here than a job starts."""

_Piece = TypeVar("_Piece")


def answer_of(
    context: TableContext, job: str, work: Callable[[TableContext, FileIO], Sequence[CommitMessage]]
) -> dict[str, object]:
    """Runs work in a task; what it made, as JSON. Of work that fails nothing is left."""
    prepare_worker()
    try:
        with Attempt(context.fileio) as attempt:
            messages = work(_named(context, job), attempt.fileio)
            attempt.make_durable()
            return {"messages": [message.to_json() for message in messages]}
    except LakebedError as error:
        return {"error": {"class": type(error).__name__, "message": error.message, "hint": error.hint}}


def answer_batch(answer: dict[str, object]) -> pa.RecordBatch:
    """An answer as the one row that a task hands to Spark."""
    return pa.record_batch({"answer": pa.array([json.dumps(answer)], pa.string())})


def made_by(answers: Iterable[str]) -> list[CommitMessage]:
    """What tasks say that they made, or the first error that one tells of."""
    told = [json.loads(answer) for answer in answers]
    for answer in told:
        if "error" in answer:
            raise _revived(answer["error"])
    return [CommitMessage.from_json(body) for answer in told for body in answer["messages"]]


def run_pieces(session: Callable[[], SparkSession]) -> Elsewhere:
    """Runs pieces of work as a job, on a session that is asked for only then; None for what is better done here."""

    def run(
        context: TableContext, pieces: Sequence[_Piece], size_bytes: int, work: Work[_Piece]
    ) -> list[CommitMessage] | None:
        is_reachable = not isinstance(context.fileio, MemoryFileIO)
        return made_from(session(), context, pieces, work) if size_bytes > _HERE_BYTES and is_reachable else None

    return run


def made_from(
    spark: SparkSession, context: TableContext, pieces: Sequence[_Piece], work: Work[_Piece]
) -> list[CommitMessage]:
    """What a job makes of pieces, each in one task. Files of attempts that do not count are removed."""
    job, given = context.ids.new_id(), list(pieces)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                piece = given[number]
                yield answer_batch(answer_of(context, job, lambda named, fileio: work(named, piece, fileio)))  # noqa: B023

    frame = spark.range(0, len(given), 1, min(len(given), MOST_TASKS)).mapInArrow(run, "answer string")
    return job_result(context, job, lambda: made_by(row[0] for row in until_workers_come(frame.collect)))


def job_result(context: TableContext, job: str, make: Callable[[], list[CommitMessage]]) -> list[CommitMessage]:
    """What the tasks of a job have made, without whatever else they have left."""
    with Attempt(context.fileio) as attempt:
        attempt.when_given_up(lambda: remove_leftovers(context, job))
        messages = make()
    remove_leftovers(context, job, messages)
    return messages


def _named(context: TableContext, job: str) -> TableContext:
    from pyspark import TaskContext  # runs where Spark is

    task = TaskContext.get()
    return replace(context, ids=JobIds(job, 0 if task is None else task.taskAttemptId()))


def _revived(body: dict[str, str]) -> LakebedError:
    kind = getattr(errors, body["class"], LakebedError)
    error: LakebedError = kind(body["message"], hint=body["hint"])
    return error


__all__ = ["MOST_TASKS", "answer_batch", "answer_of", "job_result", "made_by", "made_from", "run_pieces"]
