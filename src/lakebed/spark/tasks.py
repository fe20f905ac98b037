"""Work that Spark's tasks do for a commit: files that bear the job's name, and answers that say what was made.

What is wrong with a table or its rows is an answer too, and no failure: running the task again would not mend it.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lakebed import errors
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import HERE_BYTES, Elsewhere, Work
from lakebed.errors import LakebedError
from lakebed.fileio.base import FileIO
from lakebed.fileio.local import list_names
from lakebed.fileio.memory import MemoryFileIO
from lakebed.fileio.together import answers_late, delete_all
from lakebed.metadata.data_file import INDEX_SUFFIX
from lakebed.spark.late_workers import repeated_lately, until_workers_come
from lakebed.spark.session import prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MOST_TASKS = 512

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
            raise revived(answer["error"])
    return [CommitMessage.from_json(body) for answer in told for body in answer["messages"]]


def run_pieces(session: Callable[[], SparkSession]) -> Elsewhere:
    """Runs pieces of work as a job, on a session that is asked for only then; None for what is better done here."""

    def run(
        context: TableContext, pieces: Sequence[_Piece], size_bytes: int, work: Work[_Piece]
    ) -> list[CommitMessage] | None:
        is_reachable = not isinstance(context.fileio, MemoryFileIO)
        return _made_from(session(), context, pieces, work) if size_bytes > HERE_BYTES and is_reachable else None

    return run


def _made_from(
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
    return _job_result(context, job, lambda: made_by(row[0] for row in until_workers_come(frame.collect)))


def _job_result(context: TableContext, job: str, make: Callable[[], list[CommitMessage]]) -> list[CommitMessage]:
    """What the tasks of a job have made, without whatever else they have left."""
    with Attempt(context.fileio) as attempt:
        attempt.when_given_up(lambda: remove_leftovers(context, job))
        messages = make()
    remove_leftovers(context, job, messages)
    return messages


def _named(context: TableContext, job: str) -> TableContext:
    from pyspark import TaskContext  # runs where Spark is

    task = TaskContext.get()
    if task is None:
        return replace(context, ids=JobIds(job, 0))
    return replace(context, ids=JobIds(job, task.taskAttemptId(), is_repeated=task.attemptNumber() > 0))


def revived(body: dict[str, str]) -> LakebedError:
    """The error that a task tells of."""
    kind = getattr(errors, body["class"], LakebedError)
    error: LakebedError = kind(body["message"], hint=body["hint"])
    return error


# --- Removes files of a job that nobody needs: those of tasks that were killed, or ran a second time --------------
#
# They are known by their names, each of which contains that of the job. What can not be listed or removed is left for
# orphan cleaning; nothing refers to it.
#
# To look for them is to list the directory of each bucket: nothing on a disk, a request each on an object store. So it
# is looked where it costs little, and otherwise where the names of the files that were committed say that a task ran
# again. What the job before it left in the rare case that nobody can tell, such as a stage that began anew because the
# rows before it were lost, is left for orphan cleaning as well.


_log = logging.getLogger(__name__)

_NUMBERS = itertools.count()
_REPEATED = "r"
"""What the number of an attempt ends with that was not the first at its task."""
_MOST_LISTED = 64
"""Directories of a disk that are listed after each commit."""
_METADATA = frozenset({"schema", "snapshot", "manifest", "tag", "changelog", "consumer", "statistics", "branch"})


class JobIds:
    """Names the files of one attempt at one task: those of data, of changes, of rows that wait, and of indexes."""

    def __init__(self, job: str, attempt: int, *, is_repeated: bool = False) -> None:
        self._start = f"{job}-{attempt}{_REPEATED if is_repeated else ''}"

    def new_id(self) -> str:
        """A name that no other attempt at any task gives, nor this one again: it may have many pieces of work."""
        return f"{self._start}-{next(_NUMBERS)}"


def remove_leftovers(context: TableContext, job: str, committed: Iterable[CommitMessage] | None = None) -> None:
    """Removes the job's files that were not committed; without `committed`, all of them, wherever they are."""
    try:
        if committed is None:
            paths = list(_below(context, context.paths.root, job))
        else:
            paths = list(_beside(context, job, list(committed)))
        delete_all(context.fileio, paths)
    except LakebedError as error:
        _log.warning("table %s: files of a task may be left behind: %s", context.name, error.message)


