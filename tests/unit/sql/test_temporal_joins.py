"""`FOR SYSTEM_TIME AS OF` a time of rows: where it may stand, what it needs, and what it does not change."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import lakebed
from lakebed import Lake
from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.sql.parse.query import read_query
from lakebed.sql.words.cursor import Cursor

_DAYS = [dt.datetime(2024, 1, day) for day in range(1, 10)]
_ORDERS = "SELECT o.id, r.rate FROM orders o "
_NEWEST_FIRST = "OVER (PARTITION BY cur ORDER BY since DESC)"
_AS_OF = "FOR SYSTEM_TIME AS OF o.at AS r ON o.cur = r.cur"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Orders, and rates of several kinds."""
    found = lakebed.connect(tmp_path_factory.mktemp("lake"))
    found.create_table("orders", {"id": "INT", "cur": "STRING", "at": "TIMESTAMP(3)", "n": "BIGINT"})
    found.create_table("told", {"cur": "STRING", "since": "TIMESTAMP(3)", "rate": "INT"})
    key = {"cur": "STRING NOT NULL", "since": "TIMESTAMP(3) NOT NULL"}
    one = {"bucket": "1"}
    found.create_table("rates", {**key, "rate": "INT"}, primary_key=["cur", "since"], options=one)
    found.create_table("newest", {**key, "rate": "INT"}, primary_key=["cur"], options=one)
    found.create_table("spans", {**key, "until": "DATE NOT NULL"}, primary_key=["cur", "since", "until"], options=one)
    found.create_table("days", {"since": "DATE NOT NULL", "rate": "INT"}, primary_key=["since"], options=one)
    found.create_table("small", {"n": "INT NOT NULL", "d": "DATE NOT NULL"}, primary_key=["n", "d"], options=one)
    found["orders"].write([{"id": n, "cur": "e", "at": _DAYS[n], "n": n} for n in range(5)])
    for name in ("told", "rates"):
        found[name].write([{"cur": "e", "since": _DAYS[n], "rate": n} for n in (1, 3)])
    found["small"].write([{"n": 2, "d": dt.date(2024, 1, 2)}])
    return found


def _rows(lake: Lake, query: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, lake.query(query, engine="duckdb").fetchall()), key=repr)


@pytest.mark.parametrize(
    "partner",
    [
        "rates",
        "`default`.rates",
        "(SELECT since, rate, cur FROM rates)",
        f"(SELECT * FROM (SELECT *, row_number() {_NEWEST_FIRST} AS rn FROM told) WHERE rn = 1)",
        f"(SELECT * FROM told QUALIFY row_number() {_NEWEST_FIRST} = 1)",
    ],
)
def test_versions(lake: Lake, partner: str) -> None:
    """A table whose key has a time, under any name and behind columns; or the query for its newest rows."""
    assert _rows(lake, f"{_ORDERS}JOIN {partner} {_AS_OF}") == [(1, 1), (2, 1), (3, 3), (4, 3)]
    query = f"WITH v AS (SELECT * FROM {partner}) {_ORDERS}LEFT JOIN v {_AS_OF}"
    assert _rows(lake, query) == [(0, None), (1, 1), (2, 1), (3, 3), (4, 3)]


def test_a_temporary_view(lake: Lake) -> None:
    """As Flink has its versioned views."""
    lake.sql(
        "CREATE OR REPLACE TEMPORARY VIEW versioned AS SELECT cur, rate FROM (SELECT *, row_number() OVER "
        "(PARTITION BY cur ORDER BY since DESC) AS rn FROM told) WHERE rn = 1"
    )
    assert _rows(lake, f"{_ORDERS}JOIN versioned {_AS_OF}") == [(1, 1), (2, 1), (3, 3), (4, 3)]


def test_stars_using_and_conditions(lake: Lake) -> None:
    """The table shows its own columns; WHERE and ON choose among valid versions; whole numbers may be longer."""
    rest = "FOR SYSTEM_TIME AS OF o.at AS r USING (cur) WHERE o.id = 4"
    assert _rows(lake, f"SELECT * FROM orders o JOIN rates {rest}") == [("e", 4, _DAYS[4], 4, _DAYS[3], 3)]
    assert _rows(lake, f"SELECT r.* FROM orders o JOIN rates {rest} AND rate = 1") == []
    assert _rows(lake, f"{_ORDERS}LEFT JOIN rates {_AS_OF} AND r.rate = 1 WHERE o.id > 1") == [
        *((2, 1), (3, None)),
        (4, None),
    ]
    query = "SELECT o.id, s.d FROM orders o JOIN small FOR SYSTEM_TIME AS OF o.at AS s ON o.n = s.n"
    assert _rows(lake, query) == [(2, dt.date(2024, 1, 2))]


