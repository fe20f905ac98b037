"""What came to a table and what was compacted of it, read from its snapshots: sizes, rows, ranges of keys and times.

Manifests tell all of it; no data file is opened. Keys become places on a line, so that imagined files can have ranges
of keys, too: numbers and times lie where they are, texts where their first bytes put them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.definition.context import TableContext
from lakebed.explain.advise.overlap import Draw, Merge
from lakebed.explain.history import CommitRecord, commits
from lakebed.lsm.compaction.full import FULL
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket, changelog_entries, live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.binary_row import decode_rows

_LINE = 1 << 50
"""The length of the line that keys lie on."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file: how many rows of which keys it brings to a bucket."""

    bucket: int
    total_buckets: int
    rows: int
    size_bytes: int
    deletes: int
    low: int
    high: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Wrote:
    """A commit of rows. `replaces` are partitions that it emptied first."""

    name: Hashable
    time_ms: int
    identifier: int
    is_in_stream: bool
    came: dict[bytes, list[Piece]]
    replaces: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """A compaction that no commit made due: somebody, or a job, asked for it."""

    time_ms: int
    is_full: bool


@dataclass(frozen=True)
class Base:
    """What was there before: a run of a bucket, of all buckets of a partition together."""

    name: Hashable
    pieces: list[Piece]


_Standing = tuple[int, ...]
"""Of a bucket, or of all of them: files, bytes, bytes that are merged, runs, and whether there is any file."""


