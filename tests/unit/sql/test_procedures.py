"""CALL: arguments in every form, and what the procedures do to a table."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, InvalidSchema, LakebedError, NotFound, Unsupported
from lakebed.sql.parse import parse
from lakebed.sql.partition_specs import parse_specs
from lakebed.sql.procedures import PROCEDURES
from lakebed.sql.procedures.merge_into import merge_text
from lakebed.sql.procedures.registry import table_options


def call(lake: lakebed.Lake, text: str) -> list[tuple[object, ...]]:
    """The rows a procedure returns."""
    return [tuple(row) for row in lake.sql(f"CALL sys.{text}").collect()]


@pytest.fixture
def lake(warehouse: Warehouse) -> lakebed.Lake:
    """A table with three snapshots, one row each."""
    warehouse.lake.sql(
        "CREATE TABLE t (k INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1', 'write-only' = 'true')"
    )
    for value in (1, 2, 3):
        warehouse.lake.table("t").write(pa.table({"k": ints(value)}))
    return warehouse.lake


def keys(lake: lakebed.Lake, table: str = "t") -> list[int]:
    """The rows of a table."""
    return sorted(lake.table(table).to_arrow().column(0).to_pylist())


@pytest.mark.parametrize(
    "arguments",
    [
        "'t', 'x', 2",
        "'default.t', 'x', 2, ''",
        "`table` => 'default.t', tag => 'x', snapshot_id => 2",
        "table => 't', tag => 'x', snapshot => cast(2 as bigint)",
        "TABLE = 't', Tag = 'x', snapshotId = '2'",
        "'t', 'x', snapshot => 2, time_retained => null",
    ],
)
def test_arguments(lake: lakebed.Lake, arguments: str) -> None:
    """By name with => or =, by position, in Flink's or Spark's words, placeholders left out."""
    assert call(lake, f"create_tag({arguments})") == [(True,)]
    assert keys(lake, "t") == [1, 2, 3]
    assert lake.table("t").at(tag="x").to_arrow()["k"].to_pylist() == [1, 2]


WRONG: list[tuple[str, type[LakebedError], str]] = [
    ("create_tagg('t', 'x')", NotFound, "did you mean `create_tag`?"),
    ("create_tag('t')", InvalidArgument, "needs `tag`"),
    ("create_tag('t', 'x', 1, '1 d', 5)", InvalidArgument, "at most 4"),
    ("create_tag(table => 't', tagg => 'x')", InvalidArgument, "did you mean `tag`?"),
    ("create_tag(table => 't', tag => 'x', snapshot => 'one')", InvalidArgument, "a whole number"),
    ("create_tag('t', tag => 'x', table => 't')", InvalidArgument, "twice"),
    ("create_tag('nope', 'x')", NotFound, "nope"),
    ("create_tag('t', 'x', 9)", NotFound, "9"),
    ("rollback(table => 't')", InvalidArgument, "once"),
    ("rollback(table => 't', version => '1', snapshot => 1)", InvalidArgument, "once"),
    ("rollback(table => 't', version => 'nope')", NotFound, "nope"),
    ("compact(table => 't', compact_strategy => 'big')", InvalidArgument, "full, minor"),
    ("compact(table => 't', order_strategy => 'sort', order_by => 'k')", InvalidArgument, "zorder"),
    ("compact(table => 't', order_strategy => 'order', order_by => 'k')", Unsupported, "primary key"),
    ("compact(table => 't', order_by => 'k')", InvalidArgument, "order_strategy"),
    ("compact(table => 't', partitions => 'k=1')", InvalidArgument, "not partitioned"),
    ("compact(table => 't', where => 'k = 1')", InvalidArgument, "not a partition column"),
    ("compact(table => 't', where => 'k + 1 = 1')", InvalidArgument, "not a partition column"),
    ("compact(table => 't', partitions => 'p=1', where => 'p = 1')", InvalidArgument, "together"),
    ("compact(table => 't', options => 'bukcet=1')", InvalidOption, "bukcet"),
    ("compact(table => 't', options => 'bucket')", InvalidArgument, "key1=value1"),
    ("migrate_table('hive', 'x')", Unsupported, "CREATE TABLE t AS SELECT"),
]


@pytest.mark.parametrize(("text", "kind", "says"), WRONG)
def test_wrong_calls(lake: lakebed.Lake, text: str, kind: type[LakebedError], says: str) -> None:
    """What is wrong with a call is said, with the way out."""
    with pytest.raises(kind) as caught:
        call(lake, text)
    assert says in str(caught.value)
    assert keys(lake) == [1, 2, 3]


def test_tags(lake: lakebed.Lake) -> None:
    """Tags by snapshot, time or watermark; replaced, renamed, deleted."""
    assert call(lake, "create_tag('t', 'a', 1)") == [(True,)]
    moment = lake.table("t").snapshots()[1].time_millis
    ((name, snapshot, time, watermark),) = call(lake, f"create_tag_from_timestamp('t', 'b', {moment})")
    assert (name, time, watermark) == (
        "b",
        lake.table("t").at(tag="b").snapshots()[int(str(snapshot)) - 1].time_millis,
        None,
    )
    with pytest.raises(NotFound, match="from 99999999999999"):
        call(lake, "create_tag_from_timestamp('t', 'c', 99999999999999)")
    with pytest.raises(NotFound, match="watermark"):
        call(lake, "create_tag_from_watermark('t', 'c', 5)")
    call(lake, "replace_tag(table => 't', tag => 'a', snapshot => 3, time_retained => '2 d')")
    call(lake, "rename_tag('t', 'a', 'z')")
    assert {tag.name: tag.snapshot.id for tag in lake.table("t").tags(detail=True)} == {"z": 3, "b": snapshot}
    assert call(lake, "expire_tags('t')") == [("No expired tags.",)]
    call(lake, "delete_tag('t', 'z,b')")
    assert lake.table("t").tags() == []


def test_branches(lake: lakebed.Lake) -> None:
    """Branches are made, written, renamed, followed and deleted."""
    call(lake, "create_tag('t', 'a', 2)")
    assert call(lake, "create_branch('default.t', 'b', 'a')") == [(True,)]
    call(lake, "create_branch(table => 't', branch => 'b', ignoreIfExists => true)")
    lake.table("t$branch_b").write(pa.table({"k": ints(9)}))
    call(lake, "rename_branch('t', 'b', 'c')")
    assert keys(lake, "t$branch_c") == [1, 2, 9]
    assert call(lake, "fast_forward('t', 'c')") == [(True,)]
    assert keys(lake) == [1, 2, 9]
    call(lake, "create_branch('t', 'd'); CALL sys.delete_branch('t', 'c, d')")
    assert lake.table("t").branches() == []


def test_rollback(lake: lakebed.Lake) -> None:
    """To a snapshot, a tag, a time; or an old state on top of the new."""
    call(lake, "create_tag('t', 'a', 1)")
    assert call(lake, "rollback_to_as_latest(`table` => 't', tag => 'a')") == [(3, 1, 4)]
    assert keys(lake) == [1]
    assert call(lake, "rollback(table => 't', version => '3')") == [(4, 3)]
    assert keys(lake) == [1, 2, 3]
    assert call(lake, "rollback_to('t', 2)") == [(3, 2)]
    assert call(lake, "rollback(table => 't', version => 'a')") == [(2, 1)]
    moment = lake.table("t").snapshots()[0].time_millis
    assert call(lake, f"rollback_to_timestamp('t', {moment})") == [(1, 1)]
    assert keys(lake) == [1]


def test_expiry(lake: lakebed.Lake) -> None:
    """Snapshots beyond those to keep go; files of the table are no orphans."""
    assert call(lake, "expire_snapshots(table => 't', retain_max => 2, retain_min => 1)") == [(1,)]
    assert call(
        lake, "expire_snapshots(table => 't', options => 'snapshot.num-retained.max=1, snapshot.num-retained.min=1')"
    ) == [(1,)]
    assert [snapshot.id for snapshot in lake.table("t").snapshots()] == [3]
    assert call(lake, "remove_orphan_files(table => 'default.*', dry_run => true)") == [(0, 0)]
    assert call(lake, "remove_orphan_files('t', '2020-01-01 00:00:00', false, 3, 'local')") == [(0, 0)]


def test_expiry_warns_of_what_the_limit_left(lake: lakebed.Lake, caplog: pytest.LogCaptureFixture) -> None:
    """The result counts what has gone, as Paimon's does; a warning says that more is due."""
    text = "expire_snapshots(table => 't', retain_max => 1, retain_min => 1, max_deletes => 1)"
    with caplog.at_level(logging.WARNING):
        assert call(lake, text) == [(1,)]
    assert "default.t: 1 more snapshots are due" in caplog.text
    assert "max_deletes => 1" in caplog.text
    caplog.clear()
    assert call(lake, text) == [(1,)]
    assert caplog.text == ""


