"""How many modules a small write passes, and how often the next call is in another one: what the rooms cost a row.

Five rows into a table in memory that has rows already, under a profiler. CPU time is measured without it.

    python -m benchmarks.crossings
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa

import lakebed

COMMITS = 200
_SOURCE = os.path.dirname(lakebed.__file__) + os.sep


def visits(work: Callable[[], object]) -> tuple[set[str], int]:
    """The modules of Lakebed that a piece of work calls, and how often a call is in another module than the last."""
    modules: set[str] = set()
    crossings, last = 0, ""

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal crossings, last
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(_SOURCE):
            modules.add(file.removeprefix(_SOURCE))
            crossings += bool(last) and last != file
            last = file

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return modules, crossings


def tables() -> dict[str, Any]:
    """One of each kind, with rows."""
    lake = lakebed.connect("memory://crossings")
    schema = {"id": "BIGINT NOT NULL", "v": "STRING"}
    made = {
        "write, fixed buckets": lake.create_table("fixed", schema, primary_key=["id"], options={"bucket": "1"}),
        "write, dynamic buckets": lake.create_table("dynamic", schema, primary_key=["id"]),
        "write, no key": lake.create_table("plain", schema),
    }
    for table in made.values():
        table.write(rows(0))
    return made


def rows(number: int) -> pa.Table:
    """Five rows."""
    ids = pa.array(range(number, number + 5), pa.int64())
    return pa.table({"id": ids, "v": [f"v{i}" for i in range(5)]})


def main() -> None:
    """Prints one line, or one JSON object, for each flow."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="few commits, to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    commits = 5 if arguments.small else COMMITS
    made = tables()
    fixed = made["write, fixed buckets"]
    flows: dict[str, Callable[[], object]] = {
        **{name: (lambda table=table: table.write(rows(1))) for name, table in made.items()},
        "to_arrow": fixed.to_arrow,
        "compact(full=True)": lambda: fixed.compact(full=True),
        "changes()": fixed.changes,
        "create_tag": lambda: fixed.create_tag("x"),
    }
    for name, work in flows.items():
        modules, crossings = visits(work)
        result: dict[str, object] = {"benchmark": "crossings", "flow": name}
        result |= {"modules": len(modules), "crossings": crossings}
        if name in made:
            began = time.process_time()
            for number in range(commits):
                made[name].write(rows(number))
            result["cpu_ms_per_commit"] = round((time.process_time() - began) / commits * 1000, 2)
        if arguments.json:
            print(json.dumps(result))
        else:
            print("  ".join(f"{label}={value}" for label, value in result.items()))


if __name__ == "__main__":
    main()
