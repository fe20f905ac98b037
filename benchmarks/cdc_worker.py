"""A lake that follows a PostgreSQL in a process of its own, for `cdc`.

    python -P benchmarks/cdc_worker.py lakebed <warehouse>

Reads one JSON object a line, `do` and its arguments, and answers each with one. What Spark prints goes to standard
error. The table in the lake is `t`, in 8 buckets.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow.compute as pc

import lakebed
import lakebed.cdc
from lakebed.spark.session import Session


class Follower:
    """One lake and its sync."""

    def __init__(self, warehouse: str) -> None:
        self._lake = lakebed.connect(warehouse, spark=Session(plans_only=True))  # like `lakebed cdc`
        self._checkpoint = f"{warehouse}/checkpoint"
        self._run: Any = None

    def start(self, settings: dict[str, str]) -> dict[str, str]:
        """Starts Spark."""
        return {"version": self._lake.spark.version, **settings}

    def once(self, url: str) -> list[dict[str, float]]:
        """Catches up and ends; milliseconds of each batch."""
        run = self._sync(url, {"availableNow": True})
        run.wait()
        return [dict(progress["durationMs"]) for progress in run.query.recentProgress]

    def follow(self, url: str) -> None:
        """Begins to follow without an end."""
        self._run = self._sync(url, None)

    def check(self) -> None:
        """Raises what made it stop, if something did."""
        self._run.check()

    def stop(self) -> list[dict[str, float]]:
        """Ends what `follow` began; milliseconds of each batch."""
        self._run.check()
        found = [dict(progress["durationMs"]) for progress in self._run.query.recentProgress]
        self._run.stop()
        return found

    def _sync(self, url: str, trigger: dict[str, Any] | None) -> Any:
        return lakebed.cdc.sync(
            self._lake,
            "postgres",
            checkpoint=self._checkpoint,
            source_options={"url": url},
            table_conf={"bucket": "8"},
            trigger=trigger,
        )

    def totals(self) -> list[int]:
        """What must be the same in the database: how many rows there are, and sums of columns."""
        count = total_id = total_a = 0
        for batch in self._lake.table("t").to_batches(["id", "a"]):
            count += batch.num_rows
            total_id += pc.sum(batch.column(0)).as_py() or 0
            total_a += pc.sum(batch.column(1)).as_py() or 0
        return [count, total_id, total_a]


def main(_: str, warehouse: str) -> None:
    """Does what it is told until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    follower = Follower(warehouse)
    for line in sys.stdin:
        step = json.loads(line)
        print(json.dumps(getattr(follower, step.pop("do"))(**step)), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
