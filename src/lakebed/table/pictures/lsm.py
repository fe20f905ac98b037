"""Files over the keys that they hold: which overlap, what a read has to merge, on which level they lie.

Keys are drawn by their order, not by their distance: the bounds of all files of a bucket, one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

import numpy as np

from lakebed.errors import InvalidArgument
from lakebed.lsm.sections import cut_sections, key_bounds
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.manifest import ManifestEntry
from lakebed.notebook import moment
from lakebed.options import PARTITION_DEFAULT_NAME
from lakebed.records import dataclass
from lakebed.table.pictures import svg
from lakebed.table.system.base import TableState
from lakebed.table.system.file_columns import file_source, key_texts
from lakebed.table.system.texts import partition_names
from lakebed.types.binary_row import EMPTY_ROW
from lakebed.units import size_text

_MOST_BUCKETS = 24
"""How many buckets are drawn at once, unless somebody asks for more."""
_MOST_FILES = 600
"""Of a bucket; thinner bars can not be told from each other."""
_MOST_BARS = 1200
"""Of all buckets together: a browser takes about a second for ten times as many, and nobody sees them."""
_MOST_LOOKED_AT = 10_000
"""Files of all buckets of a picture; those behind them come with the next one."""
_WIDTH, _LEFT, _ROW, _BAR, _HEAD = 960, 96, 15, 11, 22
_LEVELS = ("#d29922", "#57ab5a", "#2da44e", "#1a7f64", "#218bff", "#0969da", "#8250df", "#6639ba")
"""Colours of levels 0, 1, ...; the last is that of all that are deeper."""


@dataclass(frozen=True)
class LsmFile:
    """A data file: `low` and `high` are the places of its smallest and greatest key among those of its bucket."""

    name: str
    level: int
    low: int
    high: int
    section: int
    """Sections share no key; files of one are merged with each other."""
    min_key: str | None
    max_key: str | None
    rows: int
    size_bytes: int
    deletes: int | None
    marked: int
    """Rows that deletion vectors mark as deleted."""
    schema_id: int
    min_sequence: int
    max_sequence: int
    source: str | None
    created_ms: int | None


@dataclass(frozen=True)
class LsmRest:
    """Files of a level that are told together, since there are very many."""

    level: int
    low: int
    high: int
    file_count: int
    rows: int
    size_bytes: int

    @staticmethod
    def of(level: int, files: Sequence[tuple[DataFile, int, int]]) -> LsmRest:
        """Files with the places of their keys."""
        return LsmRest(
            level,
            min(low for _, low, _ in files),
            max(high for _, _, high in files),
            len(files),
            sum(file.row_count for file, _, _ in files),
            sum(file.size_bytes for file, _, _ in files),
        )


@dataclass(frozen=True)
class LsmBucket:
    """A bucket: its files by level, the newest first; of very many the first ones, and the others by level."""

    partition: str | None
    bucket: int
    places: int
    runs: int
    """How many sorted runs the widest section has: a read merges them, unless deletion vectors say what is gone."""
    sections: int
    file_count: int
    size_bytes: int
    files: tuple[LsmFile, ...]
    rest: tuple[LsmRest, ...] = ()

    @property
    def name(self) -> str:
        """As it is shown: the partition, if there is one, and the number."""
        number = "waiting" if self.bucket < 0 else f"bucket {self.bucket}"
        return number if self.partition is None else f"{self.partition} {number}"


@dataclass(frozen=True)
class LsmPicture:
    """The files of some buckets of a table at a snapshot."""

    table: str
    snapshot_id: int | None
    time_ms: int | None
    buckets: tuple[LsmBucket, ...]
    offset: int
    bucket_count: int
    """How many the table has; those shown are `offset` and the following."""
    file_count: int
    size_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values only."""
        return {
            "table": self.table,
            "snapshot": self.snapshot_id,
            "time_ms": self.time_ms,
            "offset": self.offset,
            "bucket_count": self.bucket_count,
            "file_count": self.file_count,
            "size_bytes": self.size_bytes,
            "buckets": [
                {
                    "name": each.name,
                    "partition": each.partition,
                    "bucket": each.bucket,
                    "places": each.places,
                    "runs": each.runs,
                    "sections": each.sections,
                    "file_count": each.file_count,
                    "size_bytes": each.size_bytes,
                    "files": [asdict(file) for file in each.files],
                    "rest": [asdict(rest) for rest in each.rest],
                }
                for each in self.buckets
            ],
        }

    def to_svg(self) -> str:
        """The picture."""
        return _drawn(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return (
            f"<files of {self.table} at {at}: {self.file_count} in {self.bucket_count} buckets, "
            f"{size_text(self.size_bytes)}; to_svg() draws them>"
        )


def lsm_picture(
    state: TableState, *, buckets: int = _MOST_BUCKETS, offset: int = 0, partition: str | None = None
) -> LsmPicture:
    """The files of `buckets` buckets from the one at `offset` on, of all partitions or of one (`dt=2026-01-01`)."""
    if buckets < 1 or offset < 0:
        raise InvalidArgument(
            f"there is no picture of {buckets} buckets from {offset} on", hint="pass buckets >= 1 and offset >= 0"
        )
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
    for entry in state.files:
        groups[entry.partition, entry.bucket].append(entry)
    texts = _partition_names(state, groups)
    kept = [key for key in groups if partition is None or texts[key[0]] == partition]
    shown = _not_too_many(kept[offset : offset + buckets], groups)
    vectors = _marked(state.index_files)
    snapshot = state.snapshot
    most = min(_MOST_FILES, max(20, _MOST_BARS // max(1, len(shown))))
    return LsmPicture(
        table=state.context.name,
        snapshot_id=None if snapshot is None else snapshot.id,
        time_ms=None if snapshot is None else snapshot.time_millis,
        buckets=tuple(_bucket(state, texts[key[0]], key[1], groups[key], vectors, most) for key in shown),
        offset=offset,
        bucket_count=len(kept),
        file_count=sum(len(groups[key]) for key in kept),
        size_bytes=sum(entry.file.size_bytes for key in kept for entry in groups[key]),
    )


def _not_too_many(
    keys: Sequence[tuple[bytes, int]], groups: Mapping[tuple[bytes, int], Sequence[ManifestEntry]]
) -> Sequence[tuple[bytes, int]]:
    """The first of these buckets, at least one, up to so many files that nobody waits for their picture."""
    reached = accumulate(len(groups[key]) for key in keys)
    return keys[: max(1, sum(count <= _MOST_LOOKED_AT for count in reached))]


def _partition_names(state: TableState, groups: Iterable[tuple[bytes, int]]) -> Mapping[bytes, str | None]:
    partitions = list(dict.fromkeys(partition for partition, _ in groups))
    context = state.context
    if not context.schema.partition_keys:
        return dict.fromkeys(partitions)
    names = partition_names(context, partitions, context.options[PARTITION_DEFAULT_NAME])
    return dict(zip(partitions, names, strict=True))


def _marked(entries: Sequence[IndexEntry]) -> dict[str, int]:
    return {
        part.data_file_name: part.cardinality or 0
        for entry in entries
        if entry.index_type == DELETION_VECTORS_INDEX
        for part in entry.deletion_vector_ranges or ()
    }


def _bucket(
    state: TableState,
    partition: str | None,
    bucket: int,
    entries: Sequence[ManifestEntry],
    vectors: dict[str, int],
    most: int,
) -> LsmBucket:
    context = state.context
    # The newest first: so they are drawn from top to bottom, and so they win.
    files = [each.file for each in sorted(entries, key=lambda e: (e.file.level, -e.file.max_sequence_number))]
    keyed = context.has_key and bucket >= 0 and all(file.min_key[:4] != EMPTY_ROW[:4] for file in files)
    section_of: dict[str, int] = {}
    if keyed:
        types = [field.type for field in context.schema.fields_of(context.schema.trimmed_primary_key)]
        low, high = key_bounds(files, types)
        first = min(low)
        low, high = [each - first for each in low], [each - first for each in high]
        sections = cut_sections(files, types)
        section_of = {file.file_name: n for n, section in enumerate(sections) for file in section.files}
        runs = max((len(section.runs) for section in sections), default=0)
    else:
        # Without a key, rows lie in the order in which they came.
        bounds = np.unique([[file.min_sequence_number, file.max_sequence_number] for file in files])
        low = np.searchsorted(bounds, [file.min_sequence_number for file in files]).tolist()
        high = np.searchsorted(bounds, [file.max_sequence_number for file in files]).tolist()
        runs = 1
    kept = files[:most]
    others: dict[int, list[tuple[DataFile, int, int]]] = defaultdict(list)
    for place in range(most, len(files)):
        others[files[place].level].append((files[place], low[place], high[place]))
    smallest = key_texts(context, kept, [file.min_key for file in kept]) if keyed else [None] * len(kept)
    greatest = key_texts(context, kept, [file.max_key for file in kept]) if keyed else [None] * len(kept)
    shown = tuple(
        LsmFile(
            name=file.file_name,
            level=file.level,
            low=low[n],
            high=high[n],
            section=section_of.get(file.file_name, 0),
            min_key=smallest[n],
            max_key=greatest[n],
            rows=file.row_count,
            size_bytes=file.size_bytes,
            deletes=file.delete_row_count,
            marked=vectors.get(file.file_name, 0),
            schema_id=file.schema_id,
            min_sequence=file.min_sequence_number,
            max_sequence=file.max_sequence_number,
            source=file_source(file),
            created_ms=file.creation_time_ms,
        )
        for n, file in enumerate(kept)
    )
    return LsmBucket(
        partition=partition,
        bucket=bucket,
        places=max(high, default=0) + 1,
        runs=runs,
        sections=len(set(section_of.values())) or 1,
        file_count=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        files=shown,
        rest=tuple(LsmRest.of(level, members) for level, members in sorted(others.items())),
    )


# --- drawing ---------------------------------------------------------------------------------------------------------


def _drawn(given: LsmPicture) -> str:
    shapes: list[str] = []
    y = 4.0
    for bucket in given.buckets:
        y = _draw_bucket(shapes, bucket, y)
    if not given.buckets:
        shapes.append(svg.text(_LEFT, y + 14, "no data files"))
        y += 24
    rest = given.bucket_count - given.offset - len(given.buckets)
    if rest > 0:
        shapes.append(svg.text(_LEFT, y + 10, f"… and {rest} more buckets", fill=svg.FAINT))
        y += 20
    when = "" if given.time_ms is None else f" at snapshot {given.snapshot_id}, {moment(given.time_ms)}"
    return svg.picture(_WIDTH, y + 4, f"Files of {given.table}{when}", shapes)


def _draw_bucket(shapes: list[str], bucket: LsmBucket, y: float) -> float:
    """Draws a bucket below `y`; gives where the next begins."""
    caption = (
        f"{bucket.name} · {_count(bucket.file_count, 'file')} · {size_text(bucket.size_bytes)} · "
        f"at most {_count(bucket.runs, 'run')} over one key · {_count(bucket.sections, 'section')}"
    )
    shapes.append(f'<g class="bucket" data-bucket="{bucket.bucket}">')
    shapes.append(svg.text(0, y + 13, caption, size=12))
    top = y + _HEAD
    rows, labels = _rows(bucket.files)
    width = (_WIDTH - _LEFT) / bucket.places
    _draw_sections(shapes, bucket, top, len(labels) * _ROW, width)
    for row, label in enumerate(labels):
        if label:
            shapes.append(svg.text(_LEFT - 8, top + row * _ROW + 10, label, fill=svg.FAINT, anchor="end"))
    for file, row in zip(bucket.files, rows, strict=True):
        x = _LEFT + file.low * width
        long = max(3.0, (file.high - file.low + 1) * width - 1)
        colour = _LEVELS[min(max(file.level, 0), len(_LEVELS) - 1)]
        shapes.append(
            svg.bar(
                x,
                top + row * _ROW + 2,
                long,
                _BAR,
                fill=colour,
                title=described(file),
                fill_opacity=0.55 if file.marked or file.deletes else 0.85,
                class_=f"file level-{min(file.level, len(_LEVELS) - 1)}",
                data_file=file.name,
            )
        )
    end = top + len(labels) * _ROW
    for rest in bucket.rest:
        more = f"{_count(rest.file_count, 'file')} more, {size_text(rest.size_bytes)}"
        title = f"level {rest.level}: {more}, {_count(rest.rows, 'row')}"
        x, long = _LEFT + rest.low * width, max(3.0, (rest.high - rest.low + 1) * width - 1)
        colour = _LEVELS[min(max(rest.level, 0), len(_LEVELS) - 1)]
        shapes.append(svg.text(_LEFT - 8, end + 10, f"level {rest.level}", fill=svg.FAINT, anchor="end"))
        shapes.append(svg.bar(x, end + 2, long, _BAR, fill=colour, title=title, fill_opacity=0.25, class_="rest"))
        shapes.append(svg.text(_LEFT + 6, end + 11, f"… and {more}"))
        end += _ROW
    shapes.append("</g>")
    return end + 12


def _rows(files: Sequence[LsmFile]) -> tuple[list[int], list[str]]:
    """The row of each file, and what stands beside the rows: overlapping files of a level lie below each other."""
    rows: list[int] = []
    labels: list[str] = []
    first, reach, level = 0, [], None  # type: int, list[int], int | None
    for file in files:
        if file.level != level:
            level, first, reach = file.level, len(labels), []
        place = next((n for n, end in enumerate(reach) if end < file.low), None) if level else None
        if level and place is None:
            # Files of deeper levels come in no order of keys here; each row holds what does not overlap.
            place = next((n for n in range(len(reach)) if _fits(files, rows, first + n, file)), None)
        if place is None:
            place = len(reach)
            reach.append(-1)
            labels.append(f"level {level}" if place == 0 else "")
        reach[place] = max(reach[place], file.high)
        rows.append(first + place)
    return rows, labels


def _fits(files: Sequence[LsmFile], rows: Sequence[int], row: int, file: LsmFile) -> bool:
    taken = (other for other, at in zip(files, rows, strict=False) if at == row)
    return all(other.high < file.low or file.high < other.low for other in taken)


def _draw_sections(shapes: list[str], bucket: LsmBucket, top: float, height: float, width: float) -> None:
    starts: dict[int, int] = {}
    for file in bucket.files:
        starts[file.section] = min(starts.get(file.section, file.low), file.low)
    for start in sorted(starts.values())[1:200]:
        x = _LEFT + start * width - 0.5
        shapes.append(svg.line(x, top, x, top + height, dashes="2 2"))


def described(file: LsmFile) -> str:
    """All that is known of a file, in lines."""
    keys = "" if file.min_key is None else f"\nkeys {file.min_key} to {file.max_key}"
    gone = f"\n{_count(file.deletes, 'row')} that delete" if file.deletes else ""
    marked = f"\n{_count(file.marked, 'row')} marked by a deletion vector" if file.marked else ""
    made = f", made by {'a compaction' if file.source == 'COMPACT' else 'a write'}" if file.source else ""
    return (
        f"{file.name}\nlevel {file.level}{made}\n"
        f"{_count(file.rows, 'row')}, {size_text(file.size_bytes)}{keys}{gone}{marked}"
        f"\nsequence numbers {file.min_sequence} to {file.max_sequence}\nschema {file.schema_id}"
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


__all__ = ["LsmBucket", "LsmFile", "LsmPicture", "described", "lsm_picture"]
