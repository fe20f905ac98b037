"""Tags made and deleted so that a tag always has its files, and a deleted one leaves none of its own behind.

Making a tag: write it, then see whether its snapshot still stands. Deleting: take the tag away, then delete what
nothing else needs. A crash in between leaves files without a reference, which orphan cleaning finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.maintenance.references import is_kept, references
from lakebed.maintenance.table_files import TableFiles
from lakebed.maintenance.used_files import used_names
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.metadata.tag import Tag

_ATTEMPTS = 5
"""How often to look again because an expiry removed something while the references were being read."""


@dataclass(frozen=True, slots=True)
class DeletedTags:
    """The tags that went, and how many files went with them."""

    names: tuple[str, ...] = ()
    file_count: int = 0


@dataclass(frozen=True, slots=True)
class TagLife:
    """When a tag is made, and for how long. Without a time to live the first is not recorded."""

    created: datetime
    retained: timedelta | None = None


def find_snapshot(stores: MetadataStores, snapshot_id: int) -> Snapshot:
    """A snapshot that is there, or that has expired and lives on in a tag."""
    found = stores.snapshots.find(snapshot_id)
    if found is not None:
        return found
    tagged = next((tag.snapshot for tag in stores.tags.list() if tag.snapshot.id == snapshot_id), None)
    return stores.snapshots.get(snapshot_id) if tagged is None else tagged


def create_tag(stores: MetadataStores, name: str, snapshot: Snapshot, life: TagLife) -> Tag:
    """Tags a snapshot; an error when the name is taken, or when the snapshot has gone meanwhile."""
    tag = stores.tags.create(name, snapshot, create_time=life.created, retained=life.retained)
    _undo_unless_kept(stores, tag, lambda: stores.tags.delete(name))
    return tag


def replace_tag(stores: MetadataStores, name: str, snapshot: Snapshot, life: TagLife) -> Tag:
    """Lets a tag name another snapshot. Files that only its former one needed become orphans."""
    before = stores.tags.get(name)
    tag = stores.tags.replace(name, snapshot, create_time=life.created, retained=life.retained)

    def undo() -> None:
        stores.tags.replace(name, before.snapshot, create_time=before.create_time, retained=before.retained)

    _undo_unless_kept(stores, tag, undo)
    return tag


def _undo_unless_kept(stores: MetadataStores, tag: Tag, undo: Callable[[], object]) -> None:
    if is_kept(stores, tag.snapshot):
        return
    if any(other.snapshot == tag.snapshot and other.name != tag.name for other in stores.tags.list()):
        return  # it has expired, but another tag keeps its files
    undo()
    raise CommitConflict(
        f"snapshot {tag.snapshot.id} of {stores.paths.branch_root} expired while tag `{tag.name}` was made",
        hint="tag a later snapshot; nothing was changed",
    )


def delete_tags(files: TableFiles, names: Sequence[str]) -> DeletedTags:
    """Deletes tags, and the files that only they kept. If something is unreadable, neither goes."""
    stores = files.stores
    tags = [stores.tags.get(name) for name in dict.fromkeys(names)]
    gone = [tag.snapshot for tag in tags if stores.snapshots.find(tag.snapshot.id) is None]
    held = [path for snapshot in gone for path in _held(files.lenient(), snapshot)]
    if held:
        _used(files, names)  # also proves that all of it can be read
    for tag in tags:
        stores.tags.delete(tag.name)
    used = _used(files, ()) if held else set()
    unused = [path for path in dict.fromkeys(held) if path.rpartition("/")[2] not in used]
    return DeletedTags(tuple(tag.name for tag in tags), sum(stores.fileio.delete(path) for path in unused))


def _held(files: TableFiles, snapshot: Snapshot) -> list[str]:
    """Files of a tagged state, in the order in which they may go: what names others last."""
    manifests = files.manifests(snapshot)
    data: list[str] = []
    if all(files.stores.fileio.exists(path) for path in (*manifests, *files.lists(snapshot))):
        data = [path for entry in live_files(files.stores, snapshot) for path in files.paths(entry)]
    return [*data, *manifests, *files.indexes(snapshot), *files.statistics(snapshot), *files.lists(snapshot)]


def _used(files: TableFiles, without_tags: Sequence[str]) -> set[str]:
    return used_by_all(files, lambda: used_names(references(files, without_tags)))


def used_by_all(files: TableFiles, read: Callable[[], set[str]]) -> set[str]:
    """What `read` finds, reading again if snapshots expired meanwhile. What stays missing is an error."""
    for _ in range(_ATTEMPTS - 1):
        before = files.stores.snapshots.ids()
        try:
            return read()
        except (NotFound, FileMissing):
            if files.stores.snapshots.ids() == before:
                raise
    return read()


def expired_tags(stores: MetadataStores, now: datetime, older_than: datetime | None) -> list[str]:
    """Tags whose time to live is over and, where a moment is given, those made before it."""
    modified_ms = stores.tags.modified_ms() if older_than is not None else {}
    due = []
    for tag in stores.tags.list():
        created = tag.create_time if tag.retained is not None else None
        if created is None and tag.name in modified_ms:
            created = datetime.fromtimestamp(modified_ms[tag.name] / 1000)
        if created is None:
            continue
        is_over = tag.retained is not None and now > created + tag.retained
        if is_over or (older_than is not None and created < older_than):
            due.append(tag.name)
    return due
