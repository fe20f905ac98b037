"""Rows in the shape of TPC-H, made here in a moment: the eight tables at any scale, and what then happens to them.

Values are drawn as the benchmark describes them, so that its queries find about as much as they should. They are not
those of its own generator: results can not be compared with published ones. `Shop` keeps the refresh streams: RF1
brings new orders with their lines, RF2 takes old orders away with theirs, and a share of all rows changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lakebed

KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
QUERIES = Path(__file__).parents[1] / "tests" / "differential" / "queries" / "tpch.sql"
KIND = "kind_of_row"

_REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
_NATIONS = (
    "ALGERIA:0 ARGENTINA:1 BRAZIL:1 CANADA:1 EGYPT:4 ETHIOPIA:0 FRANCE:3 GERMANY:3 INDIA:2 INDONESIA:2 IRAN:4 IRAQ:4 "
    "JAPAN:2 JORDAN:4 KENYA:0 MOROCCO:0 MOZAMBIQUE:0 PERU:1 CHINA:2 ROMANIA:3 SAUDI_ARABIA:4 VIETNAM:2 RUSSIA:3 "
    "UNITED_KINGDOM:3 UNITED_STATES:1"
)
_TYPES = ("STANDARD SMALL MEDIUM LARGE ECONOMY PROMO", "ANODIZED BURNISHED PLATED POLISHED BRUSHED")
_METALS = "TIN NICKEL BRASS STEEL COPPER"
_BOXES = ("SM LG MED JUMBO WRAP", "CASE BOX BAG JAR PKG PACK CAN DRUM")
_COLOURS = (
    "almond azure beige blush brown chocolate coral cream cyan forest green ivory khaki lace navy puff red rose tan"
)
_WORDS = "special requests Customer Complaints quick pending even ironic final deposits accounts express bold silent"
_SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
_FIRST_DAY, _DAYS, _TODAY = 8035, 2406, 9298  # 1992-01-01; the days on which orders are placed; 1995-06-17
_CHUNK = 4  # orders of which keys are given out: every second half of eight stays free for new ones


def queries() -> dict[str, str]:
    """The 22 queries by number."""
    lines = [line for line in QUERIES.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    texts = [text.strip() for text in "\n".join(lines).split(";") if text.strip()]
    return {str(number): text for number, text in enumerate(texts, 1)}


def decimals(hundredths: np.ndarray) -> pa.Array:
    """Whole numbers of hundredths as DECIMAL(15, 2)."""
    whole = pa.array(hundredths.astype(np.int64)).cast(pa.decimal128(19, 0))
    return pc.divide(whole, pa.scalar(100, pa.decimal128(3, 0))).cast(pa.decimal128(15, 2))


def _days(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers.astype(np.int32), pa.int32()).cast(pa.date32())


def _picked(rng: np.random.Generator, values: list[str], count: int) -> pa.Array:
    return pa.array(values, pa.string()).take(pa.array(rng.integers(0, len(values), count)))


def _words(rng: np.random.Generator, text: str, number: int, count: int) -> pa.Array:
    columns = [_picked(rng, text.split(), count) for _ in range(number)]
    return pc.binary_join_element_wise(*columns, " ")


def _numbered(prefix: str, numbers: np.ndarray) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers.astype(np.int64)).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(pa.scalar(prefix), digits, "")


def _phones(rng: np.random.Generator, nations: np.ndarray) -> pa.Array:
    country = pa.array(nations + 10).cast(pa.string())
    rest = [pa.array(rng.integers(low, 10 * low, len(nations))).cast(pa.string()) for low in (100, 100, 1000)]
    return pc.binary_join_element_wise(country, *rest, "-")


def small_tables(rng: np.random.Generator) -> dict[str, pa.Table]:
    """Regions and nations."""
    nations = [each.split(":") for each in _NATIONS.split()]
    return {
        "region": pa.table(
            {"r_regionkey": pa.array(range(5), pa.int32()), "r_name": _REGIONS, "r_comment": _words(rng, _WORDS, 4, 5)}
        ),
        "nation": pa.table(
            {
                "n_nationkey": pa.array(range(25), pa.int32()),
                "n_name": [name.replace("_", " ") for name, _ in nations],
                "n_regionkey": pa.array([int(region) for _, region in nations], pa.int32()),
                "n_comment": _words(rng, _WORDS, 4, 25),
            }
        ),
    }


def suppliers(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """Rows of `supplier`."""
    nations = rng.integers(0, 25, len(keys))
    return pa.table(
        {
            "s_suppkey": pa.array(keys, pa.int32()),
            "s_name": _numbered("Supplier#", keys),
            "s_address": _words(rng, _COLOURS, 3, len(keys)),
            "s_nationkey": pa.array(nations, pa.int32()),
            "s_phone": _phones(rng, nations),
            "s_acctbal": decimals(rng.integers(-99999, 999999, len(keys))),
            "s_comment": _words(rng, _WORDS, 6, len(keys)),
        }
    )


def parts(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """Rows of `part`."""
    count = len(keys)
    maker = rng.integers(1, 6, count)
    brand = pa.array(maker * 10 + rng.integers(1, 6, count)).cast(pa.string())
    kinds = [_words(rng, text, 1, count) for text in (*_TYPES, _METALS)]
    boxes = [_words(rng, text, 1, count) for text in _BOXES]
    return pa.table(
        {
            "p_partkey": pa.array(keys, pa.int32()),
            "p_name": _words(rng, _COLOURS, 5, count),
            "p_mfgr": pc.binary_join_element_wise("Manufacturer#", pa.array(maker).cast(pa.string()), ""),
            "p_brand": pc.binary_join_element_wise("Brand#", brand, ""),
            "p_type": pc.binary_join_element_wise(*kinds, " "),
            "p_size": pa.array(rng.integers(1, 51, count), pa.int32()),
            "p_container": pc.binary_join_element_wise(*boxes, " "),
            "p_retailprice": decimals(90000 + (keys // 10) % 20001 + 100 * (keys % 1000)),
            "p_comment": _words(rng, _WORDS, 3, count),
        }
    )


def _suppliers_of(part: np.ndarray, turn: np.ndarray | int, suppliers: int) -> np.ndarray:
    """The four suppliers of a part."""
    return (part + turn * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def partsupps(rng: np.random.Generator, keys: np.ndarray, supplier_count: int) -> pa.Table:
    """Rows of `partsupp`: four for each part."""
    part = np.repeat(keys, 4)
    turn = np.tile(np.arange(4), len(keys))
    count = len(part)
    return pa.table(
        {
            "ps_partkey": pa.array(part, pa.int32()),
            "ps_suppkey": pa.array(_suppliers_of(part, turn, supplier_count), pa.int32()),
            "ps_availqty": pa.array(rng.integers(1, 10000, count), pa.int32()),
            "ps_supplycost": decimals(rng.integers(100, 100001, count)),
            "ps_comment": _words(rng, _WORDS, 8, count),
        }
    )


def customers(rng: np.random.Generator, keys: np.ndarray) -> pa.Table:
    """Rows of `customer`."""
    nations = rng.integers(0, 25, len(keys))
    return pa.table(
        {
            "c_custkey": pa.array(keys, pa.int32()),
            "c_name": _numbered("Customer#", keys),
            "c_address": _words(rng, _COLOURS, 3, len(keys)),
            "c_nationkey": pa.array(nations, pa.int32()),
            "c_phone": _phones(rng, nations),
            "c_acctbal": decimals(rng.integers(-99999, 999999, len(keys))),
            "c_mktsegment": _picked(rng, _SEGMENTS, len(keys)),
            "c_comment": _words(rng, _WORDS, 8, len(keys)),
        }
    )


def orders(rng: np.random.Generator, keys: np.ndarray, sizes: Sizes) -> tuple[pa.Table, pa.Table]:
    """Rows of `orders` and their lines; a third of the customers never order."""
    count = len(keys)
    customer = rng.integers(1, sizes.customers + 1, count)
    customer = np.where((customer % 3 == 0) & (customer > 1), customer - 1, customer)
    placed = _FIRST_DAY + rng.integers(0, _DAYS, count)
    lines_of = rng.integers(1, 8, count)
    lines = _lines(rng, np.repeat(keys, lines_of), np.repeat(placed, lines_of), lines_of, sizes)
    made = pa.table(
        {
            "o_orderkey": pa.array(keys, pa.int64()),
            "o_custkey": pa.array(customer, pa.int32()),
            "o_orderstatus": pa.array(np.where(placed < _TODAY - 90, "F", np.where(placed > _TODAY, "O", "P"))),
            "o_totalprice": decimals(rng.integers(90000, 50000000, count)),
            "o_orderdate": _days(placed),
            "o_orderpriority": _picked(rng, _PRIORITIES, count),
            "o_clerk": _numbered("Clerk#", rng.integers(1, 1001, count)),
            "o_shippriority": pa.array(np.zeros(count), pa.int32()),
            "o_comment": _words(rng, _WORDS, 6, count),
        }
    )
    return made, lines


def _lines(
    rng: np.random.Generator, order: np.ndarray, placed: np.ndarray, lines_of: np.ndarray, sizes: Sizes
) -> pa.Table:
    count = len(order)
    part = rng.integers(1, sizes.parts + 1, count)
    number = np.arange(count) - np.repeat(np.cumsum(lines_of) - lines_of, lines_of) + 1
    quantity = rng.integers(1, 51, count)
    shipped = placed + rng.integers(1, 122, count)
    received = shipped + rng.integers(1, 31, count)
    flag = np.where(received <= _TODAY, np.where(rng.random(count) < 0.5, "R", "A"), "N")
    return pa.table(
        {
            "l_orderkey": pa.array(order, pa.int64()),
            "l_partkey": pa.array(part, pa.int32()),
            "l_suppkey": pa.array(_suppliers_of(part, rng.integers(0, 4, count), sizes.suppliers), pa.int32()),
            "l_linenumber": pa.array(number, pa.int32()),
            "l_quantity": decimals(100 * quantity),
            "l_extendedprice": decimals(quantity * (90000 + (part // 10) % 20001 + 100 * (part % 1000))),
            "l_discount": decimals(rng.integers(0, 11, count)),
            "l_tax": decimals(rng.integers(0, 9, count)),
            "l_returnflag": pa.array(flag),
            "l_linestatus": pa.array(np.where(shipped > _TODAY, "O", "F")),
            "l_shipdate": _days(shipped),
            "l_commitdate": _days(placed + rng.integers(30, 91, count)),
            "l_receiptdate": _days(received),
            "l_shipinstruct": _picked(rng, ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"], count),
            "l_shipmode": _picked(rng, ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB", "AIR REG"], count),
            "l_comment": _words(rng, _WORDS, 3, count),
        }
    )


@dataclass(frozen=True)
class Sizes:
    """Rows of the tables at a scale."""

    scale: float

    @property
    def suppliers(self) -> int:
        """Of `supplier`."""
        return max(8, round(10_000 * self.scale))

    @property
    def parts(self) -> int:
        """Of `part`."""
        return max(20, round(200_000 * self.scale))

    @property
    def customers(self) -> int:
        """Of `customer`."""
        return max(30, round(150_000 * self.scale))

    @property
    def orders(self) -> int:
        """Of `orders`."""
        return max(100, round(1_500_000 * self.scale))


@dataclass
class Shop:
    """A lake with the tables of TPC-H, to which things happen."""

    lake: lakebed.Lake
    scale: float
    seed: int = 1
    options: dict[str, str] = field(default_factory=lambda: {"changelog-producer": "lookup"})
    buckets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.sizes = Sizes(self.scale)
        self._new_orders = 0
        self._oldest = 0

    def fill(self) -> None:
        """Makes the tables, and their first rows."""
        self.lake.create_database("tpch", if_not_exists=True)
        rng, sizes = self.rng, self.sizes
        made = small_tables(rng)
        made["supplier"] = suppliers(rng, np.arange(1, sizes.suppliers + 1))
        made["part"] = parts(rng, np.arange(1, sizes.parts + 1))
        made["partsupp"] = partsupps(rng, np.arange(1, sizes.parts + 1), sizes.suppliers)
        made["customer"] = customers(rng, np.arange(1, sizes.customers + 1))
        made["orders"], made["lineitem"] = orders(rng, _given_keys(sizes.orders), sizes)
        for name, rows in made.items():
            key = KEYS[name]
            schema = pa.schema([pa.field(each.name, each.type, each.name not in key) for each in rows.schema])
            options = {"bucket": str(self.buckets.get(name, 1)), **self.options}
            table = self.lake.create_table(f"tpch.{name}", schema, primary_key=key, options=options)
            table.write(rows.cast(schema))

    def new_orders(self, count: int) -> None:
        """RF1: orders and their lines come, with keys between those that there are."""
        numbers = np.arange(self._new_orders, self._new_orders + count)
        self._new_orders += count
        made, lines = orders(self.rng, _free_keys(numbers), self.sizes)
        self.lake.table("tpch.orders").write(made)
        self.lake.table("tpch.lineitem").write(lines)

    def old_orders_go(self, count: int) -> None:
        """RF2: so many of the first orders go, with their lines."""
        keys = _given_keys(self._oldest + count)[self._oldest :]
        self._oldest += count
        for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            table = self.lake.table(f"tpch.{name}")
            gone = table.lookup(pa.table({column: pa.array(keys, pa.int64())}), by=[column])
            if gone.num_rows:
                table.write(gone.append_column(KIND, pa.array(["-D"] * gone.num_rows)), row_kind=KIND)

    def change(self, name: str, count: int, column: str, values: Callable[[np.random.Generator, int], Any]) -> None:
        """So many rows of a table get another value in a column."""
        table = self.lake.table(f"tpch.{name}")
        rows = table.to_arrow()
        chosen = rows.take(pa.array(np.sort(self.rng.choice(rows.num_rows, min(count, rows.num_rows), replace=False))))
        place = chosen.schema.get_field_index(column)
        given = pa.array(values(self.rng, chosen.num_rows))
        table.write(chosen.set_column(place, chosen.schema.field(place), given.cast(chosen.schema.field(place).type)))

    def prices_change(self, count: int) -> None:
        """So many lines get another price."""
        self.change("lineitem", count, "l_extendedprice", lambda rng, n: decimals(rng.integers(90000, 9000000, n)))

    def customers_move(self, count: int) -> None:
        """So many customers are of another nation."""
        self.change("customer", count, "c_nationkey", lambda rng, n: rng.integers(0, 25, n))


def _given_keys(count: int) -> np.ndarray:
    """Keys of the first orders: of eight numbers the first four."""
    numbers = np.arange(count)
    return (numbers // _CHUNK) * 2 * _CHUNK + numbers % _CHUNK + 1


def _free_keys(numbers: np.ndarray) -> np.ndarray:
    """Keys of new orders: of eight numbers the last four."""
    return (numbers // _CHUNK) * 2 * _CHUNK + _CHUNK + numbers % _CHUNK + 1
