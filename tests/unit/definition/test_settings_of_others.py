"""Settings that Paimon checks when a table is defined, or that ask for what happens anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidOption, LakebedError, Unsupported

_COLUMNS = {"k": "INT NOT NULL", "p": "INT NOT NULL"}
_EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
_SORTED = {"manifest-sort.enabled": "true"}
_SEEN = {"visibility-callback.enabled": "true"}
_MARKED = {"deletion-vectors.enabled": "true", "bucket": "1"}


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        (_SORTED, {}),
        ({**_SORTED, "manifest-sort.partition-field": "k"}, {"partition_by": ["p"]}),
        ({**_SORTED, **_EVOLVES, "manifest-sort.partition-field": "p"}, {}),
        ({**_SEEN, "bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}, {"primary_key": ["k"]}),
        ({**_SEEN, **_MARKED, "write-only": "true"}, {"primary_key": ["k"]}),
        ({"sort-compaction.local-sample.magnification": "19"}, {}),
        ({"sink.clustering.sample-factor": "19"}, {}),
    ],
)
@pytest.mark.filterwarnings("ignore:option")
def test_what_can_not_be_is_refused(tmp_path: Path, options: dict[str, str], shape: dict[str, list[str]]) -> None:
    """With a word of what is wrong; nothing is created."""
    lake = lakebed.connect(tmp_path)
    with pytest.raises(InvalidOption) as caught:
        lake.create_table("t", _COLUMNS, **shape, options=options)
    assert caught.value.hint
    assert not lake.tables()


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({**_SORTED, "manifest-sort.partition-field": "p"}, {"partition_by": ["p"]}),
        ({**_SORTED, **_EVOLVES}, {}),
        ({**_SEEN, **_MARKED}, {"primary_key": ["k"]}),
        ({**_SEEN, "bucket": "-2"}, {"primary_key": ["k"]}),
        ({"partition.sink-strategy": "partition_dynamic"}, {"partition_by": ["p"]}),
        ({"data-file.external-paths": "file:///elsewhere", "data-file.external-paths.strategy": "none"}, {}),
    ],
)
@pytest.mark.filterwarnings("ignore:option")
def test_what_asks_for_nothing_else_is_taken(
    tmp_path: Path, options: dict[str, str], shape: dict[str, list[str]]
) -> None:
    """Rows are written and read as without it."""
    lake = lakebed.connect(tmp_path)
    table = lake.create_table("t", _COLUMNS, **shape, options=options)
    table.write([{"k": 1, "p": 2}])
    table.write([{"k": 3, "p": 2}])
    assert sorted(row["k"] for row in table.to_arrow().to_pylist()) == [1, 3]


def test_files_are_put_nowhere_else_in_silence(tmp_path: Path) -> None:
    """A strategy for places outside the table is refused: it would be honoured by nobody."""
    options = {"data-file.external-paths": "file:///elsewhere", "data-file.external-paths.strategy": "round-robin"}
    with pytest.raises(InvalidOption, match=r"external-paths\.strategy"), pytest.warns(UserWarning, match="no effect"):
        lakebed.connect(tmp_path).create_table("t", _COLUMNS, options=options)


@pytest.mark.parametrize("key", [["dt", "k"], []])
def test_partitions_that_are_due_to_expire_are_not_compacted(tmp_path: Path, key: list[str]) -> None:
    """By their values, and only if the table says so; what names no time does not expire."""
    lake = lakebed.connect(tmp_path)
    table = lake.create_table(
        "t",
        {"dt": "STRING", "k": "INT"},
        primary_key=key,
        partition_by=["dt"],
        options={
            **({"bucket": "1"} if key else {}),
            "write-only": "true",
            "partition.expiration-time": "7 d",
            "partition.expiration-check-interval": "999 d",
        },
    )
    for number in (1, 2):
        table.write([{"dt": dt, "k": number} for dt in ("2020-01-01", "2999-01-01", "someday")])
    lake.sql("CALL sys.compact(`table` => 't', options => 'compaction.skip-expired-partitions=true')")
    counts = {part.name: part.file_count for part in table.partitions()}
    assert counts == {"dt=2020-01-01": 2, "dt=2999-01-01": 1, "dt=someday": 1}
    table.compact(full=True)
    assert {part.file_count for part in table.partitions()} == {1}


def test_analyze_says_what_it_can_not_do(tmp_path: Path) -> None:
    """Columns are looked for in tables without rows, too, and counting means reading."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (k INT)")
    with pytest.raises(LakebedError, match="nope"):
        lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS nope")
    with pytest.raises(Unsupported, match="NOSCAN"):
        lake.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS k")


def test_comments_that_paimon_takes_for_types_are_refused(tmp_path: Path) -> None:
    """Paimon makes a large value of such a column; here it would be a comment that nobody wants."""
    lake = lakebed.connect(tmp_path)
    with pytest.raises(Unsupported, match="large values"):
        lake.sql("CREATE TABLE b (k INT, pic BYTES COMMENT '__BLOB_FIELD')")
    lake.sql("CREATE TABLE b (k INT, pic BYTES)")
    with pytest.raises(Unsupported, match="large values"):
        lake.sql("ALTER TABLE b ALTER COLUMN pic COMMENT '__VECTOR_FIELD;64'")
