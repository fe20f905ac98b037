"""Values of every type: what the binary log gives is what a query gives, and what the lake should hold."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.cdc.sources.mysql.copy.text_rows import quoted, rows_of_query, selected
from lakebed.cdc.sources.mysql.server.mapping import describe
from lakebed.cdc.sources.mysql.values.charsets import charset_of, is_readable

from .conftest import Database

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-128, 127),
    "tinyint(1)": st.integers(-128, 127),
    "tinyint unsigned": st.integers(0, 255),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "smallint unsigned": st.integers(0, 2**16 - 1),
    "mediumint": st.integers(-(2**23), 2**23 - 1),
    "mediumint unsigned": st.integers(0, 2**24 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "int unsigned": st.integers(0, 2**32 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "bigint unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False),
    "double": st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    "decimal(5,2)": st.decimals(-999, 999, places=2),
    "decimal(18,9)": st.decimals(-(10**8), 10**8, places=9),
    "decimal(20,0)": st.integers(-(10**20) + 1, 10**20 - 1).map(Decimal),
    "decimal(38,18)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18)),
    "decimal(65,30)": st.integers(-(10**65) + 1, 10**65 - 1).map(
        lambda n: f"{'-' * (n < 0)}{str(abs(n)).zfill(31)[:-30]}.{str(abs(n)).zfill(31)[-30:]}"
    ),
    "bit(1)": st.integers(0, 1),
    "bit(20)": st.integers(0, 2**20 - 1),
    "bit(64)": st.integers(0, 2**64 - 1),
    "year": st.one_of(st.just(0), st.integers(1901, 2155)),
    "date": st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "datetime": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 58)),
    "datetime(3)": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 58)),
    "datetime(6)": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 58)),
    "timestamp null": st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2038, 1, 1)),
    "timestamp(1) null": st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2038, 1, 1)),
    "timestamp(6) null": st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2038, 1, 1)),
    "time": st.times(dt.time(0), dt.time(23, 59, 58)),
    "time(2)": st.times(dt.time(0), dt.time(23, 59, 58)),
    "time(6)": st.times(dt.time(0), dt.time(23, 59, 58)),
    "char(10)": st.text(max_size=10).map(str.rstrip),
    "char(200)": st.text(max_size=200).map(str.rstrip),
    "varchar(20)": st.text(max_size=20),
    "varchar(1000)": st.text(max_size=300),
    "varchar(20) character set latin1": st.text(st.sampled_from("abcäöüß€Œÿ\x81 "), max_size=20),
    "varchar(20) character set cp1251": st.text(st.sampled_from("abcПривет "), max_size=20),
    "varchar(20) character set ucs2": st.text(st.sampled_from("abcäП中 "), max_size=20),
    "varchar(20) character set gbk": st.text(st.sampled_from("abc中文字 "), max_size=20),
    "char(5) character set ascii": st.text(st.sampled_from("abc"), max_size=5),
    "tinytext": st.text(max_size=60),
    "text": st.text(max_size=400),
    "mediumtext": st.text(max_size=100),
    "longtext": st.text(max_size=100),
    "json": st.recursive(
        st.integers(-(2**63), 2**64 - 1) | st.none() | st.booleans() | st.text(max_size=9) | st.floats(-1e300, 1e300),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abä", max_size=3), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: json.dumps(value, ensure_ascii=False)),
    "binary(6)": st.binary(max_size=6),
    "binary(250)": st.binary(max_size=20),
    "varbinary(30)": st.binary(max_size=30),
    "tinyblob": st.binary(max_size=200),
    "blob": st.binary(max_size=400),
    "mediumblob": st.binary(max_size=60),
    "longblob": st.binary(max_size=60),
    "enum('a','b','it''s','ü,x')": st.sampled_from(["a", "b", "it's", "ü,x"]),
    "enum('ä','ö') character set latin1": st.sampled_from(["ä", "ö"]),
    "set('x','y','z','ü')": st.sets(st.sampled_from(["x", "y", "z", "ü"])).map(",".join),
    "point": st.tuples(st.integers(-9, 9), st.floats(-9, 9)).map(lambda p: ("POINT", p)),
}


def _literal(db: Database, value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"X'{value.hex()}'"
        case ("POINT", (x, y)):
            return f"POINT({x}, {y!r})"
        case float():
            return repr(value)
        case dt.datetime() | dt.date() | dt.time():
            return f"'{value.isoformat()}'"
        case _:
            return str(db.connection.escape(value)) if isinstance(value, str) else str(value)


@pytest.mark.mysql
@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.nightly)])
def test_the_log_and_a_query_give_the_same_arrays(db: Database, examples: int) -> None:
    """Random tables of all types: rows inserted, updated and deleted decode to what SELECT says, type by type."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kinds = data.draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=12))
        modes = data.draw(st.sampled_from([(), (), ("to-string",), ("tinyint1-not-bool", "longtext-to-bytes")]))
        db.run("DROP TABLE IF EXISTS t", _create(kinds), "SET sql_mode = ''")
        start = db.position()
        rows = data.draw(st.lists(st.tuples(*(st.none() | TYPES[kind] for kind in kinds)), min_size=1, max_size=8))
        for i, row in enumerate(rows):
            db.run(f"INSERT INTO t VALUES ({i}, {', '.join(_literal(db, value) for value in row)})")
        selected_rows = _select(db, modes)
        logged = db.changes(start, *modes)
        assert pa.concat_arrays([change.columns["id"] for change in logged]).to_pylist() == _ints(len(rows), modes)
        for name in selected_rows:
            values = pa.concat_arrays([change.columns[name] for change in logged])
            assert values.equals(selected_rows[name]), (name, kinds, values, selected_rows[name])
            assert values.type == selected_rows[name].type
            values.validate(full=True)
        start = db.position()
        db.run("UPDATE t SET id = id + 100 WHERE id % 2 = 0", "DELETE FROM t")
        deleted = db.changes(start, *modes)
        assert sum(len(change) for change in deleted) == len(rows) + 2 * ((len(rows) + 1) // 2)

    check()


def _ints(count: int, modes: tuple[str, ...]) -> list[Any]:
    return [str(i) for i in range(count)] if "to-string" in modes else list(range(count))


def _create(kinds: list[str]) -> str:
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    return f"CREATE TABLE t (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def _select(db: Database, modes: tuple[str, ...]) -> dict[str, pa.Array]:
    table = db.catalog(db.name, "t")
    assert table is not None
    targets = [column.type for column in describe(table, modes).columns]
    query = f"SELECT {', '.join(selected(column) for column in table.columns)} FROM {quoted('t')} ORDER BY t.id"
    pieces = list(rows_of_query(db.connection, query, table.columns, targets))
    return {column.name: pa.concat_arrays([piece[i] for piece in pieces]) for i, column in enumerate(table.columns)}


def _one(db: Database, kind: str, literal: str, *modes: str, zone: str = "UTC") -> tuple[Any, Any]:
    """A value through the log and through a query."""
    db.run("SET sql_mode = ''", "DROP TABLE IF EXISTS t", f"CREATE TABLE t (id int PRIMARY KEY, c {kind})")
    start = db.position()
    db.run(f"INSERT INTO t VALUES (1, {literal})")
    (change,) = db.changes(start, *modes, zone=zone)
    return change.columns["c"].to_pylist()[0], _select(db, modes)["c"].to_pylist()[0] if zone == "UTC" else None


@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        ("tinyint(1)", "2", True),
        ("bit(1)", "b'1'", True),
        ("bit(9)", "b'100000001'", b"\x01\x01"),
        ("bigint unsigned", "18446744073709551615", Decimal(18446744073709551615)),
        ("decimal(5,2)", "-999.99", Decimal("-999.99")),
        ("decimal(65,30)", "-0.000000000000000000000000000001", "-0.000000000000000000000000000001"),
        ("date", "'0000-00-00'", None),
        ("date", "'2024-02-30'", None),
        ("datetime", "'2024-00-00 01:02:03'", None),
        ("datetime(6)", "'2024-02-29 23:59:59.999999'", dt.datetime(2024, 2, 29, 23, 59, 59, 999999)),
        ("timestamp(4) null", "'2024-02-29 23:59:59.1234'", dt.datetime(2024, 2, 29, 23, 59, 59, 123400)),
        ("timestamp null", "0", None),
        ("time(6)", "'23:59:59.999999'", dt.time(23, 59, 59, 999000)),
        ("year", "0", 0),
        ("enum('a','b')", "'zzz'", ""),
        ("set('a','b')", "''", []),
        ("set('a','b')", "'b,a'", ["a", "b"]),
        ("binary(4)", "X'0100'", b"\x01\x00\x00\x00"),
        ("varbinary(4)", "X'0100'", b"\x01\x00"),
        ("char(4)", "'a  '", "a"),
        ("varchar(300)", "REPEAT('ü', 300)", "ü" * 300),
        ("mediumblob", "REPEAT('x', 100000)", b"x" * 100000),
        ("geometry", "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
            '{"coordinates":[[[0,0],[1,0],[1,1],[0,0]]],"type":"Polygon","srid":0}'),
    ],
)  # fmt: skip
def test_values_at_the_edges(db: Database, kind: str, literal: str, expected: object) -> None:
    """Values that are easy to get wrong come out right, both ways."""
    assert _one(db, kind, literal) == (expected, expected)


