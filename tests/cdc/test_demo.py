"""The main job, as `make demo` runs it, with a shorter day."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from lakebed.metrics.families import FAMILIES

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


_UNUSED = {"lookup", "view", "object_store"}
"""Groups of families that the demo has no use for: they are shown, without numbers."""
_ONLY_IN_TROUBLE = {
    "lakebed_commit_retries_total",
    "lakebed_cdc_reconnects_total",
    "lakebed_cdc_dead_letters_total",
    "lakebed_cdc_skipped_records_total",
}
_IN_TASKS = {"lakebed_stream_read_rows_total", "lakebed_stream_read_lag_seconds"}
"""Streams that Spark reads are read by its own processes."""


@pytest.mark.spark
@pytest.mark.nightly
def test_a_scrape_during_the_demo() -> None:
    """Every family is shown while it runs, with numbers for all that the demo does, and no secret among them."""
    command = [sys.executable, str(ROOT / "examples" / "shop.py"), "--seconds", "20", "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        found = re.search(r"http://\S+", demo.stdout.readline())
        assert found is not None
        scrapes: list[str] = []
        over = threading.Event()

        def scrape() -> None:
            while not over.wait(0.5):
                try:
                    with urllib.request.urlopen(found[0], timeout=60) as answer:
                        scrapes.append(answer.read().decode())
                except OSError:
                    return

        thread = threading.Thread(target=scrape)
        thread.start()
        said = demo.stdout.read()
        over.set()
        thread.join()
    assert demo.returncode == 0, said
    last = scrapes[-1]
    assert all(f"# TYPE {each.name} {each.kind}\n" in last for each in FAMILIES)
    wanted = {each.name for each in FAMILIES if each.group not in _UNUSED} - _ONLY_IN_TROUBLE - _IN_TASKS
    assert {name for name in wanted if not re.search(rf"^{name}(_count)?{{.*}} ", last, re.MULTILINE)} == set()
    rows = re.search(r'^lakebed_cdc_rows_total{table="shop.orders"} (\d+)$', last, re.MULTILINE)
    assert rows is not None
    assert int(rows[1]) > 0
    assert "password" not in last.lower()
