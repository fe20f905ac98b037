"""Gives files that are there already the indexes that the table's options ask for now.

New files get them when they are written; this reads the columns of old ones again. The files stay as they are: only
their manifest entries change, and index files beside them come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.datafiles.index.build import FileIndexBuilder, IndexSpec
from lakebed.datafiles.read_file import FileReader
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for, index_specs, latest_schema_id
from lakebed.errors import FileMissing, InvalidOption, LakebedError, OutcomeUnknown
from lakebed.maintenance.table_files import table_files
from lakebed.metadata.data_file import INDEX_SUFFIX, DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import FILE_INDEX_IN_MANIFEST_THRESHOLD
from lakebed.read.reader import parallelism
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class RewrittenIndexes:
    """How many partitions have files with other indexes than before, and how many files that are."""

    partitions: int = 0
    files: int = 0


def rewrite_indexes(
    context: TableContext,
    keep: Callable[[list[ManifestEntry]], list[ManifestEntry]],
    identity: CommitIdentity,
) -> RewrittenIndexes:
    """Commits the files that `keep` chooses with the indexes of today's options, those left out that have them."""
    latest = context.stores.snapshots.latest()
    entries = keep(live_files(context.stores, latest))
    specs = index_specs(context.schema, context.options)
    with ThreadPoolExecutor(parallelism(context.options), thread_name_prefix="lakebed-index") as pool:
        made = pool.map(lambda entry: _with_indexes(context, entry, specs), entries)
        changed = {old.identity: (old, new) for old, new in zip(entries, made, strict=True) if new != old}
    left: list[tuple[ManifestEntry, ManifestEntry]] = []

    def prepare(latest: Snapshot | None) -> Changes | None:
        nonlocal left
        live = {entry.identity for entry in live_files(context.stores, latest)}
        left = [pair for key, pair in changed.items() if key in live]  # others were rewritten meanwhile
        if not left:
            return None
        gone = [replace(old, kind=EntryKind.DELETE) for old, _ in left]
        # A file may get an index back that it had before: no manifest may say that it was deleted like that.
        return Changes([*gone, *(new for _, new in left)], rewrites_manifests=True)

    try:
        committer_for(context).commit(CommitKind.COMPACT, identity, lambda: latest_schema_id(context), prepare)
    except OutcomeUnknown:
        raise
    except LakebedError:
        _take_back(context, changed.values())
        raise
    _take_back(context, [pair for key, pair in changed.items() if key not in {old.identity for old, _ in left}])
    return RewrittenIndexes(len({old.partition for old, _ in left}), len(left))


def _take_back(context: TableContext, pairs: Iterable[tuple[ManifestEntry, ManifestEntry]]) -> None:
    """Removes the index files that no commit names."""
    files = table_files(context)
    for old, new in pairs:
        for path in set(files.paths(new)) - set(files.paths(old)):
            context.fileio.delete(path)


def _with_indexes(context: TableContext, entry: ManifestEntry, specs: tuple[IndexSpec, ...]) -> ManifestEntry:
    file, path = entry.file, table_files(context).path(entry)
    own = _own_specs(context, file, specs)
    index = _built(context, entry, path, own) if own else None
    others = tuple(name for name in file.extra_files if not name.endswith(INDEX_SUFFIX))
    if index == _stored(context, file, path):
        return entry
    if index is None or len(index) <= context.options[FILE_INDEX_IN_MANIFEST_THRESHOLD]:
        return replace(entry, file=replace(file, embedded_index=index, extra_files=others))
    # A name of its own: the one before may be of a snapshot that is still read.
    name = f"{file.file_name}-{context.ids.new_id()}{INDEX_SUFFIX}"
    context.fileio.write_bytes(f"{path.rpartition('/')[0]}/{name}", index)
    return replace(entry, file=replace(file, embedded_index=None, extra_files=(*others, name)))


def _own_specs(context: TableContext, file: DataFile, specs: tuple[IndexSpec, ...]) -> list[IndexSpec]:
    """The indexes under the columns that the file has, as its own schema calls them."""
    columns = {column.id: column for column in context.schemas.get(file.schema_id).fields}
    found = []
    for spec in specs:
        column = columns.get(spec.column.id)
        if column is None or (file.write_cols is not None and column.name not in file.write_cols):
            continue
        own = replace(spec, column=column)
        try:
            own.check()
        except InvalidOption:  # the column had another type then
            continue
        found.append(own)
    return found


def _built(context: TableContext, entry: ManifestEntry, path: str, specs: list[IndexSpec]) -> bytes | None:
    """Of all rows that the file holds, deleted ones too: an index counts by their places."""
    builder = FileIndexBuilder(specs)
    wanted = tuple(dict.fromkeys(spec.column for spec in specs))
    keys = frozenset(context.schema.partition_keys)
    file, values = entry.file, context.partition_values(entry.partition)
    reader = FileReader(context.fileio, context.schemas.get, wanted, keys, use_threads=False)
    for _, batch in reader.read(path, file, values.__getitem__):
        builder.add(batch)
    return builder.finish()


def _stored(context: TableContext, file: DataFile, path: str) -> bytes | None:
    if file.embedded_index is not None or file.index_file is None:
        return file.embedded_index
    try:
        return context.fileio.read_bytes(f"{path.rpartition('/')[0]}/{file.index_file}")
    except FileMissing:
        return b""  # as if it were another one


__all__ = ["RewrittenIndexes", "rewrite_indexes"]
