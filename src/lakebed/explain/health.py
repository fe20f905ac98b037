"""`t.health()`: what of a table will cost its readers or writers, how much, and the command that mends it.

From metadata alone: no data file is opened. Each check is a function of a `Checkup` that yields findings; the list of
them is at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, overload

from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.file_rules import write_rules
from lakebed.definition.row_rules import vectors_at
from lakebed.explain.streams import stream_readers, stream_writers
from lakebed.explain.texts import aligned, html_of, number_of
from lakebed.lsm.compaction.small_files import SmallFileRules
from lakebed.lsm.levels import Levels
from lakebed.maintenance.expiry import due_snapshots
from lakebed.maintenance.orphans import clean_orphans
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import all_metas, live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    COMPACTION_SMALL_FILE_RATIO,
    CONSUMER_EXPIRATION_TIME,
    CONSUMER_ID,
    DELETION_VECTORS_ENABLED,
    MANIFEST_MERGE_MIN_COUNT,
    MERGE_ENGINE,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    SNAPSHOT_TIME_RETAINED,
    WRITE_ONLY,
)
from lakebed.records import dataclass
from lakebed.units import DAY_MS, GIB, HOUR_MS, MIB, size_text


class Severity(StrEnum):
    """How soon to do something."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


_ORDER = list(Severity)


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    table: str
    check: str
    """A short name that stays, such as `small-files`."""
    severity: Severity
    figure: float
    """The number behind it; `message` says of what."""
    message: str
    cure: str
    """The statement or command that mends it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"severity": str(self.severity)}


class Health(Sequence[Finding]):
    """What was found, the worst first. Empty, and false, if all is well."""

    def __init__(self, table: str, findings: Sequence[Finding]) -> None:
        self.table = table
        self.findings = tuple(sorted(findings, key=lambda each: (_ORDER.index(each.severity), each.check)))

    @overload
    def __getitem__(self, place: int) -> Finding: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Finding, ...]: ...

    def __getitem__(self, place: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[place]

    def __len__(self) -> int:
        return len(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"table": self.table, "findings": [each.to_dict() for each in self.findings]}

    def __repr__(self) -> str:
        if not self.findings:
            return f"{self.table}: all is well"
        return f"{self.table}: {number_of(len(self), 'finding')}\n" + aligned(_HEADER, self._cells())

    def _repr_html_(self) -> str:
        title = self.table if self.findings else f"{self.table}: all is well"
        return html_of(title, _HEADER, self._cells())

    def _cells(self) -> list[tuple[str, ...]]:
        return [(str(each.severity), each.check, each.message, each.cure) for each in self.findings]


_HEADER = ("severity", "check", "", "cure")


def health(context: TableContext, *, deep: bool = False) -> Health:
    """Looks a table over; `deep` lists its directories as well, to find files that nothing refers to."""
    checkup = Checkup(context, context.stores.snapshots.latest())
    checks = (*CHECKS, _orphans) if deep else CHECKS
    return Health(context.name, [finding for check in checks for finding in check(checkup)])


@dataclass(frozen=True)
class Checkup:
    """A table at its latest snapshot, with what several checks ask."""

    context: TableContext
    snapshot: Snapshot | None

    @cached_property
    def now_ms(self) -> int:
        """This moment."""
        return self.context.clock.now_ms()

    @cached_property
    def entries(self) -> list[ManifestEntry]:
        """All live files, waiting ones included."""
        return live_files(self.context.stores, self.snapshot)

    @cached_property
    def buckets(self) -> dict[tuple[bytes, int], list[DataFile]]:
        """Files by bucket."""
        found: dict[tuple[bytes, int], list[DataFile]] = defaultdict(list)
        for entry in self.entries:
            if entry.bucket >= 0:
                found[entry.partition, entry.bucket].append(entry.file)
        return found

    @cached_property
    def rows(self) -> int:
        """Rows in files."""
        return sum(entry.file.row_count for entry in self.entries)

    def finding(self, check: str, severity: Severity, figure: float, message: str, cure: str) -> Finding:
        """A finding of this table."""
        return Finding(self.context.name, check, severity, figure, message, cure)

    def call(self, procedure: str, *arguments: str) -> str:
        """A CALL for this table."""
        given = ", ".join([f"`table` => '{self.context.name}'", *arguments])
        return f"CALL sys.{procedure}({given})"

    @property
    def compaction(self) -> str:
        """The command that merges everything."""
        return f"lakebed compact {self.context.name} --full"


Check = Callable[[Checkup], Iterator[Finding]]


def _small_files(up: Checkup) -> Iterator[Finding]:
    """Many files that could be few: each costs a request and a footer."""
    rules = SmallFileRules(write_rules(up.context).target_size_bytes, up.context.options[COMPACTION_SMALL_FILE_RATIO])
    small = total = 0
    for files in up.buckets.values():
        mine = [file for file in files if rules.is_small(file)]
        total += len(files)
        joined = max(1, sum(file.size_bytes for file in mine) // rules.target_size_bytes)
        if len(mine) > joined:
            small += len(mine) - joined
    if small >= 10 and small * 2 >= total:
        severity = Severity.WARNING if small >= 100 else Severity.INFO
        said = f"{small} of {number_of(total, 'file')} could be joined to others: they are small"
        yield up.finding("small-files", severity, small, said, up.compaction)


def _sorted_runs(up: Checkup) -> Iterator[Finding]:
    """Runs that a read merges, against what triggers a compaction and what holds writers up."""
    options = up.context.options
    if not up.context.has_key or not up.buckets:
        return
    trigger = options[NUM_SORTED_RUN_COMPACTION_TRIGGER]
    stop = options[NUM_SORTED_RUN_STOP_TRIGGER] or trigger + 3
    levels = num_levels(options)
    runs = [Levels.of(files, up.context.key_types, levels).number_of_runs for files in up.buckets.values()]
    most, over = max(runs), sum(count > trigger for count in runs)
    if most >= stop:
        said = f"a bucket has {most} sorted runs: from {stop} on writers wait for compaction"
        if options[WRITE_ONLY]:
            said = f"a bucket has {most} sorted runs, all of which a read merges; writers leave compaction to others"
        yield up.finding("sorted-runs", Severity.CRITICAL, most, said, _compactor(up))
    elif over:
        said = f"{over} of {number_of(len(runs), 'bucket')} have more than {trigger} sorted runs, the most {most}"
        yield up.finding("sorted-runs", Severity.WARNING, most, said, _compactor(up))


def _compactor(up: Checkup) -> str:
    table = up.context.name
    return f"lakebed compact {table} --follow" if up.context.options[WRITE_ONLY] else f"lakebed compact {table}"


def _dead_rows(up: Checkup) -> Iterator[Finding]:
    """Rows that are stored and not shown: deleted, marked, or replaced by newer ones."""
    if not up.rows:
        return
    marked = sum(place.cardinality or 0 for place in vectors_at(up.context, up.snapshot).values())
    deletes = sum(entry.file.delete_row_count or 0 for entry in up.entries)
    dead = marked + deletes
    if dead * 5 >= up.rows:
        share = 100 * dead / up.rows
        said = f"{share:.0f} % of the stored rows are deletes ({deletes}) or marked as deleted ({marked})"
        severity = Severity.WARNING if dead * 2 >= up.rows else Severity.INFO
        yield up.finding("deleted-rows", severity, round(share, 1), said, up.compaction)
    if not up.context.has_key or up.context.has_keys_once:
        return
    above = newest = 0
    for files in up.buckets.values():
        highest = max(file.level for file in files)
        base = sum(file.row_count for file in files if file.level == highest > 0)
        rest = sum(file.row_count for file in files) - base
        newest += rest if base else 0
        above += base
    if above and newest >= above:
        share = 100 * newest / (above + newest)
        said = f"{share:.0f} % of the stored rows lie above the lowest level: up to as many may replace others"
        yield up.finding("superseded-rows", Severity.INFO, round(share, 1), said, up.compaction)


def _bucket_sizes(up: Checkup) -> Iterator[Finding]:
    """Buckets are read and compacted as a whole: neither huge nor tiny ones, nor one that has it all."""
    if not up.buckets or up.context.options[BUCKET] < 1:
        return
    sizes = sorted(sum(file.size_bytes for file in files) for files in up.buckets.values())
    partitions = len({partition for partition, _ in up.buckets})
    per_partition = up.context.options[BUCKET]
    mean = sum(sizes) / len(sizes)
    wanted = max(1, round(sum(sizes) / partitions / (GIB // 2)))
    if mean > 4 * GIB and wanted > per_partition:
        said = f"buckets hold {size_text(mean)} on average, and are compacted as a whole"
        cure = up.call("rescale", f"bucket_num => {wanted}")
        yield up.finding("bucket-size", Severity.WARNING, round(mean), said, cure)
    elif per_partition > 1 and len(sizes) >= 16 and mean < 16 * MIB and wanted < per_partition:
        said = f"{len(sizes)} buckets hold {size_text(mean)} on average: each has files and compactions of its own"
        cure = up.call("rescale", f"bucket_num => {wanted}")
        yield up.finding("bucket-size", Severity.INFO, round(mean), said, cure)
    if len(sizes) >= 4 and sizes[-1] > 128 * MIB and sizes[-1] > 5 * max(1, sizes[len(sizes) // 2]):
        ratio = sizes[-1] / max(1, sizes[len(sizes) // 2])
        said = f"the largest bucket ({size_text(sizes[-1])}) is {ratio:.0f} times the median"
        cure = f"choose another `bucket-key` for {up.context.name}, or rows with more different keys"
        yield up.finding("bucket-skew", Severity.WARNING, round(ratio, 1), said, cure)


def _hidden_rows(up: Checkup) -> Iterator[Finding]:
    """Rows that were written and that no reader sees before a compaction."""
    waiting = sum(entry.file.row_count for entry in up.entries if entry.bucket == POSTPONE_BUCKET)
    if waiting:
        said = f"{number_of(waiting, 'row')} wait for a bucket: readers see them after compaction"
        yield up.finding("waiting-rows", Severity.WARNING, waiting, said, f"lakebed compact {up.context.name}")
    lowest = up.context.lowest_visible_level
    hidden = [entry.file for entry in up.entries if entry.bucket >= 0 and entry.file.level < lowest]
    if hidden:
        rows = sum(file.row_count for file in hidden)
        said = f"{number_of(rows, 'row')} in {number_of(len(hidden), 'file')} of level 0 are shown after compaction"
        severity = Severity.WARNING if up.context.options[WRITE_ONLY] else Severity.INFO
        yield up.finding("hidden-rows", severity, rows, said, _compactor(up))


def _expiry(up: Checkup) -> Iterator[Finding]:
    """Snapshots whose time is up, which keep files alive."""
    due = due_snapshots(up.context)
    if due >= 10:
        said = f"{number_of(due, 'snapshot')} have outlived `{SNAPSHOT_TIME_RETAINED.key}` and its like"
        severity = Severity.WARNING if due >= 100 else Severity.INFO
        yield up.finding("expiry-due", severity, due, said, f"lakebed expire {up.context.name} --max-deletes {due}")


def _consumers(up: Checkup) -> Iterator[Finding]:
    """Readers that are behind, which also keep snapshots from expiring."""
    retained_ms = up.context.options[SNAPSHOT_TIME_RETAINED]
    for reader in stream_readers(up.context, up.snapshot):
        if reader.behind_ms > max(HOUR_MS, retained_ms):
            said = (
                f"consumer `{reader.consumer}` is {number_of(reader.snapshots_behind, 'snapshot')}, "
                f"{_time_text(reader.behind_ms)} and {size_text(reader.bytes_behind)} behind: "
                f"nothing from snapshot {reader.next_snapshot} on expires"
            )
            forgotten = up.now_ms - reader.noted_ms > DAY_MS
            cure = "start its reader" if not forgotten else f"start its reader, or {_forget(up, reader.consumer)}"
            severity = Severity.WARNING if forgotten else Severity.INFO
            yield up.finding("consumer-behind", severity, reader.snapshots_behind, said, cure)


def _forget(up: Checkup, consumer: str) -> str:
    if up.context.options[CONSUMER_EXPIRATION_TIME] is None:
        return up.call("reset_consumer", f"consumer_id => '{consumer}'")
    return f"wait for `{CONSUMER_EXPIRATION_TIME.key}`"


def _tags(up: Checkup) -> Iterator[Finding]:
    """Tags that hold what snapshots have let go."""
    kept = up.context.stores.snapshots.ids()
    held = [tag for tag in up.context.stores.tags.list() if tag.retained is None and kept and tag.snapshot.id < kept[0]]
    old = [tag for tag in held if up.now_ms - tag.snapshot.time_millis > 30 * DAY_MS]
    if old:
        oldest = min(old, key=lambda tag: tag.snapshot.time_millis)
        age = _time_text(up.now_ms - oldest.snapshot.time_millis)
        said = f"{number_of(len(old), 'tag')} without a time to live keep old files, the oldest `{oldest.name}` ({age})"
        cure = f"lakebed tag delete {up.context.name} {oldest.name}"
        yield up.finding("old-tags", Severity.INFO, len(old), said, cure)


def _manifests(up: Checkup) -> Iterator[Finding]:
    """Manifests that every plan reads."""
    metas = all_metas(up.context.stores, up.snapshot)
    least = up.context.options[MANIFEST_MERGE_MIN_COUNT]
    removed = sum(meta.num_deleted_files for meta in metas)
    if len(metas) > 3 * least or removed > max(1000, 2 * len(up.entries)):
        said = f"{number_of(len(metas), 'manifest')} with {removed} removals for {number_of(len(up.entries), 'file')}"
        yield up.finding("manifests", Severity.INFO, len(metas), said, up.call("compact_manifest"))


def _traps(up: Checkup) -> Iterator[Finding]:
    """Options that are allowed together and surprise."""
    options, context = up.context.options, up.context
    has_readers = bool(context.stores.consumers.list()) or options.has(CONSUMER_ID)
    if context.has_key and has_readers and options[CHANGELOG_PRODUCER] == "none":
        said = "streams read a table without a changelog producer: they see new rows without the old ones"
        if options[MERGE_ENGINE] != "deduplicate":
            said += ", and parts of rows that are not merged yet"
        cure = f"ALTER TABLE {context.name} SET ('{CHANGELOG_PRODUCER.key}' = 'lookup')"
        yield up.finding("no-changelog", Severity.WARNING, 1, said, cure)
    stop, trigger = options[NUM_SORTED_RUN_STOP_TRIGGER], options[NUM_SORTED_RUN_COMPACTION_TRIGGER]
    if context.has_key and stop is not None and stop <= trigger:
        said = (
            f"`{NUM_SORTED_RUN_STOP_TRIGGER.key}` ({stop}) holds writers up before "
            f"`{NUM_SORTED_RUN_COMPACTION_TRIGGER.key}` ({trigger}) makes a compaction due"
        )
        cure = f"ALTER TABLE {context.name} SET ('{NUM_SORTED_RUN_STOP_TRIGGER.key}' = '{trigger + 3}')"
        yield up.finding("stop-trigger", Severity.WARNING, stop, said, cure)
    if options[WRITE_ONLY] and context.has_key and not _has_been_compacted(up):
        said = f"`{WRITE_ONLY.key}` is set, and none of {number_of(len(up.entries), 'file')} comes from a compaction"
        if options[DELETION_VECTORS_ENABLED] or context.is_first_row:
            said += ": readers see no row"
        if len(up.entries) > trigger:
            yield up.finding("nobody-compacts", Severity.WARNING, len(up.entries), said, _compactor(up))


def _has_been_compacted(up: Checkup) -> bool:
    return any(entry.file.level > 0 for entry in up.entries)


def _streams(up: Checkup) -> Iterator[Finding]:
    """A stream or a sync that has not written for long, although it is the one who writes."""
    for writer in stream_writers(up.context)[:1]:
        silent_ms = up.now_ms - writer.last_ms
        if writer.is_sync and silent_ms > DAY_MS:
            said = f"the sync that fills the table has not committed for {_time_text(silent_ms)}"
            yield up.finding(
                "sync-silent", Severity.INFO, silent_ms // 1000, said, "see whether it runs: lakebed cdc …"
            )
        usual_ms = writer.usual_ms
        if writer.is_sync or usual_ms is None or writer.commits < _A_HABIT:
            continue
        if silent_ms > max(HOUR_MS, _LONG_SILENCE * usual_ms):
            said = (
                f"stream `{writer.user}` committed every {_time_text(usual_ms)}, and has not for "
                f"{_time_text(silent_ms)} (last its commit {writer.last_identifier})"
            )
            cure = "see whether it runs: with its checkpoint it goes on where it was"
            yield up.finding("stream-silent", Severity.INFO, silent_ms // 1000, said, cure)


_A_HABIT = 5
"""From so many commits on it is known how often a stream commits."""
_LONG_SILENCE = 20
"""Times the usual pause."""


def _orphans(up: Checkup) -> Iterator[Finding]:
    """Files that nothing refers to."""
    found = clean_orphans(up.context, None, True)
    if found.file_count:
        said = f"{number_of(found.file_count, 'file')} ({size_text(found.size_bytes)}) are referred to by nothing"
        severity = Severity.WARNING if found.size_bytes > GIB else Severity.INFO
        cure = up.call("remove_orphan_files")
        yield up.finding("orphan-files", severity, found.size_bytes, said, cure)


def _time_text(millis: int) -> str:
    for unit, size in (("day", DAY_MS), ("hour", HOUR_MS), ("minute", 60_000), ("second", 1000)):
        if millis >= size:
            return number_of(millis // size, unit)
    return f"{millis} ms"


CHECKS: tuple[Check, ...] = (
    _small_files,
    _sorted_runs,
    _dead_rows,
    _bucket_sizes,
    _hidden_rows,
    _expiry,
    _consumers,
    _tags,
    _manifests,
    _traps,
    _streams,
)
"""All that is looked at without listing directories."""

__all__ = ["Finding", "Health", "Severity", "health"]
