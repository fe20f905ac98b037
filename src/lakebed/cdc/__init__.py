"""Whole databases into the lake: sources of changes, their way through Spark, and the tables that follow them.

`lakebed.cdc.sync(...)` starts a sync. It is loaded when first asked for: single parts need no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakebed.errors import MissingDependency

if TYPE_CHECKING:
    from lakebed.cdc.progress import SyncProgress, TableProgress
    from lakebed.cdc.start import SyncRun, sync

_WHERE = {
    "SyncProgress": "lakebed.cdc.progress",
    "SyncRun": "lakebed.cdc.start",
    "TableProgress": "lakebed.cdc.progress",
    "sync": "lakebed.cdc.start",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ImportError as error:
        raise MissingDependency(
            f"{error.name or 'a package'} is not installed, and a sync needs it",
            hint='install it with: pip install "lakebed[cdc]"',
        ) from error


__all__ = ["SyncProgress", "SyncRun", "TableProgress", "sync"]
