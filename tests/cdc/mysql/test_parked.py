"""A table's own trouble parks that table on MariaDB and MySQL, too; it is copied anew after the cure and `resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cdc.mysql.conftest import Database
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.cdc.checkpoint import SyncRecord
from lakebed.cdc.operate import copy_anew
from lakebed.cdc.parked import read_parked
from lakebed.testing.sql_server import PASSWORD, USER


class _Office:
    """A database, a sync of it that parks, and an operator."""

    def __init__(self, db: Database, place: Path) -> None:
        self.db, self.place = db, place
        self.lake = lakebed.connect(place / "warehouse")
        options = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
        self.sync = LocalSync(
            self.lake, "mysql", place / "cp", seed=7, dies=0.1, source_options=options, on_error="park"
        )

    def ids(self, name: str) -> list[int]:
        return sorted(self.lake.table(f"lk.{name}").to_arrow().column("id").to_pylist())

    def _wrong(self, names: tuple[str, ...]) -> list[str]:
        found = []
        for name in names:
            there = [row[0] for row in self.db.run(f"SELECT id FROM {self.db.name}.{name} ORDER BY id")]
            if not self.lake.has_table(f"lk.{name}") or self.ids(name) != there:
                found.append(name)
        return found

    def catch_up(self, *names: str) -> None:
        assert self.sync.catch_up(lambda: self._wrong(names)) == []

    def until_parked(self, name: str) -> str:
        place = str(self.place / "cp")
        assert self.sync.catch_up(lambda: [] if f"lk.{name}" in read_parked(place) else ["not parked"]) == []
        return read_parked(place)[f"lk.{name}"].why

    def resume(self, name: str) -> None:
        copy_anew(str(self.place / "warehouse"), SyncRecord.read(str(self.place / "cp")), name)


def test_a_value_and_a_type_park_their_tables_alone(db: Database, tmp_path: Path) -> None:
    """One in the log, one from the start; the others go on, and both come back as the database has them."""
    table = f"CREATE TABLE {db.name}"
    db.run(
        f"{table}.a (id INT PRIMARY KEY, t TIME)",
        f"{table}.b (id INT PRIMARY KEY)",
        f"{table}.m (id INT PRIMARY KEY) ENGINE = MyISAM",
        f"INSERT INTO {db.name}.a VALUES (1, '01:00:00'), (2, '02:00:00')",
        f"INSERT INTO {db.name}.b VALUES (1)",
        f"INSERT INTO {db.name}.m VALUES (1)",
    )
    office: Any = _Office(db, tmp_path)
    office.catch_up("a", "b")
    assert "MyISAM" in office.until_parked("m")
    db.run(f"INSERT INTO {db.name}.a VALUES (3, '-01:00:00')", f"INSERT INTO {db.name}.b VALUES (2)")
    assert "-01:00:00" in office.until_parked("a")
    db.run(f"DELETE FROM {db.name}.a WHERE id = 1", f"INSERT INTO {db.name}.b VALUES (3)")
    office.sync.restart()
    office.catch_up("b")
    assert office.ids("a") == [1, 2]
    db.run(
        f"UPDATE {db.name}.a SET t = '03:00:00' WHERE id = 3",
        f"INSERT INTO {db.name}.a VALUES (4, NULL)",
        f"ALTER TABLE {db.name}.m ENGINE = InnoDB",
        f"INSERT INTO {db.name}.m VALUES (2)",
    )
    office.resume("a")
    office.resume("m")
    office.catch_up("a", "b", "m")
    assert read_parked(str(tmp_path / "cp")) == {}
    db.run(f"DELETE FROM {db.name}.a WHERE id = 2", f"INSERT INTO {db.name}.m VALUES (3)")
    office.catch_up("a", "b", "m")
    office.sync.stop()
