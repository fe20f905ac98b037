"""What operators do with a sync: `lakebed cdc check | status | pause | resume | resync | verify | drop`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from lakebed.cli.cdc_progress import size_text
from lakebed.cli.command import FOUND_SOMETHING, OK, Command, Parser
from lakebed.cli.hints import for_command_line
from lakebed.cli.lakes import connected
from lakebed.cli.output import Output
from lakebed.cli.sessions import storage_of
from lakebed.errors import InvalidArgument, LakebedError

if TYPE_CHECKING:
    from lakebed.cdc.arguments import PastArguments
    from lakebed.cdc.checkpoint import SyncRecord
    from lakebed.cdc.operate import SyncStatus
    from lakebed.cdc.rows.keeping import Keeping
    from lakebed.cdc.storage import Storage


def _which(parser: Parser) -> None:
    parser.add_argument("--checkpoint", metavar="PATH", help="that of the sync; default: the only one in the lake")
    parser.add_argument("--database", metavar="NAME", help="the sync into this database of the lake")
    parser.add_argument("--password-env", metavar="NAME", help="environment variable that holds the password")


def _sync(given: argparse.Namespace) -> SyncRecord:
    from lakebed.cdc.operate import find_sync

    return find_sync(given.warehouse, given.checkpoint, given.database, _storage(given))


def _storage(given: argparse.Namespace) -> Storage:
    from lakebed.cdc.storage import Storage

    return Storage(storage_of(given))


# --- check --------------------------------------------------------------------------------------------------------


def check_source(given: argparse.Namespace, options: dict[str, Any], past: PastArguments, out: Output) -> int:
    """Says all that stands against a sync, with a script that repairs it; and what it would copy."""
    from lakebed.cdc.arguments import keeping_of
    from lakebed.cdc.sources import open_source
    from lakebed.cdc.sources.base import SourceProblem

    source, keeping = open_source(given.source, **options), keeping_of(past)
    problems = []
    try:
        if keeping.needs_times:
            source.tell_times(changes=keeping.audit is not None)
    except LakebedError as error:
        problems.append(SourceProblem(error.message, error.hint))
    problems += source.problems()
    planned = source.planned() if given.dry_run else []
    members = {
        "problems": [
            {"problem": each.message, "hint": for_command_line(each.hint), "sql": each.sql, "table": each.table}
            for each in problems
        ],
        "tables": [
            {"table": each.name, "rows": each.rows, "bytes": each.size_bytes, "keeps": list(_kept(keeping, each.name))}
            for each in planned
        ],
    }
    lines = []
    for each in problems:
        lines += [f"problem: {each.message}", f"  -> {for_command_line(each.hint)}"]
    script = list(dict.fromkeys(each.sql for each in problems if each.sql))
    if script:
        lines += ["", "-- repairs, for a superuser or the owners:", *script]
    if given.dry_run:
        lines += [
            f"would copy {each.name}: about {each.rows:,} rows, {size_text(each.size_bytes)}"
            + "".join(f"; keeps its {form}" for form in _kept(keeping, each.name))
            for each in planned
        ]
        total = size_text(sum(each.size_bytes for each in planned))
        lines.append(f"{len(planned):,} tables, {total} in all; nothing was created")
    if not problems:
        lines.append("nothing stands against it")
    out.record(members, "\n".join(lines))
    return FOUND_SOMETHING if problems else OK


def _kept(keeping: Keeping, name: str) -> tuple[str, ...]:
    return keeping.beside([name, name.rpartition(".")[2]])


# --- status -------------------------------------------------------------------------------------------------------


def _status_arguments(parser: Parser) -> None:
    _which(parser)
    parser.add_argument("--max-lag", metavar="TIME", help="find fault with a sync that is further behind")
    parser.add_argument("--max-log", metavar="BYTES", type=int, help="find fault if the server keeps more log for it")


def _status(given: argparse.Namespace, out: Output) -> int:
    from lakebed.cdc.operate import status_of
    from lakebed.cdc.patience import span_seconds

    status = status_of(_sync(given), given.password_env, _storage(given))
    faults = []
    lag, most = status.progress.lag_seconds, given.max_lag
    if most is not None and lag is not None and lag > span_seconds(most):
        faults.append(f"it is {lag:.1f} s behind, more than {most}")
    kept = status.facts.get("kept_log_bytes")
    if given.max_log is not None and isinstance(kept, int) and kept > given.max_log:
        faults.append(f"the server keeps {size_text(kept)} of its log for it")
    members = {**status.to_json(), "faults": faults, "is_well": status.is_well and not faults}
    out.record(members, "\n".join([*_lines(status), *faults]))
    return OK if members["is_well"] else FOUND_SOMETHING


def _lines(status: SyncStatus) -> list[str]:
    progress, facts = status.progress, status.facts
    lines = [f"{status.sync.source} into {status.sync.database}: {status.state}, {progress.phase}"]
    if status.trouble:
        lines.append(f"the source does not answer: {status.trouble}")
    behind = [] if progress.lag_bytes is None else [f"{size_text(progress.lag_bytes)}"]
    behind += [] if progress.lag_seconds is None else [f"{progress.lag_seconds:.1f} s"]
    if behind:
        lines.append(f"behind: {', '.join(behind)}")
    if facts:
        kept = facts.get("kept_log_bytes")
        size = f", the server keeps {size_text(kept)} of its log" if isinstance(kept, int) else ""
        lines.append(f"slot {facts.get('slot')}: {facts.get('slot_status')}{size}")
    lines += [
        f"  {each.table}: {each.rows:,} changes in {each.commits:,} commits since the start, {each.phase}"
        for each in sorted(progress.tables, key=lambda each: -each.rows)
    ]
    for name, parked in status.parked.items():
        lines += [f"parked: {name}: {parked.why}", f"  -> {for_command_line(parked.hint)}"]
        lines.append(f"  then: lakebed cdc resume {name}")
    lines += [f"not followed: {name}: {why}" for name, why in {**progress.skipped, **status.left_out}.items()]
    return lines


# --- pause, resume, resync, drop ----------------------------------------------------------------------------------


def _pause(given: argparse.Namespace, out: Output) -> int:
    from lakebed.cdc.checkpoint import pause

    sync = _sync(given)
    pause(sync.checkpoint, _storage(given))
    out.record(
        {"paused": sync.checkpoint}, f"{sync.source} into {sync.database} pauses; `lakebed cdc resume` ends that"
    )
    return OK


def _resume_arguments(parser: Parser) -> None:
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a table that is parked; default: the whole sync")
    _which(parser)


def _resume(given: argparse.Namespace, out: Output) -> int:
    from lakebed.cdc.checkpoint import unpause
    from lakebed.cdc.parked import read_parked

    sync = _sync(given)
    if given.table is None:
        unpause(sync.checkpoint, _storage(given))
        out.record({"resumed": sync.checkpoint}, f"{sync.source} into {sync.database} goes on")
        return OK
    name = given.table if "." in given.table else f"{sync.database}.{given.table}"
    if name not in read_parked(sync.checkpoint, _storage(given)):
        raise InvalidArgument(f"table `{name}` is not parked", hint=f"to copy it anew: lakebed cdc resync {name}")
    return _asked_for(given, sync, name, out)


def _resync_arguments(parser: Parser) -> None:
    parser.add_argument("table", metavar="TABLE", help="a table of the lake")
    _which(parser)


def _resync(given: argparse.Namespace, out: Output) -> int:
    return _asked_for(given, _sync(given), given.table, out)


def _asked_for(given: argparse.Namespace, sync: SyncRecord, table: str, out: Output) -> int:
    from lakebed.cdc.operate import copy_anew

    sources = copy_anew(given.warehouse, sync, table, given.password_env, _storage(given))
    out.record({"copied_anew": list(sources)}, f"{table} is copied anew from {', '.join(sources)} once the sync runs")
    return OK


def _drop_arguments(parser: Parser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _which(parser)


def _drop(given: argparse.Namespace, out: Output) -> int:
    from lakebed.cdc.operate import let_go

    sync = _sync(given)
    question = f"drop what {sync.source} has made for {sync.database}, and {sync.checkpoint}? The tables stay. [y/N] "
    if not given.yes and (not sys.stdin.isatty() or input(question).strip().lower() not in ("y", "yes")):
        raise InvalidArgument("nothing was dropped", hint="answer y, or pass --yes")
    done = let_go(sync, given.password_env, _storage(given))
    out.record({"done": done}, "\n".join(done))
    return OK


# --- verify -------------------------------------------------------------------------------------------------------


def _verify_arguments(parser: Parser) -> None:
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="tables of the lake; default: all of the sync")
    parser.add_argument("--repair", action="store_true", help="copy tables anew that differ")
    _which(parser)


def _verify(given: argparse.Namespace, out: Output) -> int:
    from lakebed.cdc.operate import copy_anew
    from lakebed.cdc.verify import verify

    sync = _sync(given)
    lake = connected(given)
    found = verify(lake, given.warehouse, sync, given.tables, given.password_env)
    lines = []
    for each in found:
        lines.append(f"{each.table}: {each.rows:,} rows compared, {len(each.differences):,} differ")
        lines += [f"  {difference}" for difference in each.differences[:20]]
        if each.untold:
            lines.append(f"  {each.untold:,} rows changed too often to be compared")
        if each.differences and given.repair:
            copy_anew(given.warehouse, sync, each.table, given.password_env, _storage(given))
            lines.append(f"  {each.table} is copied anew once the sync runs")
    out.record({"tables": [each.to_json() for each in found]}, "\n".join(lines))
    return FOUND_SOMETHING if any(each.differences for each in found) else OK


OPERATIONS = {
    "status": (Command(_status_arguments, _status), "show how a sync is; ends with 1 if somebody should look"),
    "pause": (Command(_which, _pause), "let a sync wait, without a connection to the source"),
    "resume": (Command(_resume_arguments, _resume), "let a sync go on, or a table that is parked, after the cure"),
    "resync": (Command(_resync_arguments, _resync), "copy a table anew, in the place of what the lake has of it"),
    "verify": (Command(_verify_arguments, _verify), "compare lake and database, while both are in use"),
    "drop": (Command(_drop_arguments, _drop), "remove slot, publication and checkpoint of a sync that is over"),
}
"""Commands that stand behind `lakebed cdc`."""

__all__ = ["OPERATIONS", "check_source"]
