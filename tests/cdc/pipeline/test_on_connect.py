"""Syncs on Spark Connect, whose batches are made in a process of the server. A session of that kind can not share a
process with a classic one, so a few tests run once more in one of their own; `make test-connect` runs all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.spark


def test_a_sync_on_spark_connect() -> None:
    """Tables, progress and errors are the same as on a classic session."""
    tests = ["tests/cdc/pipeline/test_on_spark.py", "-k", "restart_goes_on or stops_the_sync"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env={**environment, "LAKEBED_TEST_CONNECT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.startswith(".. ")
