"""Files of different levels in different formats, compressions and with different statistics."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.unit.maintenance.expiring_tables import Workshop, changed, rows, shown

from lakebed.errors import InvalidOption
from lakebed.table.table import Table


def formats(table: Table) -> dict[int, set[str]]:
    """Formats of the live files by level."""
    found: dict[int, set[str]] = {}
    for file in table.scan().files:
        found.setdefault(file.level, set()).add(file.file_name.rpartition(".")[2])
    return found


def history(**options: Any) -> Table:
    """Two upserts of the same keys, a full compaction, and one upsert more."""
    table = Workshop().create(
        **{"file__format": "orc", "num_sorted_run__compaction_trigger": 9, "num_levels": 6, **options}
    )
    table.write(rows((1, 1), (2, 2)))
    table.write(rows((1, 10), (3, 3)))
    table.compact(full=True)
    table.write(rows((2, 20)))
    return table


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_each_level_has_its_format(producer: str) -> None:
    """New rows are written in one format, what compaction makes of them in another, and both are read as one table."""
    table = history(file__format__per__level="0:avro,5:parquet", changelog_producer=producer)
    if producer == "none":
        assert formats(table) == {0: {"avro"}, 5: {"parquet"}}
    else:
        assert set().union(*formats(table).values()) <= {"avro", "parquet", "orc"}
        assert changed(table, 0)
    table.compact(full=True)
    assert formats(table) == {5: {"parquet"}}
    assert shown(table) == [(1, 10), (2, 20), (3, 3)]
    assert table.check() == []


def test_levels_that_are_not_named_are_as_the_table_says() -> None:
    """Only the levels that the option names differ."""
    table = history(file__format__per__level="0:avro")
    assert formats(table) == {0: {"avro"}, 5: {"orc"}}


def test_each_level_has_its_compression() -> None:
    """Level 0 is compressed as the option says, the others as the table does."""
    shop = Workshop()
    table = shop.create(file__format="parquet", file__compression__per__level="0:lz4,5:snappy", num_levels=6)
    table.write(rows((1, 1)))
    table.write(rows((1, 2)))

    def codec() -> str:
        (split, *_) = table.scan().splits
        path = table._opened.context.data_file_path(split.partition, split.bucket, table.scan().files[0].file_name)
        return str(pq.ParquetFile(shop.fileio.open_input(path)).metadata.row_group(0).column(0).compression)

    assert codec() == "LZ4"
    table.compact(full=True)
    assert codec() == "SNAPPY"
    assert shown(table) == [(1, 2)]


def test_each_level_has_its_statistics() -> None:
    """Files of level 0 live shortly: without statistics they cost less to write."""
    table = history(metadata__stats_mode__per__level="0:none")
    by_level = {file.level: file.value_stats for file in table.scan().files}
    assert by_level[0] != by_level[5]
    table = history()
    assert table.to_arrow(filter=[("v", "==", 20)])["k"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("file.format.per.level", "0:arvo", "arvo"),
        ("file.compression.per.level", "0:zst", "zst"),
        ("file.format.per.level", "0:avro,0:orc", "twice"),
        ("metadata.stats-mode.per.level", "0:some", "0:some"),
        ("file.format.per.level", "avro", "avro"),
    ],
)
def test_what_makes_no_sense_is_refused_at_create(option: str, value: str, told: str) -> None:
    """A mistyped name is found before a row is written."""
    shop = Workshop()
    with pytest.raises(InvalidOption, match=told):
        shop.create(**{option.replace("-", "_").replace(".", "__"): value})
    assert shop.lake.tables() == []
