"""When each node takes its next step, and what happens when one fails.

A node runs as soon as something it reads has changed and its pause is over, but behind those that write what it reads:
it waits for one step of theirs, and no longer, so that none starves below one that always has something to do.
One that fails is tried again after a pause that doubles each time; the others go on meanwhile, with what there is. To
stop means to finish the steps that have begun: each leaves its table as a commit has made it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import field

from lakebed.clock import Clock, SystemClock
from lakebed.errors import LakebedError
from lakebed.lineage import Run
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.nodes import Node
from lakebed.records import dataclass
from lakebed.table.compact_follow import Stop
from lakebed.units import MINUTE_MS, SECOND_MS
from lakebed.views.result import Refreshed

_log = logging.getLogger(__name__)

_AT_A_TIME = 4
"""Steps that are made together: most of their time goes into engines that use all cores."""
_FIRST_PAUSE_MS = SECOND_MS
_LONGEST_PAUSE_MS = MINUTE_MS
_TICK_MS = 50
_MOST_ROUNDS = 20
"""After so many rounds a pipeline that is to run once has others that write to its tables, and ends all the same."""

WAITING, RUNNING, FAILED, ENDED = "waiting", "running", "failed", "ended"


@dataclass
class NodeState:
    """How a node is doing."""

    node: Node
    status: str = WAITING
    steps: int = 0
    """Steps that changed something."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    last: Refreshed | None = None
    """What the last step that changed something had to say."""
    error: Exception | None = None
    """Why the last step failed; None if it went well."""
    failures: int = 0
    """In a row."""
    took_ms: int = 0
    started_ms: int = 0
    not_before_ms: int = 0
    waits_for: str | None = None
    """A table that is not there yet."""

    @property
    def rows(self) -> int:
        """Rows that its steps have changed."""
        return self.inserted + self.updated + self.deleted


Told = Callable[[NodeState, Refreshed | Exception], None]
"""Is told of each step that changed something, and of each failure."""


