"""`lakebed cdc`: follows a database, or a log of change messages, into the lake, and shows how far it is."""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from lakebed.cdc.sources import CHANGE_SOURCES, source_class
from lakebed.cells import to_json
from lakebed.cli.cdc_operate import OPERATIONS, check_source
from lakebed.cli.cdc_progress import ProgressLines, say, shown_progress, summary
from lakebed.cli.command import OK, Command, Parser, names
from lakebed.cli.interrupts import add_metrics, interruptible, measured
from lakebed.cli.lakes import connected
from lakebed.cli.output import Output
from lakebed.cli.sessions import add_session, pairs, session_of, storage_of
from lakebed.errors import InvalidArgument

if TYPE_CHECKING:
    from lakebed.cdc.arguments import PastArguments
    from lakebed.cdc.start import SyncRun
    from lakebed.cdc.storage import Storage

_LOOK_S = 0.5
_TELL_S = 2.0
_OTHER_NAMES = {
    "postgresql": "postgres",
    "pg": "postgres",
    "psql": "postgres",
    "mariadb": "mysql, which follows MariaDB as well",
}
"""What people call the sources, and what to type."""


def _arguments(parser: Parser) -> None:
    parser.add_argument("source", choices=CHANGE_SOURCES, type=_source_name, help="what is followed")
    where = "where it is, such as postgresql://user@host/db, host:9092, or a directory"
    parser.add_argument("place", type=_without_password, help=where)
    parser.add_argument("--checkpoint", metavar="PATH", help="where progress is kept; default: below the warehouse")
    parser.add_argument("--once", action="store_true", help="end when everything so far is in the lake")
    parser.add_argument("--interval", default="1 second", metavar="TIME", help="how often to commit; default: 1 second")
    patience = "how long to go on trying when the source is away; default: forever, 10 minutes with --once"
    parser.add_argument("--give-up-after", metavar="TIME", help=patience)
    add_metrics(parser)
    _add_source(parser)
    _add_tables(parser)
    _add_columns(parser)
    _add_policies(parser)
    _add_past(parser)
    add_session(parser)


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("source", choices=CHANGE_SOURCES, type=_source_name, help="what is to be followed")
    parser.add_argument("place", type=_without_password, help="where it is, such as postgresql://user@host/db")
    parser.add_argument("--dry-run", action="store_true", help="say what would be copied, and how large it is")
    parser.add_argument("--including", default=".*", metavar="PATTERN", help="follow tables that match")
    parser.add_argument("--excluding", metavar="PATTERN", help="but not these")
    _add_source(parser)
    _add_past(parser)


def _check(given: argparse.Namespace, out: Output) -> int:
    options = source_options(given)
    if source_class(given.source).takes_patterns:
        options |= {"including": given.including, "excluding": given.excluding or ""}
    return check_source(given, options, _past(given), out)


def _source_name(typed: str) -> str:
    if typed in _OTHER_NAMES:
        raise InvalidArgument(f"there is no source `{typed}`", hint=f"type lakebed cdc {_OTHER_NAMES[typed]}")
    return typed


_PASSWORD_IN_PLACE = re.compile(r"\w+://[^/?#@]*:[^/?#@]+@|.*\bpassword\s*=", re.IGNORECASE)


def _without_password(place: str) -> str:
    if _PASSWORD_IN_PLACE.match(place):
        raise _password_seen()
    return place


def _password_seen() -> InvalidArgument:
    """Does not repeat the password: whoever lists the processes of the machine would see it."""
    return InvalidArgument(
        "a password is not taken from the command line, where others can see it",
        hint="put it into an environment variable, and name that with --password-env NAME",
    )


class _NoPassword(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise _password_seen()


def _add_source(parser: Parser) -> None:
    group = parser.add_argument_group("source")
    group.add_argument("--password-env", metavar="NAME", help="environment variable that holds the password")
    group.add_argument("--password", action=_NoPassword, nargs="?", help=argparse.SUPPRESS)
    text = "setting of the source, such as slot=shop, format=maxwell-json or topics=a,b; may be repeated"
    group.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help=text)


