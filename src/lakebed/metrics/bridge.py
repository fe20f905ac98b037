"""Hands measurements to OpenTelemetry: to the MeterProvider of the program that uses us, which owns the SDK.

Only the API is needed. Without a provider its instruments do nothing; one that is set later is found all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakebed.errors import MissingDependency
from lakebed.metrics.families import FAMILIES
from lakebed.metrics.instruments import COUNTER, GAUGE, SECONDS, Instrument
from lakebed.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider


class Bridge:
    """A listener that records with OpenTelemetry's instruments, one for each of ours, under dotted names."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry.metrics import get_meter
        except ImportError as error:
            raise MissingDependency(
                "opentelemetry-api is not installed", hint='install it with: pip install "lakebed[otel]"'
            ) from error
        meter = get_meter("lakebed", VERSION, meter_provider=provider)
        self._record = {each: _recorder(meter, each) for each in FAMILIES}

    def __call__(self, instrument: Instrument, value: float, labels: tuple[str, ...]) -> None:
        self._record[instrument](value, dict(zip(instrument.labels, labels, strict=True)))


def _recorder(meter: Meter, instrument: Instrument) -> Callable[[float, dict[str, Any]], None]:
    name, unit, says = instrument.dotted_name, instrument.unit, instrument.says
    record: Callable[[float, dict[str, Any]], None]
    if instrument.kind == COUNTER:
        record = meter.create_counter(name, unit, says).add
    elif instrument.kind == GAUGE:
        record = meter.create_gauge(name, unit, says).set
    else:
        record = meter.create_histogram(name, unit, says, explicit_bucket_boundaries_advisory=SECONDS).record
    return record


__all__ = ["Bridge"]
