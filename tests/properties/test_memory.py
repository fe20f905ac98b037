"""Memory of streaming reads and of compactions does not grow with the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lakebed

RUNS = 4
SMALL_ROWS = 200_000
ROW_BYTES = 120
PEAK = """
import sys
import lakebed
table = lakebed.connect(sys.argv[1]).table("t")
{action}
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024)
"""
ACTIONS = {
    "read": "assert sum(batch.num_rows for batch in table.to_batches()) > 0",
    "compact": "assert table.compact(full=True) is not None",
}


def fill(warehouse: Path, rows: int, options: dict[str, str]) -> None:
    """One bucket of overlapping files with rows of about `ROW_BYTES`."""
    rng = np.random.default_rng(rows)
    options = {
        "bucket": "1",
        "write-only": "true",
        "read.batch-size": "4096",
        "file.block-size": "1 mb",  # a writer holds a row group
        "lakebed.parallelism": "1",
        **options,
    }
    columns = {"k": "BIGINT NOT NULL", "n": "BIGINT", "text": "STRING"}
    table = lakebed.connect(warehouse).create_table("t", columns, primary_key=["k"], options=options)
    text = np.char.mod("%0100d", rng.integers(0, 10**9, 1000))
    for _ in range(RUNS):
        keys = rng.choice(rows, rows // RUNS, replace=False)
        texts = pa.array(text[keys % 1000].tolist(), pa.string())
        table.write(pa.table({"k": keys, "n": pa.array(keys), "text": texts}))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
@pytest.mark.parametrize("engine", ["deduplicate", pytest.param("aggregation", marks=pytest.mark.nightly)])
def test_memory_does_not_grow_with_the_table(tmp_path: Path, engine: str) -> None:
    """Four times the rows, and hardly more memory than before: far less than the rows that came on top."""
    options = {"merge-engine": engine}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    for size in (1, 4):
        fill(tmp_path / str(size), size * SMALL_ROWS, options)
    for action, code in ACTIONS.items():
        peaks = []
        for size in (1, 4):
            command = [sys.executable, "-c", PEAK.format(action=code), str(tmp_path / str(size))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            peaks.append(int(done.stdout))
        grown = peaks[1] - peaks[0]
        assert grown < 3 * SMALL_ROWS * ROW_BYTES / 3, f"{action}: {grown / 2**20:.0f} MiB more, peaks {peaks}"
