"""A history once more under other settings, on imagined files: what the real pickers choose is carried out on paper.

When a compaction is due, which runs it takes, which of their files move and which are rewritten is asked of the same
functions that compactions ask (`rewrite/due`, `lsm/compaction`). Only what a merge leaves is imagined: rows by
`overlap`, bytes by what files of the history took for their rows.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, looks_up, normalises_input, producer
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.file_rules import write_rules
from lakebed.explain.advise.overlap import ALL_NEW, Numbers, Overlap, fit
from lakebed.explain.advise.workload import Asked, Figures, Gauge, Piece, Workload, Wrote, runs_of
from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.compaction.plan import CompactionPlan, keep_as_it_is
from lakebed.lsm.compaction.small_files import SmallFileRules, pick_ordered, pick_unordered
from lakebed.lsm.compaction.task import CompactionTask, Move
from lakebed.lsm.levels import Levels
from lakebed.lsm.sections import Section
from lakebed.metadata.data_file import DataFile, FileSource, creation_time_from_epoch
from lakebed.metadata.entries import Bucket
from lakebed.metadata.stats import EMPTY_STATS
from lakebed.options import (
    BUCKET,
    COMPACTION_DELETE_RATIO_THRESHOLD,
    COMPACTION_FILE_NUM_LIMIT,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_MIN_FILE_NUM,
    COMPACTION_SMALL_FILE_RATIO,
    SOURCE_SPLIT_OPEN_FILE_COST,
    WRITE_ONLY,
    Options,
)
from lakebed.records import dataclass
from lakebed.rewrite.bucket_files import BucketMarks, CompactionFiles
from lakebed.rewrite.due import due_plan, has_many_runs, is_full_due, looks_at_buckets
from lakebed.types.binary_row import encode_rows
from lakebed.types.logical import BIGINT

_Drawn = tuple[int, float]
"""A number for rows that were drawn together, and how many draws that were: files of one run share them."""

_KEY = (BIGINT,)
"""Imagined files have a key of one column: the place on the line."""

_MOST_ARRIVALS = 12_000
"""Of a longer history only some buckets are replayed, and stand for the others."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What files with so many rows take: small ones pay for their footer, large ones are compressed better."""

    rows: Numbers
    """Logarithms, and of bytes too: sizes differ by factors."""
    size_bytes: Numbers
    slope: float
    """How bytes grow with rows below and above what is known."""

    @staticmethod
    def of(known: Sequence[tuple[int, int]], alike: Sequence[tuple[int, int]] = ()) -> Sizes:
        """From rows and bytes of files, and of others that differ in little more than in size."""
        at, of = _bins(known or alike or [(1, 1000)])
        all_at, all_of = _bins([*known, *alike] or [(1, 1000)])
        is_wide = all_at[-1] - all_at[0] > 0.5
        slope = (all_of[-1] - all_of[0]) / (all_at[-1] - all_at[0]) if is_wide else 0.8
        return Sizes(at, np.maximum.accumulate(of), float(np.clip(slope, 0.3, 1.0)))

    def size(self, rows: float) -> float:
        """Bytes of a file with so many rows."""
        at = float(np.log(max(1.0, rows)))
        beyond = min(0.0, at - float(self.rows[0])) + max(0.0, at - float(self.rows[-1]))
        return float(np.exp(np.interp(at, self.rows, self.size_bytes) + beyond * self.slope))

    def fitting(self, size_bytes: float) -> float:
        """Rows of a file of that size."""
        low, high = 1.0, 1e12
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (middle, high) if self.size(middle) <= size_bytes else (low, middle)
        return low


def _bins(known: Sequence[tuple[int, int]]) -> tuple[Numbers, Numbers]:
    """Means of logarithms, of files of about one size each."""
    rows, size = np.log(np.array(known, np.float64).clip(1)).T
    order = np.argsort(rows, kind="stable")
    parts = np.array_split(order, min(_SIZES, len(order)))
    means = {float(rows[part].mean()): float(size[part].mean()) for part in parts}
    return np.array(list(means)), np.array(list(means.values()))


_SIZES = 10


