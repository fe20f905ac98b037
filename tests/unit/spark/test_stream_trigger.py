"""When micro-batches begin, by what the caller and the options of the sink say."""

from __future__ import annotations

from typing import Any

import pytest

from lakebed.errors import InvalidOption
from lakebed.options import Options
from lakebed.spark.stream.sink import chosen_trigger

MINUTE = {"sink.rolling-policy.rollover-interval": "1 min"}


@pytest.mark.parametrize(
    ("given", "options", "chosen"),
    [
        ({}, {}, {}),
        ({"processingTime": "1 hour"}, {}, {"processingTime": "1 hour"}),
        ({}, MINUTE, {"processingTime": "60000 milliseconds"}),
        ({"processingTime": "1 hour"}, MINUTE, {"processingTime": "60000 milliseconds"}),
        ({"processingTime": "10 seconds"}, MINUTE, {"processingTime": "10 seconds"}),
        ({"availableNow": True}, MINUTE, {"availableNow": True}),
        ({}, {"write-mode": "stream"}, {}),
        ({}, {"write-mode": "batch"}, {"once": True}),
        ({"availableNow": True}, {"write-mode": "batch"}, {"once": True}),
    ],
)
def test_n_25_the_rollover_interval_bounds_the_trigger(
    given: dict[str, Any], options: dict[str, str], chosen: dict[str, Any]
) -> None:
    """Rows wait until the next trigger, so it comes before they have waited too long; batches have one trigger."""
    assert chosen_trigger(given, Options(options)) == chosen


def test_n_22_a_batch_has_no_interval() -> None:
    """One commit at the end of a query without end is refused with both ways out."""
    with pytest.raises(InvalidOption, match="batch") as caught:
        chosen_trigger({"processingTime": "1 second"}, Options({"write-mode": "batch"}))
    assert "availableNow" in caught.value.hint
    assert "stream" in caught.value.hint
