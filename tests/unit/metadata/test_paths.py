"""Where files lie, and how partition directories are spelled."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import InvalidArgument, Unsupported
from lakebed.metadata.paths import TablePaths, escape, parse_partition_path, partition_path, unescape
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type


def test_files_of_the_main_branch_lie_below_the_table() -> None:
    """Every kind of file has the place that the format gives it."""
    paths = TablePaths("/w/db.db/t/")
    assert paths.schema_file(0) == "/w/db.db/t/schema/schema-0"
    assert paths.snapshot_file(7) == "/w/db.db/t/snapshot/snapshot-7"
    assert paths.latest_hint == "/w/db.db/t/snapshot/LATEST"
    assert paths.earliest_hint == "/w/db.db/t/snapshot/EARLIEST"
    assert paths.tag_file("v1") == "/w/db.db/t/tag/tag-v1"
    assert paths.consumer_file("c") == "/w/db.db/t/consumer/consumer-c"
    assert paths.changelog_file(3) == "/w/db.db/t/changelog/changelog-3"
    assert paths.changelog_latest_hint == "/w/db.db/t/changelog/LATEST"
    assert paths.changelog_earliest_hint == "/w/db.db/t/changelog/EARLIEST"
    assert paths.branch_directory("b") == "/w/db.db/t/branch/branch-b"
    assert paths.manifest_file("m") == "/w/db.db/t/manifest/m"
    assert paths.index_file("i") == "/w/db.db/t/index/i"
    assert paths.statistics_file("s") == "/w/db.db/t/statistics/s"
    assert paths.data_file("dt=1", 3, "f.parquet") == "/w/db.db/t/dt=1/bucket-3/f.parquet"
    assert paths.bucket_directory("", -2) == "/w/db.db/t/bucket-postpone"


def test_a_branch_keeps_only_its_own_metadata() -> None:
    """Schemas, snapshots, tags, changelogs and consumers move to the branch, all else stays with the table."""
    branch = TablePaths("/t").on_branch("dev")
    for own in (
        branch.schema_file(0),
        branch.snapshot_file(1),
        branch.latest_hint,
        branch.tag_file("x"),
        branch.changelog_file(1),
        branch.consumer_file("c"),
    ):
        assert own.startswith("/t/branch/branch-dev/")
    assert branch.manifest_file("m") == "/t/manifest/m"
    assert branch.index_file("i") == "/t/index/i"
    assert branch.data_file("", 0, "f") == "/t/bucket-0/f"
    assert branch.branch_directory("other") == "/t/branch/branch-other"
    assert branch.on_branch("main") == TablePaths("/t")


def test_a_data_directory_comes_before_partitions() -> None:
    """Data files move into the extra directory, metadata does not."""
    paths = TablePaths("/t", data_directory="data/")
    assert paths.data_file("dt=1", 0, "f") == "/t/data/dt=1/bucket-0/f"
    assert paths.manifest_file("m") == "/t/manifest/m"


def test_the_root_of_a_file_system_stays_absolute() -> None:
    """Stripping the slash of `/` would make every path relative."""
    assert TablePaths("/").snapshot_file(1).startswith("/")


@pytest.mark.parametrize("name", ["", "  ", "a/b", "a\\b", "a\nb"])
def test_names_that_would_leave_the_directory_are_refused(name: str) -> None:
    """A tag, consumer or branch name can not point elsewhere."""
    paths = TablePaths("/t")
    for build in (paths.tag_file, paths.consumer_file, paths.branch_directory):
        with pytest.raises(InvalidArgument):
            build(name)


@pytest.mark.parametrize("name", ["main", "123"])
def test_branch_names_that_mean_something_else_are_refused(name: str) -> None:
    """`main` is the table itself, and digits would be a snapshot."""
    with pytest.raises(InvalidArgument, match="branch"):
        TablePaths("/t").branch_directory(name)


# Partition directories


def one(data_type: lt.DataType, value: object, *, legacy: bool = True) -> str:
    """The directory of a single value, without its column's name."""
    scalar = pa.scalar(value, to_arrow_type(data_type))
    return partition_path(["p"], [data_type], [scalar], legacy=legacy).removeprefix("p=")


