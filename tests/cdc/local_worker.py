"""A sync without Spark in a process of its own, which keeps its offsets as Spark does and may be killed at any moment.

python -m tests.cdc.local_worker PLACE ARGUMENTS
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.cdc.pipeline.local_sync import LocalSync
from tests.unit.cdc.batches import LocalBatch

import lakebed


class KeptSync(LocalSync):
    """A sync whose next batch is written down before it is made, so that it is the same when it is repeated."""

    def __init__(self, lake: lakebed.Lake, place: Path, **arguments: Any) -> None:
        self._file = place / "offsets.json"
        kept = json.loads(self._file.read_text()) if self._file.exists() else {"offset": None, "batch": 0, "end": None}
        self._kept_offset, self._end = kept["offset"], kept["end"]
        super().__init__(lake, arguments.pop("source"), place / "checkpoint", **arguments)
        self._offset, self._batch_id = kept["offset"], kept["batch"]

    def _start(self) -> None:
        self._offset = self._kept_offset  # whether there was a run before is asked at the start
        super()._start()

    def _step_made(self, name: str) -> None:
        print(name, flush=True)

    def step(self) -> bool:
        """One batch; False if there was nothing to do."""
        reader = self._reader
        if self._offset is None:
            self._offset = reader.initialOffset()
        end = self._end or reader.latestOffset(self._offset, reader.getDefaultReadLimit())
        if end == self._offset:
            return False
        self._keep(end)
        self._pipeline.apply(LocalBatch(self._chunks(end)), self._user, self._batch_id + 1, json.dumps(end))
        self._offset, self._batch_id, self._end = end, self._batch_id + 1, None
        self._keep(None)
        reader.commit(end)
        return True

    def _keep(self, end: Any) -> None:
        body = json.dumps({"offset": self._offset, "batch": self._batch_id, "end": end})
        written = self._file.with_suffix(".new")
        written.write_text(body)
        os.replace(written, self._file)


def main(place: Path, arguments: dict[str, Any]) -> None:
    """Runs until it is killed; says when it has begun, and each step of each batch before it is made."""
    sync = KeptSync(lakebed.connect(place / "warehouse"), place, **arguments)
    print("started", flush=True)
    while True:
        if not sync.step():
            time.sleep(0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
