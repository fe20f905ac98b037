"""`lake.query`: every kind of table gives what it holds, whichever way DuckDB gets the rows; forms, engines, errors."""

from __future__ import annotations

import datetime as dt
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.unit.table.test_lazy_outputs import KINDS
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.embedded import engine
from lakebed.embedded import tables as embedded_tables
from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported
from lakebed.expressions.spark_functions import is_known_function
from lakebed.sql.bind.syntax import functions_called

NAMES = {
    "travelling": "{} VERSION AS OF 1",
    "tagged": "{} VERSION AS OF 'then'",
    "branched": "`{}$branch_side`",
    "incremental": "{} /*+ OPTIONS('incremental-between' = '1,2') */",
    "latest_delta": "{} /*+ OPTIONS('scan.mode' = 'latest-delta') */",
    "audit_log": "{}$audit_log",
    "binlog": "{}$binlog",
    "read_optimized": "{}$ro",
    "snapshots": "{}$snapshots",
    "files": "{}$files",
    "options": "{}$options",
    "row_tracking": "{}$row_tracking",
}
"""What is written in FROM for kinds of tables that are not just a name."""
WAYS = {"at once": {}, "streamed": {"_SMALL_ROWS": -1}, "pushed": {"_SMALL_ROWS": -1, "_STREAMED_BYTES": -1}}


@pytest.fixture(scope="module")
def made(lasting: Warehouse) -> dict[str, lakebed.Table]:
    return {}


