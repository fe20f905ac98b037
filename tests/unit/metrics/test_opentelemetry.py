"""Measurements in a program's own MeterProvider, read back with the SDK."""

from typing import Any

import pytest

import lakebed
from lakebed.metrics.families import FAMILIES
from lakebed.metrics.instruments import SECONDS

sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="the SDK is not installed")
export = pytest.importorskip("opentelemetry.sdk.metrics.export", reason="the SDK is not installed")


@pytest.fixture
def reader() -> Any:
    """Reads what a provider of the program's own was told."""
    reader = export.InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader])
    lakebed.metrics.use_opentelemetry(provider)
    lakebed.metrics.use_opentelemetry(provider)  # once more, which must not count twice
    return reader


def _read(reader: Any) -> dict[str, Any]:
    (resource,) = reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("lakebed", lakebed.__version__)
    return {metric.name: metric for metric in scope.metrics}


def test_instruments_appear_in_the_provider(reader: Any) -> None:
    """Under dotted names, with units beside them, and few attributes."""
    table = lakebed.connect("memory://otel").create_table("t", {"id": [1, 2]})
    assert table.to_arrow().num_rows == 2
    found = _read(reader)
    (written,) = found["lakebed.write.rows"].data.data_points
    assert (written.value, dict(written.attributes)) == (2, {"table": "default.t", "kind": "data"})
    (commit,) = found["lakebed.commit.duration"].data.data_points
    assert (commit.count, found["lakebed.commit.duration"].unit) == (1, "s")
    assert commit.explicit_bounds == SECONDS
    assert found["lakebed.write.file_size"].unit == "By"


def test_every_family_is_taken(reader: Any) -> None:
    """Counters, gauges and histograms alike."""
    for each in FAMILIES:
        each.tell(1.5, *("x" for _ in each.labels))
    assert set(_read(reader)) == {each.dotted_name for each in FAMILIES}
