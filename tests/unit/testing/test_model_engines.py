"""The model's engines on the worked examples of the semantics: the oracle must be right before anything is held to it.

Each example feeds the records of key 1 one after the other and says what is visible after each (N: nothing).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakebed.errors import InvalidData, NotFound
from lakebed.testing.model import ModelTable
from lakebed.testing.model_aggregates import fitting, model_aggregate
from lakebed.testing.model_engines import model_engine
from lakebed.types import logical as lt
from lakebed.types.logical import AtomicType

N = None
TYPES = {"": lt.INT, "STRING": lt.STRING, "DOUBLE": lt.DOUBLE, "BOOLEAN": lt.BOOLEAN}
PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}
GROUPS = {**PARTIAL, "fields.g_1.sequence-group": "a,b", "fields.g_2.sequence-group": "c,d"}


def _functions(**functions: str) -> dict[str, str]:
    return {f"fields.{name}.aggregate-function": function for name, function in functions.items()}


EXAMPLES: dict[str, tuple[str, dict[str, str], list[tuple[Any, Any]]]] = {
    "M-10": (
        "k a:DOUBLE b c:STRING",
        PARTIAL,
        [
            ([1, 23.0, 10, N], [1, 23.0, 10, N]),
            ([1, N, N, "This is a book"], [1, 23.0, 10, "This is a book"]),
            ([1, 25.2, N, N], [1, 25.2, 10, "This is a book"]),
        ],
    ),
    "M-11, M-12": (
        "k a b g_1 c d g_2",
        GROUPS,
        [
            ([1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]),
            ([1, 2, 2, 2, 2, 2, N], [1, 2, 2, 2, 1, 1, 1]),
            ([1, 3, 3, 1, 3, 3, 3], [1, 2, 2, 2, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, N]), [1, N, N, 3, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, 4]), [1, N, N, 3, N, N, 4]),
            ([1, 4, 4, 4, 5, 5, 5], [1, 4, 4, 4, 5, 5, 5]),
        ],
    ),
    "M-13": (
        "k a b g_1 c d g_2",
        {**GROUPS, "partial-update.remove-record-on-sequence-group": "g_2"},
        [
            ([1, 2, 2, 2, 3, 3, 3], [1, 2, 2, 2, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, N]), [1, N, N, 3, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, 4]), N),
            ([1, 4, 4, 4, 5, 5, 5], [1, 4, 4, 4, 5, 5, 5]),
        ],
    ),
    "M-14": (
        "k a b g1 c d g2 g3",
        {**PARTIAL, "fields.g1.sequence-group": "a,b", "fields.g2,g3.sequence-group": "c,d"},
        [
            ([1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]),
            ([1, 2, 2, 2, 2, 2, 1, N], [1, 2, 2, 2, 1, 1, 1, 1]),
            ([1, 3, 3, 1, 3, 3, 3, 1], [1, 2, 2, 2, 3, 3, 3, 1]),
        ],
    ),
    "M-15": (
        "k a b c d",
        {
            **PARTIAL,
            "fields.a.sequence-group": "b",
            "fields.c.sequence-group": "d",
            **_functions(b="first_value", d="sum"),
        },
        [
            ([1, 1, 1, N, N], [1, 1, 1, N, N]),
            ([1, N, N, 1, 1], [1, 1, 1, 1, 1]),
            ([1, 2, 2, N, N], [1, 2, 1, 1, 1]),
            ([1, N, N, 2, 2], [1, 2, 1, 2, 3]),
        ],
    ),
    "M-16": (
        "k a b g1 c:STRING g2 g3",
        {**PARTIAL, "fields.g1,g3.sequence-group": "a", "fields.g2.sequence-group": "c", **_functions(a="sum")},
        [
            ([1, 1, 1, 1, "1", 1, 1], [1, 1, 1, 1, "1", 1, 1]),
            ([1, 2, 2, 2, "2", N, 2], [1, 3, 2, 2, "1", 1, 2]),
            ([1, 3, 3, 2, "3", 3, 1], [1, 6, 3, 2, "3", 3, 2]),
        ],
    ),
    "M-17": (
        "k s fv:STRING lnn:STRING la:STRING su",
        {
            **PARTIAL,
            "fields.s.sequence-group": "fv,lnn,la,su",
            **_functions(fv="first_value", lnn="last_non_null_value", la="listagg", su="sum"),
        },
        [
            ([1, 10, "a", "a", "a", 1], [1, 10, "a", "a", "a", 1]),
            ([1, 20, "b", "b", "b", 2], [1, 20, "a", "b", "a,b", 3]),
            ([1, 5, "c", "c", "c", 4], [1, 20, "c", "b", "c,a,b", 7]),
        ],
    ),
    "M-18": (
        "k a b c d",
        {
            **PARTIAL,
            "fields.a.sequence-group": "b",
            "fields.c.sequence-group": "d",
            "fields.default-aggregate-function": "last_non_null_value",
            **_functions(d="sum"),
        },
        [
            ([1, 1, 1, N, N], [1, 1, 1, N, N]),
            ([1, N, N, 1, 1], [1, 1, 1, 1, 1]),
            ([1, 2, 2, N, N], [1, 2, 2, 1, 1]),
            ([1, N, N, 2, 2], [1, 2, 2, 2, 3]),
        ],
    ),
    "M-19, M-20": (
        "k s v:STRING",
        {**PARTIAL, "fields.s.sequence-group": "v"},
        [([1, 1, "x"], [1, 1, "x"]), ([1, 1, "y"], [1, 1, "y"]), ([1, 2, N], [1, 2, N])],
    ),
    "M-21, M-22": (
        "k a:STRING b:STRING",
        {**PARTIAL, "partial-update.remove-record-on-delete": "true"},
        [
            ([1, "a", "b"], [1, "a", "b"]),
            (("-U", [1, "a", "b"]), [1, "a", "b"]),
            (("-D", [1, "a", "b"]), N),
            ([1, N, "c"], [1, N, "c"]),
        ],
    ),
    "M-22 aggregation": (
        "k a",
        {**AGGREGATION, **_functions(a="sum"), "aggregation.remove-record-on-delete": "true"},
        [([1, 10], [1, 10]), (("-D", [1, 10]), N), ([1, 5], [1, 5])],
    ),
    "M-31": (
        "k n",
        {**AGGREGATION, **_functions(n="sum")},
        [
            ([1, 10], [1, 10]),
            ([1, 5], [1, 15]),
            (("-U", [1, 5]), [1, 10]),
            (("+U", [1, 7]), [1, 17]),
            (("-D", [1, 7]), [1, 10]),
        ],
    ),
    "M-32": ("k n", {**AGGREGATION, **_functions(n="sum")}, [(("-D", [1, 5]), N), ([1, 8], [1, 3])]),
    "M-33": ("k n", {**AGGREGATION, **_functions(n="sum")}, [(("-D", [1, 5]), N), (("-D", [1, 3]), [1, -8])]),
    "M-34": ("k n", {**AGGREGATION, **_functions(n="sum")}, [([1, N], [1, N]), ([1, 5], [1, 5]), ([1, N], [1, 5])]),
    "M-35": (
        "k n",
        {**AGGREGATION, **_functions(n="product")},
        [([1, 6], [1, 6]), ([1, 4], [1, 24]), (("-U", [1, 4]), [1, 6]), (("-U", [1, 4]), [1, 1])],
    ),
    "M-36": ("k n", {**AGGREGATION, **_functions(n="product")}, [(("-D", [1, 4]), N), ([1, 6], [1, 6])]),
    "M-37": (
        "k a:STRING b:STRING",
        {**AGGREGATION, **_functions(b="last_value")},
        [([1, "a", "x"], [1, "a", "x"]), ([1, N, N], [1, "a", N])],
    ),
    "M-38": ("k a:STRING", AGGREGATION, [([1, "a"], [1, "a"]), (("-U", [1, "a"]), [1, N])]),
    "M-39": (
        "k a:STRING b:STRING",
        {**AGGREGATION, **_functions(a="first_value", b="first_non_null_value")},
        [([1, N, N], [1, N, N]), ([1, "b", "b"], [1, N, "b"]), ([1, "c", "c"], [1, N, "b"])],
    ),
    "M-40": (
        "k a:STRING b:STRING",
        {
            **AGGREGATION,
            **_functions(a="listagg", b="listagg"),
            "fields.b.list-agg-delimiter": ";",
            "fields.b.distinct": "true",
        },
        [
            ([1, "a", "a;b"], [1, "a", "a;b"]),
            ([1, N, N], [1, "a", "a;b"]),
            ([1, "", ""], [1, "a", "a;b"]),
            ([1, "b", "b;c"], [1, "a,b", "a;b;c"]),
            ([1, "a", "a"], [1, "a,b,a", "a;b;c"]),
        ],
    ),
    "M-41": (
        "k a:BOOLEAN b:BOOLEAN",
        {**AGGREGATION, **_functions(a="bool_and", b="bool_or")},
        [([1, True, False], [1, True, False]), ([1, N, N], [1, True, False]), ([1, False, True], [1, False, True])],
    ),
    "M-44": (
        "k n",
        {**AGGREGATION, **_functions(n="max"), "fields.n.ignore-retract": "true"},
        [([1, 9], [1, 9]), (("-D", [1, 9]), [1, 9])],
    ),
    "M-49": (
        "k n",
        {**AGGREGATION, "aggregation.remove-record-on-delete": "true"},
        [([1, 2], [1, 2]), (("-U", [1, 2]), [1, N]), (("+U", [1, 3]), [1, 3]), (("-D", [1, 3]), N), ([1, 2], [1, 2])],
    ),
    "M-60": ("k a:STRING", {"merge-engine": "first-row"}, [([1, "a"], [1, "a"]), ([1, "b"], [1, "a"])]),
}


def _table(columns: str, options: dict[str, str], **more: Any) -> ModelTable:
    types = {}
    for text in columns.split():
        name, _, kind = text.partition(":")
        types[name] = AtomicType(lt.INT.root, nullable=False) if name == "k" else TYPES[kind]
    return ModelTable(types, ["k"], engine=model_engine(options, list(types), ["k"]), **more)


def _write(table: ModelTable, change: Any) -> None:
    kind, cells = change if isinstance(change, tuple) else ("+I", change)
    table.write([dict(zip(table.schema.names, cells, strict=True))], [kind])


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    """The model shows what the example says, record after record."""
    columns, options, steps = EXAMPLES[name]
    table = _table(columns, options)
    for change, visible in steps:
        _write(table, change)
        assert [list(row.values()) for row in table.rows()] == ([] if visible is None else [visible])


@pytest.mark.parametrize(
    "options", [{**AGGREGATION, **_functions(n="max")}, PARTIAL, {"merge-engine": "first-row"}], ids=str
)
def test_m45_what_takes_nothing_back_refuses_when_records_meet(options: dict[str, str]) -> None:
    """M-45: a lone retract is just not shown; together with another record it is an error."""
    table = _table("k n", options)
    _write(table, ("-D", [1, 9]))
    assert table.rows() == []
    _write(table, [1, 9])
    with pytest.raises(InvalidData):
        table.rows()


def test_n46_count_writes_ones_and_zeros() -> None:
    """N-46: a counted column holds the number of values, nulls not counted, and retracts count down."""
    table = _table("k n", {**AGGREGATION, **_functions(n="count")}, counted=["n"])
    for change in ([1, 7], [1, N], [1, 9], ("-U", [1, 7])):
        _write(table, change)
    assert table.rows() == [{"k": 1, "n": 1}]


def test_m62_new_rows_of_first_row_show_after_compaction() -> None:
    """M-62: snapshots hide what was not compacted when they were made, now as well as later."""
    table = _table("k a:STRING", {"merge-engine": "first-row"}, hides_new=True)
    _write(table, [1, "a"])
    assert table.rows() == []
    table.compact()
    _write(table, [2, "b"])
    assert table.rows() == [{"k": 1, "a": "a"}]
    assert table.rows(at=1) == []


def test_numbers_that_do_not_fit_are_refused() -> None:
    """Sums and products that their column has no room for are errors; division cuts integers, rounds decimals."""
    total = model_aggregate("sum")
    with pytest.raises(InvalidData):
        total.add(127, 1, lt.TINYINT)
    product = model_aggregate("product")
    assert product.retract(-7, 2, lt.INT) == -3
    assert product.retract(fitting(Decimal("1.00"), lt.decimal(5, 2)), Decimal("3"), lt.decimal(5, 2)) == Decimal(
        "0.33"
    )
    with pytest.raises(InvalidData):
        product.retract(7, 0, lt.INT)


def test_unknown_names_say_what_there_is() -> None:
    """Functions and engines that the model does not know are named."""
    with pytest.raises(NotFound, match="median"):
        model_aggregate("median")
    with pytest.raises(NotFound, match="newest"):
        model_engine({"merge-engine": "newest"}, ["k"], ["k"])
