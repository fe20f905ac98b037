"""Expires snapshots: from the oldest to the first that is to be kept.

Where changelogs live longer, an expired snapshot leaves a copy of its JSON file in `changelog/`. With a producer, the
copy keeps the changelog files; without one, changes are the files that each commit added, so these and the manifests
that name them stay until the changelog goes too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import pairwise

from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.fileio.base import FileIO
from lakebed.fileio.together import answers_late, delete_all
from lakebed.maintenance.plan import Candidates, Step, plan
from lakebed.maintenance.references import outsiders, read_snapshots, reusing, reviving_names
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.data_file import FileSource
from lakebed.metadata.json_file import INT64_MAX
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass

_log = logging.getLogger(__name__)


_ROUND = 1000
"""Snapshots that are planned for at a time."""

_LISTENER: ContextVar[Callable[[int, int], None] | None] = ContextVar("who watches an expiry", default=None)


@contextmanager
def watched_expiry(listener: Callable[[int, int], None]) -> Iterator[None]:
    """Until the end of the block somebody is told how many snapshots have gone, of how many, after each round."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def _tell_progress(gone: int, of: int) -> None:
    listener = _LISTENER.get()
    if of > _ROUND:
        _log.info("expired %d of %d snapshots", gone, of)
    if listener is not None:
        listener(gone, of)


def first_kept_snapshot(files: TableFiles, rules: RetentionRules, line: range, *, at_once: bool = True) -> int:
    """The oldest of these snapshots that is to be kept: now, or not `at_once`, when all that is due will have gone."""
    if not line:
        return line.start
    stores = files.stores
    first_kept = rules.snapshots.first_kept if at_once else rules.snapshots.first_kept_at_last

    def held_from() -> int | None:
        return stores.consumers.min_next_snapshot() if rules.consumers_hold_snapshots else None

    def time_ms(snapshot_id: int) -> int:
        return stores.snapshots.get(snapshot_id).time_millis

    return first_kept(line.start, line[-1], time_ms, held_from)


def expire_snapshots(files: TableFiles, rules: RetentionRules) -> Expired:
    """Expires the snapshots that are due, oldest first. An error leaves those that are still there as they are."""
    stores = files.stores
    line = line_of(stores.snapshots.ids())
    stop = first_kept_snapshot(files, rules, line)
    if stop == line.start:
        return Expired()
    snapshots = read_snapshots(stores, line)
    done = Expired()
    for start in range(line.start, stop, _ROUND):
        # In rounds: what one has to know of its snapshots stays small however many there are, and what an interrupted
        # expiry has done is done.
        try:
            done += _expire_round(files, rules, line, snapshots, range(start, min(start + _ROUND, stop)))
        except Overtaken as overtaken:
            overtaken.done = done + overtaken.done
            raise
        _tell_progress(len(done.snapshots), stop - line.start)
    return done


def _expire_round(
    files: TableFiles, rules: RetentionRules, line: range, snapshots: Sequence[Snapshot], going: range
) -> Expired:
    """Expires some of the oldest; `snapshots` are all of the line, of which those before are gone."""
    stores, stop = files.stores, going.stop
    known = reviving_names(files)
    old_and_next = snapshots[going.start - line.start : stop - line.start + 1]
    candidates = [_candidates(files, rules, old, new, old.id == going.start) for old, new in pairwise(old_and_next)]
    later = reusing(files, snapshots[going.start - line.start + 1 :])
    steps = plan(files, candidates, later, outsiders(files, range(stop, line.stop)))
    # INVARIANT: announced first, then looked again for what could revive a file, then deleted. A tag, branch or
    # overwrite that comes in between is seen here, or sees the announcement and gives way.
    _announce(stores, stop)
    if not reviving_names(files, since=line[-1]) <= known:
        raise Overtaken(f"{stores.paths.branch_root} got a tag, branch or overwrite meanwhile", hint="expire again")
    done = _end_all(steps, lambda step: _end(files, rules, step, stop), lambda ids, count: Expired(ids, (), count))
    if rules.is_decoupled:
        stores.changelogs.write_latest_hint(stop - 1)
    stores.snapshots.write_earliest_hint(stop)
    if rules.cleans_directories:
        remove_empty_directories(stores.fileio, stores.paths.data_root, steps)
    return done


