"""Jobs: streaming INSERTs that run in the background of whoever typed them, one or a STATEMENT SET of them.

A job is a pipeline that was written in one statement. How far it is stands in the tables that it writes, under a name
that follows from the statement. So the same statement, typed again, goes on where it was.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from lakebed.errors import AlreadyExists, LakebedError
from lakebed.pipelines.nodes import INSERT, SOURCE
from lakebed.pipelines.parts import Planned
from lakebed.pipelines.pipeline import Pipeline, PipelineRun
from lakebed.pipelines.runner import NodeState, Runner, Told
from lakebed.sql.settings import check_interval_ms
from lakebed.views.result import Refreshed

if TYPE_CHECKING:
    from lakebed.lake import Lake

OF_STATEMENTS: Final = "sql"
"""The name of what statements run: sources keep how far they are under it."""
RUNNING, FAILED, STOPPED, FINISHED = "RUNNING", "FAILED", "STOPPED", "FINISHED"


class Job(PipelineRun):
    """Streaming INSERTs that run in the background: `stop()` ends them, `wait()` waits for that, `states` says how each
    is doing. One that fails is tried again."""

    def __init__(self, job_id: str, name: str, runner: Runner) -> None:
        self.id = job_id
        self.name = name
        self.started = dt.datetime.fromtimestamp(runner.clock.now_ms() // 1000, dt.UTC)
        self.is_stopped = False
        super().__init__(runner)

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.status.lower()}, {self.rows:,} rows>"

    @property
    def status(self) -> str:
        """RUNNING, FAILED (and tried again), STOPPED by somebody, or FINISHED: its sources have ended."""
        if self.error is not None:
            return FAILED
        if self.is_active:
            return RUNNING
        return STOPPED if self.is_stopped else FINISHED

    @property
    def rows(self) -> int:
        """Rows that it has sent."""
        return sum(state.rows for state in self.states.values() if state.node.kind == INSERT)

    @property
    def why(self) -> str | None:
        """Why it fails, in a sentence; None if it does not. `error` says what to do, too."""
        error = self.error
        if isinstance(error, LakebedError):
            return error.message
        return None if error is None else f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        """Ends it behind the steps that are under way."""
        self.is_stopped = self.is_stopped or self.is_active
        super().stop()


_LISTENERS: WeakKeyDictionary[Any, Told] = WeakKeyDictionary()


def listen(lake: Lake, told: Told) -> None:
    """Has somebody told of the steps of jobs that are started from now on."""
    _LISTENERS[lake] = told


def _silent(state: NodeState, what: Refreshed | Exception) -> None:
    """Nobody listens."""


def start_job(lake: Lake, inserts: Sequence[Any]) -> Job:
    """Starts INSERTs as one job. All that is wrong with them is said before anything is made."""
    pipeline = Pipeline(lake, OF_STATEMENTS)
    for each in inserts:
        pipeline.add(each)
    planned = pipeline.check()
    _refuse_running(lake, planned)
    interval_ms = check_interval_ms(lake)
    runner = pipeline.prepared(interval=interval_ms / 1000, told=_LISTENERS.get(lake, _silent))
    made = [each for each in planned if each.kind == INSERT]
    targets = ", ".join(dict.fromkeys(each.writes[0] for each in made))
    return _started(lake, _id_of(made), f"INSERT INTO {targets}", runner)


def start_landing(lake: Lake, sources: str, runner: Runner) -> Job:
    """Starts what lands the sources of a SELECT: a job like others, so that nobody lands them twice."""
    return _started(lake, f"select-{_digest(sources)}", f"SELECT FROM {sources}", runner)


def _started(lake: Lake, job_id: str, name: str, runner: Runner) -> Job:
    lake.started_jobs.pop(job_id, None)  # the latest stands last
    lake.started_jobs[job_id] = job = Job(job_id, name, runner)
    return job


def _id_of(inserts: Sequence[Planned]) -> str:
    """The name of the INSERT, or one for all of them."""
    if len(inserts) == 1:
        return inserts[0].name
    return f"set-{_digest(*sorted(each.name for each in inserts))}"


def _digest(*names: str) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def running_nodes(lake: Lake, kind: str) -> dict[str, Job]:
    """Jobs that run, by the names of their nodes of a kind, and by the tables that those write."""
    return {
        name: job
        for job in lake.jobs()
        if job.is_active
        for state in job.states.values()
        if state.node.kind == kind
        for name in (state.node.name, *state.node.writes)
    }


def _refuse_running(lake: Lake, planned: Sequence[Planned]) -> None:
    """Raises if one of the INSERTs runs already, or a server would be followed twice from one place."""
    inserts, sources = running_nodes(lake, INSERT), running_nodes(lake, SOURCE)
    for each in planned:
        if each.kind == INSERT and each.name in inserts:
            job = inserts[each.name]
            raise AlreadyExists(
                f"this INSERT INTO {each.writes[0]} is running already, as job `{job.id}`",
                hint=f"let it run, or type STOP JOB '{job.id}' first",
            )
        if each.kind == SOURCE and each.name in sources:
            job = sources[each.name]
            raise AlreadyExists(
                f"source {each.name} is followed already, by job `{job.id}`",
                hint=f"type STOP JOB '{job.id}', then both INSERTs together: BEGIN STATEMENT SET; INSERT ...; END;",
            )
