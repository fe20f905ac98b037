"""`lakebed run`: a file of SQL with sources, tables, INSERTs and materialized tables becomes one running pipeline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.cli.command import FAILED, OK, Command, Parser
from lakebed.cli.interrupts import add_metrics, interruptible, measured
from lakebed.cli.lakes import connected
from lakebed.cli.output import Output
from lakebed.cli.pipeline_progress import Teller, shown_pipeline
from lakebed.cli.sessions import add_session, session_of
from lakebed.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from lakebed.pipelines.parts import Planned
    from lakebed.pipelines.pipeline import Pipeline
    from lakebed.pipelines.runner import NodeState, Runner


def _arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="SQL: CREATE TABLE, CREATE MATERIALIZED TABLE, INSERT INTO, SET")
    parser.add_argument("--once", action="store_true", help="catch up with what there is, and end")
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything, say what would run, and change nothing"
    )
    parser.add_argument(
        "--interval",
        metavar="TIME",
        help="how often to look for changes; default: what SET 'execution.checkpointing.interval' says, or 1 s",
    )
    add_metrics(parser)
    add_session(parser)


def _run(given: argparse.Namespace, out: Output) -> int:
    from lakebed.pipelines.pipeline import Pipeline

    text = _text(given.file)
    pipeline = Pipeline(connected(given, session_of(given)), Path(given.file).stem)
    pipeline.sql(text, place=f"{given.file}, line {{line}}")
    if given.dry_run:
        return _told_plan(pipeline.check(), out)
    with measured(given):
        return _run_pipeline(pipeline, out, interval=given.interval, once=given.once)


def _run_pipeline(pipeline: Pipeline, out: Output, *, interval: str | None, once: bool) -> int:
    """Runs it until it is interrupted, or once; shows how it goes."""
    teller = Teller(out)
    runner = pipeline.prepared(interval=interval, once=once, told=teller.told)
    if not runner.states:
        raise InvalidArgument(
            "nothing is there to run", hint="add INSERT INTO ... SELECT, or CREATE MATERIALIZED TABLE ... AS SELECT"
        )
    return watched(runner, out, teller, once=once)


def watched(runner: Runner, out: Output, teller: Teller, *, once: bool) -> int:
    """Runs nodes until it is interrupted, or once, while somebody looks or reads along."""
    with interruptible() as stop, shown_pipeline(runner, is_shown=out.is_terminal and sys.stderr.isatty()) as is_shown:
        teller.is_quiet = is_shown
        if not is_shown and out.form == "table":
            ending = "" if once else "; Ctrl-C ends it"
            print(f"running {len(runner.states)} nodes{ending}", file=sys.stderr)  # noqa: T201
        if once:
            runner.once(stop)
        else:
            runner.run(stop)
    out.records(*summed_up(runner.states, teller))
    return FAILED if any(state.error is not None for state in runner.states.values()) else OK


def summed_up(states: Mapping[str, NodeState], teller: Teller) -> tuple[list[dict[str, Any]], list[str]]:
    """How each node fared: as records, and in sentences."""
    return [_record(state) for state in states.values()], teller.summary(states)


def _record(state: Any) -> dict[str, Any]:
    error = state.error
    return {
        "node": state.node.name,
        "kind": state.node.kind,
        "steps": state.steps,
        "inserted": state.inserted,
        "updated": state.updated,
        "deleted": state.deleted,
        "error": None if error is None else getattr(error, "message", str(error)),
    }


def _told_plan(planned: list[Planned], out: Output) -> int:
    records = [
        {
            "node": each.name,
            "kind": each.kind,
            "reads": list(each.reads),
            "writes": list(each.writes),
            "new": each.is_new,
            "plan": each.plan,
        }
        for each in planned
    ]
    out.records(records, [_told(each) for each in planned])
    return OK


def _told(each: Planned) -> str:
    begins = {True: "begins with all rows", False: "goes on where it was", None: "goes on where it was, if it ever ran"}
    lines = [
        f"{each.name} ({each.kind}): {begins[each.is_new]}",
        f"  reads {', '.join(each.reads) or 'nothing of the lake'}",
    ]
    lines += [f"  {line}" for line in each.plan.splitlines()]
    return "\n".join(lines)


def _text(place: str) -> str:
    if place == "-":
        return sys.stdin.read()
    try:
        return Path(place).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {place}", hint="check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"file {place} can not be read: {error}", hint="pass a text file") from error


RUN = Command(_arguments, _run)

__all__ = ["RUN", "summed_up", "watched"]
