"""Drives a stream reader as Spark does, without Spark: offsets are logged before a batch is read, and committed after.

Everything passes through JSON and pickles, as it does between Spark's processes.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

import lakebed
from lakebed.spark.stream.columns import stream_schema
from lakebed.spark.stream.source import TableStreamReader
from lakebed.table.plans import plan_stream

Events = list[tuple[Any, ...]]


class Crash(Exception):
    """The query is killed here."""


@dataclass
class Engine:
    """One query with its checkpoint, which outlives restarts."""

    table: lakebed.Table
    options: dict[str, Any] = field(default_factory=dict)
    offsets: list[str] = field(default_factory=list)
    commits: int = 0
    rows: list[pa.Table] = field(default_factory=list)
    """What the sink has of each batch: one that comes again replaces what was there."""
    reader: TableStreamReader | None = None
    _worker: bytes = b""

    def start(self) -> TableStreamReader:
        """The process that Spark asks on the driver, if it is not there already."""
        if self.reader is None:
            context = plan_stream(self.table, options={"read.changelog": "true", **self.options}).context
            self.reader = TableStreamReader(context, stream_schema(context, context.schema.fields))
            self._worker = pickle.dumps(self.reader)
        return self.reader

    def kill(self) -> None:
        """Ends the process; the checkpoint stays."""
        self.reader = None

    def run(self, *, crash_at: str | None = None, is_once: bool = False) -> bool:
        """One trigger; false if there was nothing to do. `crash_at` is "planned" or "read"."""
        reader = self.start()
        if len(self.offsets) > self.commits:  # a batch that was planned and not finished is read again
            end = json.loads(self.offsets[-1])
        else:
            limit = ReadAllAvailable() if is_once else reader.getDefaultReadLimit()
            begin = self._begin()
            end = json.loads(json.dumps(reader.latestOffset(begin, limit)))
            if end == begin:
                return False
            self.offsets.append(json.dumps(end))
        if crash_at == "planned":
            self.kill()
            raise Crash
        self._read(reader, end)
        if crash_at == "read":
            self.kill()
            raise Crash
        self.commits += 1
        reader.commit(end)
        return True

    def drain(self, **arguments: Any) -> Engine:
        """Runs until there is nothing more to do."""
        while self.run(**arguments):
            pass
        return self

    @property
    def batches(self) -> list[Events]:
        """Rows of each batch."""
        return [[tuple(row.values()) for row in batch.to_pylist()] for batch in self.rows]

    @property
    def events(self) -> Events:
        """Rows of all batches."""
        return [row for batch in self.batches for row in batch]

    def _begin(self) -> dict[str, Any]:
        place = len(self.offsets) - 1 if len(self.offsets) == self.commits else len(self.offsets) - 2
        begin = self.start().initialOffset() if place < 0 else json.loads(self.offsets[place])
        return dict(json.loads(json.dumps(begin)))

    def _read(self, reader: TableStreamReader, end: dict[str, Any]) -> None:
        partitions = pickle.loads(pickle.dumps(reader.partitions(self._begin(), end)))
        worker = pickle.loads(self._worker)
        batches = [batch for partition in partitions for batch in worker.read(partition)]
        del self.rows[self.commits :]
        schema = batches[0].schema if batches else pa.schema([])
        self.rows.append(pa.Table.from_batches(batches, schema=schema))


__all__ = ["Crash", "Engine", "Events"]
