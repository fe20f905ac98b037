"""What every streaming query has: an identity that its checkpoint keeps, a trigger that its caller names, and batches
that fail, or are given up because the query stops."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument, LakebedError
from lakebed.records import dataclass
from lakebed.spark.errors import cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_TRIGGERS = ("processingTime", "availableNow", "once")
_LONGEST_TEXT = 1000
_SIGNS_OF_A_STOP = ("SPARK_JOB_CANCELLED", "InterruptedException")
"""One of them is in what Spark tells of a job that ends because its query stops."""
_SAID_OF_A_STOP = "py4j.protocol.Py4JJavaError: An error occurred while calling Spark: java.lang.InterruptedException"
"""Words by which Spark knows, in what a batch raises, that it was interrupted. While a query stops, that is no error of
the query then; at any other time it is one."""


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


@contextmanager
def batch_errors(batch_id: int) -> Iterator[None]:
    """Tells errors of a batch so that Spark understands them.

    Of a job that fails, or is cancelled, Spark tells with the stacks of its JVM. It looks in what a batch raises for
    signs of a stop, in a way that such a long text is too much for, and the query that was stopped would have failed.
    """
    try:
        yield
    except LakebedError:
        raise
    except Exception as error:
        text = str(error)
        hint = "start the query again: the batch comes again"
        if any(sign in text for sign in _SIGNS_OF_A_STOP):
            raise LakebedError(f"batch {batch_id} was given up ({_SAID_OF_A_STOP})", hint=hint) from None
        ours = cause_of(error)
        if isinstance(ours, LakebedError):
            raise ours from None
        if len(text) <= _LONGEST_TEXT:
            raise
        short = text.split("\n\tat ")[0][:_LONGEST_TEXT]
        raise LakebedError(f"batch {batch_id} was not written: {short}", hint=hint) from None


# --- How far the event time of a stream has come: what `withWatermark` says of its columns, and what the rows hold
#
# Spark notes the delay of a watermark in the metadata of the column, which every DataFrame shows in its schema.


_DELAY = "spark.watermarkDelayMs"
_WINDOW_END = "end"
"""Of a column of windows, which `window(...)` makes; their event time is where they end."""


@dataclass(frozen=True, slots=True)
class EventTime:
    """Columns with a watermark, each with the time in milliseconds that rows may be late."""

    delays_ms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(schema: StructType) -> EventTime:
        """The columns of a DataFrame for which `withWatermark` was called."""
        found = [(field.name, (field.metadata or {}).get(_DELAY)) for field in schema.fields]
        return EventTime(tuple((name, int(delay)) for name, delay in found if delay is not None))


class SeenRows:
    """Looks at batches that pass: how large they are, and how late their rows."""

    def __init__(self, event_time: EventTime) -> None:
        self._delays_ms = dict(event_time.delays_ms)
        self._latest_ms: dict[str, int] = {}
        self.size_bytes = 0

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        for batch in batches:
            self.size_bytes += batch.nbytes
            for name in self._delays_ms:
                latest = _latest_ms(batch.column(name))
                if latest is not None:
                    self._latest_ms[name] = max(latest, self._latest_ms.get(name, latest))
            yield batch

    @property
    def watermark_ms(self) -> int | None:
        """No row before this time is expected any more, by the latest rows of the column that lags behind most."""
        return min((latest - self._delays_ms[name] for name, latest in self._latest_ms.items()), default=None)


def _latest_ms(column: pa.Array) -> int | None:
    if pa.types.is_struct(column.type):
        column = pc.struct_field(column, _WINDOW_END)
    latest = pc.max(column)
    return latest.cast(pa.timestamp("us", latest.type.tz)).value // 1000 if latest.is_valid else None


__all__ = ["EventTime", "SeenRows", "batch_errors", "query_id_of", "trigger_of"]
