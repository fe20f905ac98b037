"""Proves that the metadata of a table agrees with itself, snapshot by snapshot, or says in plain words where not.

The state of a snapshot stands twice: as all entries of its manifests, and as the state before it with its own changes
on top. Readers differ in how they add entries up: those that keep their order let a file live that is deleted and added
again, those that look at the set take the DELETE for the end of it. All of these have to be the same files, and the
record counts of the snapshot have to be theirs. Nothing is repaired and nothing raised: a finding is a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property

from lakebed.errors import FileMissing, LakebedError
from lakebed.metadata.entries import base_metas, changelog_entries, delta_metas, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.operation import ROLLBACK
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass

_SHOWN = 3


def check_history(stores: MetadataStores, snapshots: Sequence[Snapshot]) -> list[str]:
    """One sentence for every contradiction in these snapshots, oldest first; none when all is well."""
    findings: list[str] = []
    before: _Lists | None = None
    for snapshot in snapshots:
        lists = _Lists(stores, snapshot)
        try:
            found = [*_check_state(stores, lists, before), *_check_counts(stores, lists, before)]
        except LakebedError as error:
            found = [f"its metadata can not be read: {error.message}"]
        findings += [f"snapshot {snapshot.id}: {sentence}" for sentence in found]
        before = lists
    return findings


@dataclass(frozen=True)
class _Lists:
    """The manifest lists of a snapshot, each read once."""

    stores: MetadataStores
    snapshot: Snapshot

    @cached_property
    def base(self) -> list[ManifestMeta]:
        return base_metas(self.stores, self.snapshot)

    @cached_property
    def delta(self) -> list[ManifestMeta]:
        return delta_metas(self.stores, self.snapshot)

    def follow(self, before: _Lists | None) -> bool:
        """Whether the other ones are those of the snapshot right before this one."""
        return before is not None and before.snapshot.id == self.snapshot.id - 1


# --- files -----------------------------------------------------------------------------------------------------------


def _check_state(stores: MetadataStores, lists: _Lists, before: _Lists | None) -> Iterator[str]:
    snapshot = lists.snapshot
    if before is not None and lists.follow(before):
        yield from _check_base(stores, lists.base, before)
        last = before.snapshot
        if snapshot.commit_user == last.commit_user and snapshot.time_millis < last.time_millis:
            yield f"it is {last.time_millis - snapshot.time_millis} ms older than the snapshot before it"
    entries = [*read_manifests(stores, lists.base), *read_manifests(stores, lists.delta)]
    live, sentences = _replayed(entries)
    yield from sentences
    by_set = {entry.identity for entry in entries if entry.kind == EntryKind.ADD} - {
        entry.identity for entry in entries if entry.kind == EntryKind.DELETE
    }
    lost = [entry for identity, entry in live.items() if identity not in by_set]
    if lost:
        yield (
            f"{_named(lost)} deleted and added again, and a DELETE is still among the manifests: readers that know no "
            "order take it for deleted"
        )
    names = Counter(entry.file.file_name for entry in live.values())
    doubled = [entry for entry in live.values() if names[entry.file.file_name] > 1]
    if doubled:
        yield f"{_named(doubled)} listed more than once, on other levels or in other buckets"
    rows = sum(entry.file.row_count for entry in live.values())
    if snapshot.total_record_count != rows:
        yield f"it counts {snapshot.total_record_count} records in all, its files hold {rows}"


def _check_base(stores: MetadataStores, base: list[ManifestMeta], before: _Lists) -> Iterator[str]:
    """What a snapshot builds on is the state of the snapshot before it."""
    earlier = [*before.base, *before.delta]
    if [meta.file_name for meta in base] == [meta.file_name for meta in earlier]:
        return
    built_on = _replayed(read_manifests(stores, base))[0]
    was = _replayed(read_manifests(stores, earlier))[0]
    lost = [entry for identity, entry in was.items() if identity not in built_on]
    extra = [entry for identity, entry in built_on.items() if identity not in was]
    if lost:
        yield f"its base lacks files of snapshot {before.snapshot.id}: {_named(lost)} not there"
    if extra:
        yield f"its base has files that snapshot {before.snapshot.id} has not: {_named(extra)} there"


def _replayed(entries: Iterable[ManifestEntry]) -> tuple[dict[Hashable, ManifestEntry], list[str]]:
    """Live entries, one after the other in the order of the manifests, and what does not fit."""
    live: dict[Hashable, ManifestEntry] = {}
    twice, missing = [], []
    for entry in entries:
        identity = entry.identity
        if entry.kind == EntryKind.DELETE:
            if live.pop(identity, None) is None:
                missing.append(entry)
        elif identity in live:
            twice.append(entry)
        else:
            live[identity] = entry
    sentences = []
    if twice:
        sentences.append(f"{_named(twice)} added although there already")
    if missing:
        sentences.append(f"{_named(missing)} deleted without being there")
    return live, sentences


def _named(entries: Sequence[ManifestEntry]) -> str:
    names = [f"{entry.file.file_name} (level {entry.file.level})" for entry in entries[:_SHOWN]]
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return f"{', '.join(names)}{more} {'is' if len(entries) == 1 else 'are'}"


# --- counts ----------------------------------------------------------------------------------------------------------


def _check_counts(stores: MetadataStores, lists: _Lists, before: _Lists | None) -> Iterator[str]:
    snapshot, changes = lists.snapshot, read_manifests(stores, lists.delta)
    rows = sum(-entry.file.row_count if entry.kind == EntryKind.DELETE else entry.file.row_count for entry in changes)
    if snapshot.delta_record_count != rows:
        yield f"it counts {snapshot.delta_record_count} records more than before, its changes come to {rows}"
    told = _told_rows(stores, snapshot, is_oldest=before is None)
    if None not in (snapshot.changelog_record_count, told) and snapshot.changelog_record_count != told:
        yield f"it counts {snapshot.changelog_record_count} records of changelog, the files hold {told}"
    # A state that came back is meant as it was, until its rows are folded.
    if before is None or not lists.follow(before) or snapshot.operation == ROLLBACK:
        return
    if snapshot.schema_id < before.snapshot.schema_id:
        older = before.snapshot.schema_id
        yield f"its schema {snapshot.schema_id} is older than schema {older} of the snapshot before it"


def _told_rows(stores: MetadataStores, snapshot: Snapshot, *, is_oldest: bool) -> int | None:
    """Rows of the changelog. The oldest snapshot may have come back from a tag, which keeps the state alone."""
    try:
        return sum(entry.file.row_count for entry in changelog_entries(stores, snapshot))
    except FileMissing:
        if not is_oldest:
            raise
        return None


__all__ = ["check_history"]
