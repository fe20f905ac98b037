"""What goes wrong with change capture elsewhere, one test each: crashes, replays, lost slots, odd tables and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.conftest import VERSIONS, Database
from tests.cdc.postgres.following import Follower

from lakebed.cdc.envelope import SCHEMA, Chunk, SourceColumn, chunks_from_arrow
from lakebed.cdc.sources.postgres.names import Offset
from lakebed.cdc.sources.postgres.planner import read_piece
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import InvalidData, NotFound, StorageError
from lakebed.testing.postgres_server import PostgresServer
from lakebed.testing.postgres_workload import RandomWorkload


@pytest.fixture
def follow(database: Any, tmp_path: Path) -> Iterator[Any]:
    """Makes followers of the test's database, and stops them."""
    made: list[Follower] = []

    def start(*statements: str, is_strict: bool = True, **given: Any) -> Follower:
        database.execute(*statements)
        settings = database.settings(**({"mode": "peek", "discovery_ms": 0} | given))
        made.append(Follower(settings, tmp_path, is_strict=is_strict))
        return made[-1]

    yield start
    for follower in made:
        follower.planner.stop()


TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text, n int)"


def _chunks(follower: Follower, start: Offset, end: Offset) -> list[Chunk]:
    return [
        chunk
        for piece in follower.planner.pieces(start, end)
        for batch in read_piece(follower.settings, follower.state, piece)
        for chunk in chunks_from_arrow(batch)
    ]


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_a_batch_that_is_read_again_is_the_same(database: Any, follow: Any, mode: str) -> None:
    """After a crash Spark asks for the same batch: copy and stream give the very same rows, whatever came after."""
    follower = follow(TABLE, "INSERT INTO t SELECT i, 'x', i FROM generate_series(1, 100) i", mode=mode)
    start = follower.planner.initial()
    end = follower.planner.latest(start, None)
    first = _chunks(follower, start, end)
    database.execute("UPDATE t SET n = n + 1", "DELETE FROM t WHERE id < 10")
    follower.restart()
    assert _chunks(follower, start, end) == first
    follower.planner.commit(end)
    follower.offset = end
    follower.rows.apply(first)
    later = Offset(end.chunks, _flush(database))
    first = [chunk for chunk in _chunks(follower, end, later) if chunk.kind != SCHEMA]
    database.execute("INSERT INTO t VALUES (1000, 'late', 0)")
    follower.restart()
    assert [chunk for chunk in _chunks(follower, end, later) if chunk.kind != SCHEMA] == first
    follower.rows.apply(first)
    follower.offset = later
    follower.restart()
    follower.follow()
    follower.compare()


def _flush(database: Any) -> int:
    return int(database.query("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")[0][0])


def _confirmed(database: Any) -> int:
    slots = database.query(
        "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = current_database()"
    )
    return int(slots[0][0])


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_the_slot_moves_only_behind_commits(database: Any, follow: Any, mode: str) -> None:
    """Reading and planning, also of an idle stream, never let the server forget anything; a commit does."""
    follower = follow(TABLE, mode=mode, heartbeat_ms=1)
    begin = _confirmed_after_start(follower, database)
    for _ in range(3):
        database.execute("INSERT INTO t SELECT coalesce(max(id), 0) + 1 FROM t")
        follower.step(commits=False)
        assert _confirmed(database) == begin
    follower.follow()
    assert follower.offset is not None
    follower.planner.commit(follower.offset)
    if mode == "replication":
        follower.restart()  # what the thread has to say is said by then
    assert begin <= _confirmed(database) <= follower.offset.lsn
    follower.compare()


def _confirmed_after_start(follower: Follower, database: Any) -> int:
    follower.step(commits=False)
    return _confirmed(database)


def test_a_slot_that_lags_behind_does_no_harm(database: Any, follow: Any) -> None:
    """Nothing is confirmed for many batches: every change is delivered by offset, once."""
    follower = follow(TABLE)
    for key in range(12):
        database.execute(f"INSERT INTO t VALUES ({key}, 'x', 0)", "UPDATE t SET n = n + 1")
        follower.step(commits=False)
        if key % 4 == 3:
            follower.restart()
    follower.follow()
    follower.compare()


def test_missing_slot(database: Any, follow: Any) -> None:
    """A slot that was dropped stops the stream and says how to begin again."""
    follower = follow(TABLE)
    follower.follow()
    database.execute("SELECT pg_drop_replication_slot(current_database())")
    with pytest.raises(NotFound, match="missing") as caught:
        follower.step()
    assert "new checkpoint" in caught.value.hint