@dataclass
class Runner:
    """Runs the nodes of a graph; `states` may be looked at from any thread meanwhile."""

    graph: Graph
    has_table: Callable[[str], bool]
    interval_ms: int = SECOND_MS
    """How often tables are looked at for something new."""
    told: Told = lambda state, what: None
    clock: Clock = field(default_factory=SystemClock)
    traced: Callable[[Node], Run | None] = lambda node: None
    """Gives the run that lineage is told of a node, if it is."""
    states: dict[str, NodeState] = field(init=False)

    def __post_init__(self) -> None:
        self.states = {node.name: NodeState(node) for node in self.graph.nodes}
        self._running: dict[str, Future[None]] = {}
        self._looked_ms: dict[str, int] = {}
        self._ended: Counter[str] = Counter()
        """How many steps of each node have come to their end."""
        self._waits: dict[str, dict[str, int]] = {}
        """Nodes that are due and wait behind others; how many steps of those had ended when they began to wait."""
        self._telling = threading.Lock()
        self._traces: dict[str, Run] = {}

    # --- for ever ------------------------------------------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Lets the nodes run until it is to stop, or all have ended."""
        self._begin()
        try:
            with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="pipeline") as pool:
                try:
                    while not stop.asked() and not self._is_over():
                        self._start_due(pool)
                        stop.wait(_TICK_MS, self.clock)
                finally:
                    wait(self._running.values())
        finally:
            self._close()

    def _is_over(self) -> bool:
        return not self._busy() and all(state.status == ENDED for state in self.states.values())

    def _busy(self) -> set[str]:
        """The nodes whose step is under way."""
        for name in [name for name, step in self._running.items() if step.done()]:
            self._running.pop(name).result()
            self._ended[name] += 1
        return set(self._running)

    def _start_due(self, pool: ThreadPoolExecutor) -> None:
        busy = self._busy()
        held = set(busy)
        """Nodes behind which others wait."""
        for node in self.graph.nodes:
            if node.name in busy:
                continue
            if node.name in self._waits or self._is_due(node):
                held.add(node.name)
                above = self.graph.above(node)
                since = self._waits.setdefault(node.name, {name: self._ended[name] for name in above})
                if not any(name in held and self._ended[name] == since[name] for name in above):
                    del self._waits[node.name]
                    self._running[node.name] = pool.submit(self._step, self.states[node.name])

    def _is_due(self, node: Node) -> bool:
        state, now_ms = self.states[node.name], self.clock.now_ms()
        if state.status == ENDED or now_ms < state.not_before_ms:
            return False
        if now_ms - self._looked_ms.get(node.name, -self.interval_ms) < self.interval_ms:
            return False
        self._looked_ms[node.name] = now_ms
        try:
            return self._may_step(state) and (state.failures > 0 or self._has_work(state))
        except LakebedError as error:
            self._note_failure(state, error)
            return False

    def _may_step(self, state: NodeState) -> bool:
        """Whether all tables are there that the node reads and that other nodes have to make first."""
        missing = [table for table in state.node.reads if self.graph.is_made_here(table) and not self.has_table(table)]
        state.waits_for = missing[0] if missing else None
        return not missing

    def _has_work(self, state: NodeState) -> bool:
        if state.node.is_over():
            state.status = ENDED
            return False
        return state.node.has_news()

    # --- once ----------------------------------------------------------------------------------------------------

    def once(self, stop: Stop) -> bool:
        """Lets each node catch up with what there is, those that are read first; whether all went well."""
        self._begin()
        try:
            for _ in range(_MOST_ROUNDS):
                if stop.asked() or not self._round(stop):
                    break
        finally:
            self._close()
        return all(state.error is None for state in self.states.values())

    def _round(self, stop: Stop) -> bool:
        """Each node once; whether any did something."""
        did = False
        for node in self.graph.nodes:
            state = self.states[node.name]
            if stop.asked() or state.status == ENDED or state.error is not None or not self._may_step(state):
                continue
            try:
                has_work = self._has_work(state)
            except LakebedError as error:
                self._note_failure(state, error)
                continue
            if has_work:
                steps = state.steps
                self._step(state)
                did = did or state.steps > steps
        return did

    # --- a step --------------------------------------------------------------------------------------------------

    def _step(self, state: NodeState) -> None:
        """One step; whatever it raises belongs to its node alone."""
        state.status, state.started_ms = RUNNING, self.clock.now_ms()
        try:
            done = state.node.step()
        except Exception as error:  # noqa: BLE001 - a node that fails must not stop the others
            self._note_failure(state, error)
            return
        now_ms = self.clock.now_ms()
        state.took_ms = now_ms - state.started_ms
        state.not_before_ms = state.started_ms + state.node.pause_ms
        state.error, state.failures, state.status = None, 0, WAITING
        if done.way != "none":
            state.steps += 1
            state.inserted += done.inserted
            state.updated += done.updated
            state.deleted += done.deleted
            state.last = done
            self._tell(state, done)

    def _note_failure(self, state: NodeState, error: Exception) -> None:
        pause_ms = min(_FIRST_PAUSE_MS << min(state.failures, 10), _LONGEST_PAUSE_MS)
        is_new = state.error is None or str(state.error) != str(error)
        state.failures += 1
        state.error, state.status = error, FAILED
        state.not_before_ms = self.clock.now_ms() + pause_ms
        _log.info("%s failed %d times", state.node.name, state.failures, exc_info=error)
        if is_new:
            self._tell(state, error)

    def _tell(self, state: NodeState, what: Refreshed | Exception) -> None:
        with self._telling:
            self.told(state, what)

    def _begin(self) -> None:
        self._traces = {node.name: run for node in self.graph.nodes if (run := self.traced(node)) is not None}

    def _close(self) -> None:
        for name, run in self._traces.items():
            error = self.states[name].error
            run.complete() if error is None else run.fail(error)
        for node in self.graph.nodes:
            try:
                node.close()
            except Exception as error:  # noqa: BLE001 - the others have to be closed, too
                _log.warning("%s did not end well: %s", node.name, error)