def message_paths(context: TableContext, messages: Iterable[CommitMessage]) -> list[str]:
    """All files behind the messages that a commit of them needs."""
    paths = []
    for message in messages:
        files = (*message.new_files, *message.changelog_files, *message.compact_after, *message.compact_changelog)
        names = [name for file in files for name in (file.file_name, *file.extra_files)]
        paths += [context.data_file_path(message.partition, message.bucket, name) for name in names]
        paths += [context.paths.index_file(entry.file_name) for entry in message.new_index_files]
    return paths


def _beside(context: TableContext, job: str, messages: Sequence[CommitMessage]) -> Iterator[str]:
    """What lies where the job's tasks have written, and is not part of the commit."""
    kept = set(message_paths(context, messages))
    is_late = answers_late(context.fileio)
    buckets = {(message.partition, message.bucket) for message in messages}
    if (is_late or len(buckets) > _MOST_LISTED) and not _may_have_left_files(job, kept):
        return
    found: Iterable[str]
    if is_late:
        found = _below(context, context.paths.root, job)  # a thousand names with each request, whatever the buckets
    else:
        found = (
            f"{directory}/{name}"
            for directory in sorted(_directories(context, messages))
            for name in list_names(context.fileio, directory)
            if job in name
        )
    yield from (path for path in found if path.removesuffix(INDEX_SUFFIX) not in kept)


def _may_have_left_files(job: str, kept: Iterable[str]) -> bool:
    """Whether a task of the job, or the whole of it, may have run twice."""
    repeated = re.compile(rf"{re.escape(job)}-[0-9]+{_REPEATED}-")
    return repeated_lately() or _is_speculating() or any(repeated.search(path) for path in kept)


def _is_speculating() -> bool:
    """Whether Spark starts slow tasks a second time while they run, and kills whichever is later."""
    from pyspark.sql import SparkSession  # runs where Spark is

    session = SparkSession.getActiveSession()
    return session is not None and str(session.conf.get("spark.speculation", "false")).lower() == "true"


def _directories(context: TableContext, messages: Sequence[CommitMessage]) -> set[str]:
    buckets = {(message.partition, message.bucket) for message in messages}
    found = {context.data_file_path(*bucket, "x").rsplit("/", 1)[0] for bucket in buckets}
    if context.bucket_mode.indexes_keys:
        # Another attempt may have got its rows in another order, and so have given their keys other buckets.
        for partition in {directory.rsplit("/", 1)[0] for directory in found}:
            found |= {entry.path for entry in context.fileio.list_directory(partition) if _is_bucket(entry.name)}
    if any(message.new_index_files for message in messages):
        found.add(context.paths.index_file("x").rsplit("/", 1)[0])
    return found


def _is_bucket(name: str) -> bool:
    return name.startswith("bucket-")


def _below(context: TableContext, directory: str, job: str) -> Iterator[str]:
    if answers_late(context.fileio):
        root = context.paths.root
        for status in context.fileio.list_recursive(root):
            if job in status.name and status.path.removeprefix(root).strip("/").partition("/")[0] not in _METADATA:
                yield status.path
        return
    for entry in context.fileio.list_directory(directory):
        if entry.is_directory:
            if not _is_metadata(context, entry.path):
                yield from _below(context, entry.path, job)
        elif job in entry.name:
            yield entry.path


def _is_metadata(context: TableContext, path: str) -> bool:
    return path.removeprefix(context.paths.root).strip("/") in _METADATA


__all__ = [
    "MOST_TASKS",
    "JobIds",
    "answer_batch",
    "answer_of",
    "made_by",
    "message_paths",
    "remove_leftovers",
    "revived",
    "run_pieces",
]
