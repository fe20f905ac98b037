"""CREATE, ALTER and DROP carried out: what tables are like afterwards."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import (
    AlreadyExists,
    InvalidArgument,
    InvalidOption,
    InvalidSchema,
    LakebedError,
    NotFound,
    Unsupported,
)


def shown(lake: lakebed.Lake, table: str) -> dict[str, str]:
    """Columns with their types."""
    return {field.name: str(field.type) for field in lake.table(table).schema.fields}


def test_create_in_flinks_spelling(warehouse: Warehouse) -> None:
    """Keys, partitions, options and comments arrive in the schema."""
    warehouse.lake.sql(
        "CREATE TABLE t (id BIGINT, name STRING COMMENT 'n', dt STRING, at TIMESTAMP(3),"
        " PRIMARY KEY (id, dt) NOT ENFORCED) COMMENT 'users' PARTITIONED BY (dt)"
        " WITH ('bucket' = '2', 'merge-engine' = 'partial-update', 'owner' = 'me')"
    )
    table = warehouse.lake.table("t")
    assert (table.primary_key, table.partition_by, table.comment) == (("id", "dt"), ("dt",), "users")
    assert shown(warehouse.lake, "t") == {
        "id": "BIGINT NOT NULL",
        "name": "STRING",
        "dt": "STRING NOT NULL",
        "at": "TIMESTAMP(3)",
    }
    assert table.options == {"bucket": "2", "merge-engine": "partial-update", "owner": "me"}
    assert table.schema.fields[1].description == "n"


def test_create_in_sparks_spelling(warehouse: Warehouse) -> None:
    """Keys come as options, partition columns with their types, TIMESTAMP is a moment."""
    warehouse.lake.sql(
        "CREATE TABLE default.t (id INT NOT NULL, at TIMESTAMP, s STRUCT<a: INT, b: STRING COMMENT 'x'>)"
        " USING paimon PARTITIONED BY (dt STRING) TBLPROPERTIES ('primary-key' = 'id,dt', 'bucket' = '1')"
    )
    table = warehouse.lake.table("t")
    assert (table.primary_key, table.partition_by) == (("id", "dt"), ("dt",))
    assert shown(warehouse.lake, "t") == {
        "id": "INT NOT NULL",
        "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "s": "ROW<`a` INT, `b` STRING>",
        "dt": "STRING NOT NULL",
    }


def test_defaults_of_columns(warehouse: Warehouse) -> None:
    """Constants are kept as text and used by writes; others are refused."""
    warehouse.lake.sql(
        "CREATE TABLE t (a INT, b INT DEFAULT -2, c STRING DEFAULT 'it''s', d DATE DEFAULT DATE '2024-01-02')"
    )
    table = warehouse.lake.table("t")
    assert [field.default_value for field in table.schema.fields] == [None, "-2", "it's", "2024-01-02"]
    with warehouse.refuses(Unsupported, "current_timestamp()", "`b`"):
        warehouse.lake.sql("CREATE TABLE u (a INT, b TIMESTAMP DEFAULT current_timestamp())")
    warehouse.lake.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 7")
    warehouse.lake.sql("ALTER TABLE t ALTER COLUMN c DROP DEFAULT")
    assert [field.default_value for field in table.schema.fields][1:3] == ["7", None]
    with warehouse.refuses(Unsupported, "`e`", "DEFAULT"):
        warehouse.lake.sql("ALTER TABLE t ADD COLUMN e INT DEFAULT 5")


def test_create_like(warehouse: Warehouse) -> None:
    """Everything but the rows is taken over; options may be added."""
    lake = warehouse.lake
    lake.sql(
        "CREATE TABLE s (a INT, b STRING COMMENT 'x', PRIMARY KEY (a) NOT ENFORCED) COMMENT 'c' WITH ('bucket' = '3')"
    )
    lake.table("s").write(pa.table({"a": ints(1), "b": ["x"]}))
    lake.sql("CREATE TABLE t LIKE s")
    assert lake.table("t").schema.fields == lake.table("s").schema.fields
    assert (lake.table("t").options, lake.table("t").primary_key, lake.table("t").comment) == (
        {"bucket": "3"},
        ("a",),
        "c",
    )
    assert lake.table("t").to_arrow().num_rows == 0
    lake.sql("CREATE TABLE u LIKE s TBLPROPERTIES ('bucket' = '5')")
    assert lake.table("u").options["bucket"] == "5"


def test_create_again(warehouse: Warehouse) -> None:
    """IF NOT EXISTS, OR REPLACE and REPLACE say what happens to the table that is there."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT)")
    lake.table("t").write(pa.table({"a": ints(1)}))
    with warehouse.refuses(AlreadyExists, "`t`"):
        lake.sql("CREATE TABLE t (b INT)")
    lake.sql("CREATE TABLE IF NOT EXISTS t (b INT)")
    assert lake.table("t").to_arrow()["a"].to_pylist() == [1]
    with warehouse.refuses(InvalidOption, "bukcet"):
        lake.sql("CREATE OR REPLACE TABLE t (b INT) WITH ('bukcet' = '1')")
    lake.sql("CREATE OR REPLACE TABLE t (b INT)")
    assert lake.table("t").to_arrow().schema.names == ["b"]
    assert lake.tables() == ["bystander", "t"]
    with warehouse.refuses(NotFound, "`nope`"):
        lake.sql("REPLACE TABLE nope (b INT)")


