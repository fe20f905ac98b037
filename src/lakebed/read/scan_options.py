"""Snapshots, files and partitions that `scan.*` options choose; `changes/scan_modes` says which a mode shows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakebed.definition.changelog_rules import FULL_COMPACTION, full_compaction_every, producer
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History
from lakebed.definition.partition_spec import Overwrite
from lakebed.definition.row_rules import vectors_at
from lakebed.definition.shown_defaults import stored_part
from lakebed.errors import InvalidOption, Unsupported
from lakebed.metadata.entries import created_since, delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.options import (
    FULL_COMPACTION_DELTA_COMMITS,
    PARTITION_DEFAULT_NAME,
    SCAN_PARTITIONS,
)
from lakebed.read.plan import FileSieve, ScanPlan, splits_of
from lakebed.types import ordering
from lakebed.types import predicate as predicates
from lakebed.types.binary_row import decode_rows
from lakebed.types.predicate import Comparison, IsNull, Op, Predicate


def compacted_snapshot(context: TableContext) -> Snapshot | None:
    """The newest snapshot that a compaction made: a full one, if the table's options say how often they come."""
    every = 1
    if producer(context.options) == FULL_COMPACTION or context.options.has(FULL_COMPACTION_DELTA_COMMITS):
        every = full_compaction_every(context.options) or 1
    for snapshot in context.stores.snapshots.newest_first():
        identifier = snapshot.commit_identifier
        is_counted = identifier % every == 0 or identifier == BATCH_COMMIT_IDENTIFIER
        if snapshot.commit_kind == CommitKind.COMPACT and is_counted:
            return snapshot
    return context.stores.snapshots.latest()


def snapshot_since(history: History, time_ms: int) -> int | None:
    """The first snapshot since a time, if the time lies between two snapshots that are there; else None."""
    found, earliest, latest = history.first_since(time_ms), history.earliest_id(), history.latest_id()
    if earliest is None or latest is None:
        return None
    return found if earliest < found <= latest else None


def plan_created_since(context: TableContext, time_ms: int, predicate: Predicate | None) -> ScanPlan:
    """What is in files of the latest snapshot that were created at this time or later."""
    snapshot = context.stores.snapshots.latest()
    sieve = _sieve(context, predicate)
    entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
    return _plan_entries(context, snapshot, created_since(entries, time_ms), sieve)


def plan_latest_delta(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    """What the latest snapshot has added."""
    snapshot = context.stores.snapshots.latest()
    if snapshot is None or snapshot.commit_kind != CommitKind.APPEND:
        return ScanPlan(snapshot, ())
    sieve = _sieve(context, predicate)
    entries = delta_entries(context.stores, snapshot, sieve.keep_entries)
    return _plan_entries(context, snapshot, [entry for entry in entries if entry.kind == EntryKind.ADD], sieve)


def _sieve(context: TableContext, predicate: Predicate | None) -> FileSieve:
    return FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))


def _plan_entries(
    context: TableContext, snapshot: Snapshot | None, entries: list[ManifestEntry], sieve: FileSieve
) -> ScanPlan:
    lowest = context.lowest_visible_level
    shown = [entry for entry in entries if entry.file.level >= lowest]
    vectors = vectors_at(context, snapshot)
    return ScanPlan(snapshot, tuple(splits_of(context, sieve.keep_live(shown), sieve, vectors)))


# --- Reads of some partitions only: `scan.partitions` -------------------------------------------------------------
#
# The option names partitions (`dt=20240101,hh=1;dt=20240102,hh=1`; what a partition leaves out is null) or asks for
# the largest: `max_pt()`, `max_two_pt()`, or `max_pt()` for the first partition columns, which takes all that is
# below the largest values of those. It becomes a filter on partition columns, so that whole manifests are skipped by
# it.


_LARGEST = "max_pt()"
_COUNTS = {_LARGEST: 1, "max_two_pt()": 2}
_FORM = "write `column=value,...`, with `;` between partitions, or `max_pt()` or `max_two_pt()`"


