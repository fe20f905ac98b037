"""Results that need no Spark: they look like a DataFrame, and start one only when they must."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from lakebed.errors import MissingDependency
from lakebed.sql.result import LazyResult, SmallResult, drawn

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int64()), ("ok", pa.bool_())])
ROWS = [("a", 1, True), ("b", None, False), ("c", 3, None)]


class FakeSpark:
    """Counts how often a real DataFrame is made."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, Any]] = []

    def createDataFrame(self, rows: Any, schema: Any) -> Any:  # noqa: N802 - Spark's name
        """What a session would make."""
        self.made.append((rows, schema))
        return "a frame with a join method"


def never() -> Any:
    """A session that must not be asked for."""
    raise AssertionError("Spark was started")


def test_rows_without_spark() -> None:
    """Rows, counts and columns come without a session."""
    found = SmallResult(SCHEMA, ROWS, never)
    row = Row("name", "n", "ok")
    assert found.collect() == [row(*values) for values in ROWS]
    assert found.collect()[0].name == "a"
    assert found.count() == 3
    assert not found.isEmpty()
    assert found.columns == ["name", "n", "ok"]
    assert found.first() == row("a", 1, True)
    assert found.head() == row("a", 1, True)
    assert found.head(2) == found.take(2) == found.collect()[:2]
    assert found.tail(1) == found.collect()[2:]
    assert list(found.toLocalIterator()) == found.collect()
    assert found.toArrow() == pa.table([pa.array(column) for column in zip(*ROWS, strict=True)], schema=SCHEMA)
    assert found.toPandas()["name"].tolist() == ["a", "b", "c"]
    assert found.dtypes == [("name", "string"), ("n", "bigint"), ("ok", "boolean")]
    assert found.schema.simpleString() == "struct<name:string,n:bigint,ok:boolean>"
    assert repr(found) == "DataFrame[name: string, n: bigint, ok: boolean]"


def test_empty() -> None:
    """No rows, or not even columns, is a result too."""
    assert SmallResult(SCHEMA, [], never).first() is None
    assert SmallResult(SCHEMA, [], never).toArrow().num_rows == 0
    nothing = SmallResult(pa.schema([]), [], never)
    assert (nothing.collect(), nothing.columns, nothing.toArrow().num_columns) == ([], [], 0)


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    """The table that Spark draws."""
    SmallResult(SCHEMA, [*ROWS, ("x" * 30, 4, True)], never).show()
    assert capsys.readouterr().out == (
        "+--------------------+----+-----+\n"
        "|                name|   n|   ok|\n"
        "+--------------------+----+-----+\n"
        "|                   a|   1| true|\n"
        "|                   b|NULL|false|\n"
        "|                   c|   3| NULL|\n"
        "|xxxxxxxxxxxxxxxxx...|   4| true|\n"
        "+--------------------+----+-----+\n\n"
    )
    SmallResult(SCHEMA, ROWS, never).show(1, truncate=False)
    assert capsys.readouterr().out == (
        "+----+---+----+\n|name|n  |ok  |\n+----+---+----+\n|a   |1  |true|\n+----+---+----+\n"
        "only showing top 1 rows\n\n"
    )
    SmallResult(SCHEMA, ROWS, never).printSchema()
    assert " |-- n: long (nullable = true)" in capsys.readouterr().out


def test_moments_are_shown_by_the_clock_of_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    """Moments are printed, and given to pandas, as Spark does it: times of the session's zone, without an offset."""
    noon = datetime(2024, 6, 1, 12, 0, 0, 500000, tzinfo=UTC)
    table = pa.table({"at": pa.array([noon], pa.timestamp("us", "UTC")), "n": pa.array([noon.replace(tzinfo=None)])})
    found = LazyResult(table.schema, lambda: table, never, "Asia/Tokyo")
    found.show(truncate=False)
    assert "|2024-06-01 21:00:00.5|2024-06-01 12:00:00.5|" in capsys.readouterr().out
    shown = found.toPandas()
    assert shown["at"].tolist() == [datetime(2024, 6, 1, 21, 0, 0, 500000)]
    assert shown["n"].tolist() == [noon.replace(tzinfo=None)]
    assert found.toArrow() == table
    assert "12:00:00.500000+00:00" in drawn(["at"], [[noon]], 0, zone="Nowhere/At_All")


def test_nested_values_are_shown_as_spark_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Lists, structs, maps and bytes are printed in Spark's words, not in Python's."""
    kinds = {
        "l": pa.list_(pa.string()),
        "s": pa.struct([("a", pa.int32()), ("b", pa.bool_())]),
        "m": pa.map_(pa.string(), pa.int32()),
        "b": pa.binary(),
    }
    values = [["x", None], {"a": 1, "b": True}, [("k", 1)], b"\x01\xff"]
    table = pa.table([pa.array([value], kind) for value, kind in zip(values, kinds.values(), strict=True)], list(kinds))
    LazyResult(table.schema, lambda: table, never).show()
    assert "|[x, NULL]|{1, true}|{k -> 1}|[01 FF]|" in capsys.readouterr().out


def test_schema_is_printed_as_spark_does(capsys: pytest.CaptureFixture[str]) -> None:
    """The tree has Spark's names of types, what may be null, and members."""
    members = pa.struct([("x", pa.int32())])
    SmallResult(pa.schema([pa.field("id", pa.int64(), nullable=False), ("r", members)]), [], never).printSchema()
    assert capsys.readouterr().out == (
        "root\n |-- id: long (nullable = false)\n |-- r: struct (nullable = true)\n"
        " |    |-- x: integer (nullable = true)\n\n"
    )


def test_anything_else_is_a_real_frame() -> None:
    """Other attributes are those of a DataFrame, which is made once."""
    spark = FakeSpark()
    found = SmallResult(SCHEMA, ROWS, lambda: spark)
    assert found.join(["x", "y"]) == "xa frame with a join methody"
    assert found.replace("frame", "text") == "a text with a join method"
    assert [rows for rows, _ in spark.made] == [ROWS]
    with pytest.raises(AttributeError):
        _ = found.__no_such_protocol__


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyspark is missing, rows of its kind are, too; Arrow is not."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    found = SmallResult(SCHEMA, ROWS, never)
    with pytest.raises(MissingDependency, match="toArrow"):
        found.collect()
    assert found.toArrow().num_rows == 3


def test_printing_never_needs_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a notebook asks of a result starts no Spark, and works without pyspark: the statement was carried out."""
    found = SmallResult(SCHEMA, ROWS, never)
    for name in ("_ipython_canary_method_should_not_exist_", "_ipython_display_", "_repr_html_", "_repr_mimebundle_"):
        assert not hasattr(found, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert repr(found) == "DataFrame[name: string, n: int64, ok: bool]"
    assert repr(SmallResult(pa.schema([]), [], never)) == "DataFrame[]"


@pytest.mark.parametrize(
    ("name", "hint"), [("df", "toPandas()"), ("fetchall", "collect()"), ("cuont", "did you mean `count`?")]
)
def test_members_that_a_dataframe_has_not(name: str, hint: str) -> None:
    """Words of other libraries are answered with the one to write, and no session is started for it."""
    with pytest.raises(AttributeError, match=f"(?s)no attribute `{name}`.*{re.escape(hint)}"):
        getattr(SmallResult(SCHEMA, ROWS, never), name)
    with pytest.raises(AssertionError, match="Spark was started"):
        SmallResult(SCHEMA, ROWS, never).NAME  # noqa: B018 - a column is one