@pytest.mark.parametrize(
    ("kind", "literal", "expected"),
    [
        ("date", "'0000-00-00'", "0000-00-00"),
        ("time", "'-838:59:59'", "-838:59:59"),
        ("time(3)", "'-00:00:00.5'", "-00:00:00.500"),
        ("datetime(2)", "'2024-01-02 03:04:05.67'", "2024-01-02 03:04:05.67"),
        ("tinyint(1)", "7", "7"),
        ("decimal(10,8)", "0.00000001", "0.00000001"),
        ("set('a','b')", "3", "a,b"),
        ("varbinary(4)", "X'FF00'", "/wA="),
        ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
    ],
)
def test_values_as_texts(db: Database, kind: str, literal: str, expected: str) -> None:
    """The mapping `to-string` keeps what the lake's types could not hold."""
    logged, queried = _one(db, kind, literal, "to-string")
    assert (logged, queried) == (expected, expected)


@pytest.mark.mysql
def test_every_collation_is_known(db: Database) -> None:
    """The character set of each collation of the server is the one the server says."""
    table = "collation_character_set_applicability" if db.server.mariadb else "collations"
    found = db.run(f"SELECT id, character_set_name FROM information_schema.{table} WHERE id IS NOT NULL")
    assert len(found) > (1000 if db.server.mariadb else 250)
    assert [(number, charset_of(number)) for number, _ in found] == list(found)


