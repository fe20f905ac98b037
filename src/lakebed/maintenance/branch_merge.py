"""Brings the files that one branch has, and another lacks, into the other, as one more commit of rows.

Nothing tells where two branches parted, or which of their files went since. So both must have their whole history, and
nothing in it may take rows away: then a file that one lacks is one that it never had. Only for tables without a primary
key: of two rows of a key one would have to be newer.
"""

from __future__ import annotations

from dataclasses import replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.index_changes import current_entries
from lakebed.definition.branch import forget_writes
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for, latest_schema_id
from lakebed.errors import CommitConflict, InvalidArgument, InvalidSchema, NotFound, Unsupported
from lakebed.maintenance.references import is_kept
from lakebed.maintenance.rollback import roll_back_table
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED

_ADDING = (CommitKind.APPEND, CommitKind.ANALYZE)


def merge_branch(source: TableContext, target: TableContext, identity: CommitIdentity) -> Snapshot | None:
    """Commits to the target what the source has besides; None if there is nothing."""
    if source.paths.branch == target.paths.branch:
        raise InvalidArgument(f"`{source.name}` can not be merged into itself", hint="name two different branches")
    for context in (source, target):
        _check_kind(context)
    if source.tracks_rows != target.tracks_rows:
        raise Unsupported(
            f"rows of `{source.name if source.tracks_rows else target.name}` have ids, those of the other branch "
            "have none",
            hint="set `row-tracking.enabled` alike on both branches",
        )
    if source.schema.fields != target.schema.fields:
        raise InvalidSchema(
            f"`{source.name}` and `{target.name}` have different columns",
            hint="give both branches the same columns, in the same order and with the same ids, first",
        )
    taken = _whole_history(source)

    def prepare(latest: Snapshot | None) -> Changes | None:
        _whole_history(target)
        known = {entry.identity for entry in live_files(target.stores, latest)}
        lacking = [entry for entry in live_files(source.stores, taken) if entry.identity not in known]
        _check_files(source, target, taken, lacking)
        return Changes([_as_new(entry) for entry in lacking]) if lacking else None

    committed = committer_for(target).commit(CommitKind.APPEND, identity, lambda: latest_schema_id(target), prepare)
    if committed is None:
        return None
    forget_writes(target)
    if not is_kept(source.stores, taken) and source.stores.snapshots.latest_id() is None:
        roll_back_table(target, target.stores.snapshots.get(committed.id - 1))
        raise CommitConflict(
            f"`{source.name}` was deleted while it was being merged", hint="its files may be gone; nothing was changed"
        )
    return committed


def _check_kind(context: TableContext) -> None:
    if context.has_key:
        raise Unsupported(
            f"`{context.name}` has a primary key: only tables without one can be merged branch by branch",
            hint="read the branch and write its rows: INSERT INTO t SELECT * FROM `t$branch_b`",
        )
    if context.options[DATA_EVOLUTION_ENABLED]:
        raise Unsupported(
            f"`{context.name}` has rows whose columns lie in several files (`{DATA_EVOLUTION_ENABLED.key}`), which "
            "know their rows by ids of their own branch",
            hint="read the branch and write its rows: INSERT INTO t SELECT * FROM `t$branch_b`",
        )


def _whole_history(context: TableContext) -> Snapshot:
    """The latest snapshot, if everything from the first one on is there and has only added rows."""
    snapshots = context.stores.snapshots
    latest_id = snapshots.latest_id()
    if latest_id is None:
        raise NotFound(f"`{context.name}` has no snapshot", hint="write to both branches first")
    latest = None
    for number in range(1, latest_id + 1):
        latest = snapshots.find(number)
        if latest is None:
            raise Unsupported(
                f"`{context.name}`: snapshot {number} is gone, so it is not known which files were taken away",
                hint="merge branches before their snapshots expire, or write the rows of one into the other",
            )
        if latest.commit_kind not in _ADDING:
            raise Unsupported(
                f"`{context.name}`: snapshot {number} ({latest.commit_kind}) took files away",
                hint="only branches that were appended to can be merged; write the rows of one into the other",
            )
    assert latest is not None
    return latest


def _check_files(source: TableContext, target: TableContext, taken: Snapshot, files: list[ManifestEntry]) -> None:
    names = {entry.file.file_name for entry in files}
    for index in current_entries(source.stores, taken):
        if names & {marked.data_file_name for marked in index.deletion_vector_ranges or ()}:
            raise Unsupported(
                f"`{source.name}` has deleted rows that are still in its files",
                hint="write the rows of one branch into the other",
            )
    for schema_id in sorted({entry.file.schema_id for entry in files}):
        if schema_id not in target.schemas.ids() or target.schemas.get(schema_id) != source.schemas.get(schema_id):
            raise InvalidSchema(
                f"files of `{source.name}` were written under schema {schema_id}, which `{target.name}` does not have",
                hint="change the columns before a branch is made, or write the rows of one into the other",
            )


def _as_new(entry: ManifestEntry) -> ManifestEntry:
    """The file as the target's commit takes it: ids of rows are those of the branch that gave them."""
    return replace(entry, kind=EntryKind.ADD, file=replace(entry.file, first_row_id=None))


__all__ = ["merge_branch"]