def test_recreated_slot(database: Any, follow: Any) -> None:
    """A slot that was made anew has a gap before it, which is never passed over."""
    follower = follow(TABLE)
    follower.follow()
    database.execute(
        "SELECT pg_drop_replication_slot(current_database())",
        "INSERT INTO t VALUES (1)",
        "SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')",
    )
    with pytest.raises(NotFound, match="made anew"):
        follower.step()


def test_recreated_slot_under_a_kept_connection(database: Any, follow: Any) -> None:
    """The same when the stream keeps a connection: it finds out as it begins."""
    follower = follow(TABLE)
    follower.follow()
    database.execute(
        "SELECT pg_drop_replication_slot(current_database())",
        "INSERT INTO t VALUES (1)",
        "SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')",
    )
    other = Follower(database.settings(mode="replication"), Path(follower.state.root).parent)
    other.offset = follower.offset
    with pytest.raises(NotFound, match="made anew"):
        other.follow()
    other.planner.stop()


def test_invalidated_slot(tmp_path: Path) -> None:
    """A slot whose log the server has removed says so, with the setting that keeps more."""
    limits = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with PostgresServer(settings=limits) as server:
        server.execute(TABLE)
        settings = PostgresSettings.of(server.url, mode="peek")
        follower = Follower(settings, tmp_path)
        follower.follow()
        for _ in range(6):
            server.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 9000000))", "SELECT pg_switch_wal()")
            server.execute("CHECKPOINT")
        with pytest.raises(NotFound, match="invalidated") as caught:
            follower.step()
        assert "max_slot_wal_keep_size" in caught.value.hint
        follower.planner.stop()


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_a_busy_slot_is_waited_for_then_named(database: Any, follow: Any, tmp_path: Path, mode: str) -> None:
    """A zombie that holds the slot for a moment does no harm; one that stays is named with the command that ends it."""
    follower = follow(TABLE, "INSERT INTO t VALUES (1, 'a', 1)", wait_ms=800)
    follower.follow()
    holder = Follower(database.settings(mode="replication"), tmp_path / "other")
    holder.offset = follower.offset
    stream = holder.planner._replication(follower.offset.lsn)
    while not database.query("SELECT 1 FROM pg_replication_slots WHERE active AND slot_name = current_database()"):
        pass
    late = Follower(database.settings(mode=mode, wait_ms=800), Path(follower.state.root).parent)
    late.offset, late.rows = follower.offset, follower.rows
    database.execute("INSERT INTO t VALUES (2, 'b', 2)")
    with pytest.raises(StorageError, match="in use") as caught:
        late.follow()
    assert "pg_terminate_backend(" in caught.value.hint
    stream.stop()
    late.restart()
    late.follow()
    late.compare()
    late.planner.stop()


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_a_crash_of_the_server_loses_and_repeats_nothing(tmp_path: Path, mode: str) -> None:
    """The server is killed again and again in mid-stream: the follower goes on with the same checkpoint."""
    with PostgresServer(VERSIONS[-1]) as server:
        database = Database(server, server.database)
        with database.connect() as connection:
            RandomWorkload(connection, 1).create_tables()
            RandomWorkload(connection, 1).run(20)
        follower = Follower(database.settings(mode=mode, copy_chunks_per_batch=2), tmp_path)
        for seed in range(2, 4):
            with database.connect() as connection:
                RandomWorkload(connection, seed).run(8)
            follower.step()
            server.kill()
            server.start()
            follower.step(commits=seed != 2)
        follower.follow()
        follower.compare()
        follower.planner.stop()


def test_long_open_transaction_arrives_once(database: Any, follow: Any) -> None:
    """A transaction that was open before the copy of other changes comes when it is committed."""
    follower = follow(TABLE)
    follower.follow()
    with database.connect() as writer:
        with writer.transaction():
            writer.execute("INSERT INTO t SELECT i, 'open', i FROM generate_series(1, 50) i")
            for key in range(100, 105):
                database.execute(f"INSERT INTO t VALUES ({key})", "CREATE TABLE IF NOT EXISTS noise (a int)")
                database.execute("INSERT INTO noise SELECT generate_series(1, 50)")
                follower.step()
            assert all(key[0] >= 100 for rows in follower.rows.tables.values() for key in rows)
        follower.follow()
        assert {len(rows) for name, rows in follower.rows.tables.items() if name.table == "t"} == {55}
    assert follower.rows.faults == []


