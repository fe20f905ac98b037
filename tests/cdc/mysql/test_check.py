"""What stands in the way of following a server is said before anything is made, with the statement that repairs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.cdc.sources import open_source
from lakebed.cdc.sources.mysql import MySqlSource
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.errors import (
    InvalidArgument,
    InvalidOption,
    InvalidSchema,
    LakebedError,
    NotFound,
    StorageError,
    Unsupported,
)
from lakebed.testing.ports import free_port
from lakebed.testing.sql_server import PASSWORD, USER

from .conftest import Database, make_server


def _source(db: Database, **more: object) -> MySqlSource:
    given = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name, **more}
    return MySqlSource(host="127.0.0.1", **given)  # type: ignore[arg-type]


@contextmanager
def _setting(db: Database, name: str, value: str) -> Iterator[None]:
    (old,) = db.run(f"SELECT @@GLOBAL.{name}")[0]
    db.run(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        db.run(f"SET GLOBAL {name} = '{old}'")


@pytest.mark.parametrize(
    ("name", "value", "repair"),
    [
        ("binlog_format", "'STATEMENT'", "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", "'MINIMAL'", "SET GLOBAL binlog_row_image = 'FULL'"),
        ("binlog_row_metadata", "'MINIMAL'", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    ],
)
def test_settings_that_lose_something(db: Database, name: str, value: str, repair: str) -> None:
    """A log that does not carry whole rows with their names is refused."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    _source(db).check()
    with _setting(db, name, value), pytest.raises(InvalidOption, match=f"(?s){name}.*{repair}"):
        _source(db).check()


def test_no_log_at_all(server_kind: str) -> None:
    """A server without a binary log is refused; the settings that turn it on are named."""
    with make_server(server_kind, ["--skip-log-bin"]) as server:
        source = MySqlSource(port=server.port, user=USER, password=PASSWORD)
        with pytest.raises(InvalidOption, match=r"(?s)no binary log.*log_bin=binlog"):
            source.check()


@pytest.mark.mysql
def test_rights_that_are_missing(db: Database) -> None:
    """Each right that lacks is named with its GRANT; with all of them the source is good."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE OR REPLACE USER poor IDENTIFIED BY 'x'")
    poor = _source(db, user="poor", password="x")
    with pytest.raises(Unsupported, match=r"(?s)REPLICATION SLAVE and REPLICATION CLIENT.*GRANT .*TO 'poor'"):
        poor.check()
    db.run("GRANT REPLICATION SLAVE ON *.* TO poor")
    with pytest.raises(Unsupported, match=r"lacks REPLICATION CLIENT\n"):
        poor.check()
    db.run("GRANT REPLICATION CLIENT ON *.* TO poor")
    with pytest.raises(NotFound, match=r"(?s)no table.*GRANT SELECT"):
        poor.check()
    db.run(f"GRANT SELECT ON {db.name}.* TO poor")
    poor.check()
    assert [str(table.name) for table in poor.tables()] == [f"{db.name}.t"]
    db.run("DROP USER poor")


def test_wrong_password_host_and_port(db: Database) -> None:
    """Who can not log in is told what to check, and the password is nowhere in it."""
    with pytest.raises(InvalidArgument, match=r"(?s)refuses to log in.*ALTER USER") as refused:
        _source(db, password="tr0ub4dor").check()
    assert "tr0ub4dor" not in str(refused.value)
    with pytest.raises(StorageError, match=r"(?s)no connection.*bind-address"):
        _source(db, port=free_port()).check()
    with pytest.raises(InvalidOption, match=r"LAKEBED_NO_SUCH"):
        MySqlSource(password_env="LAKEBED_NO_SUCH").check()
    with pytest.raises(InvalidOption, match=r"no-such-file"):
        MySqlSource(password_file="/no-such-file").check()


@pytest.mark.parametrize(
    ("definition", "error", "message"),
    [
        ("t (id int)", InvalidSchema, r"(?s)no primary key.*ADD PRIMARY KEY"),
        ("t (id int PRIMARY KEY, g varchar(9) CHARACTER SET geostd8)", Unsupported, r"(?s)`g`.*geostd8.*utf8mb4"),
        ("t (id int PRIMARY KEY) ENGINE = MyISAM", Unsupported, r"(?s)MyISAM.*ENGINE = InnoDB"),
    ],
)
def test_tables_that_can_not_be_followed(
    db: Database, definition: str, error: type[LakebedError], message: str
) -> None:
    """Tables without key, types that can not be read, engines without transactions: refused, or skipped."""
    _assert_refused(db, definition, error, message)


@pytest.mark.only_mariadb
@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("t (id int PRIMARY KEY, u uuid)", r"(?s)`u`.*uuid.*MODIFY `u`"),
        ("t (id int PRIMARY KEY, i inet6)", r"(?s)`i`.*inet6"),
        ("t (id int PRIMARY KEY, c text COMPRESSED)", r"(?s)`c`.*compressed"),
        (  # MySQL 9.6 and later have such changes in the log
            "t (id int PRIMARY KEY, p int, FOREIGN KEY fk (p) REFERENCES parent (id) ON DELETE CASCADE)",
            r"(?s)foreign key.*RESTRICT.*cascades='ignore'",
        ),
        ("t (id int PRIMARY KEY) WITH SYSTEM VERSIONING", r"(?s)SYSTEM VERSIONING.*DROP SYSTEM"),
    ],
)
def test_tables_that_only_mariadb_has(db: Database, definition: str, message: str) -> None:
    """Types whose values the log does not tell from bytes, and tables that keep their history: refused, or skipped."""
    _assert_refused(db, definition, Unsupported, message)


@pytest.mark.only_mysql
def test_a_type_that_only_mysql_has(db: Database) -> None:
    """Vectors are refused by name, or skipped."""
    _assert_refused(db, "t (id int PRIMARY KEY, v vector(3))", Unsupported, r"(?s)`v`.*vector.*MODIFY `v`")


def _assert_refused(db: Database, definition: str, error: type[LakebedError], message: str) -> None:
    db.run("CREATE TABLE parent (id int PRIMARY KEY)", f"CREATE TABLE {definition}")
    with pytest.raises(error, match=message):
        _source(db).check()
    _source(db, excluding="t").check()
    skipping = _source(db, tables_without_key="skip", unsupported_types="skip")
    assert [table.name.table for table in skipping.tables()] == ["parent"]


def test_the_password_is_nowhere(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in options, texts or representations; the file that holds it is private."""
    source = _source(db)
    options = source.reader_options()
    shown = f"{source!r} {source.settings!r} {source.settings} {source.follow!r} {options}"
    assert PASSWORD not in shown
    secret = Path(options["password-file"])
    assert secret.stat().st_mode & 0o777 == 0o600
    assert ServerSettings.from_options(options).password() == PASSWORD
    monkeypatch.setenv("LAKEBED_TEST_PASSWORD", PASSWORD)
    by_name = MySqlSource(port=db.server.port, user=USER, password_env="LAKEBED_TEST_PASSWORD", database=db.name)
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    by_name.check()
    mine = tmp_path / "password"
    mine.write_text(PASSWORD + "\n")
    MySqlSource(port=db.server.port, user=USER, password_file=os.fspath(mine), database=db.name).check()


