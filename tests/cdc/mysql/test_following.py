"""The source as Spark drives it, without Spark: copy and stream together give the database, change by change."""

from __future__ import annotations

import pickle
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.err import IntegrityError, OperationalError

from lakebed.cdc.envelope import SCHEMA, TRUNCATE, Description
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader
from lakebed.errors import InvalidOption, InvalidSchema, NotFound, Unsupported

from .conftest import Database, chunks_of
from .replica import Follower, Row

TABLES = {
    "numbers": "CREATE TABLE numbers (id int PRIMARY KEY, v int, w varchar(40))",
    "words": "CREATE TABLE words (id varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v int, w varchar(40))",
    "pairs": "CREATE TABLE pairs (id int, b varchar(9), v int, w varchar(40), PRIMARY KEY (b, id))",
}


@pytest.fixture
def follower(db: Database) -> Iterator[Follower]:
    """A reader of the database, with small steps."""
    follow = Follow(databases=re.escape(db.name), copy_chunk_rows=40, copy_chunks_per_batch=2)
    reader = MySqlStreamReader(db.settings, follow)
    yield Follower(reader)
    reader.stop()


def _key(rng: random.Random, table: str, number: int) -> str:
    return f"'{rng.choice('aAbzÖ')}{number}'" if table == "words" else str(number)


def _statement(rng: random.Random, most: int) -> str:
    """A random change of a random table."""
    table = rng.choice(sorted(TABLES))
    key = _key(rng, table, rng.randrange(most))
    value, text = rng.randrange(1000), "x" * rng.randrange(40)
    second = f", b = '{rng.choice('pq')}'" if table == "pairs" and rng.random() < 0.3 else ""
    match rng.randrange(6):
        case 0 | 1:
            columns = f"({key}, 'p', {value}, '{text}')" if table == "pairs" else f"({key}, {value}, '{text}')"
            names = "(id, b, v, w)" if table == "pairs" else "(id, v, w)"
            return f"INSERT INTO {table} {names} VALUES {columns}"
        case 2 | 3:
            return f"UPDATE {table} SET v = {value}, w = NULL{second} WHERE id = {key}"
        case 4:
            return f"UPDATE {table} SET id = {_key(rng, table, rng.randrange(most))} WHERE id = {key}"
        case _:
            return f"DELETE FROM {table} WHERE id = {key}"


def _transaction(rng: random.Random, connection: Any, most: int, *, two_phases: bool = True) -> None:
    """A random transaction: committed, rolled back in part or whole, or in two phases."""
    statements = [_statement(rng, most) for _ in range(rng.randrange(1, 6))]
    how = rng.randrange(0 if two_phases else 1, 8)
    with connection.cursor() as cursor:
        try:
            if how == 0:
                name = f"'x{rng.randrange(10**9)}'"
                for statement in [f"XA START {name}", *statements, f"XA END {name}", f"XA PREPARE {name}"]:
                    cursor.execute(statement)
                cursor.execute(f"XA {rng.choice(['COMMIT', 'ROLLBACK'])} {name}")
                return
            cursor.execute("BEGIN")
            for i, statement in enumerate(statements):
                if i == 1 and how == 1:
                    cursor.execute("SAVEPOINT s")
                cursor.execute(statement)
            if how == 1 and len(statements) > 1:
                cursor.execute("ROLLBACK TO s")
            cursor.execute("ROLLBACK" if how == 2 else "COMMIT")
        except (IntegrityError, OperationalError):
            _give_up(cursor, how)


def _give_up(cursor: Any, how: int) -> None:
    if how != 0:
        cursor.execute("ROLLBACK")
        return
    # A two-phase transaction that failed must be ended before anything else.
    cursor.connection.close()
    cursor.connection.connect()


def _assert_equal(db: Database, follower: Follower) -> None:
    for table in TABLES:
        names = [row[0] for row in db.run(f"SHOW COLUMNS FROM {table}")]
        rows = [dict(zip(names, row, strict=True)) for row in db.run(f"SELECT * FROM {table}")]
        assert sorted(map(_sortable, follower.replica.rows(table))) == sorted(map(_sortable, rows)), table


