"""The lake on which queries are compared: tables of every kind, small, with nulls, duplicates, NaN and odd letters."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

import lakebed

_TABLES = """
CREATE TABLE customers (id INT NOT NULL, name STRING, city STRING, since DATE, credit DECIMAL(10, 2),
    tags ARRAY<STRING>, home STRUCT<street: STRING, zip: INT>, attrs MAP<STRING, INT>)
    TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2');
CREATE TABLE orders (id BIGINT NOT NULL, customer INT, placed TIMESTAMP, amount DECIMAL(12, 2), state STRING,
    note STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'changelog-producer' = 'input');
CREATE TABLE events (id INT, kind STRING, v INT, d DOUBLE, f FLOAT, at TIMESTAMP, clock TIMESTAMP_NTZ, ok BOOLEAN);
CREATE TABLE sales (dt STRING NOT NULL, region STRING NOT NULL, id INT NOT NULL, qty INT, price DECIMAL(8, 2))
    PARTITIONED BY (dt, region) TBLPROPERTIES ('primary-key' = 'dt,region,id', 'bucket' = '1');
CREATE TABLE a (x INT, y STRING);
CREATE TABLE b (x INT, z STRING);
CREATE TABLE c (x BIGINT, y STRING, w DOUBLE);
CREATE TABLE empty (x INT, y STRING);
CREATE TABLE tree (id INT NOT NULL, parent INT, label STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1');
CREATE TABLE tracked (id INT, v STRING) TBLPROPERTIES ('row-tracking.enabled' = 'true');
CREATE TABLE `select` (`order` INT, `group` STRING, `Mixed Case` INT, `a.b` STRING);
CREATE TABLE nested (id INT, people ARRAY<STRUCT<name: STRING, age: INT>>, grid ARRAY<ARRAY<INT>>,
    deep STRUCT<a: STRUCT<b: INT, c: STRING>, d: INT>, counts MAP<STRING, INT>);
"""
_TPCH = """
CREATE TABLE tpch.region (r_regionkey INT, r_name STRING, r_comment STRING);
CREATE TABLE tpch.nation (n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING);
CREATE TABLE tpch.supplier (s_suppkey INT, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING,
    s_acctbal DECIMAL(15, 2), s_comment STRING);
CREATE TABLE tpch.part (p_partkey INT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,
    p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING);
CREATE TABLE tpch.partsupp (ps_partkey INT, ps_suppkey INT, ps_availqty INT, ps_supplycost DECIMAL(15, 2),
    ps_comment STRING);
CREATE TABLE tpch.customer (c_custkey INT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING,
    c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING);
CREATE TABLE tpch.orders (o_orderkey INT NOT NULL, o_custkey INT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2),
    o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING)
    TBLPROPERTIES ('primary-key' = 'o_orderkey', 'bucket' = '1');
CREATE TABLE tpch.lineitem (l_orderkey INT, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity DECIMAL(15, 2),
    l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag STRING,
    l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,
    l_shipmode STRING, l_comment STRING);
