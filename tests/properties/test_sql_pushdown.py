"""What a query leaves out of a table is never a row that it would have kept: another engine judges."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.sql.parse import parse
from lakebed.sql.query.pushdown import needs_of
from lakebed.types.predicate_evaluate import evaluate
from lakebed.types.predicate_parse import to_predicate

_ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int32()),
        "a": pa.array([None, -1, 0, 1, 2, 3, 2147483647, -2147483648], pa.int32()),
        "b": pa.array([None, "", "a", "ab", "abc", "b", "Ab", "a%"], pa.string()),
        "n": pa.array(
            [None, *map(Decimal, ("-1.50", "0.00", "0.01", "1.00", "1.50", "2.00", "99.99"))], pa.decimal128(6, 2)
        ),
        "d": pa.array([None, *(dt.date(2024, 1, day) for day in range(1, 8))], pa.date32()),
    }
)
_COMPARED = {
    "a": ["-1", "0", "1", "1.5", "2.0", "3000000000", "- 2"],
    "b": ["''", "'a'", "'ab'", "'b'", "'Z'"],
    "n": ["0", "1", "1.5", "1.505", "-1.50", "100000"],
    "d": ["DATE '2024-01-01'", "DATE '2024-01-05'", "CAST('2024-01-07' AS DATE)"],
}


@st.composite
def _leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(_COMPARED)))
    values = st.sampled_from(_COMPARED[column])
    form = draw(st.sampled_from(["compare", "mirror", "in", "between", "null", "like"]))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    if form == "compare":
        return f"{column} {op} {draw(values)}"
    if form == "mirror":
        return f"{draw(values)} {op} x.{column}"
    if form == "in":
        return f"{column} IN ({', '.join(draw(st.lists(values, min_size=1, max_size=3)))})"
    if form == "between":
        return f"{column} BETWEEN {draw(values)} AND {draw(values)}"
    if form == "like":
        pattern = draw(st.sampled_from(["a%", "ab%", "%", "a", "_b%", "A%"]))
        return f"b {draw(st.sampled_from(['', 'NOT ']))}LIKE '{pattern}'"
    return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"


_conditions = st.recursive(
    _leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"NOT ({text})"),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(_conditions)
def test_no_row_is_lost(condition: str) -> None:
    """Rows that match in SQL are among those that the pushed predicate lets through."""
    query = f"SELECT id FROM x WHERE {condition}"
    (node,) = parse(query)[0].sql.tables()
    needs = needs_of(node, {field.name: field.type for field in _ROWS.schema})
    predicate = to_predicate(needs.predicate, _ROWS.schema)
    with duckdb.connect() as judge:
        judge.register("x", _ROWS)
        wanted = {row[0] for row in judge.execute(query).fetchall()}
    if predicate is None:
        return
    (batch,) = _ROWS.to_batches()
    kept = set(batch.filter(evaluate(predicate, batch)).column("id").to_pylist())
    assert wanted <= kept


@settings(max_examples=100, deadline=None)
@given(_leaves())
def test_plain_conditions_are_exact(condition: str) -> None:
    """A single condition that goes down lets through what it should, and no more."""
    query = f"SELECT id FROM x WHERE {condition}"
    (node,) = parse(query)[0].sql.tables()
    predicate = to_predicate(needs_of(node, {field.name: field.type for field in _ROWS.schema}).predicate, _ROWS.schema)
    if predicate is None:
        return
    with duckdb.connect() as judge:
        judge.register("x", _ROWS)
        wanted = {row[0] for row in judge.execute(query).fetchall()}
    (batch,) = _ROWS.to_batches()
    assert set(batch.filter(evaluate(predicate, batch)).column("id").to_pylist()) == wanted