def test_compact(lake: lakebed.Lake) -> None:
    """Files are merged; a second time there is nothing to do, and no snapshot."""
    assert call(lake, "compact('t')") == [(True,)]
    assert len(lake.table("t").scan().files) == 1
    last = lake.table("t").snapshots()[-1].id
    assert call(lake, "compact_database(including_tables => 'default.t')") == [("1 tables compacted",)]
    assert lake.table("t").snapshots()[-1].id == last
    assert call(lake, "compact_manifest('t')") == [(True,)]
    assert keys(lake) == [1, 2, 3]


@pytest.fixture
def parted(warehouse: Warehouse) -> lakebed.Lake:
    """A partitioned table, each partition with two files."""
    warehouse.lake.sql(
        "CREATE TABLE t (k INT, p STRING, h INT, PRIMARY KEY (k, p, h) NOT ENFORCED) PARTITIONED BY (p, h)"
        " WITH ('bucket' = '1', 'write-only' = 'true')"
    )
    for value in (1, 2):
        rows = pa.table({"k": ints(value, value, value), "p": ["a", "a", "b"], "h": ints(1, 2, 1)})
        warehouse.lake.table("t").write(rows)
    return warehouse.lake


def files(lake: lakebed.Lake) -> dict[str, int]:
    """How many files each partition has."""
    return {partition.name: partition.file_count for partition in lake.table("t").partitions()}


