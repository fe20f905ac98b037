"""`lakebed sql`: statements given on the command line, in a file, by a pipe, or typed one after another."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.cli.command import OK, Command, Parser, is_interruption, sentence_of, whole_number
from lakebed.cli.hints import for_command_line
from lakebed.cli.lakes import connected
from lakebed.cli.output import Output
from lakebed.cli.sessions import add_session, session_of
from lakebed.cli.shell.prompt import typed_statements
from lakebed.cli.statements import all_statements, without_comments
from lakebed.cli.system_rows import print_limited
from lakebed.commit.committer import Committed, heard_commits
from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.metadata.snapshot import CommitKind
from lakebed.sql.settings import is_streaming

if TYPE_CHECKING:
    from lakebed.cli.streaming import BackgroundJobs, ForegroundJobs
    from lakebed.lake import Lake


def _arguments(parser: Parser) -> None:
    parser.add_argument("statement", nargs="?", help="one statement, or several with semicolons between them")
    parser.add_argument("-f", "--file", metavar="FILE", help="run the statements of this file; - reads from a pipe")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="print at most N rows of each result")
    add_session(parser)


def _sql(given: argparse.Namespace, out: Output) -> int:
    lake = connected(given, session_of(given))
    if given.statement is None and given.file is None and sys.stdin.isatty():
        _converse(lake, given.limit, out)
        return OK
    return _run_all(lake, all_statements(_given_text(given)), given.limit, out)


def _run_all(lake: Lake, statements: Sequence[str], limit: int | None, out: Output) -> int:
    """Runs statements in order, and then the jobs that they have started, until Ctrl-C."""
    jobs: ForegroundJobs | None = None
    try:
        for number, statement in enumerate(statements, 1):
            if jobs is None and is_streaming(lake):
                from lakebed.cli.streaming import ForegroundJobs  # pipelines are only for those who use them

                jobs = ForegroundJobs(lake, out)
            if _run(lake, statement, limit, out) and number < len(statements):
                raise KeyboardInterrupt
        return OK if jobs is None else jobs.watched()
    finally:
        if jobs is not None:
            jobs.close()


def _given_text(given: argparse.Namespace) -> str:
    if given.statement is not None:
        if given.file is not None:
            raise InvalidArgument("both a statement and a file are given", hint="give one of them")
        if given.statement.endswith(".sql") and not any(map(str.isspace, given.statement)):
            raise InvalidArgument(
                f"`{given.statement}` is no statement", hint=f"write -f {given.statement} to run a file"
            )
        return str(given.statement)
    if given.file in (None, "-"):
        return sys.stdin.read()
    try:
        return Path(given.file).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {given.file}", hint="check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"file {given.file} can not be read: {error}", hint="pass a text file") from error


def _converse(lake: Lake, limit: int | None, out: Output) -> None:
    jobs: BackgroundJobs | None = None
    try:
        for statement in typed_statements(lake):
            try:
                _run(lake, statement, limit, out)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)  # noqa: T201
            except Exception as error:  # whatever fails, the conversation goes on
                if "LAKEBED_DEBUG" in os.environ and not isinstance(error, LakebedError):
                    raise
                said = "stopped" if is_interruption(error) else f"error: {_told_error(error)}"
                print(said, file=sys.stderr)  # noqa: T201
            if jobs is None and is_streaming(lake):
                from lakebed.cli.streaming import BackgroundJobs  # pipelines are only for those who use them

                jobs = BackgroundJobs(lake)
            if jobs is not None:
                jobs.tell_failures()
    finally:
        if jobs is not None:
            jobs.close()


def _told_error(error: Exception) -> str:
    if isinstance(error, LakebedError):
        return f"{error.message}\n  -> {for_command_line(error.hint)}"
    return sentence_of(error)


def _run(lake: Lake, statement: str, limit: int | None, out: Output) -> bool:
    """Runs a statement; whether Ctrl-C has ended one that goes on."""
    with heard_commits() as heard:
        result: Any = lake.sql(statement)
    if is_streaming(lake):
        from lakebed.cli.streaming import LiveResult, print_live

        if isinstance(result, LiveResult):
            return print_live(result, limit, out)
    if result is None or not result.columns:
        if out.is_terminal:
            print(told(statement, heard), file=sys.stderr)  # noqa: T201
        return False
    found = result.toArrow()
    if out.form == "table" and found.column_names in _TEXTS and found.num_rows == 1:
        out.line(str(found.column(0)[0]).rstrip())  # to be read, or to be run again: with its lines
        return False
    print_limited(out, found, limit)
    return False


_TEXTS = (["createtab_stmt"], ["plan"], ["function_desc"])
"""Results that are one text of several lines."""
_WRITES = re.compile(r"(INSERT|WITH|BEGIN|EXECUTE|STATEMENT)\b|(UPDATE|DELETE|MERGE|TRUNCATE)\b", re.IGNORECASE)


def told(statement: str, heard: Sequence[Committed]) -> str:
    """What a statement without rows has done."""
    word = _WRITES.match(without_comments(statement))
    done = [commit for commit in heard if commit.snapshot.commit_kind != CommitKind.COMPACT]
    if not done:
        return "ok" if word is None else "ok: there was nothing to change"
    if word is not None and word[1]:
        parts = [f"{_rows(commit.added_rows)} into {commit.table}, snapshot {commit.snapshot.id}" for commit in done]
    else:
        parts = [f"{commit.table} is at snapshot {commit.snapshot.id}" for commit in done]
    return f"ok: {'; '.join(parts)}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


SQL = Command(_arguments, _sql)

__all__ = ["SQL", "told"]
