"""`lakebed snapshots`, `tag` and `expire`: what a table was, what is kept of it, and what goes."""

from __future__ import annotations

import argparse
import sys

from lakebed.cells import seconds_text
from lakebed.cli.command import OK, Command, Parser, whole_number
from lakebed.cli.lakes import open_lake, open_table
from lakebed.cli.output import Output
from lakebed.cli.system_rows import add_columns, print_arrow, print_system_table
from lakebed.errors import InvalidArgument

# --- snapshots -------------------------------------------------------------------------------------------------------

_SHOWN_SNAPSHOTS = {
    "snapshot_id": "snapshot",
    "commit_kind": "kind",
    "operation": "operation",
    "commit_time": "time",
    "total_record_count": "records",
    "delta_record_count": "change",
    "schema_id": "schema",
}
_SHOWN_TAGS = {
    "tag_name": "tag",
    "snapshot_id": "snapshot",
    "commit_time": "time",
    "record_count": "records",
    "create_time": "created",
    "time_retained": "retained",
}


_TABLE_SNAPSHOTS = 50
"""As many as one looks through in a table."""


def _snapshots_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    newest = f"the newest N only; default: {_TABLE_SNAPSHOTS} in a table, else all"
    parser.add_argument("--limit", type=whole_number, metavar="N", help=newest)
    add_columns(parser)


def _snapshots(given: argparse.Namespace, out: Output) -> int:
    view = open_lake(given).table(f"{given.table}$snapshots")
    found = view.to_arrow(given.columns)
    most = _TABLE_SNAPSHOTS if given.limit is None and out.form == "table" else given.limit
    all_of_them = found.num_rows
    if most is not None:
        found = found.slice(max(0, all_of_them - most))
    shown = None if given.columns or given.wide else _SHOWN_SNAPSHOTS
    print_arrow(out, found, shown, {"commit_time": seconds_text})
    if given.limit is None and found.num_rows < all_of_them:
        told = f"the newest {found.num_rows} of {all_of_them} snapshots; --limit N prints more"
        print(told, file=sys.stderr)  # noqa: T201
    return OK


SNAPSHOTS = Command(_snapshots_arguments, _snapshots)

# --- tag -------------------------------------------------------------------------------------------------------------


def _action(word: str) -> str:
    if word in ("create", "delete", "list"):
        return word
    raise InvalidArgument(
        f"`{word}` is nothing to do with a tag: create, delete or list",
        hint=f"if it is the table, type `lakebed tag create {word} NAME`, or `lakebed tag list {word}`",
    )


def _tag_arguments(parser: Parser) -> None:
    parser.add_argument("action", type=_action, metavar="{create,delete,list}", help="what to do")
    parser.add_argument("table", help="a name such as db.t")
    parser.add_argument("name", nargs="?", help="the tag; needed to create or delete one")
    parser.add_argument("--snapshot", type=whole_number, metavar="N", help="tag this snapshot, not the latest")
    parser.add_argument("--time-retained", metavar="TIME", help="let the tag expire after a time such as '7 d'")
    add_columns(parser)
    parser.set_defaults(needs_name=lambda: parser.error("which tag? name it after the table"))


def _tag(given: argparse.Namespace, out: Output) -> int:
    if given.action == "list":
        view = open_lake(given).table(f"{given.table}$tags")
        shows = {"commit_time": seconds_text, "create_time": seconds_text}
        print_system_table(given, out, view, _SHOWN_TAGS, shows)
        return OK
    if given.name is None:
        given.needs_name()
    table = open_table(given)
    if given.action == "delete":
        table.delete_tag(given.name)
        out.record({"table": table.name, "deleted": given.name}, f"{table.name}: tag {given.name} is gone")
        return OK
    table.create_tag(given.name, given.snapshot, given.time_retained)
    view = open_lake(given).table(f"{given.table}$tags")
    (snapshot,) = view.to_arrow(["snapshot_id"], [("tag_name", "==", given.name)]).column(0).to_pylist()
    members = {"table": table.name, "tag": given.name, "snapshot": snapshot}
    out.record(members, f"{table.name}: tag {given.name} names snapshot {snapshot}")
    return OK


TAG = Command(_tag_arguments, _tag)

# --- expire ----------------------------------------------------------------------------------------------------------


def _expire_arguments(parser: Parser) -> None:
    parser.add_argument("table", help="a name such as db.t")
    parser.add_argument("--older-than", metavar="TIME", help="remove what was replaced before, as 2024-05-14 13:45:00")
    parser.add_argument("--retain-max", type=whole_number, metavar="N", help="keep at most the newest N")
    parser.add_argument("--retain-min", type=whole_number, metavar="N", help="keep at least the newest N")
    parser.add_argument("--max-deletes", type=whole_number, metavar="N", help="remove at most N snapshots")


def _expire(given: argparse.Namespace, out: Output) -> int:
    from lakebed.maintenance.snapshots import watched_expiry

    table = open_table(given)
    is_watched = out.is_terminal and sys.stderr.isatty()

    def tell(gone: int, of: int) -> None:
        if is_watched and gone < of:
            print(f"{table.name}: {gone:,} of {of:,} snapshots are gone; Ctrl-C leaves the rest", file=sys.stderr)  # noqa: T201

    with watched_expiry(tell):
        expired = table.expire_snapshots(given.older_than, given.retain_max, given.retain_min, given.max_deletes)
    members = {
        "table": table.name,
        "snapshots": list(expired.snapshots),
        "changelogs": list(expired.changelogs),
        "file_count": expired.file_count,
        "remaining": expired.remaining,
    }
    told = f"{len(expired.snapshots)} snapshots and {expired.file_count} files are gone"
    if expired.changelogs:
        told = f"{len(expired.changelogs)} changelogs, {told}"
    if expired.remaining:
        told += f"; {expired.remaining} more are due: run it again, or with --max-deletes {expired.remaining}"
    out.record(members, f"{table.name}: {told if expired else 'nothing was due'}")
    return OK


EXPIRE = Command(_expire_arguments, _expire)

__all__ = ["EXPIRE", "SNAPSHOTS", "TAG"]
