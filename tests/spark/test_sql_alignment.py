"""Which value of a statement goes where: lists of columns, members of rows, hidden columns, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidArgument, InvalidData, LakebedError, NotFound, Unsupported

ROW = "STRUCT<x: INT, y: STRUCT<p: INT, q: INT>>"
MODE = "spark.sql.sources.partitionOverwriteMode"


def rows(lake: lakebed.Lake, name: str = "t") -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return sorted((tuple(row.values()) for row in lake.table(name).to_arrow().to_pylist()), key=repr)


@pytest.fixture
def nested(lake: lakebed.Lake) -> lakebed.Lake:
    """A table with a row in a row."""
    lake.sql(f"CREATE TABLE t (k INT, r {ROW})")
    lake.sql("INSERT INTO t VALUES (1, named_struct('x', 1, 'y', named_struct('p', 2, 'q', 3)))")
    return lake


@pytest.fixture
def mode(lake: lakebed.Lake) -> Iterator[Any]:
    """The session, whose overwrite mode is forgotten afterwards."""
    yield lake.spark.conf
    lake.spark.conf.unset(MODE)


FULL = (1, {"x": 1, "y": {"p": 2, "q": 3}})


def test_merge_inserts_each_column_once(nested: lakebed.Lake) -> None:
    """A column that is listed twice is refused, in any case, as in INSERT."""
    for columns in ("k, k", "k, K"):
        with pytest.raises(InvalidArgument, match=r"column `k` of table .* is given twice"):
            nested.sql(
                f"MERGE INTO t USING (SELECT 7 AS a) s ON t.k = s.a WHEN NOT MATCHED THEN INSERT ({columns}) "
                "VALUES (s.a, 8)"
            )
    assert rows(nested) == [FULL]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT 2, {given}",
        "INSERT INTO t BY NAME SELECT 2 AS k, {given} AS r",
        "UPDATE t SET r = {given}",
        "MERGE INTO t USING (SELECT 1 AS k, {given} AS r) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET r = s.r",
        "MERGE INTO t USING (SELECT 1 AS k, {given} AS r) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *",
        "MERGE INTO t USING (SELECT 2 AS k, {given} AS r) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO t USING (SELECT 2 AS k, {given} AS r) s ON t.k = s.k "
        "WHEN NOT MATCHED THEN INSERT (k, r) VALUES (s.k, s.r)",
    ],
)
def test_members_of_rows_are_all_given(nested: lakebed.Lake, statement: str) -> None:
    """A row without one of its members, or with one that the column has not, is refused by every statement."""
    lacking = "named_struct('x', 4, 'y', named_struct('p', 5))"
    with pytest.raises(InvalidData, match=r"column `r`\.`y` lacks member `q`"):
        nested.sql(statement.format(given=lacking))
    if " INTO t SELECT" not in statement:  # by position, names are no matter
        with pytest.raises(InvalidData, match="column `r` is given member `z`"):
            nested.sql(statement.format(given="named_struct('z', 4, 'y', named_struct('p', 5, 'q', 6))"))
    assert rows(nested) == [FULL]


def test_members_go_by_name_or_by_position_if_they_have_none(nested: lakebed.Lake) -> None:
    """Members that Spark names `col1` have no names, on any level; all others go to the members of their names."""
    nested.sql("UPDATE t SET r = struct(7, struct(8, 9))")
    assert rows(nested) == [(1, {"x": 7, "y": {"p": 8, "q": 9}})]
    nested.sql("UPDATE t SET r = named_struct('Y', struct(1, 2), 'x', 3)")
    assert rows(nested) == [(1, {"x": 3, "y": {"p": 1, "q": 2}})]
    with pytest.raises(InvalidData, match="is given member `col3`"):
        nested.sql("UPDATE t SET r = struct(1, struct(2, 3), 4)")


def test_missing_members_where_columns_may_be_missing(nested: lakebed.Lake) -> None:
    """With `write.merge-schema` they are null, and stay as they were where `*` updates."""
    nested.sql("SET spark.paimon.write.merge-schema=true")
    source = "(SELECT {k} AS k, named_struct('y', named_struct('p', 5)) AS r) s ON t.k = s.k"
    nested.sql(f"MERGE INTO t USING {source.format(k=1)} WHEN MATCHED THEN UPDATE SET *")
    assert rows(nested) == [(1, {"x": 1, "y": {"p": 5, "q": 3}})]
    nested.sql(f"MERGE INTO t USING {source.format(k=1)} WHEN MATCHED THEN UPDATE SET r = s.r")
    assert rows(nested) == [(1, {"x": None, "y": {"p": 5, "q": None}})]
    nested.sql(f"MERGE INTO t USING {source.format(k=2)} WHEN NOT MATCHED THEN INSERT *")
    assert rows(nested)[1] == (2, {"x": None, "y": {"p": 5, "q": None}})


def test_star_of_a_missing_row_keeps_what_it_does_not_give(nested: lakebed.Lake) -> None:
    """A source row that is null takes away the members that it could have given, and no others."""
    nested.sql("SET spark.paimon.write.merge-schema=true")
    null = "CAST(NULL AS STRUCT<x: INT>)"
    nested.sql(f"MERGE INTO t USING (SELECT 1 AS k, {null} AS r) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *")
    assert rows(nested) == [(1, {"x": None, "y": {"p": 2, "q": 3}})]


@pytest.mark.parametrize(
    "source", ["t", "(SELECT * FROM t)", "(SELECT * FROM t WHERE k > 0)", "(SELECT *, _ROW_ID FROM t)"]
)
def test_a_table_merged_with_itself_by_row_ids(lake: lakebed.Lake, source: str) -> None:
    """`*` of the source gives its hidden columns, too, if the statement names them; rows keep their ids."""
    lake.sql("CREATE TABLE t (k INT, n INT) TBLPROPERTIES ('row-tracking.enabled' = 'true')")
    lake.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    lake.sql(
        f"MERGE INTO t USING {source} AS s ON t._ROW_ID = s._ROW_ID "
        "WHEN MATCHED AND s._ROW_ID = 1 THEN UPDATE SET n = s.n + s._ROW_ID"
    )
    shown = [tuple(row) for row in lake.sql("SELECT *, _ROW_ID FROM t ORDER BY k").collect()]
    assert shown == [(1, 10, 0), (2, 21, 1)]


def test_hidden_columns_of_a_source_do_not_become_columns(lake: lakebed.Lake) -> None:
    """Where `*` may add columns, those that every table has hidden are none of them."""
    lake.sql("CREATE TABLE t (k INT, n INT) TBLPROPERTIES ('row-tracking.enabled' = 'true')")
    lake.sql("INSERT INTO t VALUES (1, 10)")
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT *, 5 AS extra FROM t) s ON t._ROW_ID = s._ROW_ID "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows(lake) == [(1, 10, 5)]


def test_static_overwrites_replace_the_table(lake: lakebed.Lake, mode: Any) -> None:
    """If the session says `static`, an overwrite that names no value of a partition replaces all of them."""
    lake.sql("CREATE TABLE t (k INT, p STRING) PARTITIONED BY (p)")
    for said, clause, left in (
        (None, "", [(2, "b"), (3, "a")]),
        ("static", "", [(3, "a")]),
        ("STATIC", "PARTITION (p)", [(3, "a")]),
        ("dynamic", "PARTITION (p)", [(2, "b"), (3, "a")]),
    ):
        lake.table("t").truncate()
        lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        if said is not None:
            mode.set(MODE, said)
        lake.sql(f"INSERT OVERWRITE t {clause} VALUES (3, 'a')")
        assert rows(lake) == left, (said, clause)
        lake.sql("INSERT OVERWRITE t PARTITION (p = 'a') VALUES (4)")
        assert (4, "a") in rows(lake)
        assert (3, "a") not in rows(lake)


def test_static_overwrites_in_words_of_paimon(lake: lakebed.Lake) -> None:
    """`dynamic-partition-overwrite` says the same: of the session, of a hint, of the table."""
    lake.sql("CREATE TABLE t (k INT, p STRING) PARTITIONED BY (p)")
    lake.sql("SET spark.paimon.dynamic-partition-overwrite=false")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT OVERWRITE t VALUES (3, 'a')")
    assert rows(lake) == [(3, "a")]
    lake.sql("RESET spark.paimon.dynamic-partition-overwrite")
    lake.sql("INSERT INTO t VALUES (4, 'b')")
    lake.sql("INSERT OVERWRITE t /*+ OPTIONS('dynamic-partition-overwrite' = 'false') */ VALUES (5, 'a')")
    assert rows(lake) == [(5, "a")]


def test_partitions_last_as_in_hive(lake: lakebed.Lake) -> None:
    """With the setting, values of PARTITION columns come last, unless the names of a query are those of the table."""
    lake.sql("CREATE TABLE t (k INT, dt STRING, s STRING, hr STRING) PARTITIONED BY (dt, hr)")
    lake.sql("INSERT INTO t PARTITION (dt, hr) VALUES (1, 'd', 's', 'h')")
    lake.sql("SET spark.paimon.write.hive-style-dynamic-partition.enabled=true")
    lake.sql("INSERT INTO t PARTITION (dt, hr) VALUES (2, 's', 'd', 'h')")
    lake.sql("INSERT INTO t PARTITION (dt = 'd', hr) VALUES (3, 's', 'h')")
    lake.sql("INSERT INTO t PARTITION (dt, hr) SELECT 4 AS a, 's' AS b, 'd' AS c, 'h' AS d")
    lake.sql("INSERT INTO t PARTITION (dt, hr) SELECT 5 AS k, 'd' AS dt, 's' AS s, 'h' AS hr")
    lake.sql("INSERT INTO t VALUES (6, 'd', 's', 'h')")
    assert rows(lake) == [(number, "d", "s", "h") for number in range(1, 7)]


def test_insert_if_not_exists_is_not_ignored(lake: lakebed.Lake) -> None:
    """Words that would change what is written are not read over."""
    lake.sql("CREATE TABLE t (k INT, p STRING) PARTITIONED BY (p)")
    with pytest.raises(Unsupported, match="IF NOT EXISTS"):
        lake.sql("INSERT OVERWRITE t PARTITION (p = 'a') IF NOT EXISTS VALUES (1)")


def test_the_time_zone_of_flink_is_that_of_the_session(lake: lakebed.Lake) -> None:
    """`table.local-time-zone` changes what moments look like, so it is not read over."""
    before = lake.spark.conf.get("spark.sql.session.timeZone")
    try:
        lake.sql("SET 'table.local-time-zone' = 'Asia/Shanghai'")
        assert lake.sql("SELECT current_timezone()").collect()[0][0] == "Asia/Shanghai"
        with pytest.raises(InvalidArgument, match="Nowhere"):
            lake.sql("SET 'table.local-time-zone' = 'Nowhere/At'")
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", before)


def test_replaced_by_a_query(lake: lakebed.Lake) -> None:
    """CREATE OR REPLACE TABLE AS SELECT fills the table in its place, also from rows of its own, of any time."""
    lake.sql("CREATE TABLE t (k INT, s STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2')")
    lake.sql("INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b')")
    lake.sql("CREATE OR REPLACE TABLE t TBLPROPERTIES ('bucket' = '-1') AS SELECT s, k AS n FROM t")
    assert rows(lake) == [("a", 1), ("b", 2)]
    lake.sql("REPLACE TABLE t AS SELECT * FROM t VERSION AS OF 1")
    assert rows(lake) == [(1, "a")]
    assert [tuple(row) for row in lake.sql("SELECT * FROM t VERSION AS OF 2 ORDER BY k").collect()] == [
        (1, "a"),
        (2, "b"),
    ]
    assert lake.tables() == ["t"]


def test_a_table_does_not_lose_what_it_is_replaced_by(lake: lakebed.Lake) -> None:
    """Other partitions would begin a new history: not if the rows are those of the table itself."""
    lake.sql("CREATE TABLE t (k INT, p STRING) PARTITIONED BY (p)")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(Unsupported, match="partitioned otherwise"):
        lake.sql("REPLACE TABLE t AS SELECT * FROM t WHERE p = 'a'")
    lake.sql("REPLACE TABLE t PARTITIONED BY (p) AS SELECT * FROM t WHERE p = 'a'")
    assert rows(lake) == [(1, "a")]


def test_partitions_by_any_condition(lake: lakebed.Lake) -> None:
    """Procedures take conditions on partition columns that only Spark can evaluate, such as texts against numbers."""
    lake.sql("CREATE TABLE t (k INT, dt STRING, hh INT) PARTITIONED BY (dt, hh) TBLPROPERTIES ('write-only' = 'true')")
    for _ in range(2):
        lake.sql("INSERT INTO t VALUES (1, '20221208', 15), (2, '20221208', 16), (3, '20221209', 15)")
    lake.sql("CALL sys.compact(table => 't', where => 'dt = 20221208 and hh = 15')")
    files = "SELECT `partition`, count(*) FROM `t$files` GROUP BY 1 ORDER BY 1"
    counts = [tuple(row) for row in lake.sql(files).collect()]
    assert counts == [("{20221208, 15}", 1), ("{20221208, 16}", 2), ("{20221209, 15}", 2)]
    lake.sql("CALL sys.compact(table => 't', where => \"dt LIKE '%09'\")")
    assert [row[1] for row in lake.sql(files).collect()] == [1, 2, 1]
    with pytest.raises(InvalidArgument, match="names `k`, which is not a partition column"):
        lake.sql("CALL sys.compact(table => 't', where => 'abs(k) = 1')")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_text_that_spells_a_number(lake: lakebed.Lake, ansi: str) -> None:
    """Text is stored as the number that it spells; any other text is an error and never null."""
    before = lake.spark.conf.get("spark.sql.ansi.enabled")
    lake.sql("CREATE TABLE t (k INT, d DECIMAL(5, 2), b BOOLEAN)")
    lake.sql("CREATE TABLE s (k STRING, d STRING, b STRING)")
    try:
        lake.sql(f"SET spark.sql.ansi.enabled={ansi}")
        lake.sql("INSERT INTO t VALUES ('1', '1.5', 'true'); INSERT INTO s VALUES ('2', '2.25', NULL)")
        lake.sql("INSERT INTO t SELECT * FROM s")
        assert lake.sql("SELECT k, d, b FROM t ORDER BY k").collect() == [
            (1, Decimal("1.50"), True),
            (2, Decimal("2.25"), None),
        ]
        lake.sql("INSERT INTO s VALUES ('x', '1', 'true')")
        for statement in (
            "INSERT INTO t VALUES ('x', '1', 'true')",
            "INSERT INTO t SELECT * FROM s",
            "UPDATE t SET k = 'x'",
            "MERGE INTO t USING s ON t.b IS NULL AND s.d = '1' WHEN MATCHED THEN UPDATE SET k = s.k",
        ):
            with pytest.raises(LakebedError, match="x"):
                lake.sql(statement)
        assert [row[0] for row in rows(lake)] == [1, 2]
    finally:
        lake.spark.conf.set("spark.sql.ansi.enabled", before)


def test_merge_adds_columns_that_it_sets_or_lists(lake: lakebed.Lake) -> None:
    """With `write.merge-schema`, columns that a clause names are added with the source's types, and no others."""
    lake.sql("CREATE TABLE t (k INT, s STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    lake.sql("INSERT INTO t VALUES (1, 'a')")
    source = "(SELECT {k} AS k, 5 AS n, 6 AS unused) s ON t.k = s.k"
    with pytest.raises(NotFound, match="no column `n`"):
        lake.sql(f"MERGE INTO t USING {source.format(k=1)} WHEN MATCHED THEN UPDATE SET n = s.n")
    lake.sql("SET spark.paimon.write.merge-schema=true")
    lake.sql(f"MERGE INTO t USING {source.format(k=1)} WHEN MATCHED THEN UPDATE SET n = s.n")
    lake.sql(f"MERGE INTO t USING {source.format(k=2)} WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)")
    assert rows(lake) == [(1, "a", 5), (2, None, 5)]
