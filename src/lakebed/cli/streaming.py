"""`lakebed sql` in streaming mode: a SELECT that goes on, row by row as they come; jobs that run as long as it does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lakebed.cli.changes import ChangePrinter
from lakebed.cli.command import FAILED, OK, sentence_of
from lakebed.cli.hints import for_command_line
from lakebed.cli.interrupts import interruptible
from lakebed.cli.output import Output
from lakebed.cli.pipeline_progress import Teller, shown_pipeline
from lakebed.cli.run import summed_up
from lakebed.clock import Clock, SystemClock
from lakebed.errors import LakebedError
from lakebed.pipelines.jobs import Job, listen
from lakebed.pipelines.live import LiveResult

if TYPE_CHECKING:
    from lakebed.lake import Lake
    from lakebed.pipelines.runner import NodeState

_TICK_MS = 100


def print_live(result: LiveResult, limit: int | None, out: Output) -> bool:
    """Prints the changes of a SELECT until it ends, or somebody presses Ctrl-C; whether it was that."""
    left, shown = limit, 0
    printer = ChangePrinter(out, ["op", *result.columns[1:]])
    with interruptible() as stop, result:
        if out.is_terminal:
            _say("rows as they come; Ctrl-C ends it")
        while not stop.asked() and left != 0 and result.is_active:
            rows = result.poll(_TICK_MS / 1000)
            if rows is not None:
                rows = rows if left is None else rows.slice(0, left)
                left = None if left is None else left - rows.num_rows
                shown += rows.num_rows
                printer.print(rows)
    if stop.asked():
        if out.is_terminal:
            _say("")  # behind ^C, which the terminal shows
        _say(f"ended after {shown:,} {'row' if shown == 1 else 'rows'}")
    return stop.asked()


# --- jobs ------------------------------------------------------------------------------------------------------------


class ForegroundJobs:
    """All jobs of a command that has nothing else to do: watched until they have ended, or Ctrl-C."""

    def __init__(self, lake: Lake, out: Output) -> None:
        self._lake = lake
        self._out = out
        self._teller = Teller(out)
        self.clock: Clock = SystemClock()
        listen(lake, self._teller.told)

    @property
    def states(self) -> dict[str, NodeState]:
        """How the nodes of all jobs are doing."""
        return {name: state for job in self._lake.jobs() for name, state in job.states.items()}

    def watched(self) -> int:
        """Waits until nothing runs any more, or somebody presses Ctrl-C."""
        jobs = self._lake.jobs()
        if not jobs:
            return OK
        if self._out.form == "table":
            said = ("1 job", "it", "it runs") if len(jobs) == 1 else (f"{len(jobs)} jobs", "them", "they run")
            _say(f"{said[0]}: there is no cluster to hand {said[1]} to, so {said[2]} here; Ctrl-C ends it")
        is_seen = self._out.is_terminal and sys.stderr.isatty()
        with interruptible() as stop, shown_pipeline(self, is_shown=is_seen) as is_shown:
            self._teller.is_quiet = is_shown
            while not stop.asked() and any(job.is_active for job in jobs):
                stop.wait(_TICK_MS, self.clock)
            self.close()
        self._out.records(*summed_up(self.states, self._teller))
        return FAILED if any(job.error is not None for job in jobs) else OK

    def close(self) -> None:
        """Ends all that runs."""
        for job in self._lake.jobs():
            job.stop()


class BackgroundJobs:
    """Jobs behind a prompt: failures are said between two statements, and all end with the conversation."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._said: dict[str, str] = {}

    def tell_failures(self) -> None:
        """Says which jobs have begun to fail since somebody last looked."""
        for job in self._lake.jobs():
            if job.error is None:
                self._said.pop(job.id, None)
            elif self._said.get(job.id) != str(job.error):
                self._said[job.id] = str(job.error)
                _say(f"job {job.id} fails: {_told_error(job)}")

    def close(self) -> None:
        """Ends all that runs, and says so."""
        running = [job for job in self._lake.jobs() if job.is_active]
        if running:
            named = ", ".join(job.id for job in running)
            _say(f"ending {named}; typed again, it goes on where it was")
        for job in running:
            job.stop()


def _told_error(job: Job) -> str:
    error = job.error
    if isinstance(error, LakebedError):
        return f"{error.message}\n  -> {for_command_line(error.hint)}"
    return "" if error is None else sentence_of(error)


def _say(text: Any) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


__all__ = ["BackgroundJobs", "ForegroundJobs", "LiveResult", "print_live"]
