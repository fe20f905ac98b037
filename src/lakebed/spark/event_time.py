"""How far the event time of a stream has come: what `withWatermark` says of its columns, and what the rows hold.

Spark notes the delay of a watermark in the metadata of the column, which every DataFrame shows in its schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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


__all__ = ["EventTime", "SeenRows"]
