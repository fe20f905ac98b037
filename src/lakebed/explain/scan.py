"""`t.explain(columns, filter)`: what a read opens, and what each rule has left out before.

The sieves are those of the plan (`read.plan.FileSieve`), asked one after the other on all files instead of all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.definition.shown_defaults import stored_part
from lakebed.explain.texts import aligned, html_of, number_of
from lakebed.formats import Stretches
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import all_metas, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry, live_entries
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import FILE_INDEX_READ_ENABLED
from lakebed.read.plan import FileSieve, ScanPlan, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.scan_options import in_scanned_partitions
from lakebed.read.splits import Split, needs_merge
from lakebed.records import dataclass
from lakebed.units import size_text

_MOST_FOOTERS = 256
"""Of so many files at most the row groups are looked at: each is a file to open."""


@dataclass(frozen=True)
class ScanStep:
    """What is left after one rule."""

    rule: str
    manifests: int
    partitions: int
    buckets: int
    files: int
    rows: int
    size_bytes: int

    @staticmethod
    def of(rule: str, manifests: int, entries: Sequence[ManifestEntry]) -> ScanStep:
        """Counts files."""
        return ScanStep(
            rule,
            manifests,
            len({entry.partition for entry in entries}),
            len({(entry.partition, entry.bucket) for entry in entries}),
            len(entries),
            sum(entry.file.row_count for entry in entries),
            sum(entry.file.size_bytes for entry in entries),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class ScanExplained:
    """A planned read, and how it came to be."""

    table: str
    snapshot_id: int | None
    filter: str
    columns: tuple[str, ...]
    steps: tuple[ScanStep, ...]
    """What is left after each rule that has left out something, and first of all what there is."""
    splits: int
    merged_splits: int
    """Splits in which rows of several files are merged; the others are read as stored."""
    merged_files: int
    files: int
    """Files that are opened."""
    deletion_vectors: int
    """Files of which some rows are marked as deleted."""
    row_groups: int
    row_groups_read: int
    size_bytes: int
    """Of the columns and row groups that are read; of whole files where that is not known."""
    unknown_files: int
    """Files whose row groups were not looked at: of another format, or too many."""
    branch_files: int = 0
    """Files of the other branch that the options name."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        members = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return members | {"columns": list(self.columns), "steps": [step.to_dict() for step in self.steps]}

    @property
    def sentences(self) -> list[str]:
        """What is read in the end."""
        stored = self.splits - self.merged_splits
        said = [
            f"{number_of(self.splits, 'split')}: {self.merged_splits} merged ({number_of(self.merged_files, 'file')}), "
            f"{stored} read as stored ({number_of(self.files - self.merged_files, 'file')})",
            f"{self.row_groups_read} of {number_of(self.row_groups, 'row group')}, {size_text(self.size_bytes)}",
        ]
        if self.deletion_vectors:
            said.append(f"deletion vectors mark rows of {number_of(self.deletion_vectors, 'file')}")
        if self.branch_files:
            said.append(f"{number_of(self.branch_files, 'file')} of another branch")
        if self.unknown_files:
            said.append(f"row groups of {number_of(self.unknown_files, 'file')} were not looked at")
        return said

    @property
    def _title(self) -> str:
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        where = f" where {self.filter}" if self.filter else ""
        return f"{self.table} at {at}: {', '.join(self.columns)}{where}"

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                step.rule,
                *(str(n) for n in (step.manifests, step.partitions, step.buckets, step.files, step.rows)),
                size_text(step.size_bytes),
            )
            for step in self.steps
        ]

    def __repr__(self) -> str:
        return "\n".join([self._title, aligned(_HEADER, self._cells()), *(f"  {said}" for said in self.sentences)])

    def _repr_html_(self) -> str:
        said = "".join(html_of(sentence, (), ()) for sentence in self.sentences)
        return f"<div>{html_of(self._title, _HEADER, self._cells())}{said}</div>"


_HEADER = ("left after", "manifests", "partitions", "buckets", "files", "rows", "size")


