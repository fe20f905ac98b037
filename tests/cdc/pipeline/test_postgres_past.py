"""A sync of a real PostgreSQL that keeps the past, while rows and columns change, and batches die and are repeated."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.application import Application
from tests.cdc.pipeline.dialects import Postgres
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.pipeline.past import PAST, keep_locally, past_differences
from tests.cdc.pipeline.workload import Workload
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.cdc.sources.postgres.names import parse_lsn
from lakebed.errors import LakebedError


def _keep(database: Any, place: Path, seed: int, rounds: int, steps: int) -> None:
    mode = ("peek", "replication")[seed % 2]
    options = {"url": database.url, "slot": database.name, "discovery_ms": 100, "mode": mode}
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        keep_locally(workload, place, seed, rounds, steps, "postgres", parse_lsn, source_options=options)


def test_the_past_of_any_workload(database: Any, tmp_path: Path) -> None:
    """Rows and columns of every kind change: newest rows, current versions, marks and audit agree with the database."""
    _keep(database, tmp_path, seed=117, rounds=1, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 120))
def test_the_past_of_any_workload_for_long(any_database: Any, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _keep(any_database, tmp_path, seed, rounds=4, steps=25)


_TRIGGER = """
CREATE TABLE told (n bigserial PRIMARY KEY, op text, former jsonb, latter jsonb, transaction text);
CREATE TABLE t (id int PRIMARY KEY, v int, note text);
ALTER TABLE t ALTER COLUMN note SET STORAGE EXTERNAL;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO told (op, former, transaction)
        SELECT 'DELETE', to_jsonb(t), txid_current()::text FROM t ORDER BY id;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO told (op, latter, transaction) VALUES (TG_OP, to_jsonb(NEW), txid_current()::text);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO told (op, former, transaction) VALUES (TG_OP, to_jsonb(OLD), txid_current()::text);
    ELSE
        INSERT INTO told (op, former, latter, transaction)
        VALUES (TG_OP, to_jsonb(OLD), to_jsonb(NEW), txid_current()::text);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER rows AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER everything BEFORE TRUNCATE ON t EXECUTE FUNCTION tell();
"""
_DOINGS = (
    "INSERT INTO t SELECT i, {r}, repeat('x{r}', 2000) FROM generate_series({k}, {k} + 2) i ON CONFLICT DO NOTHING",
    "UPDATE t SET v = {r} WHERE id = {k}",
    "UPDATE t SET note = NULL WHERE id = {k}",
    "UPDATE t SET id = id + 100, v = {r} WHERE id = {k} AND NOT EXISTS (SELECT FROM t WHERE id = {k} + 100)",
    "DELETE FROM t WHERE id % 7 = {k} % 7 AND id < 50",
    "UPDATE t SET v = {r}",
    "TRUNCATE t",
)


def test_an_audit_is_what_triggers_of_the_server_have_seen(database: Any, tmp_path: Path) -> None:
    """Every change with its transaction, in its order, with old and new rows, although the log has old keys alone."""
    rng = random.Random(3)
    database.execute(_TRIGGER)
    database.execute("INSERT INTO t SELECT i, i, repeat('y', 3000) FROM generate_series(1, 20) i", "TRUNCATE told")
    sync = LocalSync(
        lakebed.connect(tmp_path / "warehouse"),
        "postgres",
        tmp_path / "checkpoint",
        seed=3,
        dies=0.03,
        source_options={"url": database.url, "slot": database.name},
        excluding="told",
        audit=True,
    )
    try:
        assert not sync.catch_up(lambda: _untold(tmp_path, database))
        for _ in range(25):
            weights = [20, 20, 10, 10, 10, 5, 2]
            doings = rng.choices(_DOINGS, weights, k=rng.randrange(1, 6))
            done = [each.format(k=rng.randrange(20), r=rng.randrange(1000)) for each in doings]
            database.execute("; ".join(["BEGIN", *done, "COMMIT" if rng.random() < 0.9 else "ROLLBACK"]))
            if rng.random() < 0.4:
                sync.step()
        assert not sync.catch_up(lambda: _untold(tmp_path, database))
    finally:
        sync.stop()


def _untold(place: Path, database: Any) -> list[str]:
    expected: list[tuple[Any, ...]] = []
    seen = database.query("SELECT op, former, latter, transaction FROM told ORDER BY n")
    for op, former, latter, transaction in seen:
        moves = op == "UPDATE" and former["id"] != latter["id"]
        words = ("-D", "+I") if moves or op != "UPDATE" else ("-U", "+U")
        for word, row in zip(words, (former, latter), strict=True):
            if row is not None:
                expected.append((transaction, word, row["id"], row["v"], row["note"]))
    try:
        table = lakebed.connect(place / "warehouse").table("lk.t_changes")
    except LakebedError as error:
        return [error.message]
    rows = table.to_arrow().to_pylist()
    rows.sort(key=lambda row: (parse_lsn(row["position"]), row["change_number"], row["op"] in ("+I", "+U"), row["id"]))
    mine = [(row["transaction_id"], row["op"], row["id"], row["v"], row["note"]) for row in rows]
    return [] if mine == expected else [f"{len(mine)} changes instead of {len(expected)}"]


@pytest.mark.spark
def test_the_past_by_tasks_of_spark(database: Any, spark: Any, tmp_path: Path) -> None:
    """Every batch is written by tasks: they find what rows were, and the past agrees with the database."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    options = {"url": database.url, "slot": database.name, "discovery_ms": 500}
    with database.connect() as connection:
        workload = Workload(Postgres(connection), 5)
        run = lakebed.cdc.sync(
            lake,
            "postgres",
            "lk",
            source_options=options,
            checkpoint=tmp_path / "checkpoint",
            trigger="200 milliseconds",
            audit=True,
            here_bytes=-1,
            **PAST,
        )
        try:
            for _ in range(2):
                deadline = time.monotonic() + PATIENCE_S
                while (wrong := past_differences(lake, workload, parse_lsn)) and time.monotonic() < deadline:
                    run.check()
                    time.sleep(0.5)
                assert not wrong, (wrong[:5], workload.done[-40:])
                workload.round(20)
        finally:
            run.stop()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sync_that_is_killed_keeps_the_whole_past(database: Any, tmp_path: Path, seed: int) -> None:
    """`kill -9` of the whole application while rows and columns change; the next one loses no version."""
    rng = random.Random(seed)
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:{database.server.user}:{database.server.password}\n")
    passfile.chmod(0o600)
    settings = database.settings(discovery_ms=500)
    options = {name: getattr(settings, name) for name in ("host", "port", "database", "user", "slot", "discovery_ms")}
    arguments = {"source": "postgres", "database": "lk", "source_options": {**options, "passfile": str(passfile)}}
    application = Application(tmp_path, {**arguments, **PAST, "audit": True, "here_bytes": -1 if seed % 2 else 1 << 24})
    lake = lakebed.connect(tmp_path / "warehouse")
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        for kill in range(int(os.environ.get("LAKEBED_TEST_KILLS", "10"))):
            workload.round(10, with_ddl=kill % 2 == 0)
            application.run_until_death(rng)
        application.run_until(lambda: past_differences(lake, workload, parse_lsn))
