"""INSERTs in streaming mode: jobs in the background, exactly once, refused and failing by name."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE_S

import lakebed
from lakebed import Lake
from lakebed.errors import AlreadyExists, InvalidArgument, LakebedError, NotFound, Unsupported

STREAMING = "SET 'execution.runtime-mode' = 'streaming'; SET 'execution.checkpointing.interval' = '20 ms'"
TABLES = """
CREATE TABLE orders (id BIGINT, city STRING, v INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('bucket' = '1', 'changelog-producer' = 'lookup');
CREATE TABLE sums (city STRING, n BIGINT, v BIGINT, PRIMARY KEY (city) NOT ENFORCED) WITH ('bucket' = '1');
CREATE TABLE log (id BIGINT, v INT);
INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2);
"""
SUMS = "INSERT INTO sums SELECT city, count(*), sum(v) FROM orders GROUP BY city"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake in streaming mode with some tables, none of them followed yet."""
    lake = lakebed.connect(tmp_path / "lake")
    lake.sql(f"{STREAMING}; {TABLES}")
    yield lake
    for job in lake.jobs():
        job.stop()
    assert not lake.is_spark_started


def _rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.query(query).fetchall())


def _until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def _shown(lake: Lake) -> list[tuple[Any, ...]]:
    """Id, status and reason of each job, as SHOW JOBS tells them."""
    return [(row[0], row[2], row[5]) for row in lake.sql("SHOW JOBS").collect()]


def test_an_insert_goes_on_by_itself(lake: Lake) -> None:
    """The statement is back at once and names its job, which follows what comes, changes and goes."""
    started: Any = lake.sql(SUMS)
    job = started.job
    assert [tuple(row) for row in started.collect()] == [(job.id, "INSERT INTO default.sums", "RUNNING")]
    assert lake.jobs() == [job]
    _until(lambda: _rows(lake, "SELECT * FROM sums") == [("a", 1, 1), ("b", 1, 2)])
    lake.sql("INSERT INTO orders VALUES (3, 'a', 5), (2, 'c', 2)")
    _until(lambda: _rows(lake, "SELECT * FROM sums") == [("a", 2, 6), ("c", 1, 2)])
    assert _shown(lake) == [(job.id, "RUNNING", None)]
    assert job.wait(0) is False
    lake.sql(f"STOP JOB '{job.id}'")
    assert (job.status, job.is_active, job.wait(0)) == ("STOPPED", False, True)
    assert _shown(lake) == [(job.id, "STOPPED", None)]


def test_typed_again_it_goes_on_where_it_was(lake: Lake) -> None:
    """Under the name that its text gives it, also in another process: each row counts once."""
    lake.sql("CREATE TABLE totals (k INT, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1', "
             "'merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'sum')")  # fmt: skip
    text = "INSERT INTO totals SELECT 1, v FROM orders"
    first: Any = lake.sql(text)
    _until(lambda: _rows(lake, "SELECT v FROM totals") == [(3,)])
    first.job.stop()
    lake.sql("INSERT INTO orders VALUES (3, 'c', 10), (1, 'a', 2)")
    for other in (lake, lakebed.connect(lake.location)):
        other.sql(STREAMING)
        again: Any = other.sql(text.replace(" SELECT", "\n  SELECT"))
        assert again.job.id == first.job.id
        _until(lambda: _rows(lake, "SELECT v FROM totals") == [(14,)])
        again.job.stop()
    snapshot = lake.table("totals").latest_snapshot()
    assert snapshot is not None
    assert snapshot.id == 2


def test_the_same_twice_is_refused_while_it_runs(lake: Lake, tmp_path: Path) -> None:
    """In one session by name; two sessions send each row once; another lake has jobs of its own."""
    job = lake.sql(SUMS).job  # type: ignore[attr-defined]
    with pytest.raises(AlreadyExists, match=f"is running already, as job `{job.id}`"):
        lake.sql(SUMS)
    _source(lake, 3)
    with pytest.raises(AlreadyExists, match="is running already"):
        lake.sql(f"BEGIN STATEMENT SET; INSERT INTO log SELECT id, v FROM gen; {SUMS}; END;")
    assert lake.jobs() == [job]
    beside = lakebed.connect(lake.location)
    elsewhere = lakebed.connect(tmp_path / "other")
    elsewhere.sql(f"{STREAMING}; {TABLES}")
    for other in (beside, elsewhere):
        assert other.jobs() == []
        other.sql(f"{STREAMING}; {SUMS}")
        assert [each.id for each in other.jobs()] == [job.id]
    lake.sql("INSERT INTO orders VALUES (3, 'a', 5)")
    _until(lambda: _rows(lake, "SELECT * FROM sums") == [("a", 2, 6), ("b", 1, 2)])
    _until(lambda: _rows(elsewhere, "SELECT * FROM sums") == [("a", 1, 1), ("b", 1, 2)])
    for other in (beside, elsewhere):
        other.jobs()[0].stop()
    job.stop()
    assert lake.sql(SUMS).job.id == job.id  # type: ignore[attr-defined]


