"""Sources that are joined as of a time: a column of their rows, or one that is declared AS PROCTIME()."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakebed
from lakebed import Lake
from lakebed.errors import Unsupported

_FILES = "WITH ('connector' = 'filesystem', 'format' = 'json', 'source.monitor-interval' = '1 s', 'path' = '{}')"


class Shop:
    """A lake, and two sources of files: orders and rates of currencies."""

    def __init__(self, path: Path) -> None:
        self.lake: Lake = lakebed.connect(path / "lake")
        self._path = path
        self._files = 0
        for name in ("orders", "rates"):
            (path / name).mkdir()

    def put(self, name: str, *rows: dict[str, object]) -> None:
        """Adds a file to a source."""
        self._files += 1
        text = "\n".join(map(json.dumps, rows))
        (self._path / name / f"{self._files:03}.json").write_text(text + "\n")

    @property
    def tables(self) -> str:
        """The definitions of the sources."""
        orders, rates = (_FILES.format(self._path / name) for name in ("orders", "rates"))
        return (
            "CREATE TEMPORARY TABLE orders (id BIGINT, cur STRING, at TIMESTAMP(3), seen AS PROCTIME(), "
            f"WATERMARK FOR at AS at - INTERVAL '5' SECOND) {orders};\n"
            f"CREATE TEMPORARY TABLE rates (cur STRING, since TIMESTAMP(3), rate INT) {rates};\n"
        )

    def run(self, text: str) -> None:
        """Lets a pipeline catch up."""
        lakebed.pipeline(self.lake, self.tables + text).run(once=True)

    def rows(self, name: str) -> list[tuple[object, ...]]:
        """The rows of a table, sorted."""
        return sorted(map(tuple, self.lake.query(f"SELECT * FROM {name}").fetchall()), key=repr)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """With an order between two rates."""
    found = Shop(tmp_path)
    found.put("rates", _rate(0, 10), _rate(20, 12))
    found.put("orders", {"id": 1, "cur": "EUR", "at": _time(10)})
    return found


def _time(minute: int) -> str:
    return f"2024-01-01 00:{minute:02}:00"


def _rate(minute: int, rate: int) -> dict[str, object]:
    return {"cur": "EUR", "since": _time(minute), "rate": rate}


_JOIN = "SELECT o.id, r.rate FROM orders AS o LEFT JOIN {} FOR SYSTEM_TIME AS OF o.{} AS r ON o.cur = r.cur"
_NEWEST = (
    "WITH newest AS (SELECT cur, rate FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cur ORDER BY since DESC) AS n "
    "FROM rates) WHERE n = 1) "
)


def test_versions_of_a_source_of_rows(shop: Shop) -> None:
    """As Flink writes it: the query for the newest rows has versions. Late rates and orders correct the result."""
    text = f"CREATE MATERIALIZED TABLE priced AS {_NEWEST}{_JOIN.format('newest', 'at')};\n"
    shop.run(text)
    assert shop.rows("priced") == [(1, 10)]
    shop.put("rates", _rate(5, 11))
    shop.put("orders", {"id": 2, "cur": "EUR", "at": _time(2)}, {"id": 3, "cur": "USD", "at": _time(2)})
    shop.run(text)
    assert shop.rows("priced") == [(1, 11), (2, 10), (3, None)]


def test_versions_in_a_table_of_the_lake(shop: Shop) -> None:
    """A source is inserted into a table with a row for each version, which is joined without an alias."""
    text = (
        "CREATE TABLE versions (cur STRING, since TIMESTAMP(3), rate INT, PRIMARY KEY (cur, since) NOT ENFORCED) "
        "WITH ('bucket' = '1', 'changelog-producer' = 'lookup');\n"
        "INSERT INTO versions SELECT cur, since, rate FROM rates;\n"
        "CREATE TABLE sums (rate INT, n BIGINT, PRIMARY KEY (rate) NOT ENFORCED) WITH ('bucket' = '1');\n"
        "INSERT INTO sums SELECT versions.rate, count(*) FROM orders JOIN versions FOR SYSTEM_TIME AS OF orders.at "
        "ON orders.cur = versions.cur GROUP BY versions.rate;\n"
    )
    shop.run(text)
    assert shop.rows("sums") == [(10, 1)]
    shop.put("orders", {"id": 2, "cur": "EUR", "at": _time(2)}, {"id": 3, "cur": "EUR", "at": _time(6)})
    shop.put("rates", _rate(5, 11))
    shop.run(text)
    assert shop.rows("sums") == [(10, 1), (11, 2)]


def test_a_column_of_proctime_is_a_lookup_join(shop: Shop) -> None:
    """Whatever it is called: a row has what was there when it came, and keeps it."""
    text = (
        "CREATE TABLE now (cur STRING, since TIMESTAMP(3), rate INT, PRIMARY KEY (cur) NOT ENFORCED) "
        "WITH ('bucket' = '1', 'sequence.field' = 'since');\n"
        "INSERT INTO now SELECT cur, since, rate FROM rates;\n"
        f"CREATE TABLE log (id BIGINT, rate INT);\nINSERT INTO log {_JOIN.format('now', 'seen')};\n"
    )
    shop.run(text)
    assert shop.rows("log") == [(1, 12)]
    shop.put("rates", _rate(30, 13))
    shop.run(text)
    shop.put("orders", {"id": 2, "cur": "EUR", "at": _time(1)})
    shop.run(text)
    assert shop.rows("log") == [(1, 12), (2, 13)]


def test_a_source_is_looked_up(shop: Shop) -> None:
    """In what has landed of it, with an alias or without."""
    text = (
        "CREATE TABLE log (id BIGINT, rate INT);\nINSERT INTO log SELECT orders.id, rates.rate FROM orders "
        "JOIN rates FOR SYSTEM_TIME AS OF orders.seen ON orders.cur = rates.cur;\n"
    )
    shop.run(text)
    shop.run(text)
    before = shop.rows("log")
    assert before in ([], [(1, 10), (1, 12)])  # as the rates had landed, or not yet
    shop.put("rates", _rate(30, 13))
    shop.run(text)
    assert shop.rows("log") == before


def test_a_lookup_join_is_no_query_that_is_kept(shop: Shop) -> None:
    """A materialized table could not be computed again."""
    with pytest.raises(Unsupported, match="a lookup join asks a table again"):
        shop.run(f"CREATE MATERIALIZED TABLE v AS {_JOIN.format('rates', 'seen')};\n")


def test_a_source_of_rows_alone_has_no_versions(shop: Shop) -> None:
    """It is refused with what to write, before anything lands."""
    with pytest.raises(Unsupported, match="it has no primary key") as said:
        shop.run(f"CREATE MATERIALIZED TABLE v AS {_JOIN.format('rates', 'at')};\n")
    assert "ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC)" in str(said.value.hint)
    assert not shop.lake.tables()


def test_a_source_of_changes_keeps_versions_if_its_key_does(tmp_path: Path) -> None:
    """Of each key the newest row lands: versions are refused, with the key that keeps them, which works."""
    lake = lakebed.connect(tmp_path)
    lake.create_table("orders", {"id": "BIGINT", "cur": "STRING", "at": "TIMESTAMP(3)"})
    text = (
        "CREATE TEMPORARY TABLE rates (cur STRING, since TIMESTAMP(3), rate INT, WATERMARK FOR since AS since, "
        "PRIMARY KEY ({}) NOT ENFORCED) WITH ('connector' = 'kafka', 'format' = 'debezium-json', 'topic' = 'r', "
        "'properties.bootstrap.servers' = 'localhost:1', 'landing.ignore-delete' = 'true');\n"
        f"CREATE MATERIALIZED TABLE v AS {_JOIN.format('rates', 'at')};\n"
    )
    with pytest.raises(Unsupported, match=r"of each .cur. the newest row lands") as said:
        lakebed.pipeline(lake, text.format("cur")).check()
    assert "landing.ignore-delete" in str(said.value.hint)
    planned = {each.name: each.plan for each in lakebed.pipeline(lake, text.format("cur, since")).check()}
    assert "window by cur" in planned["default.v"]


def test_updates_leave_versions_where_deletes_are_ignored(tmp_path: Path) -> None:
    """What an update of a source takes back stays, as its hint says."""
    table = lakebed.connect(tmp_path).create_table(
        "t",
        {"k": "INT NOT NULL", "at": "INT NOT NULL"},
        primary_key=["k", "at"],
        options={"bucket": "1", "ignore-delete": "true"},
    )
    table.write([{"k": 1, "at": 1, "kind": "+I"}], row_kind="kind")
    table.write([{"k": 1, "at": 1, "kind": "-U"}, {"k": 1, "at": 2, "kind": "+U"}], row_kind="kind")
    table.write([{"k": 1, "at": 2, "kind": "-D"}], row_kind="kind")
    assert sorted(row["at"] for row in table.to_arrow().to_pylist()) == [1, 2]