def test_keys_are_given_once(warehouse: Warehouse) -> None:
    """A key in a clause and as an option is a mistake."""
    with warehouse.refuses(InvalidArgument, "PARTITIONED BY", "`partition`"):
        warehouse.lake.sql("CREATE TABLE t (a INT, b STRING) PARTITIONED BY (b) WITH ('partition' = 'b')")
    with warehouse.refuses(InvalidArgument, "PRIMARY KEY", "`primary-key`"):
        warehouse.lake.sql("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('primary-key' = 'a')")


def test_connectors(warehouse: Warehouse) -> None:
    """Flink's word for a Paimon table is taken; a connector that does not exist is refused."""
    warehouse.lake.sql("CREATE TABLE t (a INT) WITH ('connector' = 'paimon', 'bucket' = '-1'); REFRESH TABLE t")
    assert warehouse.lake.table("t").options == {"bucket": "-1"}
    with warehouse.refuses(Unsupported, "mysqlcdc", "`mysql-cdc`"):
        warehouse.lake.sql("CREATE TABLE u (a INT) WITH ('connector' = 'mysqlcdc')")


def test_databases(warehouse: Warehouse) -> None:
    """Databases are made, used and dropped."""
    lake = warehouse.lake
    lake.sql("CREATE DATABASE d; CREATE DATABASE IF NOT EXISTS d; USE d; CREATE TABLE t (a INT)")
    assert (lake.current_database, lake.tables("d")) == ("d", ["t"])
    with warehouse.refuses(InvalidArgument, "`d`", "tables"):
        lake.sql("DROP DATABASE d")
    lake.sql("DROP SCHEMA d CASCADE")
    assert lake.databases() == ["default"]
    lake.sql("DROP DATABASE IF EXISTS d")
    with warehouse.refuses(NotFound, "catalog `hive`"):
        lake.sql("USE CATALOG hive")


def test_drop_and_rename(warehouse: Warehouse) -> None:
    """A renamed table stays in its database."""
    lake = warehouse.lake
    lake.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); ALTER TABLE d.t RENAME TO u")
    assert lake.tables("d") == ["u"]
    lake.sql("DROP TABLE d.u; DROP TABLE IF EXISTS d.u")
    with warehouse.refuses(NotFound, "u"):
        lake.sql("DROP TABLE d.u")
    lake.sql("ALTER TABLE IF EXISTS d.u ADD COLUMN b INT")


BEFORE = (
    "a INT NOT NULL, b BIGINT, c STRING, v ROW<x INT, y ROW<p STRING, q INT NOT NULL>>, l ARRAY<INT>,"
    " m MAP<STRING, INT>"
)