def _bag(rows: pa.Table) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(
    kind: str, way: str, lasting: Warehouse, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows, rows that match, two columns and counts are those of the table."""
    for name, value in WAYS[way].items():
        monkeypatch.setattr(embedded_tables, name, value)
    if kind not in made:
        made[kind] = KINDS[kind](lasting, f"q_{kind}")
    table, lake = made[kind], lasting.lake
    place = NAMES.get(kind, "{}").format(f"q_{kind}")
    everything = table.to_arrow()
    found = lake.query(f"SELECT * FROM {place}", engine="duckdb").arrow()
    assert found.column_names == everything.column_names
    assert _bag(found) == _bag(everything.cast(found.schema))
    assert lake.query(f"SELECT count(*) FROM {place}", engine="duckdb").fetchall() == [(everything.num_rows,)]
    if "id" in everything.column_names and "v" in everything.column_names and kind != "binlog":
        chosen = lake.query(f"SELECT v, id FROM {place} WHERE id > 22 AND v IS NOT NULL", engine="duckdb").arrow()
        wanted = everything.filter((pa.compute.field("id") > 22) & pa.compute.field("v").is_valid())
        assert _bag(chosen) == _bag(wanted.select(["v", "id"]).cast(chosen.schema))
    assert not lake.is_spark_started


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """A lake with one table of three rows."""
    found = lakebed.connect(tmp_path / "lake")
    found.create_table("t", {"id": [1, 2, 3], "s": ["a", "b", None]}, primary_key=["id"])
    return found


def test_rows_in_every_form(lake: lakebed.Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Arrow, pandas, polars, tuples, batches, streams, text and HTML show the same rows."""
    found = lake.query("SELECT id, s FROM t ORDER BY id")
    rows = [(1, "a"), (2, "b"), (3, None)]
    assert found.fetchall() == rows == list(found)
    assert found.fetchone() == rows[0]
    assert [tuple(row.values()) for row in found.arrow().to_pylist()] == rows
    assert found.df()["id"].tolist() == [1, 2, 3]
    assert found.pl().rows() == rows == pl.DataFrame(found).rows()
    assert pa.Table.from_batches(found.batches()).num_rows == pa.table(found).num_rows == 3
    assert found.columns == ["id", "s"] == pa.schema(found).names
    found.show(2)
    assert capsys.readouterr().out.splitlines()[-2:] == ["only showing top 2 rows", ""]
    assert "<td>a</td>" in found._repr_html_()
    assert found.engine == "duckdb"


def test_values_beside_the_text(lake: lakebed.Lake) -> None:
    """A query takes values by name and by place, as `lake.sql` does."""
    lake.create_table("valued", {"id": [1, 2], "name": ["a", "it's"]})
    assert lake.query("SELECT id FROM valued WHERE name = :name", {"name": "it's"}).fetchall() == [(2,)]
    assert lake.query("SELECT name FROM valued WHERE id = ?", args=[1], engine="duckdb").fetchall() == [("a",)]


def test_long_values_are_shown_whole_if_asked(lake: lakebed.Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` cuts values as Spark does, and takes the same word for not doing so."""
    found = lake.query(f"SELECT '{'x' * 30}' AS x")
    found.show()
    assert "x" * 17 + "..." in capsys.readouterr().out
    found.show(truncate=False)
    assert "x" * 30 in capsys.readouterr().out
    found.show(truncate=5)
    assert "|xx...|" in capsys.readouterr().out


def test_words_of_tables_and_other_libraries(lake: lakebed.Lake, tmp_path: Path) -> None:
    """A result says how its own words are for those that people try, and what it names is there."""
    found = lake.query("SELECT 1 AS id")
    for tried, said in {"to_pandas": "df()", "toPandas": "df()", "to_polars": "pl()", "to_arrow": "arrow()"}.items():
        with pytest.raises(AttributeError, match=re.escape(f"write result.{said}")):
            getattr(found, tried)
    with pytest.raises(AttributeError, match="did you mean `columns`"):
        _ = found.colums  # type: ignore[attr-defined]
    assert lake.create_table("kept", found).to_arrow().to_pylist() == [{"id": 1}]
    found.df().to_csv(tmp_path / "rows.csv")
    found.pl().write_csv(tmp_path / "rows.csv")


@pytest.mark.parametrize("text", ["SHOW TABLES", "EXPLAIN SELECT 1", "INSERT INTO t VALUES (1)", "SELECT 1; SELECT 2"])
def test_what_is_no_query_is_sent_to_the_other_door(lake: lakebed.Lake, text: str) -> None:
    """A statement that gives no rows of its own is refused, with the call that takes it."""
    with pytest.raises(InvalidArgument, match=r"lake\.sql"):
        lake.query(text)


def test_lengths_of_time(lake: lakebed.Lake) -> None:
    """Days and seconds leave as such; months, which no result can hold, are left to Spark."""
    found = lake.query("SELECT date'2024-01-03' - date'2024-01-01' AS d, INTERVAL 3 HOURS AS h")
    assert found.fetchall() == [(dt.timedelta(days=2), dt.timedelta(hours=3))]
    with pytest.raises(Unsupported, match="months"):
        lake.query("SELECT INTERVAL '1-2' YEAR TO MONTH", engine="duckdb")


def test_a_query_shows_the_moment_it_was_asked(lake: lakebed.Lake) -> None:
    """What is written afterwards does not show, however late the rows are computed."""
    found = lake.query("SELECT count(*) FROM t AS a JOIN t AS b USING (id)")
    lake.table("t").write([{"id": 4, "s": "later"}])
    assert found.fetchall() == [(3,)]
    assert lake.query("SELECT count(*) FROM t").fetchall() == [(4,)]


@pytest.mark.parametrize("small_rows", [50_000, -1])
def test_the_same_text_is_answered_anew(tmp_path: Path, small_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a text reads is remembered, and nothing else: rows, snapshots, columns, tables and views may change."""
    monkeypatch.setattr(embedded_tables, "_SMALL_ROWS", small_rows)  # DuckDB reads the files itself
    lake = lakebed.connect(tmp_path)
    text = "SELECT * FROM t ORDER BY 1"

    def rows() -> list[tuple[Any, ...]]:
        return lake.query(text, engine="duckdb").fetchall()

    table = lake.create_table("t", {"id": "INT", "v": "STRING"}, primary_key=["id"], options={"bucket": "1"})
    assert rows() == []
    table.write([{"id": 1, "v": "a"}])
    assert rows() == [(1, "a")]
    table.write([{"id": 1, "v": "b"}])
    assert rows() == [(1, "b")]
    table.compact(full=True)
    assert rows() == [(1, "b")]
    lake.sql("CALL sys.rollback_to('t', '1')")
    assert rows() == [(1, "a")]
    table.write([{"id": 2, "v": "c"}])  # the number of a snapshot that was seen before
    assert rows() == [(1, "a"), (2, "c")]
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
    lake.sql("ALTER TABLE t ADD COLUMN x INT")
    assert rows() == [(1, "a", None), (2, "c", None)]
    lake.sql("DROP TABLE t")
    with pytest.raises(NotFound):
        rows()
    lake.create_table("t", {"id": "BIGINT"}).write([{"id": 7}])
    assert rows() == [(7,)]
    lake.sql("CREATE TEMPORARY VIEW t AS SELECT 'view' AS name")
    assert rows() == [("view",)]
    lake.sql("DROP VIEW t")
    lake.create_database("other")
    lake.create_table("other.t", {"id": "INT"}).write([{"id": 8}])
    lake.sql("USE other")
    assert rows() == [(8,)]


def test_engines_by_name(lake: lakebed.Lake) -> None:
    """What is not proven is refused by name where the embedded engine is asked for; unknown engines are."""
    with pytest.raises(Unsupported, match="soundex"):
        lake.query("SELECT soundex(s) FROM t", engine="duckdb")
    with pytest.raises(InvalidArgument, match="spork"):
        lake.query("SELECT 1", engine="spork")
    with pytest.raises(InvalidArgument, match="one query"):
        lake.query("DROP TABLE t")
    with pytest.raises(InvalidArgument, match="nope"):
        lake.query("SELECT nope FROM t")
    with pytest.raises(InvalidData, match="zero"):
        lake.query("SELECT id / (id - 1) FROM t").arrow()


def test_select_without_a_session(lake: lakebed.Lake) -> None:
    """`lake.sql` gives what acts as a DataFrame, and starts nothing."""
    found = lake.sql("SELECT id, s FROM t WHERE id < 3 ORDER BY id")
    assert [tuple(row) for row in found.collect()] == [(1, "a"), (2, "b")]
    assert found.count() == 2
    assert found.first().id == 1
    assert found.columns == ["id", "s"]
    assert lake.sql("EXPLAIN SELECT id FROM t").collect()[0][0].startswith("engine: duckdb")
    assert not lake.is_spark_started


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """A process that queried ends without a word, and takes its directory for spilled rows along."""
    program = (
        "import lakebed, glob, tempfile\n"
        f"lake = lakebed.connect({str(tmp_path / 'lake')!r})\n"
        "lake.create_table('t', {'id': [1]})\n"
        "print(lake.query('SELECT * FROM t').fetchall())\n"
    )
    environment = {"TMPDIR": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert (done.stdout, done.stderr) == ("[(1,)]\n", "")
    assert not list(tmp_path.glob("lakebed-query-*"))


# --- counts that metadata tell, memory -------------------------------------------------------------------------------


def test_rows_are_counted_without_reading_them(tmp_path: Path) -> None:
    """`count(*)` of files that need no merge is a number of the plan; every other count is not."""
    lake = lakebed.connect(tmp_path)
    table = lake.create_table("t", {"id": [1, 2, 3], "s": ["a", "b", None]}, primary_key=["id"])
    for text, counted in (
        ("SELECT count(*) FROM t", 3),
        ("SELECT count(1) + 1 AS n FROM t", 4),
        ("SELECT * FROM (SELECT count(*), count(7) FROM t)", 3),
        ("SELECT count(*) FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */", 3),
    ):
        found = lake.query(text, engine="duckdb")
        assert "source_" not in found._choice.embedded.text(), text
        assert found.fetchall()[0][0] == counted
    for text, counted in (
        ("SELECT count(s) FROM t", 2),
        ("SELECT count(DISTINCT 1) FROM t", 1),
        ("SELECT count(*) FROM t WHERE id > 1", 2),
        ("SELECT count(*) FILTER (WHERE id > 1) FROM t", 2),
        ("SELECT id, count(*) FROM t GROUP BY id ORDER BY id", 1),
        ("SELECT count(NULL) FROM t", 0),
    ):
        found = lake.query(text, engine="duckdb")
        assert "source_" in found._choice.embedded.text(), text
        assert found.fetchall()[0][0] == counted
    table.write(pa.table({"id": [2], "s": ["c"]}))
    assert lake.query("SELECT count(*) FROM t", engine="duckdb").fetchall() == [(3,)]


def test_extremes_that_metadata_tell(tmp_path: Path) -> None:
    """Least and greatest numbers and days, and how many are null, of whole files; not once rows of them are gone."""
    lake = lakebed.connect(tmp_path)
    days = [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)]
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([None, -5, None], pa.int32()), "d": days})
    rows = rows.append_column("s", pa.array(["a", "b", None])).append_column("x", pa.array([1.0, math.nan, 0.0]))
    table = lake.create_table("t", rows, options={"deletion-vectors.enabled": "true", "bucket": "-1"})
    table.write(rows.slice(1, 1).set_column(0, "id", pa.array([9], pa.int64())))
    lake.sql("ALTER TABLE t ADD COLUMN m SMALLINT")
    asked = "SELECT {} FROM t"
    for told, what in (
        (True, "min(id), max(id), count(*)"),
        (True, "min(n), max(n), count(n)"),
        (True, "min(d), max(d), count(d), count(1)"),
        (False, "max(m), count(m)"),  # no file has it
        (False, "max(s)"),
        (False, "max(x)"),
        (False, "max(id + 1)"),
        (True, "max(DISTINCT id)"),
        (False, "max(id) FILTER (WHERE n < 0)"),
        (False, "id, max(n) FROM t GROUP BY id ORDER BY id --"),
    ):
        found = lake.query(asked.format(what), engine="duckdb")
        plain = lake.query(asked.format(what).replace("FROM t", "FROM t WHERE id > 0"), engine="duckdb")
        assert ("source_" not in found._choice.embedded.text()) == told, what
        assert found.schema == plain.schema
        assert repr(found.fetchall()) == repr(plain.fetchall()), what
    lake.sql("DELETE FROM t WHERE id = 9")
    assert lake.query("SELECT max(id), count(*) FROM t", engine="duckdb").fetchall() == [(3, 3)]
    keyed = lake.create_table("k", {"id": [1, 2, 3], "n": [5, 6, 7]}, primary_key=["id"])
    assert lake.query("SELECT max(id), min(n) FROM k", engine="duckdb").fetchall() == [(3, 5)]
    keyed.write(pa.table({"id": [1], "n": [8]}))
    assert lake.query("SELECT max(id), min(n) FROM k", engine="duckdb").fetchall() == [(3, 6)]
    lake.sql("DELETE FROM k WHERE id = 3")
    assert lake.query("SELECT max(id), max(n) FROM k", engine="duckdb").fetchall() == [(2, 8)]
    keyed.truncate()
    assert lake.query("SELECT max(id), min(n), count(n) FROM k", engine="duckdb").fetchall() == [(None, None, 0)]


def test_extremes_of_columns_that_no_file_stores(tmp_path: Path) -> None:
    """Row ids, numbers and places of rows are read, or made, as in any other query."""
    lake = lakebed.connect(tmp_path)
    lake.create_table("t", {"id": [1, 2, 3]}, options={"row-tracking.enabled": "true"})
    lake.create_table("k", {"id": [1, 2, 3]}, primary_key=["id"])
    for text, expected in (
        ("SELECT max(_ROW_ID), max(id) FROM t", (2, 3)),
        ("SELECT min(_SEQUENCE_NUMBER) FROM t", (1,)),
        ("SELECT max(_ROW_ID) FROM `t$row_tracking`", (2,)),
        ("SELECT count(__paimon_row_index) FROM t", (3,)),
        ("SELECT max(__paimon_bucket), max(id) FROM k", (0, 3)),
    ):
        assert lake.query(text, engine="duckdb").fetchall() == [expected], text


@pytest.mark.parametrize(("bound", "told"), [("2 gb", None), ("much", "a unit"), ("1 mb", "at least 64 mb")])
def test_the_memory_of_queries_can_be_bounded(
    bound: str, told: str | None, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable sets DuckDB's limit; what can not be read is told by the variable's name."""
    monkeypatch.setenv(engine.MEMORY, bound)
    monkeypatch.setattr(engine, "_database", None)  # another one is opened, and forgotten afterwards
    if told is None:
        lake.query("SELECT s FROM t").fetchall()
        shown = engine._database.handle.execute("SELECT current_setting('memory_limit')").fetchone()
        assert shown == ("2.0 GiB",)
        return
    with pytest.raises(InvalidArgument, match=f"LAKEBED_QUERY_MEMORY(?s:.*){told}"):
        lake.query("SELECT s FROM t").fetchall()


@pytest.mark.parametrize(
    ("expression", "function", "near"),
    [
        ("cuont(*)", "cuont", "did you mean `count`?"),
        ("soundex(lenght(v))", "lenght", "did you mean `length`?"),
        ("JSON_VALUE(v, '$.a')", "JSON_VALUE", "get_json_object"),
        ("group_concat(v)", "group_concat", "string_agg(text, ',')"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "duckdb"])
def test_functions_that_nobody_knows(
    warehouse: Warehouse, expression: str, function: str, near: str, engine: str
) -> None:
    """A mistyped function, or one of another system, is told with the one to write, and starts no Spark."""
    warehouse.table("t", {"k": "INT", "v": "STRING"})
    lake = warehouse.reopened()
    with warehouse.refuses(NotFound, f"there is no function `{function}`", near):
        lake.query(f"SELECT {expression} FROM t", engine=engine)
    with warehouse.refuses(NotFound, f"there is no function `{function}`", near):
        lake.sql(f"INSERT INTO bystander SELECT {expression} FROM t")
    assert not lake.is_spark_started


def test_functions_that_somebody_knows() -> None:
    """No function that the comparisons of the two engines use is taken for a mistake, nor one of another database."""
    texts = [path.read_text() for path in (Path(__file__).parents[2] / "differential/queries").glob("*.sql")]
    called = [name for text in texts for part in text.split(";\n") if part.strip() for name in functions_called(part)]
    assert len(called) > 300
    assert {name for name in called if not is_known_function(name)} <= {"no_such_function", "ROW"}
    assert functions_called("SELECT /*+ BROADCAST(t) */ db.own(1), soundex('a') FROM range(3) t") == [
        "soundex",
        "range",
    ]


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN", "DATE"])
def test_errors_show_the_value(warehouse: Warehouse, kind: str) -> None:
    """A text that spells no value of a type is named in the error; TRY_CAST makes it null, and nulls stay null."""
    lake = warehouse.lake
    for text in ("abc", "1_000,5", ""):
        with pytest.raises(InvalidData, match=f'"{text}"'):
            lake.query(f"SELECT CAST(s AS {kind}) FROM VALUES (:s) AS v(s)", {"s": text}, engine="duckdb").arrow()
        query = f"SELECT TRY_CAST(s AS {kind}) FROM VALUES (:s), (NULL) AS v(s)"
        assert lake.query(query, {"s": text}, engine="duckdb").fetchall() == [(None,), (None,)]
