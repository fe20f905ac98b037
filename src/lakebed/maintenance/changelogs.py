"""Expires changelogs that outlived their snapshots: from the oldest to the first that is to be kept.

A changelog holds either changelog files, or the manifests and added files of its commit; with the oldest one go the
changelog files, or the manifests and files that the next one does not have.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from lakebed.errors import FileMissing
from lakebed.maintenance.plan import Candidates, Step, plan
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.steps import Expired, delete_files, end_all, is_still_there, line_of
from lakebed.maintenance.survivors import outsiders, read_snapshots, reusing
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.json_file import INT64_MAX
from lakebed.metadata.snapshot import Snapshot


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
    done = end_all(steps, lambda step: _end_changelog(files, step), lambda ended, count: Expired((), ended, count))
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
    if not is_still_there(stores.changelogs.get, step.snapshot):
        return 0
    return delete_files(stores.fileio, step) + stores.changelogs.delete(step.snapshot.id)