def test_every_character_set(db: Database) -> None:
    """Texts of every set that can be read come out of the log as a query gives them, which the server converts."""
    sets = [name for (name,) in db.run("SELECT character_set_name FROM information_schema.character_sets")]
    readable = [name for name in sets if is_readable(name)]
    assert len(readable) >= 30
    letters = [*range(0x20, 0x180), *range(0x390, 0x460), *range(0x5D0, 0x5EB), 0x20AC, 0x2026, 0x4E2D, 0x6587, 0x3042]
    values = ", ".join(f"({i}, {db.connection.escape(chr(i) * 2)})" for i in sorted(letters))
    db.run("SET sql_mode = ''")
    for name in readable:
        db.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t (id int PRIMARY KEY, c varchar(9) CHARACTER SET {name})")
        start = db.position()
        db.run(f"INSERT INTO t VALUES {values}")
        logged = pa.concat_arrays([change.columns["c"] for change in db.changes(start)])
        assert logged.equals(_select(db, ())["c"]), name


def test_timestamps_are_shown_in_a_time_zone(db: Database) -> None:
    """TIMESTAMP columns show the clock of the zone that was asked for; DATETIME columns have none."""
    assert _one(db, "timestamp null", "'2024-07-01 12:00:00'", zone="Europe/Berlin")[0] == dt.datetime(2024, 7, 1, 14)
    assert _one(db, "datetime", "'2024-07-01 12:00:00'", zone="Europe/Berlin")[0] == dt.datetime(2024, 7, 1, 12)


def test_rows_longer_than_a_packet(db: Database) -> None:
    """A value beyond 16 MiB comes in several packets and in one piece."""
    db.server.execute("SET GLOBAL max_allowed_packet = 67108864")
    db.run("CREATE TABLE t (id int PRIMARY KEY, b longblob)")
    db.reconnect()
    start = db.position()
    db.run("INSERT INTO t VALUES (1, REPEAT('abcdefgh', 5000000)), (2, 'x')")
    rows = [value for change in db.changes(start) for value in change.columns["b"].to_pylist()]
    assert [len(value) for value in rows] == [40_000_000, 1]
    assert rows[0] == b"abcdefgh" * 5_000_000
    assert [len(value) for value in _select(db, ())["b"].to_pylist()] == [40_000_000, 1]


def test_many_rows_in_one_transaction(db: Database) -> None:
    """A transaction of many segments arrives whole, in order."""
    count = 60_000
    db.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(400) NOT NULL)")
    start = db.position()
    db.run(f"INSERT INTO t SELECT seq, REPEAT(CHAR(65 + seq % 26), seq % 400) FROM seq_1_to_{count}")
    ids = [value for change in db.changes(start) for value in change.columns["id"].to_pylist()]
    assert ids == list(range(1, count + 1))
    texts = pa.concat_arrays([change.columns["v"] for change in db.changes(start)]).to_pylist()
    sample = random.Random(1).sample(range(count), 500)
    assert all(texts[i] == chr(65 + (i + 1) % 26) * ((i + 1) % 400) for i in sample)


@pytest.mark.only_mariadb
def test_compressed_events(db: Database) -> None:
    """With log_bin_compress the server compresses events one by one; they read the same."""
    db.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db.server.execute("SET GLOBAL log_bin_compress = ON")
    try:
        db.reconnect()
        start = db.position()
        db.run(
            "INSERT INTO t VALUES (1, REPEAT('a', 5000)), (2, 'b')", "UPDATE t SET v = REPEAT('c', 3000) WHERE id = 1"
        )
        db.run("DELETE FROM t WHERE id = 1")
        events = db.events(start, "id", "v")
    finally:
        db.server.execute("SET GLOBAL log_bin_compress = OFF")
    long, short = "a" * 5000, "c" * 3000
    assert events == [("+I", 1, long), ("+I", 2, "b"), ("-U", 1, long), ("+U", 1, short), ("-D", 1, short)]
