"""Where the tables of several processes lie."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def shared_directory() -> Iterator[Path]:
    """A directory that processes share, in memory where there is such a place: these tests cut no power."""
    path = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    yield path
    shutil.rmtree(path)
