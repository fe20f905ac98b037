"""The examples run as they stand."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import lakebed

EXAMPLES: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "paimon_sql.py"))


@pytest.mark.parametrize("name", EXAMPLES["EXAMPLES"])
def test_paimon_sql(lake: lakebed.Lake, name: str) -> None:
    """Every statement runs as written and gives the stated rows."""
    EXAMPLES["run"](EXAMPLES["EXAMPLES"][name], lake)
