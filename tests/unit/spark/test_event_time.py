"""How far the event time of a stream has come."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as st

from lakebed.spark.stream.query import EventTime, SeenRows

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
UTC = pa.timestamp("us", tz="UTC")


def times(*seconds: int | None, kind: pa.DataType = UTC) -> pa.Array:
    values = [None if second is None else BEGIN + dt.timedelta(seconds=second) for second in seconds]
    return pa.array(values, UTC).cast(kind)


def test_columns_with_a_watermark_are_known_by_their_metadata() -> None:
    """What `withWatermark` notes in the schema is read; other columns do not count."""
    schema = st.StructType(
        [
            st.StructField("id", st.LongType()),
            st.StructField("at", st.TimestampType(), metadata={"spark.watermarkDelayMs": 5000}),
        ]
    )
    assert EventTime.of(schema) == EventTime((("at", 5000),))


@pytest.mark.parametrize("kind", [UTC, pa.timestamp("us")])
def test_the_latest_row_counts_less_the_delay(kind: pa.DataType) -> None:
    """Over all batches, with nulls, in either kind of time; batches pass unchanged."""
    seen = SeenRows(EventTime((("at", 5000),)))
    batches = [pa.record_batch({"at": times(*seconds, kind=kind)}) for seconds in ((3, None, 30), (10,), (None,))]
    assert list(seen.through(batches)) == batches
    assert seen.watermark_ms == BEGIN_MS + 25_000
    assert seen.size_bytes == sum(batch.nbytes for batch in batches)


def test_the_column_that_lags_behind_decides() -> None:
    """With two watermarks the earlier one counts; windows count by their ends."""
    windows = pa.StructArray.from_arrays([times(0), times(60)], names=["start", "end"])
    seen = SeenRows(EventTime((("at", 0), ("window", 1000))))
    list(seen.through([pa.record_batch({"at": times(120), "window": windows})]))
    assert seen.watermark_ms == BEGIN_MS + 59_000


def test_nothing_seen_is_no_watermark() -> None:
    """Neither without rows nor without a column that has one."""
    for event_time in (EventTime(), EventTime((("at", 0),))):
        seen = SeenRows(event_time)
        list(seen.through([pa.record_batch({"at": times(None)})]))
        assert seen.watermark_ms is None
