"""Plans a read: from a snapshot to the files that may hold matching rows.

Four sieves, each sound by itself: partition values (of whole manifests, then of files), the bucket that a key hashes
to, key statistics, and column statistics where no other file can hold a newer version of a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.fixed import assign_buckets
from lakebed.datafiles.index.probe import excludes
from lakebed.datafiles.read_file import unchanged_field
from lakebed.definition.arguments import filter_argument
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.definition.shown_defaults import stored_part
from lakebed.errors import InvalidArgument
from lakebed.metadata.data_file import DataFile, SimpleStats
from lakebed.metadata.deletion_vector import Vectors
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import Snapshot
from lakebed.metrics.families import SCAN_FILE_SIZE, SCAN_FILES, SCAN_PLAN_DURATION
from lakebed.metrics.instruments import is_heard
from lakebed.options import (
    BUCKET_FUNCTION_TYPE,
    DATA_EVOLUTION_ENABLED,
    FILE_INDEX_READ_ENABLED,
    SOURCE_SPLIT_OPEN_FILE_COST,
    SOURCE_SPLIT_TARGET_SIZE,
)
from lakebed.read.column_stats import decoded_stats, stats_in_files
from lakebed.read.splits import (
    BucketFiles,
    Split,
    SplitRules,
    append_splits,
    keyed_splits,
    needs_merge,
    packed_splits,
    stitched_sections,
)
from lakebed.records import dataclass
from lakebed.schema.evolution import Evolution, map_fields
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import decode_rows
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.predicate_stats import StatsColumns, may_match

Mask = npt.NDArray[np.bool_]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Splits to read, and the snapshot they belong to (none: an empty table)."""

    snapshot: Snapshot | None
    splits: tuple[Split, ...]

    @property
    def files(self) -> list[DataFile]:
        """All files of the plan."""
        return [file for split in self.splits for file in split.files]


def plan_scan(context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None = None) -> ScanPlan:
    """Files of the snapshot that may hold rows matching the predicate, cut into splits."""
    with SCAN_PLAN_DURATION.timed(context.name):
        sieve = FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))
        entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
        lowest = context.lowest_visible_level
        entries = [entry for entry in entries if entry.file.level >= lowest]
        vectors = vectors_at(context, snapshot)
        plan = ScanPlan(snapshot, tuple(splits_of(context, sieve.keep_live(entries), sieve, vectors)))
    if is_heard():
        files = plan.files
        SCAN_FILES.tell(len(files), context.name)
        SCAN_FILE_SIZE.tell(sum(file.size_bytes for file in files), context.name)
    return plan


