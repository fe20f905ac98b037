"""What only MySQL has: transactions compressed as a whole, JSON values told by differences, other ways to log in."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.cdc.sources.mysql import MySqlSource
from lakebed.cdc.sources.mysql.log.reader import LogReader
from lakebed.cdc.sources.mysql.log.transactions import Rows
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader
from lakebed.errors import MissingDependency
from lakebed.testing.sql_server import PASSWORD, USER

from .conftest import Database
from .replica import Follower

pytestmark = pytest.mark.only_mysql


@pytest.fixture
def follower(db: Database) -> Iterator[Follower]:
    """A reader of the database, with small steps."""
    reader = MySqlStreamReader(db.settings, Follow(databases=re.escape(db.name), copy_chunk_rows=40))
    yield Follower(reader)
    reader.stop()


def _rows(db: Database, table: str = "t") -> list[dict[str, Any]]:
    names = [row[0] for row in db.run(f"SHOW COLUMNS FROM {table}")]
    found = db.run(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1")  # the invisible ones, too
    return [dict(zip(names, row, strict=True)) for row in found]


def _sync(db: Database, place: Path, **more: Any) -> tuple[LocalSync, Any]:
    """A sync whose batches die now and then, and what asserts that the lake has what the database has."""
    lake = lakebed.connect(place / "warehouse")
    options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    sync = LocalSync(lake, "mysql", place / "checkpoint", seed=5, dies=0.2, source_options=options, **more)

    def wrong() -> list[str]:
        found = lake.table("lk.t").to_arrow().to_pylist() if lake.has_table("lk.t") else []
        return [] if sorted(found, key=lambda row: row["id"]) == _rows(db) else [str(found)]

    return sync, lambda: sync.catch_up(wrong)


def test_a_sync_that_meets_everything(db: Database, tmp_path: Path) -> None:
    """Compression and differences are on before the sync begins, and turned on, off and mixed by sessions meanwhile."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(30), j json, w text)")
    db.run("INSERT INTO t SELECT seq, 'old', JSON_OBJECT('n', seq, 'a', JSON_ARRAY(1, 2)), NULL FROM seq_1_to_30")
    db.run("SET GLOBAL binlog_transaction_compression = ON", "SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
    try:
        db.reconnect()
        sync, differs = _sync(db, tmp_path)
        assert differs() == []
        for compression in ("ON", "OFF", "ON"):
            for options in ("PARTIAL_JSON", ""):
                db.run(
                    f"SET binlog_transaction_compression = {compression}", f"SET binlog_row_value_options = '{options}'"
                )
                db.run("UPDATE t SET j = JSON_SET(j, '$.n', id * 7, '$.a[1]', 'x'), v = 'new' WHERE id % 3 = 0")
                db.run("UPDATE t SET w = REPEAT('long ', 300) WHERE id < 9", "DELETE FROM t WHERE id = 4")
                db.run(
                    "UPDATE t SET j = JSON_REMOVE(j, '$.a[0]') WHERE id = 2",
                    "REPLACE INTO t (id, v, j, w) VALUES (4, 'r', '{}', '')",
                )
                db.run("BEGIN", "INSERT INTO t (id) VALUES (100)", "ROLLBACK")
            assert differs() == []
            db.run(f"ALTER TABLE t ADD COLUMN c{len(_rows(db)[0])} int NOT NULL DEFAULT 5")
        assert differs() == []
        sync.stop()
    finally:
        db.run("SET GLOBAL binlog_transaction_compression = OFF", "SET GLOBAL binlog_row_value_options = ''")


def test_a_sync_is_not_refused_for_compression_or_differences(db: Database) -> None:
    """Both can be followed, so that the check before a sync lets them be."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    source = MySqlSource(port=db.server.port, user=USER, password=PASSWORD, database=db.name)
    db.run("SET GLOBAL binlog_transaction_compression = ON", "SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
    try:
        source.check()
    finally:
        db.run("SET GLOBAL binlog_transaction_compression = OFF", "SET GLOBAL binlog_row_value_options = ''")


def test_a_large_compressed_transaction(db: Database) -> None:
    """A transaction that is small in the log and large without compression comes in pieces, whole and in order."""
    count = 40_000
    db.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(400) NOT NULL)", "SET binlog_transaction_compression = ON")
    start = db.position()
    db.run(f"INSERT INTO t SELECT seq, REPEAT(CHAR(65 + seq % 26), seq % 400) FROM seq_1_to_{count}")
    db.run("UPDATE t SET v = 'x' WHERE id = 7")
    reader = LogReader(db.settings, start, 4711, piece_bytes=1 << 20)
    try:
        pieces = [piece for piece in reader.read_to(db.position()) if isinstance(piece, Rows)]
    finally:
        reader.close()
    assert len({id(piece.segment) for piece in pieces}) > 3
    assert max(piece.segment.size_bytes for piece in pieces) < 3 << 20
    changes = db.changes(start)
    ids = [value for change in changes for value in change.columns["id"].to_pylist()]
    assert ids == [*range(1, count + 1), 7, 7]
    texts = [value for change in changes for value in change.columns["v"].to_pylist()]
    assert all(texts[i] == chr(65 + (i + 1) % 26) * ((i + 1) % 400) for i in random.Random(1).sample(range(count), 500))


def test_transactions_of_all_kinds_compressed(db: Database) -> None:
    """Savepoints, two phases, one phase, statements and rollbacks between compressed transactions."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "SET binlog_transaction_compression = ON")
    start = db.position()
    db.run(
        "BEGIN", "INSERT INTO t VALUES (1, 1)", "SAVEPOINT s", "INSERT INTO t VALUES (2, 1)", "ROLLBACK TO s", "COMMIT"
    )
    db.run("XA START 'a'", "INSERT INTO t VALUES (3, 1)", "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'")
    db.run("XA START 'b'", "INSERT INTO t VALUES (4, 1)", "XA END 'b'", "XA PREPARE 'b'", "XA ROLLBACK 'b'")
    db.run("XA START 'c'", "INSERT INTO t VALUES (5, 1)", "XA END 'c'", "XA COMMIT 'c' ONE PHASE")
    db.run("CREATE TABLE u AS SELECT * FROM t", "ALTER TABLE t ADD w int", "INSERT INTO t VALUES (6, 1, 2)")
    db.run("FLUSH BINARY LOGS", "UPDATE t SET id = 7 WHERE id = 6")
    events = db.events(start, "id")
    of_u = sorted(event for event in events if events.count(event) > 1)
    assert of_u == [("+I", i) for i in (1, 1, 3, 3, 5, 5)]
    assert [event for event in events if event[1] > 5] == [("+I", 6), ("-D", 6), ("+I", 7)]
    assert ("+I", 2) not in events
    assert ("+I", 4) not in events


def _document(rng: random.Random, depth: int = 3) -> Any:
    match rng.randrange(9 if depth else 6):
        case 0:
            return rng.choice([None, True, False])
        case 1:
            return rng.randrange(-(2**40), 2**40)
        case 2:
            return rng.random() * 10 ** rng.randrange(-12, 12)
        case 3 | 4 | 5:
            return "".join(rng.choice("aä\"\\\n'漢 .$") for _ in range(rng.randrange(9)))
        case 6 | 7:
            return {_name(rng): _document(rng, depth - 1) for _ in range(rng.randrange(5))}
        case _:
            return [_document(rng, depth - 1) for _ in range(rng.randrange(5))]


def _name(rng: random.Random) -> str:
    return rng.choice(["a", "b", "long name", "ä", 'q"q', "x.y", "[0]", "$", "back\\slash", "last", "_id", "1st", ""])


def _path(rng: random.Random, document: Any) -> str:
    """A path that exists, or is one step beyond."""
    path = "$"
    while isinstance(document, dict | list):
        if isinstance(document, dict):
            name = rng.choice([*document, _name(rng)])
            path += "." + json.dumps(name, ensure_ascii=False)
            document = document.get(name)
        else:
            place = rng.randrange(len(document) + 1)
            path += rng.choice([f"[{place}]", f"[{place}]", "[last]"])
            document = document[place] if place < len(document) else None
        if rng.random() < 0.4:
            break
    return path


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 20))])
def test_random_differences(db: Database, follower: Follower, seed: int) -> None:
    """Random documents, changed at random by all functions that log differences: every change fits, and the end."""
    rng = random.Random(seed)
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, a json, n int, b json, c json)",
        "SET binlog_row_value_options = 'PARTIAL_JSON'",
    )
    documents = [[_document(rng), _document(rng)] for _ in range(12)]
    for i, pair in enumerate(documents):
        a, b = (db.connection.escape(json.dumps(value, ensure_ascii=False)) for value in pair)
        db.run(f"INSERT INTO t VALUES ({i}, {a}, 0, {b}, NULL)")
    follower.catch_up()
    start = db.position()
    for _ in range(25):
        i = rng.randrange(12)
        told = []
        for column in rng.sample(["a", "b"], rng.randrange(1, 3)):
            (text,) = db.run(f"SELECT {column} FROM t WHERE id = {i}")[0]
            path = db.connection.escape(_path(rng, json.loads(text)))
            value = db.connection.escape(json.dumps(_document(rng, 1), ensure_ascii=False))
            call = rng.choice(["JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
            if call == "JSON_REMOVE" and path == "'$'":
                call = "JSON_SET"
            new = "" if call == "JSON_REMOVE" else f", CAST({value} AS JSON)"
            told.append(f"{column} = {call}({column}, {path}{new})")
        db.run(f"UPDATE t SET n = n + 1, {', '.join(told)} WHERE id = {i}")
    follower.catch_up()
    assert follower.replica.rows("t") == _rows(db)
    partly = [event for piece in db.pieces(start) if isinstance(piece, Rows) for event in piece.segment.kinds.tolist()]
    assert partly.count(39) >= 3  # the log did tell differences


def test_transactions_with_tags(db: Database, follower: Follower) -> None:
    """A session gives its transactions ids with a tag: they are followed, and reading goes on behind them anew."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follower.catch_up()
    tagging = db.server.connect(database=db.name)
    with tagging.cursor() as cursor:
        for tag in ("first", "other_2", "first"):
            cursor.execute(f"SET gtid_next = 'AUTOMATIC:{tag}'")
            cursor.execute("INSERT INTO t SELECT MAX(id) + 1 FROM t")
            db.run("INSERT INTO t SELECT MAX(id) + 10 FROM t")
        cursor.execute("ALTER TABLE t ADD v int DEFAULT 3")
    follower.catch_up()
    assert follower.replica.rows("t") == _rows(db)
    follower.reader.stop()  # the next one asks the server for what lies behind a set with tags
    db.run("UPDATE t SET v = 4 WHERE id > 20")
    with tagging.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE id = 1")
    tagging.close()
    follower.reader = MySqlStreamReader(db.settings, Follow(databases=re.escape(db.name)))
    follower.catch_up()
    follower.reader.stop()
    assert follower.replica.rows("t") == _rows(db)


def test_rows_that_change_by_foreign_keys(db: Database, follower: Follower) -> None:
    """This server logs them like others, so the table is followed and its rows are right."""
    db.run("CREATE TABLE parent (id int PRIMARY KEY)", "INSERT INTO parent VALUES (1), (2), (3)")
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent (id) "
        "ON DELETE CASCADE ON UPDATE SET NULL)"
    )
    db.run("INSERT INTO t VALUES (10, 1), (11, 1), (20, 2), (30, 3)")
    follower.catch_up()
    db.run("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 9 WHERE id = 2")
    follower.catch_up()
    assert follower.replica.rows("t") == _rows(db) == [{"id": 20, "p": None}, {"id": 30, "p": 3}]


def test_columns_that_mysql_hides_or_makes(db: Database, follower: Follower) -> None:
    """Functional indexes, generated and invisible columns, a key that the server adds: rows come as a query gives."""
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, v int, d int AS (v + 1) VIRTUAL, s int AS (v * 2) STORED, "
        "h int INVISIBLE DEFAULT 3, w varchar(20), INDEX ((LOWER(w))), INDEX ((v % 7)))"
    )
    db.run("SET sql_generate_invisible_primary_key = ON", "CREATE TABLE u (v int)")
    db.run("INSERT INTO t (id, v, w) VALUES (1, 1, 'Ab')", "INSERT INTO u VALUES (5)")
    follower.catch_up()
    db.run(
        "INSERT INTO t (id, v, w, h) VALUES (2, 2, 'Cd', 9)",
        "UPDATE t SET v = 10 WHERE id = 1",
        "INSERT INTO u VALUES (6)",
    )
    db.run("DELETE FROM u WHERE v = 5")
    follower.catch_up()
    assert follower.replica.rows("t") == [
        {"id": 1, "v": 10, "d": 11, "s": 20, "h": 3, "w": "Ab"},
        {"id": 2, "v": 2, "d": 3, "s": 4, "h": 9, "w": "Cd"},
    ]
    assert [row["v"] for row in follower.replica.rows("u")] == [6]


def test_values_that_columns_are_added_with(db: Database, tmp_path: Path) -> None:
    """Defaults in parentheses and invisible columns: rows that are there have the value, at once or after others."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    sync, differs = _sync(db, tmp_path)
    assert differs() == []
    db.run("ALTER TABLE t ADD COLUMN a text DEFAULT ('it''s'), ADD COLUMN b int INVISIBLE DEFAULT (-7)")
    db.run(
        "ALTER TABLE t ADD COLUMN c decimal(9,2) NOT NULL DEFAULT 1.5, ALGORITHM = INSTANT",
        "INSERT INTO t (id) VALUES (2)",
    )
    assert differs() == []
    sync.stop()


@pytest.mark.parametrize("plugin", ["caching_sha2_password", "sha256_password"])
def test_ways_to_log_in(db: Database, plugin: str) -> None:
    """Users of MySQL's own kinds of passwords log in with or without the server having seen them, and are followed."""
    db.run(f"CREATE USER keeper IDENTIFIED WITH {plugin} BY 'pä/ss'", f"GRANT SELECT ON {db.name}.* TO keeper")
    db.run("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO keeper", "CREATE TABLE t (id int PRIMARY KEY)")
    try:
        for _ in range(2):
            MySqlSource(port=db.server.port, user="keeper", password="pä/ss", database=db.name).check()
    finally:
        db.run("DROP USER keeper")


def test_logging_in_without_tls(db: Database) -> None:
    """Where there is no TLS, the password must be encrypted by a package, which is named if it is missing."""
    db.run("CREATE USER unseen IDENTIFIED BY 'pass'")
    settings = ServerSettings("127.0.0.1", db.server.port, "unseen", keep_password("pass"))
    try:
        if importlib.util.find_spec("cryptography") is not None:
            settings.connect(ssl_disabled=True).close()
        else:
            with pytest.raises(MissingDependency, match="pip install cryptography"):
                settings.connect(ssl_disabled=True)
    finally:
        db.run("DROP USER unseen")
