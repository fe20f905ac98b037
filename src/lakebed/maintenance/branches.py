"""Branches made, renamed, deleted and made the main line.

A branch appears and disappears by renaming its directory, so nobody sees half of one where directories can be renamed
at once. Only metadata is copied or deleted: data files and manifests belong to all branches together.
"""

from __future__ import annotations

from collections.abc import Hashable

from lakebed.clock import IdSource
from lakebed.definition.branch import forget_writes
from lakebed.definition.context import TableContext
from lakebed.errors import (
    AlreadyExists,
    CommitConflict,
    FileMissing,
    InvalidArgument,
    LakebedError,
    NotFound,
    did_you_mean,
)
from lakebed.fileio.base import FileIO
from lakebed.maintenance.rollback import forget_changelogs
from lakebed.metadata.branches import branch_names
from lakebed.metadata.entries import all_metas, base_metas, read_manifests
from lakebed.metadata.manifest import live_entries
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.paths import MAIN_BRANCH, TablePaths
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.metadata.tag import Tag
from lakebed.options import SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH
from lakebed.records import dataclass
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema

HIDDEN_PREFIX = ".tmp-"
"""Start of the names of directories that are on their way to be a branch, or on their way out."""


def create_branch(stores: MetadataStores, name: str, tag: Tag | None, ids: IdSource) -> None:
    """Makes a branch of the current one: from a tag with its state, or empty with the schemas only."""
    fileio, source = stores.fileio, stores.paths
    target = source.branch_directory(name)
    if fileio.exists(target):
        _remove_husk(fileio, target)
        if fileio.exists(target):
            raise _taken(source, name)
    hidden = f"{source.branches_directory}/{HIDDEN_PREFIX}{ids.new_id()}"
    try:
        _fill(stores, hidden, tag)
        _rename(fileio, source, hidden, name)
    except LakebedError:
        fileio.delete_directory(hidden)
        raise
    if tag is not None and stores.tags.find(tag.name) != tag:
        _remove_branch(fileio, source, name, ids)
        raise _changed(source, tag)


def _remove_husk(fileio: FileIO, directory: str) -> None:
    """Removes the empty directories that a writer leaves who did not know that the branch was deleted."""
    for child in fileio.list_directory(directory):
        if child.is_directory:
            fileio.delete_empty_directory(child.path)
    fileio.delete_empty_directory(directory)


def _fill(stores: MetadataStores, directory: str, tag: Tag | None) -> None:
    fileio, source = stores.fileio, stores.paths
    for schema_id in SchemaStore(fileio, source.schema_directory).ids():
        if tag is None or schema_id <= tag.snapshot.schema_id:
            _copy(fileio, source.schema_file(schema_id), f"{directory}/schema/schema-{schema_id}")
    if tag is None:
        return
    try:
        _copy(fileio, source.tag_file(tag.name), f"{directory}/tag/tag-{tag.name}")
    except FileMissing as error:
        raise _changed(source, tag) from error
    number = tag.snapshot.id
    fileio.write_bytes(f"{directory}/snapshot/snapshot-{number}", tag.snapshot.to_file())
    for hint in ("LATEST", "EARLIEST"):
        fileio.write_bytes(f"{directory}/snapshot/{hint}", str(number).encode())


def _changed(paths: TablePaths, tag: Tag) -> CommitConflict:
    return CommitConflict(
        f"tag `{tag.name}` of {paths.branch_root} changed while a branch was made of it",
        hint="make the branch again; nothing was changed",
    )


def _remove_branch(fileio: FileIO, paths: TablePaths, name: str, ids: IdSource) -> None:
    """Deletes a branch's metadata. Its data files become orphans unless other branches have them."""
    _check_exists(fileio, paths, name)
    hidden = f"{paths.branches_directory}/{HIDDEN_PREFIX}{ids.new_id()}"
    fileio.rename_directory(paths.branch_directory(name), hidden)
    fileio.delete_directory(hidden)


def rename_branch(fileio: FileIO, paths: TablePaths, name: str, new_name: str) -> None:
    """Gives a branch another name."""
    _check_exists(fileio, paths, name)
    _rename(fileio, paths, paths.branch_directory(name), new_name)


def _check_exists(fileio: FileIO, paths: TablePaths, name: str) -> None:
    """Raises unless there is such a branch."""
    known = branch_names(fileio, paths)
    if name not in known:
        raise NotFound(f"{paths.root} has no branch `{name}`", hint=did_you_mean(name, known))