def test_a_set_is_one_job(lake: Lake) -> None:
    """Its INSERTs start and stop together; one whose source has ended is done, and a job of such is finished."""
    _source(lake, 30)
    both: Any = lake.sql(f"BEGIN STATEMENT SET; {SUMS}; INSERT INTO log SELECT id, 1 FROM gen; END;")
    assert both.job.id.startswith("set-")
    assert both.job.name == "INSERT INTO default.sums, default.log"
    _until(lambda: _rows(lake, "SELECT count(*) FROM log") == [(30,)] and both.job.rows == 32)
    assert [job.status for job in lake.jobs()] == ["RUNNING"]
    both.job.stop()
    alone: Any = lake.sql("INSERT INTO log SELECT id, 2 FROM gen WHERE id < 11")
    assert alone.job.wait(PATIENCE_S)
    assert alone.job.status == "FINISHED"
    assert _rows(lake, "SELECT v, count(*) FROM log GROUP BY v") == [(1, 30), (2, 10)]


def test_a_source_that_is_grouped_lands(lake: Lake) -> None:
    """As in a pipeline: by a node of the job."""
    _source(lake, 20)
    lake.sql("CREATE TABLE odd (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1')")
    job = lake.sql("INSERT INTO odd SELECT id % 2, count(*) FROM gen GROUP BY id % 2").job  # type: ignore[attr-defined]
    _until(lambda: _rows(lake, "SELECT * FROM odd") == [(0, 10), (1, 10)])
    assert sorted(state.node.kind for state in job.states.values()) == ["insert", "source"]


# --- what goes wrong under a job -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("CALL sys.rollback_to('default.orders', '', 1)", "`default.orders` can not be told"),
        ("DROP TABLE sums", "`default.sums` does not exist"),
        ("DROP TABLE orders", "`orders` does not exist"),
        ("ALTER TABLE orders RENAME COLUMN v TO w; INSERT INTO orders VALUES (4, 'x', 1)", "column `v`"),
    ],
)
def test_a_job_that_fails_says_why(lake: Lake, deed: str, said: str) -> None:
    """It shows as failed with the reason, which whoever waits for it gets; the session goes on."""
    lake.sql("INSERT INTO orders VALUES (3, 'b', 1)")
    job = lake.sql(SUMS).job  # type: ignore[attr-defined]
    _until(lambda: job.rows == 2)
    lakebed.connect(lake.location).sql(deed)
    if "DROP TABLE sums" in deed:
        lake.sql("INSERT INTO orders VALUES (5, 'b', 1)")
    _until(lambda: job.status == "FAILED")
    ((shown, status, why),) = _shown(lake)
    assert (shown, status) == (job.id, "FAILED")
    assert said in why
    with pytest.raises(LakebedError, match=said):
        job.wait()
    assert job.is_active
    lake.sql(f"STOP JOB '{job.id}'")


def test_changes_that_expired_are_named(lake: Lake) -> None:
    """A job that was stopped for too long can not know what it has missed."""
    job = lake.sql(SUMS).job  # type: ignore[attr-defined]
    _until(lambda: job.rows == 2)
    job.stop()
    for number in range(3, 6):
        lake.sql(f"INSERT INTO orders VALUES ({number}, 'b', 1)")
    lake.sql("CALL sys.expire_snapshots(`table` => 'default.orders', retain_max => 1, retain_min => 1)")
    again = lake.sql(SUMS).job  # type: ignore[attr-defined]
    _until(lambda: again.status == "FAILED")
    assert "has expired" in again.why
    assert "keep snapshots longer" in str(again.error)


def test_a_failure_that_passes_is_gone(lake: Lake) -> None:
    """A table that is made again gets all rows, and the job runs."""
    job = lake.sql(SUMS).job  # type: ignore[attr-defined]
    _until(lambda: job.rows == 2)
    created = lake.sql("SHOW CREATE TABLE sums").collect()[0][0]
    lake.sql("DROP TABLE sums; INSERT INTO orders VALUES (3, 'c', 1)")
    _until(lambda: job.status == "FAILED")
    lake.sql(created)
    _until(lambda: job.status == "RUNNING" and len(_rows(lake, "SELECT * FROM sums")) == 3)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("DELETE FROM orders WHERE id = 1", Unsupported, "DELETE is not for streaming mode"),
        ("UPDATE orders SET v = 1", Unsupported, "UPDATE is not for streaming mode"),
        ("INSERT OVERWRITE sums SELECT city, 1, 1 FROM orders", Unsupported, "INSERT OVERWRITE is not for streaming"),
        (
            "MERGE INTO orders t USING sums s ON t.city = s.city WHEN MATCHED THEN DELETE",
            Unsupported,
            "MERGE is not for streaming mode",
        ),
        ("CREATE TABLE x AS SELECT * FROM orders", Unsupported, "filled once"),
        ("INSERT INTO log SELECT id, v FROM orders", Unsupported, "only takes new ones"),
        ("INSERT INTO sums SELECT city, id, v FROM orders", InvalidArgument, "tell the rows of the query apart"),
        ("INSERT INTO orders SELECT * FROM orders", Unsupported, "reads the table that it writes"),
        ("INSERT INTO sums BY NAME SELECT city FROM orders", Unsupported, "BY NAME does not go on"),
        (
            "INSERT INTO sums SELECT city, 1, 1 FROM orders /*+ OPTIONS('scan.mode' = 'latest') */",
            Unsupported,
            "options",
        ),
        ("INSERT INTO nosuch SELECT * FROM orders", NotFound, "nosuch"),
        ("STOP JOB 'nosuch'", NotFound, "there is no job `nosuch`"),
    ],
)
def test_what_is_refused(lake: Lake, text: str, kind: type[LakebedError], said: str) -> None:
    """By name, before anything starts; what only batch mode does, with how to get there."""
    before = {name: lake.table(name).latest_snapshot() for name in lake.tables()}
    with pytest.raises(kind, match=said) as refused:
        lake.sql(text)
    if "streaming" in said:
        assert "SET 'execution.runtime-mode' = 'batch'" in refused.value.hint
    assert lake.jobs() == []
    assert {name: lake.table(name).latest_snapshot() for name in lake.tables()} == before


