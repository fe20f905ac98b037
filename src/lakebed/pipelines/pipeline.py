"""A pipeline as its author writes it: statements of SQL, or functions of Python that give queries.

    pipeline = lakebed.pipeline(lake)
    pipeline.sql("CREATE TABLE wide (...); INSERT INTO wide SELECT ...")

    @pipeline.materialized_table(freshness="5 s")
    def totals():
        return "SELECT cust, sum(amount) AS total FROM wide GROUP BY cust"

    pipeline.run()

What is written is only noted. `check` tries all of it on a lake that is thrown away; `run` does so, too, before it
makes the tables that are missing and starts the nodes. Tables that are there must be as they are written: a pipeline
is run again and again, and goes on where it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakebed.errors import InvalidArgument, LakebedError
from lakebed.lineage import untold
from lakebed.metrics.instruments import unheard
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.nodes import traced
from lakebed.pipelines.parts import Parts, Planned, Running, placed
from lakebed.pipelines.rehearsal import rehearsed
from lakebed.pipelines.runner import NodeState, Runner, Told
from lakebed.records import dataclass
from lakebed.sql import statements as st
from lakebed.sql.parse import Statement, parse_lines
from lakebed.table.compact_follow import Stop, interval_argument
from lakebed.views.lake_in import read_sql

if TYPE_CHECKING:
    from lakebed.lake import Lake

Query = Callable[[], str]

_LOOK_S = 0.05
"""How often somebody who waits looks whether something went wrong."""


@dataclass(frozen=True, slots=True)
class Written:
    """A statement, and where it stands."""

    statement: Statement
    place: str


class Pipeline:
    """Statements and queries that run together on one lake. Names say which state in the lake is theirs."""

    def __init__(self, lake: Lake, name: str = "pipeline") -> None:
        self._lake = lake
        self._written: list[Written] = []
        self.name = name

    def __repr__(self) -> str:
        return f"<pipeline {self.name}: {len(self._written)} statements>"

    # --- what is written -----------------------------------------------------------------------------------------

    def sql(self, text: str, *, place: str = "line {line}") -> Self:
        """Adds the statements of a text."""
        lines = parse_lines(text)
        line = 1
        while True:
            try:
                line, statement = next(lines)
            except StopIteration:
                return self
            except LakebedError as error:
                raise placed(error, place.format(line=line)) from error
            self._written.append(Written(statement, place.format(line=line)))

    def add(self, statement: Statement) -> Self:
        """Adds a statement that was read before."""
        self._written.append(Written(statement, ""))
        return self

    def materialized_table(
        self,
        query: Query | None = None,
        *,
        name: str | None = None,
        freshness: str | None = None,
        policy: str = "auto",
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: dict[str, str] | None = None,
        comment: str | None = None,
    ) -> Any:
        """Decorates a function that gives a query: a materialized table of its name, kept up to date."""

        def add(function: Query) -> Query:
            made = st.CreateMaterialized(
                name or function.__name__,
                _text_of(function),
                tuple(primary_key),
                tuple(partition_by),
                dict(options or {}),
                comment if comment is not None else function.__doc__,
                freshness,
                policy,
            )
            self._written.append(Written(made, f"function `{function.__name__}`"))
            return function

        return add if query is None else add(query)

    materialized_view = materialized_table

    def insert_into(self, target: str, *, columns: Sequence[str] = ()) -> Callable[[Query], Query]:
        """Decorates a function that gives a query: its changes are sent into a table."""

        def add(function: Query) -> Query:
            made = st.Insert(st.Target(target), read_sql(_text_of(function)), columns=tuple(columns) or None)
            self._written.append(Written(made, f"function `{function.__name__}`"))
            return function

        return add

    append_flow = insert_into

    # --- what it does --------------------------------------------------------------------------------------------

    def check(self) -> list[Planned]:
        """Tries all of it on a lake that is thrown away; the nodes in the order in which they depend on each other."""
        with self._rehearsed(Running(self.name, self._lake.location)) as parts:
            by_name = {each.name: each for each in parts.planned}
            return [by_name[node.name] for node in Graph(parts.nodes).nodes]

    @contextmanager
    def _rehearsed(self, running: Running) -> Iterator[Parts]:
        with rehearsed(self._lake) as scratch:
            parts = Parts(self._lake, scratch, running)
            with untold(), unheard():  # nothing of it happens
                for each in self._written:
                    try:
                        parts.add(each.statement)
                    except LakebedError as error:
                        if not each.place:
                            raise
                        raise placed(error, each.place) from error
                parts.finish()
            Graph(parts.nodes)
            yield parts

    def run(
        self,
        *,
        once: bool = False,
        interval: str | float | None = None,
        stop: threading.Event | Callable[[], bool] | None = None,
        told: Told | None = None,
    ) -> Runner:
        """Runs it until `stop` says so, or `once` until all has caught up; the runner knows how each node fared.

        `interval` is how often changes are looked for: what SET 'execution.checkpointing.interval' says, or `1 s`.
        """
        runner = self.prepared(interval=interval, once=once, told=told)
        if once:
            runner.once(Stop.of(stop))
        else:
            runner.run(Stop.of(stop))
        return runner

    def start(self, *, interval: str | float | None = None, told: Told | None = None) -> PipelineRun:
        """Runs it in the background."""
        return PipelineRun(self.prepared(interval=interval, told=told))

    def prepared(self, *, interval: str | float | None = None, once: bool = False, told: Told | None = None) -> Runner:
        """Checks all of it, makes the tables that are missing, and gives what runs the nodes."""
        given_ms = None if interval is None else interval_argument(interval)
        running = Running(self.name, self._lake.location, once)
        database, settings = self._lake.current_database, dict(self._lake.settings)
        with self._rehearsed(running) as parts:
            pause_ms = parts.look_every(given_ms)
            try:
                nodes = [node for deed in parts.deeds if (node := deed()) is not None]
            finally:
                self._lake.use(database)
                self._lake.settings.clear()
                self._lake.settings.update(settings)
        trace = partial(traced, self._lake)
        return Runner(Graph(nodes), self._lake.has_table, pause_ms, told or (lambda state, what: None), traced=trace)


def pipeline(lake: Lake, sql: str | None = None, *, name: str = "pipeline") -> Pipeline:
    """A pipeline of statements and queries that run together; `sql` are the first of them."""
    if lake is None or not hasattr(lake, "create_table"):
        raise InvalidArgument("the first argument is no lake", hint="open one with lakebed.connect(path)")
    made = Pipeline(lake, name)
    return made if sql is None else made.sql(sql)


class PipelineRun:
    """A pipeline that runs in the background: `stop()` ends it, `states` says how each node is doing."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lakebed pipeline", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._runner.run(Stop.of(self._stop))
        except RuntimeError:  # no step can be begun any more when the program ends, and nothing is left undone
            if threading.main_thread().is_alive():
                raise

    @property
    def states(self) -> dict[str, NodeState]:
        """How each node is doing."""
        return self._runner.states

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def error(self) -> Exception | None:
        """Why a node fails; it is tried again. None if all is well."""
        return next((state.error for state in self.states.values() if state.error is not None), None)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it has ended, or for so many seconds; whether it has. Raises what goes wrong meanwhile."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.is_active and (end is None or time.monotonic() < end):
            if self.error is not None:
                break
            self._thread.join(_LOOK_S)
        if self.error is not None:
            raise self.error
        return not self.is_active

    def stop(self) -> None:
        """Ends it behind the steps that are under way."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _text_of(function: Query) -> str:
    text = function()
    if not isinstance(text, str):
        raise InvalidArgument(
            f"function `{function.__name__}` gives {type(text).__name__}, not a query",
            hint='let it return SQL text: return "SELECT ..."; changes of a DataFrame can not be followed',
        )
    return text


__all__ = ["Pipeline", "PipelineRun", "pipeline"]
