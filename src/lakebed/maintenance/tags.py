"""Tags made and deleted so that a tag always has its files, and a deleted one leaves none of its own behind.

Making a tag: write it, then see whether its snapshot still stands. Deleting: take the tag away, then delete what
nothing else needs. A crash in between leaves files without a reference, which orphan cleaning finds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from lakebed.definition.arguments import new_tag_argument, snapshot_argument, tag_argument
from lakebed.definition.context import TableContext
from lakebed.definition.moments import snapshot_of_tag, to_millis
from lakebed.errors import CommitConflict, FileMissing, InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.maintenance.mark_done import write_marker
from lakebed.maintenance.references import is_kept, references, used_names
from lakebed.maintenance.table_files import TableFiles, table_files
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.metadata.tag import Tag
from lakebed.options import TAG_CALLBACKS, TAG_CREATE_SUCCESS_FILE, TAG_DEFAULT_TIME_RETAINED
from lakebed.records import dataclass
from lakebed.units import parse_duration

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
    # INVARIANT: written first, then asked whether the snapshot still stands (see `references`). The other way round an
    # expiry could begin in between, see no tag, and delete the tag's files.
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
    # INVARIANT: the tags go first, and what is left is read after that: a reference that was made meanwhile counts.
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


# --- Tags as a table sees them: with its options, its clock and the moments users write ---------------------------


Duration = str | dt.timedelta
"""`1 d`, or a timedelta."""


def refuse_callbacks(context: TableContext) -> None:
    """Raises if new tags must be told to Java classes, which can not be called here."""
    if context.options[TAG_CALLBACKS]:
        key = TAG_CALLBACKS.key
        raise Unsupported(
            f"table `{context.name}` has `{key}` = `{context.options.raw[key]}`, which this version can not call",
            hint=TAG_CALLBACKS.instead,
        )


def tag_snapshot(context: TableContext, name: str, snapshot: int | None, time_retained: Duration | None) -> Tag:
    """A new tag; without a time to live, the table's option gives one."""
    refuse_callbacks(context)
    default_ms = context.options[TAG_DEFAULT_TIME_RETAINED]
    if time_retained is None and default_ms is not None:
        time_retained = dt.timedelta(milliseconds=default_ms)
    chosen = _chosen(context, snapshot)
    tag = create_tag(context.stores, new_tag_argument(name), chosen, _life(context, time_retained))
    if context.options[TAG_CREATE_SUCCESS_FILE]:
        write_marker(context, context.paths.tag_marker_file(name))
    return tag


def retag(context: TableContext, name: str, snapshot: int | None, time_retained: Duration | None) -> Tag:
    """An existing tag, put on another snapshot or given another time to live."""
    snapshot_of_tag(context.stores, tag_argument(name), context.name)
    return replace_tag(context.stores, name, _chosen(context, snapshot), _life(context, time_retained))


def rename_tag(context: TableContext, name: str, new_name: str) -> None:
    """The same tag under another name."""
    snapshot_of_tag(context.stores, tag_argument(name), context.name)
    context.stores.tags.rename(name, new_tag_argument(new_name))


def remove_tags(context: TableContext, names: Sequence[str]) -> DeletedTags:
    """Deletes tags, all of them or, if one does not exist, none."""
    for name in names:
        snapshot_of_tag(context.stores, tag_argument(name), context.name)
    done = delete_tags(table_files(context), names)
    for name in done.names:
        context.fileio.delete(context.paths.tag_marker_file(name))
    return done


def remove_expired_tags(context: TableContext, older_than: int | str | dt.datetime | dt.date | None) -> DeletedTags:
    """Deletes the tags whose time is over."""
    moment = None if older_than is None else _local(to_millis(older_than))
    due = expired_tags(context.stores, _local(context.clock.now_ms()), moment)
    return remove_tags(context, due) if due else DeletedTags()


def duration_argument(value: Duration, argument: str) -> dt.timedelta:
    """A length of time, longer than none."""
    try:
        found = dt.timedelta(milliseconds=parse_duration(value)) if isinstance(value, str) else value
    except (InvalidOption, OverflowError) as error:
        raise InvalidArgument(f"{argument} is {value!r}", hint="write it like `1 d` or `12 h`") from error
    if not isinstance(found, dt.timedelta) or found < dt.timedelta(0):
        raise InvalidArgument(f"{argument} is {value!r}", hint="pass a timedelta, or text like `1 d` or `12 h`")
    return found


def _chosen(context: TableContext, snapshot: int | None) -> Snapshot:
    stores = context.stores
    if snapshot is not None:
        return find_snapshot(stores, snapshot_argument(snapshot))
    latest = stores.snapshots.latest()
    if latest is None:
        raise NotFound(f"table `{context.name}` has no snapshot to tag", hint="write to the table first")
    return latest


def _life(context: TableContext, time_retained: Duration | None) -> TagLife:
    retained = None if time_retained is None else duration_argument(time_retained, "time_retained")
    return TagLife(_local(context.clock.now_ms()), retained)


def _local(time_ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time_ms / 1000)
