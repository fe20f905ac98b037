"""Gives the rows of partitions ids that follow one another, by what manifests say of their files: no row is written.

Each commit hands out the next ids, so that of a partition which is written to often they lie in many pieces. Where ids
are positions in files (`data-evolution.enabled`), a piece can be given others without touching a file. Marks of deleted
rows are positions too, and stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.row_ids import has_own_ids
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import committer_for, latest_schema_id
from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    DATA_EVOLUTION_ENABLED,
    DATA_EVOLUTION_REASSIGN_SKIP_CONTIGUOUS_ROW_COUNT,
    ROW_TRACKING_ENABLED,
)
from lakebed.records import dataclass
from lakebed.rewrite.columns import RowRange, row_ranges
from lakebed.types.binary_row import decode_rows
from lakebed.types.ordering import argsort, key_codes

_Run = list[RowRange]
"""Ranges of rows whose ids follow one another."""


@dataclass(frozen=True, slots=True)
class ReassignedIds:
    """What got other ids: from `first` up to, and not with, `next_row_id`."""

    previous: int
    """The snapshot before."""
    current: int
    """The snapshot with the new ids."""
    files: int
    first: int
    next_row_id: int

    @property
    def rows(self) -> int:
        """How many rows there are, deleted ones among them."""
        return self.next_row_id - self.first


def reassign_ids(
    context: TableContext,
    keep: Callable[[list[ManifestEntry]], list[ManifestEntry]],
    identity: CommitIdentity,
) -> ReassignedIds | None:
    """Commits new ids for the rows of those partitions, of the ones that `keep` chooses, whose ids have gaps.

    None if there are no such partitions. What was read before can not be committed any more if it names rows by id.
    """
    if not context.options[DATA_EVOLUTION_ENABLED]:
        raise Unsupported(
            f"table `{context.name}` has no `{DATA_EVOLUTION_ENABLED.key}`: ids of rows stay as they are",
            hint=f"ids can change only in tables with `{ROW_TRACKING_ENABLED.key}` and `{DATA_EVOLUTION_ENABLED.key}`",
        )
    done: ReassignedIds | None = None

    def prepare(latest: Snapshot | None) -> Changes | None:
        nonlocal done
        if latest is None:
            raise NotFound(f"table `{context.name}` has no snapshots", hint="write to the table first")
        live = live_files(context.stores, latest)
        first = latest.next_row_id or 0
        moved, next_row_id = _new_firsts(context, keep(live), first)
        if not moved:
            done = None
            return None
        restated = [_restated(context, entry, moved) for entry in live]
        files = sum(old != new for old, new in zip(live, restated, strict=True))
        done = ReassignedIds(latest.id, latest.id + 1, files, first, next_row_id)
        return Changes([], restated=restated, next_row_id=next_row_id)

    committer_for(context).commit(CommitKind.OVERWRITE, identity, lambda: latest_schema_id(context), prepare)
    return done


def _new_firsts(context: TableContext, entries: Sequence[ManifestEntry], first: int) -> tuple[dict[int, int], int]:
    """New first ids by the old ones, and the next that is free. Partitions are taken in the order of their values."""
    partitions: dict[bytes, list[RowRange]] = defaultdict(list)
    if context.schema.partition_keys:  # else all rows have ids that follow one another already, but for what is gone
        for part in row_ranges(context, entries):
            partitions[part.entry.partition].append(part)
    limit = context.options[DATA_EVOLUTION_REASSIGN_SKIP_CONTIGUOUS_ROW_COUNT]
    moved: dict[int, int] = {}
    for partition in _in_order(context, list(partitions)):
        runs = [run for run in _runs(partitions[partition]) if not limit or sum(part.count for part in run) <= limit]
        if len(runs) < 2:
            continue
        for part in (part for run in runs for part in run):
            moved[part.first] = first
            first += part.count
    return moved, first


def _runs(parts: Sequence[RowRange]) -> list[_Run]:
    runs: list[_Run] = []
    for part in parts:
        if runs and runs[-1][-1].first + runs[-1][-1].count == part.first:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs


def _in_order(context: TableContext, partitions: Sequence[bytes]) -> list[bytes]:
    if not partitions:
        return []
    columns = decode_rows(list(partitions), context.partition_types)
    return [partitions[index] for index in argsort(key_codes(columns)).tolist()]


def _restated(context: TableContext, entry: ManifestEntry, moved: Mapping[int, int]) -> ManifestEntry:
    file = entry.file
    if file.first_row_id is None or file.first_row_id not in moved:
        return entry
    if has_own_ids(file):
        raise InvalidArgument(
            f"table `{context.name}`: the rows of file {file.file_name} have their ids in a column",
            hint="choose other partitions",
        )
    return replace(entry, file=replace(file, first_row_id=moved[file.first_row_id]))


__all__ = ["ReassignedIds", "reassign_ids"]
