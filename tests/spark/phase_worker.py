"""A process that hands batches to the sinks of several queries, as Spark would, and dies where it is told to.

Rows come from Arrow instead of tasks. It keeps the two notes that Spark keeps for a query: its name, and which of its
batches are finished. Queries, tables and phases are those of `stream_worker`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.stream_worker import KEYS, QUERIES, ROWS, SETS, checkpoint_of, die_at

import lakebed
from lakebed.spark.stream.micro_batch import BatchWriter
from lakebed.spark.stream.query import EventTime

_BATCHES = 30
"""So many of each query make every phase come a dozen times."""


class Rows:
    """As much of a DataFrame as the sink asks of a small batch: one task gets all rows."""

    sparkSession = None  # noqa: N815 - as Spark spells it; nothing here is large enough for a job

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._task: Any = None

    def coalesce(self, parts: int) -> Rows:
        """The rows stay where they are."""
        return self

    def mapInArrow(self, task: Any, schema: str) -> Rows:  # noqa: N802 - as Spark spells it
        """The rows, with work for the task."""
        self._task = task
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - as Spark spells it
        """What the task makes of the rows."""
        return pa.Table.from_batches(self._task(iter(self._rows.combine_chunks().to_batches())))


def rows_of(query: str, number: int, schema: pa.Schema) -> pa.Table:
    """The rows that the application hands to a query's table in a batch."""
    values = range(number * ROWS, (number + 1) * ROWS)
    n, k, v = list(values), [value % KEYS for value in values], [value % 10 for value in values]
    columns = {
        "events": {"n": n, "k": k, "v": v},
        "sums": {"k": k, "v": v, "c": [1] * ROWS},
        "left": {"k": k, "a": v, "ga": n},
        "right": {"k": k, "b": v, "gb": n},
    }[query]
    empty = [None] * ROWS
    return pa.table([pa.array(columns.get(field.name, empty), field.type) for field in schema], schema=schema)


def work(place: str, phase: str, number: int) -> None:
    """Hands batches to the sinks of all queries in turn, and dies at a phase."""
    os.setsid()
    die_at(phase, number)
    lake = lakebed.connect(Path(place) / "warehouse")
    sinks: dict[tuple[str, str], BatchWriter] = {}
    for _ in range(_BATCHES):
        for mark in SETS:
            for query, (table, _columns) in QUERIES.items():
                name = f"{table}_{mark}"
                checkpoint = checkpoint_of(Path(place), query, mark)
                commits = checkpoint / "commits"
                commits.mkdir(parents=True, exist_ok=True)
                (checkpoint / "metadata").write_text(json.dumps({"id": f"{query}_{mark}"}))
                batch = max((int(entry.name) for entry in commits.iterdir()), default=-1) + 1
                schema = pa.schema([field.with_nullable(True) for field in lake.table(name).arrow_schema])
                if (query, mark) not in sinks:
                    incoming = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
                    sinks[query, mark] = BatchWriter(lake.table(name), incoming[0], None, None, EventTime())
                    sinks[query, mark]._is_large = False  # else the first batch is brought together by a job
                sinks[query, mark].write(Rows(rows_of(query, batch, schema)), f"{query}_{mark}", batch)
                (commits / str(batch)).touch()
