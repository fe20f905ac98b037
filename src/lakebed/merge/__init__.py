"""What a primary-key table means: one module per merge engine, registered here by the name users write."""

from __future__ import annotations

from lakebed.merge.base import Groups, MergeEngine
from lakebed.merge.deduplicate import Deduplicate

MERGE_ENGINES: dict[str, type[MergeEngine]] = {"deduplicate": Deduplicate}

__all__ = ["MERGE_ENGINES", "Groups", "MergeEngine"]
