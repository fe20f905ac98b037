"""Partitions as a whole: which there are, dropping them, and dropping those that are too old."""

from __future__ import annotations

import datetime as dt
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakebed.clock import some_of
from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.commit.index_changes import current_entries, without_partitions
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.maintenance.checks import checks_of
from lakebed.maintenance.partition_times import check_formatter, partition_time
from lakebed.metadata.data_file import creation_time_to_epoch
from lakebed.metadata.entries import Keep, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.partition_text import partition_text
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    COMPACTION_SKIP_EXPIRED_PARTITIONS,
    END_INPUT_CHECK_PARTITION_EXPIRE,
    PARTITION_DEFAULT_NAME,
    PARTITION_EXPIRATION_BATCH_SIZE,
    PARTITION_EXPIRATION_CHECK_INTERVAL,
    PARTITION_EXPIRATION_MAX_NUM,
    PARTITION_EXPIRATION_STRATEGY,
    PARTITION_EXPIRATION_TIME,
    PARTITION_TIMESTAMP_FORMATTER,
    PARTITION_TIMESTAMP_PATTERN,
    Options,
)
from lakebed.records import dataclass
from lakebed.write.told_replacements import commit_telling

_log = logging.getLogger(__name__)
_STRATEGIES = ("values-time", "update-time")


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition and what its files add up to. `name` is like `dt=2024-10-10/hh=1`; a null value is None."""

    name: str
    values: Mapping[str, str | None]
    record_count: int
    file_count: int
    size_bytes: int
    last_update_ms: int | None
    total_buckets: int


@dataclass(frozen=True, slots=True)
class DroppedPartitions:
    """The partitions that went, by their values in partition order, and the last snapshot that took them away."""

    partitions: tuple[dict[str, str], ...] = ()
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class PartitionLife:
    """How long partitions live, and what their age is counted from."""

    time_ms: int
    strategy: str
    pattern: str | None
    formatter: str | None
    max_count: int
    batch_size: int | None

    @staticmethod
    def of(options: Options, time_ms: int) -> PartitionLife:
        """By the table's options, for this time to live."""
        return PartitionLife(
            time_ms,
            options[PARTITION_EXPIRATION_STRATEGY],
            options[PARTITION_TIMESTAMP_PATTERN],
            options[PARTITION_TIMESTAMP_FORMATTER],
            options[PARTITION_EXPIRATION_MAX_NUM],
            options[PARTITION_EXPIRATION_BATCH_SIZE],
        )

    def check(self) -> None:
        """Raises on what can not be meant."""
        if self.strategy not in _STRATEGIES:
            raise InvalidArgument(
                f"partitions can not expire by `{self.strategy}`", hint=did_you_mean(self.strategy, _STRATEGIES)
            )
        if self.formatter is not None:
            check_formatter(self.formatter)
        if self.max_count < 1:
            raise InvalidArgument(f"max_expires is {self.max_count}", hint="pass a whole number from 1")


def list_partitions(context: TableContext, snapshot: Snapshot | None) -> list[Partition]:
    """All partitions that have files, by name."""
    groups = _by_partition(live_files(context.stores, snapshot))
    found = [_partition(context, partition, entries) for partition, entries in groups.items()]
    return sorted(found, key=lambda partition: partition.name)


def drop(
    context: TableContext, specs: Sequence[Mapping[str, Any]], if_exists: bool, identity: CommitIdentity
) -> DroppedPartitions:
    """Removes the rows of all partitions that agree with one of the specs, in one commit."""
    chosen = [_spec(context, spec) for spec in specs]

    def choose(live: list[ManifestEntry]) -> set[bytes]:
        gone: set[bytes] = set()
        for spec, overwrite in zip(specs, chosen, strict=True):
            matching = {entry.partition for entry in overwrite.replaced(live, set())}
            if not matching and not if_exists:
                text = ", ".join(f"{name}={value}" for name, value in spec.items())
                raise NotFound(f"table `{context.name}` has no partition {text}", hint="see t.partitions()")
            gone |= matching
        return gone

    return _drop(context, choose, identity, operation="TRUNCATE")


def expire(context: TableContext, life: PartitionLife, identity: CommitIdentity) -> DroppedPartitions:
    """Drops the partitions whose time is over, the first by name first, no more than allowed at once."""
    check_partitioned(context)
    life.check()
    end_ms = context.clock.now_ms() - life.time_ms
    left = life.max_count
    dropped: list[dict[str, str]] = []
    last: Snapshot | None = None
    while left > 0:
        count = min(left, life.batch_size or left)
        done = _drop(context, lambda live, count=count: _due(context, life, live, end_ms, count), identity)  # type: ignore[misc]
        if done.snapshot is None:
            break
        dropped += done.partitions
        last = done.snapshot
        left -= len(done.partitions)
        if len(done.partitions) < count:
            break
    return DroppedPartitions(tuple(dropped), last)


def unexpired(context: TableContext) -> Keep | None:
    """Chooses the entries of partitions that are not due to expire by their values; None where all are chosen."""
    options = context.options
    time_ms = options[PARTITION_EXPIRATION_TIME]
    if not options[COMPACTION_SKIP_EXPIRED_PARTITIONS] or time_ms is None or not context.schema.partition_keys:
        return None
    life = PartitionLife.of(options, time_ms)
    if life.strategy != "values-time":
        return None
    end = dt.datetime.fromtimestamp((context.clock.now_ms() - time_ms) / 1000)

    def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        lasting = {
            partition: not _is_before(end, life, _texts(context, partition))
            for partition in {entry.partition for entry in entries}
        }
        return [entry for entry in entries if lasting[entry.partition]]

    return keep


