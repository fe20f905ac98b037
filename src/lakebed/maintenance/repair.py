"""Takes files that are gone from the disk out of a table, so that what is left of it can be read again.

For tables that lost files to somebody else. The rows in them are lost; nothing here brings them back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from lakebed.checksums import sealed_json, unsealed
from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.index_changes import current_entries, without_vectors
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for
from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.base import FileIO
from lakebed.fileio.local import LocalFileIO
from lakebed.maintenance.table_files import table_files
from lakebed.metadata.branches import all_branches
from lakebed.metadata.entries import READ_THREADS, live_files
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.operation import foreign_operation, readable_members
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass


def remove_missing(context: TableContext, dry_run: bool, identity: CommitIdentity) -> list[str]:
    """Commits that the files which are not there are not part of the table; their paths. Or only says which."""
    if dry_run:
        return sorted(_missing(context, live_files(context.stores, context.stores.snapshots.latest())))
    gone: dict[str, ManifestEntry] = {}
    schema_id = 0

    def prepare(latest: Snapshot | None) -> Changes | None:
        nonlocal gone, schema_id
        gone = _missing(context, live_files(context.stores, latest))
        if not gone or latest is None:
            return None
        schema_id = latest.schema_id  # what is left means what it did
        indexes = current_entries(context.stores, latest)
        names = {entry.file.file_name for entry in gone.values()}
        delta = [replace(entry, kind=EntryKind.DELETE) for entry in gone.values()]
        return Changes(delta, index_entries=without_vectors(indexes, names) if indexes else None)

    committer_for(context).commit(CommitKind.OVERWRITE, identity, lambda: schema_id, prepare, operation="REPAIR")
    return sorted(gone)


def _missing(context: TableContext, live: list[ManifestEntry]) -> dict[str, ManifestEntry]:
    files = table_files(context)
    paths = [files.path(entry) for entry in live]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        there = pool.map(context.fileio.exists, paths)
        return {path: entry for path, entry, is_there in zip(paths, live, there, strict=True) if not is_there}


# --- Rewrites the files of snapshots that say an operation which other implementations do not know ----------------
#
# Versions of Lakebed before this one wrote words of their own there, and Paimon can not open such a table. A
# rewritten file says the same to us: the word has only moved (see `metadata/operation`). All other members stay as
# they are, also those that this version does not know.


_FEW = 200
"""So many files of a local disk are read sooner than threads are started."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A file that is a snapshot or a copy of one; `snapshot_id` only of one that expiry may delete."""

    stores: MetadataStores
    name: str
    path: str
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignOperation:
    """A file that others can not read: what it is, and the word in it."""

    name: str
    path: str
    operation: str


@dataclass(frozen=True, slots=True)
class Operations:
    """What the files of a table say: the words that others do not know, and files that nobody can read."""

    foreign: list[ForeignOperation]
    unreadable: list[CorruptFile]


def look_at_operations(stores: MetadataStores) -> Operations:
    """Reads every snapshot, tag and changelog of all branches."""
    places = list(_places(stores))
    if isinstance(stores.fileio, LocalFileIO) and len(places) < _FEW:
        found = [_look(place) for place in places]
    else:
        with ThreadPoolExecutor(READ_THREADS) as pool:
            found = list(pool.map(_look, places))
    return Operations(
        [answer for answer in found if isinstance(answer, ForeignOperation)],
        [answer for answer in found if isinstance(answer, CorruptFile)],
    )


def mend_operations(stores: MetadataStores) -> list[ForeignOperation]:
    """Rewrites the files with a word that others do not know; those that were. An unreadable file stops it."""
    return [found for place in _places(stores) if (found := _mend(place)) is not None]


def _places(stores: MetadataStores) -> Iterator[_Place]:
    for branch in all_branches(stores):
        paths = branch.paths
        suffix = "" if paths.branch == MAIN_BRANCH else f" of branch `{paths.branch}`"
        for number in branch.snapshots.kept_ids():  # others are about to go, and would come back
            yield _Place(branch, f"snapshot {number}{suffix}", paths.snapshot_file(number), number)
        for name in branch.tags.names():
            yield _Place(branch, f"tag `{name}`{suffix}", paths.tag_file(name))
        for number in branch.changelogs.ids():
            yield _Place(branch, f"changelog {number}{suffix}", paths.changelog_file(number))


def _look(place: _Place) -> ForeignOperation | CorruptFile | None:
    try:
        members = _members(place.stores.fileio, place.path)
    except CorruptFile as error:
        return error
    operation = None if members is None else foreign_operation(members)
    return None if operation is None else ForeignOperation(place.name, place.path, operation)


def _mend(place: _Place) -> ForeignOperation | None:
    found = _look(place)
    if isinstance(found, CorruptFile):
        raise found
    if found is None:
        return None
    stores, fileio = place.stores, place.stores.fileio
    # Rollback, fast-forward and expiry hold this lock when they delete, so that nothing comes back that is gone.
    with fileio.advisory_lock(stores.paths.snapshot_directory):
        members = _members(fileio, place.path)
        if members is None or foreign_operation(members) is None:
            return None
        mended = readable_members(members)
        text = json.dumps(unsealed(mended), indent=2)
        fileio.overwrite(place.path, (text if mended == unsealed(mended) else sealed_json(text)).encode())
        if place.snapshot_id is not None and stores.snapshots.first_not_expiring() > place.snapshot_id:
            # Where there are no locks an expiry may have begun meanwhile, and deleted the file before it was written.
            fileio.delete(place.path)
    return found


def _members(fileio: FileIO, path: str) -> dict[str, Any] | None:
    """The members of a file; `None` when it is gone."""
    try:
        data = fileio.read_bytes(path)
    except FileMissing:
        return None
    JsonFile(data, path)  # an error if it is no object
    members: dict[str, Any] = json.loads(data)
    return members


__all__ = ["ForeignOperation", "Operations", "look_at_operations", "mend_operations"]