def test_what_has_an_end_is_done_at_once(lake: Lake) -> None:
    """Rows of VALUES, definitions, calls: as in batch mode, without a job."""
    lake.sql("INSERT INTO log VALUES (1, 1); INSERT INTO log SELECT 2, 2; CREATE TABLE more LIKE log")
    lake.sql("CALL sys.create_tag('default.log', 'x'); ALTER TABLE more ADD COLUMN z INT; DROP TABLE more")
    lake.sql("BEGIN STATEMENT SET; INSERT INTO log VALUES (3, 3); INSERT INTO log VALUES (4, 4); END;")
    assert len(_rows(lake, "SELECT * FROM log")) == 4
    assert lake.jobs() == []


# --- settings --------------------------------------------------------------------------------------------------------


def test_reset_brings_batch_mode_back(lake: Lake) -> None:
    """By its key, or all at once; jobs go on meanwhile."""
    job = lake.sql(SUMS).job  # type: ignore[attr-defined]
    for text in ("RESET 'execution.runtime-mode'", "RESET", "SET 'execution.runtime-mode' = 'batch'"):
        lake.sql(f"{STREAMING}; {text}")
        assert lake.sql("SET 'execution.runtime-mode'").collect()[0][1] == "batch"
        assert lake.sql("SELECT * FROM orders").count() == 2
    assert job.is_active
    lake.sql("DELETE FROM orders WHERE id = 1")
    _until(lambda: _rows(lake, "SELECT * FROM sums") == [("b", 1, 2)])


def test_the_interval_is_that_of_checkpoints(lake: Lake) -> None:
    """`execution.checkpointing.interval` in Flink's spellings, also in a pipeline; what is no duration is refused."""
    from lakebed.sql.settings import check_interval_ms

    for text, shown_ms in (("10s", 10_000), ("3 min", 180_000), ("500", 500), ("1 h", 3_600_000)):
        lake.sql(f"SET 'execution.checkpointing.interval' = '{text}'")
        assert check_interval_ms(lake) == shown_ms
    with pytest.raises(LakebedError, match="soon"):
        lake.sql("SET 'execution.checkpointing.interval' = 'soon'")
    slow: Any = lake.sql(SUMS)
    _until(lambda: slow.job.rows == 2)
    lake.sql("INSERT INTO orders VALUES (3, 'c', 1)")
    time.sleep(0.3)
    assert slow.job.rows == 2
    runner = lakebed.pipeline(lake, "SET 'execution.checkpointing.interval' = '7 s'").prepared()
    assert runner.interval_ms == 7000
    assert (
        lakebed.pipeline(lake, "SET 'execution.checkpointing.interval' = '7 s'").prepared(interval=2).interval_ms
        == 2000
    )


def test_settings_of_the_client(lake: Lake, recwarn: pytest.WarningsRecorder) -> None:
    """What is done anyway is taken; what is not done is said."""
    for mode in ("changelog", "TABLEAU"):
        lake.sql(f"SET 'sql-client.execution.result-mode' = '{mode}'")
    assert not recwarn.list
    for key, value in (("sql-client.execution.result-mode", "table"), ("table.exec.source.idle-timeout", "5 s")):
        lake.sql(f"SET '{key}' = '{value}'")
        assert f"`{key}` is a setting of Flink and has no effect" in str(recwarn.pop().message)


def test_a_program_may_end_with_jobs_running(lake: Lake) -> None:
    """Quietly: what was committed counts, and the rest is done next time."""
    code = (
        f"import lakebed, time\nlake = lakebed.connect({lake.location!r})\n"
        f"lake.sql({STREAMING!r})\nlake.sql({SUMS!r})\n"
        "while not lake.jobs()[0].rows: time.sleep(0.02)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(_rows(lake, "SELECT * FROM sums")) == 2


def _source(lake: Lake, rows: int) -> None:
    lake.sql(
        "CREATE TEMPORARY TABLE gen (id BIGINT, v INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
        f"'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{rows}')"
    )