def fast_forward(main: MetadataStores, name: str) -> None:
    """Lets the branch that `main` is of go on as branch `name` does: from its first snapshot on, they are the same.

    Newer snapshots go first, newest first; then schemas change; then the branch's snapshots come, oldest first. At
    every moment the latest snapshot is one that either of the two had, and doing it again finishes what a crash left.
    """
    _check_exists(main.fileio, main.paths, name)
    if name == main.paths.branch or name == MAIN_BRANCH:
        raise InvalidArgument(f"`{name}` can not be fast-forwarded to itself", hint="name another branch")
    other = MetadataStores.open(main.fileio, main.paths.on_branch(name), main.compression)
    taken = _Taken.of(other)
    _check_exists(main.fileio, main.paths, name)  # else what was read may be what a deletion has left
    first, last = taken.snapshots[0], taken.snapshots[-1]
    _check_past(main, taken)
    _check_schemas(main, taken)
    with main.fileio.advisory_lock(main.paths.snapshot_directory):
        replaced = [number for number in main.snapshots.ids() if number >= first.id]
        if replaced:
            main.snapshots.write_latest_hint(replaced[0])  # first: other engines trust it without looking
        for number in reversed(replaced[1:]):
            main.snapshots.delete(number)
        _put_schemas(main, taken)
        main.snapshots.withdraw_expiry(first.id)
        for snapshot in taken.snapshots:
            _put(main, snapshot, is_taken=snapshot.id in replaced[:1])
        main.snapshots.write_latest_hint(last.id)
        if replaced and replaced[0] > last.id:
            main.snapshots.delete(replaced[0])
        main.snapshots.write_earliest_hint(main.snapshots.ids()[0])
        # What the branch was about to lose may have lost its files already.
        main.snapshots.announce_expiry(other.snapshots.first_not_expiring())
        forget_changelogs(main, [number for number in main.changelogs.ids() if number >= first.id])
        _put_tags(main, taken)


@dataclass(frozen=True, slots=True)
class _Taken:
    """All that a branch has, read at once: it may be deleted or go on while another branch follows it."""

    branch: str
    snapshots: list[Snapshot]
    schemas: dict[int, bytes]
    tags: dict[str, Tag]

    @staticmethod
    def of(stores: MetadataStores) -> _Taken:
        """What there is of a branch now; an error if it has no snapshots."""
        name, paths, fileio = stores.paths.branch, stores.paths, stores.fileio
        snapshots = [stores.snapshots.get(snapshot_id) for snapshot_id in stores.snapshots.ids()]
        numbers = SchemaStore(fileio, paths.schema_directory).ids()
        if not snapshots or not numbers:
            raise NotFound(f"branch `{name}` of {paths.root} has no snapshots", hint="write to the branch first")
        schemas = {number: fileio.read_bytes(paths.schema_file(number)) for number in numbers}
        return _Taken(name, snapshots, schemas, {tag.name: tag for tag in stores.tags.list()})


def _put(stores: MetadataStores, snapshot: Snapshot, is_taken: bool) -> None:
    """Puts a snapshot in place; in that of another one only where that one is known and has to go."""
    if is_taken:
        if stores.snapshots.find(snapshot.id) != snapshot:
            stores.fileio.overwrite(stores.paths.snapshot_file(snapshot.id), snapshot.to_file())
    elif not stores.snapshots.publish(snapshot) and stores.snapshots.find(snapshot.id) != snapshot:
        raise CommitConflict(
            f"{stores.paths.branch_root} was committed to while it was being fast-forwarded",
            hint="fast-forward again: it goes on where it was interrupted",
        )


def _check_past(main: MetadataStores, taken: _Taken) -> None:
    """The snapshot before the branch's first one must be what that one was made from: streams read on from there."""
    first = taken.snapshots[0]
    before = main.snapshots.find(first.id - 1)
    if before is None or main.snapshots.find(first.id) == first:
        return
    base, state = base_metas(main, first), all_metas(main, before)
    if base == state or _files(main, base) == _files(main, state):
        return
    raise CommitConflict(
        f"{main.paths.branch_root} went another way before snapshot {first.id}, with which branch `{taken.branch}` "
        f"begins: its snapshot {before.id} is not what that one was made from",
        hint=f"roll back to a snapshot before {before.id} first, which takes away what was written since; "
        "or copy the branch's rows with an overwrite",
    )


