"""What a primary-key table means: one module per merge engine, registered here by the name users write."""

from __future__ import annotations

from lakebed.merge.aggregation import Aggregation
from lakebed.merge.base import Groups, MergeEngine
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.first_row import FirstRow
from lakebed.merge.partial_update import PartialUpdate

MERGE_ENGINES: dict[str, type[MergeEngine]] = {
    engine.name: engine for engine in (Deduplicate, PartialUpdate, Aggregation, FirstRow)
}

__all__ = ["MERGE_ENGINES", "Groups", "MergeEngine"]
