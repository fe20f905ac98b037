"""What a sync makes before it is known to work: nothing, neither in the lake nor beside the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.mysql.conftest import Database, make_server
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.errors import LakebedError
from lakebed.testing.ports import free_port
from lakebed.testing.sql_server import PASSWORD, USER

_SECRET = "S3cret:wörd/%"


@pytest.fixture
def keeper(db: Database) -> Iterator[dict[str, Any]]:
    """A user with all rights that are needed, whose password is no word that stands anywhere else."""
    db.run(f"CREATE OR REPLACE USER keeper IDENTIFIED BY '{_SECRET}'", f"GRANT SELECT ON {db.name}.* TO keeper")
    db.run("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO keeper")
    yield {"url": f"mysql://keeper@127.0.0.1:{db.server.port}/{db.name}", "password": _SECRET}
    db.run("DROP USER keeper")


@contextmanager
def _prepared(db: Database, *statements: str) -> Iterator[None]:
    """Runs statements before, and puts global settings back afterwards."""
    settings = [text.split()[2] for text in statements if text.startswith("SET GLOBAL")]
    before = {name: db.run(f"SELECT @@GLOBAL.{name}")[0][0] for name in settings}
    db.run(*statements)
    try:
        yield
    finally:
        for name, value in before.items():
            db.run(f"SET GLOBAL {name} = '{value}'")


def _sync(place: Path, options: dict[str, Any], **more: Any) -> LocalSync:
    lake = lakebed.connect(place / "warehouse")
    return LocalSync(lake, "mysql", place / "checkpoint", source_options=options, **more)


def _on_the_server(db: Database) -> list[Any]:
    """All that a sync could leave there."""
    return [
        db.run("SHOW DATABASES"),
        db.run("SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"),
        db.position(),
        db.run(f"SELECT user, host FROM mysql.{'global_priv' if db.server.mariadb else 'user'} ORDER BY 1, 2"),
    ]


@pytest.mark.parametrize(
    ("statements", "given", "said"),
    [
        ([], {"password": "wrong" + _SECRET}, "check user and password"),
        ([], {"password": None}, "check user and password"),
        ([], {"user": "nobody_such"}, "check user and password"),
        ([], {"password": None, "password_env": "LAKEBED_NO_SUCH"}, "LAKEBED_NO_SUCH"),
        ([], {"database": "no_such_database"}, "GRANT SELECT"),
        ([], {"port": free_port()}, "bind-address"),
        (["SET GLOBAL binlog_format = 'MIXED'"], {}, "SET GLOBAL binlog_format = 'ROW'"),
        (["SET GLOBAL binlog_row_image = 'MINIMAL'"], {}, "SET GLOBAL binlog_row_image = 'FULL'"),
        (["SET GLOBAL binlog_row_metadata = 'MINIMAL'"], {}, "SET GLOBAL binlog_row_metadata = 'FULL'"),
        (["REVOKE REPLICATION SLAVE ON *.* FROM keeper"], {}, "GRANT REPLICATION SLAVE"),
        (["REVOKE REPLICATION CLIENT ON *.* FROM keeper"], {}, "REPLICATION CLIENT"),
        (["REVOKE SELECT ON {db}.* FROM keeper"], {}, "GRANT SELECT"),
        (["CREATE TABLE u (n int)"], {"tables_without_key": "fail"}, "ADD PRIMARY KEY"),
        (["CREATE TABLE u (id int PRIMARY KEY, x char(9) CHARACTER SET geostd8)"], {}, "MODIFY `x`"),
        (["CREATE TABLE u (id int PRIMARY KEY) ENGINE = MyISAM"], {}, "ENGINE = InnoDB"),
        ([], {"including": "nothing"}, "check the patterns"),
        ([], {"including": "("}, "regular expression"),
        ([], {"zone": "Nowhere/Such"}, "zone"),
    ],
    ids=[
        "password", "no password", "user", "no variable", "database", "port", "log of statements", "part of rows",
        "rows without names", "right to follow", "right to ask", "right to read", "no key", "type", "engine",
        "no table", "pattern", "zone",
    ],
)  # fmt: skip
def test_nothing_is_made_by_a_sync_that_can_not_work(
    db: Database, keeper: dict[str, Any], tmp_path: Path, statements: list[str], given: dict[str, Any], said: str
) -> None:
    """An error with its repair and without the password; no table, checkpoint or state is left, nor at the server."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with _prepared(db, *(text.format(db=db.name) for text in statements)):
        before = _on_the_server(db)
        with pytest.raises(LakebedError) as caught:
            _sync(tmp_path, {**keeper, **given})
    assert caught.value.hint
    assert said in str(caught.value)
    assert _SECRET not in f"{caught.value!r} {caught.value}"
    assert list(tmp_path.iterdir()) == []
    assert _on_the_server(db) == before


def test_nothing_is_made_without_a_log(server_kind: str, tmp_path: Path) -> None:
    """A server that writes no binary log: the settings that turn it on are named, and nothing is made."""
    with make_server(server_kind, ["--skip-log-bin"]) as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE TABLE shop.t (id int PRIMARY KEY)")
        url = f"mysql://{USER}@127.0.0.1:{server.port}/shop"
        with pytest.raises(LakebedError, match=r"(?s)no binary log.*log_bin=binlog"):
            _sync(tmp_path, {"url": url, "password": PASSWORD})
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_of_what_the_lake_can_not_take(db: Database, keeper: dict[str, Any], tmp_path: Path) -> None:
    """What is wrong with the sync itself is said before the lake or the checkpoint is touched, too."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    for wrong in (
        {"table_conf": {"buckets": "2"}},
        {"computed_columns": ["d=nonsense(v)"]},
        {"metadata_columns": ["topic"]},
        {"truncate": "perhaps"},
        {"type_mapping": ["to-everything"]},
    ):
        with pytest.raises(LakebedError) as caught:
            _sync(tmp_path, keeper, **wrong)
        assert caught.value.hint
        assert list(tmp_path.iterdir()) == []


def test_the_password_is_in_no_file(db: Database, keeper: dict[str, Any], tmp_path: Path) -> None:
    """A sync that works: neither snapshots and schemas nor what lies beside the checkpoint hold the password."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, flag boolean)", "INSERT INTO t VALUES (1, TRUE)")
    sync = _sync(tmp_path, keeper)
    lake = lakebed.connect(tmp_path / "warehouse")
    assert sync.catch_up(lambda: [] if lake.table("lk.t").to_arrow().num_rows == 1 else ["empty"]) == []
    db.run("INSERT INTO t VALUES (2, FALSE)")
    assert sync.catch_up(lambda: [] if lake.table("lk.t").to_arrow().num_rows == 2 else ["one"]) == []
    sync.stop()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if _SECRET.encode() in path.read_bytes()] == []
