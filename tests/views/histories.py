"""Tables with a random history: rows that come, change and go, nulls and equal rows, several commits at a time."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import lakebed
from lakebed.lake import Lake

PRODUCERS: dict[str, dict[str, str]] = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "normalised": {"changelog-producer": "input", "changelog-producer.input.normalize": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
}
"""Who writes the changelog of a table with a key."""


class History:
    """A lake of four tables, to which things happen."""

    def __init__(self, path: str, producer: str, seed: int, **options: str) -> None:
        self.random = random.Random(seed)
        self.lake: Lake = lakebed.connect(path)
        keyed = {"bucket": "1", **PRODUCERS[producer], **options}
        self.lake.create_table(
            "orders",
            {
                "id": "BIGINT NOT NULL",
                "cust": "INT",
                "amount": "INT",
                "price": "DECIMAL(10, 2)",
                "ratio": "DOUBLE",
                "note": "STRING",
                "day": "DATE",
                "tags": "ARRAY<STRING>",
            },
            primary_key=["id"],
            options=keyed,
        )
        self.lake.create_table(
            "customers",
            {"cid": "INT NOT NULL", "name": "STRING", "region": "STRING", "vip": "BOOLEAN"},
            primary_key=["cid"],
            options=keyed,
        )
        self.lake.create_table(
            "stock",
            {"a": "INT NOT NULL", "b": "STRING NOT NULL", "v": "INT", "at": "TIMESTAMP(6)"},
            primary_key=["a", "b"],
            options=keyed,
        )
        self.lake.create_table("events", {"oid": "BIGINT", "kind": "STRING", "qty": "INT"})

    def maybe(self, value: Any, nulls: float = 0.15) -> Any:
        """The value, or null."""
        return None if self.random.random() < nulls else value

    def order(self, number: int) -> dict[str, Any]:
        """A row of `orders`."""
        pick = self.random
        tags = [self.maybe(pick.choice(["x", "y", "z"])) for _ in range(pick.randrange(3))]
        return {
            "id": number,
            "cust": self.maybe(pick.randrange(6)),
            "amount": self.maybe(pick.randrange(-3, 8)),
            "price": self.maybe(Decimal(pick.randrange(500)) / 100),
            "ratio": self.maybe(pick.randrange(-8, 8) / 4),
            "note": self.maybe(pick.choice(["red", "green", "blue", ""])),
            "day": self.maybe(dt.date(2024, 1, 1) + dt.timedelta(days=pick.randrange(4))),
            "tags": self.maybe(tags),
        }

    def customer(self, number: int) -> dict[str, Any]:
        """A row of `customers`."""
        pick = self.random
        return {
            "cid": number,
            "name": self.maybe(pick.choice(["ann", "bob", "cid"])),
            "region": self.maybe(pick.choice(["north", "south"])),
            "vip": self.maybe(pick.random() < 0.5),
        }

    def stocked(self) -> dict[str, Any]:
        """A row of `stock`."""
        pick = self.random
        moment = dt.datetime(2024, 1, 1) + dt.timedelta(minutes=pick.randrange(300))
        return {
            "a": pick.randrange(5),
            "b": pick.choice(["p", "q"]),
            "v": self.maybe(pick.randrange(5)),
            "at": self.maybe(moment),
        }

    def event(self) -> dict[str, Any]:
        """A row of `events`."""
        pick = self.random
        return {
            "oid": self.maybe(pick.randrange(14)),
            "kind": self.maybe(pick.choice(["view", "buy"])),
            "qty": self.maybe(pick.randrange(4)),
        }

    def fill(self) -> None:
        """The first rows."""
        pick = self.random
        self._write("orders", [self.order(n) for n in range(12) if pick.random() < 0.7])
        self._write("customers", [self.customer(n) for n in range(6) if pick.random() < 0.7])
        self._write("stock", [self.stocked() for _ in range(6)])
        self._write("events", [self.event() for _ in range(pick.randrange(10))])

    def happen(self) -> None:
        """One to four commits."""
        for _ in range(self.random.randrange(1, 5)):
            self._one()

    def _one(self) -> None:
        pick = self.random
        deed = pick.choice(["orders", "orders", "customers", "stock", "events", "delete", "delete", "back and forth"])
        if deed == "orders":
            self._write("orders", [self.order(pick.randrange(14)) for _ in range(pick.randrange(1, 4))])
        elif deed == "customers":
            self._write("customers", [self.customer(pick.randrange(6)) for _ in range(pick.randrange(1, 3))])
        elif deed == "stock":
            self._write("stock", [self.stocked() for _ in range(pick.randrange(1, 4))])
        elif deed == "events":
            self._write("events", [self.event() for _ in range(pick.randrange(1, 4))])
        elif deed == "delete":
            name = pick.choice(["orders", "customers", "stock"])
            rows = self.lake.table(name).to_arrow().to_pylist()
            gone = pick.sample(rows, min(len(rows), pick.randrange(1, 3)))
            self._write(name, gone, "-D")
        else:
            row = self.order(pick.randrange(14))
            self._write("orders", [row])
            self._write("orders", [row], "-D")

    def _write(self, name: str, rows: list[dict[str, Any]], kind: str | None = None) -> None:
        if not rows:
            return
        table = self.lake.table(name)
        key = table.primary_key
        if key:  # of a key that is given twice in a commit the last row counts, so that is what is written
            rows = list({tuple(row[part] for part in key): row for row in rows}.values())
        if kind is None:
            table.write(rows)
        else:
            table.write([{**row, "kind_of_row": kind} for row in rows], row_kind="kind_of_row")
