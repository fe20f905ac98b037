"""The default engine: the newest row of a key is the key's row, kind included."""

from __future__ import annotations

import pyarrow as pa

from lakebed.merge.base import Groups, MergeEngine


class Deduplicate(MergeEngine):
    """Last row wins; a newest retract hides the key."""

    name = "deduplicate"

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """The newest row of every group."""
        return rows.take(pa.array(groups.last))