def explain_scan(reader: SplitReader, plan: ScanPlan) -> ScanExplained:
    """How a read came to open what it opens."""
    context = reader.context
    ours = [split for split in plan.splits if not split.branch]
    found = _RowGroups(reader)
    steps = _steps(reader, plan.snapshot)
    for split in ours:
        found.look_at(split)
    opened = ScanStep.of("indexes of files", steps[-1].manifests, found.entries)
    if opened.files != steps[-1].files:
        steps.append(opened)
    merged = [split for split in ours if _is_merged(context, split)]
    return ScanExplained(
        context.name,
        None if plan.snapshot is None else plan.snapshot.id,
        "" if reader.predicate is None else str(reader.predicate),
        tuple(field.name for field in reader.fields),
        tuple(steps),
        len(plan.splits),
        len(merged),
        found.merged_files,
        len(found.entries),
        sum(entry.file.file_name in split.vectors for split in ours for entry in found.of(split)),
        found.all,
        found.read,
        found.size_bytes,
        found.unknown,
        sum(len(split.files) for split in plan.splits if split.branch),
    )


def _is_merged(context: TableContext, split: Split) -> bool:
    return context.has_key and any(needs_merge(section) for section in split.sections)


def _steps(reader: SplitReader, snapshot: Snapshot | None) -> list[ScanStep]:
    """What each sieve leaves, one after the other."""
    context = reader.context
    predicate = in_scanned_partitions(context, snapshot, reader.predicate)
    sieve = FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))
    metas = all_metas(context.stores, snapshot)
    entries = live_entries(read_manifests(context.stores, metas))
    steps = [ScanStep.of("nothing", len(metas), entries)]
    kept = sieve.keep_metas(metas)

    def note(rule: str, left: list[ManifestEntry]) -> list[ManifestEntry]:
        if len(left) != steps[-1].files or len(kept) != steps[-1].manifests:
            steps.append(ScanStep.of(rule, len(kept), left))
        return left

    if len(kept) != len(metas):
        entries = note("partitions of manifests", live_entries(read_manifests(context.stores, kept)))
    entries = note("rows that wait for a bucket", [entry for entry in entries if entry.bucket >= 0])
    entries = note("partition", sieve.keep_partitions(entries))
    entries = note("bucket of the key", sieve.keep_entries(entries))
    lowest = context.lowest_visible_level
    entries = note("levels that are not shown yet", [entry for entry in entries if entry.file.level >= lowest])
    said = "range of keys" if context.has_key else "statistics of columns"
    entries = note(said, sieve.keep_live(entries))
    splits = splits_of(context, entries, sieve, vectors_at(context, snapshot))
    names = {file.file_name for split in splits for file in split.files}
    note("statistics of columns, of files that are not merged", [e for e in entries if e.file.file_name in names])
    return steps


class _RowGroups:
    """Files that are opened in the end, and what of them."""

    def __init__(self, reader: SplitReader) -> None:
        self._reader = reader
        self.entries: list[ManifestEntry] = []
        self._by_split: dict[int, list[ManifestEntry]] = {}
        self.merged_files = self.all = self.read = self.size_bytes = self.unknown = 0
        self._looked = 0

    def of(self, split: Split) -> list[ManifestEntry]:
        """The files of a split that are opened."""
        return self._by_split[id(split)]

    def look_at(self, split: Split) -> None:
        """Goes through the files of a split."""
        mine = self._by_split[id(split)] = []
        uses_indexes = self._reader.context.options[FILE_INDEX_READ_ENABLED]
        for section in split.sections:
            is_merged = self._reader.context.has_key and needs_merge(section)
            for file in section.files:
                if uses_indexes and not is_merged and self._reader.is_excluded(split, file):
                    continue
                mine.append(ManifestEntry(EntryKind.ADD, split.partition, split.bucket, 0, file))
                self.merged_files += is_merged
                stretches = None
                if self._looked < _MOST_FOOTERS:
                    self._looked += 1
                    stretches = self._reader.stretches(split, section, file)
                self._count(file, stretches)
        self.entries += mine

    def _count(self, file: DataFile, stretches: Stretches | None) -> None:
        if stretches is None:
            self.unknown += 1
            self.size_bytes += file.size_bytes
            return
        self.all += stretches.all
        self.read += stretches.read
        self.size_bytes += stretches.size_bytes


__all__ = ["ScanExplained", "ScanStep", "explain_scan"]
