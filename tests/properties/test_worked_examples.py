"""The worked examples of the deduplicate engine, on the table and on its model: both must show the same rows.

Each commit is one row `(kind, cells)`. The ids are those of the semantics the engine is built after.
"""

from __future__ import annotations

import pytest
from tests.properties.side_by_side import SideBySide

from lakebed.testing.model import Row, Value
from lakebed.testing.strategies import TableDefinition
from lakebed.types.logical import INT, STRING, AtomicType

_KEY = AtomicType(INT.root, nullable=False)
_PLAIN = {"k": _KEY, "v": STRING}
_TIMED = {"k": _KEY, "v": STRING, "s": INT}
_TWICE_TIMED = {"k": _KEY, "v": STRING, "t": INT, "n": INT}
_KINDED = {"k": _KEY, "v": STRING, "kind": STRING}

Commits = list[tuple[str | None, tuple[Value, ...]]]

EXAMPLES: list[tuple[str, dict[str, AtomicType], dict[str, str], Commits, list[tuple[Value, ...]]]] = [
    ("M-01 newest wins", _PLAIN, {}, [("+I", (1, "a")), ("+I", (1, "b"))], [(1, "b")]),
    ("M-02 delete hides", _PLAIN, {}, [("+I", (1, "a")), ("-D", (1, "a"))], []),
    ("M-03 update-before hides", _PLAIN, {}, [("+I", (1, "a")), ("-U", (1, "a"))], []),
    ("M-04 ignored delete", _PLAIN, {"ignore-delete": "true"}, [("+I", (1, "a")), ("-D", (1, "a"))], [(1, "a")]),
    ("M-05 lone delete", _PLAIN, {}, [("-D", (1, "x"))], []),
    ("M-06 stale delete", _TIMED, {"sequence.field": "s"}, [("+I", (1, "a", 5)), ("-D", (1, "a", 3))], [(1, "a", 5)]),
    (
        "ignored update-before",
        _PLAIN,
        {"ignore-update-before": "true"},
        [("+I", (1, "a")), ("-U", (1, "a"))],
        [(1, "a")],
    ),
    (
        "ignored update-before, delete counts",
        _PLAIN,
        {"ignore-update-before": "true"},
        [("+I", (1, "a")), ("-D", (1, "a"))],
        [],
    ),
    ("Q-01 greatest wins", _TIMED, {"sequence.field": "s"}, [("+I", (1, "a", 5)), ("+I", (1, "b", 3))], [(1, "a", 5)]),
    (
        "Q-02 tie: later wins",
        _TIMED,
        {"sequence.field": "s"},
        [("+I", (1, "a", 5)), ("+I", (1, "b", 5))],
        [(1, "b", 5)],
    ),
    (
        "Q-03 null loses",
        _TIMED,
        {"sequence.field": "s"},
        [("+I", (1, "a", None)), ("+I", (1, "b", 1)), ("+I", (1, "c", None))],
        [(1, "b", 1)],
    ),
    (
        "Q-04 descending: smallest wins, null loses",
        _TIMED,
        {"sequence.field": "s", "sequence.field.sort-order": "descending"},
        [("+I", (1, "a", 5)), ("+I", (1, "b", 3)), ("+I", (1, "c", None))],
        [(1, "b", 3)],
    ),
    (
        "Q-05 two fields",
        _TWICE_TIMED,
        {"sequence.field": "t,n"},
        [("+I", (1, "a", 1, 9)), ("+I", (1, "b", 2, 1)), ("+I", (1, "c", 2, 0))],
        [(1, "b", 2, 1)],
    ),
    (
        "row kind from a column, which stays",
        _KINDED,
        {"rowkind.field": "kind"},
        [(None, (1, "a", "+I")), (None, (2, "b", "+U")), (None, (1, "a", "-D"))],
        [(2, "b", "+U")],
    ),
]


@pytest.mark.parametrize("one_commit", [False, True], ids=["commits", "one commit"])
@pytest.mark.parametrize(
    ("columns", "options", "commits", "visible"), [example[1:] for example in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_worked_example(
    columns: dict[str, AtomicType],
    options: dict[str, str],
    commits: Commits,
    visible: list[tuple[Value, ...]],
    one_commit: bool,
) -> None:
    """The rows that the semantics promise are visible, whether they came in one commit or in several."""
    both = SideBySide(TableDefinition(columns, ("k",), (), options, {"bucket": "1"}))
    rows: list[Row] = [dict(zip(columns, cells, strict=True)) for _, cells in commits]
    kinds = [kind for kind, _ in commits if kind is not None] or None
    if one_commit:
        both.write([rows], kinds)
    else:
        for i, row in enumerate(rows):
            both.write([[row]], [kinds[i]] if kinds else None)
    assert both.model.rows() == [dict(zip(columns, cells, strict=True)) for cells in visible]
    both.check_table()
    both.close()


def test_a_dropped_column_does_not_come_back_under_its_name() -> None:
    """A column that is dropped and added again reads null in old rows."""
    both = SideBySide(TableDefinition(_TIMED, ("k",), (), {}, {"bucket": "1"}))
    both.write([[{"k": 1, "v": "a", "s": 5}]])
    both.drop_column("s")
    both.add_column("s", INT)
    assert both.model.rows() == [{"k": 1, "v": "a", "s": None}]
    both.check_table()
    both.check_past(1)
    both.close()