ALTERS: list[tuple[str, dict[str, str | None]]] = [
    ("ADD d DOUBLE", {"d": "DOUBLE"}),
    ("ADD COLUMNS (d INT, e STRING)", {"d": "INT", "e": "STRING"}),
    ("ADD COLUMN v.y.r BIGINT", {"v": "ROW<`x` INT, `y` ROW<`p` STRING, `q` INT NOT NULL, `r` BIGINT>>"}),
    ("ADD COLUMN v.z STRING FIRST", {"v": "ROW<`z` STRING, `x` INT, `y` ROW<`p` STRING, `q` INT NOT NULL>>"}),
    ("DROP c", {"c": None}),
    ("DROP COLUMNS b, c", {"b": None, "c": None}),
    ("DROP COLUMN v.y.p", {"v": "ROW<`x` INT, `y` ROW<`q` INT NOT NULL>>"}),
    ("DROP COLUMN IF EXISTS nope", {}),
    ("ALTER COLUMN b TYPE DOUBLE", {"b": "DOUBLE"}),
    ("MODIFY (b STRING, a INT)", {"b": "STRING", "a": "INT"}),
    ("ALTER COLUMN a DROP NOT NULL", {"a": "INT"}),
    ("ALTER COLUMN a TYPE BIGINT", {"a": "BIGINT NOT NULL"}),
    ("CHANGE COLUMN v.y.q q BIGINT", {"v": "ROW<`x` INT, `y` ROW<`p` STRING, `q` BIGINT NOT NULL>>"}),
    ("CHANGE COLUMN b bb DOUBLE", {"b": None, "bb": "DOUBLE"}),
    ("RENAME COLUMN v.x TO xx", {"v": "ROW<`xx` INT, `y` ROW<`p` STRING, `q` INT NOT NULL>>"}),
    (
        "MODIFY v ROW<z DOUBLE, y ROW<q INT, n STRING>, x BIGINT>",
        {"v": "ROW<`z` DOUBLE, `y` ROW<`q` INT, `n` STRING>, `x` BIGINT>"},
    ),
    ("MODIFY (l ARRAY<BIGINT>, m MAP<STRING, BIGINT>)", {"l": "ARRAY<BIGINT>", "m": "MAP<STRING, BIGINT>"}),
]


@pytest.mark.parametrize(("action", "changes"), ALTERS)
def test_alter_columns(warehouse: Warehouse, action: str, changes: dict[str, str | None]) -> None:
    """Columns, and parts of nested ones, are added, dropped, renamed and retyped."""
    warehouse.lake.sql(f"CREATE TABLE t ({BEFORE})")
    before = shown(warehouse.lake, "t")
    warehouse.lake.sql(f"ALTER TABLE t {action}")
    after = {name: kind for name, kind in {**before, **changes}.items() if kind is not None}
    assert shown(warehouse.lake, "t") == after


def test_members_keep_their_ids(warehouse: Warehouse) -> None:
    """A ROW that is written anew keeps the values of members that stay, and gives back none of those that went."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (k INT, v ROW<a INT, b STRING>)")
    lake.table("t").write(
        pa.table(
            {"k": ints(1), "v": pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())]))}
        )
    )
    lake.sql("ALTER TABLE t MODIFY v ROW<c DOUBLE, a BIGINT>")
    lake.sql("ALTER TABLE t MODIFY v ROW<c DOUBLE, a BIGINT, b STRING>")
    assert lake.table("t").to_arrow()["v"].to_pylist() == [{"c": None, "a": 1, "b": None}]


def test_order_and_comments(warehouse: Warehouse) -> None:
    """Columns move, and are described."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, b INT, c INT)")
    lake.sql(
        "ALTER TABLE t ALTER COLUMN c FIRST; ALTER TABLE t ALTER COLUMN a AFTER b; ALTER TABLE t ADD d INT AFTER c"
    )
    assert list(shown(lake, "t")) == ["c", "d", "b", "a"]
    lake.sql("ALTER TABLE t ALTER COLUMN d COMMENT 'new'; COMMENT ON TABLE t IS 'all'")
    assert (lake.table("t").schema.fields[1].description, lake.table("t").comment) == ("new", "all")
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('comment' = 'some')")
    assert lake.table("t").comment == "some"
    with warehouse.refuses(InvalidArgument, "`c`", "first"):
        lake.sql("ALTER TABLE t ALTER COLUMN c FIRST")


