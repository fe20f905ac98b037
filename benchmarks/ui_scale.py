"""`lakebed ui` on a large lake: 1,000 tables, one of them with 50,000 files.

    python -m benchmarks.ui_scale [--tables 1000] [--files 50000] [--json]

The lake is made of metadata alone. A Chromium opens the pages; times are those of the browser itself: from the start of
the navigation to the first paint, and from a click to the moment that the picture stands and is painted. The memory is
that of the server, a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed
from benchmarks.metadata import context_of, published
from lakebed.metadata.entries import live_files
from lakebed.types.binary_row import encode_rows
from lakebed.types.logical import BIGINT

BUCKETS = 16
LARGE = "table/default.large"
PAGES = {"tables": "", "files": f"{LARGE}/files", "files_again": f"{LARGE}/files", "overview": LARGE, "flows": "flows"}
"""`files` reads all manifests of the table for the first time, while the server still tells of other tables."""

FILES = "main .picture svg .file"
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def made(lake: lakebed.Lake, tables: int, files: int) -> None:
    """Many small tables, and a large one whose files lie on two levels of its buckets."""
    columns, options = {"k": "BIGINT NOT NULL", "a": "BIGINT"}, {"bucket": str(BUCKETS), "write-only": "true"}
    large = lake.create_table("large", columns, primary_key=["k"], options=options)
    large.write(pa.table({"k": [0], "a": [0]}))
    first = lake.create_table("t0000", columns, primary_key=["k"], options={"bucket": "1"})
    first.write(pa.table({"k": [0], "a": [0]}))
    for number in range(1, tables - 1):
        shutil.copytree(first.location, Path(first.location).with_name(f"t{number:04}"))
    context = context_of(large)
    latest = context.stores.snapshots.latest()
    assert latest is not None
    pattern = live_files(context.stores, latest)[0]
    each = files // BUCKETS
    low = [10 * (number % each) for number in range(files)]
    keys = encode_rows([pa.array([*low, *(place + 9 for place in low)], pa.int64())], [BIGINT]).to_pylist()
    entries = [
        replace(
            pattern,
            bucket=number // each % BUCKETS,
            file=replace(
                pattern.file,
                file_name=f"data-{number:08}.parquet",
                # Every tenth file is new and overlaps others.
                min_key=keys[max(0, number - 3 * (number % 10 == 0))],
                max_key=keys[files + number],
                level=0 if number % 10 == 0 else 5,
                min_sequence_number=number,
                max_sequence_number=number,
            ),
        )
        for number in range(files)
    ]
    published(context, latest, entries)


@contextmanager
def served(directory: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address, and its number."""
    command = [sys.executable, "-m", "lakebed", "--warehouse", directory, "ui", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(found for line in server.stdout if (found := re.search(r"http://\S+", line)))
            yield address[0], server.pid
        finally:
            server.terminate()


def memory_mib(process: int) -> float:
    """The most memory that a process ever had."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def looked_at(directory: str, browser: Any) -> dict[str, float]:
    """What the browser says of each page."""
    found: dict[str, float] = {}
    with served(directory) as (address, process):
        context = browser.new_context(viewport={"width": 1200, "height": 800})
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector("main h1")
        base = page.url.partition("#")[0]
        for name, path in PAGES.items():
            page.goto("about:blank")
            page.goto(f"{base}#/{path}")
            found[f"{name}_shown_s"] = _until(page, FILES if name.startswith("files") else "main h1") / 1000
            if name == "files":
                found["drawn_bars"] = page.locator(FILES).count()
            found[f"{name}_first_paint_s"] = page.evaluate(FIRST_PAINT) / 1000
        context.close()
        found["server_mib"] = memory_mib(process)
    return found


def _until(page: Any, selector: str) -> float:
    """Milliseconds from the start of the navigation until the browser has painted what is wanted, by its own clock."""
    words = f"document.querySelector({json.dumps(selector)}) !== null"
    end = time.monotonic() + 120
    while True:
        now = page.evaluate(
            f"({words}) ? new Promise((done) => requestAnimationFrame(() => done(performance.now()))) : 0"
        )
        if now:
            return float(now)
        assert time.monotonic() < end, f"never shown: {selector}"
        page.wait_for_timeout(10)


def measured(tables: int, files: int) -> dict[str, float]:
    """All of it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="lakebed-ui-", dir=os.environ.get("TMPDIR")) as directory:
        made(lakebed.connect(f"{directory}/lake"), tables, files)
        with sync_playwright() as playwright:
            program = shutil.which("chromium") or shutil.which("google-chrome")
            arguments = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=program, args=arguments)
            found = looked_at(f"{directory}/lake", browser)
            browser.close()
            return found


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.tables, given.files)
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:24} {value:10.2f}")


if __name__ == "__main__":
    main()
