"""Takes files that are gone from the disk out of a table, so that what is left of it can be read again.

For tables that lost files to somebody else. The rows in them are lost; nothing here brings them back.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.index_changes import current_entries, without_vectors
from lakebed.metadata.entries import READ_THREADS, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.table.context import TableContext
from lakebed.table.files import table_files
from lakebed.table.write_rules import committer_for


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
    paths = [table_files(context).path(entry) for entry in live]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        there = pool.map(context.fileio.exists, paths)
        return {path: entry for path, entry, is_there in zip(paths, live, there, strict=True) if not is_there}