def _add_tables(parser: Parser) -> None:
    group = parser.add_argument_group("tables")
    group.add_argument("--database", default="default", metavar="NAME", help="database of the lake")
    group.add_argument("--table", metavar="NAME", help="one table for everything; default: one for each")
    group.add_argument("--including", default=".*", metavar="PATTERN", help="follow tables that match")
    group.add_argument("--excluding", metavar="PATTERN", help="but not these")
    group.add_argument("--prefix", default="", help="how names of tables begin in the lake")
    group.add_argument("--suffix", default="", help="how they end")
    group.add_argument("--map", action="append", default=[], metavar="SOURCE=NAME", help="another name for a table")
    group.add_argument("--case", default="keep", choices=("keep", "lower"), help="of names of tables and columns")
    shards = group.add_mutually_exclusive_group()
    together = "tables of one name share one table"
    shards.add_argument("--merge-shards", dest="merge_shards", action="store_true", default=None, help=together)
    apart = "their names begin with that of their schema or database"
    shards.add_argument("--no-merge-shards", dest="merge_shards", action="store_false", default=None, help=apart)
    conf = "option of the tables, or of those that a pattern matches; may be repeated"
    group.add_argument("--table-conf", action="append", default=[], metavar="[PATTERN:]KEY=VALUE", help=conf)


def _add_columns(parser: Parser) -> None:
    group = parser.add_argument_group("columns")
    group.add_argument("--primary-key", type=names, default=[], metavar="A,B,…", help="default: that of the source")
    group.add_argument("--partition-by", type=names, default=[], metavar="A,B,…", help="partition columns")
    computed = "a column that is computed, such as 'dt=date_format(created, yyyy-MM-dd)'; may be repeated"
    group.add_argument("--computed", action="append", default=[], metavar="NAME=FUNCTION", help=computed)
    metadata = "database_name, schema_name, table_name, op_ts"
    group.add_argument("--metadata", type=names, default=[], metavar="A,B,…", help=metadata)
    group.add_argument("--metadata-prefix", default="", metavar="TEXT", help="how their names begin")
    group.add_argument("--type-mapping", type=names, default=[], metavar="A,B,…", help="such as to-nullable")


def _add_policies(parser: Parser) -> None:
    group = parser.add_argument_group("when the source changes")
    for name, help_text in (("rename", "columns get another name"), ("drop", "columns go")):
        group.add_argument(f"--{name}", default="keep", choices=("keep", "follow", "fail"), help=help_text)
    types = "types become something that nothing holds together with the old one"
    group.add_argument("--incompatible", default="fail", choices=("fail", "ignore", "string"), help=types)
    group.add_argument("--ignore-incompatible", action="store_true", help="leave such tables out and go on")
    on_error = "of one table: park it, stop, or put rows aside; default: park for databases, else stop"
    group.add_argument("--on-error", choices=("park", "stop", "dead-letter"), help=on_error)
    group.add_argument("--truncate", default="delete", choices=("delete", "ignore", "fail"), help="all rows go")


def _add_past(parser: Parser) -> None:
    group = parser.add_argument_group("the past")
    text = "what becomes of rows that the source deletes; mark: they stay, with the time of the delete"
    group.add_argument("--deletes", default="apply", choices=("apply", "mark"), help=text)
    name = "column for that time; default: deleted_at"
    group.add_argument("--deleted-column", default="deleted_at", metavar="NAME", help=name)
    history = "keep every version of every row in TABLE_history; of tables that match, or of all"
    group.add_argument("--history", nargs="?", const=".*", metavar="PATTERN", help=history)
    audit = "keep every change in TABLE_changes; of tables that match, or of all"
    group.add_argument("--audit", nargs="?", const=".*", metavar="PATTERN", help=audit)
    group.add_argument("--audit-by-day", action="store_true", help="partition changes by their day")
    prefix = "how names of the columns begin that tell of changes and versions"
    group.add_argument("--history-prefix", default="", metavar="TEXT", help=prefix)


def _past(given: argparse.Namespace) -> PastArguments:
    """What is kept of the past, as `lakebed.cdc.sync` takes it."""
    return {
        "deletes": given.deletes,
        "deleted_column": given.deleted_column,
        "audit": given.audit,
        "audit_by_day": given.audit_by_day,
        "history": given.history,
        "history_column_prefix": given.history_prefix,
    }


