"""`lakebed refresh`: brings materialized tables up to date, those below before those that read them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lakebed.cli.command import OK, Command, Parser
from lakebed.cli.interrupts import add_metrics, measured, refuse_metrics
from lakebed.cli.lakes import open_lake
from lakebed.cli.output import Output
from lakebed.cli.pipeline_progress import Teller
from lakebed.cli.run import watched
from lakebed.errors import InvalidArgument

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.views.result import Refreshed


def _refresh_arguments(parser: Parser) -> None:
    parser.add_argument(
        "tables", nargs="+", metavar="table", help="names such as db.v, or db.* for all of a database that are active"
    )
    parser.add_argument("--full", action="store_true", help="compute all rows, and write the difference")
    parser.add_argument("--follow", action="store_true", help="keep them up to date, each by its freshness")
    parser.add_argument("--interval", default="1 s", metavar="TIME", help="how often to look for changes; default: 1 s")
    add_metrics(parser)


def _refresh(given: argparse.Namespace, out: Output) -> int:
    lake = open_lake(given)
    if given.follow:
        if given.full:
            raise InvalidArgument("--full and --follow do not go together", hint="refresh in full first, then follow")
        with measured(given):
            return _follow(lake, _chosen(lake, given.tables), given.interval, out)
    refuse_metrics(given)
    chosen = _chosen(lake, given.tables)
    done = [_members(each) for each in lake.refresh_all(*chosen, full=given.full)] if chosen else []
    out.records(done, [_told(members) for members in done])
    return OK


def _follow(lake: Lake, names: list[str], interval: str, out: Output) -> int:
    """Refreshes them for as long as nobody ends it."""
    from lakebed.pipelines.graph import Graph
    from lakebed.pipelines.nodes import ViewNode
    from lakebed.pipelines.runner import Runner
    from lakebed.table.compact_follow import interval_argument

    if not names:
        raise InvalidArgument("no materialized table is there to follow", hint="name one that lakebed tables lists")
    teller = Teller(out)
    nodes = [ViewNode(lake, name, lake.materialized(name).reads) for name in names]
    runner = Runner(Graph(nodes), lake.has_table, interval_argument(interval), teller.told)
    return watched(runner, out, teller, once=False)


def _chosen(lake: Lake, names: list[str]) -> list[str]:
    """The materialized tables that are meant; of a whole database those whose refreshes are not suspended."""
    named = [lake.materialized(name).name for name in names if not name.endswith(".*")]
    databases = [name.removesuffix(".*") for name in names if name.endswith(".*")]
    active = [each.name for place in databases for each in lake.materialized_tables(place) if not each.is_suspended]
    return list(dict.fromkeys([*named, *active]))


def _members(done: Refreshed) -> dict[str, Any]:
    return {
        "table": done.table,
        "way": done.way,
        "reason": done.reason,
        "inserted": done.inserted,
        "updated": done.updated,
        "deleted": done.deleted,
        "snapshot": done.snapshot,
    }


def _told(done: dict[str, Any]) -> str:
    counts = f"{done['inserted']} inserted, {done['updated']} updated, {done['deleted']} deleted"
    return f"{done['table']}: {done['way']} ({done['reason']}); {counts}"


REFRESH = Command(_refresh_arguments, _refresh)
