"""Refreshes of materialized tables over TPC-H: from changes against full recomputation, in process and on Spark.

    python -m benchmarks.views [--scale 1] [--shares 0.0001 0.001 0.01 0.05] [--views 1 3 5 10 wide] [--no-spark]
                               [--growth] [--repeats 2] [--small] [--json]

Orders come with their lines (RF1) and as many go (RF2), a share of all of them each time. Then, with their commits:

    changes    a refresh that follows the changes
    auto       one that chooses its way
    full       one that computes everything here and writes the difference
    overwrite  the query computed here, and an ordinary table overwritten with its rows
    spark      the same by Spark: INSERT OVERWRITE

Queries 3 and 10 are without LIMIT. CPU seconds of all processes and wall seconds; of the repeats the least CPU counts,
after a first change that is not measured. `spark` and `overwrite` do not depend on the share, and are measured once.
`--growth` follows the same number of changed orders while the tables grow threefold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed
from benchmarks.tpch import Shop, queries

WIDE = """
SELECT l_orderkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_shipdate, o_orderdate, o_orderpriority,
    c_custkey, c_name, c_mktsegment, p_partkey, p_brand, p_type
FROM tpch.lineitem JOIN tpch.orders ON l_orderkey = o_orderkey JOIN tpch.customer ON o_custkey = c_custkey
    JOIN tpch.part ON l_partkey = p_partkey
"""
WAYS = ("changes", "auto", "full")
_TICKS = os.sysconf("SC_CLK_TCK")

Cost = tuple[float, float]
"""CPU and wall seconds."""


def views() -> dict[str, str]:
    """The queries by their names."""
    made = queries()
    return {name: made[name].rsplit("LIMIT", 1)[0] for name in ("1", "3", "5", "10")} | {"wide": WIDE}


def cpu_seconds(root: int | None = None) -> float:
    """Of a process, this one by default, and all below it, those that have ended included."""
    parents: dict[int, tuple[int, float]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                rest = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents[int(place.name)] = (int(rest[1]), sum(map(int, rest[11:15])) / _TICKS)
    ours = {root or os.getpid()}
    while more := {each for each, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds for each, (_, seconds) in parents.items() if each in ours)


def cost(work: Callable[[], Any]) -> tuple[Cost, Any]:
    """What work costs, and what it gives."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    found = work()
    return (cpu_seconds() - cpu, time.perf_counter() - wall), found


class Bench:
    """A lake with the tables and a materialized table for each query and way."""

    def __init__(self, place: Path, scale: float, chosen: list[str]) -> None:
        self.place = place
        self.lake = lakebed.connect(str(place))
        self.queries = {name: text for name, text in views().items() if name in chosen}
        self.shop = Shop(self.lake, scale, buckets={"lineitem": max(1, round(4 * scale)), "orders": 1})
        self.shop.fill()

    def make(self, ways: tuple[str, ...]) -> None:
        """Makes the materialized tables."""
        for name, query in self.queries.items():
            for way in ways:
                policy = "auto" if way == "auto" else "incremental"
                self.lake.materialize(f"v{name}_{way}", query, policy=policy)

    def happen(self, orders: int) -> None:
        """So many orders come, and so many go."""
        self.shop.new_orders(max(1, orders))
        self.shop.old_orders_go(max(1, orders))

    def refreshed(self, name: str, way: str) -> tuple[Cost, Any]:
        """One refresh."""
        return cost(lambda: self.lake.refresh(f"v{name}_{way}", full=way == "full"))

    def overwritten(self, name: str, engine: str, repeats: int) -> Cost:
        """The query computed and written in the place of what an ordinary table held."""
        lake = self.lake if engine == "overwrite" else self._on_spark()
        stored = self.lake.table(f"v{name}_full")
        target = f"plain_{engine}_{name}"
        rows = self.lake.query(self.queries[name], engine="duckdb").arrow()
        key = [each for each in stored.primary_key if each in rows.column_names]
        fields = pa.schema([each.with_nullable(each.name not in key) for each in rows.schema])
        options = {"bucket": stored.options["bucket"]} if key else {}
        self.lake.create_table(target, fields, primary_key=key, options=options)
        del rows

        def overwrite() -> None:
            if engine == "spark":
                lake.sql(f"INSERT OVERWRITE {target} {self.queries[name]}")
            else:
                result = lake.query(self.queries[name], engine="duckdb")
                lake.table(target).write(result.arrow(), overwrite=True)

        return min(cost(overwrite)[0] for _ in range(repeats + 1))

    def _on_spark(self) -> Any:
        lake = lakebed.connect(str(self.place))
        lake.spark.range(9).count()
        return lake