def test_tables_that_come_later_are_copied_and_followed(any_database: Any, tmp_path: Path) -> None:
    """A new table is published, copied and streamed while the stream runs, with rows from before and after."""
    any_database.execute(TABLE, "INSERT INTO t VALUES (1, 'a', 1)")
    follower = Follower(any_database.settings(mode="peek", copy_chunk_bytes=8192), tmp_path)
    follower.follow()
    any_database.execute(
        "CREATE TABLE later (id int PRIMARY KEY, v text)",
        "INSERT INTO later SELECT i, repeat('x', 50) FROM generate_series(1, 1000) i",
        "INSERT INTO t VALUES (2, 'b', 2)",
    )
    follower.follow()
    follower.compare()
    any_database.execute("DELETE FROM later WHERE id % 3 = 0", "UPDATE later SET id = id + 5000 WHERE id % 7 = 1")
    follower.follow()
    follower.compare()
    assert len({part.table for part in follower.state.parts()}) == 2
    follower.planner.stop()


def test_new_tables_of_a_publication_of_all_tables(database: Any, follow: Any) -> None:
    """There the server has streamed the table's changes from its birth; the copy on top changes nothing in the end."""
    database.execute(TABLE, "CREATE PUBLICATION lakebed FOR ALL TABLES WITH (publish_via_partition_root = true)")
    follower = follow(is_strict=False)
    follower.follow()
    database.execute("CREATE TABLE later (id int PRIMARY KEY, v text)", "INSERT INTO later VALUES (1, 'a'), (2, 'b')")
    follower.planner._looked_at = float("inf")
    follower.step()
    database.execute("DELETE FROM later WHERE id = 1", "INSERT INTO later VALUES (3, 'c')")
    follower.follow()
    follower.compare()


def test_a_table_that_takes_the_name_of_another(database: Any, follow: Any) -> None:
    """DROP TABLE sends nothing: a table made under the same name takes the place of the old one, and of its rows."""
    follower = follow(TABLE, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)", is_strict=False)
    follower.follow()
    database.execute("UPDATE t SET n = 9", "DROP TABLE t", TABLE, "INSERT INTO t VALUES (2, 'new', 5), (3, 'c', 3)")
    follower.follow()
    follower.compare()
    database.execute("DELETE FROM t WHERE id = 2")
    follower.follow()
    follower.compare()


def test_a_renamed_table_is_followed_under_its_new_name(database: Any, follow: Any) -> None:
    """ALTER TABLE … RENAME sends nothing: the new name gets all rows, the old one keeps what it had."""
    follower = follow(TABLE, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)", is_strict=False)
    follower.follow()
    database.execute("ALTER TABLE t RENAME TO renamed", "UPDATE renamed SET n = 7 WHERE id = 1")
    follower.follow()
    follower.compare()
    assert {name.table for name in follower.rows.tables} == {"t", "renamed"}


def test_tables_that_change_places(database: Any, follow: Any) -> None:
    """Names that are exchanged in a transaction: each ends with the rows of the table that has it."""
    rows = "INSERT INTO {} SELECT i, '{}', i FROM generate_series({}) i"
    other = TABLE.replace("TABLE t ", "TABLE other ")
    assert other != TABLE
    follower = follow(
        TABLE, other, rows.format("t", "t", "1, 40"), rows.format("other", "o", "20, 60"), is_strict=False
    )
    follower.follow()
    with database.connect() as writer, writer.transaction():
        writer.execute("DELETE FROM t WHERE id % 3 = 0")
        for old, new in (("t", "halfway"), ("other", "t"), ("halfway", "other")):
            writer.execute(f"ALTER TABLE {old} RENAME TO {new}")
        writer.execute("DELETE FROM t WHERE id % 5 = 0")
    database.execute("UPDATE other SET v = 'x' WHERE id < 9")
    follower.follow()
    database.execute("DELETE FROM other WHERE id > 30", "INSERT INTO t VALUES (1000, 'new', 1)")
    follower.follow()
    follower.compare()
    for old, new in (("t", "halfway"), ("other", "t"), ("halfway", "other")):  # back again
        database.execute(f"ALTER TABLE {old} RENAME TO {new}")
    database.execute("UPDATE t SET v = 'z' WHERE id < 20", "DELETE FROM other WHERE id = 1000")
    follower.follow()
    follower.compare()


