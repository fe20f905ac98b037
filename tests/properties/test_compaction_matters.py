"""What the semantics let depend on when rows were merged: each case with both of its outcomes.

Random histories leave these out (see `admission`). Rows are committed one by one, or some of them together; in between
nothing is compacted, or everything is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.properties.admission import Admission, Objection
from tests.properties.side_by_side import SideBySide

from lakebed.testing.model import Record, Row, Value
from lakebed.testing.strategies import TableDefinition
from lakebed.types.logical import INT, STRING, AtomicType

N = None
Visible = tuple[Value, ...] | None


def _aggregation(function: str, **options: str) -> dict[str, str]:
    return {"merge-engine": "aggregation", "fields.a.aggregate-function": function, **options}


_SEQUENCE = {"sequence.field": "s"}
_PARTIAL = {"merge-engine": "partial-update"}
_GROUP = {**_PARTIAL, "fields.g.sequence-group": "a"}


@dataclass(frozen=True)
class Case:
    """Changes of key 1, what is shown when each is a commit of its own and nothing is compacted, and otherwise.

    Otherwise: fully compacted after each commit, or, with `together`, the changes from there on in one commit.
    """

    why: Objection
    columns: str
    options: dict[str, str]
    changes: list[tuple[str, tuple[Value, ...]]]
    one_by_one: Visible
    otherwise: Visible
    together: int | None = field(default=None)


CASES = {
    "M-32 sum: a retract first, dropped or not": Case(
        Objection.RETRACT_FIRST, "k a", _aggregation("sum"), [("-D", (1, 5)), ("+I", (1, 8))], (1, 3), (1, 8)
    ),
    "M-33 sum: two retracts first": Case(
        Objection.RETRACT_FIRST, "k a", _aggregation("sum"), [("-D", (1, 5)), ("-D", (1, 3))], (1, -8), N
    ),
    "M-36 product: a retract without its factor": Case(
        Objection.RETRACT_APART,
        "k a",
        _aggregation("product"),
        [("+I", (1, 6)), ("+I", (1, 4)), ("-U", (1, 4)), ("+U", (1, 5))],
        (1, 30),
        (1, 120),
        together=2,
    ),
    "M-38 default function: a retract without its value": Case(
        Objection.RETRACT_APART,
        "k a",
        {"merge-engine": "aggregation"},
        [("+I", (1, 6)), ("-U", (1, 6)), ("+U", (1, N))],
        (1, N),
        (1, 6),
        together=1,
    ),
    "5.7 deduplicate: a late row after a delete": Case(
        Objection.LATE_AFTER_DELETE,
        "k s a",
        _SEQUENCE,
        [("+I", (1, 1, 1)), ("-D", (1, 5, 1)), ("+I", (1, 3, 2))],
        N,
        (1, 3, 2),
    ),
    "2.4 aggregation: a retract clears the sequence": Case(
        Objection.RETRACT_APART,
        "k s a",
        {**_aggregation("sum"), **_SEQUENCE},
        [("+I", (1, 5, 10)), ("-U", (1, 6, 10)), ("+I", (1, 3, 2))],
        (1, N, 2),
        (1, 3, 2),
    ),
    "2.4 listagg: a late text": Case(
        Objection.LATE,
        "k s a:STRING",
        {**_aggregation("listagg"), **_SEQUENCE},
        [("+I", (1, 1, "a")), ("+I", (1, 9, "c")), ("+I", (1, 5, "b"))],
        (1, 9, "a,b,c"),
        (1, 9, "b,a,c"),
    ),
    "2.4 first_value: a late value": Case(
        Objection.LATE,
        "k s a",
        {**_aggregation("first_value"), **_SEQUENCE},
        [("+I", (1, 1, 1)), ("+I", (1, 9, 3)), ("+I", (1, 5, 2))],
        (1, 9, 1),
        (1, 9, 2),
    ),
    "2.4 partial-update: a late value": Case(
        Objection.LATE,
        "k s a",
        {**_PARTIAL, **_SEQUENCE},
        [("+I", (1, 5, 1)), ("+I", (1, 9, N)), ("+I", (1, 7, 3))],
        (1, 9, 3),
        (1, 9, 1),
    ),
    "2.4 listagg of a group: a late text": Case(
        Objection.LATE,
        "k g a:STRING",
        {**_GROUP, "fields.a.aggregate-function": "listagg"},
        [("+I", (1, 10, "a")), ("+I", (1, 5, "b")), ("+I", (1, 20, "c"))],
        (1, 20, "b,a,c"),
        (1, 20, "a,b,c"),
        together=1,
    ),
    "3.1 partial-update: a tuple of sequence values that nobody wrote": Case(
        Objection.MIXED_SEQUENCE,
        "k s t a",
        {**_PARTIAL, "sequence.field": "s,t"},
        [("+I", (1, 1, 9, 1)), ("+I", (1, 2, N, 2)), ("+I", (1, 2, 5, 3))],
        (1, 2, 5, 3),
        (1, 2, 9, 2),
    ),
    "2.3 a late removal": Case(
        Objection.LATE_REMOVAL,
        "k g a b",
        {**_GROUP, "partial-update.remove-record-on-sequence-group": "g"},
        [("+I", (1, 5, 1, 1)), ("+I", (1, 1, 2, 7)), ("-D", (1, 2, 2, N))],
        (1, 5, 1, 7),
        (1, 5, 1, 1),
        together=1,
    ),
    "2.4 listagg: an empty text after a removal": Case(
        Objection.AFTER_REMOVAL,
        "k a:STRING",
        _aggregation("listagg", **{"aggregation.remove-record-on-delete": "true"}),
        [("+I", (1, "a")), ("-D", (1, "a")), ("+I", (1, ""))],
        (1, N),
        (1, ""),
    ),
    "G-03 a value without an order after a removal": Case(
        Objection.WITHOUT_ORDER,
        "k g a",
        {**_GROUP, "partial-update.remove-record-on-sequence-group": "g"},
        [("+I", (1, 1, 5)), ("-D", (1, 2, 5)), ("+I", (1, N, 7))],
        (1, N, N),
        (1, N, 7),
    ),
}


def _definition(case: Case) -> TableDefinition:
    types = {}
    for text in case.columns.split():
        name, _, kind = text.partition(":")
        types[name] = STRING if kind else AtomicType(INT.root, nullable=name != "k")
    return TableDefinition(types, ("k",), (), case.options, {"bucket": "1", "write-only": "true"})


def _rows(case: Case) -> list[Row]:
    names = [name.partition(":")[0] for name in case.columns.split()]
    return [dict(zip(names, cells, strict=True)) for _, cells in case.changes]


def _shown(both: SideBySide) -> Visible:
    rows = both.handles[0].to_arrow().to_pylist()
    return tuple(rows[0].values()) if rows else None


@pytest.mark.parametrize("name", CASES)
def test_one_by_one(name: str) -> None:
    """Each row a commit of its own, nothing compacted: the table shows what one merge of all gives, as the model."""
    case = CASES[name]
    both = SideBySide(_definition(case))
    for row, (kind, _) in zip(_rows(case), case.changes, strict=True):
        both.write([[row]], [kind])
    both.check_table()
    assert _shown(both) == case.one_by_one
    both.close()


@pytest.mark.parametrize("name", CASES)
def test_otherwise(name: str) -> None:
    """Merged in other steps, the same rows show something else."""
    case = CASES[name]
    both = SideBySide(_definition(case))
    rows, kinds = _rows(case), [kind for kind, _ in case.changes]
    start = len(rows) if case.together is None else case.together
    for row, kind in zip(rows[:start], kinds[:start], strict=True):
        both.write([[row]], [kind])
        both.compact(full=True)
    if rows[start:]:
        both.write([rows[start:]], kinds[start:])
    assert _shown(both) == case.otherwise != case.one_by_one
    both.close()


@pytest.mark.parametrize("name", CASES)
def test_random_histories_leave_it_out(name: str) -> None:
    """The admission of random rows objects to the case, for the reason given."""
    case = CASES[name]
    definition = _definition(case)
    model = definition.model()
    admission = Admission(definition, model)
    before: list[Record] = []
    objections = set()
    for number, (row, (kind, _)) in enumerate(zip(_rows(case), case.changes, strict=True)):
        accepted = model.accept(model.schema, row, kind)
        assert accepted is not None
        record = Record(*accepted, number)
        objections.add(admission.objection(before, [], record))
        before.append(record)
    assert case.why in objections
