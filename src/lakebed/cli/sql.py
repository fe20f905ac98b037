"""`lakebed sql`: statements given on the command line, in a file, by a pipe, or typed one after another."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lakebed
from lakebed.cli.command import OK, Command, Parser, sentence_of, whole_number
from lakebed.cli.output import Output
from lakebed.cli.prompt import typed_statements
from lakebed.cli.statements import all_statements
from lakebed.cli.system_rows import print_limited
from lakebed.errors import InvalidArgument, LakebedError, NotFound

if TYPE_CHECKING:
    from lakebed.lake import Lake


def _arguments(parser: Parser) -> None:
    parser.add_argument("statement", nargs="?", help="one statement, or several with semicolons between them")
    parser.add_argument("-f", "--file", metavar="FILE", help="run the statements of this file; - reads from a pipe")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="print at most N rows of each result")


def _sql(given: argparse.Namespace, out: Output) -> int:
    lake = lakebed.connect(given.warehouse)
    if given.statement is None and given.file is None and sys.stdin.isatty():
        _converse(lake, given.limit, out)
        return OK
    for statement in all_statements(_given_text(given)):
        _run(lake, statement, given.limit, out)
    return OK


def _given_text(given: argparse.Namespace) -> str:
    if given.statement is not None:
        if given.file is not None:
            raise InvalidArgument("both a statement and a file are given", hint="give one of them")
        return str(given.statement)
    if given.file in (None, "-"):
        return sys.stdin.read()
    try:
        return Path(given.file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {given.file}", hint="check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"file {given.file} can not be read: {error}", hint="pass a text file") from error


def _converse(lake: Lake, limit: int | None, out: Output) -> None:
    for statement in typed_statements(lambda: lake.current_database):
        try:
            _run(lake, statement, limit, out)
        except LakebedError as error:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)  # noqa: T201
        except Exception as error:  # whatever fails, the conversation goes on
            if "LAKEBED_DEBUG" in os.environ:
                raise
            print(f"error: {sentence_of(error)}", file=sys.stderr)  # noqa: T201


def _run(lake: Lake, statement: str, limit: int | None, out: Output) -> None:
    result: Any = lake.sql(statement)
    if result is None or not result.columns:
        if out.is_terminal:
            print("ok", file=sys.stderr)  # noqa: T201
        return
    print_limited(out, result.toArrow(), limit)


SQL = Command(_arguments, _sql)

__all__ = ["SQL"]
