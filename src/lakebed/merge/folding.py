"""Common ground of the engines that combine rows instead of choosing one.

A key with a single row is passed on untouched, kind included: only keys with several rows are folded. Those are few in
most merges, so the folded rows are put beside the untouched ones and everything is taken in one go.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.base import Groups, MergeEngine
from lakebed.merge.segments import Segments
from lakebed.types import key_value
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract


@dataclass(frozen=True, slots=True)
class Folded:
    """One row per segment: its columns, and whether it stands for a removed key."""

    columns: Mapping[str, pa.Array]
    is_removed: npt.NDArray[np.bool_]


class FoldingEngine(MergeEngine):
    """Folds keys of several rows with `fold`."""

    folds_single_rows = False
    """Set where a lone row must go through the function too: in compactions that look up older rows."""

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """See `MergeEngine.merge`."""
        sizes = groups.ends - groups.starts
        several = np.ones(len(groups), dtype=np.bool_) if self.folds_single_rows else sizes > 1
        if not np.any(several):
            return rows.take(pa.array(groups.last))
        segments = _segments(rows, groups, sizes, several)
        folded = self.fold(rows, segments)
        combined = self._as_rows(rows, segments, folded)
        if np.all(several):
            return combined
        sources = np.empty(len(groups), dtype=np.int64)
        sources[~several] = groups.last[~several]
        sources[several] = rows.num_rows + np.arange(len(segments))
        indices = pa.array(sources)
        columns = [
            pa.concat_arrays([before, after]).take(indices)
            for before, after in zip(rows.columns, combined.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    @abstractmethod
    def fold(self, rows: pa.RecordBatch, segments: Segments) -> Folded:
        """One row for each segment. System columns are not asked for."""

    def _as_rows(self, rows: pa.RecordBatch, segments: Segments, folded: Folded) -> pa.RecordBatch:
        newest = pa.array(segments.order[segments.ends - 1])
        kinds = np.where(folded.is_removed, RowKind.DELETE, RowKind.INSERT).astype(np.int8)
        columns = []
        for name in rows.schema.names:
            if name == VALUE_KIND:
                columns.append(pa.array(kinds))
            elif name == SEQUENCE_NUMBER or name in self.setup.key:
                columns.append(rows.column(name).take(newest))
            else:
                columns.append(folded.columns[name])
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _segments(
    rows: pa.RecordBatch, groups: Groups, sizes: npt.NDArray[np.int64], several: npt.NDArray[np.bool_]
) -> Segments:
    order = groups.order[np.repeat(several, sizes)]
    ends = np.cumsum(sizes[several])
    return Segments(order, ends - sizes[several], ends, is_retract(key_value.kinds(rows)[order]))


def value_columns(rows: pa.RecordBatch, key: tuple[str, ...]) -> list[str]:
    """Names of the columns that an engine folds."""
    return [name for name in rows.schema.names if name not in (SEQUENCE_NUMBER, VALUE_KIND) and name not in key]
