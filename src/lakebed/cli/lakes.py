"""Opens the lake and the tables that a command names."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import lakebed
from lakebed.cli.sessions import storage_of
from lakebed.errors import NotFound

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.spark.session import Session
    from lakebed.table.table import Table


def check_warehouse(path: str) -> None:
    """Raises when a local directory is not there: reading from a mistyped path would look like an empty lake."""
    if "://" not in path and not path.startswith("file:") and not os.path.isdir(os.path.expanduser(path)):
        raise NotFound(
            f"there is no lake at {path}: no such directory",
            hint="say where it is with --warehouse PATH, or set LAKEBED_WAREHOUSE",
        )


def open_lake(given: argparse.Namespace, spark: Session | None = None) -> Lake:
    """The lake of --warehouse, which must be there."""
    check_warehouse(given.warehouse)
    return connected(given, spark)


def connected(given: argparse.Namespace, spark: Session | None = None) -> Lake:
    """The lake of --warehouse, which need not be there yet."""
    return lakebed.connect(given.warehouse, spark=spark, options=storage_of(given))


def open_table(given: argparse.Namespace) -> Table:
    """The table that the command names."""
    return open_lake(given).table(given.table)


__all__ = ["check_warehouse", "connected", "open_lake", "open_table"]