def _candidates(files: TableFiles, rules: RetentionRules, old: Snapshot, new: Snapshot, is_first: bool) -> Candidates:
    """What may go with `old`. The first one may be what an interrupted expiry left."""
    remains = files.lenient() if is_first else files
    needed = {*files.indexes(new), *files.statistics(new)}
    listed = [path for path in remains.indexes(old) if path not in needed]
    named = [path for path in remains.statistics(old) if path not in needed]
    dropped = files.dropped(new)
    if rules.is_decoupled and not rules.has_producer:
        return Candidates(old, [entry for entry in dropped if _is_compacted(entry)], (), listed, named)
    manifests = set(files.manifests(new))
    listed += [path for path in remains.manifests(old) if path not in manifests]
    named += remains.lists(old)
    if rules.is_decoupled:
        return Candidates(old, dropped, (), listed, named)
    listed += remains.changelog_manifests(old)
    named += remains.changelog_list(old)
    return Candidates(old, dropped, remains.changelog_files(old), listed, named)


def _is_compacted(entry: ManifestEntry) -> bool:
    """Whether the file came from a compaction. What commits added is what readers of changes want; these are not."""
    return entry.file.file_source == FileSource.COMPACT


def _end(files: TableFiles, rules: RetentionRules, step: Step, stop: int) -> int:
    stores, snapshot = files.stores, step.snapshot
    if not _may_go(stores, snapshot, stop) or not _is_still_there(stores.snapshots.get, snapshot):
        return 0
    if rules.is_decoupled:
        # INVARIANT: the changelog is there before its snapshot goes, or its files would be nobody's, and orphans.
        stores.changelogs.put(snapshot)
    file_count = _delete_files(files, step)
    # A rollback holds this lock: it must not find the snapshot there and lose it a moment later.
    with stores.fileio.advisory_lock(stores.paths.snapshot_directory):
        return file_count + (_may_go(stores, snapshot, stop) and stores.snapshots.delete(snapshot.id))


def _announce(stores: MetadataStores, stop: int) -> None:
    """Says first what will go: a tag, branch or revived state that comes later knows by it that it came too late.

    Under the lock of rollbacks and of other expiries, so that nobody's further announcement is taken back, and nothing
    is announced of a history that was rolled back meanwhile. Where there are no locks, that may have happened: what
    was announced beyond the latest snapshot is of no history that is left.
    """
    snapshots = stores.snapshots
    with stores.fileio.advisory_lock(stores.paths.snapshot_directory):
        if not snapshots.exists(stop) and snapshots.first_not_expiring() <= stop:
            raise Overtaken(f"snapshot {stop} of {stores.paths.branch_root} is gone", hint="expire again")
        if snapshots.first_not_expiring() > (snapshots.latest_id() or stop):
            snapshots.withdraw_expiry(stop)
        else:
            snapshots.announce_expiry(stop)


def _may_go(stores: MetadataStores, snapshot: Snapshot, stop: int) -> bool:
    """Whether the plan still holds; false if another expiry goes further, `Overtaken` if the table was rolled back.

    An expiry that goes further announces it before it deletes anything. So the announcement is read last: if it were
    read first, `stop` could go in between, and that would look like a rollback.
    """
    has_future = stores.snapshots.exists(stop)
    announced = stores.snapshots.first_not_expiring()
    if has_future and announced > snapshot.id:
        return True
    if announced > stop:
        return False
    raise Overtaken(f"the table was rolled back when snapshot {snapshot.id} was about to expire", hint="expire again")