CHOICES = [
    ("partitions => 'p=a,h=1;p=b'", {"p=a/h=1", "p=b/h=1"}),
    ("partitions => 'p = \"a\"'", {"p=a/h=1", "p=a/h=2"}),
    ("where => \"p = 'a' and h >= 2\"", {"p=a/h=2"}),
    ("where => 'h = 7'", set()),
    ("partition_idle_time => '1 d'", set()),
    ("compact_strategy => 'full'", {"p=a/h=1", "p=a/h=2", "p=b/h=1"}),
    ("options => 'target-file-size=1 mb'", {"p=a/h=1", "p=a/h=2", "p=b/h=1"}),
]


@pytest.mark.parametrize(("arguments", "compacted"), CHOICES)
def test_compact_some_partitions(parted: lakebed.Lake, arguments: str, compacted: set[str]) -> None:
    """Only partitions that the arguments choose are rewritten."""
    call(parted, f"compact(table => 't', {arguments})")
    assert {name for name, count in files(parted).items() if count == 1} == compacted


def test_rescale_some_partitions(parted: lakebed.Lake) -> None:
    """Partitions get another number of buckets."""
    parted.sql("ALTER TABLE t SET ('bucket' = '3')")
    assert call(parted, "rescale(table => 't', bucket_num => 3, partitions => 'p=\"b\"')") == [(True,)]
    call(parted, "rescale(table => 't', `where` => 'h = 2')")
    call(parted, "rescale(table => 't', bucket_num => 3, partitions => 'p=c')")
    buckets = {partition.name: partition.total_buckets for partition in parted.table("t").partitions()}
    assert buckets == {"p=a/h=1": 1, "p=a/h=2": 3, "p=b/h=1": 3}
    assert keys(parted) == [1, 1, 1, 2, 2, 2]