@pytest.mark.parametrize(
    ("rest", "kind", "message", "hint"),
    [
        (f"JOIN newest {_AS_OF}", Unsupported, "of each (cur) it keeps the newest row only", "(cur, valid_from)"),
        (f"JOIN told {_AS_OF}", Unsupported, "`told` was at `o.at` is not known: it has no primary key", "rn = 1"),
        (f"JOIN spans {_AS_OF}", Unsupported, "has several times", "PRIMARY KEY (key, time)"),
        (
            "JOIN days FOR SYSTEM_TIME AS OF o.at AS r ON r.rate = o.id",
            Unsupported,
            "nothing that versions",
            "KEY (key",
        ),
        (
            f"JOIN (SELECT * FROM rates WHERE rate > 1) {_AS_OF}",
            Unsupported,
            "it is no table, and no query",
            "ROW_NUMBER",
        ),
        (
            f"JOIN (SELECT * FROM newest QUALIFY row_number() {_NEWEST_FIRST} = 1) {_AS_OF}",
            Unsupported,
            "of each (cur) it keeps the newest row only",
            "(cur, valid_from)",
        ),
        (f"RIGHT JOIN rates {_AS_OF}", Unsupported, "JOIN or LEFT JOIN with ON, not by RIGHT JOIN", "v.cur"),
        (f"LEFT SEMI JOIN rates {_AS_OF}", Unsupported, "not by SEMI JOIN", "v.cur"),
        ("CROSS JOIN rates FOR SYSTEM_TIME AS OF o.at AS r", Unsupported, "not by CROSS JOIN", "v.cur"),
        (
            "JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.id = r.rate",
            InvalidArgument,
            "ON says nothing of `cur`",
            "each of (cur)",
        ),
        (
            "JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON upper(o.cur) = upper(r.cur)",
            InvalidArgument,
            "ON says nothing of `cur`",
            "each of (cur)",
        ),
        (f"JOIN rates {_AS_OF}".replace("o.at", "o.att"), InvalidArgument, "no column `o.att`", "did you mean `at`"),
        (f"JOIN rates {_AS_OF}".replace("o.at", "o.id"), InvalidArgument, "is of type INT, no time", "TIMESTAMP"),
        (f"JOIN rates {_AS_OF}".replace("o.at", "x.proctime"), InvalidArgument, "no column `x.proctime`", "`"),
        (f"JOIN rates {_AS_OF}".replace("o.at", "o.proctime"), Unsupported, "a lookup join asks", "AS OF o.proctime"),
        (f"JOIN rates {_AS_OF}".replace("o.at", "PROCTIME()"), Unsupported, "a lookup join asks", "AS OF PROCTIME()"),
        (f"JOIN rates {_AS_OF} WHERE soundex(o.cur) = 'E000'", Unsupported, "in this process only: `soundex`", "table"),
    ],
)
def test_what_is_refused(lake: Lake, rest: str, kind: type[LakebedError], message: str, hint: str) -> None:
    """By name, with the next step, in plain queries and materialized tables, and without Spark."""
    for ask in (lake.query, lambda query: lake.materialize("v", query)):
        with pytest.raises(kind) as said:
            ask(_ORDERS + rest)
        assert message in said.value.message
        assert hint in str(said.value.hint)
    assert not lake.has_table("v")
    assert not lake.is_spark_started


def test_no_rows_to_be_of_a_time(lake: Lake) -> None:
    """A time of rows stands behind JOIN."""
    with pytest.raises(InvalidArgument, match="none are joined with the table"):
        lake.query("SELECT * FROM rates FOR SYSTEM_TIME AS OF o.at AS r")


def test_statements_that_change_rows(lake: Lake) -> None:
    """INSERT takes rows of such a join, as any other."""
    lake.create_table("out", {"id": "INT", "rate": "INT"})
    lake.sql(f"INSERT INTO out {_ORDERS}JOIN rates {_AS_OF}")
    assert _rows(lake, "SELECT * FROM out") == [(1, 1), (2, 1), (3, 3), (4, 3)]


def test_where_the_clause_stands(tmp_path: Path) -> None:
    """The span of a table ends before it, so that something else may stand in the place of the table."""
    sql = read_query(Cursor("SELECT 1 FROM a JOIN b.c FOR SYSTEM_TIME AS OF a.t AS x ON true"))
    (node,) = sql.partners()
    spans = [sql.text[slice(*node.meta[name])] for name in ("span", "as_of_span")]
    assert spans == ["b.c", " FOR SYSTEM_TIME AS OF a.t"]
    assert not read_query(Cursor("SELECT 1 FROM b FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' x")).partners()