@dataclass(frozen=True)
class Knowledge:
    """What a history teaches, whatever the settings: how keys overlap and what rows take."""

    workload: Workload
    overlaps: Mapping[bytes, Overlap]
    new: Sizes
    """Of files that commits write."""
    old: Sizes
    """Of files that compactions write."""
    keys: dict[int, bytes]
    """Places on the line as keys of files."""

    @staticmethod
    def of(workload: Workload) -> Knowledge:
        """Learns it."""
        came = [(piece.rows, piece.size_bytes) for piece in workload.pieces]
        new, old = Sizes.of(came, workload.compacted), Sizes.of(workload.compacted, came)
        bases = [piece for runs in workload.base.values() for run in runs for piece in run.pieces]
        known = sorted({place for piece in [*workload.pieces, *bases] for place in (piece.low, piece.high)})
        return Knowledge(workload, _overlaps(workload), new, old, dict(_encoded(known)))

    def key(self, place: int) -> bytes:
        """A place on the line as a key of a file."""
        if place not in self.keys:
            self.keys.update(_encoded([place]))
        return self.keys[place]


def _overlaps(workload: Workload) -> dict[bytes, Overlap]:
    """How keys overlap in each partition: those with the most rows by themselves, others as these are."""
    draws = {partition: workload.draws(partition) for partition in _partitions(workload)}
    sums = {partition: sum(found.values()) for partition, found in draws.items() if found}
    found: dict[bytes, Overlap] = {}
    teacher, of_teacher = ALL_NEW, 1
    for partition in sorted(sums, key=lambda each: -sums[each]):
        merges = [merge for merge in workload.merges.get(partition, ()) if len(merge.runs) > 1]
        if merges and len(found) < _MOST_FITTED:
            overlap = fit(draws[partition], merges)
            if teacher is ALL_NEW:
                teacher, of_teacher = overlap, sums[partition]
            found[partition] = overlap
    return {part: found.get(part, teacher.scaled(sums[part] / of_teacher)) for part in sums}


_MOST_FITTED = 12


def _partitions(workload: Workload) -> set[bytes]:
    return {*workload.base, *(partition for event in workload.writes for partition in event.came)}