def test_a_new_table_takes_the_name_of_one_that_stays(database: Any, follow: Any) -> None:
    """Changes of the table that had the name before are not made to the rows of the one that has it now."""
    follower = follow(TABLE, "INSERT INTO t SELECT i, 't', i FROM generate_series(1, 40) i", is_strict=False)
    follower.follow()
    database.execute("UPDATE t SET n = 0 WHERE id > 20", TABLE.replace("TABLE t ", "TABLE fresh "))
    database.execute("INSERT INTO fresh SELECT i, 'f', i FROM generate_series(1, 15) i", "DELETE FROM t WHERE id = 9")
    database.execute(
        "ALTER TABLE t RENAME TO old", "ALTER TABLE fresh RENAME TO t", "INSERT INTO t VALUES (99, 'x', 9)"
    )
    follower.follow()
    database.execute("UPDATE old SET v = 'o' WHERE id < 5", "DELETE FROM t WHERE id < 5")
    follower.follow()
    follower.compare()


def _number(column: SourceColumn) -> int:
    """The column's number in its table, without the table's."""
    assert column.id is not None
    return column.id & 0xFFFF


def test_added_column_is_told_without_a_row(database: Any, follow: Any) -> None:
    """ADD COLUMN … DEFAULT sends no row: the description comes by itself, with the value that old rows have."""
    follower = follow(TABLE, "INSERT INTO t VALUES (1, 'a', 1)")
    follower.follow()
    database.execute("ALTER TABLE t ADD COLUMN w int DEFAULT 7", "ALTER TABLE t ADD COLUMN b boolean DEFAULT true")
    follower.follow()
    (description,) = follower.rows.descriptions.values()
    assert [(column.name, column.default) for column in description.columns[3:]] == [("w", "7"), ("b", "true")]
    assert [_number(column) for column in description.columns] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN w int DEFAULT (random() * 1000)::int",
        "ALTER TABLE t ALTER COLUMN n TYPE text USING 'n' || n",
        "ALTER TABLE t ADD COLUMN s serial",
    ],
)
def test_rewritten_table_is_copied_again(database: Any, follow: Any, change: str) -> None:
    """A rewrite gives rows values that the log does not hold: the table is copied once more, behind all old rows."""
    follower = follow(TABLE, "INSERT INTO t SELECT i, 'x', i FROM generate_series(1, 40) i", is_strict=False)
    follower.follow()
    database.execute("UPDATE t SET v = 'y' WHERE id < 10", change, "UPDATE t SET v = 'z' WHERE id = 3")
    for _ in range(3):
        follower.follow()
    follower.compare()


def test_columns_that_change_within_a_transaction(database: Any, follow: Any) -> None:
    """Rows of one transaction before and after ALTER TABLE come with the columns of their moment."""
    follower = follow(TABLE)
    follower.follow()
    with database.connect() as writer, writer.transaction():
        writer.execute("INSERT INTO t VALUES (1, 'a', 1)")
        writer.execute("ALTER TABLE t ADD COLUMN w int")
        writer.execute("INSERT INTO t VALUES (2, 'b', 2, 3)")
        writer.execute("ALTER TABLE t RENAME COLUMN v TO name")
        writer.execute("INSERT INTO t VALUES (3, 'c', 3, 4)")
    follower.follow()
    (rows,) = follower.rows.tables.values()
    assert rows == {
        (1,): {"id": 1, "v": "a", "n": 1},
        (2,): {"id": 2, "v": "b", "n": 2, "w": 3},
        (3,): {"id": 3, "name": "c", "n": 3, "w": 4},
    }
    (description,) = follower.rows.descriptions.values()
    numbers = [(column.name, _number(column)) for column in description.columns]
    assert numbers == [("id", 1), ("name", 2), ("n", 3), ("w", 4)]


def test_partitions_of_a_publication_without_root(database: Any, follow: Any) -> None:
    """Where the user's publication sends partitions as tables of their own, a row that moves leaves one for another."""
    database.execute(
        "CREATE TABLE p (id int, r text, PRIMARY KEY (id, r)) PARTITION BY LIST (r)",
        "CREATE TABLE p_a PARTITION OF p FOR VALUES IN ('a')",
        "CREATE TABLE p_b PARTITION OF p FOR VALUES IN ('b')",
        "INSERT INTO p VALUES (1, 'a'), (2, 'b')",
        "CREATE PUBLICATION lakebed FOR TABLE p",
    )
    follower = follow()
    follower.follow()
    follower.compare()
    database.execute("UPDATE p SET r = 'b' WHERE id = 1")
    follower.follow()
    follower.compare()
    assert {name.table: len(rows) for name, rows in follower.rows.tables.items()} == {"p_a": 0, "p_b": 2}


