"""`lakebed why` and `lakebed health`."""

from __future__ import annotations

import datetime as dt

import pytest

import lakebed

from .conftest import Run


def test_why(run: Run) -> None:
    """A table is text for people, JSON has everything, CSV one line for each version."""
    ran = run("why", "shop.orders", "id=1", "dt=2024-01-01")
    assert ran.lines[0] == "id=1, dt=2024-01-01: merged from 2 versions by merge engine `deduplicate`"
    assert any(line.split()[:3] == ["amount", "2.00", "#2"] for line in ran.lines)
    found = run("why", "shop.orders", "id=1", "dt=2024-01-01", "--format", "json").json
    assert [each["number"] for each in found["keys"][0]["versions"]] == [1, 2]
    lines = run("why", "shop.orders", "id=1", "dt=2024-01-01", "--snapshot", "1", "--format", "csv").lines
    assert (len(lines), lines[1].split(",")[:4]) == (2, ["1", "2024-01-01", "0.00", "1"])


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (["id=1"], "lack column `dt`"),
        (["id=1", "day=1"], "`day` is no column of the primary key"),
        (["1", "dt=2024-01-01"], "`1` names no column"),
        (["id=1", "id=2"], "`id` is given twice"),
    ],
)
def test_a_wrong_key_is_refused(run: Run, key: list[str], said: str) -> None:
    """With what is wrong about it."""
    ran = run("why", "shop.orders", *key)
    assert ran.status == 2
    assert said in ran.err


def test_health(run: Run, lake: lakebed.Lake) -> None:
    """All tables, or those that are named; the status says whether something is to be done."""
    assert run("health").lines == ["2 tables: all is well"]
    orders = lake.table("shop.orders")
    for _ in range(9):
        orders.write([{"id": 1, "dt": dt.date(2024, 1, 1), "amount": None}])
    ran = run("health", "shop.*", "--format", "json")
    assert ran.status == 1
    assert (ran.json[0]["table"], ran.json[0]["check"]) == ("shop.orders", "sorted-runs")
    assert run("health", "events", "--deep").status == 0
    assert "lakebed compact shop.orders" in run("health", "shop.orders").out
