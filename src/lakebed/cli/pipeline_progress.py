"""How a pipeline is doing: a table that stays on the screen for a person, a line for each step for a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from lakebed.cells import to_json
from lakebed.cli.command import sentence_of
from lakebed.cli.hints import for_command_line
from lakebed.cli.output import Output
from lakebed.clock import Clock
from lakebed.errors import LakebedError
from lakebed.views.result import Refreshed

if TYPE_CHECKING:
    from lakebed.pipelines.runner import NodeState

_LOOKS_PER_SECOND = 4
_REASON_WIDTH = 60


class Watched(Protocol):
    """Nodes that run."""

    clock: Clock

    @property
    def states(self) -> Mapping[str, NodeState]:
        """How each is doing."""
        ...


class Teller:
    """Says what each step did, as it happens, unless somebody watches a table that says it."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.is_quiet = False

    def told(self, state: NodeState, what: Refreshed | Exception) -> None:
        """One step, or one failure."""
        if self.is_quiet:
            return
        name, now = state.node.name, time.strftime("%H:%M:%S")
        if self._out.form == "json":
            self._out.line(to_json({"time": now, "node": name, **_members(state, what)}))
        elif isinstance(what, Refreshed):
            self._out.line(f"{now} {name}: {what.way}, {counts(what)} in {state.took_ms / 1000:.2f} s ({what.reason})")
        else:
            self._out.line(f"{now} {name} failed: {_told_error(what)}")

    def summary(self, states: Mapping[str, NodeState]) -> list[str]:
        """How each node fared, at the end."""
        lines = []
        for state in states.values():
            failed = "" if state.error is None else f"; failed: {_told_error(state.error)}"
            lines.append(f"{state.node.name}: {_steps(state.steps)}, {counts(state)}{failed}")
        return lines


def _members(state: NodeState, what: Refreshed | Exception) -> dict[str, Any]:
    if isinstance(what, Refreshed):
        members = {"way": what.way, "reason": what.reason, "seconds": state.took_ms / 1000}
        return {**members, "inserted": what.inserted, "updated": what.updated, "deleted": what.deleted}
    if isinstance(what, LakebedError):
        return {"error": what.message, "hint": for_command_line(what.hint), "failures": state.failures}
    return {"error": sentence_of(what), "failures": state.failures}


def counts(what: Refreshed | NodeState) -> str:
    """Rows that came, changed and went."""
    return f"{what.inserted:,} inserted, {what.updated:,} updated, {what.deleted:,} deleted"


def _told_error(error: Exception) -> str:
    """An error and what to do, on two lines."""
    if isinstance(error, LakebedError):
        return f"{error.message}\n  -> {for_command_line(error.hint)}"
    return sentence_of(error)


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number:,} steps"


@contextmanager
def shown_pipeline(runner: Watched, *, is_shown: bool) -> Iterator[bool]:
    """Keeps a table of all nodes on the screen while they run."""
    if not is_shown:
        yield False
        return
    from rich.console import Console  # takes as long to load as a short command takes to run
    from rich.live import Live

    console = Console(stderr=True)
    with Live(
        console=console, transient=True, refresh_per_second=_LOOKS_PER_SECOND, get_renderable=lambda: drawn(runner)
    ):
        yield True


def drawn(runner: Watched) -> Any:
    """The nodes as a table, in their order, and below it what failed and what to do."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("node", "kind", "state", "behind", "steps", "rows", "last step"):
        table.add_column(
            name, justify="right" if name in ("behind", "steps", "rows") else "left", no_wrap=name != "node"
        )
    now_ms = runner.clock.now_ms()
    troubles = []
    for state in runner.states.values():
        style = {"failed": "red", "running": "green"}.get(state.status, "")
        cells = (
            state.node.name,
            state.node.kind,
            _status(state, now_ms),
            _behind(state, now_ms),
            f"{state.steps:,}",
            f"{state.rows:,}",
            _last(state),
        )
        table.add_row(*(Text(cell, style=style if place == 2 else "") for place, cell in enumerate(cells)))
        if state.error is not None:
            troubles.append(Text(f"{state.node.name}: {_told_error(state.error)}", style="red"))
    return Group(table, *troubles, Text("Ctrl-C ends it", style="dim"))


def _status(state: NodeState, now_ms: int) -> str:
    if state.status == "failed":
        wait_s = max(0, state.not_before_ms - now_ms) / 1000
        return f"failed {state.failures}x, again in {wait_s:.0f} s"
    return f"waits for {state.waits_for}" if state.waits_for is not None else state.status


def _behind(state: NodeState, now_ms: int) -> str:
    try:
        behind_ms = state.node.behind_ms(now_ms)
    except LakebedError:  # whoever only looks must not be stopped
        return ""
    return "" if behind_ms is None else f"{behind_ms / 1000:.1f} s"


def _last(state: NodeState) -> str:
    said = state.node.says()
    if said is not None or state.last is None:
        return said or ""
    text = f"{state.last.way}, {state.took_ms / 1000:.2f} s: {state.last.reason}"
    return text if len(text) <= _REASON_WIDTH else f"{text[: _REASON_WIDTH - 1]}…"


__all__ = ["Teller", "counts", "drawn", "shown_pipeline"]
