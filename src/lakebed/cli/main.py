"""`lakebed COMMAND …`: finds the command, runs it, and says how it ended.

The modules of commands are loaded when they are asked for, so that a short command takes a short time.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module

from lakebed.cli.command import FAILED, INTERRUPTED, OK, Command, Parser, is_interruption, sentence_of
from lakebed.cli.hints import for_command_line
from lakebed.cli.output import FORMATS, Output
from lakebed.cli.sessions import add_storage
from lakebed.errors import InvalidArgument, LakebedError, did_you_mean
from lakebed.version import VERSION

COMMANDS = {
    "sql": ("sql", "run SQL: a statement, a file, or what you type"),
    "tables": ("tables", "list the tables"),
    "describe": ("tables", "show a table's columns, keys and options"),
    "snapshots": ("history", "list a table's snapshots"),
    "files": ("files", "list a table's data files"),
    "compact": ("files", "merge a table's files"),
    "expire": ("history", "remove old snapshots and the files that only they need"),
    "tag": ("history", "create, delete or list tags: names for snapshots"),
    "diff": ("changes", "show what differs between two snapshots or tags"),
    "tail": ("changes", "follow a table's changes"),
    "why": ("explain", "tell why a row is as it is: its versions, and the rule behind each column"),
    "health": ("explain", "tell what of tables costs readers or writers, and the command that mends it"),
    "advise": ("explain", "tell what other settings of a table would have cost, and how to set the best"),
    "check": ("files", "prove the rules of the levels on tables, by their metadata"),
    "repair": ("files", "rewrite metadata that Paimon can not read, as older versions wrote it"),
    "refresh": ("views", "bring materialized tables up to date"),
    "run": ("run", "run a file of INSERTs and materialized tables as one pipeline"),
    "cdc": ("cdc", "follow a database, or a log of change messages, into the lake"),
    "ui": ("ui", "show the lake in a browser, on this machine"),
    "options": ("options", "print the reference of all table options"),
}
"""Module and purpose of each command."""

_HABITS = {
    "ls": "lakebed tables",
    "list": "lakebed tables",
    "show": "lakebed tables, or `lakebed sql 'SHOW ...'`",
    "desc": "lakebed describe TABLE",
    "schema": "lakebed describe TABLE",
    "history": "lakebed snapshots TABLE",
    "log": "lakebed snapshots TABLE",
    "tags": "lakebed tag list TABLE",
    "query": "lakebed sql 'SELECT ...'",
    "select": "lakebed sql 'SELECT ...'",
    "head": "lakebed sql 'SELECT * FROM t' --limit N",
    "cat": "lakebed sql 'SELECT * FROM t' --limit N",
    "count": "lakebed sql 'SELECT count(*) FROM t'",
    "info": "lakebed describe TABLE",
    "partitions": "lakebed sql 'SHOW PARTITIONS t'",
    "export": "lakebed sql 'SELECT ...' --format csv",
    "import": "lakebed sql 'INSERT INTO t SELECT * FROM csv.`FILE`'",
    **{word: f"lakebed sql '{word.upper()} TABLE ...'" for word in ("create", "drop", "alter", "truncate")},
    "insert": "lakebed sql 'INSERT INTO ...'",
    "update": "lakebed sql 'UPDATE ...'",
    "delete": "lakebed sql 'DELETE FROM ...'",
    "explain": "lakebed sql 'EXPLAIN SELECT ...'",
    **dict.fromkeys(("shell", "repl", "prompt"), "lakebed sql"),
    "follow": "lakebed tail TABLE",
    "optimize": "lakebed compact TABLE",
    "vacuum": "lakebed expire TABLE",
    "rollback": "lakebed sql \"CALL sys.rollback('t', '1')\"",
    "sync": "lakebed cdc SOURCE PLACE",
    "postgres": "lakebed cdc postgres PLACE",
    "mysql": "lakebed cdc mysql PLACE",
    "pipeline": "lakebed run FILE",
    "start": "lakebed run FILE",
    "serve": "lakebed ui",
    "web": "lakebed ui",
    "dashboard": "lakebed ui",
    "version": "lakebed --version",
    "help": "lakebed --help",
}
"""Words that people try, and what to type."""

_DEBUG = "LAKEBED_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the number is the exit status: 0 if all is well, 1 for findings, 2 if it could not run."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _stopped()
    except LakebedError as error:
        return _stopped() if is_interruption(error) else _failed(error.message, error.hint)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing more may be written, not even at the end of the program.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - a program for people ends with a sentence, not with a traceback
        if is_interruption(error):
            return _stopped()
        if _DEBUG in os.environ:
            traceback.print_exc()
        return _failed(sentence_of(error), f"set {_DEBUG}=1 to see where this comes from")


def _run(arguments: list[str]) -> int:
    parser = Parser("lakebed", "Tables of a lake from the command line.", _listing())
    parser.add_argument("--version", action="version", version=f"lakebed {VERSION}")
    _add_common(parser, os.environ.get("LAKEBED_WAREHOUSE", "./warehouse"), "table", [])
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="what to do")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="see `lakebed COMMAND --help`")
    try:
        given = parser.parse_args(arguments)
        if given.command is None:
            parser.print_help()
            return OK
        if given.command not in COMMANDS:
            typed = given.command.lower()
            source, is_sync, _ = typed.replace("-", "_").partition("_sync_")  # actions of Paimon's jar for Flink
            instead = f"lakebed cdc {source} PLACE" if is_sync else _HABITS.get(typed)
            near = did_you_mean(given.command, COMMANDS) if instead is None else f"type {instead}"
            hint = f"{near}; see `lakebed --help`"
            raise InvalidArgument(f"there is no command `{given.command}`", hint=hint)
        command, own = _command(given)
        given = own.parse_args(given.arguments)
    except SystemExit as end:
        return int(end.code or 0)  # after --help or --version
    return command.run(given, Output(given.format))


def _command(given: argparse.Namespace) -> tuple[Command, Parser]:
    module, purpose = COMMANDS[given.command]
    command: Command = getattr(import_module(f"lakebed.cli.{module}"), given.command.upper())
    name, epilog = given.command, _listing_of({word: does for word, (_, does) in command.words.items()})
    if given.arguments and given.arguments[0] in command.words:
        name = f"{name} {given.arguments[0]}"
        command, purpose = command.words[given.arguments.pop(0)]
        epilog = None
    parser = Parser(f"lakebed {name}", purpose[0].upper() + purpose[1:] + ".", epilog)
    command.arguments(parser)
    _add_common(parser, given.warehouse, given.format, given.storage)
    return command, parser


def _add_common(parser: Parser, warehouse: str, form: str, storage: list[str]) -> None:
    group = parser.add_argument_group("all commands")
    place = "directory or URL of the lake; default: $LAKEBED_WAREHOUSE, or ./warehouse"
    group.add_argument("--warehouse", default=warehouse, metavar="PATH", help=place)
    group.add_argument("--format", default=form, choices=FORMATS, help="how to print; default: table")
    add_storage(group, storage)


def _listing() -> str | None:
    return _listing_of({name: purpose for name, (_, purpose) in COMMANDS.items()})


def _listing_of(purposes: Mapping[str, str]) -> str | None:
    width = max(map(len, purposes), default=0)
    lines = [f"  {name:<{width}}  {purpose}" for name, purpose in purposes.items()]
    return "\n".join(["commands:", *lines]) if lines else None


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    """A warning is a sentence, too, without the place in the source that made it."""
    print(f"warning: {message}", file=sys.stderr)  # noqa: T201


def _stopped() -> int:
    print("stopped", file=sys.stderr)  # noqa: T201
    return INTERRUPTED


def _failed(message: str, hint: str) -> int:
    sys.stdout.flush()
    print(f"error: {message}\n  -> {for_command_line(hint)}", file=sys.stderr)  # noqa: T201
    return FAILED