def expire_after_commit(context: TableContext, identity: CommitIdentity, is_batch: bool) -> None:
    """As `expire`, if a check is due, of a table whose options ask for it."""
    time_ms = context.options[PARTITION_EXPIRATION_TIME]
    if time_ms is None or not _is_check_due(context, is_batch):
        return
    done = expire(context, PartitionLife.of(context.options, time_ms), identity)
    if done.partitions:
        _log.info("table %s: partitions %s expired", context.name, done.partitions)


def _is_check_due(context: TableContext, is_batch: bool) -> bool:
    interval_ms, now_ms = context.options[PARTITION_EXPIRATION_CHECK_INTERVAL], context.clock.now_ms()
    checked_ms = checks_of(context).done_ms
    # The first check is at a random moment of the interval, so that many writers do not check all at once.
    last_ms = checked_ms.setdefault("partitions", now_ms - some_of(interval_ms))
    if interval_ms and now_ms <= last_ms + interval_ms:
        return is_batch and context.options[END_INPUT_CHECK_PARTITION_EXPIRE]
    checked_ms["partitions"] = now_ms
    return True


def check_partitioned(context: TableContext) -> None:
    """Raises for a table without partitions."""
    if not context.schema.partition_keys:
        raise InvalidArgument(
            f"table `{context.name}` is not partitioned", hint="delete rows, or overwrite the whole table"
        )


def _spec(context: TableContext, spec: Mapping[str, Any]) -> Overwrite:
    check_partitioned(context)
    if not isinstance(spec, Mapping) or not spec:
        raise InvalidArgument(
            f"{spec!r} names no partition", hint='pass dicts of partition columns to values: {"dt": "2024-01-01"}'
        )
    default_name = context.options[PARTITION_DEFAULT_NAME]
    return Overwrite.parse(context, {name: None if value == default_name else value for name, value in spec.items()})


def _drop(
    context: TableContext,
    choose: Callable[[list[ManifestEntry]], set[bytes]],
    identity: CommitIdentity,
    operation: str = "OVERWRITE",
) -> DroppedPartitions:
    stores = context.stores
    gone: set[bytes] = set()

    def prepare(latest: Snapshot | None) -> Changes | None:
        nonlocal gone
        live = live_files(stores, latest)
        gone = choose(live)
        if not gone:
            return None
        delta = [replace(entry, kind=EntryKind.DELETE) for entry in live if entry.partition in gone]
        indexes = current_entries(stores, latest)
        return Changes(delta, index_entries=without_partitions(indexes, gone) if indexes else None)

    # A new token for each commit: it becomes the snapshot's own id.
    snapshot = commit_telling(context, CommitIdentity(identity.user, identity.identifier), prepare, operation=operation)
    if snapshot is None:
        return DroppedPartitions()
    default_name = context.options[PARTITION_DEFAULT_NAME]
    texts = sorted(([*_texts(context, partition).items()] for partition in gone), key=str)
    named = ({name: default_name if text is None else text for name, text in values} for values in texts)
    return DroppedPartitions(tuple(named), snapshot)


def _due(context: TableContext, life: PartitionLife, live: list[ManifestEntry], end_ms: int, count: int) -> set[bytes]:
    end = dt.datetime.fromtimestamp(end_ms / 1000)
    due: dict[bytes, str] = {}
    for partition, entries in _by_partition(live).items():
        values = _texts(context, partition)
        if life.strategy == "update-time":
            updated_ms = _last_update_ms(entries)
            is_due = updated_ms is not None and updated_ms < end_ms
        else:
            is_due = _is_before(end, life, values)
        if is_due:
            due[partition] = ",".join(text or "" for text in values.values())
    return set(sorted(due, key=lambda partition: due[partition])[:count])


def _is_before(end: dt.datetime, life: PartitionLife, values: Mapping[str, str | None]) -> bool:
    moment = partition_time(values, life.pattern, life.formatter)
    return moment is not None and moment < end


def _partition(context: TableContext, partition: bytes, entries: list[ManifestEntry]) -> Partition:
    values = _texts(context, partition)
    default_name = context.options[PARTITION_DEFAULT_NAME]
    newest = max(entries, key=lambda entry: entry.file.creation_time_ms or 0)
    return Partition(
        "/".join(f"{name}={text if (text or '').strip() else default_name}" for name, text in values.items()),
        values,
        sum(entry.file.row_count for entry in entries),
        len(entries),
        sum(entry.file.size_bytes for entry in entries),
        _last_update_ms(entries),
        newest.total_buckets,
    )


def _by_partition(entries: list[ManifestEntry]) -> dict[bytes, list[ManifestEntry]]:
    groups: dict[bytes, list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.partition].append(entry)
    return groups


def _texts(context: TableContext, partition: bytes) -> dict[str, str | None]:
    """Values as SQL's cast to text spells them."""
    values = context.partition_values(partition)
    return {
        field.name: partition_text(field.type, values[field.name], legacy=False)
        if values[field.name].is_valid
        else None
        for field in context.partition_fields
    }


def _last_update_ms(entries: list[ManifestEntry]) -> int | None:
    times = (entry.file.creation_time_ms for entry in entries)
    return max((creation_time_to_epoch(time) for time in times if time is not None), default=None)