def measured(bench: Bench, shares: list[float], repeats: int, with_spark: bool) -> list[dict[str, Any]]:
    """All ways of all queries, for each share."""
    bench.make(WAYS)
    bench.happen(bench.shop.sizes.orders // 2000)
    for name in bench.queries:
        for way in WAYS:
            bench.refreshed(name, way)
    found = []
    for share in shares:
        costs: dict[tuple[str, str], list[Cost]] = {}
        said: dict[str, str] = {}
        for _ in range(repeats):
            bench.happen(round(bench.shop.sizes.orders * share / 2))
            for name in bench.queries:
                for way in WAYS:
                    took, done = bench.refreshed(name, way)
                    costs.setdefault((name, way), []).append(took)
                    if way == "auto":
                        said[name] = f"{done.way}: {done.reason}"
        for name in bench.queries:
            found.append({"view": name, "share": share, "auto went": said[name]})
            found[-1] |= {way: min(costs[name, way]) for way in WAYS}
    for name in bench.queries:
        once = {"overwrite": bench.overwritten(name, "overwrite", repeats)}
        if with_spark:
            once["spark"] = bench.overwritten(name, "spark", 1)
        for line in found:
            if line["view"] == name:
                line |= once
    return found


def report(lines: list[dict[str, Any]]) -> None:
    """A line for each query and share: CPU and wall seconds, and how many times cheaper."""
    ways = [way for way in (*WAYS, "overwrite", "spark") if way in lines[0]]
    print(
        f"{'view':>5} {'share':>7} " + " ".join(f"{way:>15}" for way in ways) + "   spark/changes  auto/cheapest full"
    )
    for line in lines:
        cells = " ".join(f"{line[way][0]:7.2f}/{line[way][1]:7.2f}" for way in ways)
        spark = f"{line['spark'][0] / line['changes'][0]:13.1f}" if "spark" in line else " " * 13
        cheapest = min(line[way][0] for way in ways if way not in ("changes", "auto"))
        print(
            f"{line['view']:>5} {100 * line['share']:6.2f}% {cells}   {spark}  {line['auto'][0] / cheapest:18.2f}"
            f"   {line['auto went']}"
        )


def grown(place: Path, scale: float, chosen: list[str], repeats: int) -> list[dict[str, Any]]:
    """The cost of the same change at a third of the scale, and at the scale."""
    orders = round(Shop(lakebed.connect(str(place)), scale).sizes.orders * 0.001 / 2)
    lines = [{"view": name} for name in chosen]
    for part in (scale / 3, scale):
        bench = Bench(place / f"of-{part:.3f}", part, chosen)
        bench.make(("changes",))
        costs: dict[str, list[Cost]] = {}
        for _ in range(repeats + 1):  # the first one has no copies of files to look into
            bench.happen(orders)
            for name in bench.queries:
                costs.setdefault(name, []).append(bench.refreshed(name, "changes")[0])
        for line in lines:
            line[f"scale {part:.2f}"] = min(costs[line["view"]][1:])
    return lines


def main() -> int:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.0001, 0.001, 0.01, 0.05])
    parser.add_argument("--views", nargs="*", default=list(views()), choices=list(views()))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--growth", action="store_true", help="the same change while the tables grow threefold")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    scale, repeats = (0.01, 1) if given.small else (given.scale, given.repeats)
    with tempfile.TemporaryDirectory() as place:
        if given.growth:
            lines = grown(Path(place), scale, given.views, repeats)
        else:
            bench = Bench(Path(place) / "lake", scale, given.views)
            lines = measured(bench, given.shares, repeats, not given.no_spark)
    if given.json or given.growth:
        print("\n".join(json.dumps({"benchmark": "views", **line}) for line in lines))
    else:
        report(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
