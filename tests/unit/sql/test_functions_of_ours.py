"""Functions that DuckDB has not and gets from us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TWICE = """
import sys
import lakebed
lake = lakebed.connect(sys.argv[1])
lake.create_table("t", {"p": "DECIMAL(20, 2)", "n": "BIGINT"})
lake["t"].write([{"p": None, "n": 2}, {"p": 3, "n": 2}])
found = [len(lake.query("SELECT p / n AS x FROM t").fetchall()) for _ in range(3)]
print(found)
"""


def test_a_function_is_there_for_the_next_query_too(tmp_path: Path) -> None:
    """A function outlives the connection of the query that brought it; else the next one would end the process."""
    done = subprocess.run(
        [sys.executable, "-c", _TWICE, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[2, 2, 2]"), done.stderr[-2000:]
