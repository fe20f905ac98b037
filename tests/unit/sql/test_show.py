"""SHOW, DESCRIBE and SET: rows as Spark shows them, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.schema.table_schema import TableSchema
from lakebed.sql import statements as ds
from lakebed.sql.define.show import create_text
from lakebed.sql.define.tables import fields_of
from lakebed.sql.parse import parse
from lakebed.sql.settings import dynamic_options, write_settings
from lakebed.types import logical as lt


def rows(lake: lakebed.Lake, text: str) -> list[tuple[object, ...]]:
    """What a statement shows."""
    return [tuple(row) for row in lake.sql(text).collect()]


@pytest.fixture
def lake(warehouse: Warehouse) -> lakebed.Lake:
    """A lake with a partitioned table, a plain one and another database."""
    warehouse.lake.sql(
        "CREATE DATABASE sales; CREATE TABLE sales.orders (id INT);"
        "CREATE TABLE t (id BIGINT COMMENT 'key', v ROW<a INT, b ARRAY<STRING>>, dt STRING,"
        " PRIMARY KEY (id, dt) NOT ENFORCED) COMMENT 'about' PARTITIONED BY (dt) WITH ('bucket' = '1')"
    )
    return warehouse.lake


def test_names(lake: lakebed.Lake) -> None:
    """Databases and tables, all or those that a pattern fits."""
    assert rows(lake, "SHOW DATABASES") == [("default",), ("sales",)]
    assert rows(lake, "SHOW DATABASES LIKE 's*'") == [("sales",)]
    assert rows(lake, "SHOW TABLES") == [("default", "bystander", False), ("default", "t", False)]
    assert rows(lake, "SHOW TABLES IN sales") == [("sales", "orders", False)]
    assert rows(lake, "SHOW TABLES LIKE 'T|nope*'") == [("default", "t", False)]
    assert lake.sql("SHOW TABLES").columns == ["namespace", "tableName", "isTemporary"]
    assert rows(lake, "USE sales; SHOW CURRENT DATABASE") == [("lakebed", "sales")]
    assert rows(lake, "SHOW CATALOGS") == [("lakebed",)]
    assert ("lakebed", "sys", "compact") in rows(lake, "SHOW PROCEDURES LIKE 'comp*'")
    with pytest.raises(NotFound, match="nope"):
        lake.sql("SHOW TABLES IN nope")


def test_describe(lake: lakebed.Lake) -> None:
    """Columns with Spark's names of types; partition columns again below, then keys and what may not be null."""
    columns = [
        ("id", "bigint", "key"),
        ("v", "struct<a:int,b:array<string>>", None),
        ("dt", "string", None),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("dt", "string", None),
    ]
    constraints = [("# Constraints", "", ""), ("PRIMARY KEY", "id, dt", ""), ("NOT NULL", "id, dt", "")]
    assert rows(lake, "DESCRIBE t") == [*columns, *constraints]
    assert rows(lake, "DESCRIBE sales.orders") == [("id", "int", None)]
    extended = rows(lake, "DESC EXTENDED t")
    assert extended[: len(columns)] == columns
    assert ("Comment", "about", "") in extended
    assert ("Table Properties", "[bucket=1, comment=about, partition=dt, primary-key=id,dt]", "") in extended
    assert rows(lake, "DESCRIBE t id") == [("col_name", "id"), ("data_type", "bigint"), ("comment", "key")]
    assert rows(lake, "SHOW COLUMNS IN t") == [("id",), ("v",), ("dt",)]
    assert rows(lake, "DESCRIBE t$snapshots")[0] == ("snapshot_id", "bigint", None)
    assert rows(lake, "DESCRIBE t$binlog")[:2] == [("rowkind", "string", None), ("id", "array<bigint>", None)]
    assert ("Namespace Name", "sales") in rows(lake, "DESCRIBE DATABASE sales")
    with pytest.raises(NotFound, match="`nope`"):
        lake.sql("DESCRIBE t nope")
    with pytest.raises(NotFound, match=r"default\.tt"):
        lake.sql("DESCRIBE default.tt")