def splits_of(
    context: TableContext, entries: Sequence[ManifestEntry], sieve: FileSieve, vectors: Vectors
) -> list[Split]:
    """Live entries as splits, bucket by bucket in partition order, without the rows that the vectors mark."""
    rules = SplitRules(context.options[SOURCE_SPLIT_TARGET_SIZE], context.options[SOURCE_SPLIT_OPEN_FILE_COST])
    buckets: dict[tuple[bytes, int, int], list[DataFile]] = defaultdict(list)
    for entry in entries:
        buckets[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
    splits: list[Split] = []
    for (partition, bucket, total), files in sorted(buckets.items()):
        group = BucketFiles(partition, bucket, total, tuple(files))
        is_merged = context.has_key and not (context.has_keys_once and all(file.level > 0 for file in files))
        if context.options[DATA_EVOLUTION_ENABLED]:
            made = packed_splits(group, stitched_sections(files, context.name), rules)
        else:
            made = keyed_splits(group, context.key_types, rules) if is_merged else append_splits(group, rules)
        splits += sieve.keep_splits([split.masked_by(vectors) for split in made])
    return splits


class FileSieve:
    """Drops manifests, entries and sections that can not hold a matching row."""

    def __init__(self, context: TableContext, predicate: Predicate | None) -> None:
        self._context = context
        self._predicate = predicate
        self._partition_part = self._part(context.schema.partition_keys)
        self._key_part = self._part(context.schema.trimmed_primary_key) if context.has_key else None
        self._bucket_keys = self._fixed_bucket_keys()
        self._buckets: dict[int, frozenset[int]] = {}

    def keep_metas(self, metas: list[ManifestMeta]) -> list[ManifestMeta]:
        """Manifests whose partition range may match."""
        if self._partition_part is None or not metas:
            return metas
        stats = decoded_stats([meta.partition_stats for meta in metas], self._context.partition_fields)
        counts = np.full(len(metas), np.iinfo(np.int64).max, dtype=np.int64)
        return _filtered(metas, may_match(self._partition_part, stats, counts))

    def keep_entries(self, entries: list[ManifestEntry]) -> list[ManifestEntry]:
        """Entries that may match by partition and bucket. A file's addition and deletion are kept or dropped alike.

        Postponed rows (bucket -2) wait for a compaction to give them a bucket; until then nobody sees them.
        """
        entries = self.keep_partitions([entry for entry in entries if entry.bucket >= 0])
        if self._bucket_keys is not None:
            entries = [entry for entry in entries if self._is_possible_bucket(entry)]
        return entries

    def keep_live(self, entries: list[ManifestEntry]) -> list[ManifestEntry]:
        """Live entries that may match by their statistics. Only for live ones: a deletion may carry none."""
        if self._key_part is not None and entries:
            stats = decoded_stats([entry.file.key_stats for entry in entries], self._context.key_fields)
            entries = _filtered(entries, may_match(self._key_part, stats, _row_counts(entries)))
        # Where columns of a row lie in several files, what one of them holds says nothing of the others.
        is_spread = self._context.options[DATA_EVOLUTION_ENABLED]
        if self._predicate is not None and not self._context.has_key and not is_spread:
            kept = self.may_hold_matches([entry.file for entry in entries])
            entries = _filtered(entries, kept)
        return entries

    def keep_splits(self, splits: Sequence[Split]) -> list[Split]:
        """Splits without the sections whose only file can not match."""
        if self._predicate is None or not self._context.has_key:
            return list(splits)
        alone = [
            section.files[0]
            for split in splits
            for section in split.sections
            if not needs_merge(section) and len(section.files) == 1
        ]
        dropped = {file.file_name for file, keep in zip(alone, self.may_hold_matches(alone), strict=True) if not keep}
        kept: list[Split] = []
        for split in splits:
            sections = tuple(
                section
                for section in split.sections
                if needs_merge(section) or len(section.files) > 1 or section.files[0].file_name not in dropped
            )
            if sections:
                kept.append(split.with_sections(sections))
        return kept

    def may_hold_matches(self, files: Sequence[DataFile]) -> Mask:
        """Which files may hold a matching row by their column statistics, each read under its own schema."""
        assert self._predicate is not None
        mask = np.ones(len(files), dtype=np.bool_)
        groups: dict[tuple[int, tuple[str, ...] | None], list[int]] = defaultdict(list)
        for i, file in enumerate(files):
            groups[file.schema_id, file.value_stats_cols].append(i)
        for (schema_id, columns), members in groups.items():
            stats = self._value_stats(schema_id, columns, [files[i].value_stats for i in members])
            counts = np.array([files[i].row_count for i in members], dtype=np.int64)
            mask[members] = may_match(self._predicate, stats, counts)
        if self._context.options[FILE_INDEX_READ_ENABLED]:
            for i in np.flatnonzero(mask).tolist():
                mask[i] = not self._is_excluded_by_index(files[i])
        return mask

    def _is_excluded_by_index(self, file: DataFile) -> bool:
        """By an index that stands in the manifest. Those in files are asked when the data file is to be read."""
        if file.embedded_index is None:
            return False
        assert self._predicate is not None
        evolution = self._evolution(file.schema_id)
        return excludes(
            file.embedded_index, file.file_name, self._predicate, lambda name: unchanged_field(evolution, name)
        )

    def _part(self, columns: Sequence[str]) -> Predicate | None:
        if self._predicate is None or not columns:
            return None
        return predicates.project_onto(self._predicate, frozenset(columns))

    def keep_partitions(self, entries: list[ManifestEntry]) -> list[ManifestEntry]:
        """Entries whose partition may match."""
        if self._partition_part is None or not entries:
            return entries
        distinct = list({entry.partition for entry in entries})
        columns = decode_rows(distinct, self._context.partition_types)
        names = [field.name for field in self._context.partition_fields]
        mask = evaluate(self._partition_part, pa.RecordBatch.from_arrays(columns, names=names))
        kept = {partition for partition, keep in zip(distinct, mask.to_pylist(), strict=True) if keep}
        return [entry for entry in entries if entry.partition in kept]

    def _fixed_bucket_keys(self) -> list[pa.Array] | None:
        """All combinations of bucket-key values the predicate allows, as columns; None when they are not fixed."""
        names = self._context.schema.bucket_keys
        if self._predicate is None or not names:
            return None
        fixed = predicates.equalities(self._predicate)
        if not set(names) <= set(fixed):
            return None
        sizes = [len(fixed[name]) for name in names]
        if int(np.prod(sizes)) > 10_000:
            return None
        grids = np.meshgrid(*[np.arange(size) for size in sizes], indexing="ij")
        types = [to_arrow_type(self._context.schema.field(name).type) for name in names]
        return [
            fixed[name].cast(arrow).take(pa.array(grid.ravel()))
            for name, arrow, grid in zip(names, types, grids, strict=True)
        ]

    def _is_possible_bucket(self, entry: ManifestEntry) -> bool:
        """Uses the entry's own bucket count: partitions may have been written with different ones."""
        if entry.total_buckets <= 0:
            return True
        possible = self._buckets.get(entry.total_buckets)
        if possible is None:
            assert self._bucket_keys is not None
            types = [field.type for field in self._context.schema.fields_of(self._context.schema.bucket_keys)]
            function = self._context.options[BUCKET_FUNCTION_TYPE]
            numbers = assign_buckets(self._bucket_keys, types, entry.total_buckets, function)
            possible = frozenset(numbers.tolist())
            self._buckets[entry.total_buckets] = possible
        return entry.bucket in possible

    def _evolution(self, schema_id: int) -> Evolution:
        """From the columns that the predicate looks at to those of files of a schema."""
        assert self._predicate is not None
        columns = predicates.columns(self._predicate) - frozenset(self._context.schema.partition_keys)
        wanted = [field for field in self._context.schema.fields if field.name in columns]
        return map_fields(wanted, self._context.schemas.get(schema_id))

    def _value_stats(
        self, schema_id: int, columns: tuple[str, ...] | None, stats: Sequence[SimpleStats]
    ) -> StatsColumns:
        """Statistics of current columns in files of one schema."""
        return stats_in_files(self._context, self._evolution(schema_id), schema_id, columns, stats)


def _row_counts(entries: Sequence[ManifestEntry]) -> npt.NDArray[np.int64]:
    return np.array([entry.file.row_count for entry in entries], dtype=np.int64)


def _filtered(items: list[_Item], mask: Mask) -> list[_Item]:
    return [item for item, keep in zip(items, mask.tolist(), strict=True) if keep]


def partition_filter(context: TableContext, where: Any) -> Predicate | None:
    """The filter of a call that is about whole partitions; raises if it names other columns."""
    predicate = filter_argument(where, context.schema.arrow_schema)
    others = predicates.columns(predicate) - set(context.schema.partition_keys) if predicate else frozenset()
    if others:
        raise InvalidArgument(
            f"where names `{min(others)}`, which is not a partition column of table `{context.name}`",
            hint=f"choose whole partitions by {', '.join(context.schema.partition_keys) or 'nothing'}",
        )
    return predicate
