"""The engine that keeps the first row of a key and ignores all later ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.merge.folding import Folded, FoldingEngine, value_columns
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.options import IGNORE_DELETE


class FirstRow(FoldingEngine):
    """Oldest row wins; retracts are errors, or ignored."""

    name = "first-row"

    def fold(self, rows: pa.RecordBatch, segments: Segments) -> Folded:
        """The oldest row of every segment that is no retract."""
        if segments.has_retracts and not self.setup.options[IGNORE_DELETE]:
            raise InvalidData(
                "a first-row table got a -U or -D row for a key that it holds",
                hint="send inserts only, or set `ignore-delete` to true to drop such rows",
            )
        first = segments.first(~segments.retracts)
        chosen = np.where(first == NO_ROW, segments.starts, first)
        names = value_columns(rows, self.setup.key)
        return Folded({name: segments.pick(rows.column(name), chosen) for name in names}, first == NO_ROW)
