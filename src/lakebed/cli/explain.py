"""`lakebed why`, `health` and `advise`: why a row is as it is, how tables are, and how they should be set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.cells import to_json
from lakebed.cli.command import FOUND_SOMETHING, OK, Command, Parser, whole_number
from lakebed.cli.follow import all_tables, table_names
from lakebed.cli.lakes import open_lake, open_table
from lakebed.cli.output import Output
from lakebed.cli.system_rows import print_arrow
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.explain.health import Severity
from lakebed.explain.texts import number_of
from lakebed.schema.casts import cast_array
from lakebed.types.logical import STRING

if TYPE_CHECKING:
    from lakebed.table.table import Table

# --- why -------------------------------------------------------------------------------------------------------------


def _why_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    parser.add_argument("key", nargs="+", metavar="COLUMN=VALUE", help="the columns of the primary key")
    state = parser.add_mutually_exclusive_group()
    state.add_argument("--snapshot", type=whole_number, metavar="N", help="the row of this snapshot")
    state.add_argument("--tag", metavar="NAME", help="the row of this tag")
    parser.add_argument("--stored", action="store_true", help="leave out what earlier snapshots held of the row")


def _why(given: argparse.Namespace, out: Output) -> int:
    table = open_table(given)
    if given.snapshot is not None or given.tag is not None:
        table = table.at(snapshot=given.snapshot, tag=given.tag)
    found = table.why(_key(table, given.key), history=not given.stored)
    if out.form == "json":
        out.line(to_json(found.to_dict()))
    elif out.form == "csv":
        print_arrow(out, found.to_arrow(), None, {})
    else:
        out.line(repr(found))
    return OK


def _key(table: Table, words: Sequence[str]) -> pa.Table:
    """One key, with values of its columns' types."""
    found: dict[str, pa.Array] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and len(table.primary_key) == 1:
            name, value = table.primary_key[0], word
        elif not equals:
            raise InvalidArgument(f"`{word}` names no column", hint="write the key as in id=1")
        if name not in table.primary_key:
            hint = did_you_mean(name, table.primary_key)
            raise NotFound(f"`{name}` is no column of the primary key of table `{table.name}`", hint=hint)
        if name in found:
            raise InvalidArgument(f"`{name}` is given twice", hint="ask for one row at a time")
        target = table.schema.field(name).type
        found[name] = cast_array(pa.array([value]), STRING, target)
    return pa.table(found)


WHY = Command(_why_arguments, _why)

# --- health ----------------------------------------------------------------------------------------------------------


def _health_arguments(parser: Parser) -> None:
    parser.add_argument("tables", nargs="*", metavar="table", help="names such as db.t, or db.*; without any all")
    parser.add_argument("--deep", action="store_true", help="list directories too, to find files nothing refers to")


def _health(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given)
    names = table_names(lake, given.tables) if given.tables else all_tables(lake)
    found = [finding for name in names for finding in lake.table(name).health(deep=given.deep)]
    if not given.tables:
        from lakebed.cdc.health import sync_findings
        from lakebed.cdc.storage import Storage

        found += sync_findings(lake.location, Storage(lake.storage_options))
    columns = ("table", "severity", "check", "figure", "message", "cure")
    if not found and out.form == "table":
        out.line(f"{number_of(len(names), 'table')}: all is well")
        return OK
    rows = [[getattr(each, column) for column in columns] for each in found]
    shown = {name: name for name in columns if name != "figure"}
    out.rows(
        columns, [[str(cell) if cell.__class__ is Severity else cell for cell in row] for row in rows], shown=shown
    )
    return FOUND_SOMETHING if any(each.severity is not Severity.INFO for each in found) else OK


HEALTH = Command(_health_arguments, _health)

# --- advise ----------------------------------------------------------------------------------------------------------


def _advise_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    parser.add_argument("--days", type=_amount, default=7.0, metavar="N", help="how much of the history; default: 7")
    parser.add_argument(
        "--reads", type=_amount, default=24.0, metavar="N", help="reads of the whole table a day; default: 24"
    )
    parser.add_argument(
        "--set",
        action="append",
        metavar="OPTION=VALUE[,...]",
        help="try this instead of what may help; may be given several times",
    )


def _amount(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{word}` is no number") from None


def _advise(given: argparse.Namespace, out: Output) -> int:
    settings = None if given.set is None else [_setting(words) for words in given.set]
    found = open_table(given).advise(given.days, reads=given.reads, settings=settings)
    if out.form == "json":
        out.line(to_json(found.to_dict()))
    elif out.form == "csv":
        lines = [{**each.to_dict(), "settings": each.text} for each in found.trials]
        out.records(lines, ())
    else:
        out.line(repr(found))
    return OK


def _setting(words: str) -> dict[str, str]:
    found = {}
    for word in words.split(","):
        key, equals, value = word.partition("=")
        if not equals:
            raise InvalidArgument(f"`{word}` sets nothing", hint="write an option as in --set bucket=4")
        found[key.strip()] = value.strip()
    return found


ADVISE = Command(_advise_arguments, _advise)

__all__ = ["ADVISE", "HEALTH", "WHY"]
