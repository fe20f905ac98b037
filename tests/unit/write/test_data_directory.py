"""Data files under a directory of their own inside the table (`data-file.path-directory`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import ROOT, Workshop, rows, shown

from lakebed.errors import InvalidOption, LakebedError
from lakebed.schema.changes import SetOption
from lakebed.table.table import Table

OPTION = "data-file.path-directory"


def data_files(shop: Workshop, table: Table) -> list[str]:
    """Paths of data files below the table."""
    found = (status.path for status in shop.fileio.list_recursive(table.location))
    return sorted(path.removeprefix(f"{table.location}/") for path in found if "/bucket-" in path)


@pytest.mark.parametrize("has_key", [True, False])
@pytest.mark.parametrize("directory", ["data", "/a/b/"])
def test_all_data_files_lie_there(directory: str, has_key: bool) -> None:
    """Written, compacted, changed and expired, they are never anywhere else, and metadata is where it always is."""
    shop = Workshop()
    extra: dict[str, Any] = {"changelog_producer": "lookup"} if has_key else {}
    table = shop.create(has_key, data_file__path_directory=directory, **extra)
    start = directory.strip("/") + "/bucket-"
    for number in range(3):
        table.write(rows((number, number)))
    table.compact(full=True)
    shop.lake.sql("DELETE FROM t WHERE k = 1")
    again = shop.lake.table("t")
    assert shown(again) == [(0, 0), (2, 2)]
    paths = data_files(shop, again)
    assert paths
    assert all(path.startswith(start) for path in paths)
    again.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(again) == [(0, 0), (2, 2)]
    assert again.check() == []
    assert shop.fileio.exists(f"{again.location}/manifest")


def test_partitions_branches_and_orphans() -> None:
    """Partitions lie below the directory, a branch shares it, and strays in it are found."""
    shop = Workshop()
    schema = pa.schema([("p", pa.string()), ("v", pa.int64())])
    table = shop.lake.create_table("t", schema, partition_by=["p"], options={OPTION: "data"})
    table.write(pa.table({"p": ["x"], "v": [1]}, schema=schema))
    table.create_tag("a")
    table.create_branch("b", "a")
    branch = shop.lake.table("t$branch_b")
    branch.write(pa.table({"p": ["y"], "v": [2]}, schema=schema))
    assert {path.rpartition("/")[0] for path in data_files(shop, table)} == {"data/p=x/bucket-0", "data/p=y/bucket-0"}
    assert branch.to_arrow().num_rows == 2
    shop.fileio.write_bytes(f"{table.location}/data/p=x/bucket-0/data-stray-0.parquet", b"x")
    shop.clock.sleep_ms(1 << 50)
    assert table.remove_orphan_files(dry_run=True).file_count == 1
    assert table.remove_orphan_files().file_count == 1
    assert table.to_arrow().num_rows == 1
    assert branch.to_arrow().num_rows == 2


def test_set_before_the_first_row_and_never_after() -> None:
    """An empty table takes the option, in handles that are open too; one with rows does not."""
    shop = Workshop()
    table = shop.create(False)
    table.alter(SetOption(OPTION, "data"))
    table.write(rows((1, 1)))
    assert [path.partition("/")[0] for path in data_files(shop, table)] == ["data"]
    assert shown(shop.lake.table("t")) == [(1, 1)]
    with pytest.raises(LakebedError, match="path-directory"):
        table.alter(SetOption(OPTION, "other"))
    with pytest.raises(LakebedError, match="path-directory"):
        table.with_options({OPTION: "other"}).to_arrow()
    assert shown(table) == [(1, 1)]


@pytest.mark.parametrize("directory", ["..", "a/../b", "manifest", "snapshot/x", "a//b", "."])
def test_places_that_are_none(directory: str) -> None:
    """Data files among metadata, or outside of the table, are refused."""
    shop = Workshop()
    with pytest.raises(InvalidOption, match="no place for data files"):
        shop.create(False, data_file__path_directory=directory)
    assert not shop.fileio.exists(f"{ROOT}/default.db/t")
