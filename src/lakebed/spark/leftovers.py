"""Removes files of a job that nobody needs: those of tasks that were killed, or ran a second time.

They are known by their names, each of which contains that of the job. What can not be listed or removed is left for
orphan cleaning; nothing refers to it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence

from lakebed.commit.message import CommitMessage
from lakebed.errors import LakebedError
from lakebed.fileio.local import list_names
from lakebed.metadata.data_file import INDEX_SUFFIX
from lakebed.table.context import TableContext

_log = logging.getLogger(__name__)

_NUMBERS = itertools.count()
_METADATA = frozenset({"schema", "snapshot", "manifest", "tag", "changelog", "consumer", "statistics", "branch"})


class JobIds:
    """Names the files of one attempt at one task: those of data, of changes, of rows that wait, and of indexes."""

    def __init__(self, job: str, attempt: int) -> None:
        self._start = f"{job}-{attempt}"

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
        for path in paths:
            context.fileio.delete(path)
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
    for directory in sorted(_directories(context, messages)):
        for name in list_names(context.fileio, directory):
            if job in name and f"{directory}/{name}".removesuffix(INDEX_SUFFIX) not in kept:
                yield f"{directory}/{name}"


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
    for entry in context.fileio.list_directory(directory):
        if entry.is_directory:
            if not _is_metadata(context, entry.path):
                yield from _below(context, entry.path, job)
        elif job in entry.name:
            yield entry.path


def _is_metadata(context: TableContext, path: str) -> bool:
    return path.removeprefix(context.paths.root).strip("/") in _METADATA


__all__ = ["JobIds", "message_paths", "remove_leftovers"]