def _sortable(row: Row) -> list[tuple[str, str]]:
    return sorted((name, repr(value)) for name, value in row.items())


def _prepare(db: Database, count: int) -> None:
    db.run(*TABLES.values(), f"INSERT INTO numbers SELECT seq, seq, 'n' FROM seq_0_to_{count}")
    db.run(f"INSERT INTO words SELECT CONCAT(CHAR(97 + seq % 26), seq), seq, 'w' FROM seq_0_to_{count}")
    db.run(f"INSERT INTO pairs SELECT seq, CHAR(112 + seq % 2), seq, 'p' FROM seq_0_to_{count}")


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 30))])
def test_copy_and_stream_give_the_database(db: Database, follower: Follower, seed: int) -> None:
    """Random transactions between all steps of copy and stream: each change fits, and the end is the database."""
    rng = random.Random(seed)
    _prepare(db, 150)
    writer = db.server.connect(database=db.name)
    while not follower.is_copied:
        for _ in range(rng.randrange(6)):
            _transaction(rng, writer, 200)
        follower.step(crashes=rng.choice([0, 0, 1]))
    follower.catch_up()
    _assert_equal(db, follower)
    for round_ in range(4):
        for _ in range(20):
            _transaction(rng, writer, 200)
        if round_ == 1:
            db.run("TRUNCATE numbers", "ALTER TABLE words ADD COLUMN extra int NOT NULL DEFAULT 5")
        if round_ == 2:
            db.run("CREATE OR REPLACE TABLE numbers (id int PRIMARY KEY, v int, w varchar(40))")
        follower.step(crashes=rng.choice([0, 1]))
    follower.catch_up()
    _assert_equal(db, follower)
    writer.close()


def test_copy_under_writers(db: Database, follower: Follower) -> None:
    """Writers that never stop while tables are copied and followed; at rest both are equal."""
    _prepare(db, 200)
    stop = threading.Event()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        connection = db.server.connect(database=db.name)
        while not stop.is_set():
            _transaction(rng, connection, 260)
        connection.close()

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        while not follower.is_copied:
            assert follower.step()
        for _ in range(5):
            follower.step()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    follower.catch_up()
    _assert_equal(db, follower)
    assert follower.batches > 10