def test_a_url_and_settings(db: Database) -> None:
    """A URL gives all parts; names that are not known and URLs that are none are refused without repeating them."""
    source = open_source("mysql", url="mysql://me:p%40ss@db.example:3307/shop")
    assert isinstance(source, MySqlSource)
    assert str(source.settings) == "me@db.example:3307"
    assert source.settings.password() == "p@ss"
    assert source.follow.matches("shop", "t")
    assert not source.follow.matches("shops", "t")
    with pytest.raises(InvalidArgument, match="did you mean `including`"):
        MySqlSource(includin="x")
    with pytest.raises(InvalidArgument) as refused:
        MySqlSource("postgres://me:hidden@h/x")
    assert "hidden" not in str(refused.value)
    typed = MySqlSource(port="3307", copy="false", copy_chunk_rows="50").follow
    assert (typed.copy, typed.copy_chunk_rows) == (False, 50)
    for wrong in ({"port": "x"}, {"copy": "perhaps"}, {"copy_chunk_rows": "0"}, {"including": "("}, {"cascades": "no"}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            MySqlSource(**wrong)
    with pytest.raises(InvalidOption, match="did you mean `char-to-string`"):
        MySqlSource(type_mapping="char_to_strin")
    assert MySqlSource(type_mapping="CHAR_TO_STRING, to-nullable").follow.type_mapping == (
        "char-to-string",
        "to-nullable",
    )


@pytest.mark.mysql
def test_descriptions(db: Database) -> None:
    """Types, keys, comments and the values that older rows get with an added column."""
    db.run(
        "CREATE TABLE `or``der` (`b c` varchar(7) NOT NULL COMMENT 'it''s', a int AUTO_INCREMENT, "
        "d decimal(8,3) NOT NULL DEFAULT 1.5, e enum('x','y') NOT NULL, f timestamp DEFAULT CURRENT_TIMESTAMP, "
        "g varchar(9) DEFAULT 'o''k', h tinyint(1) NOT NULL, i bigint unsigned, j longtext, "
        "PRIMARY KEY (a, `b c`)) COMMENT 'all'"
    )
    (table,) = _source(db).tables()
    assert str(table.name) == f"{db.name}.or`der"
    description = table.description
    assert description.primary_key == ("a", "b c")
    assert description.comment == "all"
    assert [(column.name, str(column.type), column.default) for column in description.columns] == [
        ("b c", "VARCHAR(7) NOT NULL", ""),
        ("a", "INT NOT NULL", None),
        ("d", "DECIMAL(8, 3) NOT NULL", "1.500"),
        ("e", "STRING NOT NULL", "x"),
        ("f", "TIMESTAMP(0)", None),
        ("g", "VARCHAR(9)", "o'k"),
        ("h", "BOOLEAN NOT NULL", "0"),
        ("i", "DECIMAL(20, 0)", None),
        ("j", "STRING", None),
    ]
    assert description.columns[0].comment == "it's"
    modes = "tinyint1_not_bool,bigint-unsigned-to-bigint,longtext-to-bytes,char-to-string,to-nullable"
    (table,) = _source(db, type_mapping=modes).tables()
    types = {column.name: str(column.type) for column in table.description.columns}
    assert types == {
        "b c": "STRING NOT NULL",
        "a": "INT NOT NULL",
        "d": "DECIMAL(8, 3)",
        "e": "STRING",
        "f": "TIMESTAMP(0)",
        "g": "STRING",
        "h": "TINYINT",
        "i": "BIGINT",
        "j": "BYTES",
    }