@dataclass
class Gauge:
    """What a history has cost so far, and how the table stood in the mean of its commits."""

    written_bytes: float = 0.0
    """By commits of rows."""
    compacted_bytes: float = 0.0
    changelog_bytes: float = 0.0
    read_bytes: float = 0.0
    """By compactions."""
    compactions: float = 0.0
    """Of single buckets."""
    _buckets: dict[Bucket, _Standing] = field(default_factory=dict)
    _now: _Standing = (0, 0, 0, 0, 0)
    _sums: _Standing = (0, 0, 0, 0, 0)
    _runs: float = 0.0
    _moments: int = 0

    def stands(self, bucket: Bucket, files: Sequence[DataFile], runs: int) -> None:
        """A bucket has these files now, in so many sorted runs."""
        size_bytes = sum(file.size_bytes for file in files)
        now = (len(files), size_bytes, size_bytes if runs > 1 else 0, runs, int(bool(files)))
        before = self._buckets.get(bucket, (0, 0, 0, 0, 0))
        self._buckets[bucket] = now
        self._now = tuple(a + b - c for a, b, c in zip(self._now, now, before, strict=True))

    def moment(self) -> None:
        """Now a commit has come, and all that it made due is done."""
        self._moments += 1
        self._sums = tuple(a + b for a, b in zip(self._sums, self._now, strict=True))
        self._runs += self._now[3] / max(1, self._now[4])

    def figures(self, scale: float = 1.0) -> Figures:
        """All of it, if only one of `scale` buckets was looked at."""
        times = scale / max(1, self._moments)
        return Figures(
            written_bytes=self.written_bytes * scale,
            compacted_bytes=self.compacted_bytes * scale,
            changelog_bytes=self.changelog_bytes * scale,
            read_bytes=self.read_bytes * scale,
            compactions=self.compactions * scale,
            files=self._now[0] * scale,
            size_bytes=self._now[1] * scale,
            mean_files=self._sums[0] * times,
            mean_bytes=self._sums[1] * times,
            mean_merged_bytes=self._sums[2] * times,
            runs=self._runs / max(1, self._moments),
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """What a history has cost."""

    written_bytes: float
    compacted_bytes: float
    changelog_bytes: float
    read_bytes: float
    compactions: float
    files: float
    """At the end."""
    size_bytes: float
    """At the end."""
    mean_files: float
    mean_bytes: float
    mean_merged_bytes: float
    """Of it in buckets that a read merges."""
    runs: float
    """Sorted runs of a bucket, in the mean of buckets and commits."""

    @property
    def write_amplification(self) -> float:
        """Bytes written in all for each byte that commits of rows wrote."""
        if not self.written_bytes:
            return 1.0
        return (self.written_bytes + self.compacted_bytes + self.changelog_bytes) / self.written_bytes


@dataclass(frozen=True)
class Workload:
    """A table's history: what was there, what came, what was asked for, and what it cost."""

    base: dict[bytes, list[Base]]
    events: list[Wrote | Asked]
    merges: dict[bytes, list[Merge]]
    """By partition, what went into compactions and came out."""
    real: Figures
    compacted: list[tuple[int, int]]
    """Rows and bytes of files that compactions wrote."""
    odd_commits: int
    """Commits that replaced rows in ways that are not replayed."""
    since_ms: int
    until_ms: int
    snapshots: int
    is_cut: bool
    """Whether snapshots of the time asked for have expired."""

    @property
    def writes(self) -> list[Wrote]:
        """Commits of rows."""
        return [event for event in self.events if isinstance(event, Wrote)]

    def draws(self, partition: bytes) -> dict[Hashable, int]:
        """Rows of a partition by the commit that brought them."""
        found = {base.name: sum(piece.rows for piece in base.pieces) for base in self.base.get(partition, ())}
        for event in self.writes:
            if partition in event.came:
                found[event.name] = sum(piece.rows for piece in event.came[partition])
        return {name: rows for name, rows in found.items() if rows}

    @property
    def pieces(self) -> Iterator[Piece]:
        """All files that commits brought."""
        return (piece for event in self.writes for pieces in event.came.values() for piece in pieces)


def read_workload(context: TableContext, snapshot: Snapshot | None, since_ms: int) -> Workload:
    """The history of a table from some time on, as far as snapshots are kept."""
    known = list(commits(context, snapshot))
    inside = [record for record in known if record.snapshot.time_millis >= since_ms]
    # What a snapshot before the first kept one was like nobody knows any more: the history begins after that one.
    begins_empty = bool(inside) and inside[0].snapshot.id == 1
    before = None if not inside else inside[0].before
    is_cut = bool(inside) and before is None and not begins_empty
    if is_cut:
        before, inside = inside[0].snapshot, inside[1:]
    return _Reading(context, before).of(inside, is_cut=is_cut)


class _Reading:
    """Goes through a history once, with the files of each bucket as they were."""

    def __init__(self, context: TableContext, before: Snapshot | None) -> None:
        self._context = context
        self._before = before
        self._live: dict[Bucket, dict[str, DataFile]] = defaultdict(dict)
        self._draws: dict[str, Draw] = {}
        self._merges: dict[bytes, list[Merge]] = defaultdict(list)
        self._compacted: list[tuple[int, int]] = []
        self._gauge = Gauge()
        self._odd = 0
        self._shown = context.lowest_visible_level

    def of(self, records: Sequence[CommitRecord], *, is_cut: bool) -> Workload:
        context = self._context
        base = [entry for entry in live_files(context.stores, self._before) if entry.bucket >= -1]
        arrived = [entry for record in records for entry in record.delta.came.values()]
        entries = [*base, *(entry for entry in arrived if entry.file.level == 0)]
        places = dict(zip((each.file.file_name for each in entries), _places(context, entries), strict=True))
        before = self._from(base, places)
        events: list[Wrote | Asked] = []
        last: CommitRecord | None = None
        for record in records:
            if record.snapshot.commit_kind is CommitKind.COMPACT:
                self._compaction(record)
                if not _follows(record, last):
                    full = record.note is not None and FULL in record.note.reason
                    events.append(Asked(record.snapshot.time_millis, full))
            elif record.delta.size:
                events.append(self._write(record, places))
                last = record
            self._changelog(record)
            self._gauge.moment()
        at = self._before.time_millis if self._before is not None else None
        first = records[0].snapshot.time_millis if records else (at or 0)
        return Workload(
            before,
            events,
            self._merges,
            self._gauge.figures(),
            self._compacted,
            self._odd,
            first if at is None else at,
            records[-1].snapshot.time_millis if records else first,
            len(records),
            is_cut,
        )

    def _from(self, base: Sequence[ManifestEntry], places: dict[str, tuple[int, int]]) -> dict[bytes, list[Base]]:
        """The runs that were there, each of all buckets of a partition together."""
        runs: dict[tuple[bytes, Hashable], list[Piece]] = defaultdict(list)
        for entry in base:
            self._live[entry.partition, entry.bucket][entry.file.file_name] = entry.file
        for (partition, bucket), files in self._live.items():
            totals = {entry.file.file_name: entry.total_buckets for entry in base}
            newest = 0
            for file in sorted(files.values(), key=lambda each: -each.max_sequence_number):
                newest += file.level == 0
                name: Hashable = ("before", file.level, newest if file.level == 0 else 0)
                self._draws[file.file_name] = frozenset([name])
                runs[partition, name].append(_piece(bucket, totals[file.file_name], file, places))
            self._stands((partition, bucket))
        found: dict[bytes, list[Base]] = defaultdict(list)
        for (partition, name), pieces in runs.items():
            found[partition].append(Base(name, pieces))
        return found

    def _write(self, record: CommitRecord, places: dict[str, tuple[int, int]]) -> Wrote:
        snapshot, came = record.snapshot, record.delta.came.values()
        pieces: dict[bytes, list[Piece]] = defaultdict(list)
        touched: set[Bucket] = set()
        emptied: set[bytes] = set()
        for entry in record.delta.went.values():
            self._live[entry.partition, entry.bucket].pop(entry.file.file_name, None)
            touched.add((entry.partition, entry.bucket))
            emptied.add(entry.partition)
        if record.delta.went:
            full = {partition for (partition, _), files in self._live.items() if files}
            self._odd += bool(emptied & full)  # rows were taken out of the middle
            emptied -= full
        for entry in came:
            if entry.bucket < -1:
                continue  # rows that wait: they come with the compaction that places them
            self._live[entry.partition, entry.bucket][entry.file.file_name] = entry.file
            self._draws[entry.file.file_name] = frozenset([snapshot.id])
            touched.add((entry.partition, entry.bucket))
            pieces[entry.partition].append(_piece(entry.bucket, entry.total_buckets, entry.file, places))
            self._gauge.written_bytes += entry.file.size_bytes
        for bucket in touched:
            self._stands(bucket)
        identifier = snapshot.commit_identifier
        is_in_stream = identifier != BATCH_COMMIT_IDENTIFIER
        return Wrote(snapshot.id, snapshot.time_millis, identifier, is_in_stream, pieces, frozenset(emptied))

    def _compaction(self, record: CommitRecord) -> None:
        went: dict[Bucket, list[DataFile]] = defaultdict(list)
        came: dict[Bucket, list[DataFile]] = defaultdict(list)
        for entry in record.delta.went.values():
            went[entry.partition, entry.bucket].append(entry.file)
        for entry in record.delta.came.values():
            came[entry.partition, entry.bucket].append(entry.file)
        for bucket in {*went, *came}:
            runs: dict[Draw, int] = defaultdict(int)
            for file in went[bucket]:
                self._live[bucket].pop(file.file_name, None)
                runs[self._draws.get(file.file_name, frozenset())] += file.row_count
                self._gauge.read_bytes += file.size_bytes
            together: Draw = frozenset().union(*runs)
            for file in came[bucket]:
                self._live[bucket][file.file_name] = file
                self._draws[file.file_name] = together
                self._compacted.append((file.row_count, file.size_bytes))
                self._gauge.compacted_bytes += file.size_bytes
            self._gauge.compactions += 1
            if went[bucket] and frozenset() not in runs:
                left = sum(file.row_count for file in came[bucket])
                self._merges[bucket[0]].append(Merge(tuple(runs.items()), left))
            self._stands(bucket)

    def _changelog(self, record: CommitRecord) -> None:
        files = changelog_entries(self._context.stores, record.snapshot)
        self._gauge.changelog_bytes += sum(entry.file.size_bytes for entry in files)

    def _stands(self, bucket: Bucket) -> None:
        files = list(self._live[bucket].values())
        self._gauge.stands(bucket, files, runs_of(self._context, files, self._shown))


def runs_of(context: TableContext, files: Sequence[DataFile], lowest_level: int) -> int:
    """How many sorted runs of a bucket a read merges."""
    if not files:
        return 0
    if not context.has_key or context.has_keys_once:
        return 1
    levels = {file.level for file in files if file.level >= max(1, lowest_level)}
    return len(levels) + (sum(file.level == 0 for file in files) if lowest_level == 0 else 0)


def _follows(record: CommitRecord, last: CommitRecord | None) -> bool:
    """Whether a compaction is what a commit has made due."""
    if last is None:
        return False
    mine, its = record.snapshot, last.snapshot
    return (mine.commit_user, mine.commit_identifier) == (its.commit_user, its.commit_identifier)


def _piece(bucket: int, total: int, file: DataFile, places: dict[str, tuple[int, int]]) -> Piece:
    low, high = places.get(file.file_name, (0, _LINE))
    deletes = file.delete_row_count or 0
    return Piece(bucket, total, file.row_count, file.size_bytes, deletes, low, high, file.level)


# --- keys on a line --------------------------------------------------------------------------------------------------


def _places(context: TableContext, entries: Sequence[ManifestEntry]) -> list[tuple[int, int]]:
    """Where the smallest and the largest key of each file lie on the line."""
    if not context.has_key or not entries:
        return [(0, _LINE)] * len(entries)
    bounds = [each.file.min_key for each in entries] + [each.file.max_key for each in entries]
    columns = decode_rows(bounds, context.key_types)
    # The first column that differs tells files apart; those that follow only where it does not.
    chosen = next((column for column in columns if pc.count_distinct(column).as_py() > 1), columns[0])
    values = _numbers(chosen)
    width = float(values.max() - values.min()) or 1.0
    line = ((values - values.min()) / width * _LINE).astype(np.int64).tolist()
    return list(zip(line[: len(entries)], line[len(entries) :], strict=True))


def _numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if pa.types.is_floating(column.type):
        return np.nan_to_num(np.asarray(column.fill_null(0.0)).astype(np.float64))
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        texts = [bytes(each) for each in column.cast(pa.binary()).fill_null(b"").to_pylist()]
        shared = _shared_prefix(min(texts), max(texts))
        return np.array([int.from_bytes(each[shared : shared + 6].ljust(6, b"\0"), "big") for each in texts], float)
    return ordering.sort_codes(column.fill_null(column.drop_null()[0]) if column.null_count else column).astype(float)


def _shared_prefix(low: bytes, high: bytes) -> int:
    return next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), 0)


__all__ = ["Asked", "Base", "Figures", "Gauge", "Piece", "Workload", "Wrote", "read_workload", "runs_of"]