def _encoded(places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    import pyarrow as pa

    listed = list(places)
    return zip(listed, encode_rows([pa.array(listed, pa.int64())], list(_KEY)).to_pylist(), strict=True)


class _Marks(BucketMarks):
    """Marked rows of imagined files."""

    def __init__(self, context: TableContext, masked: set[str]) -> None:
        super().__init__(context, context.vector_store, ())
        self._masked = masked

    def is_marked(self, file: DataFile) -> bool:
        """Whether newer rows have replaced some of it."""
        return file.file_name in self._masked


def _sum(draws: Iterable[_Drawn]) -> float:
    return sum(each for _, each in draws)


class Replay:
    """One run through a history. `context` is the table under the settings that are tried."""

    def __init__(self, context: TableContext, knowledge: Knowledge) -> None:
        self._context = context
        self._options: Options = context.options
        self._know = knowledge
        self._buckets = self._options[BUCKET]
        self._files: dict[Bucket, dict[str, DataFile]] = defaultdict(dict)
        self._draws: dict[str, _Drawn] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._gauge = Gauge()
        self._names = itertools.count()
        self._sequence = itertools.count(1)
        self._masked: set[str] = set()
        self._rules = write_rules(context)
        self._now_ms = 0
        self._fitting = knowledge.old.fitting(self._rules.target_size_bytes)
        self._every = self._sampling()
        self._unit: dict[Bucket, bool] = {}
        if context.has_key:
            marks = _Marks(context, self._masked)
            task = CompactionFiles(context, context.fileio).task(b"", 0, 1, marks)
            # What of a file must be rewritten for its rows can not be told of imagined ones.
            self._task: CompactionTask = replace(task, key_types=_KEY, must_rewrite=keep_as_it_is)

    def run(self) -> Figures:
        """From the first commit to the last."""
        self._begin()
        for event in self._know.workload.events:
            self._now_ms = event.time_ms
            if isinstance(event, Asked):
                self._round(list(self._files), is_full=event.is_full, is_in_stream=False)
            else:
                self._write(event)
        return self._gauge.figures(self._every)

    # --- what comes ----------------------------------------------------------------------------------------------

    def _sampling(self) -> int:
        """Of how many buckets one is replayed."""
        workload = self._know.workload
        arrivals = sum(len(self._scattered(b"", pieces)) for event in workload.writes for pieces in event.came.values())
        return max(1, round(arrivals / _MOST_ARRIVALS))

    def _is_replayed(self, bucket: Bucket) -> bool:
        if self._every == 1:
            return True
        if bucket not in self._unit:
            self._unit[bucket] = len(self._unit) % self._every == 0
        return self._unit[bucket]

    def _keeps_buckets(self, pieces: Sequence[Piece]) -> bool:
        return self._buckets < 1 or all(piece.total_buckets == self._buckets for piece in pieces)

    def _scattered(self, partition: bytes, pieces: Sequence[Piece], salt: int = 0) -> list[Piece]:
        """What a commit brings to the buckets of a partition: what it brought, if there are as many as then."""
        if self._keeps_buckets(pieces):
            return list(pieces)
        rows, deletes = sum(piece.rows for piece in pieces), sum(piece.deletes for piece in pieces)
        low, high = min(piece.low for piece in pieces), max(piece.high for piece in pieces)
        level = max(piece.level for piece in pieces)
        # Where memory ran out, a bucket got several files of one commit.
        files = max(1, round(len(pieces) / len({piece.bucket for piece in pieces})))
        shares = np.random.default_rng([salt, rows]).multinomial(rows, np.full(self._buckets, 1 / self._buckets))
        target = self._rules.target_size_bytes
        made: list[Piece] = []
        for bucket, count in enumerate(shares.tolist()):
            if not count:
                continue
            size = self._know.new.size(count)
            parts = max(1, min(files, round(size / target))) if files > 1 else 1
            each = max(1, count // parts)
            mine = round(deletes * each / rows)
            made += [
                Piece(bucket, self._buckets, each, int(self._know.new.size(each)), mine, low, high, level)
                for _ in range(parts)
            ]
        return made

    def _begin(self) -> None:
        """The runs that were there before the first commit."""
        for partition, bases in self._know.workload.base.items():
            overlap = self._overlap(partition)
            keeps = all(self._keeps_buckets(base.pieces) for base in bases)
            highest = num_levels(self._options) - 1
            draws = {
                base.name: self._drawn(overlap.draws_of(sum(piece.rows for piece in base.pieces))) for base in bases
            }
            if keeps:
                for base in reversed(bases):
                    for piece in base.pieces:
                        level = min(piece.level, highest)
                        self._add(partition, piece, draws[base.name], level if self._context.has_key else 0)
            else:
                # A rescale leaves one run.
                together = self._drawn(_sum(draws.values()))
                pieces = [piece for base in bases for piece in base.pieces]
                share = overlap.distinct(together[1]) / max(
                    1.0, sum(overlap.distinct(each) for _, each in draws.values())
                )
                for piece in self._scattered(partition, pieces):
                    rows = max(1, round(piece.rows * share))
                    size = int(self._know.old.size(rows))
                    self._add(partition, replace(piece, rows=rows, size_bytes=size), together, highest)
        for bucket in list(self._files):
            self._stands(bucket)

    def _write(self, event: Wrote) -> None:
        for partition in event.replaces:
            for bucket in [each for each in self._files if each[0] == partition]:
                self._files[bucket].clear()
                self._stands(bucket)
        touched: dict[Bucket, int] = {}
        for number, (partition, pieces) in enumerate(event.came.items()):
            draws = self._drawn(self._overlap(partition).draws_of(sum(piece.rows for piece in pieces)))
            for piece in self._scattered(partition, pieces, hash((event.name, number)) & 0xFFFF):
                bucket = partition, piece.bucket
                if not self._is_replayed(bucket):
                    continue
                self._add(partition, piece, draws, 0)
                self._gauge.written_bytes += piece.size_bytes
                if producer(self._options) == "input" and not normalises_input(self._options):
                    self._gauge.changelog_bytes += piece.size_bytes
                touched[bucket] = 0
        for bucket in touched:
            self._stands(bucket)
        self._gauge.moment()
        if not self._options[WRITE_ONLY]:
            self._follow(event, list(touched))

    def _follow(self, event: Wrote, touched: list[Bucket]) -> None:
        """What the commit makes due."""
        if not self._context.has_key:
            enough = self._options[COMPACTION_MIN_FILE_NUM]
            due = [bucket for bucket in touched if bucket[1] >= 0 and len(self._files[bucket]) >= enough]
            self._round(due, is_full=False, is_in_stream=False)
        elif is_full_due(self._options, event.identifier, is_replayable=event.is_in_stream):
            self._round(list(self._files), is_full=True, is_in_stream=event.is_in_stream)
        elif looks_at_buckets(self._context):
            self._round(touched, is_full=False, is_in_stream=event.is_in_stream)
        else:
            due = [bucket for bucket in touched if has_many_runs(self._options, self._levels(bucket).number_of_runs)]
            self._round(due, is_full=False, is_in_stream=event.is_in_stream)

    # --- what is compacted ---------------------------------------------------------------------------------------

    def _round(self, buckets: Iterable[Bucket], *, is_full: bool, is_in_stream: bool) -> None:
        before = self._gauge.compactions
        for bucket in buckets:
            if self._context.has_key:
                levels = self._levels(bucket)
                if is_full:
                    force = self._options[COMPACTION_FORCE_REWRITE_ALL_FILES]
                    plan = pick_full(
                        levels, force_rewrite=force, must_rewrite=lambda file: file.file_name in self._masked
                    )
                else:
                    plan = due_plan(self._context, levels, now_ms=self._now_ms, is_in_stream=is_in_stream)
                if plan is None:
                    continue
                self._compact(bucket, plan, levels)
            elif not self._join(bucket, is_full=is_full):
                continue
            self._gauge.compactions += 1
            self._stands(bucket)
        if self._gauge.compactions > before:
            self._gauge.moment()  # it is a snapshot of its own

    def _compact(self, bucket: Bucket, plan: CompactionPlan, levels: Levels) -> None:
        self._tell(bucket, plan, levels)
        for step in self._task.steps(plan):
            if isinstance(step, Move):
                self._files[bucket][step.file.file_name] = step.file.at_level(plan.output_level)
            else:
                self._rewrite(bucket, step.sections, plan)
        if self._context.masks_old_rows and any(file.level == 0 for file in plan.files):
            self._masked.update(file.file_name for run in plan.older for file in run.files)

    def _rewrite(self, bucket: Bucket, sections: Sequence[Section], plan: CompactionPlan) -> None:
        overlap = self._overlap(bucket[0])
        files = [file for section in sections for file in section.files]
        rows = sum(self._left(section, overlap) for section in sections)
        deletes = 0 if plan.drops_retracts else min(int(rows), sum(file.delete_row_count or 0 for file in files))
        draws = self._drawn(_sum({self._draws[file.file_name] for file in files}))
        for file in files:
            del self._files[bucket][file.file_name]
            self._masked.discard(file.file_name)
            self._gauge.read_bytes += file.size_bytes
        low = min(self._places[file.file_name][0] for file in files)
        high = max(self._places[file.file_name][1] for file in files)
        made = self._cut(rows)
        for number, count in enumerate(made):
            # Files of a run share no key.
            begin = low + (high - low) * number // len(made) + (number > 0)
            end = low + (high - low) * (number + 1) // len(made)
            size = int(self._know.old.size(count))
            mine = deletes * count // max(1, int(rows))
            piece = Piece(bucket[1], 0, count, size, mine, begin, max(begin, end))
            self._add(bucket[0], piece, draws, plan.output_level)
            self._gauge.compacted_bytes += size

    def _left(self, section: Section, overlap: Overlap) -> float:
        """Rows that a merge of a section leaves."""
        rows = sum(file.row_count for file in section.files)
        draws = {self._draws[file.file_name] for run in section.runs for file in run.files}
        if len(section.runs) < 2 or len(draws) < 2:
            return rows
        return rows * overlap.distinct(_sum(draws)) / max(1.0, sum(overlap.distinct(each) for _, each in draws))

    def _cut(self, rows: float) -> list[int]:
        """Rows of each file that is written."""
        most = max(1, int(min(self._fitting, self._rules.target_row_count or self._fitting)))
        whole, rest = divmod(max(1, round(rows)), most)
        return [most] * whole + ([rest] if rest else [])

    def _tell(self, bucket: Bucket, plan: CompactionPlan, levels: Levels) -> None:
        """The changelog that a compaction writes: one event for a new key, two for one that was there."""
        made_by = producer(self._options)
        told = [file for file in plan.files if file.level == 0]
        if made_by == FULL_COMPACTION:
            told = [file for file in plan.files if file.level < plan.output_level] if plan.is_full else []
        elif made_by != LOOKUP:
            told = []
        if not told:
            return
        names = {file.file_name for file in told}
        overlap = self._overlap(bucket[0])
        runs = {self._draws[name] for name in names}
        new = _sum(runs)
        old = _sum({self._draws[file.file_name] for file in levels.files if file.file_name not in names})
        keys, before = overlap.distinct(new), overlap.distinct(old)
        fresh = min(keys, max(0.0, overlap.distinct(old + new) - before))
        share = sum(file.row_count for file in told) / max(1.0, sum(overlap.distinct(each) for _, each in runs))
        events = share * (fresh + 2 * (keys - fresh))
        self._gauge.changelog_bytes += self._know.new.size(events)
        if looks_up(self._options):
            self._gauge.read_bytes += self._know.old.size(share * keys)

    def _join(self, bucket: Bucket, *, is_full: bool) -> bool:
        """Joins files of a table without a key."""
        options = self._options
        rules = SmallFileRules(
            self._rules.target_size_bytes,
            options[COMPACTION_SMALL_FILE_RATIO],
            options[COMPACTION_MIN_FILE_NUM],
            options[SOURCE_SPLIT_OPEN_FILE_COST],
            options[COMPACTION_DELETE_RATIO_THRESHOLD],
            options[COMPACTION_FILE_NUM_LIMIT],
        )
        pick = pick_ordered if bucket[1] >= 0 and self._buckets > 0 else pick_unordered
        groups = pick(list(self._files[bucket].values()), rules, full=is_full)
        for group in groups:
            for file in group:
                del self._files[bucket][file.file_name]
                self._gauge.read_bytes += file.size_bytes
            for count in self._cut(sum(file.row_count for file in group)):
                size = int(self._know.old.size(count))
                self._add(
                    bucket[0], Piece(bucket[1], 0, count, size, 0, 0, 0), (0, 0.0), 0, group[0].min_sequence_number
                )
                self._gauge.compacted_bytes += size
        return bool(groups)

    # --- imagined files ------------------------------------------------------------------------------------------

    def _add(self, partition: bytes, piece: Piece, draws: _Drawn, level: int, sequence: int | None = None) -> None:
        bucket = partition, piece.bucket
        if not self._is_replayed(bucket):
            return
        name = f"f{next(self._names)}"
        number = next(self._sequence) if sequence is None else sequence
        self._draws[name] = draws
        self._files[bucket][name] = DataFile(
            file_name=name,
            size_bytes=piece.size_bytes,
            row_count=piece.rows,
            min_key=self._know.key(piece.low),
            max_key=self._know.key(piece.high),
            key_stats=EMPTY_STATS,
            value_stats=EMPTY_STATS,
            min_sequence_number=number,
            max_sequence_number=number,
            schema_id=0,
            level=level,
            creation_time_ms=creation_time_from_epoch(self._now_ms),
            delete_row_count=piece.deletes,
            file_source=FileSource.COMPACT if level else FileSource.APPEND,
        )
        self._places[name] = (piece.low, piece.high)

    def _drawn(self, draws: float) -> _Drawn:
        return next(self._names), draws

    def _levels(self, bucket: Bucket) -> Levels:
        return Levels.of(list(self._files[bucket].values()), _KEY, num_levels(self._options))

    def _stands(self, bucket: Bucket) -> None:
        files = list(self._files[bucket].values())
        self._gauge.stands(bucket, files, runs_of(self._context, files, self._context.lowest_visible_level))

    def _overlap(self, partition: bytes) -> Overlap:
        return self._know.overlaps.get(partition, ALL_NEW)


__all__ = ["Knowledge", "Replay"]
