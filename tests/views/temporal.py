"""Prices that change and sales that happen, and which price was valid at each sale: told by a loop over all of them."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.views.histories import PRODUCERS
from tests.views.judging import bag

import lakebed
from lakebed.lake import Lake

Row = dict[str, Any]

_START = dt.datetime(2024, 1, 1)
_NEWEST = (
    "(SELECT item, since, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY since DESC) AS rn "
    "FROM told) WHERE rn = 1)"
)


class Sales:
    """Two tables of sales (`sales` has a key, `scans` none), and two of prices: `prices` has a row for each version,
    `told` is what was ever said, times twice and prices without a time among it."""

    def __init__(self, path: str, producer: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.lake: Lake = lakebed.connect(path)
        keyed = {"bucket": "1", **PRODUCERS[producer]}
        sold = {"item": "STRING", "at": "TIMESTAMP(3)", "n": "INT"}
        priced = {"price": "INT"}
        self.lake.create_table("sales", {"id": "BIGINT NOT NULL", **sold}, primary_key=["id"], options=keyed)
        self.lake.create_table("scans", sold)
        key = {"item": "STRING NOT NULL", "since": "TIMESTAMP(3) NOT NULL"}
        self.lake.create_table("prices", {**key, **priced}, primary_key=["item", "since"], options=keyed)
        self.lake.create_table("told", {"item": "STRING", "since": "TIMESTAMP(3)", **priced})
        self.rows: dict[str, list[Row]] = {"sales": [], "scans": [], "prices": [], "told": []}

    # --- what happens --------------------------------------------------------------------------------------------

    def happen(self) -> None:
        """Some rows come, change and go; times are of any order."""
        for name in self.random.sample(list(self.rows), self.random.randrange(1, 4)):
            self._write(name, [self._row(name) for _ in range(self.random.randrange(1, 5))])
            if name in ("sales", "prices") and self.random.random() < 0.5:
                self._delete(name)

    def _row(self, name: str) -> Row:
        pick = self.random
        if name in ("sales", "scans"):
            row = {"item": self._maybe(pick.choice("abc")), "at": self._maybe(self._moment()), "n": pick.randrange(3)}
            return {"id": pick.randrange(12), **row} if name == "sales" else row
        since = self._moment() if name == "prices" else self._maybe(self._moment())
        item = pick.choice("abc") if name == "prices" else self._maybe(pick.choice("abc"))
        return {"item": item, "since": since, "price": self._maybe(pick.randrange(6))}

    def _moment(self) -> dt.datetime:
        return _START + dt.timedelta(minutes=self.random.randrange(12))

    def _maybe(self, value: Any) -> Any:
        return None if self.random.random() < 0.1 else value

    def _key(self, name: str, row: Row) -> tuple[Any, ...]:
        return tuple(row[each] for each in self.lake.table(name).primary_key)

    def _write(self, name: str, rows: list[Row]) -> None:
        if self.lake.table(name).primary_key:
            rows = list({self._key(name, row): row for row in rows}.values())
            new = {self._key(name, row) for row in rows}
            self.rows[name] = [row for row in self.rows[name] if self._key(name, row) not in new]
        self.lake.table(name).write(rows)
        self.rows[name] += rows

    def _delete(self, name: str) -> None:
        gone = self.random.sample(self.rows[name], min(2, len(self.rows[name])))
        if gone:
            self.lake.table(name).write([{**row, "kind": "-D"} for row in gone], row_kind="kind")
            self.rows[name] = [row for row in self.rows[name] if row not in gone]

    # --- what a join should give ---------------------------------------------------------------------------------

    def expected(self, join: Join) -> Counter[tuple[Any, ...]]:
        """The rows of a join, one after the other."""
        found: list[tuple[Any, ...]] = []
        for sale in self.rows[join.sales]:
            version = _valid(self.rows[join.prices], sale)
            if version is not None and not join.takes(version):
                version = None
            if version is None and not join.is_left:
                continue
            own = [sale["id"]] if join.sales == "sales" else []
            found.append((*own, sale["item"], sale["n"], *_parts(version)))
        return Counter(found)

    def wrong(self, join: Join, name: str) -> str | None:
        """What is wrong with the rows of a table or query; None if they are what the join should give."""
        expected, found = self.expected(join), bag(self.lake.query(f"SELECT * FROM {name}").arrow())
        return None if expected == found else f"missing {expected - found}, too many {found - expected}"


def _valid(versions: list[Row], sale: Row) -> Row | None:
    """The last version that began when a sale was or before; of several at a time the one with the greatest price."""
    best: Row | None = None
    for row in versions:
        if sale["item"] is None or sale["at"] is None or row["item"] != sale["item"] or row["since"] is None:
            continue
        if row["since"] <= sale["at"] and (best is None or _rank(row) >= _rank(best)):
            best = row
    return best


def _rank(row: Row) -> tuple[dt.datetime, int]:
    return row["since"], -1 if row["price"] is None else row["price"]


def _parts(version: Row | None) -> tuple[Any, ...]:
    return (None, None) if version is None else (version["since"], version["price"])


class Join:
    """A temporal join of sales with prices; `dear` takes prices of more than 2 only, once the version is found."""

    def __init__(self, sales: str, prices: str, *, is_left: bool, dear: bool = False) -> None:
        self.sales, self.prices, self.is_left, self.dear = sales, prices, is_left, dear

    @property
    def takes(self) -> Callable[[Row], bool]:
        """Whether ON takes a version."""
        return lambda row: not self.dear or (row["price"] is not None and row["price"] > 2)

    @property
    def query(self) -> str:
        """In SQL."""
        own = "s.id, " if self.sales == "sales" else ""
        prices = "prices" if self.prices == "prices" else _NEWEST
        return (
            f"SELECT {own}s.item, s.n, p.since, p.price FROM {self.sales} AS s {'LEFT ' if self.is_left else ''}JOIN "
            f"{prices} FOR SYSTEM_TIME AS OF s.at AS p ON s.item = p.item{' AND p.price > 2' if self.dear else ''}"
        )