def test_options(warehouse: Warehouse) -> None:
    """Options are set and taken away in both spellings; keys do not change."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('bucket' = '1')")
    lake.sql("ALTER TABLE t SET ('snapshot.time-retained' = '5 h'); ALTER TABLE t SET TBLPROPERTIES ('team'='x')")
    assert lake.table("t").options == {"bucket": "1", "snapshot.time-retained": "5 h", "team": "x"}
    lake.sql("ALTER TABLE t RESET ('snapshot.time-retained'); ALTER TABLE t UNSET TBLPROPERTIES ('team', 'nope')")
    assert lake.table("t").options == {"bucket": "1"}
    with warehouse.refuses(NotFound, "`nope`"):
        lake.sql("ALTER TABLE t RESET ('nope')")
    with warehouse.refuses(InvalidSchema, "primary-key"):
        lake.sql("ALTER TABLE t SET ('primary-key' = 'a')")
    with warehouse.refuses(InvalidSchema, "primary-key"):
        lake.sql("ALTER TABLE t UNSET TBLPROPERTIES ('primary-key')")
    with warehouse.refuses(InvalidOption, "did you mean `bucket`?"):
        lake.sql("ALTER TABLE t SET ('bukcet' = '2')")


def test_keys_of_empty_tables(warehouse: Warehouse) -> None:
    """As long as nothing is written a table may get a primary key, or lose it."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT, b INT)")
    lake.sql("ALTER TABLE t SET ('primary-key' = 'a', 'bucket' = '1', 'merge-engine' = 'first-row')")
    assert lake.table("t").primary_key == ("a",)
    lake.sql("CREATE TABLE u (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('bucket' = '1', 'bucket-key' = 'a')")
    lake.sql("ALTER TABLE u DROP PRIMARY KEY")
    assert lake.table("u").primary_key == ()
    lake.table("t").write(pa.table({"a": ints(1), "b": ints(1)}))
    with warehouse.refuses(InvalidSchema, "has data"):
        lake.sql("ALTER TABLE t DROP PRIMARY KEY")
    with warehouse.refuses(InvalidSchema, "no primary key"):
        lake.sql("ALTER TABLE u DROP PRIMARY KEY")


REFUSED: list[tuple[str, type[LakebedError], str]] = [
    ("ADD a INT", AlreadyExists, "`a`"),
    ("ADD x INT NOT NULL", InvalidSchema, "NOT NULL"),
    ("DROP nope", NotFound, "`nope`"),
    ("RENAME a TO b", AlreadyExists, "`b`"),
    ("RENAME nope TO x", NotFound, "`nope`"),
    ("MODIFY v INT", InvalidSchema, "`v`"),
    ("MODIFY b BIGINT NOT NULL", InvalidSchema, "NOT NULL"),
    ("MODIFY l ARRAY<INT NOT NULL>", InvalidSchema, "NOT NULL"),
    ("ALTER COLUMN b AFTER b", InvalidSchema, "itself"),
    ("ALTER COLUMN v.nope TYPE INT", NotFound, "`v.nope`"),
    ("ADD PARTITION (a = 1)", InvalidArgument, "not partitioned"),
    ("DROP PARTITION (a = 1)", InvalidArgument, "not partitioned"),
]


