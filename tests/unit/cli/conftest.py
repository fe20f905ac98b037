"""A lake on disk, and the program run on it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.cli.main import main
from lakebed.cli.output import Output


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it printed, line by line."""
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """What it printed, as the one JSON document it must be."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lakebed.Lake:
    """A lake with a keyed, partitioned table of three snapshots and a tag, and a small one; $LAKEBED_WAREHOUSE."""
    monkeypatch.setenv("LAKEBED_WAREHOUSE", str(tmp_path / "lake"))
    lake = lakebed.connect(tmp_path / "lake")
    lake.create_database("shop")
    columns = {"id": "BIGINT NOT NULL", "dt": "DATE NOT NULL", "amount": "DECIMAL(10, 2)"}
    options = {"bucket": "1", "write-only": "true"}
    orders = lake.create_table(
        "shop.orders", columns, primary_key=["id", "dt"], partition_by=["dt"], options=options, comment="all orders"
    )
    for n in range(3):
        data = {"id": [1, 2 + n], "dt": [dt.date(2024, 1, 1 + n % 2)] * 2, "amount": [Decimal(n), None]}
        orders.write(pa.table(data).cast(orders.arrow_schema))
    orders.create_tag("first", 1)
    lake.create_table("events", {"e": "STRING"}).write(pa.table({"e": ["a", None]}))
    return lake


@pytest.fixture
def run(lake: lakebed.Lake, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the program on the lake."""

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main(arguments)
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person looks at a terminal, 100 characters wide and without colours."""
    monkeypatch.setattr(Output, "is_terminal", property(lambda out: out.form == "table"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
