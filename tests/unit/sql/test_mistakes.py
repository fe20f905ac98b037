"""Queries that can not be read: the error points at the place, in plain words, with what may be meant."""

from __future__ import annotations

import pytest

from lakebed.errors import InvalidArgument
from lakebed.sql.parse import parse

MISTAKES = [
    ("SELECT id FORM t", 11, "not expected", "did you mean `FROM`?"),
    ("SELECT id FROM t WEHRE id = 1", 18, "not expected", "did you mean `WHERE`?"),
    ("SELECT id FROM t except_ SELECT 1", 18, "not expected", "did you mean `EXCEPT`?"),
    ("SELECT id FROM t GROUP id", 24, "expected BY behind GROUP", "at the pointer"),
    ("SELECT id FROM t ORDER id", 24, "expected BY behind ORDER", "at the pointer"),
    ("SELECT id, FROM t", 12, "something is missing behind `,`", "at the pointer"),
    ("SELECT id FROM t WHERE id IN (1, 2, )", 37, "something is missing behind `,`", "at the pointer"),
    ("SELECT id,", 11, "something is missing behind `,`", "at the pointer"),
    ("SELECT FROM t", 8, "something is missing behind `SELECT`", "at the pointer"),
    ("SELECT count(*)) FROM t", 16, "not expected here, found `)`", "at the pointer"),
    ("SELECT id FROM t JOIN ON x", 23, "expected a table's name", "at the pointer"),
    ("SELECT * FROM", 10, "expected a table's name", "at the pointer"),
    ("SELECT id FROM t WHERE", 18, "something is missing behind this", "at the pointer"),
    ("SELECT (id FROM t", 12, "expected )", "at the pointer"),
    ("SELECT CAST(id AS FOO) FROM t", 19, "expected a type", "at the pointer"),
    ("SELECT CASE WHEN a THEN 2 FROM t", 25, "expected END", "at the pointer"),
    ("SELECT id >>> 1 FROM t", 13, "missing", "shiftrightunsigned(a, b)"),
    ("SELECT TOP 3 id FROM t", 12, "not expected", "LIMIT"),
    ("SELECT id FROM t AS OF VERSION 1", 24, "not expected", "VERSION AS OF 1"),
    ("SELECT {'a': 1}", 12, "not expected", "map('a', 1)"),
    ("SELECT v:a.b FROM t", 11, "not expected", "get_json_object"),
    ("SELECT id MOD 2 FROM t", 15, "not expected", "a % b"),
    ("SELECT id FROM t WHERE id => 1", 27, "not expected", ">="),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), MISTAKES)
def test_mistakes(text: str, column: int, message: str, hint: str) -> None:
    """The place, what is wrong there and what to write, and no word of the parser's own."""
    with pytest.raises(InvalidArgument) as refused:
        parse(text)
    told = refused.value
    assert f"column {column}:" in told.message
    assert message in told.message
    assert hint in told.hint
    for word in ("Token", "Expecting", "sqlglot", "Required", "BitwiseRightShift"):
        assert word not in str(told)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT f(), count(*), array() FROM t",
        "SELECT (1, 2), x -> x + 1, `from`, 'a,' FROM t",
        "SELECT * FROM (VALUES (1, 2), (3, 4)) AS v(a, b)",
        "SELECT id AS formm FROM t AS wherre",
    ],
)
def test_what_is_no_mistake(text: str) -> None:
    """Empty brackets, commas in texts and odd names are read."""
    assert parse(text)
