"""Column statistics of a file while it is being written: nulls, least and greatest value.

They end up in manifests and decide which files a query may skip, so a bound that is too narrow loses rows. Hence:
a float column with a NaN has no bounds (NaN sorts differently everywhere), zeros widen to -0.0 and +0.0, and nested
columns count nulls only. Shortening for metadata is the business of whoever stores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.formats.base import ColumnStats, FileStats
from lakebed.records import dataclass
from lakebed.types.logical import DataField, is_nested


@dataclass(slots=True)
class _Column:
    bounded: bool
    null_count: int = 0
    low: pa.Scalar | None = None
    high: pa.Scalar | None = None

    def widen(self, low: pa.Scalar, high: pa.Scalar) -> None:
        if self.low is None or pc.less(low, self.low).as_py():
            self.low = low
        if self.high is None or pc.greater(high, self.high).as_py():
            self.high = high

    def finished(self) -> ColumnStats:
        if not self.bounded or self.low is None or self.high is None:
            return ColumnStats(None, None, self.null_count)
        low, high = self.low, self.high
        if pa.types.is_floating(low.type):
            low = pa.scalar(-0.0, low.type) if low.as_py() == 0 else low
            high = pa.scalar(0.0, high.type) if high.as_py() == 0 else high
        return ColumnStats(low, high, self.null_count)


class StatsCollector:
    """Gathers the statistics of the wanted columns of one file."""

    def __init__(self, fields: Sequence[DataField], wanted: frozenset[str] | None) -> None:
        self._row_count = 0
        self._columns = {
            field.name: _Column(bounded=not is_nested(field.type))
            for field in fields
            if wanted is None or field.name in wanted
        }

    def add(self, table: pa.Table, *, bounds_later: AbstractSet[str] = frozenset()) -> None:
        """Takes rows into account. The caller gives the bounds of the columns `bounds_later` by `widen` itself."""
        self._row_count += table.num_rows
        for name, column in self._columns.items():
            values = table.column(name)
            column.null_count += values.null_count
            if not column.bounded or values.null_count == len(values):
                continue
            if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
                column.bounded = False
            elif name not in bounds_later:
                both = pc.min_max(values)
                column.widen(both["min"], both["max"])

    def bounded(self) -> list[str]:
        """The wanted columns that have bounds so far as is known."""
        return [name for name, column in self._columns.items() if column.bounded]

    def widen(self, name: str, low: pa.Scalar, high: pa.Scalar) -> None:
        """Makes the bounds of a column include these two."""
        self._columns[name].widen(low, high)

    def give_up(self, name: str) -> None:
        """Leaves a column without bounds: somebody could not tell them."""
        self._columns[name].bounded = False

    def result(self) -> FileStats:
        """The statistics of everything added."""
        return FileStats(self._row_count, {name: column.finished() for name, column in self._columns.items()})
