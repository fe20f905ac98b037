"""A sync without Spark: does what Spark does with a source and the pipeline, batch by batch, and may fail anywhere.

Everything but Spark itself is the real thing, from `lakebed.cdc.sync` on. So random workloads take seconds, and a batch
can be repeated, or die at any step, as often as a test likes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.unit.cdc.batches import LocalBatch

import lakebed
import lakebed.cdc
from lakebed.cdc import start
from lakebed.cdc.envelope import Chunk, chunks_from_arrow


class Died(Exception):
    """What a test lets a batch die of."""


class LocalSync:
    """One sync with its offsets. `dies` is how often, of all steps, one fails."""

    def __init__(self, lake: lakebed.Lake, source: Any, place: Path, *, seed: int = 0, dies: float = 0.0, **more: Any):
        self._random = random.Random(seed)
        self._dies = dies
        self._user = "local-sync"
        self._batch_id = 0
        self._offset: Any = None
        self._lake, self._source, self._place, self._more = lake, source, place, more
        self._start()

    def _start(self) -> None:
        made: list[Any] = []

        def keep(lake: Any, source: Any, pipeline: Any, *_: Any) -> Any:
            made.append((source, pipeline))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(start, "_start", keep)
            patch.setattr(start, "_is_connect", lambda _: False)
            patch.setattr(start, "_check_place", lambda *_: None)  # there are no tasks that would have to see it
            patch.setattr(start, "_former_user", lambda *_: self._user if self._offset is not None else "")
            lakebed.cdc.sync(
                self._lake, self._source, "lk", checkpoint=self._place, on_step=self._step_made, **self._more
            )
        ((source, self._pipeline),) = made
        self._reader = source.data_source()(dict(source.reader_options())).streamReader(None)

    def restart(self) -> None:
        """A new process with the same checkpoint."""
        self._reader.stop()
        self._start()

    def _step_made(self, name: str) -> None:
        if self._random.random() < self._dies:
            raise Died

    def step(self) -> bool:
        """One batch, which may die and be repeated; False if there was nothing to do."""
        reader = self._reader
        if self._offset is None:
            self._offset = reader.initialOffset()
        end = reader.latestOffset(self._offset, reader.getDefaultReadLimit())
        if end == self._offset:
            return False
        while True:
            try:
                self._pipeline.apply(LocalBatch(self._chunks(end)), self._user, self._batch_id + 1, json.dumps(end))
                break
            except Died:
                if self._random.random() < 0.5:
                    self.restart()
        if self._random.random() >= self._dies:
            self._reader.commit(end)
        self._offset = end
        self._batch_id += 1
        return True

    def _chunks(self, end: Any) -> list[Chunk]:
        tasks = self._reader.partitions(self._offset, end)
        found = [chunk for task in tasks for rows in self._reader.read(task) for chunk in chunks_from_arrow(rows)]
        return sorted(found, key=lambda chunk: chunk.ordinal)

    def catch_up(self, is_equal: Callable[[], list[str]], patience_s: float = PATIENCE_S / 5) -> list[str]:
        """Batches until the lake equals the database; what differs if it never does."""
        deadline = time.monotonic() + patience_s
        wrong = ["nothing was read"]
        while wrong and time.monotonic() < deadline:
            if self.step():
                deadline = max(deadline, time.monotonic() + patience_s / 4)
            else:
                wrong = is_equal()
                time.sleep(0.02 if wrong else 0)
        return wrong

    def stop(self) -> None:
        """Lets go of connections."""
        self._reader.stop()
        self._pipeline.close()


__all__ = ["Died", "LocalSync"]
