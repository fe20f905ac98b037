"""The operators' tools: check, status, pause, resume, resync, verify, drop, and the lock that keeps two syncs apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.operators.test_parked import Office

from lakebed.cdc.checkpoint import CheckpointLock, SyncRecord, is_paused, is_worked_on
from lakebed.cdc.operate import status_of
from lakebed.cdc.progress import SyncProgress
from lakebed.cdc.verify import verify
from lakebed.cli.cdc_progress import ProgressLines, headline
from lakebed.cli.main import main
from lakebed.errors import AlreadyExists


@pytest.fixture
def office(database: Any, tmp_path: Path) -> Iterator[Office]:
    """A sync of two tables that parks."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY, v numeric)", "CREATE TABLE b (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO a SELECT g, g FROM generate_series(1, 300) g", "INSERT INTO b VALUES (1, 'x')")
    office = Office(database, tmp_path)
    office.catch_up("a", "b")
    yield office
    office.sync.stop()


def _cdc(office: Office, *words: str, capsys: Any) -> tuple[int, dict[str, Any], str]:
    """How a command ended, what it said as JSON, and on the error stream."""
    place = ["--warehouse", str(office.place / "warehouse"), "--format", "json"]
    where = ["--checkpoint", str(office.place / "cp")] if words[0] != "check" else []
    code = main([*place, "cdc", *words, *where])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {}, said.err


# --- check --------------------------------------------------------------------------------------------------------


