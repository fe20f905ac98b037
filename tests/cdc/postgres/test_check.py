"""What stands against following a database is said before anything is created, with the command that repairs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakebed.cdc.sources.postgres import PostgresSettings, PostgresSource
from lakebed.errors import (
    AlreadyExists,
    InvalidArgument,
    InvalidSchema,
    LakebedError,
    NotFound,
    StorageError,
    Unsupported,
)
from lakebed.testing.postgres_server import PostgresServer


def _source(database: Any, /, **given: Any) -> PostgresSource:
    return PostgresSource(database.url, **({"slot": database.name} | given))


def _refused(database: Any, kind: type[LakebedError], repair: str, **given: Any) -> str:
    """The error of a check; nothing was made."""
    with pytest.raises(kind) as caught:
        _source(database, **given).check()
    assert repair in caught.value.hint, caught.value
    assert database.query("SELECT 1 FROM pg_publication") == []
    assert database.query("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", database.name) == []
    return str(caught.value)


def test_a_good_database_passes_and_nothing_is_made(any_database: Any) -> None:
    """The check alone changes nothing, and the tables are described."""
    any_database.execute("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)", "COMMENT ON COLUMN t.v IS 'a value'")
    source = _source(any_database)
    source.check()
    assert any_database.query("SELECT 1 FROM pg_publication") == []
    (table,) = source.tables()
    assert table.description.primary_key == ("id",)
    assert [(column.name, str(column.type), column.comment) for column in table.description.columns] == [
        ("id", "INT NOT NULL", None),
        ("v", "STRING NOT NULL", "a value"),
    ]


def test_wrong_password_and_unknown_names(database: Any) -> None:
    """Credentials that are wrong are told from a server that is not there, without showing the password."""
    with pytest.raises(InvalidArgument, match="does not let us in") as caught:
        _source(database, password="wrong-secret").check()
    assert "wrong-secret" not in str(caught.value)
    assert "passfile" in caught.value.hint
    with pytest.raises(NotFound, match="nowhere"):
        _source(database, database="nowhere").check()
    with pytest.raises(StorageError, match="can not be reached"):
        _source(database, port=1).check()


def test_table_without_key(database: Any) -> None:
    """Such a table is refused by name, or left out: publishing it would make its updates fail at the source."""
    database.execute("CREATE TABLE k (id int PRIMARY KEY)", "CREATE TABLE nokey (id int)")
    text = _refused(database, InvalidSchema, 'ALTER TABLE "public"."nokey" ADD PRIMARY KEY')
    assert "public.nokey" in text
    source = _source(database, tables_without_key="skip")
    source.check()
    assert [table.name.table for table in source.tables()] == ["k"]


def test_identity_nothing(database: Any) -> None:
    """A table that does not say which row it deletes is refused."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY NOTHING")
    _refused(database, InvalidSchema, 'ALTER TABLE "public"."t" REPLICA IDENTITY DEFAULT')


def test_unsupported_type(database: Any) -> None:
    """A type without counterpart is named with its column; as text it is followed."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, where_ point, how_long interval)")
    text = _refused(database, Unsupported, 'unsupported_types="string"')
    assert "`where_`" in text
    assert "point" in text
    source = _source(database, unsupported_types="string")
    source.check()
    assert [str(column.type) for column in source.tables()[0].description.columns[1:]] == ["STRING", "STRING"]


def test_no_table_matches(database: Any) -> None:
    """Patterns that match nothing are shown."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    _refused(database, NotFound, "regular expressions", including="orders_.*")


@pytest.mark.parametrize(
    ("grants", "repair"),
    [
        ((), "REPLICATION"),
        (("ALTER ROLE {role} REPLICATION",), "GRANT CREATE ON DATABASE"),
        (("ALTER ROLE {role} REPLICATION", "GRANT CREATE ON DATABASE {db} TO {role}"), "GRANT SELECT ON"),
        (
            (
                "ALTER ROLE {role} REPLICATION",
                "GRANT CREATE ON DATABASE {db} TO {role}",
                "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
            ),
            "OWNER TO",
        ),
    ],
)
def test_missing_rights(database: Any, grants: tuple[str, ...], repair: str) -> None:
    """Each right that is missing is named with the statement that gives it."""
    role = f"role_{database.name}"
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        f"CREATE ROLE {role} LOGIN PASSWORD 'x'",
        *(grant.format(role=role, db=database.name) for grant in grants),
    )
    try:
        _refused(database, InvalidArgument, repair, user=role, password="x")
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_wal_level_is_not_logical(tmp_path: Path) -> None:
    """The setting that the server lacks is named, with what a change of it needs."""
    with PostgresServer(settings={"wal_level": "replica"}) as server:
        server.execute("CREATE TABLE t (id int PRIMARY KEY)")
        with pytest.raises(InvalidArgument, match="wal_level = replica") as caught:
            PostgresSource(server.url).check()
        assert "ALTER SYSTEM SET wal_level = logical" in caught.value.hint
        assert server.query("SELECT 1 FROM pg_publication") == []


