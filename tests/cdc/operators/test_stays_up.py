"""Faults that pass: a server that restarts or is away, a connection that is cut, a password that is changed.

The sync goes on by itself, says what it waits for, and what would fail again in the same way is not tried again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.postgres.following import Follower

import lakebed
from lakebed.cdc.patience import Patience, is_passing, span_seconds
from lakebed.cdc.progress import ProgressBoard
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.start import SyncRun
from lakebed.errors import AccessDenied, FileMissing, InvalidArgument, LakebedError, NotFound, StorageError
from lakebed.testing.postgres_server import PostgresServer, available_versions

_AWAY = StorageError("the server can not be reached", hint="start it")


@pytest.fixture(scope="module", params=available_versions()[-1:] or [None])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of its own, which may be stopped."""
    if request.param is None:
        pytest.skip("no PostgreSQL is installed")
    with PostgresServer(request.param) as server:
        server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE ROLE reader LOGIN SUPERUSER PASSWORD 'a'")
        yield server


# --- the server ------------------------------------------------------------------------------------------------------


def test_a_server_that_is_stopped_need_not_wait_for_us(server: PostgresServer, tmp_path: Path) -> None:
    """Changes that we have and did not commit yet would hold back the shutdown for a minute; nothing is lost by it."""
    follower = Follower(PostgresSettings.of(server.url, slot="stop", mode="replication"), tmp_path)
    follower.follow()
    server.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) g")
    stream = follower.planner._replication(follower.offset.lsn if follower.offset else 0)
    while not stream.has_changes(follower.offset.lsn if follower.offset else 0):
        time.sleep(0.01)
    begin = time.monotonic()
    server.stop()
    took_s = time.monotonic() - begin
    server.start()
    server.execute("INSERT INTO t VALUES (1000, 'later')")
    follower.follow()
    follower.compare()
    follower.planner.stop()
    assert took_s < 20


def test_a_connection_that_is_cut_is_made_anew(server: PostgresServer, tmp_path: Path) -> None:
    """Whoever ends our connections in the server only makes us connect again."""
    follower = Follower(PostgresSettings.of(server.url, slot="cut", mode="replication"), tmp_path)
    follower.follow()
    for number in range(2000, 2003):
        server.execute(
            f"INSERT INTO t VALUES ({number}, 'cut')",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lakebed cut%'",
        )
        follower.follow()
    follower.compare()
    follower.planner.stop()


def test_a_password_file_is_read_again(server: PostgresServer, tmp_path: Path) -> None:
    """A password that was changed in the server and in the file lets the same sync go on."""
    passfile = tmp_path / "pgpass"

    def write(password: str) -> None:
        passfile.write_text(f"*:*:*:reader:{password}\n")
        passfile.chmod(0o600)

    write("a")
    url = f"postgresql://reader@127.0.0.1:{server.port}/{server.database}"
    settings = PostgresSettings.of(url, slot="secret", mode="replication", passfile=str(passfile), wait_ms=500)
    follower = Follower(settings, tmp_path)
    follower.follow()
    server.execute(
        "ALTER ROLE reader PASSWORD 'b'",
        "INSERT INTO t VALUES (3000, 'secret')",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lakebed secret%'",
    )
    with pytest.raises(AccessDenied) as caught:
        follower.follow()
    assert is_passing(caught.value)
    write("b")
    follower.restart()  # as `wait` does it, with the query
    follower.follow()
    follower.compare()
    follower.planner.stop()


# --- how long it is waited for -----------------------------------------------------------------------------------


class _Clock:
    """A time that only passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_and_a_success_gives_all_patience_back() -> None:
    """From half a second up to half a minute; the end is counted from the first failure."""
    clock = _Clock()
    patience = Patience(100.0, clock)
    pauses = []
    while patience.endures(_AWAY):
        assert patience.again_at is not None
        pauses.append(patience.again_at - clock.now)
        clock.now = patience.again_at
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 8.5]
    patience.succeeded()
    assert patience.endures(_AWAY)
    assert patience.again_at == clock.now + 0.5


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (_AWAY, True),
        (AccessDenied("no", hint="password"), True),
        (FileMissing("gone", hint="restore it"), False),
        (NotFound("the slot is missing", hint="copy again"), False),
        (InvalidArgument("wrong", hint="correct it"), False),
        (ValueError("a fault of ours"), False),
    ],
)
def test_what_passes(error: Exception, passes: bool) -> None:
    """Only what may work the next time is tried again."""
    assert is_passing(error) is passes
    assert Patience(10.0).endures(error) is passes
    assert not Patience(0.0).endures(error)


def test_spans() -> None:
    """As people write them; anything else is refused."""
    assert [span_seconds(text) for text in (None, "30 seconds", "1.5 minutes", "2 hours", "1 day", "Forever")] == [
        0.0, 30.0, 90.0, 7200.0, 86400.0, float("inf"),
    ]  # fmt: skip
    with pytest.raises(InvalidArgument, match="no span of time"):
        span_seconds("soon")


class _Query:
    """A query that fails, or goes on for ever, or ends."""

    def __init__(self, failure: Exception | None, *, ends: bool = True) -> None:
        self._failure, self._ends = failure, ends
        self.isActive = failure is None and not ends
        self.status = {"isTriggerActive": False}

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        if self._failure is not None:
            raise self._failure
        return self._ends

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.isActive = False


class _Parts:
    """Source and pipeline of a run, as far as it asks them."""

    failure = None
    labels = ("test", "lk")
    probes: list[LakebedError]

    def __init__(self, *probes: LakebedError) -> None:
        self.probes = list(probes)

    def probe(self) -> None:
        if self.probes:
            raise self.probes.pop(0)

    def close(self, **_: Any) -> None:
        pass


def _run(queries: list[_Query], parts: _Parts, most_s: float = 60.0) -> SyncRun:
    first, *later = queries
    again = iter(later)
    patience = Patience(most_s)
    run: Any = SyncRun(first, parts, parts, ProgressBoard(), None, lambda: next(again), patience)  # type: ignore[arg-type, return-value]
    return run  # type: ignore[no-any-return]


def test_a_query_that_fails_is_started_again() -> None:
    """Once the source answers: until then nothing is started."""
    run = _run([_Query(_AWAY), _Query(_AWAY), _Query(None)], _Parts(_AWAY))
    assert run.wait(0.01) is False
    assert run.is_active
    assert run.trouble == _AWAY.message
    lakebed.metrics.start()
    try:
        assert run.wait() is True
        counted = lakebed.metrics.snapshot()["lakebed_cdc_reconnects_total"]
    finally:
        lakebed.metrics.stop()
    assert counted == [{"source": "test", "database": "lk", "value": 2}]


def test_what_does_not_pass_ends_the_run() -> None:
    """With its own reason, also after others that did."""
    lost = NotFound("the slot is missing", hint="copy again")
    with pytest.raises(NotFound, match="slot is missing"):
        _run([_Query(_AWAY), _Query(lost)], _Parts()).wait()
    with pytest.raises(StorageError, match="can not be reached"):
        _run([_Query(_AWAY)], _Parts(), most_s=0.0).wait()


def test_a_run_that_waits_can_be_stopped() -> None:
    """It need not find the source again for that."""
    run = _run([_Query(_AWAY)], _Parts())
    assert run.wait(0.01) is False
    run.stop()
    assert not run.is_active
