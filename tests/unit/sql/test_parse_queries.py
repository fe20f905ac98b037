"""Queries and row statements: their parts, and where tables stand in the text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from lakebed.errors import InvalidArgument
from lakebed.sql.parse import parse
from lakebed.sql.statements import (
    Delete,
    Insert,
    Merge,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    Query,
    SparkStatement,
    Update,
    When,
)


def one(text: str) -> object:
    """The single statement of a text."""
    (statement,) = parse(text)
    return statement


def query(text: str) -> Query:
    """A text that is a query."""
    statement = one(text)
    assert isinstance(statement, Query)
    return statement


REFERENCES = [
    ("SELECT * FROM t", ["t"]),
    ("SELECT * FROM db.t AS x WHERE x.a = 1", ["db.t"]),
    ("SELECT * FROM t$snapshots", ["t$snapshots"]),
    ("SELECT * FROM `t$branch_b` b", ["`t$branch_b`"]),
    ("SELECT * FROM db.t$branch_b$files", ["db.t$branch_b$files"]),
    ("SELECT * FROM t /*+ OPTIONS('a' = 'b') */ AS x", ["t /*+ OPTIONS('a' = 'b') */"]),
    ("SELECT * FROM t VERSION AS OF 1 x", ["t VERSION AS OF 1"]),
    ("SELECT * FROM t VERSION AS OF 'tag'", ["t VERSION AS OF 'tag'"]),
    ("SELECT * FROM t TIMESTAMP AS OF '2024-01-01' AS x", ["t TIMESTAMP AS OF '2024-01-01'"]),
    (
        "SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' AS x",
        ["t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00'"],
    ),
    ("SELECT * FROM t FOR VERSION AS OF 3", ["t FOR VERSION AS OF 3"]),
    ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 3", ["t FOR SYSTEM_VERSION AS OF 3"]),
    ("SELECT * FROM paimon_incremental_query('t', '1', '2') x", ["paimon_incremental_query('t', '1', '2')"]),
    ("SELECT * FROM a JOIN b ON a.x = b.x, (SELECT y FROM c) d", ["a", "b", "c"]),
    ("SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c)", ["a", "b", "c"]),
    ("WITH c AS (SELECT * FROM a) SELECT * FROM c UNION ALL SELECT * FROM b", ["a", "c", "b"]),
    ("SELECT * FROM t version", ["t"]),
    ("SELECT * FROM VALUES (1, 2) AS v(a, b)", []),
    ("FROM t SELECT a", ["t"]),
]


@pytest.mark.parametrize(("text", "places"), REFERENCES)
def test_where_tables_stand(text: str, places: list[str]) -> None:
    """The span of a reference covers name, hint and time travel, not the alias."""
    sql = query(text).sql
    assert [sql.text[slice(*table.meta["span"])] for table in sql.tables()] == places


def test_text_with_other_tables() -> None:
    """References can be exchanged without touching the rest of the text."""
    sql = query("SELECT x.a FROM t /*+ OPTIONS('k' = 'v') */ AS x JOIN u USING (a) -- done").sql
    spans = {table.meta["span"]: f"view_{table.name}" for table in sql.tables()}
    assert sql.spliced(spans) == "SELECT x.a FROM view_t AS x JOIN view_u USING (a)"


def test_options_and_versions_of_references() -> None:
    """Hints and points in time are part of the reference."""
    sql = query("SELECT * FROM t /*+ OPTIONS('a.b' = 'it''s', 'c'='1') */ JOIN u VERSION AS OF 'x' ON 1 = 1").sql
    first, second = sql.tables()
    assert first.meta["options"] == {"a.b": "it's", "c": "1"}
    assert "version" not in first.meta
    version = second.meta["version"]
    assert (version.this, version.expression.name) == ("VERSION", "x")
    assert isinstance(query("SELECT * FROM t TIMESTAMP AS OF 1").sql.tables()[0].meta["version"], exp.Version)


def test_several_statements() -> None:
    """Semicolons separate statements, wherever they are not in quotes or comments."""
    found = parse("SELECT ';' FROM a; -- one; two\nSELECT 2 /* ; */;\n;")
    assert [type(statement) for statement in found] == [Query, Query]
    assert parse(" ; ") == []


INSERTS = [
    ("INSERT INTO t VALUES (1, 'a')", {}),
    ("insert into table db.t select * from u", {"name": "db.t"}),
    ("INSERT OVERWRITE t SELECT 1", {"overwrite": True}),
    ("INSERT OVERWRITE TABLE t SELECT 1", {"overwrite": True}),
    ("INSERT INTO t (a, b) VALUES (1, 2)", {"columns": ("a", "b")}),
    ("INSERT INTO t (SELECT 1, 2)", {}),
    ("INSERT INTO t BY NAME SELECT 1 AS a", {"by_name": True}),
    ("INSERT OVERWRITE t PARTITION (p = 1, q) SELECT 1", {"overwrite": True, "partition": {"p": "1", "q": None}}),
    ("INSERT INTO t PARTITION (p = 'x') (a) VALUES (1)", {"partition": {"p": "'x'"}, "columns": ("a",)}),
    ("INSERT INTO t /*+ OPTIONS('a' = 'b') */ VALUES (1)", {"options": {"a": "b"}}),
    ("INSERT INTO t REPLACE WHERE p = 1 SELECT 2", {"overwrite": True, "replace_where": "p = 1"}),
    ("INSERT INTO paimon.db.t SELECT 1", {"name": "db.t"}),
    ("INSERT /*+ COALESCE(3) */ INTO t SELECT 1", {}),
    ("INSERT INTO t TABLE s", {}),
    ("INSERT INTO `t$branch_b` VALUES (1)", {"name": "t$branch_b"}),
]


@pytest.mark.parametrize(("text", "expected"), INSERTS)
def test_insert(text: str, expected: dict[str, object]) -> None:
    """All clauses of INSERT are found."""
    found = one(text)
    assert isinstance(found, Insert)
    assert found.target.name == expected.get("name", "t")
    assert found.target.options == expected.get("options", {})
    assert found.overwrite == expected.get("overwrite", False)
    assert found.columns == expected.get("columns")
    assert found.by_name == expected.get("by_name", False)
    partition = {name: None if value is None else value.text for name, value in found.partition.items()}
    assert partition == expected.get("partition", {})
    assert (found.replace_where.text if found.replace_where else None) == expected.get("replace_where")


def test_insert_takes_common_expressions_from_the_front() -> None:
    """WITH before INSERT belongs to its query."""
    found = one("WITH a AS (SELECT 1 AS x) INSERT INTO t SELECT * FROM a")
    assert isinstance(found, Insert)
    assert found.source.text == "WITH a AS (SELECT 1 AS x) SELECT * FROM a"


def test_update_and_delete() -> None:
    """Targets, aliases, paths into ROW columns and conditions."""
    update = one("UPDATE t AS x SET a = b + 1, x.d.c2 = CASE WHEN a THEN 1 ELSE 2 END WHERE k IN (1, 2)")
    assert isinstance(update, Update)
    assert (update.target.name, update.alias) == ("t", "x")
    assert [(part.path, part.value.text) for part in update.assignments] == [
        (("a",), "b + 1"),
        (("d", "c2"), "CASE WHEN a THEN 1 ELSE 2 END"),
    ]
    assert update.where is not None
    assert update.where.text == "k IN (1, 2)"
    delete = one("DELETE FROM db.t")
    assert isinstance(delete, Delete)
    assert (delete.target.name, delete.alias, delete.where) == ("db.t", None, None)


def test_merge_with_all_clauses() -> None:
    """Every kind of clause, in order."""
    found = one(
        "MERGE INTO t USING (SELECT * FROM s) AS src ON t.k = src.k "
        "WHEN MATCHED AND t.k = 5 THEN UPDATE SET n = src.n + t.n, t.d.x = 1 "
        "WHEN MATCHED AND src.s > CASE WHEN true THEN 'c' END THEN UPDATE SET * "
        "WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED AND s > 'c9' THEN INSERT (k, n) VALUES (k, n * 1.1) "
        "WHEN NOT MATCHED BY TARGET THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND k = 2 THEN UPDATE SET n = n * 10 "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert isinstance(found, Merge)
    assert (found.target.name, found.alias, found.source.text, found.source_alias) == (
        "t",
        None,
        "(SELECT * FROM s) AS src",
        "src",
    )
    assert found.on.text == "t.k = src.k"
    assert [clause.when for clause in found.clauses] == [
        *[When.MATCHED] * 3,
        *[When.NOT_MATCHED] * 2,
        *[When.NOT_MATCHED_BY_SOURCE] * 2,
    ]
    kinds = [type(clause.action) for clause in found.clauses]
    assert kinds == [MergeUpdate, MergeUpdate, MergeDelete, MergeInsert, MergeInsert, MergeUpdate, MergeDelete]
    first, star, _, insert, insert_star, *_ = [clause.action for clause in found.clauses]
    assert isinstance(first, MergeUpdate)
    assert [part.path for part in first.assignments] == [("n",), ("d", "x")]
    assert isinstance(star, MergeUpdate)
    assert star.is_star
    assert isinstance(insert, MergeInsert)
    assert insert.values is not None
    assert (insert.columns, [value.text for value in insert.values]) == (("k", "n"), ["k", "n * 1.1"])
    assert isinstance(insert_star, MergeInsert)
    assert insert_star.is_star
    assert found.source.tables()[0].meta["span"] == (15, 16)


OTHERS = [
    (
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM t",
        "CREATE OR REPLACE TEMPORARY VIEW v AS ",
        "SELECT * FROM t",
    ),
    ("CREATE VIEW v (a) COMMENT 'x' AS SELECT 1", "CREATE VIEW v (a) COMMENT 'x' AS ", "SELECT 1"),
    ("CACHE LAZY TABLE c AS SELECT 1", "CACHE LAZY TABLE c AS ", "SELECT 1"),
    ("EXPLAIN EXTENDED SELECT * FROM t", "EXPLAIN EXTENDED ", "SELECT * FROM t"),
    ("EXPLAIN SELECT 1", "EXPLAIN ", "SELECT 1"),
    ("DROP VIEW IF EXISTS v", "DROP VIEW IF EXISTS v", None),
    ("SHOW FUNCTIONS", "SHOW FUNCTIONS", None),
    ("SET TIME ZONE LOCAL", "SET TIME ZONE LOCAL", None),
    ("DESCRIBE FUNCTION abs", "DESCRIBE FUNCTION abs", None),
]


@pytest.mark.parametrize(("text", "prefix", "inner"), OTHERS)
def test_what_is_sparks(text: str, prefix: str, inner: str | None) -> None:
    """Views, plans and functions are handed over; a query inside is found."""
    found = one(text)
    assert isinstance(found, SparkStatement)
    assert (found.text, found.query.text if found.query else None) == (prefix, inner)


ERRORS = [
    ("SELECT * FROM t WHERE", 1, "column"),
    ("SELECT a b c FROM t", 1, "c FROM t"),
    ("INSERT INTO", 1, "the end"),
    ("SHOW TABLES;\nINSERT INTO t\nVALUEZ (1)", 3, "VALUEZ"),
    ("UPDATE t SET a", 1, "expected ="),
    ("MERGE INTO t USING s ON a = b", 1, "expected WHEN"),
    ("MERGE INTO t USING s ON a = b WHEN MATCHED BY SOURCE THEN DELETE", 1, "do not match"),
    ("SELECT 'abc", 1, "quote"),
    ("SELEC * FROM t", 1, "did you mean `SELECT`?"),
    ("SELECT 1; CREATED TABLE t (a INT)", 1, "did you mean `CREATE`?"),
]


@pytest.mark.parametrize(("text", "line", "says"), ERRORS)
def test_syntax_errors_show_the_place(text: str, line: int, says: str) -> None:
    """What is wrong is said with its line, and with a pointer where there is one."""
    with pytest.raises(InvalidArgument) as caught:
        parse(text)
    assert says in str(caught.value)
    assert f"line {line}" in str(caught.value) or "quote" in says
