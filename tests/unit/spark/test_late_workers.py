"""Workers that did not answer Spark in time: what is tried again, how often, and what is said."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from lakebed.errors import InvalidData, LakebedError
from lakebed.spark.errors import cause_of, is_worker_late, translated_error
from lakebed.spark.late_workers import started, until_workers_come

# As Spark 4.3 told them.
STREAM = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python worker failed to connect back. "
    "SQLSTATE: XXKST\n\nJVM stacktrace:\norg.apache.spark.SparkException: Python worker failed to connect back.\n"
    "\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(PythonWorkerFactory.scala:268)\n"
    "Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back\n"
)
JOB = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 1) (localhost executor driver): java.net.SocketTimeoutException: Timed out while waiting for the Python "
    "worker to connect back after 60000 ms\n\tat org.apache.spark.api.python.PythonWorkerFactory"
)
LATE = [
    STREAM,
    JOB,
    "java.lang.IllegalStateException: Python daemon failed to launch worker.",
    "[STREAMING_PYTHON_RUNNER_INITIALIZATION_TIMEOUT_FAILURE] Streaming Runner initialization failed",
    "[CANNOT_OPEN_SOCKET] Can not open socket: tried to connect to ('127.0.0.1', 1), but an error occurred: timed out.",
]
NOT_LATE = [
    "[CANNOT_OPEN_SOCKET] Can not open socket: tried to connect to ('127.0.0.1', 1), but: Connection refused",
    "Python worker exited unexpectedly (crashed)",
    "[TABLE_OR_VIEW_NOT_FOUND] there is no such table",
]


class Pauses:
    """A clock that only notes."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Fails:
    """An action that fails so many times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left, self.error, self.calls = times, error, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.left:
            raise self.error
        return "done"


class Query:
    """A query that opens its sources for a few looks, and then runs or has failed."""

    def __init__(self, error: Exception | None, looks: int = 3) -> None:
        self._error, self._looks = error, looks

    @property
    def isActive(self) -> bool:  # noqa: N802 (Spark's names)
        """Whether it runs."""
        return self._looks > 0 or self._error is None

    @property
    def status(self) -> dict[str, Any]:
        """What it does."""
        self._looks -= 1
        if self._looks > 1:
            return {"message": "Initializing sources"}
        # Spark says that a query has failed before it says that it does not run any more.
        return {"message": f"Terminated with exception: {self._error}" if self._error else "Getting offsets from one"}

    def exception(self) -> Exception | None:
        """What was wrong."""
        return None if self.isActive else self._error


class Writer:
    """Starts the given queries, one after the other; an error in their place is raised by the start itself."""

    def __init__(self, *queries: Query | Exception) -> None:
        self.queries = list(queries)

    def start(self) -> Query:
        """The next one."""
        found = self.queries.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize("text", LATE)
def test_it_is_known_by_what_spark_says(text: str) -> None:
    """Also behind other errors; and it becomes an error of ours, without stacks, wherever errors are translated."""
    outer = ValueError("outer")
    outer.__cause__ = RuntimeError(text)
    assert is_worker_late(RuntimeError(text))
    assert is_worker_late(outer)
    for told in (cause_of(RuntimeError(text)), translated_error(RuntimeError(text), {})):
        assert isinstance(told, LakebedError)
        assert "the machine is too busy" in str(told)
        assert "\tat " not in str(told)


@pytest.mark.parametrize("text", NOT_LATE)
def test_other_failures_are_other_failures(text: str) -> None:
    """They are raised at once."""
    action, pauses = Fails(1, RuntimeError(text)), Pauses()
    with pytest.raises(RuntimeError):
        until_workers_come(action, pauses)
    assert (action.calls, pauses.seconds) == (1, [])


def test_an_action_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """With growing pauses, each told in one line."""
    action, pauses = Fails(3, RuntimeError(JOB)), Pauses()
    with caplog.at_level(logging.WARNING):
        assert until_workers_come(action, pauses) == "done"
    assert pauses.seconds == [1, 2, 4]
    assert caplog.records[0].getMessage() == (
        "a Python worker did not answer Spark in time, the machine is busy: trying again in 1 s (attempt 2 of 6)"
    )
    assert len(caplog.records) == 3
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """After some attempts there is an error of ours with the next step, which nobody takes for another such failure."""
    action = Fails(100, RuntimeError(JOB))
    with caplog.at_level(logging.ERROR), pytest.raises(LakebedError) as caught:
        until_workers_come(action, Pauses())
    assert action.calls == 6
    assert "same checkpoint" in caught.value.hint
    assert not is_worker_late(caught.value)
    assert caught.value.__suppress_context__


def test_what_we_say_ourselves_is_final() -> None:
    """An error of ours that came about by such a failure is not tried again."""
    ours = InvalidData("no", hint="no")
    ours.__cause__ = RuntimeError(JOB)
    with pytest.raises(InvalidData):
        until_workers_come(Fails(1, ours), Pauses())


@pytest.mark.parametrize("first", [Query(RuntimeError(STREAM)), RuntimeError(STREAM)], ids=["query", "start"])
def test_a_query_without_its_workers_is_started_again(first: Query | Exception) -> None:
    """Whether the query fails (a source) or its start (`foreachBatch` on Spark Connect); the new one is handed out."""
    good = Query(None)
    writer = Writer(first, good)
    assert started(writer, Pauses()) is good
    assert not writer.queries


def test_a_query_that_fails_otherwise_is_handed_out() -> None:
    """Its caller sees what is wrong as ever."""
    bad, pauses = Query(RuntimeError("something else")), Pauses()
    assert started(Writer(bad), pauses) is bad
    assert max(pauses.seconds) < 1


def test_a_query_that_never_gets_workers_is_given_up() -> None:
    """With an error of ours."""
    with pytest.raises(LakebedError, match="too busy"):
        started(Writer(*(Query(RuntimeError(STREAM)) for _ in range(6))), Pauses())