def test_check_names_all_problems_at_once_and_its_script_repairs_them(
    database: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its statement; after the script has run, nothing stands against it."""
    database.execute(
        "DROP ROLE IF EXISTS poor",
        "CREATE ROLE poor LOGIN PASSWORD 'p'",
        "CREATE TABLE good (id int PRIMARY KEY)",
        "CREATE TABLE mute (id int PRIMARY KEY)",
        "ALTER TABLE mute REPLICA IDENTITY NOTHING",
        "CREATE TABLE bare (id int)",
        "INSERT INTO good SELECT generate_series(1, 100)",
        "ANALYZE good",
        "CREATE PUBLICATION lakebed FOR TABLE good WITH (publish = 'insert')",
    )
    monkeypatch.setenv("POOR_PASSWORD", "p")
    url = database.url.replace("shop:shop@", "poor@")
    words = ["--format", "json", "cdc", "check", "postgres", url, "--password-env", "POOR_PASSWORD"]
    words += ["--excluding", "bare", "--dry-run"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    said = " ".join(each["problem"] for each in found["problems"])
    for part in ("replication stream", "leaves out", "REPLICA IDENTITY NOTHING", "may not read table `public.good`"):
        assert part in said
    for _ in range(2):  # what is repaired may show what stood behind it
        database.execute(*(each["sql"] for each in found["problems"]))
        main(words)
        found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    assert {each["table"]: each["rows"] for each in found["tables"]}["public.good"] == 100
    assert database.query("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'lakebed'") == [(0,)]


# --- status, pause, resume, resync, drop ------------------------------------------------------------------------------


def test_a_parked_table_and_its_way_back(office: Office, capsys: Any) -> None:
    """Status finds fault, names the one command, and that command brings the table back."""
    code, said, _ = _cdc(office, "status", capsys=capsys)
    assert (code, said["state"], said["slot_status"], said["parked"]) == (1, "stopped", "reserved", {})
    assert said["kept_log_bytes"] >= 0
    office.database.execute("INSERT INTO a VALUES (1000, 1e30)", "INSERT INTO b VALUES (2, 'y')")
    office.until_parked("a")
    code, said, _ = _cdc(office, "status", capsys=capsys)
    assert (code, list(said["parked"])) == (1, ["lk.a"])
    assert "id=1000" in said["parked"]["lk.a"]["why"]
    assert _cdc(office, "resume", "b", capsys=capsys)[0] == 2  # not parked
    office.database.execute("DELETE FROM a WHERE id = 1000")
    code, said, _ = _cdc(office, "resume", "a", capsys=capsys)
    assert (code, said["copied_anew"]) == (0, [f"{office.database.name}.public.a"])
    office.catch_up("a", "b")
    assert _cdc(office, "status", capsys=capsys)[1]["parked"] == {}


def test_resync_repairs_what_somebody_did_in_the_lake(office: Office, capsys: Any) -> None:
    """Rows that were deleted or added there are as in the database afterwards."""
    table = office.lake.table("lk.b")
    table.write([{"id": 1, "v": "x", "kind": "-D"}], row_kind="kind")
    table.write([{"id": 77, "v": "stray"}])
    code, _, _ = _cdc(office, "resync", "lk.b", capsys=capsys)
    assert code == 0
    office.catch_up("b")
    assert _cdc(office, "resync", "lk.c", capsys=capsys)[0] == 2


def test_pause_and_resume(office: Office, capsys: Any) -> None:
    """A flag beside the checkpoint, which the running command looks at."""
    assert _cdc(office, "pause", capsys=capsys)[0] == 0
    assert is_paused(str(office.place / "cp"))
    assert _cdc(office, "status", capsys=capsys)[1]["state"] == "paused"
    assert _cdc(office, "resume", capsys=capsys)[0] == 0
    assert not is_paused(str(office.place / "cp"))


def test_drop_asks_first_and_leaves_nothing_behind(office: Office, capsys: Any) -> None:
    """Slot, publication and checkpoint are gone; the tables of the lake stay."""
    office.sync.stop()
    code, _, error = _cdc(office, "drop", capsys=capsys)
    assert code == 2
    assert "--yes" in error
    code, said, _ = _cdc(office, "drop", "--yes", capsys=capsys)
    assert code == 0
    assert len(said["done"]) == 3
    assert office.database.query("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == [
        (0,)
    ]
    assert office.database.query("SELECT count(*) FROM pg_publication") == [(0,)]
    assert not (office.place / "cp").exists()
    assert len(office.rows("a")) == 300


def test_a_source_that_does_not_answer(office: Office) -> None:
    """The status says so instead of failing: it is asked for when something is wrong."""
    record = SyncRecord.read(str(office.place / "cp"))
    settings = json.loads(record.options["settings"]) | {"port": 1}
    away = SyncRecord(
        record.checkpoint, record.source, record.database, record.options | {"settings": json.dumps(settings)}, 0
    )
    status = status_of(away)
    assert "can not be reached" in status.trouble
    assert not status.is_well


# --- lock ---------------------------------------------------------------------------------------------------------


def test_two_syncs_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    """The second is refused by name; a holder that was killed holds nothing."""
    place = str(tmp_path / "cp")
    script = (
        "import sys, time; from lakebed.cdc.checkpoint import CheckpointLock\n"
        "lock = CheckpointLock.take(sys.argv[1]); print(1, flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", script, place], stdout=subprocess.PIPE, env=os.environ)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(AlreadyExists, match=f"process {other.pid}"):
        CheckpointLock.take(place)
    assert is_worked_on(place)
    other.kill()
    other.wait()
    other.stdout.close()
    assert not is_worked_on(place)
    lock = CheckpointLock.take(place)
    assert lock is not None
    with pytest.raises(AlreadyExists):
        CheckpointLock.take(place)
    lock.is_used = lambda: False  # its query has ended
    again = CheckpointLock.take(place)
    assert again is not None
    again.release()
    assert not is_worked_on(place)
    assert CheckpointLock.take("s3://bucket/cp") is None


# --- verify -------------------------------------------------------------------------------------------------------


@contextmanager
def followed(office: Office) -> Iterator[None]:
    """The sync goes on in the background."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            if not office.sync.step():
                time.sleep(0.02)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_verify_finds_what_was_planted_and_nothing_else(office: Office, capsys: Any) -> None:
    """20 differences of every kind, while rows around them change all the time; none before they are planted."""
    office.sync._dies = 0.0
    record = SyncRecord.read(str(office.place / "cp"))
    warehouse = str(office.place / "warehouse")
    is_over = threading.Event()

    def write() -> None:
        with office.database.connect() as connection:
            number = 0
            while not is_over.is_set():
                number += 1
                connection.execute("UPDATE a SET v = v + 1 WHERE id %% 3 = %s", [number % 3])
                connection.execute("INSERT INTO a VALUES (%s, 0) ON CONFLICT DO NOTHING", [10_000 + number])
                connection.execute("DELETE FROM a WHERE id = %s", [10_000 + number - 5])
                time.sleep(0.05)

    with followed(office):
        writer = threading.Thread(target=write)
        writer.start()
        try:
            found = verify(office.lake, warehouse, record)
        finally:
            is_over.set()
            writer.join()
    assert {each.table: each.differences for each in found} == {"lk.a": [], "lk.b": []}
    office.catch_up("a", "b")
    table = office.lake.table("lk.a")
    table.write([{"id": number, "v": 0, "kind": "-D"} for number in range(1, 8)], row_kind="kind")
    table.write([{"id": number, "v": -1} for number in range(100, 107)])
    table.write([{"id": number, "v": 0} for number in range(5000, 5006)])
    with followed(office):
        (found_a,) = verify(office.lake, warehouse, record, ["a"])
        assert len(found_a.differences) == 20
        kinds = [sum(word in each for each in found_a.differences) for word in ("missing", "differs", "lake only")]
        assert kinds == [7, 7, 6]
        code, said, _ = _cdc(office, "verify", "a", "--repair", capsys=capsys)
        assert (code, len(said["tables"][0]["differences"])) == (1, 20)
    office.catch_up("a", "b")


# --- lines ----------------------------------------------------------------------------------------------------------


def test_lines_where_there_is_no_terminal(capsys: Any) -> None:
    """One at once, one for each change of state, one for each interval in which something happened."""
    now = [0.0]
    lines = ProgressLines(None, lambda: now[0])

    class _Run:
        progress = SyncProgress()

    run: Any = _Run()

    def told(seconds: float, **what: Any) -> list[str]:
        now[0] += seconds
        run.progress = SyncProgress(**what)
        lines.tell(run)
        return [line[9:] for line in capsys.readouterr().err.splitlines()]

    assert told(0) == [headline(SyncProgress())]
    assert told(1, phase="copy") == []  # too early to look again
    assert told(2, phase="copy", batches=1)[0].startswith("copy")
    assert told(5, phase="copy", batches=2) == []
    assert told(10, phase="copy", batches=3)[0].startswith("copy")
    assert told(3, phase="stream", trouble="db is away") == ["waiting: db is away"]
    assert told(60, phase="stream", trouble="db is away") == []
    assert told(3, phase="stream", batches=3)[0].startswith("going on: stream")
    assert told(3, phase="stream", batches=3, parked={"lk.a": "why"})[0].startswith("parked: lk.a: why")
    assert told(3, phase="stream", batches=3) == ["lk.a follows again"]
