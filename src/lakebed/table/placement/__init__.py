"""The way of a row to its bucket: one file, and one line here, for each bucket mode."""

from __future__ import annotations

from lakebed.table.bucket_modes import BucketMode
from lakebed.table.context import TableContext
from lakebed.table.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.table.placement.crossing import Crossing
from lakebed.table.placement.dynamic import Dynamic
from lakebed.table.placement.fixed import Fixed, Unaware
from lakebed.table.placement.waiting import Postponed

PLACEMENTS: dict[BucketMode, type[Placement]] = {
    placement.mode: placement for placement in (Fixed, Unaware, Dynamic, Crossing, Postponed)
}


def placement_of(context: TableContext) -> type[Placement]:
    """That of a table."""
    return PLACEMENTS[context.bucket_mode]


__all__ = ["PLACEMENTS", "PlacedRows", "Placement", "PlacementSetup", "placement_of"]