@pytest.mark.parametrize(
    ("data_type", "value", "legacy", "modern"),
    [
        (lt.BOOLEAN, True, "true", "true"),
        (lt.BOOLEAN, False, "false", "false"),
        (lt.TINYINT, -5, "-5", "-5"),
        (lt.BIGINT, 1 << 62, str(1 << 62), str(1 << 62)),
        (lt.FLOAT, 1.5, "1.5", "1.5"),
        (lt.DOUBLE, 0.1, "0.1", "0.1"),
        (lt.DOUBLE, 1e10, "1.0E10", "1.0E10"),
        (lt.DOUBLE, 1e-5, "1.0E-5", "1.0E-5"),
        (lt.decimal(10, 2), Decimal("12.5"), "12.50", "12.50"),
        (lt.decimal(20, 10), Decimal(0), "0.0000000000", "0.0000000000"),
        (lt.char(5), "ab", "ab", "ab"),
        (lt.STRING, "a/b:c=d e%", "a%2Fb%3Ac%3Dd e%25", "a%2Fb%3Ac%3Dd e%25"),
        (lt.DATE, datetime.date(2024, 5, 14), "19857", "2024-05-14"),
        (lt.DATE, datetime.date(1969, 12, 31), "-1", "1969-12-31"),
        (lt.time(3), datetime.time(1, 2, 3, 4000), "3723004", "01%3A02%3A03.004"),
        (lt.timestamp(3), datetime.datetime(2024, 1, 2, 3, 4), "2024-01-02T03%3A04", "2024-01-02 03%3A04%3A00.000"),
        (
            lt.timestamp(3),
            datetime.datetime(2024, 1, 2, 3, 4, 5, 120000),
            "2024-01-02T03%3A04%3A05.120",
            "2024-01-02 03%3A04%3A05.120",
        ),
        (
            lt.timestamp(6),
            datetime.datetime(2024, 1, 2, 3, 4, 5, 123456),
            "2024-01-02T03%3A04%3A05.123456",
            "2024-01-02 03%3A04%3A05.123456",
        ),
    ],
)
def test_partition_values_are_spelled_as_java_spells_them(
    data_type: lt.DataType, value: object, legacy: str, modern: str
) -> None:
    """Both spellings of every partition type."""
    assert one(data_type, value) == legacy
    assert one(data_type, value, legacy=False) == modern


@pytest.mark.parametrize("blank", [None, "", "  ", "\t\n", "\u3000"])
def test_missing_and_blank_values_share_the_default_directory(blank: str | None) -> None:
    """Null, empty and white space can not be directory names."""
    assert one(lt.STRING, blank) == "__DEFAULT_PARTITION__"
    named = partition_path(["p"], [lt.STRING], [pa.scalar(blank, pa.string())], default_name="none/it")
    assert named == "p=none%2Fit"


def test_a_no_break_space_is_not_blank_to_java() -> None:
    """Python's idea of white space differs from Java's, which decides where the file is."""
    assert one(lt.STRING, "\xa0") == "\xa0"


def test_binary_partitions_have_no_legacy_name() -> None:
    """The legacy text of bytes is an object's address, so nobody could find the files again."""
    with pytest.raises(Unsupported, match="BYTES"):
        one(lt.BYTES, b"a")
    assert one(lt.BYTES, b"ab", legacy=False) == "ab"


def test_a_path_has_one_segment_per_column_and_escaped_names() -> None:
    """Columns keep their order; a table without partitions has no path."""
    values = [pa.scalar("2024-01-01"), pa.scalar(None, pa.int32())]
    assert partition_path(["d=t", "hr"], [lt.STRING, lt.INT], values) == "d%3Dt=2024-01-01/hr=__DEFAULT_PARTITION__"
    assert partition_path([], [], []) == ""


def test_escaped_characters_are_exactly_those_of_the_format() -> None:
    """Each one becomes two upper-case hex digits, everything else stays."""
    special = "\"#%'*/:=?\\{}[]^\x7f\x00\x01\x1f\n"
    assert escape(special) == "".join(f"%{ord(char):02X}" for char in special)
    kept = " ~!@$&()+,;<>|-_.äöü漢字😀`"
    assert escape(kept) == kept
    assert unescape("a%2fb%zz%") == "a/b%zz%"


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=3))
def test_a_path_can_be_parsed_back(pairs: list[tuple[str, str]]) -> None:
    """Whatever names and values contain, escaping is reversible."""
    path = "/".join(f"{escape(name)}={escape(value)}" for name, value in pairs)
    assert parse_partition_path(path) == pairs


def test_a_path_without_values_is_refused() -> None:
    """A segment must be `name=value`."""
    with pytest.raises(InvalidArgument, match="bucket-0"):
        parse_partition_path("dt=1/bucket-0")
