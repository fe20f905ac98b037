"""When nodes take their steps: order, pauses, failures that stay with their node, and the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from lakebed.errors import InvalidArgument, StorageError
from lakebed.pipelines.graph import Graph
from lakebed.pipelines.runner import ENDED, FAILED, NodeState, Runner
from lakebed.table.compact_follow import Stop
from lakebed.views.result import Refreshed


@dataclass
class Pretended:
    """A node that reads and writes versions kept in a dict, and does what a test wants besides."""

    name: str
    reads: tuple[str, ...] = ()
    tables: dict[str, int] = field(default_factory=dict)
    kind: str = "view"
    pause_ms: int = 0
    before: Callable[[], None] = lambda: None
    seen: dict[str, int] = field(default_factory=dict)
    steps: list[dict[str, int]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.name,)

    def _now(self) -> dict[str, int]:
        return {name: self.tables.get(name, 0) for name in self.reads}

    def has_news(self) -> bool:
        return self._now() != self.seen

    def step(self) -> Refreshed:
        now = self._now()
        self.before()
        self.tables[self.name] = self.tables.get(self.name, 0) + 1
        self.seen = now
        self.steps.append(now)
        return Refreshed(self.name, "incremental", "", inserted=1, snapshot=1)

    def behind_ms(self, now_ms: int) -> int | None:
        return None

    def is_over(self) -> bool:
        return False

    def says(self) -> str | None:
        return None

    def close(self) -> None:
        self.is_closed = True


def _runner(nodes: list[Pretended], tables: dict[str, int], told: Callable[..., None] | None = None) -> Runner:
    for node in nodes:
        node.tables = tables
    return Runner(Graph(nodes), lambda name: name in tables, 1, told or (lambda state, what: None))


def _run_until(runner: Runner, is_done: Callable[[], bool]) -> None:
    """Runs until something is so; the time limit of the tests is what ends it otherwise."""
    runner.run(Stop(is_done))


def test_each_comes_behind_those_it_reads() -> None:
    """A round of a chain that is written backwards brings what came at its head to its end."""
    tables = {"a": 1}
    nodes = [Pretended("d", ("c",)), Pretended("c", ("b",)), Pretended("b", ("a",))]
    runner = _runner(nodes, tables)
    assert runner.once(Stop.of(None))
    assert [node.name for node in runner.graph.nodes] == ["b", "c", "d"]
    assert [node.steps for node in nodes] == [[{"c": 1}], [{"b": 1}], [{"a": 1}]]
    assert all(node.is_closed for node in nodes)


def test_a_second_round_has_nothing_to_do() -> None:
    """Who has caught up takes no step until something changes."""
    tables = {"a": 1}
    nodes = [Pretended("b", ("a",))]
    runner = _runner(nodes, tables)
    runner.once(Stop.of(None))
    runner.once(Stop.of(None))
    assert len(nodes[0].steps) == 1


def test_a_circle_is_refused_with_its_way() -> None:
    """Nodes that wait for each other would never run."""
    with pytest.raises(InvalidArgument, match=r"in a circle: (a -> b -> a|b -> a -> b)"):
        Graph([Pretended("a", ("b",)), Pretended("b", ("a",))])


def test_two_of_a_name_are_refused() -> None:
    """Their state would be one."""
    with pytest.raises(InvalidArgument, match="`a` is made twice"):
        Graph([Pretended("a"), Pretended("a")])


def test_one_that_fails_leaves_the_others_alone_and_is_tried_again() -> None:
    """The failing one is told of once for each reason, and goes on when its cause is gone."""
    tables, failing = {"a": 1}, [3]

    def fail() -> None:
        if failing[0]:
            failing[0] -= 1
            raise StorageError("the disk is away", hint="wait")

    bad, good = Pretended("bad", ("a",), before=fail), Pretended("good", ("a",))
    heard: list[tuple[str, str]] = []
    runner = _runner([bad, good], tables, lambda state, what: heard.append((state.node.name, type(what).__name__)))
    _hurry(runner)
    _run_until(runner, lambda: bool(bad.steps) and bool(good.steps))
    assert heard.count(("bad", "StorageError")) == 1
    assert runner.states["bad"].error is None
    assert runner.states["bad"].failures == 0


def test_pauses_between_tries_grow_to_a_minute() -> None:
    """A source that is away for an hour is not asked thousands of times."""
    runner = _runner([Pretended("a")], {})
    state, pauses = runner.states["a"], []
    for _ in range(9):
        began = runner.clock.now_ms()
        runner._note_failure(state, StorageError("away", hint="wait"))
        pauses.append(round((state.not_before_ms - began) / 1000))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_once_says_that_one_failed_and_lets_the_rest_catch_up() -> None:
    """What a failed one would have made is simply not there."""

    def fail() -> None:
        raise StorageError("the disk is away", hint="wait")

    nodes = [Pretended("bad", ("a",), before=fail), Pretended("behind", ("bad",)), Pretended("good", ("a",))]
    runner = _runner(nodes, {"a": 1})
    assert not runner.once(Stop.of(None))
    assert {name: state.status for name, state in runner.states.items()} == {
        "bad": FAILED,
        "behind": "waiting",
        "good": "waiting",
    }
    assert runner.states["behind"].waits_for == "bad"
    assert not nodes[1].steps
    assert len(nodes[2].steps) == 1


def test_an_error_that_is_nobodys_stays_with_its_node() -> None:
    """Whatever is raised: a mistake in one node is no reason to stop the others."""

    def fail() -> None:
        raise ZeroDivisionError

    nodes = [Pretended("bad", ("a",), before=fail), Pretended("good", ("a",))]
    runner = _runner(nodes, {"a": 1})
    assert not runner.once(Stop.of(None))
    assert isinstance(runner.states["bad"].error, ZeroDivisionError)
    assert nodes[1].steps


def test_a_pause_is_kept_from_step_to_step() -> None:
    """Freshness of a minute means at most one step a minute."""
    tables = {"a": 1}
    node = Pretended("b", ("a",), pause_ms=60_000)
    runner = _runner([node], tables)
    looked = [0]

    def change() -> bool:
        tables["a"] += 1
        looked[0] += 1
        return looked[0] > 6

    _run_until(runner, change)
    assert len(node.steps) == 1


def test_none_starves_below_one_that_always_has_something_to_do() -> None:
    """A node waits for one step of those it reads from, also if the next one is due before that has ended."""
    tables = {"a": 1}

    def more() -> None:
        tables["a"] += 1

    always, below = Pretended("b", ("a",), before=more), Pretended("c", ("b",))
    last = Pretended("d", ("c",))
    runner = _runner([always, below, last], tables)
    _run_until(runner, lambda: len(last.steps) > 1 or len(always.steps) > 60)
    assert len(last.steps) > 1
    assert below.steps[0]["b"] >= 1


def test_to_stop_is_to_finish_the_step_that_has_begun() -> None:
    """Nothing is left half made, and nothing new begins."""
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go_on.wait()

    node = Pretended("b", ("a",), before=hold)
    runner, stop = _runner([node], {"a": 1}), threading.Event()
    running = threading.Thread(target=runner.run, args=(Stop.of(stop),))
    running.start()
    begun.wait()
    stop.set()
    go_on.set()
    running.join()
    assert len(node.steps) == 1
    assert node.is_closed


def test_all_over_is_the_end() -> None:
    """A pipeline whose nodes have all ended ends by itself."""
    node = Pretended("b", ("a",))
    node.is_over = lambda: bool(node.steps)  # type: ignore[method-assign]
    runner = _runner([node], {"a": 1})
    runner.run(Stop.of(None))
    assert runner.states["b"].status == ENDED


def _hurry(runner: Runner) -> None:
    """Lets failed nodes be tried again at once."""
    noted = runner._note_failure

    def note(state: NodeState, error: Exception) -> None:
        noted(state, error)
        state.not_before_ms = 0

    runner._note_failure = note  # type: ignore[method-assign]
