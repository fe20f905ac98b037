"""An application that syncs a database until it is killed: `python -m tests.cdc.sync_worker PLACE ARGUMENTS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lakebed
import lakebed.cdc
from lakebed.spark.session import Session


def main(place: Path, arguments: dict[str, Any]) -> None:
    """Runs until it is killed; says when the stream has begun, and each step of each batch before it is made."""
    lake = lakebed.connect(place / "warehouse", spark=Session().get())

    def say(step: str) -> None:
        print(step, flush=True)

    run = lakebed.cdc.sync(lake, checkpoint=place / "checkpoint", trigger="100 milliseconds", on_step=say, **arguments)
    print("started", flush=True)
    run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
