"""A table followed by a Python loop: one Arrow table for each snapshot that changed something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakebed.changes.position import StreamPosition
from lakebed.changes.stream import StreamPlan, StreamScan
from lakebed.clock import Clock
from lakebed.metrics.families import STREAM_READ_LAG, STREAM_READ_ROWS
from lakebed.metrics.instruments import is_heard


class ChangeStream(Iterator[pa.Table]):
    """Changes of a table, snapshot by snapshot.

    What was returned counts as consumed when the next one is asked for: that is when a consumer's progress is recorded.
    A loop that fails meets the same changes again. A stream that has caught up may be asked again later.
    """

    def __init__(
        self, scan: StreamScan, clock: Clock, poll_ms: int, position: StreamPosition | None = None, wait: bool = False
    ) -> None:
        self._scan = scan
        self._clock = clock
        self._poll_ms = poll_ms
        self._wait = wait
        self._position = position if position is not None else scan.start()
        self._recorded: int | None = None

    def __repr__(self) -> str:
        return f"<lakebed stream at {self.position}>"

    @property
    def schema(self) -> pa.Schema:
        """Schema of every table that comes: `rowkind`, then the columns."""
        return self._scan.schema

    @property
    def position(self) -> dict[str, Any]:
        """Where the stream stands after all it returned: plain data, to go on from with `follow(position=...)`."""
        return self._position.to_members()

    @property
    def is_over(self) -> bool:
        """Whether nothing can come any more: a bound was given, and it is reached."""
        return self._scan.is_over(self._position)

    def acknowledge(self) -> None:
        """Records everything returned so far as consumed, under the table's `consumer-id`."""
        if not self._position.is_full:  # a first plan that is not through would be lost by going on with changes
            self._scan.acknowledge(self._position.snapshot - 1, self._position.seen)
            self._recorded = self._position.snapshot

    def __next__(self) -> pa.Table:
        self._record_progress()
        while True:
            plan = self._scan.plan(self._position)
            if plan is not None:
                rows = self._scan.read(plan)
                self._position = plan.end
                if rows.num_rows:
                    self._count(plan, rows)
                    return rows
                continue
            self._record_progress()
            if not self._wait or self._scan.is_over(self._position):
                raise StopIteration
            self._clock.sleep_ms(self._poll_ms)

    def _count(self, plan: StreamPlan, rows: pa.Table) -> None:
        if is_heard():
            table = self._scan.context.name
            STREAM_READ_ROWS.tell(rows.num_rows, table)
            STREAM_READ_LAG.tell(max(0, self._clock.now_ms() - plan.snapshot.time_millis) / 1000, table)

    def _record_progress(self) -> None:
        if self._scan.consumer_id is not None and self._recorded != self._position.snapshot:
            self.acknowledge()
