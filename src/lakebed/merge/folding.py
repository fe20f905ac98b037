"""Common ground of the engines that combine rows instead of choosing one.

A key with a single row is passed on untouched, kind included: only keys with several rows are folded. Of these, most
columns hold what the newest row says; the others are folded and put beside the untouched values, to be taken in one go.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.base import Groups, MergeEngine, value_columns
from lakebed.merge.segments import Mask, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.records import dataclass
from lakebed.types import key_value
from lakebed.types.key_value import VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract


@dataclass(frozen=True, slots=True)
class Folded:
    """One row per segment: its columns, and whether it stands for a key that is not there.

    Such a row also removes older rows that it meets later, unless `removes` says that it only takes back what it names.
    """

    columns: Mapping[str, pa.Array]
    is_removed: Mask
    removes: Mask | None = None

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        """The kind of each row."""
        gone = RowKind.DELETE if self.removes is None else np.where(self.removes, RowKind.DELETE, RowKind.UPDATE_BEFORE)
        return np.where(self.is_removed, gone, RowKind.INSERT).astype(np.int8)


class FoldingEngine(MergeEngine):
    """Folds keys of several rows with `fold`."""

    folds_single_rows = False
    """Set where a lone row must go through the function too: in compactions that look up older rows."""

    sees_everything = False
    """Set where nothing older of a key can exist: in reads, and in compactions that leave nothing behind."""

    @property
    def passes_lone_rows(self) -> bool:
        """See `MergeEngine.passes_lone_rows`."""
        return not self.folds_single_rows

    @cached_property
    def newest_columns(self) -> frozenset[str]:
        """Columns that hold the newest row's value, as long as no row is a retract and none of the values is null."""
        return frozenset()

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """See `MergeEngine.merge`."""
        newest = groups.last
        several = np.ones(len(groups), dtype=np.bool_) if self.folds_single_rows else groups.ends - groups.starts > 1
        if not np.any(several):
            return rows.take(pa.array(newest))
        segments = segments_of(rows, groups if np.all(several) else groups.only_several())
        folded = self.fold_needed(rows, segments)
        sources = newest.copy()
        sources[several] = rows.num_rows + np.arange(len(segments))
        columns = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if name == VALUE_KIND:
                kinds = key_value.kinds(rows)[newest]
                kinds[several] = folded.kinds
                columns.append(pa.array(kinds))
            elif name in folded.columns:
                columns.append(pa.concat_arrays([column, folded.columns[name]]).take(pa.array(sources)))
            else:
                columns.append(column.take(pa.array(newest)))
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

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
    def fold(self, rows: pa.RecordBatch, segments: Segments, trace: Trace | None = None) -> Folded:
        """One row for each segment; system columns and keys are not asked for. Folds the columns that `rows` has.

        A `trace` is told which part each row plays.
        """

    def trace(self, rows: pa.RecordBatch, groups: Groups) -> Trace:
        """See `MergeEngine.trace`."""
        trace = Trace(rows.num_rows, value_columns(rows, self.setup.key))
        is_lone = groups.ends - groups.starts == 1
        if self.folds_single_rows:
            is_lone[:] = False
        lone = groups.last[is_lone]
        is_gone = is_retract(key_value.kinds(rows)[lone])
        trace.note(lone[~is_gone], Role.VALUE)
        trace.note(lone[is_gone], Role.REMOVES)
        if not np.all(is_lone):
            self.fold(rows, segments_of(rows, groups.only_several() if np.any(is_lone) else groups), trace)
        return trace


def folding_lone_rows(engine: MergeEngine) -> MergeEngine:
    """The same engine for compactions that look up older rows: all of a key is there, and lone rows are folded too."""
    if not isinstance(engine, FoldingEngine):
        return engine  # what chooses among rows has no choice with one
    same = type(engine)(engine.setup)
    same.folds_single_rows = True
    same.sees_everything = True
    return same


def seeing_everything(engine: MergeEngine) -> MergeEngine:
    """The same engine for merges that see all there is of a key."""
    if not isinstance(engine, FoldingEngine) or engine.sees_everything:
        return engine
    same = type(engine)(engine.setup)
    same.sees_everything = True
    return same


def segments_of(rows: pa.RecordBatch, groups: Groups) -> Segments:
    """The rows of all groups."""
    return Segments(groups.order, groups.starts, groups.ends, is_retract(key_value.kinds(rows)[groups.order]))
