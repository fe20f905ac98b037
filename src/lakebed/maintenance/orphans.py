"""Removes files that nothing refers to: left by writers that died, by rollbacks, and by branches that were deleted.

INVARIANT: files are listed first and references read afterwards, so a file that a commit brings in between is seen as
needed. The other way round it would be on the list and in no reference that was read, and the commit's rows would go.
Young files are left alone: they may belong to a writer that has yet to commit. If any reference, of any branch, can
not be read, or a directory not listed, nothing is deleted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from lakebed.definition.context import TableContext
from lakebed.definition.moments import to_millis
from lakebed.errors import CorruptFile, InvalidArgument
from lakebed.fileio.base import FileIO, FileStatus
from lakebed.fileio.together import answers_late, delete_all
from lakebed.maintenance.branches import HIDDEN_PREFIX
from lakebed.maintenance.references import references, used_names
from lakebed.maintenance.table_files import TableFiles, table_files
from lakebed.maintenance.tags import used_by_all
from lakebed.metadata.branches import all_branches, is_husk
from lakebed.metadata.paths import TablePaths
from lakebed.records import dataclass
from lakebed.schema.store import SchemaStore
from lakebed.units import DAY_MS

_BUCKET_PREFIX = "bucket-"


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files that nothing needed, by path, and their size. Directories that became empty are not counted."""

    paths: tuple[str, ...] = ()
    size_bytes: int = 0

    @property
    def file_count(self) -> int:
        """How many there were."""
        return len(self.paths)


def remove_orphans(files: TableFiles, partition_depth: int, older_than_ms: int, dry_run: bool) -> Orphans:
    """Removes what is older than that moment and not needed, or only says what would go.

    `partition_depth` is the number of partition columns: how deep buckets lie below the table.
    """
    stores = files.stores
    for branch in all_branches(stores):
        if SchemaStore(stores.fileio, branch.paths.schema_directory).latest() is None and not is_husk(branch):
            raise CorruptFile(
                f"branch `{branch.paths.branch}` of {stores.paths.root} has no schema, so what it needs is unknown",
                hint="delete the branch, or restore its schema files; nothing was deleted",
            )
    found = _Listing(stores.fileio, stores.paths, older_than_ms)
    shared = [*found.metadata(), *found.data(stores.paths.data_root, partition_depth)]
    leftovers = [status for branch in all_branches(stores) for status in found.temporary(branch.paths)]
    leftovers += found.hidden_branches()
    used = used_by_all(files, lambda: used_names(references(files)))
    orphans = [*(status for status in shared if status.name not in used), *leftovers]
    done = Orphans(tuple(status.path for status in orphans), sum(status.size_bytes for status in orphans))
    if not dry_run:
        if not files.delete_elsewhere(done.paths):
            delete_all(stores.fileio, done.paths)
        found.remove_empty_directories()
    return done


class _Listing:
    """The files of a table that are old enough. Only places where the format puts files are looked at."""

    def __init__(self, fileio: FileIO, paths: TablePaths, older_than_ms: int) -> None:
        self._fileio = fileio
        self._paths = paths
        self._older_than_ms = older_than_ms
        self._directories: list[FileStatus] = []

    def metadata(self) -> Iterator[FileStatus]:
        """Manifests, lists, indexes, statistics."""
        paths = self._paths
        for directory in (paths.manifest_directory, paths.index_directory, paths.statistics_directory):
            yield from self._files(directory)

    def data(self, directory: str, depth: int) -> Iterator[FileStatus]:
        """Files in buckets, `depth` partition directories below."""
        if answers_late(self._fileio):
            yield from self._data_at_once(directory, depth)
            return
        for status in self._fileio.list_directory(directory):
            is_place = status.name.startswith(_BUCKET_PREFIX) if depth == 0 else "=" in status.name
            if not status.is_directory or not is_place:
                continue
            if self._is_old(status):
                self._directories.append(status)
            yield from self._files(status.path) if depth == 0 else self.data(status.path, depth - 1)

    def _data_at_once(self, root: str, depth: int) -> Iterator[FileStatus]:
        """The same by one listing of all that is there, not one for each bucket; directories are none to remove."""
        for status in self._fileio.list_recursive(root):
            *places, _ = status.path.removeprefix(root).strip("/").split("/")
            is_place = len(places) == depth + 1 and places[-1].startswith(_BUCKET_PREFIX)
            if is_place and all("=" in place for place in places[:-1]) and self._is_old(status):
                yield status

    def temporary(self, paths: TablePaths) -> Iterator[FileStatus]:
        """Hidden files beside those that are written under another name first."""
        places = (
            paths.snapshot_directory,
            paths.schema_directory,
            paths.tag_directory,
            paths.changelog_directory,
            paths.consumer_directory,
        )
        for directory in places:
            yield from (status for status in self._files(directory) if _is_temporary(status.name))

    def hidden_branches(self) -> Iterator[FileStatus]:
        """Files of branches that never were, or no longer are."""
        for status in self._fileio.list_directory(self._paths.branches_directory):
            if status.is_directory and status.name.startswith(HIDDEN_PREFIX):
                inside = list(self._fileio.list_recursive(status.path))
                if all(self._is_old(file) for file in inside):
                    yield from inside
                    self._directories += [
                        child
                        for child in (status, *self._fileio.list_directory(status.path))
                        if child.is_directory and self._is_old(child)
                    ]

    def remove_empty_directories(self) -> None:
        """Removes the old ones among the directories seen, as far as they are empty now; deepest first."""
        for status in sorted(self._directories, key=lambda status: status.path.count("/"), reverse=True):
            self._fileio.delete_empty_directory(status.path)

    def _files(self, directory: str) -> Iterator[FileStatus]:
        found = self._fileio.list_directory(directory)
        return (status for status in found if not status.is_directory and self._is_old(status))

    def _is_old(self, status: FileStatus) -> bool:
        return status.modified_ms < self._older_than_ms


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


# --- Orphan cleaning as a table sees it: with its clock, its partitions and the moments users write ---------------


def clean_orphans(
    context: TableContext, older_than: int | str | dt.datetime | dt.date | None, dry_run: bool
) -> Orphans:
    """Removes files older than a moment (a day ago) that nothing refers to."""
    now_ms = context.clock.now_ms()
    moment_ms = now_ms - DAY_MS if older_than is None else to_millis(older_than)
    if moment_ms >= now_ms:
        raise InvalidArgument(
            f"older_than is {older_than!r}, which is not in the past",
            hint="leave time to writers that have yet to commit: a day, if older_than is left out",
        )
    return remove_orphans(table_files(context), len(context.schema.partition_keys), moment_ms, dry_run)
