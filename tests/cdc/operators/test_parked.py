"""A table's own trouble parks that table; the others go on, and it catches up after the cure and `resume`.

Everything is the real thing but Spark, with batches that die at any step and come again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync
from tests.patience import PATIENCE_S

import lakebed
from lakebed.cdc.parked import read_parked
from lakebed.cdc.sources.postgres.source import PostgresSource
from lakebed.errors import InvalidArgument, InvalidData, LakebedError

_PATIENCE_S = PATIENCE_S / 5
_LONG = "123456789012345678901234567890.5"
"""More digits than the lake's type for a plain `numeric` has in front of the point."""


class Office:
    """A database, a sync of it, and an operator."""

    def __init__(
        self, database: Any, place: Path, on_error: str = "park", past: dict[str, Any] | None = None, **more: Any
    ) -> None:
        self.database, self.place = database, place
        self.lake = lakebed.connect(place / "warehouse")
        options = {"url": database.url, "slot": database.name, "discovery_ms": 0, "mode": "peek", **more}
        self.options = options
        self.sync = LocalSync(
            self.lake,
            "postgres",
            place / "cp",
            seed=3,
            dies=0.1,
            source_options=options,
            on_error=on_error,
            **(past or {}),
        )

    def rows(self, name: str) -> list[dict[str, Any]]:
        return sorted(self.lake.table(f"lk.{name}").to_arrow().to_pylist(), key=lambda row: row["id"])

    def wrong(self, *names: str) -> list[str]:
        found = []
        for name in names:
            there = self.database.query(f"SELECT * FROM {name} ORDER BY id")
            try:
                here = [tuple(row.values()) for row in self.rows(name)]
            except LakebedError as error:
                here = [(error.message,)]
            found += [] if here == there else [f"{name}: {here} instead of {there}"]
        return found

    def catch_up(self, *names: str) -> None:
        assert self.sync.catch_up(lambda: self.wrong(*names), _PATIENCE_S) == []

    def parked(self) -> dict[str, str]:
        return {name: each.why for name, each in read_parked(str(self.place / "cp")).items()}

    def resume(self, name: str) -> None:
        """As `lakebed cdc resume` does it."""
        source = PostgresSource(**{**self.options, "on_error": "park"})
        source.keep_state_in(f"{self.place / 'cp'}/source-state")
        source.copy_anew(read_parked(str(self.place / "cp"))[f"lk.{name}"].sources)

    def until_parked(self, name: str) -> str:
        assert self.sync.catch_up(lambda: [] if f"lk.{name}" in self.parked() else ["not parked"], _PATIENCE_S) == []
        return self.parked()[f"lk.{name}"]