def test_identity_by_index(database: Any, follow: Any) -> None:
    """Where deletes name an index, its columns are the key, whatever the primary key is."""
    follower = follow(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL, n int)",
        "CREATE UNIQUE INDEX by_code ON t (code)",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX by_code",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
    )
    follower.follow()
    database.execute("DELETE FROM t WHERE id = 1", "UPDATE t SET code = 'c' WHERE id = 2")
    follower.follow()
    follower.compare()
    (description,) = follower.rows.descriptions.values()
    assert description.primary_key == ("code",)


def test_generated_columns(any_database: Any, tmp_path: Path) -> None:
    """Stored generated columns are followed where the server sends them, and left out everywhere else."""
    any_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (2 * n) STORED)",
        "INSERT INTO t VALUES (1, 1)",
    )
    follower = Follower(any_database.settings(mode="peek"), tmp_path)
    follower.follow()
    any_database.execute("UPDATE t SET n = 5", "INSERT INTO t VALUES (2, 2)")
    follower.follow()
    follower.compare()
    (rows,) = follower.rows.tables.values()
    is_sent = any_database.query("SELECT current_setting('server_version_num')::int")[0][0] >= 180000
    assert rows[(1,)] == {"id": 1, "n": 5} | ({"twice": 10} if is_sent else {})
    follower.planner.stop()


def test_values_that_the_lake_can_not_hold(database: Any, follow: Any) -> None:
    """By default an error that names table, column, value and key; by choice null."""
    follower = follow("CREATE TABLE t (id int PRIMARY KEY, at timestamp)")
    follower.follow()
    database.execute("INSERT INTO t VALUES (7, '2024-01-01'), (8, 'infinity')")
    with pytest.raises(InvalidData, match=r"column `at` of table `public.t` has the value 'infinity' .*id=8"):
        follower.step()
    tolerant = Follower(database.settings(mode="peek", values_that_do_not_fit="null"), Path(follower.state.root).parent)
    tolerant.offset = follower.offset
    tolerant.follow()
    tolerant.compare()
    tolerant.planner.stop()


def test_hostile_names(any_database: Any, tmp_path: Path) -> None:
    """Names with quotes, of 63 bytes, in other scripts and of reserved words are names everywhere, never SQL."""
    schema, table = "sch'e\"ma; DROP TABLE x; --", "ü" * 31 + "t"
    column, publication = "a\"b'c; SELECT 1 --", "p'u\"b, other"

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    full = f"{quoted(schema)}.{quoted(table)}"
    any_database.execute(
        f"CREATE SCHEMA {quoted(schema)}",
        f'CREATE TABLE {full} ({quoted(column)} uuid PRIMARY KEY, "select" text, "%s %(x)s {{}}" int)',
        f"INSERT INTO {full} SELECT gen_random_uuid(), 'x', i FROM generate_series(1, 500) i",
    )
    settings = any_database.settings(mode="peek", schemas=".*", publication=publication, copy_chunk_bytes=8192)
    follower = Follower(settings, tmp_path)
    follower.follow()
    any_database.execute(f"UPDATE {full} SET \"select\" = 'y'", f'DELETE FROM {full} WHERE "%s %(x)s {{}}" < 100')
    follower.follow()
    follower.compare()
    assert len(follower.state.parts()) > 1
    follower.planner.stop()
    kept = Follower(any_database.settings(mode="replication", schemas=".*", publication=publication), tmp_path)
    kept.offset, kept.rows = follower.offset, follower.rows
    any_database.execute(f'DELETE FROM {full} WHERE "%s %(x)s {{}}" < 200')
    while len(next(iter(kept.rows.tables.values()))) > 301:
        kept.step()
    kept.planner.stop()


def test_a_long_value_that_moves_between_parts_during_the_copy(database: Any, follow: Any) -> None:
    """A row moves from a part that is not copied yet to one that is: its untouched long value comes with it."""
    follower = follow(
        "CREATE TABLE t (id int PRIMARY KEY, big text, pad text)",
        "ALTER TABLE t ALTER COLUMN big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, repeat('x' || i, 3000), repeat('p', 200) FROM generate_series(1, 200) i",
        copy_chunk_bytes=8192,
        copy_chunks_per_batch=1,
    )
    follower.step()
    assert follower.state.parts()[0].upper is not None
    assert len(follower.state.parts()) > 2
    database.execute("UPDATE t SET id = -5 WHERE id = 200", "UPDATE t SET pad = 'short' WHERE id = -5")
    follower.follow()
    follower.compare()
