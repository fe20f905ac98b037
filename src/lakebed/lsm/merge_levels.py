"""Streaming merge of runs whose rows above level 0 are complete: of several levels that hold a key the lowest counts.

This is how tables are read whose compactions look up old rows, if their engine combines rows: it would count what two
levels share twice. Engines that choose one row need not care.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.lsm.merge_runs import windows
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.merge.levels import counting, levels_of, without_level


def merge_levels(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine
) -> Iterator[pa.RecordBatch]:
    """Merged rows in key order, one per key. REQUIRES: as `merge_runs`, and rows come with their levels."""
    for parts in windows(runs, order):
        window = pa.concat_batches(parts)
        rows = without_level(window)
        yield engine.merge(rows, counting(levels_of(window), order.group(rows)))


__all__ = ["merge_levels"]
