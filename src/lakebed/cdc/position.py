"""How far a source was read: the offset that Spark has noted for a batch before it hands the batch out.

The text is kept in the snapshots that the batch makes, so that data and position can not disagree.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POSITION: Final = "lakebed.cdc.position"
"""Property of a snapshot: the offset up to which the source was read."""
SOURCE: Final = "lakebed.cdc.source"
"""Property of a snapshot: the kind of source."""


def position_of(spark: SparkSession, checkpoint: str, batch_id: int) -> str | None:
    """The end of a batch, as the text of an offset; None if Spark's notes are not there."""
    lines = _lines(spark, f"{checkpoint.rstrip('/')}/offsets/{batch_id}")
    # A version, what Spark notes for itself, and one offset for each source.
    return lines[-1] if len(lines) > 2 else None


def _lines(spark: SparkSession, path: str) -> list[str]:
    local = Path(path.removeprefix("file://").removeprefix("file:"))
    if local.exists():
        return local.read_text().splitlines()
    if "://" not in path or path.startswith("file:"):
        return []
    return [row[0] for row in spark.read.text(path).collect()]


__all__ = ["POSITION", "SOURCE", "position_of"]
