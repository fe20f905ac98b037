"""Tables that get other names while they are followed: the new name gets all rows, the old one keeps what it had."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync
from tests.thinning import by_day

import lakebed
from lakebed.cdc.envelope import SCHEMA, TRUNCATE
from lakebed.cdc.sources.mysql.server.catalog import was_made_since
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader
from lakebed.errors import Unsupported
from lakebed.testing.sql_server import PASSWORD, USER

from .conftest import Database, chunks_of
from .replica import Follower


def _follower(db: Database, **more: Any) -> Follower:
    follow = Follow(databases=re.escape(db.name), copy_chunk_rows=40, copy_chunks_per_batch=1, **more)
    return Follower(MySqlStreamReader(db.settings, follow))


@pytest.fixture
def follower(db: Database) -> Iterator[Follower]:
    """A reader of the database, with small steps."""
    follower = _follower(db)
    yield follower
    follower.reader.stop()


def _rows(db: Database, table: str) -> list[dict[str, Any]]:
    names = [row[0] for row in db.run(f"SHOW COLUMNS FROM {table}")]
    return [dict(zip(names, row, strict=True)) for row in db.run(f"SELECT * FROM {table} ORDER BY 1")]


def _assert_equal(db: Database, follower: Follower, *tables: str) -> None:
    follower.catch_up()
    for table in tables:
        assert follower.replica.rows(table) == _rows(db, table), table


@pytest.mark.parametrize(
    "rename",
    ["RENAME TABLE t TO u", "ALTER TABLE t RENAME TO u", "ALTER TABLE t ADD COLUMN w int DEFAULT 3, RENAME AS u"],
)
def test_the_new_name_gets_all_rows(db: Database, follower: Follower, rename: str) -> None:
    """A renamed table is copied under its new name, with what the same stretch of the log changes in it."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_150")
    follower.catch_up()
    db.run("UPDATE t SET v = 1 WHERE id < 9", rename, "UPDATE u SET v = 7 WHERE id = 3", "DELETE FROM u WHERE id = 4")
    _assert_equal(db, follower, "u")
    assert len(follower.replica.rows("t")) == 150
    assert follower.replica.rows("t")[7] == {"id": 8, "v": 1}
    db.run("INSERT INTO u (id) VALUES (1000)", "UPDATE u SET v = 9 WHERE id < 5", "DELETE FROM u WHERE id > 100")
    _assert_equal(db, follower, "u")


