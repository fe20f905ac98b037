"""A lake for tests of explanations."""

from __future__ import annotations

from uuid import uuid4

import pytest

import lakebed


@pytest.fixture
def lake() -> lakebed.Lake:
    """A lake in memory."""
    return lakebed.connect(f"memory://{uuid4().hex}/warehouse")
