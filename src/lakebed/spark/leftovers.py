"""Removes files of a job that nobody needs: those of tasks that were killed, or ran a second time.

They are known by their names, which begin with the job's own prefix. What can not be listed or removed is left for
orphan cleaning; nothing refers to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from lakebed.commit.message import CommitMessage
from lakebed.errors import LakebedError
from lakebed.metadata.data_file import INDEX_SUFFIX
from lakebed.table.context import TableContext

_log = logging.getLogger(__name__)


def remove_leftovers(
    context: TableContext, prefixes: tuple[str, str], committed: Iterable[CommitMessage] | None = None
) -> None:
    """Removes the job's files that were not committed; without `committed`, all of them, wherever they are."""
    try:
        if committed is None:
            paths = list(_below(context, context.paths.root, prefixes))
        else:
            paths = list(_beside(context, prefixes, list(committed)))
        for path in paths:
            context.fileio.delete(path)
    except LakebedError as error:
        _log.warning("table %s: files of a task may be left behind: %s", context.name, error.message)


def _beside(context: TableContext, prefixes: tuple[str, str], messages: list[CommitMessage]) -> Iterator[str]:
    kept = {
        context.data_file_path(message.partition, message.bucket, file.file_name)
        for message in messages
        for file in (*message.new_files, *message.changelog_files)
    }
    for partition, bucket in {(message.partition, message.bucket) for message in messages}:
        directory = context.data_file_path(partition, bucket, "x").rsplit("/", 1)[0]
        for entry in context.fileio.list_directory(directory):
            if entry.name.startswith(prefixes) and entry.path.removesuffix(INDEX_SUFFIX) not in kept:
                yield entry.path


def _below(context: TableContext, directory: str, prefixes: tuple[str, str]) -> Iterator[str]:
    for entry in context.fileio.list_directory(directory):
        if entry.is_directory:
            if not _is_metadata(context, entry.path):
                yield from _below(context, entry.path, prefixes)
        elif entry.name.startswith(prefixes):
            yield entry.path


def _is_metadata(context: TableContext, path: str) -> bool:
    name = path.removeprefix(context.paths.root).strip("/")
    return name in {"schema", "snapshot", "manifest", "index", "tag", "changelog", "consumer", "statistics", "branch"}
