"""`lakebed options`: the reference of all table options."""

from __future__ import annotations

import argparse

from lakebed.cli.command import OK, Command, Parser
from lakebed.cli.hints import for_command_line
from lakebed.cli.output import Output
from lakebed.errors import NotFound, did_you_mean
from lakebed.options.page import described
from lakebed.options.table import GROUPS

_COLUMNS = ["option", "group", "type", "default", "meaning", "honoured", "in_lakebed"]
_SHOWN = {"option": "option", "type": "type", "default": "default", "meaning": "meaning", "in_lakebed": "in lakebed"}


def _arguments(parser: Parser) -> None:
    parser.add_argument("part", nargs="?", default="", help="only options with this text in their name")


def _options(given: argparse.Namespace, out: Output) -> int:
    rows = []
    for group, options in GROUPS.items():
        for option in options:
            if given.part.lower() in option.key:
                cells = (for_command_line(cell).replace("`", "") for cell in described(option))
                key, kind, default, meaning, standing = cells
                rows.append([key, group, kind, None if default == "-" else default, meaning, option.honoured, standing])
    if not rows:
        known = [option.key for options in GROUPS.values() for option in options]
        raise NotFound(f"no option has `{given.part}` in its name", hint=did_you_mean(given.part, known))
    out.rows(_COLUMNS, rows, shown=_SHOWN)
    return OK


OPTIONS = Command(_arguments, _options)

__all__ = ["OPTIONS"]
