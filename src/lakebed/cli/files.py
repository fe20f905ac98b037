"""`lakebed files`, `compact`, `check` and `repair`: what a table is made of, and whether it is in order."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.cells import seconds_text
from lakebed.cli.command import FOUND_SOMETHING, OK, Command, Parser, whole_number
from lakebed.cli.follow import all_tables, follow_tables, table_names
from lakebed.cli.interrupts import add_metrics, refuse_metrics
from lakebed.cli.lakes import open_lake
from lakebed.cli.output import Output, Show
from lakebed.cli.sessions import add_session, session_of
from lakebed.cli.system_rows import add_columns, print_system_table
from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.schema.casts import cast_array
from lakebed.types.logical import STRING
from lakebed.units import size_text

if TYPE_CHECKING:
    from lakebed.table.table import Table

# --- files -----------------------------------------------------------------------------------------------------------

_SHOWN_FILES = {
    "partition": "partition",
    "bucket": "bucket",
    "level": "level",
    "record_count": "records",
    "file_size_in_bytes": "size",
    "min_key": "min_key",
    "max_key": "max_key",
    "file_path": "file",
}


def _files_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    state = parser.add_mutually_exclusive_group()
    state.add_argument("--snapshot", type=whole_number, metavar="N", help="the files of this snapshot")
    state.add_argument("--tag", metavar="NAME", help="the files of this tag")
    add_columns(parser)


def _files(given: argparse.Namespace, out: Output) -> int:
    view = open_lake(given).table(f"{given.table}$files")
    if given.snapshot is not None or given.tag is not None:
        view = view.at(snapshot=given.snapshot, tag=given.tag)
    shows: dict[str, Show] = {"file_size_in_bytes": size_text, "creation_time": seconds_text}
    if not given.wide:
        shows["file_path"] = lambda path: path.rpartition("/")[2]
    print_system_table(given, out, view, _SHOWN_FILES, shows)
    return OK


FILES = Command(_files_arguments, _files)

# --- compact ---------------------------------------------------------------------------------------------------------


def _compact_arguments(parser: Parser) -> None:
    parser.add_argument("tables", nargs="+", metavar="table", help="names such as db.t, or db.* for all of a database")
    parser.add_argument("--full", action="store_true", help="merge all files of each bucket, not only what is due")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="only partitions with this value; may be given several times",
    )
    parser.add_argument("--follow", action="store_true", help="go on: compact whenever somebody has committed")
    parser.add_argument("--interval", default="1 s", metavar="TIME", help="how often --follow looks; default: '1 s'")
    add_metrics(parser)
    add_session(parser)


def _compact(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given, session_of(given))
    if given.follow:
        if given.full:
            raise InvalidArgument(
                "--follow compacts what is due, not everything",
                hint="leave out --full, or run it once without --follow",
            )
        return follow_tables(lake, given, out, lambda table: _partition_filter(table, given.where))
    refuse_metrics(given)
    done = [_compacted(lake.table(name), given, out) for name in table_names(lake, given.tables)]
    out.records(done, [_told(members) for members in done])
    return OK


def _compacted(table: Table, given: argparse.Namespace, out: Output) -> dict[str, Any]:
    where = _partition_filter(table, given.where)
    before = len(table.scan(where).files)
    began = time.monotonic()
    with _compaction_progress(table.name, is_shown=out.is_terminal) as progress:
        snapshot = table.compact(given.full, where, progress=progress)
    return {
        "table": table.name,
        "snapshot": None if snapshot is None else snapshot.id,
        "files_before": before,
        "files_after": len(table.scan(where).files),
        "seconds": round(time.monotonic() - began, 3),
    }


def _told(done: dict[str, Any]) -> str:
    if done["snapshot"] is None:
        return f"{done['table']}: nothing was due"
    became = f"{done['files_before']} files became {done['files_after']}"
    return f"{done['table']}: {became} in {done['seconds']:.1f} s, snapshot {done['snapshot']}"


def _partition_filter(table: Table, conditions: list[str]) -> list[tuple[str, str, Any]] | None:
    """Conditions as a filter with values of the columns' types."""
    found = []
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise InvalidArgument(f"`{condition}` is no condition", hint="write it as in dt=2024-01-01")
        if name not in table.partition_by:
            raise NotFound(
                f"table `{table.name}` has no partition column `{name}`", hint=did_you_mean(name, table.partition_by)
            )
        target = table.schema.field(name).type
        found.append((name, "==", cast_array(pa.array([value]), STRING, target)[0].as_py()))
    return found or None


@contextmanager
def _compaction_progress(table: str, *, is_shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What a compaction tells how many buckets are done, and how many there are; None if nobody looks."""
    if not is_shown:
        yield None
        return
    from rich.console import Console  # takes as long to load as a short command takes to run
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("buckets"),
        TimeElapsedColumn(),
    )
    # On the error stream: what the command has to say at the end stays alone on the other one.
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(table, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


COMPACT = Command(_compact_arguments, _compact)

# --- check -----------------------------------------------------------------------------------------------------------


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("tables", nargs="*", metavar="table", help="names such as db.t; all tables without any")
    parser.add_argument("--deep", action="store_true", help="read the data too, not only the metadata")


def _check(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given)
    done = [(name, lake.table(name).check(given.deep)) for name in given.tables or all_tables(lake)]
    sentences = [f"{name}: {sentence}" for name, findings in done for sentence in findings or ["all is well"]]
    out.records([{"table": name, "findings": findings} for name, findings in done], sentences)
    return FOUND_SOMETHING if any(findings for _, findings in done) else OK


CHECK = Command(_check_arguments, _check)

# --- repair ----------------------------------------------------------------------------------------------------------


def _repair_arguments(parser: Parser) -> None:
    parser.add_argument("tables", nargs="*", metavar="table", help="names such as db.t; all tables without any")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be rewritten")


def _repair(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given)
    done = [(name, lake.table(name).repair_metadata(given.dry_run)) for name in given.tables or all_tables(lake)]
    verb = "would be rewritten" if given.dry_run else "rewritten"
    sentences = [f"{name}: {verb}: {', '.join(files)}" if files else f"{name}: nothing to do" for name, files in done]
    out.records([{"table": name, "rewritten": files, "dry_run": given.dry_run} for name, files in done], sentences)
    return OK


REPAIR = Command(_repair_arguments, _repair)

__all__ = ["CHECK", "COMPACT", "FILES", "REPAIR"]