@pytest.mark.mysql
def test_new_tables_and_statements(db: Database, follower: Follower) -> None:
    """A table made while the stream runs is followed from its first row; statements come as schema and truncate."""
    db.run("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    follower.catch_up()
    db.run("CREATE TABLE b (id int PRIMARY KEY, v int DEFAULT 3)", "INSERT INTO b VALUES (1, 1)")
    db.run("CREATE TABLE c AS SELECT * FROM b WHERE FALSE", "DROP TABLE c")
    db.run("ALTER TABLE b ADD COLUMN w int NOT NULL DEFAULT 7 COMMENT 'new'", "INSERT INTO b VALUES (2, 2, 2)")
    db.run(
        "TRUNCATE TABLE a",
        "INSERT INTO a VALUES (5)",
        "DROP TABLE a",
        "CREATE TABLE IF NOT EXISTS a (id int PRIMARY KEY)",
    )
    start = follower.offset
    assert start is not None
    end = follower.reader.latestOffset(start, follower.reader.getDefaultReadLimit())
    (task,) = follower.reader.partitions(start, end)
    kinds = [(chunk.name.table, chunk.kind) for chunk in chunks_of(list(follower.reader.read(task)))]
    assert ("a", TRUNCATE) in kinds
    assert ("b", SCHEMA) in kinds
    follower.catch_up()
    assert follower.replica.rows("b") == [{"id": 1, "v": 1, "w": 7}, {"id": 2, "v": 2, "w": 2}]
    assert follower.replica.rows("a") == []
    description = follower.replica.descriptions["b"]
    assert [(c.name, str(c.type), c.default, c.comment) for c in description.columns] == [
        ("id", "INT NOT NULL", "0", None),
        ("v", "INT", "3", None),
        ("w", "INT NOT NULL", "7", "new"),
    ]


@pytest.mark.mysql
@pytest.mark.parametrize("session_zone", ["+00:00", "+05:30", "SYSTEM"])
def test_columns_that_are_added_with_the_current_time(db: Database, follower: Follower, session_zone: str) -> None:
    """Rows that were there get the moment of the statement, which the log tells, as the server gives it to them."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follower.catch_up()
    db.run(f"SET SESSION time_zone = '{session_zone}'")
    db.run(
        "ALTER TABLE t ADD COLUMN a timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, "
        "ADD COLUMN b datetime(6) DEFAULT CURRENT_TIMESTAMP(6), ADD COLUMN c timestamp(3) NULL DEFAULT NOW(3)"
    )
    db.run("SET SESSION time_zone = '+00:00'")
    ((a, b, c),) = db.run("SELECT CAST(a AS char), CAST(b AS char), CAST(c AS char) FROM t")
    start = follower.offset
    assert start is not None
    end = follower.reader.latestOffset(start, follower.reader.getDefaultReadLimit())
    (task,) = follower.reader.partitions(start, end)
    (chunk,) = chunks_of(list(follower.reader.read(task)))
    assert chunk.kind == SCHEMA
    assert [column.default for column in Description.from_text(chunk.columns).columns] == [a, b, c]


def test_rows_from_before_a_change_keep_their_columns(db: Database, follower: Follower) -> None:
    """Rows that were logged before columns were dropped or renamed come with the columns they had."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, old int, flag tinyint(1))", "INSERT INTO t VALUES (1, 1, 1)")
    follower.catch_up()
    db.run("INSERT INTO t VALUES (2, 2, 1)", "ALTER TABLE t DROP COLUMN old", "INSERT INTO t VALUES (3, 0)")
    db.run("ALTER TABLE t CHANGE flag f tinyint(1)", "INSERT INTO t VALUES (4, 1)")
    follower.catch_up()
    rows = {row["id"]: row for row in follower.replica.rows("t")}
    assert rows[2]["old"] == 2
    assert rows[2]["flag"] is True
    assert "old" not in rows[3]
    assert rows[4]["f"] is True


def test_booleans_are_known_after_a_restart(db: Database, tmp_path: Path) -> None:
    """A boolean column that was dropped while nobody looked still comes as one: its name was noted."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, flag tinyint(1), number tinyint)", "INSERT INTO t VALUES (1, 1, 1)")
    follow = Follow(databases=re.escape(db.name))
    first = MySqlStreamReader(db.settings, follow, str(tmp_path / "state"))
    follower = Follower(first)
    follower.catch_up()
    first.stop()
    db.run("INSERT INTO t VALUES (2, 0, 0)", "ALTER TABLE t DROP COLUMN flag, DROP COLUMN number")
    follower.reader = pickle.loads(pickle.dumps(MySqlStreamReader(db.settings, follow, str(tmp_path / "state"))))
    follower.catch_up()
    follower.reader.stop()
    row = follower.replica.rows("t")[1]
    assert (row["flag"], row["number"]) == (False, 0)
    assert isinstance(row["flag"], bool)


@pytest.mark.parametrize(
    ("statements", "error", "message"),
    [
        (["CREATE TABLE u (id int)", "INSERT INTO u VALUES (1)"], InvalidSchema, "no primary key"),
        (["CREATE TABLE u (id int PRIMARY KEY) ENGINE = MyISAM"], Unsupported, "ENGINE = InnoDB"),
        (
            [
                "CREATE TABLE u (id int PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
                "ALTER TABLE u TRUNCATE PARTITION p0",
            ],
            Unsupported,
            "new checkpoint",
        ),
    ],
)
def test_what_can_not_be_followed_stops_the_stream(
    db: Database, follower: Follower, statements: list[str], error: type[Exception], message: str
) -> None:
    """A table that appears and can not be followed, or rows that vanish unlogged: an error with its repair."""
    _assert_stopped(db, follower, statements, error, message)


@pytest.mark.only_mariadb
def test_rows_that_change_by_foreign_keys_stop_the_stream(db: Database, follower: Follower) -> None:
    """A foreign key that changes rows which the log does not tell: an error with its repair. MySQL 9.6 tells them."""
    statement = "ALTER TABLE t ADD p int, ADD FOREIGN KEY (p) REFERENCES t (id) ON DELETE SET NULL"
    _assert_stopped(db, follower, [statement], Unsupported, "RESTRICT")


def _assert_stopped(
    db: Database, follower: Follower, statements: list[str], error: type[Exception], message: str
) -> None:
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    follower.catch_up()
    db.run(*statements)
    with pytest.raises(error, match=message):
        follower.catch_up()
    skipping = MySqlStreamReader(
        db.settings,
        Follow(
            databases=re.escape(db.name),
            tables_without_key="skip",
            unsupported_types="skip",
            dropped_partitions="ignore",
            cascades="ignore",
        ),
    )
    follower.reader = skipping
    follower.catch_up()
    skipping.stop()


def test_rows_changed_by_a_statement_in_the_log(db: Database, follower: Follower) -> None:
    """A session that logs statements instead of rows stops the stream if it touches a followed table, and only then."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    follower.catch_up()
    db.run("SET SESSION binlog_format = 'STATEMENT'")
    db.run("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.x (id int)", "INSERT INTO elsewhere.x VALUES (1)")
    follower.catch_up()
    db.run("INSERT INTO t VALUES (1)", "SET SESSION binlog_format = 'ROW'", "DROP DATABASE elsewhere")
    with pytest.raises(InvalidOption, match="binlog_format = 'ROW'"):
        follower.catch_up()


