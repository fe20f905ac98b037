"""An application that syncs a database until it is killed: `python -m tests.cdc.postgres.sync_worker PLACE OPTIONS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lakebed
import lakebed.cdc
from lakebed.spark.session import Session


def main(place: Path, settings: str) -> None:
    """Runs until it is killed; says each step of each batch before it is made."""
    lake = lakebed.connect(place / "warehouse", spark=Session().get())

    def say(step: str) -> None:
        print(step, flush=True)

    run = lakebed.cdc.sync(
        lake,
        "postgres",
        "shop",
        source_options=json.loads(settings),
        checkpoint=place / "checkpoint",
        trigger="100 milliseconds",
        table_conf={"bucket": "1", "changelog-producer": "input"},
        on_step=say,
    )
    print("started", flush=True)
    run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
