"""The way of a row to its bucket: one file, and one line here, for each bucket mode."""

from __future__ import annotations

from lakebed.definition.bucket_mode import BucketMode
from lakebed.definition.context import TableContext
from lakebed.write.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.write.placement.crossing import Crossing
from lakebed.write.placement.dynamic import Dynamic
from lakebed.write.placement.fixed import Fixed, Unaware
from lakebed.write.placement.postponed import Postponed

PLACEMENTS: dict[BucketMode, type[Placement]] = {
    placement.mode: placement for placement in (Fixed, Unaware, Dynamic, Crossing, Postponed)
}


def placement_of(context: TableContext) -> type[Placement]:
    """That of a table."""
    return PLACEMENTS[context.bucket_mode]


__all__ = ["PLACEMENTS", "PlacedRows", "Placement", "PlacementSetup", "placement_of"]
