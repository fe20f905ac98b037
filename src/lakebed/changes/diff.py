"""What makes one state of a table another one: the difference of two snapshots, key by key.

Where few keys may differ, their rows are looked up in both states. Otherwise key ranges in which the two have
different files are read, both sides merged and compared window by window. Either way memory grows neither with the
table nor with the difference. What happened in between does not matter: a key that came and went, or that was written
again as it was, is no difference. Where columns have files of their own, rows are told apart by their ids instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.changes.changed_keys import ChangedKeys, Commits, commits_between, is_worth_looking_up
from lakebed.changes.events import EventSource, MergedRows, of_kind
from lakebed.changes.row_bags import remaining_events
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import lowest_level_counts, vectors_at
from lakebed.definition.shown_defaults import with_defaults
from lakebed.lsm.merge_runs import windows
from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.merge.base import MergeOrder
from lakebed.merge.events import EventRules, change_events
from lakebed.merge.levels import levels_of, with_level, without_level
from lakebed.metadata.data_file import DataFile, first_row_id
from lakebed.metadata.deletion_vector import NO_POSITIONS, Vectors
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.read.keyed_reader import ReaderFor, SoughtKeys
from lakebed.read.plan import FileSieve
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, stitched_sections
from lakebed.records import dataclass
from lakebed.schema.system_columns import ROW_ID, ROW_INDEX
from lakebed.types import key_value, ordering
from lakebed.types.key_value import KIND_FIELD, VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract

_WRITTEN_AS = "_WRITTEN_AS"
_RULES = EventRules(skips_unchanged=True, ignored_columns=frozenset({_WRITTEN_AS}))
_OLD, _NEW = 0, 1


@dataclass(frozen=True, slots=True)
class Difference:
    """A key range of a bucket, or for tables without a key a whole bucket, and its files on each side."""

    partition: bytes
    bucket: int
    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]
    masked: tuple[DataFile, ...] = ()
    """Files of both sides of which deletion vectors have taken rows in between. With a key: if keys are looked up."""
    changed: tuple[DataFile, ...] | None = None
    """Files that hold, with those that are masked, all keys whose rows may differ; None: any key may."""


@dataclass(frozen=True)
class StateFiles:
    """The files that make up a state, and which of their rows are gone."""

    entries: Sequence[ManifestEntry] = ()
    vectors: Vectors = field(default_factory=dict)
    meant: TableContext | None = None
    """The table with rows merged as the state meant them: options may have changed since. None: as they are now."""
    hidden: Sequence[ManifestEntry] = ()
    """Files that belong to the state and are not shown yet."""

    @property
    def described(self) -> Hashable:
        """The same for two states with the same files and the same rows taken from them."""
        return frozenset((entry.identity, self.vectors.get(entry.file.file_name)) for entry in self.entries)

    @staticmethod
    def shown_at(context: TableContext, snapshot: Snapshot | None, sieve: FileSieve) -> StateFiles:
        """What a read of a snapshot shows, as far as the sieve lets it through; None is the empty table."""
        meant = context.as_meant_in(snapshot)
        entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
        lowest = meant.lowest_visible_level
        shown = sieve.keep_live([entry for entry in entries if entry.file.level >= lowest])
        hidden = [entry for entry in entries if entry.file.level < lowest]
        return StateFiles(shown, vectors_at(context, snapshot), meant, hidden)


@dataclass(frozen=True)
class StateDiff:
    """The difference of two states of a table."""

    context: TableContext
    before: StateFiles
    after: StateFiles
    tells_pairs: bool = True
    """Whether rows that differ are told as `-U` and `+U`; otherwise only the new one comes, as it was written."""
    rules: EventRules = _RULES
    commits: Commits | None = None
    """What was committed between the two states, if that tells which keys may differ."""
    parts: tuple[tuple[Difference, ...], ...] | None = None
    """Which differences to tell, as they are compared together; None: all there are."""

    @staticmethod
    def between(
        context: TableContext,
        before: Snapshot | None,
        after: Snapshot | None,
        sieve: FileSieve,
        tells_pairs: bool = True,
    ) -> StateDiff:
        """The difference of what reads of two snapshots show. The sieve says which files may matter."""
        old, new = (StateFiles.shown_at(context, snapshot, sieve) for snapshot in (before, after))
        return StateDiff(context, old, new, tells_pairs, commits=commits_between(context, before, after, sieve))

    @property
    def splits(self) -> tuple[Split, ...]:
        """See `EventSource.splits`: files of both sides, each once."""
        splits = []
        for part in self._differences:
            every = (*part.before, *part.after, *part.masked, *(part.changed or ()))
            files = {file.file_name: file for file in every}
            sections = tuple(map(_alone, files.values()))
            splits.append(Split(part.partition, part.bucket, sections))
        return tuple(splits)

    def read(self) -> Iterator[pa.RecordBatch]:
        """See `EventSource.read`: an event, or the two of an update, for every key that differs."""
        if self.context.has_key:
            for parts in self.compared_together():
                yield from self.events_of(parts)
        elif self.context.options[DATA_EVOLUTION_ENABLED]:
            for part in self._differences:
                yield from self._by_ids(part)
        else:
            for parts in self.compared_together():
                yield from self._unkeyed(parts)

    @property
    def _vectors(self) -> tuple[Vectors, Vectors]:
        return self.before.vectors, self.after.vectors

    def pieces(self, keeps_buckets: bool) -> Sequence[EventSource]:
        """See `EventSource.pieces`: what is compared together stays together. Lists of all files are left out."""
        found: list[EventSource] = []
        for parts in self.compared_together():
            names = {file.file_name for part in parts for file in (*part.before, *part.after, *part.masked)}
            before, after = (
                replace(side, entries=(), hidden=(), vectors={n: side.vectors[n] for n in names & side.vectors.keys()})
                for side in (self.before, self.after)
            )
            found.append(replace(self, before=before, after=after, commits=None, parts=(tuple(parts),)))
        return found

    @cached_property
    def _differences(self) -> list[Difference]:
        if self.parts is not None:
            return [part for together in self.parts for part in together]
        sides = [_by_bucket(side.entries) for side in (self.before, self.after)]
        found: list[Difference] = []
        for partition, bucket in sorted(sides[_OLD].keys() | sides[_NEW].keys()):
            old, new = (side.get((partition, bucket), {}) for side in sides)
            if self.context.has_key:
                found += self._changed_in_bucket(partition, bucket, old, new)
            elif self.context.options[DATA_EVOLUTION_ENABLED]:
                found += self._changed_rows(partition, bucket, old, new)
            else:
                gone = tuple(file for name, file in old.items() if name not in new)
                came = tuple(file for name, file in new.items() if name not in old)
                masked = tuple(file for name, file in new.items() if name in old and self._is_masked_anew(name))
                if gone or came or masked:
                    found.append(Difference(partition, bucket, gone, came, masked))
        return found

    @property
    def _meant(self) -> tuple[TableContext, TableContext]:
        return self.before.meant or self.context, self.after.meant or self.context

    def _is_masked_anew(self, name: str) -> bool:
        old, new = self._vectors
        return old.get(name) != new.get(name)

    def _changed_in_bucket(
        self, partition: bytes, bucket: int, old: dict[str, DataFile], new: dict[str, DataFile]
    ) -> list[Difference]:
        """By the keys that commits have written, if these are fewer than those of files that came or went."""
        ranges = list(self._changed_ranges(partition, bucket, old, new))
        if self.commits is None or not ranges or not self._may_look_up:
            return ranges
        older = self.after if self.commits.is_backwards else self.before
        hidden = [entry.file for entry in older.hidden if (entry.partition, entry.bucket) == (partition, bucket)]
        changed = self.commits.keys_changed_in((partition, bucket), old.values(), new.values(), hidden)
        to_read = [file for part in ranges for file in _files_read(part)]
        if changed is None or not is_worth_looking_up(changed, to_read):
            return ranges
        if not changed:
            return []
        return [Difference(partition, bucket, tuple(old.values()), tuple(new.values()), changed=tuple(changed))]

    @property
    def _may_look_up(self) -> bool:
        """Whether a key has the same row in both states if its rows are the same: not if they are merged otherwise."""
        before, after = self._meant
        return before.options.raw == after.options.raw

    def _changed_ranges(
        self, partition: bytes, bucket: int, old: dict[str, DataFile], new: dict[str, DataFile]
    ) -> Iterator[Difference]:
        """Sections of all files together that hold a file which the two sides do not share."""
        levels_matter = any(map(lowest_level_counts, self._meant))
        for section in cut_sections([*{**old, **new}.values()], self.context.key_types):
            names = [file.file_name for file in section.files]
            before = tuple(old[name] for name in names if name in old)
            after = tuple(new[name] for name in names if name in new)
            shared = _identities(before, levels_matter) & _identities(after, levels_matter)
            changed = {
                file.file_name: file for file in (*before, *after) if _identity(file, levels_matter) not in shared
            }
            masked = tuple(new[name] for name in names if name not in changed and self._is_masked_anew(name))
            if not changed and not masked:
                continue
            part = Difference(partition, bucket, before, after)
            sought = replace(part, masked=masked, changed=tuple(changed.values()))
            # Of files whose marks have changed, keys alone are read; that costs less than all else that is read.
            is_worth_it = self._may_look_up and is_worth_looking_up(sought.changed or (), _files_read(part))
            yield sought if is_worth_it else part

    # --- with a key ----------------------------------------------------------------------------------------------

    def compared_together(self) -> list[list[Difference]]:
        """Each alone, unless keys may have changed their bucket: then those of a partition together."""
        if self.parts is not None:
            return [list(together) for together in self.parts]
        mode = self.context.bucket_mode
        moves_keys = mode.indexes_keys
        rescaled = _rescaled(self.before.entries, self.after.entries)
        alone: list[list[Difference]] = []
        together: dict[bytes, list[Difference]] = defaultdict(list)
        for part in self._differences:
            if moves_keys or part.partition in rescaled:
                together[part.partition].append(part)
            else:
                alone.append([part])
        return [*alone, *together.values()]

    def events_of(self, parts: Sequence[Difference]) -> Iterator[pa.RecordBatch]:
        """Events of differences that are compared together, of a table with a key, in key-value shape."""
        buckets: dict[int, list[Difference]] = defaultdict(list)
        for part in parts:
            buckets[part.bucket].append(part)
        sides: list[Iterator[pa.RecordBatch]] = []
        for ranges in buckets.values():
            if any(part.changed is not None for part in ranges):
                sides.append(chain.from_iterable(map(self._both_sides, ranges)))
            else:
                sides.append(chain.from_iterable(self._side(part, part.before, _OLD) for part in ranges))
                sides.append(chain.from_iterable(self._side(part, part.after, _NEW) for part in ranges))
        for window in windows(sides, self.context.merge_order):
            events = self._compared(pa.concat_batches(window))
            if events.num_rows:
                yield events

    def _side(
        self, part: Difference, files: Sequence[DataFile], side: int, readers: ReaderFor = SplitReader
    ) -> Iterator[pa.RecordBatch]:
        """Merged rows of one side in the order of their keys."""
        merged = MergedRows(self._meant[side], self.context.schema.fields, readers)
        split = Split(part.partition, part.bucket, (), self._vectors[side])
        for section in cut_sections(files, self.context.key_types):
            for batch in merged.of(split, section):
                yield with_level(batch, side)

    def _both_sides(self, part: Difference) -> Iterator[pa.RecordBatch]:
        """Rows of both sides in the order of their keys, those of a key in one batch."""
        if part.changed is None:
            sides = [self._side(part, part.before, _OLD), self._side(part, part.after, _NEW)]
            for window in windows(sides, self.context.merge_order):
                yield self._in_key_order(window)
            return
        keys = ChangedKeys(self.context, part.partition, part.bucket, part.changed, part.masked, self._vectors)
        for chunk in keys.chunks():
            sought = SoughtKeys.shared_by(self.context, chunk, part.before, part.after, self._vectors)
            rows = [
                batch
                for side, files in enumerate((part.before, part.after))
                for batch in self._side(part, sought.may_be_in(files), side, sought.reader)
            ]
            if rows:
                yield self._in_key_order(rows)

    def _in_key_order(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.concat_batches(batches)
        codes = ordering.key_codes([rows.column(name) for name in self.context.merge_order.key])
        return rows.take(pa.array(ordering.argsort(codes)))

    def _compared(self, window: pa.RecordBatch) -> pa.RecordBatch:
        """Events of all rows of some keys, of both sides."""
        is_new = levels_of(window) == _NEW
        rows = without_level(window)
        if not self.tells_pairs:
            rows = rows.append_column(_WRITTEN_AS, rows.column(VALUE_KIND))
        key = self.context.merge_order.key
        groups = MergeOrder(key).group(rows.select(list(key)))
        group_of = np.empty(rows.num_rows, dtype=np.int64)
        group_of[groups.order] = np.repeat(np.arange(len(groups)), groups.ends - groups.starts)
        return self._events(rows, is_new, group_of)

    def _events(
        self, rows: pa.RecordBatch, is_new: npt.NDArray[np.bool_], group_of: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Events of rows, of which those of a group are one row, before and after."""
        row_of = np.full((2, int(group_of.max()) + 1), -1, dtype=np.int64)
        row_of[is_new.astype(np.int64), group_of] = np.arange(rows.num_rows)
        old, new = row_of
        before = rows.take(pa.array(np.where(old >= 0, old, new)))
        after = rows.take(pa.array(np.where(new >= 0, new, old)))
        kinds = np.where(new >= 0, RowKind.INSERT, RowKind.DELETE).astype(np.int8)
        after = after.set_column(after.schema.get_field_index(VALUE_KIND), KIND_FIELD, pa.array(kinds))
        events = change_events(of_kind(before, RowKind.INSERT), after, self.rules, known=old >= 0)
        return events if self.tells_pairs else _without_old_rows(events)

    # --- by ids --------------------------------------------------------------------------------------------------

    def _changed_rows(
        self, partition: bytes, bucket: int, old: dict[str, DataFile], new: dict[str, DataFile]
    ) -> Iterator[Difference]:
        """Ranges of row ids, those that overlap taken together, of which the two sides do not say the same."""
        pieces = [
            (first_row_id(section.files[0]), side, section)
            for side, files in enumerate((old, new))
            for section in stitched_sections(list(files.values()), self.context.name)
        ]
        together: list[tuple[list[DataFile], list[DataFile]]] = []
        end = -1
        for first, side, section in sorted(pieces, key=lambda piece: piece[:2]):
            if first >= end:
                together.append(([], []))
            together[-1][side].extend(section.files)
            end = max(end, first + section.files[0].row_count)
        for before, after in together:
            names = {file.file_name for file in (*before, *after)}
            is_same = {(file.file_name, file.first_row_id) for file in before} == {
                (file.file_name, file.first_row_id) for file in after
            }
            if not is_same or any(map(self._is_masked_anew, names)):
                yield Difference(partition, bucket, tuple(before), tuple(after))

    def _by_ids(self, part: Difference) -> Iterator[pa.RecordBatch]:
        """Where columns have files of their own, rows with the same id are the same row."""
        reader = SplitReader(self.context, (*self.context.schema.fields, ROW_ID))
        sides = []
        for side, files in enumerate((part.before, part.after)):
            sections = tuple(stitched_sections(files, self.context.name))
            batches = reader.read(Split(part.partition, part.bucket, sections, self._vectors[side]))
            sides.append(pa.Table.from_batches(batches, schema=reader.schema))
        both = pa.concat_tables(sides).combine_chunks()
        if not both.num_rows:
            return
        _, group_of = np.unique(np.asarray(both.column(ROW_ID.name)), return_inverse=True)
        is_new = np.arange(both.num_rows) >= sides[_OLD].num_rows
        rows = of_kind(both.drop_columns([ROW_ID.name]).to_batches()[0], RowKind.INSERT)
        events = self._events(rows, is_new, group_of)
        if events.num_rows:
            yield events

    # --- without -------------------------------------------------------------------------------------------------

    def _unkeyed(self, parts: Sequence[Difference]) -> Iterator[pa.RecordBatch]:
        """Rows that went and rows that came; those that files were only rewritten with are neither."""
        if not any(part.masked or (part.before and part.after) for part in parts):
            yield from self._went_and_came(parts)
            return
        row_count = sum(file.row_count for part in parts for file in (*part.before, *part.after, *part.masked))
        fields = self.context.schema.fields
        yield from remaining_events(lambda: self._went_and_came(parts), fields, row_count)

    def _went_and_came(self, parts: Sequence[Difference]) -> Iterator[pa.RecordBatch]:
        reader = SplitReader(self.context, self.context.schema.fields)
        for part in parts:
            yield from self._newly_masked(part)
            for side, files, kind in ((_OLD, part.before, RowKind.DELETE), (_NEW, part.after, RowKind.INSERT)):
                split = Split(part.partition, part.bucket, tuple(map(_alone, files)), self._vectors[side])
                for batch in reader.read_stored(split):
                    yield of_kind(with_defaults(batch, self.context.shown_defaults), kind)

    def _newly_masked(self, part: Difference) -> Iterator[pa.RecordBatch]:
        """Rows that a deletion vector has taken in between, and those that it has given back."""
        old, new = self._vectors
        reader = SplitReader(self.context, (*self.context.schema.fields, ROW_INDEX))
        for file in part.masked:
            for shown, hidden, kind in ((old, new, RowKind.DELETE), (new, old, RowKind.INSERT)):
                name = file.file_name
                marks = self.context.vector_store.read(hidden[name]) if name in hidden else NO_POSITIONS
                for batch in reader.read_stored(Split(part.partition, part.bucket, (_alone(file),), shown)):
                    is_marked = np.isin(np.asarray(batch.column(ROW_INDEX.name)), marks, assume_unique=True)
                    rows = batch.drop_columns([ROW_INDEX.name]).filter(pa.array(is_marked))
                    yield of_kind(with_defaults(rows, self.context.shown_defaults), kind)


