"""Warehouses for tests of whole tables."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.unit.warehouse_under_test import Warehouse


@pytest.fixture
def warehouse() -> Warehouse:
    """A warehouse in memory, of the test's own."""
    return Warehouse(f"memory://{uuid4().hex}/warehouse")


@pytest.fixture(scope="module")
def lasting() -> Warehouse:
    """A warehouse in memory for all tests of a file: for tests that change nothing in it."""
    return Warehouse(f"memory://{uuid4().hex}/warehouse")


@pytest.fixture
def disk(tmp_path: Path) -> Warehouse:
    """A warehouse in a directory of its own, two levels deep so that an escape would show."""
    return Warehouse(str(tmp_path / "outer" / "warehouse"))
