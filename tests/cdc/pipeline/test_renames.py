"""Tables of a PostgreSQL that get other names while they are synced: the lake's names have the rows of their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed


def _wrong(lake: lakebed.Lake, database: Any, *names: str) -> list[str]:
    found = []
    for name in names:
        here = sorted(lake.table(f"lk.{name}").to_arrow().to_pylist(), key=lambda row: row["id"])
        columns = [row[0] for row in database.query(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
            "ORDER BY attnum", name)]  # fmt: skip
        there = [dict(zip(columns, row, strict=True)) for row in database.query(f"SELECT * FROM {name} ORDER BY id")]
        found += [] if [{column: row[column] for column in columns} for row in here] == there else [f"{name}: {here}"]
    return found


@pytest.mark.parametrize("new_tables", [True, False])
def test_tables_that_change_places(database: Any, tmp_path: Path, new_tables: bool) -> None:
    """An exchange of names, with changes before and after it in one batch, and columns that differ."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT i, i FROM generate_series(1, 40) i"
    )
    database.execute("CREATE TABLE u (id int PRIMARY KEY, v int, w text DEFAULT 'w')")
    database.execute("INSERT INTO u SELECT i, -i FROM generate_series(30, 60) i")
    lake = lakebed.connect(tmp_path / "warehouse")
    options = {"url": database.url, "slot": database.name, "discovery_ms": 0, "mode": "peek", "new_tables": new_tables}
    sync = LocalSync(lake, "postgres", tmp_path / "checkpoint", seed=5, dies=0.2, source_options=options)
    assert sync.catch_up(lambda: _wrong(lake, database, "t", "u")) == []
    with database.connect() as writer, writer.transaction():
        writer.execute("DELETE FROM t WHERE id % 3 = 0")
        for old, new in (("t", "halfway"), ("u", "t"), ("halfway", "u")):
            writer.execute(f"ALTER TABLE {old} RENAME TO {new}")
        writer.execute("UPDATE t SET w = 'x' WHERE id % 5 = 0")
    database.execute("INSERT INTO t VALUES (1000, 1, 'y')", "DELETE FROM u WHERE id > 30")
    assert sync.catch_up(lambda: _wrong(lake, database, "t", "u")) == []
    database.execute("UPDATE t SET v = 0, w = NULL WHERE id < 50", "UPDATE u SET v = 7")
    assert sync.catch_up(lambda: _wrong(lake, database, "t", "u")) == []
    sync.stop()


def test_a_renamed_table_without_rows(database: Any, tmp_path: Path) -> None:
    """A table is in the lake under its new name although there is no row that could tell of it."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    lake = lakebed.connect(tmp_path / "warehouse")
    options = {"url": database.url, "slot": database.name, "discovery_ms": 0, "mode": "peek"}
    sync = LocalSync(lake, "postgres", tmp_path / "checkpoint", source_options=options)
    assert sync.catch_up(lambda: _wrong(lake, database, "t")) == []
    database.execute("ALTER TABLE t RENAME TO u")
    assert sync.catch_up(lambda: [] if lake.has_table("lk.u") else ["no u"]) == []
    sync.stop()
    assert lake.table("lk.u").to_arrow().schema.names == ["id", "v"]