@pytest.mark.parametrize("slot", ["", "a" * 64, "Upper", "dash-ed", "spa ce", "x'; DROP TABLE t; --", "ü"])
def test_slot_names_that_the_server_would_refuse(slot: str) -> None:
    """Names of slots are checked before anybody is asked."""
    with pytest.raises(InvalidArgument, match="slot"):
        PostgresSettings(slot=slot)


@pytest.mark.parametrize("publication", ["", "p" * 64, "ü" * 32, "zero\0"])
def test_publication_names_that_the_server_would_cut_off(publication: str) -> None:
    """A name that is too long would be cut off in silence."""
    with pytest.raises(InvalidArgument, match="publication"):
        PostgresSettings(publication=publication)


def test_a_slot_that_somebody_else_made_is_not_taken(database: Any, tmp_path: Path) -> None:
    """A slot that is there is only used if this checkpoint made it, or if its user says so."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')",
    )
    source = _source(database)
    source.keep_state_in(str(tmp_path / "state"))
    with pytest.raises(AlreadyExists) as caught:
        source.prepare()
    assert "adopt_slot=True" in caught.value.hint
    assert database.query("SELECT 1 FROM pg_publication") == []
    adopting = _source(database, adopt_slot=True)
    adopting.keep_state_in(str(tmp_path / "state"))
    adopting.prepare()
    adopting.prepare()


def test_a_slot_of_another_plugin(database: Any) -> None:
    """A slot that speaks another language is refused by the check."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "SELECT pg_create_logical_replication_slot(current_database(), 'test_decoding')",
    )
    with pytest.raises(InvalidArgument, match="test_decoding"):
        _source(database).check()


def test_publication_that_leaves_something_out(database: Any) -> None:
    """A publication of the user's own is used as it is, if it sends everything."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION lakebed FOR TABLE t WITH (publish = 'insert')"
    )
    with pytest.raises(InvalidArgument) as caught:
        _source(database).check()
    assert "SET (publish = 'insert, update, delete, truncate')" in caught.value.hint
    database.execute("DROP PUBLICATION lakebed", "CREATE PUBLICATION lakebed FOR TABLE t WHERE (id > 5)")
    with pytest.raises(Unsupported, match="a part of table"):
        _source(database).check()


def test_a_transaction_that_stays_open_is_named(database: Any, tmp_path: Path) -> None:
    """The slot can not be made while a writer goes on: the error names its process and how to end it."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source = _source(database, wait_ms=500)
    source.keep_state_in(str(tmp_path / "state"))
    with database.connect() as writer, writer.transaction():
        writer.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(StorageError, match="still open") as caught:
            source.prepare()
        assert f"pg_terminate_backend({writer.info.backend_pid})" in caught.value.hint
    source.prepare()


@pytest.mark.parametrize(
    "make",
    [
        PostgresSettings.of,
        PostgresSource,
        lambda url: PostgresSettings.of(url).to_text(),
        lambda url: PostgresSettings.from_text(PostgresSettings.of(url).to_text()),
    ],
)
def test_no_text_shows_the_password(make: Callable[[str], Any]) -> None:
    """Settings, sources and what goes to Spark hold where the password is, not the password."""
    made = make("postgresql://ann:s3cr%2Ft@db.example:6000/shop?sslmode=require")
    assert "s3cr" not in repr(made)
    assert "s3cr" not in str(made)
    if isinstance(made, PostgresSettings):
        assert made.passfile is not None
        assert Path(made.passfile).read_text() == "*:*:shop:ann:s3cr/t\n"
        assert Path(made.passfile).stat().st_mode & 0o077 == 0
        assert (made.host, made.port, made.database, made.user) == ("db.example", 6000, "shop", "ann")


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "mysql://x"},
        {"url": "postgresql://h/db?sslmod=require"},
        {"hots": "x"},
        {"mode": "pull"},
        {"including": "("},
        {"copy_chunk_bytes": 0},
    ],
)
def test_wrong_settings_are_refused(arguments: dict[str, Any]) -> None:
    """A misspelt setting is an error of ours, with a hint."""
    with pytest.raises(InvalidArgument):
        PostgresSettings.of(**arguments)
