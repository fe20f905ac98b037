"""Hidden columns next to `*`."""

from __future__ import annotations

import pytest

from lakebed.errors import Unsupported
from lakebed.sql.parse import parse
from lakebed.sql.query.plan import star_edits, used_hidden


def _expanded(query: str) -> str:
    sql = parse(query)[0].sql
    shown = {id(node): ["a", "b"] for node in sql.tables() if node.name == "t" and used_hidden(node, ["_ROW_ID"])}
    return sql.spliced(star_edits(sql, shown))


@pytest.mark.parametrize(
    ("query", "expanded"),
    [
        ("SELECT *, _ROW_ID FROM t", "SELECT `t`.`a`, `t`.`b`, _ROW_ID FROM t"),
        ("SELECT x.*, _row_id FROM t x", "SELECT `x`.`a`, `x`.`b`, _row_id FROM t x"),
        ("SELECT *, _ROW_ID FROM t JOIN u ON TRUE", "SELECT `t`.`a`, `t`.`b`, `u`.*, _ROW_ID FROM t JOIN u ON TRUE"),
        (
            "SELECT 2 * a, count(*), * FROM t WHERE _ROW_ID = 1",
            "SELECT 2 * a, count(*), `t`.`a`, `t`.`b` FROM t WHERE _ROW_ID = 1",
        ),
        ("SELECT * FROM t", "SELECT * FROM t"),
        ("SELECT _ROW_ID, count(*) FROM t", "SELECT _ROW_ID, count(*) FROM t"),
    ],
)
def test_stars(query: str, expanded: str) -> None:
    """A star means the visible columns, also where hidden ones are used."""
    assert _expanded(query) == expanded


def test_several_stars_are_refused() -> None:
    """Which star is meant can not be told then."""
    with pytest.raises(Unsupported, match="several"):
        _expanded("SELECT * FROM (SELECT *, _ROW_ID FROM t)")
