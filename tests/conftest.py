"""Settings of all tests."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from tests.shares import by_night

# How long an example takes says more about the machine than about us: benchmarks measure time, tests do not. Where a
# test does not say how many examples it needs, the default run makes some, and the nightly run (`thorough`) many.
_given = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("untimed", _given, deadline=None, max_examples=30)
settings.register_profile("thorough", _given, deadline=None, max_examples=1000, derandomize=False)
settings.load_profile("untimed")

# Every commit waits for its files to be on the disk. No test cuts the power, so a disk in memory will do where there is
# room for one. Files of tests that failed stay (`tmp_path_retention_policy`).
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# JVMs of Spark live for seconds here: what the second compiler makes faster never pays for the time that it takes.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

# A job in the background of a script ignores Ctrl-C, and so would all that tests start to be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves to the night what `tests/shares.py` says."""
    nightly = by_night(item.nodeid for item in items)
    for item in items:
        if item.nodeid in nightly:
            item.add_marker(pytest.mark.nightly)
