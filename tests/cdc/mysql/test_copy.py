"""The copy: parts of tables as of a position, whatever is written meanwhile, for every kind of key."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from pymysql.err import OperationalError

from lakebed.cdc.sources.mysql.copy.chunk import ChunkReader
from lakebed.cdc.sources.mysql.copy.keys import KeyRange
from lakebed.cdc.sources.mysql.copy.state import CopyState, next_step
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.server import Server

from .conftest import Database


def _copied(db: Database, state: CopyState, chunk_rows: int, position: object = None) -> tuple[list[Any], int]:
    """All rows of the tables of a state, copied step by step as of a position, and how many parts that took."""
    follow = Follow(copy_chunk_rows=chunk_rows, copy_chunks_per_batch=3)
    reader = ChunkReader(db.settings, (), "UTC", 7000)
    rows: list[Any] = []
    parts = 0
    while not state.is_done:
        state = next_step(CopyState.from_text(state.to_text()), Server.of(db.connection), follow)
        for part in state.step:
            parts += 1
            for _, columns, count in reader.read(part, position or db.position()):
                values = [column.to_pylist() for column in columns.values()]
                assert all(len(column) == count for column in values)
                rows += list(zip(*values, strict=True))
    return rows, parts


KEYS = {
    "int": ("k int", [f"{i * 7 - 50}" for i in range(40)]),
    "bigint unsigned": ("k bigint unsigned", [str(2**64 - 1 - i * 3) for i in range(40)]),
    "text without case": ("k varchar(20) COLLATE utf8mb4_general_ci", [f"'{c}{i}'" for i in range(10) for c in "aÖzB"]),
    "text by bytes": ("k varchar(20) COLLATE utf8mb4_bin", [f"'{c}{i}'" for i in range(10) for c in "aÄzB"]),
    "text of latin1": ("k char(8) CHARACTER SET latin1", [f"'{c}{i}'" for i in range(10) for c in "aäzB"]),
    "hostile text": ("k varchar(30)", [f"'{c}{i}'" for i in range(8) for c in ("''", "\\\\", '"', "%", "`;--")]),
    "bytes": ("k varbinary(8)", [f"X'{i * 6:02x}00ff'" for i in range(40)]),
    "decimal": ("k decimal(12,4)", [f"{i - 20}.{i:04}" for i in range(40)]),
    "date": ("k date", [f"'2024-01-01' + INTERVAL {i * 17} DAY" for i in range(40)]),
    "datetime": ("k datetime(6)", [f"'2024-01-01' + INTERVAL {i}.{i:06} SECOND" for i in range(40)]),
    "enum": ("k enum('z','y','x','w')", ["'x'", "'w'", "'z'"]),
    "double": ("k double", [f"{i / 7!r}" for i in range(40)]),
}


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_parts_make_up_the_table(db: Database, kind: str) -> None:
    """Whatever the key's type, the parts hold every row once; changes made after the position are taken back."""
    definition, keys = KEYS[kind]
    db.run(f"CREATE TABLE t ({definition}, v int, PRIMARY KEY (k))")
    db.run(*(f"INSERT INTO t VALUES ({key}, {i})" for i, key in enumerate(keys)))
    expected = sorted(db.run("SELECT v FROM t"))
    pending = CopyState(((db.name, "t"),))
    rows, parts = _copied(db, pending, 7)
    assert sorted((row[1],) for row in rows) == expected
    assert parts > 1 or kind in ("enum", "double")

    position = db.position()
    db.run(f"DELETE FROM t WHERE k = {keys[0]}", "UPDATE t SET v = -v", f"DELETE FROM t WHERE k = {keys[1]}")
    db.run(f"INSERT INTO t VALUES ({keys[1]}, 999)")
    rows, _ = _copied(db, pending, 7, position)
    assert sorted((row[1],) for row in rows) == expected


def test_keys_of_two_columns(db: Database) -> None:
    """A key of a text and a number is cut in the middle of equal texts."""
    db.run("CREATE TABLE t (a varchar(10), b int, v int, PRIMARY KEY (a, b))")
    db.run("INSERT INTO t SELECT CHAR(97 + seq % 3), seq, seq FROM seq_1_to_100")
    position = db.position()
    db.run(
        "UPDATE t SET b = b + 1000 WHERE b % 5 = 0",
        "DELETE FROM t WHERE b % 7 = 0",
        "INSERT INTO t VALUES ('a', -5, 0)",
    )
    rows, parts = _copied(db, CopyState(((db.name, "t"),)), 8, position)
    assert sorted(row[2] for row in rows) == list(range(1, 101))
    assert sorted(rows) == sorted((chr(97 + i % 3), i, i) for i in range(1, 101))
    assert parts >= 10


def test_a_copy_is_as_of_its_position_under_writers(db: Database) -> None:
    """While writers move money between accounts, a copy taken part by part as of one position keeps the sum."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, money int NOT NULL)", "INSERT INTO t SELECT seq, 100 FROM seq_1_to_200")
    stop = threading.Event()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        connection = db.server.connect(database=db.name, autocommit=False)
        with connection.cursor() as cursor:
            while not stop.is_set():
                a, b = sorted(rng.sample(range(1, 201), 2))
                try:
                    cursor.execute(f"UPDATE t SET money = money - 1 WHERE id = {a}")
                    cursor.execute(f"UPDATE t SET money = money + 1 WHERE id = {b}")
                    if rng.random() < 0.2:
                        cursor.execute(f"UPDATE t SET id = id + 1000 WHERE id = {a}")
                        cursor.execute(f"UPDATE t SET id = id - 1000 WHERE id = {a + 1000}")
                    connection.commit() if rng.random() < 0.9 else connection.rollback()
                except OperationalError:  # a deadlock: the server has rolled back
                    continue
        connection.close()

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(3):
            rows, _ = _copied(db, CopyState(((db.name, "t"),)), 60, db.position())
            assert len(rows) == 200
            assert len({row[0] for row in rows}) == 200
            assert sum(row[1] for row in rows) == 20_000
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_tables_that_vanish_or_are_empty(db: Database) -> None:
    """A table that is dropped before its turn is passed over; an empty one still shows what it looks like."""
    db.run("CREATE TABLE a (id int PRIMARY KEY)")
    state = next_step(CopyState(((db.name, "gone"), (db.name, "a"))), Server.of(db.connection), Follow())
    assert state.step == (KeyRange(db.name, "a"),)
    assert state.is_done
    ((description, _, count),) = ChunkReader(db.settings, (), "UTC", 7000).read(state.step[0], db.position())
    assert description.names == ("id",)
    assert count == 0


def test_the_state_survives_as_text() -> None:
    """What is written into an offset is read back, with names and keys of any spelling."""
    state = CopyState(
        (("d", "t`\"'"),),
        ("d", "ü"),
        ("1", "it's"),
        (KeyRange("d", "t", None, ("1",)), KeyRange("d", "t", ("1",), None)),
    )
    assert CopyState.from_text(state.to_text()) == state
    assert CopyState.from_text(CopyState().to_text()) == CopyState()
