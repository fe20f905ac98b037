"""`lakebed ui`: the lake in a browser, or as pages to send to somebody."""

from __future__ import annotations

import argparse

from lakebed.cli.command import OK, Command, Parser, whole_number
from lakebed.cli.interrupts import add_metrics, measured
from lakebed.cli.lakes import open_lake
from lakebed.cli.output import Output
from lakebed.errors import MissingDependency


def _ui_arguments(parser: Parser) -> None:
    parser.add_argument("--port", type=whole_number, default=0, metavar="N", help="default: one that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--allow-changes", action="store_true", help="let the pages compact, expire and tag")
    parser.add_argument("--export", metavar="DIR", help="write a copy of the pages there instead, to send to somebody")
    parser.add_argument("--rows", type=whole_number, default=20, metavar="N", help="rows of each table in a copy")
    add_metrics(parser)


def _ui(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given)
    if given.export is not None:
        from lakebed.ui.export import export

        names = export(lake, given.export, rows=given.rows)
        members = {"directory": given.export, "tables": len(names)}
        out.record(members, f"{len(names)} tables are shown in {given.export}: open index.html there")
        return OK
    try:
        from lakebed.ui.serve import serve
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn"):
            raise
        raise MissingDependency(f"`lakebed ui` needs {missing}", hint="run pip install 'lakebed[ui]'") from error

    def told(address: str) -> None:
        out.record(
            {"address": address}, f"the lake at {given.warehouse} is shown at\n  {address}\nuntil Ctrl-C ends it"
        )

    with measured(given):
        serve(lake, told, port=given.port, open_browser=not given.no_browser, allow_changes=given.allow_changes)
    return OK


UI = Command(_ui_arguments, _ui)
