"""SET clauses as expressions."""

from __future__ import annotations

import pytest

from lakebed.errors import InvalidArgument, NotFound
from lakebed.sql.change.update import assigned_texts
from lakebed.sql.parse import parse
from lakebed.types.logical import DataField, parse_type

_FIELDS = (
    DataField(0, "k", parse_type("INT")),
    DataField(1, "d", parse_type("ROW<a INT, b ROW<c STRING, e INT>>")),
    DataField(2, "m", parse_type("MAP<INT, INT>")),
)


def _texts(clause: str) -> dict[str, str]:
    statement = parse(f"UPDATE t SET {clause}")[0]
    return assigned_texts(statement.assignments, _FIELDS, "t", lambda name: f"t.{name}", lambda sql: sql.text)


def test_whole_columns() -> None:
    """A column gets its expression; a qualifier of the table is left out, case does not matter."""
    assert _texts("t.K = 1 + 1") == {"k": "(1 + 1)"}


def test_members() -> None:
    """Setting members makes a new row with the others as they were."""
    assert _texts("d.b.e = 5, d.a = 1") == {
        "d": "named_struct('a', (1), 'b', named_struct('c', t.d.`b`.`c`, 'e', (5)))",
    }


@pytest.mark.parametrize(
    ("clause", "error"),
    [
        ("z = 1", NotFound),
        ("d.z = 1", NotFound),
        ("m.key = 1", InvalidArgument),
        ("k = 1, k = 2", InvalidArgument),
        ("d.a = 1, d = NULL", InvalidArgument),
        ("d.b = NULL, d.b.c = 'x'", InvalidArgument),
    ],
)
def test_what_can_not_be_set(clause: str, error: type[Exception]) -> None:
    """Unknown columns, parts of maps, and columns that are set twice."""
    with pytest.raises(error):
        _texts(clause)