def test_options(lake: lakebed.Lake) -> None:
    """Options, with the keys among them."""
    shown = [("bucket", "1"), ("comment", "about"), ("partition", "dt"), ("primary-key", "id,dt")]
    assert rows(lake, "SHOW TBLPROPERTIES t") == shown
    assert rows(lake, "SHOW TBLPROPERTIES t ('bucket')") == [("bucket", "1")]
    with pytest.raises(NotFound, match="`bukcet`"):
        lake.sql("SHOW TBLPROPERTIES t ('bukcet')")


def test_partitions(warehouse: Warehouse) -> None:
    """Partitions with rows, all or those with some values."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE p (v INT, d DATE, h INT) PARTITIONED BY (d, h)")
    days = pa.array([19000, 19000, None], pa.int32()).cast(pa.date32())
    lake.table("p").write(pa.table({"v": ints(1, 2, 3), "d": days, "h": ints(1, 2, 1)}))
    assert rows(lake, "SHOW PARTITIONS p") == [
        ("d=2022-01-08/h=1",),
        ("d=2022-01-08/h=2",),
        ("d=null/h=1",),
    ]
    assert rows(lake, "SHOW PARTITIONS p PARTITION (d = '2022-1-8', h = '02')") == [("d=2022-01-08/h=2",)]
    assert rows(lake, "SHOW PARTITIONS p PARTITION (d = null)") == [("d=null/h=1",)]
    assert rows(lake, "SHOW PARTITIONS p PARTITION (h = 7)") == []
    with warehouse.refuses(InvalidArgument, "'x'", "`h`"):
        lake.sql("SHOW PARTITIONS p PARTITION (h = 'x')")
    with warehouse.refuses(InvalidArgument, "not partitioned"):
        lake.sql("SHOW PARTITIONS bystander")


def test_show_create_table(lake: lakebed.Lake) -> None:
    """The statement makes the same table."""
    text = str(rows(lake, "SHOW CREATE TABLE t")[0][0])
    lake.sql(text.replace("`default`.`t`", "u"))
    old, new = lake.table("t"), lake.table("u")
    assert (new.schema.fields, new.primary_key, new.partition_by) == (
        old.schema.fields,
        old.primary_key,
        old.partition_by,
    )
    assert (new.options, new.comment) == (old.options, old.comment)


ATOMS = st.sampled_from(
    [
        *["INT", "STRING", "VARCHAR(3)", "CHAR(2)", "BYTES", "BINARY(4)", "DECIMAL(12, 3)", "DATE", "TIME(3)"],
        *["BOOLEAN", "DOUBLE", "FLOAT", "TINYINT", "VARIANT", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"],
    ]
).map(lt.parse_type)
NAMES = st.text("ab `'$.\\\"é", min_size=1, max_size=4).map(lambda text: f"c{text}")


def _rows(inner: st.SearchStrategy[lt.DataType]) -> st.SearchStrategy[lt.DataType]:
    members = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0])
    return members.map(
        lambda found: lt.RowType(tuple(lt.DataField(i, name, kind) for i, (name, kind) in enumerate(found)))
    )


TYPES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map(lt.ArrayType), st.tuples(ATOMS, inner).map(lambda p: lt.MapType(*p)), _rows(inner)
    ),
    max_leaves=5,
)
COLUMNS = st.lists(
    st.tuples(
        NAMES.filter(lambda name: "." not in name), TYPES, st.booleans(), st.none() | st.text("a'\\é", max_size=4)
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda column: column[0],
)


@given(COLUMNS, st.none() | st.text("a'\\é\n", min_size=1, max_size=5))
def test_created_text_reads_back(columns: list[tuple[str, lt.DataType, bool, str | None]], comment: str | None) -> None:
    """Whatever a schema holds, its statement gives it back: names, types, comments, quotes and all."""
    fields = tuple(
        lt.DataField(i, name, lt.with_nullable(kind, nullable), description or None)
        for i, (name, kind, nullable, description) in enumerate(columns)
    )
    schema = TableSchema.create(fields, (), (), {"my.option": "it's"}, comment, 0)
    (statement,) = parse(create_text("d.t", schema))
    assert isinstance(statement, ds.CreateTable)
    again = TableSchema.create(
        fields_of(statement.columns),
        statement.partition_by,
        statement.primary_key,
        statement.options,
        statement.comment,
        0,
    )
    assert again == schema


def test_settings(warehouse: Warehouse) -> None:
    """Options of SET live in the lake, for all tables or for one; what is wrong is said at once."""
    lake = warehouse.lake
    lake.sql("SET spark.paimon.scan.snapshot-id=3; SET `spark.paimon.*.*.t.scan.tag-name`=`x`")
    assert dynamic_options(lake, "u") == {"scan.snapshot-id": "3"}
    assert dynamic_options(lake, "default.t$files") == {"scan.snapshot-id": "3", "scan.tag-name": "x"}
    assert rows(lake, "SET spark.paimon.scan.snapshot-id") == [("spark.paimon.scan.snapshot-id", "3")]
    lake.sql("RESET spark.paimon.scan.snapshot-id")
    assert dynamic_options(lake, "u") == {}
    lake.sql("SET spark.lakebed.write.merge-schema=true")
    assert dynamic_options(lake, "t") == {"scan.tag-name": "x"}
    assert write_settings(lake, "t")["write.merge-schema"]
    assert not write_settings(lake, "t")["write.merge-schema.type-widening"]
    with warehouse.refuses(InvalidOption, "did you mean"):
        lake.sql("SET spark.paimon.scan.snapshotid=3")
    with warehouse.refuses(InvalidOption, "maybe"):
        lake.sql("SET spark.paimon.write.merge-schema=maybe")
    lake.sql("RESET")
    assert lake.settings == {}


def test_settings_of_flink(warehouse: Warehouse) -> None:
    """What tunes Flink's jobs is taken with a warning; what changes the meaning of statements is refused by name."""
    lake = warehouse.lake
    with pytest.warns(UserWarning, match="`execution.checkpointing.mode` is a setting of Flink"):
        assert rows(lake, "SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE'")
    assert rows(lake, "SET 'execution.runtime-mode' = 'batch'") == [("execution.runtime-mode", "batch")]
    with warehouse.refuses(Unsupported, "streaming"):
        lake.sql("SET 'execution.runtime-mode' = 'turbo'")
    with warehouse.refuses(Unsupported, "IS NOT NULL"):
        lake.sql("SET 'table.exec.sink.not-null-enforcer' = 'DROP'")
    lake.sql("RESET 'execution.runtime-mode'")
    assert not lake.is_spark_started


def test_no_text_no_statement(warehouse: Warehouse) -> None:
    """Nothing to do is said as such."""
    for wrong in ("", " ; -- nothing", 5):
        with warehouse.refuses(InvalidArgument, "statement"):
            warehouse.lake.sql(wrong)  # type: ignore[arg-type]


def test_show_starts_nothing(tmp_path: Path) -> None:
    """Statements without rows neither start Spark nor load it."""
    code = (
        "import sys, lakebed\n"
        f"lake = lakebed.connect({str(tmp_path)!r})\n"
        "lake.sql('CREATE TABLE t (a INT)')\n"
        "assert lake.sql('SHOW TABLES').count() == 1\n"
        "assert lake.sql('DESCRIBE t').count() == 1\n"
        "assert 'pyspark' not in sys.modules, 'pyspark was loaded'\n"
        "assert not lake.is_spark_started\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
