"""Readers for other runtimes: every split is read once, whoever reads it. Ray and PyTorch themselves are too large to
be installed for it, so what is used of them stands in for them here; `tests/package` reads with Ray itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import MissingDependency


@pytest.fixture
def table(disk: Warehouse) -> lakebed.Table:
    """A table with runs to merge in three buckets."""
    columns = {"k": "BIGINT NOT NULL", "s": "STRING", "b": "BOOLEAN NOT NULL"}
    made = disk.table("t", columns, primary_key=["k"], options={"bucket": "3"})
    for start in (0, 50):
        keys = range(start, start + 100)
        made.write({"k": list(keys), "s": [None if k % 3 else str(k) for k in keys], "b": [k % 2 == 0 for k in keys]})
    return made


def _stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


class _Items:
    """What Ray does with items: each block is given to the function in batches."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def map_batches(
        self, read: Callable[[pa.Table], Iterator[pa.Table]], batch_size: int, batch_format: str
    ) -> pa.Table:
        assert (batch_size, batch_format) == (1, "pyarrow")
        return pa.concat_tables(part for row in self.rows for part in read(pa.Table.from_pylist([row])))


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> None:
    data = SimpleNamespace(from_items=lambda rows, override_num_blocks: _Items(rows), from_arrow=lambda rows: rows)
    _stand_in(monkeypatch, "ray", data=data)


@pytest.mark.usefixtures("ray")
def test_ray_reads_every_split(disk: Warehouse, table: lakebed.Table) -> None:
    """All matching rows come, of the columns asked for; without any the columns are known all the same."""
    from lakebed.integrations.ray import read_table

    found = read_table(table, ["k", "s"], "k >= 20")
    assert sorted(found["k"].to_pylist()) == list(range(20, 150))
    assert found.schema == table.arrow_schema.remove(2)
    assert read_table(table.where("k < 3")).num_rows == 3
    nothing = read_table(table, filter="s = 'nope'")
    assert (nothing.num_rows, nothing.schema) == (0, table.arrow_schema)
    assert read_table(disk.table("empty", {"a": "INT"})).column_names == ["a"]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    worker: dict[str, Any] = {"info": None}
    tensor = lambda values: ("tensor", np.asarray(values).tolist())  # noqa: E731
    data = SimpleNamespace(IterableDataset=type("IterableDataset", (), {}), get_worker_info=lambda: worker["info"])
    _stand_in(monkeypatch, "torch", from_numpy=tensor)
    _stand_in(monkeypatch, "torch.utils")
    _stand_in(monkeypatch, "torch.utils.data", **vars(data))
    yield worker
    sys.modules.pop("lakebed.integrations.torch", None)


def test_torch_shares_splits_among_workers(table: lakebed.Table, torch: dict[str, Any]) -> None:
    """Workers together read every row once, in batches of columns no larger than asked."""
    from lakebed.integrations.torch import TableBatches

    rows = TableBatches(table, ["k", "s", "b"], "k >= 20", batch_rows=16)
    alone = [key for batch in rows for key in batch["k"][1]]
    assert sorted(alone) == list(range(20, 150))
    shared = []
    for number in range(4):
        torch["info"] = SimpleNamespace(id=number, num_workers=4)
        for batch in rows:
            kind, keys = batch["k"]
            assert (kind, batch["b"][0], isinstance(batch["s"], list)) == ("tensor", "tensor", True)
            assert len(keys) <= 16
            shared += keys
    assert sorted(shared) == list(range(20, 150))


@pytest.mark.parametrize("name", ["ray", "torch"])
def test_what_is_not_installed_is_named(table: lakebed.Table, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Without the library the error says how to install it."""
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"lakebed.integrations.{name}", raising=False)
    with pytest.raises(MissingDependency, match=f"{name} is not installed") as raised:
        importlib.import_module(f"lakebed.integrations.{name}").read_table(table)
    assert "pip install" in raised.value.hint
