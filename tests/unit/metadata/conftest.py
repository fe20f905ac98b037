"""A memory file system and the paths of one table in it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.paths import TablePaths


@pytest.fixture
def fileio() -> MemoryFileIO:
    """An empty file system of the test's own."""
    return MemoryFileIO(f"metadata-{uuid4()}")


@pytest.fixture
def paths() -> TablePaths:
    """The paths of a table."""
    return TablePaths("warehouse/default.db/t")