def _alone(file: DataFile) -> Section:
    return Section((SortedRun((file,)),))


def _identity(file: DataFile, levels_matter: bool) -> tuple[str, int]:
    return file.file_name, file.level if levels_matter else 0


def _identities(files: Sequence[DataFile], levels_matter: bool) -> set[tuple[str, int]]:
    return {_identity(file, levels_matter) for file in files}


def _files_read(part: Difference) -> Sequence[DataFile]:
    """What is read of a difference: all rows of both sides, or about as many as are looked up."""
    return (*part.before, *part.after) if part.changed is None else (*part.changed, *part.masked)


def _by_bucket(entries: Sequence[ManifestEntry]) -> dict[tuple[bytes, int], dict[str, DataFile]]:
    buckets: dict[tuple[bytes, int], dict[str, DataFile]] = defaultdict(dict)
    for entry in entries:
        buckets[entry.partition, entry.bucket][entry.file.file_name] = entry.file
    return buckets


def _rescaled(before: Sequence[ManifestEntry], after: Sequence[ManifestEntry]) -> set[bytes]:
    """Partitions in which a key may lie in another bucket than before, since there are more or fewer of them."""
    counts = {entry.partition: entry.total_buckets for entry in before}
    return {
        entry.partition for entry in after if counts.get(entry.partition, entry.total_buckets) != entry.total_buckets
    }


def _without_old_rows(events: pa.RecordBatch) -> pa.RecordBatch:
    kinds = key_value.kinds(events)
    kinds = np.where(is_retract(kinds), kinds, np.asarray(events.column(_WRITTEN_AS)))
    rows = events.set_column(events.schema.get_field_index(VALUE_KIND), KIND_FIELD, pa.array(kinds))
    return rows.filter(pa.array(kinds != RowKind.UPDATE_BEFORE)).drop_columns([_WRITTEN_AS])


__all__ = ["Difference", "StateDiff", "StateFiles"]
