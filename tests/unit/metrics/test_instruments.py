"""Who listens hears everything, who does not costs nothing, and nobody who listens can make work fail."""

import logging
import subprocess
import sys
import threading
from typing import Any

import pytest

import lakebed
from lakebed.errors import CommitConflict, InvalidArgument, OutcomeUnknown
from lakebed.metrics.board import _MOST_SERIES, Board
from lakebed.metrics.families import COMMIT_DURATION, FAMILIES, SCAN_FILES, STREAM_READ_LAG
from lakebed.metrics.instruments import Instrument, add_listener

Heard = list[tuple[Instrument, float, tuple[str, ...]]]


@pytest.fixture
def heard() -> Heard:
    """What a listener is told."""
    found: Heard = []
    lakebed.metrics.listen(lambda *told: found.append(told))
    return found


def test_without_a_listener_nothing_is_kept() -> None:
    """A block that nobody measures is not even timed: all of them share one object."""
    assert SCAN_FILES.timed("t") is COMMIT_DURATION.timed("t", "append")
    SCAN_FILES.tell(1, "t")
    lakebed.metrics.start()
    assert lakebed.metrics.snapshot()[SCAN_FILES.name] == []


def test_a_listener_hears_until_it_is_taken_away() -> None:
    """The instrument, the value and the labels."""
    found: list[Any] = []

    def listener(*told: Any) -> None:
        found.append(told)

    lakebed.metrics.listen(listener)
    lakebed.metrics.listen(listener)
    SCAN_FILES.tell(3, "t")
    lakebed.metrics.unlisten(listener)
    SCAN_FILES.tell(4, "t")
    assert found == [(SCAN_FILES, 3, ("t",))]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CommitConflict("lost", hint="again"), "conflict"),
        (OutcomeUnknown("who knows", hint="look"), "unknown"),
        (ValueError("x"), "failed"),
        (KeyboardInterrupt(), "failed"),
    ],
)
def test_blocks_that_fail_are_measured(heard: Heard, error: BaseException, outcome: str) -> None:
    """How they ended is a label, and the error goes on."""
    with pytest.raises(type(error)), COMMIT_DURATION.timed("t", "append"):
        raise error
    ((instrument, seconds, labels),) = heard
    assert instrument is COMMIT_DURATION
    assert labels == ("t", "append", outcome)
    assert 0 <= seconds < 60


def test_a_listener_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture, heard: Heard) -> None:
    """A write goes through, the other listeners hear of it, and the log says once what is wrong."""

    def broken(*told: Any) -> None:
        raise RuntimeError("no room")

    lakebed.metrics.listen(broken)
    with caplog.at_level(logging.WARNING, "lakebed.metrics"):
        table = lakebed.connect("memory://broken-listener").create_table("t", {"id": [1]})
        table.write({"id": [2]})
    assert table.count() == 2
    assert len(heard) > 5
    assert [record.getMessage() for record in caplog.records] == [
        "a listener of metrics failed, and may miss more: RuntimeError: no room"
    ]


def test_a_listener_may_use_a_lake_itself() -> None:
    """It is not told of its own work, which would never end."""
    diary = lakebed.connect("memory://diary").create_table("diary", {"name": "STRING"})
    add_listener(lambda instrument, value, labels: diary.write({"name": [instrument.name]}))
    SCAN_FILES.tell(1, "t")
    assert diary.to_arrow().to_pydict() == {"name": [SCAN_FILES.name]}


def test_many_threads_count_together() -> None:
    """No count is lost."""
    lakebed.metrics.start()

    def count() -> None:
        for _ in range(500):
            SCAN_FILES.tell(1, "t")
            COMMIT_DURATION.tell(0.002, "t", "append", "done")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = lakebed.metrics.snapshot()
    assert now[SCAN_FILES.name] == [{"table": "t", "value": 4000}]
    (commits,) = now[COMMIT_DURATION.name]
    assert commits["count"] == 4000
    assert commits["sum"] == pytest.approx(8.0)


def test_a_gauge_shows_the_last_value() -> None:
    """It does not add up."""
    lakebed.metrics.start()
    STREAM_READ_LAG.tell(7.5, "t")
    STREAM_READ_LAG.tell(0.5, "t")
    assert lakebed.metrics.snapshot()[STREAM_READ_LAG.name] == [{"table": "t", "value": 0.5}]


def test_very_many_tables_are_summed_up() -> None:
    """The first ones are kept apart, the rest is one series, and nothing is lost."""
    board = Board()
    for number in range(_MOST_SERIES + 10):
        board(SCAN_FILES, 1, (f"t{number}",))
    series = dict(board.read())[SCAN_FILES]
    assert len(series) == _MOST_SERIES + 1
    assert series["other",] == 10


def test_what_was_not_begun_can_not_be_looked_at() -> None:
    """The error says what to call; `stop` forgets, and may come twice."""
    with pytest.raises(InvalidArgument, match="start"):
        lakebed.metrics.snapshot()
    lakebed.metrics.start()
    lakebed.metrics.snapshot()
    lakebed.metrics.stop()
    lakebed.metrics.stop()
    with pytest.raises(InvalidArgument):
        lakebed.metrics.snapshot()


def test_names_are_those_that_tools_expect() -> None:
    """Units at the end, `_total` on what only grows; few labels, none of which can name a snapshot or a file."""
    names = [each.name for each in FAMILIES]
    assert len(set(names)) == len(names)
    for each in FAMILIES:
        assert each.name.startswith("lakebed_")
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert (each.unit == "s") == ("_seconds" in each.name)
        assert (each.unit == "By") == ("_bytes" in each.name)
        assert 1 <= len(each.labels) <= 3
        assert set(each.labels) <= {"table", "kind", "outcome", "source", "database", "action"}


CHILD = """
import os, threading, lakebed
from lakebed.metrics.families import SCAN_FILES
endpoint = lakebed.metrics.serve("127.0.0.1:0")
SCAN_FILES.tell(5, "t")
board = lakebed.metrics._boards[0]
held, go = threading.Event(), threading.Event()
def hold():
    with board._lock:
        held.set()
        go.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()  # while another thread holds the lock
if child == 0:
    SCAN_FILES.tell(1, "t")
    counts = lakebed.metrics.snapshot()[SCAN_FILES.name]
    os._exit(0 if counts == [{"table": "t", "value": 1}] else 3)
_, status = os.waitpid(child, 0)
go.set()
assert os.waitstatus_to_exitcode(status) == 0, status
child = os.fork()
if child == 0:
    import time
    time.sleep(30)
    os._exit(0)
try:
    endpoint.stop()
    lakebed.metrics.serve(endpoint.address).stop()  # the child does not hold the port
finally:
    os.kill(child, 9)
    os.waitpid(child, 0)
print("well")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_counts_for_itself() -> None:
    """It is not stopped by a lock that a thread of its parent held, begins at nothing, and lets the port go."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "well\n", done.stderr