def test_batches_are_bounded(db: Database) -> None:
    """A backlog is read in batches of about the size that was asked for, cut between transactions."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(1000))", "FLUSH BINARY LOGS")
    reader = MySqlStreamReader(
        db.settings, Follow(databases=re.escape(db.name), max_log_bytes_per_batch=100_000, copy=False)
    )
    follower = Follower(reader)
    follower.offset = reader.initialOffset()
    for i in range(400):
        db.run(f"INSERT INTO t VALUES ({i}, REPEAT('x', 1000))")
    follower.catch_up()
    reader.stop()
    assert len(follower.replica.rows("t")) == 400
    assert follower.batches >= 2


def test_available_now_ends(db: Database, follower: Follower) -> None:
    """A run that is to catch up ends where the log ended when it began, after the copy."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_200")
    follower.offset = follower.reader.initialOffset()
    db.run("INSERT INTO t VALUES (1000)")
    follower.reader.prepareForTriggerAvailableNow()
    while follower.step():
        db.run(f"INSERT INTO t VALUES ({2000 + follower.batches})")
    assert len(follower.replica.rows("t")) == 201


def test_a_lost_log_stops_the_stream(db: Database, follower: Follower) -> None:
    """A log that was purged past the offset is an error with its repair, in every later attempt."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    follower.catch_up()
    db.run("INSERT INTO t VALUES (1)")
    db.purge_log()
    db.run("INSERT INTO t VALUES (2)")
    for _ in range(2):
        with pytest.raises(NotFound, match="new checkpoint"):
            follower.catch_up()


def test_hostile_names(db: Database, follower: Follower) -> None:
    """Names with quotes, spaces, unicode, reserved words and 64 characters are names."""
    names = ["select", "a`b", "it's", 'q"q', "ü.ö", "-- x", "x" * 64, "%s", "{0}"]
    for name in names:
        quoted = "`" + name.replace("`", "``") + "`"
        db.run(
            f"CREATE TABLE {quoted} ({quoted} varchar(9) PRIMARY KEY, `#` int)", f"INSERT INTO {quoted} VALUES ('k', 1)"
        )
    follower.catch_up()
    for name in names:
        quoted = "`" + name.replace("`", "``") + "`"
        db.run(f"UPDATE {quoted} SET `#` = 2", f"INSERT INTO {quoted} VALUES ('l', 3)")
        db.run(f"ALTER TABLE {quoted} ADD COLUMN `from` int DEFAULT 4")
    follower.catch_up()
    for name in names:
        assert [row["#"] for row in follower.replica.rows(name)] == [2, 3]
        assert [row["from"] for row in follower.replica.rows(name)] == [4, 4]
