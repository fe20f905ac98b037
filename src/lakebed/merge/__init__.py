"""What a primary-key table means: one module per merge engine, registered here by the name users write."""

from __future__ import annotations

from lakebed.merge.base import Groups, MergeEngine
from lakebed.registry import Registry

MERGE_ENGINES: Registry[type[MergeEngine]] = Registry(
    "lakebed.merge",
    {
        "deduplicate": "deduplicate.Deduplicate",
        "partial-update": "partial_update.PartialUpdate",
        "aggregation": "aggregation.Aggregation",
        "first-row": "first_row.FirstRow",
    },
)

__all__ = ["MERGE_ENGINES", "Groups", "MergeEngine"]