def test_tables_that_change_places(db: Database, follower: Follower) -> None:
    """A swap, as tools that alter large tables online make it: each name has the rows of its new table, once."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_90")
    follower.catch_up()
    db.run("CREATE TABLE t_new LIKE t", "ALTER TABLE t_new ADD COLUMN w int NOT NULL DEFAULT 5")
    db.run("INSERT INTO t_new (id, v) SELECT id, v + 1 FROM t WHERE id > 10", "DELETE FROM t WHERE id = 50")
    db.run("RENAME TABLE t TO t_old, t_new TO t", "INSERT INTO t VALUES (1, 1, 1)", "DELETE FROM t WHERE id = 90")
    _assert_equal(db, follower, "t", "t_old")
    db.run("DROP TABLE t_old", "UPDATE t SET v = 0 WHERE id % 2 = 0")
    _assert_equal(db, follower, "t")
    db.run("CREATE TABLE other (id int PRIMARY KEY, v int)", "INSERT INTO other VALUES (5, 5)")
    db.run("RENAME TABLE t TO halfway, other TO t, halfway TO other", "UPDATE other SET v = 3 WHERE id < 20")
    _assert_equal(db, follower, "t", "other")
    assert "halfway" not in follower.replica.tables


@pytest.mark.parametrize(
    ("statements", "kinds"),
    [
        (["RENAME TABLE t TO u", "RENAME TABLE u TO t"], [("t", TRUNCATE), ("t", SCHEMA), ("t", "rows")]),
        (["RENAME TABLE t TO u", "DROP TABLE u"], []),
        (["RENAME TABLE t TO left_out"], []),
        (["RENAME TABLE left_out TO u", "DELETE FROM u"], [("u", TRUNCATE), ("u", SCHEMA)]),
        (["RENAME TABLE t TO u", "TRUNCATE u", "INSERT INTO u VALUES (8)"], [
            ("u", TRUNCATE), ("u", SCHEMA), ("u", "rows")]),
    ],
)  # fmt: skip
def test_only_what_a_name_has_in_the_end_is_copied(
    db: Database, statements: list[str], kinds: list[tuple[str, str]]
) -> None:
    """A table that leaves its new name again is not copied there; one that comes from outside is."""
    follower = _follower(db, excluding="left_out")
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    if "left_out TO" in statements[0]:
        db.run("CREATE TABLE left_out (id int PRIMARY KEY)", "INSERT INTO left_out VALUES (5)")
    follower.catch_up()
    db.run(*statements)
    start = follower.offset
    assert start is not None
    end = follower.reader.latestOffset(start, follower.reader.getDefaultReadLimit())
    (task,) = follower.reader.partitions(start, end)
    chunks = chunks_of(list(follower.reader.read(task)))
    assert [chunk.ordinal for chunk in chunks] == list(range(1, len(chunks) + 1))
    assert [(chunk.name.table, chunk.kind) for chunk in chunks] == kinds
    follower.reader.stop()


@pytest.mark.parametrize("steps", by_day(range(1, 6), 1, 4))
def test_tables_that_change_places_while_they_are_copied(db: Database, follower: Follower, steps: int) -> None:
    """Whatever part of a table was copied before, its name ends with the rows of the table that has it."""
    for table, low, high in (("a", 1, 100), ("b", 40, 160)):
        db.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v varchar(9))")
        db.run(f"INSERT INTO {table} SELECT seq, '{table}' FROM seq_{low}_to_{high}")
    for _ in range(steps):
        follower.step(crashes=1)
    db.run("DELETE FROM a WHERE id % 7 = 0", "UPDATE b SET v = 'c' WHERE id % 5 = 0")
    db.run("RENAME TABLE a TO c, b TO a, c TO b", "DELETE FROM a WHERE id % 3 = 0", "DELETE FROM b WHERE id % 5 = 0")
    follower.step(crashes=1)
    db.run("UPDATE a SET v = 'd' WHERE id > 90", "UPDATE b SET id = id + 1000 WHERE id > 90")
    _assert_equal(db, follower, "a", "b")


def test_another_key_while_a_table_is_copied(db: Database, follower: Follower) -> None:
    """A half-copied name that gets a table with another key can not go on: said with the table and the next step."""
    db.run("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a SELECT seq FROM seq_1_to_100")
    db.run("CREATE TABLE b (i int, k int, PRIMARY KEY (i, k))")
    follower.step()
    db.run("DROP TABLE a", "RENAME TABLE b TO a")
    with pytest.raises(Unsupported, match=rf"(?s){db.name}.a while that was being copied.*new checkpoint"):
        follower.catch_up()


def test_a_table_that_is_made_if_there_is_none(db: Database, follower: Follower) -> None:
    """CREATE TABLE IF NOT EXISTS after the table was dropped makes another, however long ago that was."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follower.catch_up()
    db.run("DROP TABLE t")
    follower.catch_up()
    assert len(follower.replica.rows("t")) == 1
    db.run("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)", "INSERT INTO t VALUES (4)")
    db.run("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)", "INSERT INTO t VALUES (5)")
    _assert_equal(db, follower, "t")


def test_how_old_a_table_is(db: Database) -> None:
    """A statement that found the table there did not make it; one from the time at which it was made may have."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "SET time_zone = '+05:00'")
    name = (db.name, "t")
    assert was_made_since(db.connection, name, int(time.time()))
    assert not was_made_since(db.connection, name, int(time.time()) + 3600)
    assert not was_made_since(db.connection, (db.name, "none"), 0)


def test_renamed_under_writers(db: Database, follower: Follower) -> None:
    """Names that change places again and again while rows change: at rest both are equal."""
    follower.replica.is_strict = False
    for table in "ab":
        db.run(
            f"CREATE TABLE {table} (id int PRIMARY KEY, v int)", f"INSERT INTO {table} SELECT seq, 0 FROM seq_1_to_99"
        )
    stop = threading.Event()

    def write(number: int) -> None:
        connection = db.server.connect(database=db.name, autocommit=True)
        count = 0
        with connection.cursor() as cursor:
            while not stop.is_set():
                count += 1
                table = "ab"[count % 2]
                cursor.execute(f"REPLACE INTO {table} VALUES ({count * 7 % 150}, {count})")
                cursor.execute(f"DELETE FROM {table} WHERE id = {(count * 11 + number) % 150}")
                if number == 0 and count % 40 == 0:
                    cursor.execute("RENAME TABLE a TO c, b TO a, c TO b")
        connection.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(12):
            follower.step()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    _assert_equal(db, follower, "a", "b")


def test_a_swap_in_the_lake(db: Database, tmp_path: Path) -> None:
    """A sync whose batches die again and again: the swapped table, its new column and its rows are in the lake."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_60")
    lake = lakebed.connect(tmp_path / "warehouse")
    options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    sync = LocalSync(lake, "mysql", tmp_path / "checkpoint", seed=3, dies=0.3, source_options=options)

    def wrong(*tables: str) -> list[str]:
        found = []
        for name in tables:
            table = lake.table(f"lk.{name}") if lake.has_table(f"lk.{name}") else None
            rows = table and sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
            found += [] if rows == _rows(db, name) else [f"{name}: {rows}"]
        return found

    assert sync.catch_up(lambda: wrong("t")) == []
    db.run("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD COLUMN w varchar(9) DEFAULT 'x'")
    db.run("INSERT INTO _t_gho (id, v) SELECT id, v FROM t", "DELETE FROM _t_gho WHERE id = 7")
    db.run("RENAME TABLE t TO _t_del, _t_gho TO t", "UPDATE t SET w = 'y' WHERE id < 9", "DROP TABLE _t_del")
    assert sync.catch_up(lambda: wrong("t")) == []
    db.run("INSERT INTO t VALUES (7, 7, 'z')", "DELETE FROM t WHERE id > 50", "RENAME TABLE t TO s")
    assert sync.catch_up(lambda: wrong("s")) == []
    sync.stop()
    assert lake.table("lk.t").to_arrow().num_rows == 50


