"""Expires snapshots: from the oldest to the first that is to be kept.

Where changelogs live longer, an expired snapshot leaves a copy of its JSON file in `changelog/`. With a producer, the
copy keeps the changelog files; without one, changes are the files that each commit added, so these and the manifests
that name them stay until the changelog goes too.
"""

from __future__ import annotations

from itertools import pairwise

from lakebed.maintenance.plan import Candidates, Step, plan
from lakebed.maintenance.references import reviving_names
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.steps import (
    Expired,
    Overtaken,
    delete_files,
    end_all,
    is_still_there,
    line_of,
    remove_empty_directories,
)
from lakebed.maintenance.survivors import outsiders, read_snapshots, reusing
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.data_file import FileSource
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores


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
    """Expires the snapshots that are due. An error before the first delete means that nothing was deleted."""
    stores = files.stores
    line = line_of(stores.snapshots.ids())
    stop = first_kept_snapshot(files, rules, line)
    if stop == line.start:
        return Expired()
    known = reviving_names(files)
    snapshots = read_snapshots(stores, line)
    candidates = [
        _candidates(files, rules, old, new, old.id == line.start)
        for old, new in pairwise(snapshots[: stop - line.start + 1])
    ]
    kept = range(stop, line.stop)
    steps = plan(files, candidates, reusing(files, snapshots[1:]), outsiders(files, kept))
    _announce(stores, stop)
    if not reviving_names(files, since=line[-1]) <= known:
        raise Overtaken(f"{stores.paths.branch_root} got a tag, branch or overwrite meanwhile", hint="expire again")
    done = end_all(steps, lambda step: _end(files, rules, step, stop), lambda ids, count: Expired(ids, (), count))
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
    if not _may_go(stores, snapshot, stop) or not is_still_there(stores.snapshots.get, snapshot):
        return 0
    if rules.is_decoupled:
        stores.changelogs.put(snapshot)
    file_count = delete_files(stores.fileio, step)
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
