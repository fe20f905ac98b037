"""Warehouses for tests of whole tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.testing.s3_server import S3Server, S3State


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


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server) -> S3State:
    """An empty bucket on a well-behaved server."""
    return s3_server.clear()