def _run(given: argparse.Namespace, out: Output) -> int:
    say(f"{given.source} into database {given.database} of {given.warehouse}: starting")
    from lakebed.cdc.operate import CHECKPOINTS
    from lakebed.cdc.storage import Storage

    lake = connected(given, session_of(given, plans_only=True))
    checkpoint = given.checkpoint or f"{given.warehouse.rstrip('/')}/{CHECKPOINTS}/{given.source}-{given.database}"
    storage = Storage(storage_of(given))
    with measured(given):
        _while_paused(checkpoint, storage)
        while True:
            run = _begin(lake, checkpoint, given)
            code = _watch(run, checkpoint, storage, out)
            if code is not None:
                return code
            _while_paused(checkpoint, storage)


def _begin(lake: Any, checkpoint: str, given: argparse.Namespace) -> SyncRun:
    import lakebed.cdc

    return lakebed.cdc.sync(
        lake,
        given.source,
        given.database,
        given.table,
        checkpoint=checkpoint,
        trigger={"availableNow": True} if given.once else given.interval,
        source_options=source_options(given),
        including=given.including,
        excluding=given.excluding,
        prefix=given.prefix,
        suffix=given.suffix,
        mapping=pairs(given.map, "--map"),
        merge_shards=given.merge_shards,
        case=given.case,
        primary_keys=given.primary_key,
        partition_keys=given.partition_by,
        computed_columns=given.computed,
        metadata_columns=given.metadata,
        metadata_column_prefix=given.metadata_prefix,
        type_mapping=given.type_mapping,
        table_conf=_table_conf(given.table_conf),
        rename=given.rename,
        drop=given.drop,
        incompatible=given.incompatible,
        ignore_incompatible=given.ignore_incompatible,
        truncate=given.truncate,
        on_error=given.on_error or _on_error(given),
        give_up_after=given.give_up_after or ("10 minutes" if given.once else "forever"),
        query_name="lakebed cdc",
        **_past(given),
    )


def _on_error(given: argparse.Namespace) -> str:
    """To park a table makes sense where others go on, and where it can be copied anew."""
    return "park" if given.table is None and source_class(given.source).takes_patterns else "stop"


def _while_paused(checkpoint: str, storage: Storage) -> None:
    """Returns once nobody wants the sync to pause."""
    from lakebed.cdc.checkpoint import is_paused

    if is_paused(checkpoint, storage):
        say("paused: `lakebed cdc resume` ends that")
        while is_paused(checkpoint, storage):
            time.sleep(_LOOK_S)
        say("going on")


def _watch(run: SyncRun, checkpoint: str, storage: Storage, out: Output) -> int | None:
    """Shows progress until the sync ends, or somebody has seen enough; None if it is to pause."""
    from lakebed.cdc.checkpoint import is_paused
    from lakebed.cdc.progress import ProgressFile

    with interruptible() as stop:
        lines = ProgressLines(ProgressFile(checkpoint, storage))
        told = 0.0
        with shown_progress(is_shown=out.is_terminal and sys.stderr.isatty()) as show:
            while not stop.asked() and not run.wait(_LOOK_S):
                if out.form == "json" and time.monotonic() - told >= _TELL_S:
                    out.line(to_json(run.progress.to_json()))
                    told = time.monotonic()
                if show is not None:
                    show(run.progress)
                lines.tell(run, is_silent=show is not None)
                if lines.has_looked and is_paused(checkpoint, storage):
                    run.stop()
                    return None
        if stop.asked():
            say("stopping")
            run.stop()
    progress = run.progress
    out.record(progress.to_json(), summary(progress))
    return OK


def source_options(given: argparse.Namespace) -> dict[str, Any]:
    """What the source is made with."""
    source = source_class(given.source)
    options: dict[str, Any] = {source.place: given.place}
    for key, value in pairs(given.option, "--option").items():
        name = key.replace("-", "_")
        options[name] = names(value) if name in source.list_settings else _value(value)
    if given.password_env is not None:
        options["password_env"] = given.password_env
    return options


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.isdigit() else text


def _table_conf(given: list[str]) -> dict[str, Any]:
    conf: dict[str, Any] = {}
    for key, value in pairs(given, "--table-conf").items():
        pattern, sign, name = key.rpartition(":")
        if sign:
            conf.setdefault(pattern, {})[name] = value
        else:
            conf[key] = value
    return conf


_CHECK = "say all that stands against a sync, with a script that repairs it"
CDC = Command(_arguments, _run, {"check": (Command(_check_arguments, _check), _CHECK), **OPERATIONS})

__all__ = ["CDC", "source_options"]
