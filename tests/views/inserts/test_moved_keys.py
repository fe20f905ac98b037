"""All rows get another partner of a join in one commit: each is taken back and sent again, in this order, and stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.views.judging import difference, folded

import lakebed
from lakebed.lake import Lake
from lakebed.views.insert import StreamingInsert

_WIDE = "SELECT o.id, o.amount, c.name FROM orders AS o JOIN customers AS c ON o.customer = c.cid"
_CUSTOMERS = 500


def _orders(customers: np.ndarray) -> pa.Table:
    ids = np.arange(len(customers))
    return pa.table({"id": ids, "customer": customers, "amount": ids % 97})


def _lake(path: Path) -> Lake:
    lake = lakebed.connect(str(path))
    lake.sql(
        """
        CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
          WITH ('changelog-producer' = 'lookup', 'bucket' = '2');
        CREATE TABLE customers (cid BIGINT, name STRING, PRIMARY KEY (cid) NOT ENFORCED)
          WITH ('changelog-producer' = 'lookup', 'bucket' = '1');
        CREATE TABLE sent (id BIGINT, amount BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
          WITH ('changelog-producer' = 'lookup', 'bucket' = '2');
        """
    )
    lake["customers"].write(pa.table({"cid": np.arange(_CUSTOMERS), "name": [f"n{n}" for n in range(_CUSTOMERS)]}))
    return lake


@pytest.mark.parametrize("orders", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_all_join_keys_change_at_once(tmp_path: Path, orders: int) -> None:
    """No row is missing afterwards, neither where changes are sent to a table nor in a materialized one."""
    lake = _lake(tmp_path)
    numbers = np.random.default_rng(1).integers(0, _CUSTOMERS, orders)
    lake["orders"].write(_orders(numbers))
    insert = StreamingInsert(lake, "sent", _WIDE, name="wide", database="default")
    insert.step()
    lake.materialize("wide", _WIDE, policy="incremental")
    lake["orders"].write(_orders((numbers + 7) % _CUSTOMERS))
    assert insert.step().updated == orders
    done = lake.refresh("wide")
    assert (done.way, done.updated, done.inserted, done.deleted) == ("incremental", orders, 0, 0)
    for name in ("sent", "wide"):
        assert difference(lake, name, _WIDE, "duckdb") is None
        assert folded(lake, name) is None
