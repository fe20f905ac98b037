"""When a handle last looked at what it looks at now and then, such as the age of snapshots."""

from __future__ import annotations

from dataclasses import field

from lakebed.definition.context import TableContext
from lakebed.definition.memory import Slot
from lakebed.records import dataclass


@dataclass(slots=True)
class Checks:
    """Of one handle."""

    done_ms: dict[str, int] = field(default_factory=dict)
    """By what was looked at."""
    second_snapshot_ms: int | None = None
    """When the second-oldest snapshot was committed: the oldest stays until that is long ago."""


CHECKS: Slot[Checks] = Slot("checks")


def checks_of(context: TableContext) -> Checks:
    """Those of this handle."""
    found = context.memory[CHECKS]
    if found is None:
        found = context.memory[CHECKS] = Checks()
    return found


__all__ = ["CHECKS", "Checks", "checks_of"]
