"""The default engine: the newest row of a key is the key's row, kind included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.merge.base import ChoosingEngine, Groups, Indices
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.options import IGNORE_DELETE
from lakebed.types import key_value
from lakebed.types.row_kind import is_retract


class Deduplicate(ChoosingEngine):
    """Last row wins; a newest retract hides the key, unless retracts are ignored."""

    name = "deduplicate"

    def chooses_newest(self, rows: pa.RecordBatch) -> bool:
        """Only a retract that is ignored gives way to an older row."""
        return not self.setup.options[IGNORE_DELETE] or not np.any(is_retract(key_value.kinds(rows)))

    def choose(self, rows: pa.RecordBatch, groups: Groups) -> Indices:
        """The newest row of every group."""
        chosen = groups.last
        if self.setup.options[IGNORE_DELETE]:
            retracts = is_retract(key_value.kinds(rows))[groups.order]
            if np.any(retracts):
                segments = Segments(groups.order, groups.starts, groups.ends, retracts)
                last_add = segments.last(~retracts)
                chosen = np.where(last_add == NO_ROW, chosen, groups.order[last_add])
        return chosen

    def rule(self, column: str) -> str:
        """See `MergeEngine.rule`."""
        return "newest version"

    def note_passed_over(self, trace: Trace, rows: pa.RecordBatch, groups: Groups) -> None:
        """See `ChoosingEngine.note_passed_over`."""
        if self.setup.options[IGNORE_DELETE]:
            trace.note(groups.order[is_retract(key_value.kinds(rows))[groups.order]], Role.IGNORED)
