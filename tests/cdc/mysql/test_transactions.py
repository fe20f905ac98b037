"""Transactions of a real log: only what was committed, in commit order, whole, and again from any position."""

from __future__ import annotations

import pytest

from lakebed.cdc.sources.mysql.log.events import Statement
from lakebed.cdc.sources.mysql.log.reader import LogReader
from lakebed.cdc.sources.mysql.log.transactions import Rows
from lakebed.errors import NotFound
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition

from .conftest import Database, Position


@pytest.fixture
def t(db: Database) -> Database:
    """A database with a table of two columns and three rows."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    return db


@pytest.mark.mysql
def test_every_kind_of_change(t: Database) -> None:
    """Inserts, updates as pairs, key changes as delete and insert, deletes."""
    start = t.position()
    t.run("INSERT INTO t VALUES (4, 40)", "UPDATE t SET v = v + 1 WHERE id < 3", "UPDATE t SET id = 9 WHERE id = 3")
    t.run("DELETE FROM t WHERE id = 4", "REPLACE INTO t VALUES (1, 77)")
    assert t.events(start, "id", "v") == [
        ("+I", 4, 40),
        ("-U", 1, 10),
        ("+U", 1, 11),
        ("-U", 2, 20),
        ("+U", 2, 21),
        ("-D", 3, 30),
        ("+I", 9, 30),
        ("-D", 4, 40),
        ("-U", 1, 11),
        ("+U", 1, 77),
    ]


def test_rolled_back_work_is_not_seen(t: Database) -> None:
    """Rollbacks, to a savepoint and of all."""
    start = t.position()
    t.run("BEGIN", "INSERT INTO t VALUES (4, 1)", "ROLLBACK")
    t.run(
        "BEGIN", "INSERT INTO t VALUES (5, 1)", "SAVEPOINT a", "INSERT INTO t VALUES (6, 1)", "ROLLBACK TO a", "COMMIT"
    )
    assert t.events(start, "id") == [("+I", 5)]
    assert [row[0] for row in t.run("SELECT id FROM t WHERE id > 3 ORDER BY id")] == [5]


@pytest.mark.only_mariadb  # MySQL refuses such transactions where it numbers them
def test_rolled_back_work_beside_a_table_that_can_not_roll_back(t: Database) -> None:
    """Rollbacks, to a savepoint and of all, are logged as such where a table keeps its rows; others are not seen."""
    t.run("CREATE TABLE m (id int PRIMARY KEY) ENGINE = MyISAM")
    start = t.position()
    t.run(
        "BEGIN",
        "INSERT INTO t VALUES (7, 1)",
        "SAVEPOINT `b c`",
        "INSERT INTO t VALUES (8, 1)",
        "INSERT INTO m SELECT 100 FROM t LIMIT 1",
        "ROLLBACK TO `b c`",
        "INSERT INTO t VALUES (9, 1)",
        "COMMIT",
    )
    t.run("BEGIN", "INSERT INTO t VALUES (10, 1)", "INSERT INTO m SELECT 101 FROM t LIMIT 1", "ROLLBACK")
    seen = [event for event in t.events(start, "id") if event[1] < 100]
    assert seen == [("+I", 7), ("+I", 9)]
    assert [row[0] for row in t.run("SELECT id FROM t WHERE id > 3 ORDER BY id")] == [7, 9]


@pytest.mark.mysql
def test_two_phase_commits(t: Database) -> None:
    """Rows of a prepared transaction appear when it is committed, in that place; never if it is rolled back."""
    start = t.position()
    t.run("XA START 'a'", "INSERT INTO t VALUES (4, 1)", "XA END 'a'", "XA PREPARE 'a'")
    other = t.server.connect(database=t.name)
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (5, 1)")
    t.run("XA COMMIT 'a'")
    t.run("XA START 'b','x''y',7", "INSERT INTO t VALUES (6, 1)", "XA END 'b','x''y',7", "XA PREPARE 'b','x''y',7")
    t.run("XA ROLLBACK 'b','x''y',7")
    t.run("XA START 'c'", "INSERT INTO t VALUES (7, 1)", "XA END 'c'", "XA COMMIT 'c' ONE PHASE")
    other.close()
    assert t.events(start, "id") == [("+I", 5), ("+I", 4), ("+I", 7)]


@pytest.mark.mysql
def test_a_transaction_prepared_before_the_start(t: Database) -> None:
    """A reader that begins between prepare and commit finds the rows, also in an older file of the log."""
    t.run("XA START 'a'", "INSERT INTO t VALUES (4, 1)", "XA END 'a'", "XA PREPARE 'a'")
    t.server.execute("FLUSH BINARY LOGS")
    t.server.execute(f"INSERT INTO {t.name}.t VALUES (5, 1)")
    start = t.position()
    t.run("XA COMMIT 'a'")
    assert t.events(start, "id") == [("+I", 4)]


def test_reading_stops_and_goes_on_at_any_transaction(t: Database) -> None:
    """One reader, asked for one transaction after another, gives what it gives at once."""
    start = t.position()
    ends: list[Position] = []
    for i in range(10, 20):
        t.run("BEGIN", f"INSERT INTO t VALUES ({i}, 0)", f"UPDATE t SET v = 1 WHERE id = {i}", "COMMIT")
        ends.append(t.position())
    reader = LogReader(t.settings, start, 4242)
    try:
        for end in ends:
            pieces = list(reader.read_to(end))
            assert len(pieces) == 1
            assert isinstance(pieces[0], Rows)
            assert len(pieces[0].events) == 2
            assert reader.position == end
            assert list(reader.read_to(end)) == []
    finally:
        reader.close()


@pytest.mark.mysql
def test_statements_stand_between_the_rows_they_stood_between(t: Database) -> None:
    """DDL and TRUNCATE come out in order with rows."""
    start = t.position()
    t.run("INSERT INTO t VALUES (4, 1)", "ALTER TABLE t ADD COLUMN w int", "INSERT INTO t VALUES (5, 1, 2)")
    t.run("TRUNCATE TABLE t", "INSERT INTO t VALUES (6, 1, 2)")
    said = [piece.text if isinstance(piece, Statement) else "rows" for piece in t.pieces(start)]
    assert said == ["rows", "ALTER TABLE t ADD COLUMN w int", "rows", "TRUNCATE TABLE t", "rows"]


def test_numbers_of_tables_start_again_with_the_server(db: Database) -> None:
    """A log of two runs of a server has two tables of one number; rows find their own."""
    db.run("CREATE TABLE a (id int PRIMARY KEY, x int)", "CREATE TABLE b (y varchar(9) PRIMARY KEY)")
    start = db.position()
    db.run("INSERT INTO a VALUES (1, 2)")
    db.server.restart()
    db.reconnect()
    db.run("INSERT INTO b VALUES ('k')", "INSERT INTO a VALUES (2, 3)")
    assert [(change.name.table, len(change)) for change in db.changes(start)] == [("a", 1), ("b", 1), ("a", 1)]


@pytest.mark.only_mariadb
def test_several_domains(t: Database) -> None:
    """A log with transactions of several domains is read up to a position of both."""
    start = t.position()
    t.run("SET SESSION gtid_domain_id = 7", "INSERT INTO t VALUES (4, 1)", "INSERT INTO t VALUES (5, 1)")
    t.run("SET SESSION gtid_domain_id = 0", "INSERT INTO t VALUES (6, 1)")
    assert isinstance(position := t.position(), MariaDbPosition)
    assert len(position.domains) == 2
    assert t.events(start, "id") == [("+I", 4), ("+I", 5), ("+I", 6)]
    middle = t.position()
    t.run("SET SESSION gtid_domain_id = 7", "INSERT INTO t VALUES (8, 1)", "SET SESSION gtid_domain_id = 0")
    assert t.events(middle, "id") == [("+I", 8)]


def test_a_purged_log_says_what_to_do(t: Database) -> None:
    """A position whose log is gone is an error that names the repair, not silence."""
    start = t.position()
    t.run("INSERT INTO t VALUES (4, 1)")
    t.purge_log()
    with pytest.raises(NotFound, match=r"no longer holds.*\n.*new checkpoint.*binlog_expire_logs_seconds"):
        t.events(start, "id")


def test_a_position_of_the_future_says_what_to_do(t: Database) -> None:
    """A position that the server's log never had (another server, a lost log) is an error too."""
    position = t.position()
    ahead: tuple[Position, Position]
    if isinstance(position, MariaDbPosition):
        ((domain, server, sequence),) = position.domains[:1]
        ahead = position.after(domain, server, sequence + 1000), position.after(domain, server, sequence + 1001)
    else:
        ((uuid, ((_, last), *_)), *_) = position.servers
        ahead = MySqlPosition(((uuid, ((1, last + 1000),)),)), MySqlPosition(((uuid, ((1, last + 1001),)),))
    reader = LogReader(t.settings, ahead[0], 4243)
    try:
        with pytest.raises(NotFound, match="new checkpoint"):
            list(reader.read_to(ahead[1]))
    finally:
        reader.close()


def test_the_server_may_restart_while_it_is_read(t: Database) -> None:
    """A reader whose connection ends goes on behind the last complete transaction."""
    start = t.position()
    t.run("INSERT INTO t VALUES (4, 1)")
    reader = LogReader(t.settings, start, 4244)
    try:
        assert len(list(reader.read_to(t.position()))) == 1
        t.server.restart()
        t.reconnect()
        t.run("INSERT INTO t VALUES (5, 1)")
        assert len(list(reader.read_to(t.position()))) == 1
    finally:
        reader.close()
