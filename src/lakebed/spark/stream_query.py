"""What every streaming query has: an identity that its checkpoint keeps, and a trigger that its caller names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIGGERS = ("processingTime", "availableNow", "once")


def query_id_of(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query that a checkpoint belongs to: the same after every restart."""
    local = Path(checkpoint.removeprefix("file://").removeprefix("file:")) / "metadata"
    if local.exists():
        text = local.read_text()
    else:
        row = spark.read.text(f"{checkpoint.rstrip('/')}/metadata").first()
        text = row[0] if row is not None else "{}"
    return str(json.loads(text)["id"])


def trigger_of(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Arguments of Spark's trigger for what a caller gave; none of them if that is None."""
    if given is None:
        return {}
    if isinstance(given, str):
        return {"availableNow": True} if given.lower() == "availablenow" else {"processingTime": given}
    if len(given) != 1 or any(name not in _TRIGGERS for name in given):
        raise InvalidArgument(
            f"trigger {dict(given)} is not understood",
            hint='pass an interval such as "10 seconds", or {"availableNow": True}',
        )
    return dict(given)


__all__ = ["query_id_of", "trigger_of"]
