"""Common ground of the engines that combine rows instead of choosing one.

A key with a single row is passed on untouched, kind included: only keys with several rows are folded. Of these, most
columns hold what the newest row says; the others are folded and put beside the untouched values, to be taken in one go.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakebed.merge.base import Groups, MergeEngine
from lakebed.merge.segments import Mask, Segments
from lakebed.types import key_value
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract


@dataclass(frozen=True, slots=True)
class Folded:
    """One row per segment: its columns, and whether it stands for a removed key."""

    columns: Mapping[str, pa.Array]
    is_removed: Mask


class FoldingEngine(MergeEngine):
    """Folds keys of several rows with `fold`."""

    folds_single_rows = False
    """Set where a lone row must go through the function too: in compactions that look up older rows."""

    @cached_property
    def newest_columns(self) -> frozenset[str]:
        """Columns that hold the newest row's value, as long as no row is a retract and none of the values is null."""
        return frozenset()

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """See `MergeEngine.merge`."""
        several = self.folded_groups(groups)
        newest = groups.last
        if not np.any(several):
            return rows.take(pa.array(newest))
        segments = segments_of(rows, groups, several)
        folded = self.fold_needed(rows, segments)
        sources = newest.copy()
        sources[several] = rows.num_rows + np.arange(len(segments))
        columns = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if name == VALUE_KIND:
                kinds = key_value.kinds(rows)[newest]
                kinds[several] = np.where(folded.is_removed, RowKind.DELETE, RowKind.INSERT)
                columns.append(pa.array(kinds))
            elif name in folded.columns:
                columns.append(pa.concat_arrays([column, folded.columns[name]]).take(pa.array(sources)))
            else:
                columns.append(column.take(pa.array(newest)))
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def folded_groups(self, groups: Groups) -> Mask:
        """Which groups go through `fold`."""
        return np.ones(len(groups), dtype=np.bool_) if self.folds_single_rows else groups.ends - groups.starts > 1

    def fold_needed(self, rows: pa.RecordBatch, segments: Segments) -> Folded:
        """As `fold`, without the columns in which the newest row has the answer."""
        if segments.has_retracts:
            return self.fold(rows, segments)
        names = self.names_to_fold([rows])
        if not names:
            return Folded({}, np.zeros(len(segments), dtype=np.bool_))
        return self.fold(rows.select([VALUE_KIND, *names]), segments)

    def names_to_fold(self, parts: Sequence[pa.RecordBatch]) -> list[str]:
        """Columns in which the newest row may not have the answer, although no row is a retract."""
        return [
            name
            for name in value_columns(parts[0], self.setup.key)
            if name not in self.newest_columns or any(part.column(name).null_count for part in parts)
        ]

    @abstractmethod
    def fold(self, rows: pa.RecordBatch, segments: Segments) -> Folded:
        """One row for each segment; system columns and keys are not asked for. Folds the columns that `rows` has."""


def folding_lone_rows(engine: MergeEngine) -> MergeEngine:
    """The same engine for compactions in which a key's only row goes through the function too."""
    if not isinstance(engine, FoldingEngine):
        return engine  # what chooses among rows has no choice with one
    same = type(engine)(engine.setup)
    same.folds_single_rows = True
    return same


def segments_of(rows: pa.RecordBatch, groups: Groups, several: Mask) -> Segments:
    """The rows of some of the groups."""
    sizes = groups.ends - groups.starts
    order = groups.order[np.repeat(several, sizes)]
    ends = np.cumsum(sizes[several])
    return Segments(order, ends - sizes[several], ends, is_retract(key_value.kinds(rows)[order]))


def value_columns(rows: pa.RecordBatch, key: tuple[str, ...]) -> list[str]:
    """Names of the columns that an engine folds."""
    return [name for name in rows.schema.names if name not in (SEQUENCE_NUMBER, VALUE_KIND) and name not in key]