@pytest.fixture
def office(database: Any, tmp_path: Path) -> Any:
    """A sync of two tables that parks."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY, v numeric)", "CREATE TABLE b (id int PRIMARY KEY, v int)")
    database.execute("INSERT INTO a VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO b VALUES (1, 1)")
    office = Office(database, tmp_path)
    office.catch_up("a", "b")
    yield office
    office.sync.stop()


def test_a_value_parks_its_table_alone(office: Office) -> None:
    """It keeps its rows, says why, survives restarts, and follows again after the cure; deletes meanwhile count."""
    office.database.execute(f"INSERT INTO a VALUES (4, {_LONG})", "INSERT INTO b VALUES (2, 2)")
    why = office.until_parked("a")
    assert _LONG in why
    assert "id=4" in why
    office.database.execute("DELETE FROM a WHERE id = 2", "UPDATE b SET v = 9", "INSERT INTO a VALUES (5, 5)")
    office.sync.restart()
    office.catch_up("b")
    assert [row["id"] for row in office.rows("a")] == [1, 2, 3]
    note = office.lake.consistent("lk.b")
    assert note.snapshots
    with pytest.raises(LakebedError, match="not followed"):
        office.lake.consistent("lk.a", "lk.b")
    office.resume("a")  # not cured yet: it is parked again, with the same reason
    office.catch_up("b")
    assert _LONG in office.until_parked("a")
    office.database.execute("UPDATE a SET v = 4 WHERE id = 4")
    office.resume("a")
    office.catch_up("a", "b")
    assert office.parked() == {}
    office.database.execute("UPDATE a SET v = v + 1", "DELETE FROM a WHERE id = 1", "INSERT INTO b VALUES (3, 3)")
    office.catch_up("a", "b")
    assert set(office.lake.consistent("lk.a", "lk.b").snapshots) == {"lk.a", "lk.b"}


def test_a_type_that_changes_parks_its_table(office: Office) -> None:
    """What nothing holds together with the old type; after the table of the lake is dropped, it is copied anew."""
    office.database.execute(
        "ALTER TABLE b ALTER v TYPE text USING 'x' || v", "INSERT INTO b VALUES (2, 'y')", "INSERT INTO a VALUES (9, 9)"
    )
    office.until_parked("b")
    office.catch_up("a")
    office.lake.drop_table("lk.b")
    office.resume("b")
    office.catch_up("a", "b")
    assert office.parked() == {}


def test_a_table_of_the_lake_that_is_gone(office: Office) -> None:
    """Somebody dropped it: the others go on, and a resync brings it back."""
    office.lake.drop_table("lk.b")
    office.database.execute("INSERT INTO b VALUES (2, 2)", "INSERT INTO a VALUES (9, 9)")
    office.until_parked("b")
    office.catch_up("a")
    office.resume("b")
    office.catch_up("a", "b")


def test_new_tables_never_stop_a_sync(office: Office) -> None:
    """Of an unknown type, without a key, without rights: they wait, with the reason, and come when they are cured."""
    office.database.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, r int4range)",
        "CREATE TABLE bare (id int)",
        "INSERT INTO a VALUES (8, 8)",
    )
    office.catch_up("a")
    source = PostgresSource(**office.options, on_error="park")
    source.keep_state_in(f"{office.place / 'cp'}/source-state")
    assert "int4range" in source.left_out()["public.odd"]
    office.database.execute("ALTER TABLE odd DROP COLUMN r", "INSERT INTO odd VALUES (1)")
    office.database.execute("ALTER TABLE bare ADD PRIMARY KEY (id)", "INSERT INTO bare VALUES (7)")
    office.catch_up("a", "odd", "bare")
    assert source.left_out() == {}


def test_tables_that_can_not_be_followed_are_left_out_at_the_start(database: Any, tmp_path: Path) -> None:
    """With `park` one bad table is no reason not to begin; with `stop` it is."""
    database.execute("CREATE TABLE good (id int PRIMARY KEY)", "CREATE TABLE odd (id int PRIMARY KEY, r int4range)")
    with pytest.raises(LakebedError, match="int4range"):
        Office(database, tmp_path / "stop", "stop")
    office = Office(database, tmp_path / "park")
    database.execute("INSERT INTO good VALUES (1)")
    office.catch_up("good")
    office.sync.stop()


def test_the_publication_belongs_to_somebody_else(database: Any, tmp_path: Path) -> None:
    """A new table that we may not publish is named with the statement for its owner, and followed once that has run."""
    database.execute(
        "DROP ROLE IF EXISTS follower",
        "CREATE ROLE follower LOGIN REPLICATION PASSWORD 'f'",
        "CREATE TABLE a (id int PRIMARY KEY)",
        "GRANT SELECT ON a TO follower",
        "CREATE PUBLICATION lakebed FOR TABLE a WITH (publish_via_partition_root = true)",
    )
    url = database.url.replace("shop:shop@", "follower:f@")
    office = Office(database, tmp_path, url=url)
    office.catch_up("a")
    database.execute("CREATE TABLE b (id int PRIMARY KEY)", "GRANT SELECT ON b TO follower", "INSERT INTO a VALUES (1)")
    office.catch_up("a")
    source = PostgresSource(**office.options)
    source.keep_state_in(f"{tmp_path / 'cp'}/source-state")
    said = source.left_out()["public.b"]
    assert 'ALTER PUBLICATION "lakebed" ADD TABLE ONLY "public"."b"' in said
    database.execute('ALTER PUBLICATION "lakebed" ADD TABLE ONLY "public"."b"', "INSERT INTO b VALUES (5)")
    office.catch_up("a", "b")
    office.sync.stop()


def test_rows_that_do_not_fit_go_to_the_dead_letters(database: Any, tmp_path: Path) -> None:
    """From the copy and from the stream, each once, raw; all other rows are followed."""
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v numeric, d date)",
        f"INSERT INTO a VALUES (1, 1, '2024-01-01'), (2, {_LONG}, NULL), (3, 3, NULL)",
    )
    office = Office(database, tmp_path, "dead-letter")
    good = "SELECT * FROM a WHERE v < 1e9 AND coalesce(d, '2000-01-01') < 'infinity' ORDER BY id"

    def wrong() -> list[str]:
        here = [tuple(row.values()) for row in office.rows("a")]
        return [] if here == database.query(good) else [str(here)]

    assert office.sync.catch_up(wrong) == []
    database.execute("INSERT INTO a VALUES (4, 4, 'infinity'), (5, 5, NULL)", "DELETE FROM a WHERE id = 2")
    assert office.sync.catch_up(wrong) == []
    letters = office.lake.table("lk.lakebed_dead_letters").to_arrow().to_pylist()
    found = {json.loads(row["raw"])["id"]: row for row in letters}
    assert len(letters) == 2
    assert set(found) == {"2", "4"}
    assert json.loads(found["2"]["raw"]) == {"id": "2", "v": _LONG, "d": None}
    assert found["4"]["source"] == f"{database.name}.public.a"
    assert (found["4"]["kind"], found["4"]["op_ts"] is not None) == ("+I", True)
    assert "infinity" in found["4"]["why"]
    assert office.parked() == {}
    office.sync.stop()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("string", ["0.1234567890123456789012", _LONG]), ("round", ["0.123456789012345679"])],
)
def test_unbounded_numerics(database: Any, tmp_path: Path, policy: str, expected: list[str]) -> None:
    """As text they keep all digits; rounded they fit as far as their whole part does."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY, v numeric)")
    database.execute("INSERT INTO a VALUES (1, 0.1234567890123456789012)")
    if policy == "string":
        database.execute(f"INSERT INTO a VALUES (2, {_LONG})")
    office = Office(database, tmp_path, "stop", unbounded_numeric=policy)

    def wrong() -> list[str]:
        here = [str(row["v"]) for row in office.rows("a")]
        return [] if here == expected else here

    assert office.sync.catch_up(wrong) == []
    if policy == "round":
        database.execute(f"INSERT INTO a VALUES (2, {_LONG})")
        with pytest.raises(InvalidData, match="id=2"):
            office.sync.catch_up(lambda: ["never"])
    office.sync.stop()


def test_a_policy_that_is_none(database: Any, tmp_path: Path) -> None:
    """A slip is found before anything is made."""
    with pytest.raises(InvalidArgument, match="on_error"):
        Office(database, tmp_path, "ignore")