def _files(stores: MetadataStores, metas: list[ManifestMeta]) -> set[Hashable]:
    return {entry.identity for entry in live_entries(read_manifests(stores, metas))}


def _check_schemas(main: MetadataStores, taken: _Taken) -> None:
    """Snapshots and tags that stay need the schemas they were written with."""
    first = taken.snapshots[0]
    changing = [number for number in _schema_ids(main) if number >= first.schema_id and _differs(main, taken, number)]
    if not changing:
        return
    staying = [main.snapshots.get(number) for number in main.snapshots.ids() if number < first.id]
    staying += [tag.snapshot for tag in main.tags.list() if tag.snapshot.id < first.id]
    needy = next((snapshot for snapshot in staying if snapshot.schema_id >= changing[0]), None)
    if needy is not None:
        raise CommitConflict(
            f"snapshot {needy.id} of {main.paths.branch_root} was written under schema {needy.schema_id}, in whose "
            f"place branch `{taken.branch}` has another one",
            hint="expire that snapshot and delete its tags first, or copy the rows with an overwrite",
        )


def _put_schemas(main: MetadataStores, taken: _Taken) -> None:
    known = _schema_ids(main)
    for number, body in taken.schemas.items():
        if number not in known:
            main.fileio.write_bytes(main.paths.schema_file(number), body)
        elif number >= taken.snapshots[0].schema_id and _differs(main, taken, number):
            main.fileio.overwrite(main.paths.schema_file(number), body)
    for number in reversed(known):
        if number > max(taken.schemas):
            main.fileio.delete(main.paths.schema_file(number))


def _schema_ids(stores: MetadataStores) -> list[int]:
    return SchemaStore(stores.fileio, stores.paths.schema_directory).ids()


def _differs(main: MetadataStores, taken: _Taken, number: int) -> bool:
    body = taken.schemas.get(number)
    if body is None:
        return True
    path = main.paths.schema_file(number)
    ours = TableSchema.from_json(main.fileio.read_bytes(path).decode(), path)
    return ours != TableSchema.from_json(body.decode(), path)


def _put_tags(main: MetadataStores, taken: _Taken) -> None:
    for tag in taken.tags.values():
        if main.tags.find(tag.name) != tag:
            main.fileio.overwrite(main.paths.tag_file(tag.name), tag.to_file())
    for tag in main.tags.list():
        if tag.snapshot.id >= taken.snapshots[0].id and tag.name not in taken.tags:
            main.tags.delete(tag.name)


def _copy(fileio: FileIO, source: str, target: str) -> None:
    fileio.write_bytes(target, fileio.read_bytes(source))


def _rename(fileio: FileIO, paths: TablePaths, source: str, name: str) -> None:
    try:
        fileio.rename_directory(source, paths.branch_directory(name))
    except AlreadyExists:
        raise _taken(paths, name) from None


def _taken(paths: TablePaths, name: str) -> AlreadyExists:
    return AlreadyExists(f"{paths.root} has a branch `{name}` already", hint="choose another name, or delete it first")


def make_branch(context: TableContext, name: str, tag: str | None) -> None:
    """A new branch: from a tag, or without any rows."""
    found = None if tag is None else context.stores.tags.get(tag)
    create_branch(context.stores, name, found, context.ids)


def drop_branches(context: TableContext, names: list[str]) -> None:
    """Deletes branches: their metadata, not their files."""
    known = branch_names(context.fileio, context.paths)
    for name in names:
        if name not in known:
            raise NotFound(f"table `{context.name}` has no branch `{name}`", hint=did_you_mean(name, known))
        if name == context.paths.branch:
            raise InvalidArgument(f"`{context.name}` is branch `{name}` itself", hint="delete it from another branch")
        for option in (SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH):
            if context.options[option] == name:
                raise InvalidArgument(
                    f"table `{context.name}` reads branch `{name}`: option `{option.key}` names it",
                    hint=f"remove option `{option.key}` first",
                )
    for name in names:
        _remove_branch(context.fileio, context.paths, name, context.ids)


def move_branch(context: TableContext, name: str, new_name: str) -> None:
    """Gives a branch another name."""
    rename_branch(context.fileio, context.paths, name, new_name)


def follow_branch(context: TableContext, name: str) -> None:
    """The table goes on as the branch does."""
    fast_forward(context.stores, name)
    context.schemas.forget()
    forget_writes(context)
