"""What queries need of a table: enough columns, and never too few rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.sql.parse import parse
from lakebed.sql.query.pushdown import Needs, needs_of
from lakebed.types.predicate_parse import to_predicate

_COLUMNS = {
    "a": pa.int32(),
    "b": pa.string(),
    "d": pa.date32(),
    "f": pa.float64(),
    "n": pa.decimal128(10, 2),
    "t": pa.timestamp("us"),
    "_ROW_ID": pa.int64(),
}


def _needs(query: str) -> Needs:
    sql = parse(query)[0].sql
    (node,) = [node for node in sql.tables() if node.name == "x"]
    return needs_of(node, _COLUMNS)


def _filter(condition: str) -> str | None:
    predicate = to_predicate(_needs(f"SELECT 1 FROM x WHERE {condition}").predicate, pa.schema(list(_COLUMNS.items())))
    return None if predicate is None else str(predicate)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT a FROM x", {"a"}),
        ("SELECT A, count(*) FROM x GROUP BY a", {"a"}),
        ("SELECT count(*) FROM x", set()),
        ("SELECT q.b FROM x q JOIN y USING (a)", {"a", "b"}),
        ("SELECT s.* FROM (SELECT a, d FROM x) s", {"a", "d"}),
        ("SELECT b.member FROM x", {"b"}),
        ("SELECT 1 FROM y WHERE EXISTS (SELECT 1 FROM x WHERE x.a = y.k)", {"a"}),
        ("SELECT _row_id FROM x", {"_ROW_ID"}),
        ("SELECT a.b FROM x AS a", {"b"}),
        ("SELECT a.member FROM x AS a", {"a"}),
        ("SELECT d.a FROM d.x JOIN y AS d ON d.b = x.b", {"a", "b", "d"}),
        ("SELECT f.a, n FROM x f", {"a", "n"}),
    ],
)
def test_columns(query: str, columns: set[str]) -> None:
    """Every column that the query names, in whatever case, and no more if it can be helped."""
    found = _needs(query).columns
    assert found is not None
    assert found == columns


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM x",
        "SELECT x.*, 1 FROM x",
        "SELECT struct(*) FROM x",
        "SELECT 1 FROM x NATURAL JOIN y",
        "SELECT * FROM y JOIN x ON TRUE",
        "SELECT q.a FROM x AS q (b, a, c) WHERE q.a = 1",
        "SELECT * FROM (SELECT a, b FROM x) PIVOT (sum(a) FOR b IN ('u', 'v'))",
    ],
)
def test_all_columns(query: str) -> None:
    """Where all columns count, all are asked for."""
    assert _needs(query).columns is None


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("a = 1", "a = 1"),
        ("1 < a", "a > 1"),
        ("x.a >= 1 AND b = 'q'", "a >= 1 AND b = 'q'"),
        ("a IN (1, 2)", "a IN (1, 2)"),
        ("a BETWEEN 1 AND 3", "a >= 1 AND a <= 3"),
        ("a IS NULL", "a IS NULL"),
        ("f IS NOT NULL", "f IS NOT NULL"),
        ("NOT (a IS NULL)", "a IS NOT NULL"),
        ("d >= DATE '2024-01-01'", "d >= DATE '2024-01-01'"),
        ("n < 1.5", "n < 1.50"),
    ],
)
def test_conditions_that_go_down(condition: str, shown: str) -> None:
    """Comparisons with literals that mean the same to Spark and to us."""
    found = _filter(condition)
    assert found is not None
    assert found == shown


@pytest.mark.parametrize(
    "condition",
    [
        "f > 1.0",
        "a = '1'",
        "b = 1",
        "t > TIMESTAMP '2024-01-01 00:00:00'",
        "a = 1e0",
        "a + 1 = 2",
        "NOT a = 1",
        "a <=> 1",
        "y.a = 1",
        "b LIKE '%q'",
        "b LIKE 'q_r%'",
        "b NOT LIKE 'ab%'",
        "NOT b LIKE 'ab%'",
        "a = (SELECT max(k) FROM z)",
        "a IN (SELECT k FROM z)",
        "a = 1 OR f = 1.0",
        "abs(a) = 1",
    ],
)
def test_conditions_that_stay_with_spark(condition: str) -> None:
    """What could mean something else, or is not plain, is not used to leave out rows."""
    assert _filter(condition) is None


def test_a_prefix_goes_down() -> None:
    """`LIKE 'ab%'` is a prefix."""
    assert "ab" in (_filter("b LIKE 'ab%'") or "")


@pytest.mark.parametrize(
    ("query", "goes_down"),
    [
        ("SELECT 1 FROM x JOIN y ON x.a = y.k WHERE x.a = 1", True),
        ("SELECT 1 FROM x LEFT JOIN y ON x.a = y.k WHERE x.a = 1", True),
        ("SELECT 1 FROM y LEFT JOIN x ON x.a = y.k WHERE x.a IS NULL", False),
        ("SELECT 1 FROM x RIGHT JOIN y ON x.a = y.k WHERE x.a IS NULL", False),
        ("SELECT 1 FROM x FULL JOIN y ON x.a = y.k WHERE x.a = 1", False),
        ("SELECT 1 FROM x JOIN z ON TRUE RIGHT JOIN y ON x.a = y.k WHERE x.a IS NULL", False),
        ("SELECT 1 FROM y LEFT JOIN z ON TRUE JOIN x ON x.a = y.k WHERE x.a = 1", True),
        ("SELECT 1 FROM x JOIN y ON x.a = y.k WHERE a = 1", False),
        ("SELECT 1 FROM x TABLESAMPLE (2 ROWS) WHERE a = 1", False),
        ("SELECT 1 FROM x, LATERAL explode(x.b) AS u(a) WHERE a = 1", False),
    ],
)
def test_joins(query: str, goes_down: bool) -> None:
    """Not below the side of an outer join that may be absent, and not if the name could be another table's."""
    assert (_needs(query).predicate is not None) == goes_down
