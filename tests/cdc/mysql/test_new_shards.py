"""New tables of a MariaDB in syncs in which a TRUNCATE is not simply followed: they have no rows that could go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.mysql.conftest import Database
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.errors import InvalidData
from lakebed.testing.sql_server import PASSWORD, USER


def _sync(db: Database, place: Path, **more: Any) -> tuple[LocalSync, Any]:
    lake = lakebed.connect(place / "warehouse")
    options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    sync = LocalSync(lake, "mysql", place / "checkpoint", seed=1, dies=0.3, source_options=options, **more)

    def expect(name: str, *ids: int) -> None:
        def wrong() -> list[str]:
            found = lake.table(f"lk.{name}").to_arrow()["id"].to_pylist() if lake.has_table(f"lk.{name}") else []
            return [] if sorted(found) == list(ids) else [str(found)]

        assert sync.catch_up(wrong) == []

    return sync, expect


def test_a_new_table_among_several_that_share_one(db: Database, tmp_path: Path) -> None:
    """A table that is made while others go to the same table of the lake is followed; if it is made anew, not."""
    db.run(
        "CREATE TABLE t_1 (id int PRIMARY KEY)", "CREATE TABLE t_2 (id int PRIMARY KEY)", "INSERT INTO t_2 VALUES (2)"
    )
    sync, expect = _sync(db, tmp_path, table="t")
    expect("t", 2)
    db.run("CREATE TABLE t_3 (id int PRIMARY KEY)", "INSERT INTO t_3 VALUES (3)")
    expect("t", 2, 3)
    db.run("CREATE TABLE t_4 (id int PRIMARY KEY)", "INSERT INTO t_4 VALUES (4)", "RENAME TABLE t_4 TO t_5")
    expect("t", 2, 3, 4)
    db.run("CREATE OR REPLACE TABLE t_3 (id int PRIMARY KEY)")
    with pytest.raises(InvalidData, match="other sources"):
        expect("t", 2, 4)
    sync.stop()


def test_a_table_of_many_that_is_emptied_at_once(db: Database, tmp_path: Path) -> None:
    """Rows that come and go with a TRUNCATE within the batch that brings the table are not overlooked."""
    db.run(
        "CREATE TABLE t_1 (id int PRIMARY KEY)", "CREATE TABLE t_2 (id int PRIMARY KEY)", "INSERT INTO t_2 VALUES (2)"
    )
    sync, expect = _sync(db, tmp_path, table="t")
    expect("t", 2)
    db.run("CREATE TABLE t_3 (id int PRIMARY KEY)", "INSERT INTO t_3 VALUES (3)", "TRUNCATE t_3")
    with pytest.raises(InvalidData, match="other sources"):
        expect("t", 2)
    sync.stop()


def test_a_new_table_where_truncate_fails(db: Database, tmp_path: Path) -> None:
    """`truncate='fail'` is about tables that lose rows, not about new ones."""
    db.run("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    sync, expect = _sync(db, tmp_path, truncate="fail")
    expect("a", 1)
    db.run("CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (2)")
    expect("b", 2)
    db.run("TRUNCATE b")
    with pytest.raises(InvalidData, match="was truncated"):
        expect("b")
    sync.stop()
