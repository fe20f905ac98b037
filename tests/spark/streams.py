"""Streams of tests: each file of a directory is one micro-batch."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import lakebed

_BEGIN_S = int(time.time()) - 3600


def batch(source: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """Adds a micro-batch."""
    source.mkdir(exist_ok=True)
    path = source / f"b{number:03}.json"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    os.utime(path, (_BEGIN_S + number, _BEGIN_S + number))  # Spark takes files in the order of their times


def stream(spark: Any, source: Path, schema: str = "id long, v int") -> Any:
    """The micro-batches as a streaming DataFrame."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(source))


def drain(table: lakebed.Table, frame: Any, checkpoint: Path, **arguments: Any) -> None:
    """Writes all there is with `t.write_stream`."""
    query = table.write_stream(frame, checkpoint=checkpoint, trigger={"availableNow": True}, **arguments)
    query.awaitTermination()


def drain_format(table: lakebed.Table, frame: Any, checkpoint: Path, mode: str = "append", **options: str) -> None:
    """Writes all there is with `writeStream.format("lakebed")`."""
    writer = frame.writeStream.format("lakebed").outputMode(mode).options(**options)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(table.location)
    query.awaitTermination()


def forget_last_batch(checkpoint: Path) -> None:
    """Spark's log of finished batches loses its last entry, as if the driver had died before it was written."""
    numbers = [int(entry.name) for entry in (checkpoint / "commits").iterdir() if entry.name.isdigit()]
    for name in (f"{max(numbers)}", f".{max(numbers)}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def files_below(table: lakebed.Table) -> set[str]:
    """Names of all files in the directories of a table's buckets."""
    return {path.name for path in Path(table.location).rglob("bucket-*/*")}


def live_files(table: lakebed.Table) -> set[str]:
    """Names of the files of the latest snapshot."""
    return {file.file_name for split in table.scan().splits for file in split.files}