def in_scanned_partitions(
    context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None
) -> Predicate | None:
    """The filter of a read that shows this snapshot, narrowed to the partitions that the options name."""
    text = context.options[SCAN_PARTITIONS]
    if text is None:
        return predicate
    _check_partitioned(context)
    chosen = _largest(context, snapshot, text) if _is_dynamic(text) else _named(context, text)
    return chosen if predicate is None else predicates.conjunction([chosen, predicate])


def in_followed_partitions(context: TableContext) -> Predicate | None:
    """As `in_scanned_partitions`, for a reader that goes on: the partitions must be named."""
    return in_named_partitions(context, None, "which partition is the largest changes while the table is followed")


def in_named_partitions(
    context: TableContext, predicate: Predicate | None, why: str = "the largest partition of two branches is not known"
) -> Predicate | None:
    """As `in_scanned_partitions`, where the partitions must be named, and why."""
    text = context.options[SCAN_PARTITIONS]
    if text is not None and _is_dynamic(text):
        raise Unsupported(
            f"table `{context.name}`: {why}",
            hint=f"name the partitions in `{SCAN_PARTITIONS.key}`, or leave it out",
        )
    return in_scanned_partitions(context, None, predicate)


def _is_dynamic(text: str) -> bool:
    return text.strip().lower() in _COUNTS or _LARGEST in text


def _check_partitioned(context: TableContext) -> None:
    if not context.partition_fields:
        raise InvalidOption(
            f"option `{SCAN_PARTITIONS.key}`: table `{context.name}` is not partitioned", hint="leave it out"
        )


def _named(context: TableContext, text: str) -> Predicate:
    specs = [_pairs(part) for part in text.split(";") if part.strip()]
    return predicates.disjunction(_is_partition(context, spec) for spec in specs)


def _is_partition(context: TableContext, spec: Mapping[str, str]) -> Predicate:
    default_name = context.options[PARTITION_DEFAULT_NAME]
    full = {name: None if value == default_name else value for name, value in spec.items()}
    full |= {field.name: None for field in context.partition_fields if field.name not in spec}
    return _all_equal(Overwrite.parse(context, full).spec or {})


def _largest(context: TableContext, snapshot: Snapshot | None, text: str) -> Predicate:
    """The largest partitions that there are; without any nothing is excluded."""
    found = list({entry.partition for entry in live_files(context.stores, snapshot)})
    if not found:
        return predicates.conjunction([])
    names = [field.name for field in context.partition_fields]
    count = _COUNTS.get(text.strip().lower())
    if count is None:
        names, count = names[: _levels(context, text)], 1
    columns = decode_rows(found, context.partition_types)[: len(names)]
    keys = {ordering.sort_key(columns, row): row for row in range(len(found))}
    rows = [keys[key] for key in sorted(keys, reverse=True)[:count]]
    return predicates.disjunction(
        _all_equal({name: column[row] for name, column in zip(names, columns, strict=True)}) for row in rows
    )


def _levels(context: TableContext, text: str) -> int:
    """For how many of the first partition columns the largest value is asked for."""
    given = _pairs(text)
    names = [field.name for field in context.partition_fields]
    if set(given.values()) != {_LARGEST} or set(given) != set(names[: len(given)]):
        raise InvalidOption(
            f"option `{SCAN_PARTITIONS.key}`: `{text}` asks not only for the largest of the first partition columns",
            hint=f"give `{_LARGEST}` to the first ones of: {', '.join(names)}",
        )
    return len(given)


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise InvalidOption(f"option `{SCAN_PARTITIONS.key}` can not be `{text}`", hint=_FORM)
        pairs[name.strip()] = value.strip()
    return pairs


def _all_equal(values: Mapping[str, pa.Scalar]) -> Predicate:
    return predicates.conjunction(_equal(name, value) for name, value in values.items())


def _equal(name: str, value: pa.Scalar) -> Predicate:
    return Comparison(name, Op.EQ, value) if value.is_valid else IsNull(name)