def test_partitions(warehouse: Warehouse) -> None:
    """Partitions expire by their values, are dropped, and are marked as done."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (k INT, dt STRING) PARTITIONED BY (dt)")
    lake.table("t").write(pa.table({"k": ints(1, 2, 3), "dt": ["2020-01-01", "2020-01-02", "9999-01-01"]}))
    expire = (
        "expire_partitions(table => 't', expiration_time => '1 d', timestamp_formatter => 'yyyy-MM-dd',"
        " max_expires => 1)"
    )
    assert call(lake, expire) == [("dt=2020-01-01",)]
    assert call(lake, "drop_partition('t', 'dt=2020-01-02', 'dt=nope')") == [(True,)]
    assert call(lake, expire) == [("No expired partitions.",)]
    assert call(lake, "mark_partition_done(table => 't', partitions => 'dt=9999-01-01')") == [(True,)]
    assert keys(lake) == [3]


def test_consumers(lake: lakebed.Lake) -> None:
    """Consumers are set to a snapshot, and cleared."""
    call(lake, "reset_consumer(table => 't', consumerId => 'me', nextSnapshotId => 2)")
    call(lake, "reset_consumer('t', 'you', 3)")
    assert {consumer.id: consumer.next_snapshot for consumer in lake.table("t").consumers()} == {
        "me": 2,
        "you": 3,
    }
    call(lake, "clear_consumers(table => 't', including_consumers => 'm.*')")
    call(lake, "reset_consumer('t', 'you')")
    assert lake.table("t").consumers() == []


def test_defaults_of_columns(warehouse: Warehouse) -> None:
    """A default is set as text; one that the type does not hold is refused."""
    warehouse.lake.sql("CREATE TABLE t (a INT, b INT)")
    call(warehouse.lake, "alter_column_default_value('t', 'b', '5')")
    assert warehouse.lake.table("t").schema.fields[1].default_value == "5"
    with warehouse.refuses(InvalidSchema, "'ddd'"):
        call(warehouse.lake, "alter_column_default_value('t', 'b', 'ddd')")


@pytest.mark.parametrize("strategy", ["order", "zorder"])
def test_sort_compact(warehouse: Warehouse, strategy: str) -> None:
    """Rows of each partition come back in order, none lost."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, b INT, p STRING) PARTITIONED BY (p)")
    for part in ("x", "y"):
        lake.table("t").write(pa.table({"a": ints(3, 1, None, 2), "b": ints(1, 1, 1, 0), "p": [part] * 4}))
    call(lake, f"compact(table => 't', order_strategy => '{strategy}', order_by => 'a', partitions => 'p=x')")
    table = lake.table("t")
    assert sorted(map(str, table.to_arrow(filter=[("p", "=", "x")])["a"].to_pylist())) == ["1", "2", "3", "None"]
    found = [value for value in table.to_arrow(filter=[("p", "=", "x")])["a"].to_pylist() if value is not None]
    assert found == [1, 2, 3]
    assert table.to_arrow(filter=[("p", "=", "y")])["a"].to_pylist() == [3, 1, None, 2]
    with warehouse.refuses(InvalidArgument, "`p`"):
        call(lake, f"compact(table => 't', order_strategy => '{strategy}', order_by => 'p')")
    with warehouse.refuses(NotFound, "`c`"):
        call(lake, f"compact(table => 't', order_strategy => '{strategy}', order_by => 'c')")


