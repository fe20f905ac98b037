"""Names of data files: the compression in them, if the table wants it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed.errors import InvalidOption

NAMED = {"file.suffix.include.compression": "true"}


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({}, ".zst.parquet"),
        ({"file.compression": "snappy"}, ".snappy.parquet"),
        ({"file.compression": "none"}, "-0.parquet"),
        ({"file.format": "orc", "file.compression": "gzip"}, ".gz.orc"),
        ({"file.format": "avro"}, ".zst.avro"),
    ],
)
def test_compression_is_named(warehouse: Warehouse, options: dict[str, str], end: str) -> None:
    """Written and compacted files end in compression and format, and are read by the latter."""
    table = warehouse.table("t", {"k": "INT"}, options={**NAMED, **options})
    for number in range(2):
        table.write(pa.table({"k": ints(number)}))
    assert all(file.file_name.endswith(end) for file in table.scan().files)
    table.compact(full=True)
    assert [file.file_name.endswith(end) for file in table.scan().files] == [True]
    assert sorted(table.to_arrow()["k"].to_pylist()) == [0, 1]


def test_changelog_files_name_their_own(warehouse: Warehouse) -> None:
    """Changelog files name the compression that they have, not that of data files."""
    options = {**NAMED, "bucket": "1", "changelog-producer": "input", "changelog-file.compression": "snappy"}
    table = warehouse.table("t", {"k": "INT"}, primary_key=["k"], options=options)
    table.write(pa.table({"k": ints(1)}))
    names = [path.rpartition("/")[2] for path in warehouse.contents()]
    assert [name.split(".", 1)[1] for name in names if name.startswith("changelog-") and "." in name] == [
        "snappy.parquet"
    ]


@pytest.mark.parametrize("codec", ["bzip2", "xz"])
def test_manifests_that_not_all_can_read(warehouse: Warehouse, codec: str) -> None:
    """Compressions of manifests that some engine does not know are refused by name."""
    with warehouse.refuses(InvalidOption, "manifest.compression", codec):
        warehouse.table("x", {"k": "INT"}, options={"manifest.compression": codec})


def test_manifests_of_other_formats(warehouse: Warehouse) -> None:
    """Only Avro manifests exist here."""
    with warehouse.refuses(InvalidOption, "manifest.format", "orc"):
        warehouse.table("x", {"k": "INT"}, options={"manifest.format": "orc"})
    assert warehouse.table("y", {"k": "INT"}, options={"manifest.format": "avro"}).to_arrow().num_rows == 0


def test_snappy_manifests(warehouse: Warehouse) -> None:
    """What is written with snappy is read back, also after the option has changed."""
    table = warehouse.table("t", {"k": "INT"}, options={"manifest.compression": "snappy"})
    for number in range(3):
        table.write(pa.table({"k": ints(number)}))
    assert sorted(warehouse.reopened().table("t").to_arrow()["k"].to_pylist()) == [0, 1, 2]
