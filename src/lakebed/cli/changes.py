"""`lakebed diff` and `lakebed tail`: what changed, and what is changing."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.cells import text, to_json
from lakebed.cli.command import OK, Command, Parser, names, whole_number
from lakebed.cli.lakes import open_table
from lakebed.cli.output import Output, aligned
from lakebed.cli.system_rows import print_limited
from lakebed.definition.scan_mode import FROM_SNAPSHOT, LATEST, LATEST_FULL
from lakebed.options import CONTINUOUS_DISCOVERY_INTERVAL, SCAN_MODE, SCAN_SNAPSHOT_ID

if TYPE_CHECKING:
    from lakebed.changes.follow import ChangeStream
    from lakebed.table.table import Table

# --- diff ------------------------------------------------------------------------------------------------------------


def _diff_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    parser.add_argument("before", help="a snapshot's number, a tag, or a time such as 2024-05-14; 0 is the empty table")
    parser.add_argument("after", nargs="?", help="the same; default: the latest snapshot")
    parser.add_argument("--columns", type=names, metavar="A,B,…", help="print these columns only")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="print at most N rows")


def _diff(given: argparse.Namespace, out: Output) -> int:
    table = open_table(given)
    after = None if given.after is None else _state(table, given.after)
    found = table.diff(_state(table, given.before), after, given.columns)
    print_limited(out, found, given.limit)
    return OK


def _state(table: Table, given: str) -> int | str | dt.datetime:
    """What is meant by the word: a number is a snapshot, and a time is one unless a tag is called so."""
    if given.isdigit():
        return int(given)
    try:
        moment = dt.datetime.fromisoformat(given)
    except ValueError:
        return given
    return given if given in table.tags() else moment


DIFF = Command(_diff_arguments, _diff)

# --- tail ------------------------------------------------------------------------------------------------------------


def _tail_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-start", action="store_true", help="print the whole table first, as inserts")
    start.add_argument("--since", type=whole_number, metavar="N", help="begin with what came after snapshot N")
    parser.add_argument("--once", action="store_true", help="end when everything so far is printed")
    parser.add_argument("--interval", default="1 s", metavar="TIME", help="how often to look; default: '1 s'")
    parser.add_argument("--columns", type=names, metavar="A,B,…", help="print these columns only")


def _tail(given: argparse.Namespace, out: Output) -> int:
    table = open_table(given)
    stream = _stream(table, given)
    printer = ChangePrinter(out, stream.schema.names)
    if out.is_terminal and not given.once:
        print(f"following {table.name}; Ctrl-C ends it", file=sys.stderr)  # noqa: T201
    try:
        for changes in stream:
            printer.print(changes)
    except KeyboardInterrupt:  # the usual end
        if out.is_terminal:
            print(file=sys.stderr)  # noqa: T201 - the prompt begins on a line of its own
    return OK


def _stream(table: Table, given: argparse.Namespace) -> ChangeStream:
    options = {CONTINUOUS_DISCOVERY_INTERVAL.key: given.interval}
    if given.since is not None:
        options |= {SCAN_MODE.key: FROM_SNAPSHOT, SCAN_SNAPSHOT_ID.key: str(given.since + 1)}
    else:
        options[SCAN_MODE.key] = LATEST_FULL if given.from_start else LATEST
    return table.follow(given.columns, options=options, wait=not given.once)


class ChangePrinter:
    """Prints changes as they come: JSON and CSV row by row, tables with columns as wide as they have been so far."""

    def __init__(self, out: Output, columns: Sequence[str]) -> None:
        self._out = out
        self._columns = list(columns)
        self._widths = [0] * len(columns)
        self._has_begun = False

    def print(self, changes: pa.Table) -> None:
        """Prints what came."""
        rows = list(zip(*(column.to_pylist() for column in changes.columns), strict=True))
        if self._out.form == "json":
            for row in rows:
                self._out.line(to_json(dict(zip(self._columns, row, strict=True))))
        elif self._out.form == "csv":
            self._out.csv_lines(rows if self._has_begun else [self._columns, *rows])
        else:
            self._print_lines([[text(value, null="null") for value in row] for row in rows])
        self._has_begun = True

    def _print_lines(self, rows: list[list[str]]) -> None:
        self._widths = [
            max(width, len(name), *map(len, cells))
            for width, name, cells in zip(self._widths, self._columns, zip(*rows, strict=True), strict=True)
        ]
        widest = ["x" * width for width in self._widths]  # makes room for what came before
        lines = aligned([widest, self._columns, *rows], [False] * len(self._columns))[1:]
        if self._has_begun:
            lines = lines[1:]
        for line in lines:
            self._out.line(_coloured(line) if self._has_colours else line)

    @property
    def _has_colours(self) -> bool:
        return self._out.is_terminal and not os.environ.get("NO_COLOR")


def _coloured(line: str) -> str:
    """The line in the colour of its kind: green for what came, red for what went."""
    colour = {"+": "32", "-": "31"}.get(line[:1])
    return line if colour is None else f"\x1b[{colour}m{line}\x1b[0m"


TAIL = Command(_tail_arguments, _tail)

__all__ = ["DIFF", "TAIL", "ChangePrinter"]
