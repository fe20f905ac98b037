"""`input_file_name()` where each row has one file; elsewhere Spark's function stays what it is."""

from __future__ import annotations

from pathlib import Path

import lakebed
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.file_names import with_file_names
from lakebed.sql.words.cursor import Cursor


def _lake(tmp_path: Path) -> lakebed.Lake:
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (id INT, pt STRING) PARTITIONED BY (pt)")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.sql("INSERT INTO t VALUES (3, 'a')")
    lake.sql("CREATE TABLE k (id INT PRIMARY KEY NOT ENFORCED)")
    return lake


def test_each_row_tells_its_file(tmp_path: Path) -> None:
    """In results, conditions and groups, with the name that the function gives its column, beside `*` as well."""
    lake = _lake(tmp_path)
    query = lake.query("SELECT *, Input_File_Name() FROM t WHERE input_file_name() LIKE '%/pt=a/%'")
    assert query.columns == ["id", "pt", "input_file_name()"]
    assert sorted(row[:2] for row in query.fetchall()) == [(1, "a"), (3, "a")]
    paths = lake.query("SELECT file_path FROM t$files").fetchall()
    assert sorted(lake.query("SELECT input_file_name() AS f FROM t GROUP BY input_file_name()").fetchall()) == sorted(
        paths
    )


def test_where_it_is_not_clear_the_function_stays(tmp_path: Path) -> None:
    """Merged rows lie in no single file, and of two tables nobody says which is meant."""
    lake = _lake(tmp_path)
    for text in ("SELECT input_file_name() FROM k", "SELECT input_file_name() FROM t JOIN k ON t.id = k.id"):
        sql = read_query(Cursor(text))
        assert with_file_names(lake, sql).text == text
