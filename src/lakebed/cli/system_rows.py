"""Prints a system table, whole or at an earlier state: what `snapshots`, `files` and `tag list` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakebed.cli.command import Parser, names
from lakebed.cli.output import Output, Show

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.table.table import Table


def add_columns(parser: Parser) -> None:
    """The arguments that choose columns."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--columns", type=names, metavar="A,B,…", help="print these columns only")
    group.add_argument("--wide", action="store_true", help="print all columns in a table too")


def print_system_table(
    given: argparse.Namespace, out: Output, table: Table, shown: Mapping[str, str], shows: Mapping[str, Show]
) -> None:
    """Prints it with the columns that were asked for; otherwise a table has those of `shown`."""
    found = table.to_arrow(given.columns)
    print_arrow(out, found, None if given.columns or given.wide else shown, shows)


def print_arrow(
    out: Output, found: pa.Table, shown: Mapping[str, str] | None, shows: Mapping[str, Show], null: str = ""
) -> None:
    """Prints an Arrow table."""
    columns = [found.column(n).to_pylist() for n in range(found.num_columns)]
    out.rows(found.column_names, zip(*columns, strict=True), shown=shown, shows=shows, null=null)


TABLE_ROWS = 1000
"""More rows than these nobody reads in a table."""


def print_limited(out: Output, found: pa.Table, limit: int | None) -> None:
    """Prints rows of a table, which may be many: a table shows the first thousand unless told otherwise."""
    most = TABLE_ROWS if limit is None and out.form == "table" else limit
    print_arrow(out, found if most is None else found.slice(0, most), None, {}, null="null")
    if most is not None and limit is None and found.num_rows > most:
        print(f"{most} of {found.num_rows} rows; --limit N prints more", file=sys.stderr)  # noqa: T201


__all__ = ["add_columns", "print_arrow", "print_limited", "print_system_table"]