# --- Expires changelogs that outlived their snapshots: from the oldest to the first that is to be kept ------------
#
# A changelog holds either changelog files, or the manifests and added files of its commit; with the oldest one go the
# changelog files, or the manifests and files that the next one does not have.


def outliving_ids(files: TableFiles) -> list[int]:
    """Ids of the changelogs whose snapshots are gone. An interrupted expiry may leave one whose snapshot is not."""
    snapshot_line = line_of(files.stores.snapshots.ids())
    return [number for number in files.stores.changelogs.ids() if number < snapshot_line.start]


def expire_changelogs(files: TableFiles, rules: RetentionRules, *, everything: bool = False) -> Expired:
    """Expires the changelogs that are due. An error before the first delete means that nothing was deleted.

    `everything`: all of them go, whatever the rules say, and whoever has yet to read them.
    """
    stores = files.stores
    snapshot_line = line_of(stores.snapshots.ids())
    ids = outliving_ids(files)
    if not ids:
        return Expired()
    stop = ids[-1] + 1 if everything else _first_kept(files, rules, ids, snapshot_line)
    if stop <= ids[0]:
        return Expired()
    snapshots = read_snapshots(stores, snapshot_line)
    timeline = [*(stores.changelogs.get(number) for number in ids), snapshots[0]]
    candidates = [
        _changelog_candidates(files, old, new if new.id == old.id + 1 else None, old.id == ids[0])
        for old, new in pairwise(timeline)
        if old.id < stop
    ]
    later = [*reusing(files.lenient(), timeline[1:-1]), *reusing(files, snapshots)]
    steps = plan(files, candidates, later, outsiders(files, snapshot_line))
    left = [number for number in ids if number >= stop]
    if not left:
        stores.changelogs.delete_hints()
    done = _end_all(steps, lambda step: _end_changelog(files, step), lambda ended, count: Expired((), ended, count))
    if left:
        stores.changelogs.write_earliest_hint(left[0])
    return done


def due_changelogs(files: TableFiles, rules: RetentionRules) -> int:
    """How many changelogs are due, however many may go at once."""
    ids = outliving_ids(files)
    if not ids:
        return 0
    stop = _first_kept(files, rules, ids, line_of(files.stores.snapshots.ids()), at_once=False)
    return sum(number < stop for number in ids)


def _first_kept(
    files: TableFiles, rules: RetentionRules, ids: list[int], snapshot_line: range, *, at_once: bool = True
) -> int:
    stores = files.stores
    retention = rules.changelogs
    if not rules.is_decoupled:  # left from a time when they lived longer: none of them is wanted
        retention = replace(retention, retain_min=1, older_than_ms=INT64_MAX)

    def time_ms(number: int) -> int:
        after = next((found for found in ids if found >= number), None)
        found = stores.changelogs.get(after) if after is not None else stores.snapshots.get(snapshot_line.start)
        return found.time_millis

    latest = snapshot_line[-1]
    # Only what lies in the changelog directory can go: as if the first snapshot were the least that must stay.
    least = max(retention.retain_min, latest - ids[-1])
    retention = replace(retention, retain_min=least)
    first_kept = retention.first_kept if at_once else retention.first_kept_at_last
    return first_kept(ids[0], latest, time_ms, stores.consumers.min_next_snapshot)


def _changelog_candidates(files: TableFiles, old: Snapshot, new: Snapshot | None, is_first: bool) -> Candidates:
    """What may go with `old`. The first one may be what an interrupted expiry left.

    So may one without a successor: an expiry that was overtaken by another leaves it when all around it has gone.
    """
    remains = files.lenient() if is_first or new is None else files
    log_files, listed, named = (
        remains.changelog_files(old),
        remains.changelog_manifests(old),
        remains.changelog_list(old),
    )
    own = Candidates(old, (), log_files, listed, named)
    base_list = files.lists(old)[-1]
    if new is None or not files.stores.fileio.exists(base_list):
        return own  # the state's files went with the snapshot
    try:
        dropped, manifests = files.dropped(new), set(files.manifests(new))
    except FileMissing:
        return own  # those of the next one did: what this one shares with it can not be told, so it stays
    listed = [*listed, *(path for path in remains.manifests(old) if path not in manifests)]
    return Candidates(old, dropped, log_files, listed, [*named, *remains.lists(old)])


