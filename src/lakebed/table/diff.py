"""What makes one state of a table another one: the difference of two snapshots, key by key.

Only key ranges in which the two have different files are read, both sides merged and compared window by window, so
that memory grows neither with the table nor with the difference. What happened in between does not matter: a key that
came and went, or that was written again as it was, is no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakebed.changelog.events import EventRules, change_events
from lakebed.errors import Unsupported
from lakebed.lsm.merge_runs import windows
from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.merge.base import MergeOrder
from lakebed.merge.levels import levels_of, with_level, without_level
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext
from lakebed.table.event_sources import MergedRows, lowest_level_counts, of_kind
from lakebed.table.read import SplitReader
from lakebed.table.scan import FileSieve
from lakebed.table.shown_defaults import with_defaults
from lakebed.table.splits import Split
from lakebed.types.key_value import KIND_FIELD, VALUE_KIND
from lakebed.types.row_kind import RowKind

_RULES = EventRules(skips_unchanged=True)
_OLD, _NEW = 0, 1


@dataclass(frozen=True, slots=True)
class _Difference:
    """A key range of a bucket, or for tables without a key a whole bucket, and its files on each side."""

    partition: bytes
    bucket: int
    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]


@dataclass(frozen=True)
class StateDiff:
    """The difference of two states; None is the empty table. The sieve says which files may matter."""

    context: TableContext
    before: Snapshot | None
    after: Snapshot | None
    sieve: FileSieve = field(compare=False)

    @property
    def splits(self) -> tuple[Split, ...]:
        """See `EventSource.splits`: files of both sides, each once."""
        splits = []
        for part in self._differences:
            files = {file.file_name: file for file in (*part.before, *part.after)}
            sections = tuple(Section((SortedRun((file,)),)) for file in files.values())
            splits.append(Split(part.partition, part.bucket, sections))
        return tuple(splits)

    def read(self) -> Iterator[pa.RecordBatch]:
        """See `EventSource.read`: `+I`, `-U` and `+U`, or `-D` for every key that differs."""
        for part in self._differences:
            yield from self._keyed(part) if self.context.has_key else self._unkeyed(part)

    @cached_property
    def _differences(self) -> list[_Difference]:
        before, after = self._live(self.before), self._live(self.after)
        _check_bucket_counts(self.context, before, after)
        sides = [_by_bucket(before), _by_bucket(after)]
        found: list[_Difference] = []
        for partition, bucket in sorted(sides[_OLD].keys() | sides[_NEW].keys()):
            old, new = (side.get((partition, bucket), {}) for side in sides)
            if self.context.has_key:
                found += self._changed_ranges(partition, bucket, old, new)
            elif old.keys() != new.keys():
                gone = tuple(file for name, file in old.items() if name not in new)
                came = tuple(file for name, file in new.items() if name not in old)
                found.append(_Difference(partition, bucket, gone, came))
        return found

    def _live(self, snapshot: Snapshot | None) -> list[ManifestEntry]:
        sieve = self.sieve
        entries = live_files(
            self.context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries
        )
        lowest = self.context.lowest_visible_level
        return sieve.keep_live([entry for entry in entries if entry.file.level >= lowest])

    def _changed_ranges(
        self, partition: bytes, bucket: int, old: dict[str, DataFile], new: dict[str, DataFile]
    ) -> Iterator[_Difference]:
        """Sections of all files together that hold a file which the two sides do not share."""
        levels_matter = lowest_level_counts(self.context)
        for section in cut_sections([*{**old, **new}.values()], self.context.key_types):
            names = [file.file_name for file in section.files]
            before = tuple(old[name] for name in names if name in old)
            after = tuple(new[name] for name in names if name in new)
            if _identities(before, levels_matter) != _identities(after, levels_matter):
                yield _Difference(partition, bucket, before, after)

    # --- with a key ----------------------------------------------------------------------------------------------

    def _keyed(self, part: _Difference) -> Iterator[pa.RecordBatch]:
        sides = [self._side(part, part.before, _OLD), self._side(part, part.after, _NEW)]
        for rows in windows(sides, self.context.merge_order):
            events = self._compared(pa.concat_batches(rows))
            if events.num_rows:
                yield events

    def _side(self, part: _Difference, files: Sequence[DataFile], side: int) -> Iterator[pa.RecordBatch]:
        merged = MergedRows(self.context, self.context.schema.fields)
        split = Split(part.partition, part.bucket, ())
        for section in cut_sections(files, self.context.key_types):
            for batch in merged.of(split, section):
                yield with_level(batch, side)

    def _compared(self, window: pa.RecordBatch) -> pa.RecordBatch:
        """Events of all rows of some keys, of both sides."""
        is_new = levels_of(window) == _NEW
        rows = without_level(window)
        key = self.context.merge_order.key
        groups = MergeOrder(key).group(rows.select(list(key)))
        group_of = np.empty(rows.num_rows, dtype=np.int64)
        group_of[groups.order] = np.repeat(np.arange(len(groups)), groups.ends - groups.starts)
        row_of = np.full((2, len(groups)), -1, dtype=np.int64)
        row_of[is_new.astype(np.int64), group_of] = np.arange(rows.num_rows)
        old, new = row_of
        before = rows.take(pa.array(np.where(old >= 0, old, new)))
        after = rows.take(pa.array(np.where(new >= 0, new, old)))
        kinds = np.where(new >= 0, RowKind.INSERT, RowKind.DELETE).astype(np.int8)
        after = after.set_column(after.schema.get_field_index(VALUE_KIND), KIND_FIELD, pa.array(kinds))
        return change_events(of_kind(before, RowKind.INSERT), after, _RULES, known=old >= 0)

    # --- without -------------------------------------------------------------------------------------------------

    def _unkeyed(self, part: _Difference) -> Iterator[pa.RecordBatch]:
        if part.before and part.after:
            raise Unsupported(
                f"table `{self.context.name}` has no primary key, and files were replaced between the two states: "
                "which of their rows are the same can not be told",
                hint="read both states with t.at(...) and compare them, or read what was appended with t.changes(...)",
            )
        reader = SplitReader(self.context, self.context.schema.fields)
        kind = RowKind.DELETE if part.before else RowKind.INSERT
        sections = tuple(Section((SortedRun((file,)),)) for file in part.before or part.after)
        for batch in reader.read_stored(Split(part.partition, part.bucket, sections)):
            yield of_kind(with_defaults(batch, self.context.shown_defaults), kind)


def _identities(files: Sequence[DataFile], levels_matter: bool) -> set[tuple[str, int]]:
    return {(file.file_name, file.level if levels_matter else 0) for file in files}


def _by_bucket(entries: Sequence[ManifestEntry]) -> dict[tuple[bytes, int], dict[str, DataFile]]:
    buckets: dict[tuple[bytes, int], dict[str, DataFile]] = defaultdict(dict)
    for entry in entries:
        buckets[entry.partition, entry.bucket][entry.file.file_name] = entry.file
    return buckets


def _check_bucket_counts(
    context: TableContext, before: Sequence[ManifestEntry], after: Sequence[ManifestEntry]
) -> None:
    """Raises if rows of a key may lie in another bucket than before."""
    counts = {entry.partition: entry.total_buckets for entry in before}
    for entry in after:
        old = counts.get(entry.partition, entry.total_buckets)
        if old != entry.total_buckets:
            where = context.partition_directory(entry.partition)
            raise Unsupported(
                f"table `{context.name}`{f', partition {where}' if where else ''}: the number of buckets changed from "
                f"{old} to {entry.total_buckets} between the two states, which can not be compared",
                hint="choose two states after the change, or read both with t.at(...)",
            )


__all__ = ["StateDiff"]