@pytest.mark.parametrize("end", ["DROP TABLE t", "RENAME TABLE t TO u"])
def test_columns_of_a_table_that_is_gone_by_now(db: Database, tmp_path: Path, end: str) -> None:
    """Names of columns that were exchanged are known although the catalog has nothing of the table any more."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int, w varchar(9), x int)", "INSERT INTO t VALUES (1, 1, 'a', 0)")
    lake = lakebed.connect(tmp_path / "warehouse")
    options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    rules = {"rename": "follow", "drop": "follow"}
    sync = LocalSync(lake, "mysql", tmp_path / "checkpoint", source_options=options, **rules)

    def expect(*rows: dict[str, Any]) -> None:
        def wrong() -> list[str]:
            found = lake.table("lk.t").to_arrow().to_pylist()
            return [] if sorted(found, key=lambda row: row["id"]) == list(rows) else [str(found)]

        assert sync.catch_up(wrong) == []

    expect({"id": 1, "v": 1, "w": "a", "x": 0})
    db.run("ALTER TABLE t RENAME COLUMN v TO w, RENAME COLUMN w TO v", "ALTER TABLE t DROP COLUMN x")
    db.run("ALTER TABLE t ADD COLUMN x varchar(9)", "INSERT INTO t VALUES (2, 2, 'b', 'x')", end)
    expect({"id": 1, "w": 1, "v": "a", "x": None}, {"id": 2, "w": 2, "v": "b", "x": "x"})
    sync.stop()


def test_values_of_columns_that_were_changed_again_at_once(db: Database, tmp_path: Path) -> None:
    """A column is added with a value, and loses its default or name before the log is read: rows have the value."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    lake = lakebed.connect(tmp_path / "warehouse")
    options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    rules = {"rename": "follow", "drop": "follow"}
    sync = LocalSync(lake, "mysql", tmp_path / "checkpoint", source_options=options, **rules)
    sync.catch_up(lambda: [] if lake.table("lk.t").to_arrow().num_rows else ["empty"])
    for column, change in (
        ("a decimal(9,2) NOT NULL DEFAULT 1.5", "MODIFY a decimal(9,2)"),
        ("b bigint unsigned DEFAULT 7", "RENAME COLUMN b TO c"),
        ("s set('x','y') DEFAULT 'x,y'", "MODIFY s set('x','y')"),
        ("d varchar(9) DEFAULT 'it''s' AFTER id", "CHANGE d e varchar(20)"),
        ("f int DEFAULT 3", "MODIFY f bigint"),
        ("g int DEFAULT 3", "DROP COLUMN g"),
        ("h tinyint(1) DEFAULT 1", "ALTER COLUMN h DROP DEFAULT"),
    ):
        db.run(f"ALTER TABLE t ADD COLUMN {column}", f"ALTER TABLE t {change}")
    db.run("INSERT INTO t (id, c, s, h) VALUES (2, 8, 'y', 0)")
    (first, second) = (
        {"id": 1, "a": Decimal("1.50"), "c": Decimal(7), "s": ["x", "y"], "e": "it's", "f": 3, "h": True},
        {"id": 2, "a": None, "c": Decimal(8), "s": ["y"], "e": None, "f": None, "h": False},
    )

    def wrong() -> list[str]:
        found = sorted(lake.table("lk.t").to_arrow().to_pylist(), key=lambda row: row["id"])
        return [] if found == [first, second] else [str(found)]

    assert sync.catch_up(wrong, 5) == []
    sync.stop()
