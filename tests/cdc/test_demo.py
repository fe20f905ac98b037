"""The main job, as `make demo` runs it, with a shorter day."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
def test_demo() -> None:
    """A live database, its copy and what is derived from it are equal in the end, and no secret is shown."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "shop.py"), "--seconds", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" equal\n") == 6
    assert "Traceback" not in done.stderr
    assert "password" not in (done.stdout + done.stderr).lower()
