"""From candidates to what may really go: everything is decided, and everything needed for it read, before any delete.

Expiry goes one step at a time, oldest first. A step ends one snapshot (or changelog), and what goes with it is what
its successor does not have. So an interruption leaves at most the oldest one incomplete, and the next expiry goes on
from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from lakebed.maintenance.references import Survivor
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Candidates:
    """What would go with a snapshot if there were no others than its successor."""

    snapshot: Snapshot
    data: Sequence[ManifestEntry] = ()
    changelog_files: Sequence[str] = ()
    listed: Sequence[str] = ()
    """Metadata files that other metadata files name: manifests, index files."""
    named: Sequence[str] = ()
    """Metadata files that the snapshot itself names."""


@dataclass(frozen=True, slots=True)
class Step:
    """The end of one snapshot: the files to delete, in this order, before the snapshot's own."""

    snapshot: Snapshot
    paths: tuple[str, ...] = field(repr=False)


def plan(
    files: TableFiles, candidates: Sequence[Candidates], later: Sequence[Survivor], outsiders: Sequence[Survivor]
) -> list[Step]:
    """One step for each of the candidates. `later` protect only what goes before their own predecessor does."""
    names = {name for step in candidates for name in _file_names(step)}
    wants_listed = any(step.listed for step in candidates)

    def needed(survivors: Iterable[Survivor]) -> set[str]:
        found: set[str] = set()
        for survivor in survivors:
            found |= survivor.data(names) if names else set()
            found |= survivor.metadata() if wants_listed else survivor.named_metadata()
        return found

    always = needed(outsiders)
    by_id = {survivor.snapshot.id: needed([survivor]) for survivor in later}
    steps = []
    for step in candidates:
        kept = always.union(*(found for number, found in by_id.items() if number > step.snapshot.id + 1))
        data = [path for entry in step.data if files.path(entry) not in kept for path in files.paths(entry)]
        others = (path for path in (*step.changelog_files, *step.listed, *step.named) if path not in kept)
        steps.append(Step(step.snapshot, tuple(dict.fromkeys((*data, *others)))))
    return steps


def _file_names(step: Candidates) -> Iterable[str]:
    yield from (entry.file.file_name for entry in step.data)
    yield from (path.rpartition("/")[2] for path in step.changelog_files)