"""
_CITIES = ["Ulm", "Köln", "東京", "Straße", None, "Ulm"]
_REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
_NATIONS = ["ALGERIA", "BRAZIL", "CANADA", "FRANCE", "GERMANY", "INDIA", "SAUDI ARABIA", "CHINA", "UNITED STATES"]
_NATION_REGIONS = [0, 1, 1, 3, 3, 2, 4, 2, 1]


def fill(lake: lakebed.Lake) -> None:
    """Makes all tables."""
    lake.sql("CREATE DATABASE tpch")
    for text in f"{_TABLES}{_TPCH}".split(";"):
        if text.strip():
            lake.sql(text)
    draw = random.Random(18)
    _customers(lake, draw)
    _orders(lake, draw)
    _events(lake, draw)
    _sales(lake, draw)
    _small(lake)
    _tpch(lake, draw)


def _write(lake: lakebed.Lake, name: str, rows: list[dict[str, Any]]) -> None:
    table = lake.table(name)
    schema = pa.schema([field.with_nullable(True) for field in table.arrow_schema])
    table.write(pa.Table.from_pylist(rows, schema=schema))


def _customers(lake: lakebed.Lake, draw: random.Random) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "name": draw.choice(["Ann", "bob", "Çelik", "日本", "Ann", None]),
            "city": draw.choice(_CITIES),
            "since": draw.choice([dt.date(2020, 2, 29), dt.date(2023, 12, 31), dt.date(2024, 3, 31), None]),
            "credit": draw.choice([Decimal("0.00"), Decimal("10.50"), Decimal("-3.25"), Decimal("999.99"), None]),
            "tags": draw.choice([[], ["a"], ["b", "a", None], ["x", "y", "x"], None]),
            "home": draw.choice([{"street": "Main", "zip": 12345}, {"street": None, "zip": 1}, None]),
            "attrs": draw.choice([[("k", 1), ("l", None)], [], [("k", 2)], None]),
        }

    _write(lake, "customers", [row(number) for number in range(1, 13)])
    lake.table("customers").create_tag("first", 1)
    lake.table("customers").create_branch("trial", "first")
    _write(lake, "customers", [row(number) for number in range(4, 9)])
    _write(lake, "customers", [row(number) for number in (2, 6, 20)])
    _write(lake, "customers$branch_trial", [row(number) for number in (1, 50)])


def _orders(lake: lakebed.Lake, draw: random.Random) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "customer": draw.choice([1, 2, 2, 3, 5, 6, 8, 99, None]),
            "placed": dt.datetime(2024, 3, 30, 12, tzinfo=dt.UTC) + dt.timedelta(minutes=draw.randrange(4000)),
            "amount": Decimal(draw.randrange(100, 90000)).scaleb(-2),
            "state": draw.choice(["new", "paid", "sent", None]),
            "note": draw.choice(["", "special requests", "A%b_c", None]),
        }

    _write(lake, "orders", [row(number) for number in range(1, 31)])
    _write(lake, "orders", [row(number) for number in range(10, 20)])
    changed = row(40)
    schema = pa.schema([field.with_nullable(True) for field in lake.table("orders").arrow_schema])
    rows = pa.Table.from_pylist([changed, row(5), row(6)], schema=schema)
    lake.table("orders").write(rows.append_column("_kind", [["+I", "-D", "-D"]]), row_kind="_kind")


def _events(lake: lakebed.Lake, draw: random.Random) -> None:
    def row(number: int) -> dict[str, Any]:
        clock = dt.datetime(2024, 10, 26, 23) + dt.timedelta(minutes=17 * number)
        return {
            "id": number % 17,
            "kind": draw.choice(["click", "view", "Kauf", "購入", None]),
            "v": draw.choice([*range(-3, 6), None]),
            "d": draw.choice([float("nan"), float("inf"), -0.0, 0.0, 0.25, 1.5, -2.75, None]),
            "f": draw.choice([float("nan"), 0.5, -1.25, 3.0, None]),
            "at": draw.choice([clock.replace(tzinfo=dt.UTC), None])
            if number % 5 == 0
            else clock.replace(tzinfo=dt.UTC),
            "clock": clock,
            "ok": draw.choice([True, False, None]),
        }

    _write(lake, "events", [row(number) for number in range(30)])
    _write(lake, "events", [row(number) for number in range(30, 45)])


def _sales(lake: lakebed.Lake, draw: random.Random) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "dt": f"2024-05-{10 + number % 3}",
            "region": ["north", "south"][number % 2],
            "id": number % 10,
            "qty": draw.choice([1, 2, 3, 5, None]),
            "price": Decimal(draw.randrange(1, 500)).scaleb(-2),
        }

    _write(lake, "sales", [row(number) for number in range(40)])
    _write(lake, "sales", [row(number) for number in range(0, 40, 3)])


def _small(lake: lakebed.Lake) -> None:
    _write(
        lake, "a", [{"x": x, "y": y} for x, y in [(1, "p"), (2, "q"), (2, "q"), (3, None), (None, "n"), (None, "m")]]
    )
    _write(lake, "b", [{"x": x, "z": z} for x, z in [(2, "u"), (2, "v"), (3, "w"), (4, "t"), (None, "z")]])
    rows = [(1, "p", 0.5), (2, "Q", float("nan")), (7, None, -0.0), (None, "n", None), (2, "q", 0.0)]
    _write(lake, "c", [{"x": x, "y": y, "w": w} for x, y, w in rows])
    tree = [(1, None, "root"), (2, 1, "left"), (3, 1, "right"), (4, 2, "leaf"), (5, 9, "lost")]
    _write(lake, "tree", [{"id": i, "parent": p, "label": text} for i, p, text in tree])
    _write(lake, "tracked", [{"id": n, "v": f"v{n}"} for n in range(3)])
    _write(lake, "tracked", [{"id": n, "v": f"v{n}"} for n in range(3, 5)])
    odd = [(1, "g", 10, "dot"), (2, "g", None, None), (2, None, 30, "x")]
    _write(lake, "select", [dict(zip(["order", "group", "Mixed Case", "a.b"], row, strict=True)) for row in odd])
    nested = [
        {
            "id": 1,
            "people": [{"name": "Ann", "age": 3}, {"name": None, "age": 4}],
            "grid": [[1, 2], [], None, [3]],
            "deep": {"a": {"b": 1, "c": "x"}, "d": 5},
            "counts": [("a", 1), ("b", None)],
        },
        {"id": 2, "people": [], "grid": [], "deep": {"a": None, "d": None}, "counts": []},
        {"id": 3, "people": None, "grid": None, "deep": None, "counts": None},
        {
            "id": 4,
            "people": [{"name": "Bob", "age": None}, None],
            "grid": [[None]],
            "deep": {"a": {"b": 2, "c": None}, "d": 6},
            "counts": [("z", 26)],
        },
    ]
    _write(lake, "nested", nested)


def _tpch(lake: lakebed.Lake, draw: random.Random) -> None:
    def money(low: int, high: int) -> Decimal:
        return Decimal(draw.randrange(low, high)).scaleb(-2)

    def day(start: int = 1992, years: int = 7) -> dt.date:
        return dt.date(start, 1, 1) + dt.timedelta(days=draw.randrange(365 * years))

    words = ["special", "requests", "Customer", "Complaints", "green", "quick", "forest", "pending", "even", "ironic"]

    def comment() -> str:
        return " ".join(draw.choices(words, k=4))

    _write(
        lake, "tpch.region", [{"r_regionkey": n, "r_name": name, "r_comment": ""} for n, name in enumerate(_REGIONS)]
    )
    nations = zip(range(len(_NATIONS)), _NATIONS, _NATION_REGIONS, strict=True)
    _write(
        lake,
        "tpch.nation",
        [{"n_nationkey": n, "n_name": name, "n_regionkey": r, "n_comment": ""} for n, name, r in nations],
    )
    places = range(len(_NATIONS))
    _write(
        lake,
        "tpch.supplier",
        [
            {
                "s_suppkey": n,
                "s_name": f"Supplier#{n:09}",
                "s_address": f"street {n}",
                "s_nationkey": draw.choice(places),
                "s_phone": f"{10 + n % 25}-111",
                "s_acctbal": money(-99999, 999999),
                "s_comment": comment(),
            }
            for n in range(1, 21)
        ],
    )
    types = ["PROMO BURNISHED COPPER", "ECONOMY ANODIZED STEEL", "STANDARD POLISHED BRASS", "MEDIUM POLISHED TIN"]
    _write(
        lake,
        "tpch.part",
        [
            {
                "p_partkey": n,
                "p_name": " ".join(draw.sample(["green", "forest", "navy", "puff", "lace"], 3)),
                "p_mfgr": f"Manufacturer#{n % 5 + 1}",
                "p_brand": draw.choice(["Brand#12", "Brand#23", "Brand#34", "Brand#45"]),
                "p_type": draw.choice(types),
                "p_size": draw.choice([1, 5, 9, 14, 15, 19, 23, 36, 45, 49, 3]),
                "p_container": draw.choice(["SM CASE", "MED BOX", "LG BOX", "MED BAG", "SM PKG", "LG PKG", "JUMBO"]),
                "p_retailprice": money(90000, 200000),
                "p_comment": comment(),
            }
            for n in range(1, 41)
        ],
    )
    _write(
        lake,
        "tpch.partsupp",
        [
            {
                "ps_partkey": n,
                "ps_suppkey": (n + 5 * k) % 20 + 1,
                "ps_availqty": draw.randrange(1, 200),
                "ps_supplycost": money(100, 100000),
                "ps_comment": comment(),
            }
            for n in range(1, 41)
            for k in range(4)
        ],
    )
    _write(
        lake,
        "tpch.customer",
        [
            {
                "c_custkey": n,
                "c_name": f"Customer#{n:09}",
                "c_address": f"road {n}",
                "c_nationkey": draw.choice(places),
                "c_phone": f"{draw.choice([13, 31, 23, 29, 30, 18, 17, 11])}-222",
                "c_acctbal": money(-99999, 999999),
                "c_mktsegment": draw.choice(["BUILDING", "AUTOMOBILE", "MACHINERY"]),
                "c_comment": comment(),
            }
            for n in range(1, 61)
        ],
    )
    orders = [
        {
            "o_orderkey": n,
            "o_custkey": draw.randrange(1, 41),
            "o_orderstatus": draw.choice(["F", "O", "P"]),
            "o_totalprice": money(100000, 50000000),
            "o_orderdate": day(1993, 5),
            "o_orderpriority": draw.choice(["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"]),
            "o_clerk": f"Clerk#{n % 9}",
            "o_shippriority": 0,
            "o_comment": comment(),
        }
        for n in range(1, 301)
    ]
    _write(lake, "tpch.orders", orders)
    _write(lake, "tpch.orders", draw.sample(orders, 40))
    items = []
    for order in orders:
        for line in range(1, draw.randrange(2, 6)):
            part = draw.randrange(1, 41)
            shipped = order["o_orderdate"] + dt.timedelta(days=draw.randrange(1, 120))
            items.append(
                {
                    "l_orderkey": order["o_orderkey"],
                    "l_partkey": part,
                    "l_suppkey": (part + 5 * draw.randrange(4)) % 20 + 1,
                    "l_linenumber": line,
                    "l_quantity": Decimal(draw.choice([1, 5, 10, 24, 30, 50, 100])),
                    "l_extendedprice": money(90000, 9000000),
                    "l_discount": Decimal(draw.randrange(0, 11)).scaleb(-2),
                    "l_tax": Decimal(draw.randrange(0, 9)).scaleb(-2),
                    "l_returnflag": draw.choice(["A", "N", "R"]),
                    "l_linestatus": draw.choice(["F", "O"]),
                    "l_shipdate": shipped,
                    "l_commitdate": shipped + dt.timedelta(days=draw.randrange(-20, 30)),
                    "l_receiptdate": shipped + dt.timedelta(days=draw.randrange(1, 30)),
                    "l_shipinstruct": draw.choice(["DELIVER IN PERSON", "NONE"]),
                    "l_shipmode": draw.choice(["AIR", "AIR REG", "MAIL", "SHIP", "RAIL"]),
                    "l_comment": comment(),
                }
            )
    _write(lake, "tpch.lineitem", items)