@pytest.mark.parametrize(("action", "kind", "says"), REFUSED)
def test_refused_alterations(warehouse: Warehouse, action: str, kind: type[LakebedError], says: str) -> None:
    """What can not be done is said with the column's name, and nothing changes."""
    warehouse.lake.sql(f"CREATE TABLE t ({BEFORE})")
    with warehouse.refuses(kind, says):
        warehouse.lake.sql(f"ALTER TABLE t {action}")


@pytest.fixture
def parted(warehouse: Warehouse) -> Warehouse:
    """A table with two partition columns and three partitions."""
    warehouse.lake.sql("CREATE TABLE t (v INT, p STRING, q INT) PARTITIONED BY (p, q)")
    rows = pa.table({"v": ints(1, 2, 3, 4), "p": ["a", "a", "b", None], "q": ints(1, 2, 1, 1)})
    warehouse.lake.table("t").write(rows)
    return warehouse


def values(lake: lakebed.Lake) -> list[int]:
    """The values that are left."""
    return sorted(lake.table("t").to_arrow()["v"].to_pylist())


def test_truncate(parted: Warehouse) -> None:
    """A partition, one without a value, those with a value of any column, or all rows go."""
    parted.lake.sql("TRUNCATE TABLE t PARTITION (p = 'a', q = 2)")
    assert values(parted.lake) == [1, 3, 4]
    parted.lake.sql("TRUNCATE TABLE t PARTITION (p = null)")
    assert values(parted.lake) == [1, 3]
    parted.lake.table("t").write(pa.table({"v": ints(5), "p": ["c"], "q": ints(7)}))
    parted.lake.sql("TRUNCATE TABLE t PARTITION (Q = 1)")
    assert values(parted.lake) == [5]
    parted.lake.sql("TRUNCATE TABLE t")
    assert values(parted.lake) == []


def test_drop_partitions(parted: Warehouse) -> None:
    """Partitions are named by their first columns; one named in full has to exist."""
    parted.lake.sql("ALTER TABLE t DROP PARTITION (p = 'a', q = 2), PARTITION (p = 'b')")
    assert values(parted.lake) == [1, 4]
    parted.lake.sql("ALTER TABLE t DROP PARTITION (p = 'gone')")
    parted.lake.sql("ALTER TABLE t DROP IF EXISTS PARTITION (p = 'a', q = 9)")
    with parted.refuses(NotFound, "p=a, q=9"):
        parted.lake.sql("ALTER TABLE t DROP PARTITION (p = 'a', q = 1), PARTITION (p = 'a', q = 9)")
    with parted.refuses(InvalidArgument, "`p`"):
        parted.lake.sql("ALTER TABLE t DROP PARTITION (q = 1)")
    with parted.refuses(NotFound, "`x`"):
        parted.lake.sql("ALTER TABLE t DROP PARTITION (x = 1)")


def test_tags(warehouse: Warehouse) -> None:
    """All forms of tag statements."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (a INT)")
    for value in (1, 2):
        lake.table("t").write(pa.table({"a": ints(value)}))
    lake.sql("ALTER TABLE t CREATE TAG `x-1` AS OF VERSION 1; ALTER TABLE t CREATE TAG IF NOT EXISTS `x-1`")
    assert lake.table("t").at(tag="x-1").to_arrow()["a"].to_pylist() == [1]
    with warehouse.refuses(AlreadyExists, "x-1"):
        lake.sql("ALTER TABLE t CREATE TAG `x-1`")
    lake.sql("ALTER TABLE t REPLACE TAG `x-1` AS OF VERSION 2 RETAIN 1 HOURS; ALTER TABLE t CREATE OR REPLACE TAG y")
    assert [(tag.name, tag.snapshot.id) for tag in lake.table("t").tags(detail=True)] == [("x-1", 2), ("y", 2)]
    lake.sql(
        "ALTER TABLE t RENAME TAG y TO z; ALTER TABLE t DELETE TAG IF EXISTS nope; ALTER TABLE t DELETE TAG `x-1, z`"
    )
    assert lake.table("t").tags() == []
    with warehouse.refuses(NotFound, "nope"):
        lake.sql("ALTER TABLE t REPLACE TAG nope")