def test_z_order_keeps_neighbours_together(warehouse: Warehouse) -> None:
    """After z-ordering by two columns, a square of both lies in one run of rows."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, b INT)")
    side = range(16)
    pairs = [(a, b) for a in side for b in side]
    lake.table("t").write(pa.table({"a": ints(*[a for a, _ in pairs]), "b": ints(*[b for _, b in pairs])}))
    call(lake, "compact(table => 't', order_strategy => 'zorder', order_by => 'a,b')")
    rows = lake.table("t").to_arrow().to_pylist()
    places = [i for i, row in enumerate(rows) if row["a"] < 8 and row["b"] < 8]
    assert places == list(range(64))


def test_merge_into_is_a_merge_statement() -> None:
    """Flink's procedure says the same as the statement."""
    text = merge_text(
        "default.T",
        {
            "target_alias": "x",
            "source_table": "default.S",
            "merge_condition": "x.id = S.order_id",
            "matched_upsert_condition": "x.price > 1",
            "matched_upsert_setting": "price = x.price + 20",
            "matched_delete_condition": "S.gone",
            "not_matched_insert_values": "S.order_id, 1",
            "not_matched_by_source_delete_condition": "TRUE",
        },
    )
    assert text == (
        "MERGE INTO default.T AS x USING default.S ON x.id = S.order_id"
        " WHEN MATCHED AND (x.price > 1) THEN UPDATE SET price = x.price + 20 WHEN MATCHED AND (S.gone) THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT VALUES (S.order_id, 1) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert len(parse(text)) == 1
    with pytest.raises(InvalidArgument, match="nothing"):
        merge_text("t", {"source_table": "s", "merge_condition": "a"})


def test_texts_of_arguments() -> None:
    """Partitions and options in texts."""
    assert parse_specs("dt=2024, h = '1' ;dt=\"x y\"") == [{"dt": "2024", "h": "1"}, {"dt": "x y"}]
    assert table_options(" a.b = c, d=e=f ") == {"a.b": "c", "d": "e=f"}
    with pytest.raises(InvalidArgument, match="can not be read"):
        parse_specs("dt")


def test_every_procedure_says_how_it_is_called() -> None:
    """Usages name the required arguments."""
    assert {procedure.name for procedure in PROCEDURES.values()} == set(PROCEDURES)
    assert PROCEDURES["create_tag"].usage().startswith("CALL sys.create_tag(table => ..., tag => ...)")


def test_the_page_about_sql_names_every_procedure() -> None:
    """docs/reference/sql.md lists each procedure with its arguments and what it returns."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "sql.md").read_text()
    rows = {}
    for line in page.split("## Procedures")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        for name in re.findall(r"`(\w+)`", cells[0]) if len(cells) == 3 else ():
            rows[name] = cells[1:]
    assert set(rows) == set(PROCEDURES)
    for name, procedure in PROCEDURES.items():
        shown = [part.split()[0] for part in re.sub(r"\([^)]*\)", "", rows[name][0]).split(",") if part.strip(" .")]
        if not procedure.varargs:
            assert shown == [parameter.name for parameter in procedure.parameters], name
        assert rows[name][1].split(", ") == list(procedure.columns), name


def test_purge_files(lake: lakebed.Lake) -> None:
    """All rows, tags and old snapshots go."""
    call(lake, "create_tag('t', 'a')")
    assert call(lake, "purge_files(table => 't')") == [("Success",)]
    assert keys(lake) == []
    assert lake.table("t").tags() == []
    assert len(lake.table("t").snapshots()) == 1


def test_expire_changelogs(lake: lakebed.Lake) -> None:
    """The result is a text, as Flink's is: how many went, or that all did."""
    lake.sql("ALTER TABLE t SET ('changelog.num-retained.min' = '20', 'changelog.num-retained.max' = '20')")
    call(lake, "expire_snapshots(table => 't', retain_max => 1, retain_min => 1)")
    assert call(lake, "expire_changelogs(`table` => 't', retain_max => 2, retain_min => 1)") == [("1",)]
    assert call(lake, "expire_changelogs(`table` => 't', delete_all => true)") == [
        ("Delete all separated changelogs success.",)
    ]
    assert lake.table("t")._opened.context.stores.changelogs.ids() == []


def test_rewrite_file_index(lake: lakebed.Lake) -> None:
    """It says how many partitions and files have got other indexes."""
    lake.sql("ALTER TABLE t SET ('file-index.bloom-filter.columns' = 'k')")
    assert call(lake, "rewrite_file_index('t')") == [(1, 3)]
    assert call(lake, "rewrite_file_index(table => 't')") == [(0, 0)]
    assert keys(lake) == [1, 2, 3]


def test_reassign_row_id(lake: lakebed.Lake) -> None:
    """It says in words what was done, or why nothing was."""
    options = "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"
    lake.sql(f"CREATE TABLE r (k INT, p STRING) PARTITIONED BY (p) WITH ({options})")
    for part in ("a", "b", "a"):
        lake.table("r").write(pa.table({"k": ints(1), "p": [part]}))
    (told,) = call(lake, "reassign_row_id(`table` => 'r', partitions => 'p=b')")
    assert told[0].startswith("Skipped.")
    assert "no partition requires row-id reassignment: snapshot 3 unchanged, nextRowId=3." in told[0]
    (told,) = call(lake, "reassign_row_id('r', 'p=a')")
    assert told[0].endswith("snapshot 3 -> 4, nextRowId 3 -> 5, files=2, rows=2, indexFiles=0.")


def test_merge_branch(lake: lakebed.Lake) -> None:
    """Rows of one branch come into another; main is meant if none is named."""
    lake.sql("CREATE TABLE a (k INT)")
    lake.table("a").write(pa.table({"k": ints(1)}))
    call(lake, "create_tag('a', 'x'); CALL sys.create_branch('a', 'b', 'x')")
    lake.table("a").write(pa.table({"k": ints(2)}))
    lake.table("a$branch_b").write(pa.table({"k": ints(9)}))
    assert call(lake, "merge_branch(`table` => 'a', source_branch => 'b')") == [(True,)]
    assert keys(lake, "a") == [1, 2, 9]
    assert call(lake, "merge_branch('a', 'main', 'b')") == [(True,)]
    assert keys(lake, "a$branch_b") == [1, 2, 9]
