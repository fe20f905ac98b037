"""What a sync makes at a PostgreSQL, and what it does not: patterns, secrets, errors before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.cdc.envelope import ROWS, SCHEMA, SourceName
from lakebed.cdc.sources.postgres import PostgresSource
from lakebed.cdc.sources.postgres.discover import SchemaNotice
from lakebed.cdc.sources.postgres.planner import LogPiece, StreamPlanner, read_piece
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.errors import LakebedError

_SECRET = "S3cret:word/%"


@pytest.fixture
def keeper(database: Any) -> Any:
    """A user whose password is no word that stands anywhere else."""
    name = f"keeper_{database.name}"
    database.execute(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{_SECRET}'")
    yield {"url": database.url, "slot": database.name, "user": name, "password": _SECRET}
    database.execute("DROP PUBLICATION IF EXISTS lakebed", f"DROP ROLE {name}")


def _published(database: Any) -> list[str]:
    rows = database.query("SELECT schemaname || '.' || tablename FROM pg_publication_tables ORDER BY 1")
    return [name for (name,) in rows]


def _sync(database: Any, place: Path, **more: Any) -> LocalSync:
    lake = lakebed.connect(place / "warehouse")
    options = {"url": database.url, "slot": database.name, "discovery_ms": 0, "mode": "peek", "schemas": ".*"}
    source = more.pop("source", "postgres")
    return LocalSync(lake, source, place / "checkpoint", **({"source_options": options} | more))


@pytest.mark.parametrize(
    "patterns",
    [
        {"including": r"{database}\.public\.(orders|lines.*)"},
        {"excluding": "secret", "excluding_databases": r"{database}\.elsewhere"},
    ],
)
def test_only_what_is_synced_is_published(database: Any, tmp_path: Path, patterns: dict[str, str]) -> None:
    """The server does not decode tables that the sync leaves out; new ones that match are published as they come."""
    database.execute("CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.other (id int PRIMARY KEY)")
    for name in ("orders", "lines", "secret"):
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    given = {name: pattern.format(database=database.name) for name, pattern in patterns.items()}
    sync = _sync(database, tmp_path, **given)
    assert _published(database) == ["public.lines", "public.orders"]
    database.execute("CREATE TABLE lines2 (id int PRIMARY KEY)", "INSERT INTO lines2 VALUES (7)")
    lake = lakebed.connect(tmp_path / "warehouse")
    wrong = sync.catch_up(lambda: [] if lake.has_table("lk.lines2") else ["lines2 is not there"])
    sync.stop()
    assert wrong == []
    assert lake.table("lk.lines2").to_arrow()["id"].to_pylist() == [7]
    assert _published(database) == ["public.lines", "public.lines2", "public.orders"]


def test_patterns_reach_a_source_that_was_made_before(database: Any, tmp_path: Path) -> None:
    """The same for a source that is passed as an object."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    source = PostgresSource(database.url, slot=database.name)
    _sync(database, tmp_path, source=source, including="a", source_options=None).stop()
    assert _published(database) == ["public.a"]


def test_the_password_is_in_no_file(database: Any, keeper: Any, tmp_path: Path) -> None:
    """Neither in snapshots and schemas, nor beside the checkpoint."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    sync = _sync(database, tmp_path, source_options=keeper)
    lake = lakebed.connect(tmp_path / "warehouse")
    assert sync.catch_up(lambda: [] if lake.table("lk.t").to_arrow().num_rows == 1 else ["empty"]) == []
    sync.stop()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if _SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("spoil", "given"),
    [
        (lambda _: None, {"password": "wrong" + _SECRET}),
        (lambda _: None, {"user": "nobody_such"}),
        (lambda _: None, {"database": "no_such_database"}),
        (lambda database: database.execute("CREATE TABLE u (n int)"), {"tables_without_key": "fail"}),
        (lambda database: database.execute("CREATE TABLE u (id int PRIMARY KEY, p point)"), {}),
        (lambda database: database.execute("ALTER TABLE t REPLICA IDENTITY NOTHING"), {}),
        (lambda _: None, {"including": "nothing"}),
        (lambda _: None, {"slot": "No-Slot"}),
    ],
    ids=["password", "user", "database", "no key", "type", "identity", "no table", "slot"],
)
def test_nothing_is_made_by_a_sync_that_can_not_work(
    database: Any, keeper: Any, tmp_path: Path, spoil: Callable[[Any], None], given: dict[str, str]
) -> None:
    """An error with its repair, and no slot, publication, table or file is left; the password is not shown."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    spoil(database)
    with pytest.raises(LakebedError) as caught:
        _sync(database, tmp_path, source_options={**keeper, **given})
    assert caught.value.hint
    assert _SECRET not in f"{caught.value!r} {caught.value}"
    assert database.query("SELECT slot_name FROM pg_replication_slots WHERE database = %s", database.name) == []
    assert database.query("SELECT pubname FROM pg_publication") == []
    assert list(tmp_path.iterdir()) == []


def test_what_was_seen_comes_before_the_rows_that_need_it(database: Any, tmp_path: Path) -> None:
    """A description that the catalogue told stands between rows that were committed before and after it was seen."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    settings = database.settings(mode="peek", copy=False)
    state = SourceState(str(tmp_path / "state"))
    planner = StreamPlanner(settings, state)
    start = planner.initial()
    positions = []
    for number in range(3):
        database.execute(f"INSERT INTO t VALUES ({number})", f"INSERT INTO u VALUES ({number})")
        positions.append(database.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0][0])
    notices = tuple(
        SchemaNotice(int(lsn), SourceName(database.name, "public", "t"), '{"columns":[]}') for lsn in positions[:2]
    )
    piece = LogPiece(start.lsn, int(positions[2]) + 1, None, {}, notices)
    told: list[Any] = []
    for batch in read_piece(settings, state, piece):
        told += [row["kind"] for row in batch.to_pylist() if row["table"] == "t"]
    planner.stop()
    assert told == [ROWS, SCHEMA, ROWS, SCHEMA, ROWS]
