"""What `format("lakebed")` is given, before a Spark is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidOption
from lakebed.spark.data_source import LakebedDataSource


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("versionAsOf", "scan.version"),
        ("timestampAsOf", "scan.timestamp"),
        ("snapshot-id", "scan.snapshot-id"),
        ("readChangeFeed", "read.changelog"),
        ("mergeSchema", "write.merge-schema"),
    ],
)
def test_options_of_others_are_not_passed_over(tmp_path: Path, option: str, hint: str) -> None:
    """A read would show another state than it was asked for, and a write fail for a reason that nobody understands."""
    table = lakebed.connect(tmp_path).create_table("t", {"id": [1, 2]})
    assert LakebedDataSource({"path": table.location, "header": "true"}).schema().names == ["id"]
    with pytest.raises(InvalidOption) as raised:
        LakebedDataSource({"path": table.location, option: "1"}).schema()
    assert option in raised.value.message
    assert hint in raised.value.hint
