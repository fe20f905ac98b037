"""The 22 queries of TPC-H as materialized tables, while orders come and go, prices change and customers move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.tpch import Shop, decimals, queries
from tests.views.in_parts import follow_in_parts
from tests.views.judging import difference, folded

import lakebed

_LIMITED = ("2", "3", "10", "18", "21")
_FULL = {*_LIMITED, "11", "15", "22"}
"""Those that keep some rows by all others, or compare with a value of all rows."""


def _views() -> dict[str, str]:
    """The queries by number, and once more without LIMIT where they have one."""
    made = queries()
    return made | {f"{number} all": made[number].rsplit("LIMIT", 1)[0] for number in _LIMITED}


_CHOSEN = _views()
_NAMES = {name: f"q{name.replace(' ', '_')}" for name in _CHOSEN}


def _happen(shop: Shop, turn: int) -> None:
    """A refresh stream: new orders, then old ones go, then something else is other than it was."""
    orders = max(5, shop.sizes.orders // 1000)
    shop.new_orders(orders)
    shop.old_orders_go(orders)
    if turn % 2 == 0:
        shop.prices_change(20)
        shop.customers_move(3)
    else:
        shop.change("supplier", 1, "s_nationkey", lambda rng, n: rng.integers(0, 25, n))
        shop.change("part", 2, "p_type", lambda rng, n: ["PROMO PLATED BRASS"] * n)
        shop.change("partsupp", 10, "ps_supplycost", lambda rng, n: decimals(rng.integers(100, 50000, n)))
        shop.change("orders", 10, "o_orderstatus", lambda rng, n: ["F"] * n)


def _lived(path: Path, scale: float, rounds: int, seed: int, chosen: list[str], other: Any = None) -> None:
    lake = lakebed.connect(str(path))
    shop = Shop(lake, scale, seed)
    shop.fill()
    asked = {name: _CHOSEN[name] for name in chosen}
    for name, query in asked.items():
        lake.materialize(_NAMES[name], query, policy="incremental")
    for turn in range(rounds):
        _happen(shop, turn)
        for name, query in asked.items():
            done = lake.refresh(_NAMES[name])
            assert done.way in (("full",) if name in _FULL else ("incremental", "none")), f"{name}: {done}"
            wrong = difference(lake, _NAMES[name], query, "duckdb")
            assert wrong is None, f"{name}, round {turn}, {done}: {wrong}"
    for name, query in asked.items():
        wrong = folded(lake, _NAMES[name])
        assert wrong is None, f"{name}: {wrong}"
        if other is not None:
            wrong = difference(other, _NAMES[name], query, "spark")
            assert wrong is None, f"{name}, by Spark: {wrong}"


def test_tpch_follows_its_refresh_streams(tmp_path: Path) -> None:
    """After every refresh each of the 22 tables is what its query gives, and its changelog tells how it came to be."""
    _lived(tmp_path, 0.002, 2, 1, list(_CHOSEN))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 6))
def test_tpch_follows_its_refresh_streams_for_long(tmp_path: Path, seed: int) -> None:
    """The same for larger tables and many rounds."""
    _lived(tmp_path, 0.01, 10, seed, list(_CHOSEN))


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize(("scale", "part"), [(0.001, 0), *((0.01, part) for part in range(4))])
def test_tpch_is_what_spark_computes(tmp_path: Path, spark: Any, scale: float, part: int) -> None:
    """The other engine computes the 22 queries from scratch, and gives the rows and types that were followed."""
    _lived(tmp_path, scale, 2, 7, list(_CHOSEN)[part::4], lakebed.connect(str(tmp_path), spark=spark))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_all_queries_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """What tasks follow, each a part of a query, is what a computation from scratch gives."""
    follow_in_parts(monkeypatch, 3)
    _lived(tmp_path, 0.005, 2, 11, list(_CHOSEN)[part::4])