def _end_changelog(files: TableFiles, step: Step) -> int:
    stores = files.stores
    if not _is_still_there(stores.changelogs.get, step.snapshot):
        return 0
    return _delete_files(files, step) + stores.changelogs.delete(step.snapshot.id)


# --- What both kinds of expiry share: the ids that follow on one another, and the careful end of one of them ------


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry removed: ids of snapshots and of long-lived changelogs, and how many files went with them."""

    snapshots: tuple[int, ...] = ()
    changelogs: tuple[int, ...] = ()
    file_count: int = 0
    remaining: int = 0
    """How many more are due, which the most that may go at once left for the next time."""

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.changelogs)

    def __add__(self, other: Expired) -> Expired:
        return Expired(
            self.snapshots + other.snapshots,
            self.changelogs + other.changelogs,
            self.file_count + other.file_count,
            self.remaining + other.remaining,
        )


class Overtaken(CommitConflict):
    """Something came in between that the plan does not know of: plan again. `done` is what went before that."""

    done = Expired()


def _end_all(
    steps: Iterable[Step], end: Callable[[Step], int], told: Callable[[tuple[int, ...], int], Expired]
) -> Expired:
    """Ends one snapshot or changelog after another; what has gone is told also when something comes in between."""
    ids: list[int] = []
    file_count = 0
    for step in steps:
        try:
            file_count += end(step)
        except Overtaken as overtaken:
            overtaken.done = told(tuple(ids), file_count)
            raise
        ids.append(step.snapshot.id)
    return told(tuple(ids), file_count)


def line_of(ids: Sequence[int]) -> range:
    """The ids up to the newest without a gap.

    INVARIANT: one below a gap is left alone. What goes with a snapshot is what its direct successor dropped; told from
    any other, files that later snapshots need would be among it.
    """
    if not ids:
        return range(0)
    start = len(ids) - 1
    while start > 0 and ids[start - 1] == ids[start] - 1:
        start -= 1
    return range(ids[start], ids[-1] + 1)


def _is_still_there(get: Callable[[int], Snapshot], planned: Snapshot) -> bool:
    """Whether the snapshot has not gone since the plan was made: nobody but another expiry may have touched it."""
    try:
        found = get(planned.id)
    except NotFound:
        return False
    if found != planned:
        raise Overtaken(
            f"snapshot {planned.id} is another one than when the expiry was planned",
            hint="the table was rolled back or made anew: expire again",
        )
    return True


def remove_empty_directories(fileio: FileIO, root: str, steps: Iterable[Step]) -> None:
    """Removes the buckets and partitions below the root that lost their last file."""
    buckets = {path.rpartition("/")[0] for step in steps for path in step.paths}
    for directory in sorted(name for name in buckets if "/bucket-" in name and name.startswith(f"{root}/")):
        while directory != root and fileio.delete_empty_directory(directory):
            directory = directory.rpartition("/")[0]


def _delete_files(files: TableFiles, step: Step) -> int:
    """Deletes a step's files in their order; how many were there. Where answers are late, all at once: how many.

    Very many go in tasks, as far as they tell of no others: the manifests are there until they have gone.
    """
    fileio, manifests = files.stores.fileio, f"{files.stores.paths.manifest_directory}/"
    paths = step.paths
    bulk = [path for path in paths if not path.startswith(manifests)]
    gone = 0
    if files.delete_elsewhere(bulk):
        gone, paths = len(bulk), tuple(path for path in paths if path.startswith(manifests))
    if answers_late(fileio):
        delete_all(fileio, paths)
        return gone + len(paths)
    return gone + sum(fileio.delete(path) for path in paths)
