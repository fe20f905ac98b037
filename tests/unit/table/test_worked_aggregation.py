"""Worked examples of aggregation tables, through real tables: without, with full and with due compactions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.table.worked_tables import MODES, Example, N, create, play, shown, write

import lakebed
from lakebed.errors import InvalidData

AGGREGATION = {"merge-engine": "aggregation"}
ITEMS = "ARRAY<ROW<id INT, v STRING>>"


def _functions(**functions: str) -> dict[str, str]:
    return AGGREGATION | {f"fields.{name}.aggregate-function": function for name, function in functions.items()}


def _items(**items: str) -> list[dict[str, Any]]:
    return [{"id": int(name.removeprefix("_")), "v": value} for name, value in items.items()]


def _timed(**entries: tuple[str, int]) -> list[tuple[str, dict[str, Any]]]:
    return [(key, {"v": value, "t": time}) for key, (value, time) in entries.items()]


EXAMPLES: dict[str, Example] = {
    "M-30 (N-45)": (
        "k price:DOUBLE sales:BIGINT",
        _functions(sales="sum", price="max"),
        [([1, 23.0, 15], [1, 23.0, 15]), ([1, 30.2, 20], [1, 30.2, 35])],
    ),
    "M-31": (
        "k n",
        _functions(n="sum"),
        [
            ([1, 10], [1, 10]),
            ([1, 5], [1, 15]),
            (("-U", [1, 5]), [1, 10]),
            (("+U", [1, 7]), [1, 17]),
            (("-D", [1, 7]), [1, 10]),
        ],
    ),
    "M-34": ("k n", _functions(n="sum"), [([1, N], [1, N]), ([1, 5], [1, 5]), ([1, N], [1, 5])]),
    "M-35": (
        "k n",
        _functions(n="product"),
        [([1, 6], [1, 6]), ([1, 4], [1, 24]), (("-U", [1, 4]), [1, 6])],
    ),
    "M-37": (
        "k a:STRING b:STRING",
        _functions(b="last_value"),
        [([1, "a", "x"], [1, "a", "x"]), ([1, N, N], [1, "a", N])],
    ),
    "M-38": (
        "k a:STRING",
        AGGREGATION,
        [([1, "a"], [1, "a"]), (("-U", [1, "a"]), [1, N])],
    ),
    "M-41": (
        "k a:BOOLEAN b:BOOLEAN",
        {
            "merge-engine": "aggregation",
            "fields.a.aggregate-function": "bool_and",
            "fields.b.aggregate-function": "bool_or",
        },
        [
            ([1, True, False], [1, True, False]),
            ([1, N, N], [1, True, False]),
            ([1, False, True], [1, False, True]),
        ],
    ),
    "M-44": (
        "k n",
        {
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "max",
            "fields.n.ignore-retract": "true",
        },
        [([1, 9], [1, 9]), (("-D", [1, 9]), [1, 9])],
    ),
    "M-36": ("k n", _functions(n="product"), [(("-D", [1, 4]), N), ([1, 6], [1, 6])]),
    "M-39": (
        "k a:STRING b:STRING",
        _functions(a="first_value", b="first_non_null_value"),
        [([1, N, N], [1, N, N]), ([1, "b", "b"], [1, N, "b"]), ([1, "c", "c"], [1, N, "b"])],
    ),
    "M-40": (
        "k a:STRING b:STRING",
        _functions(a="listagg", b="listagg") | {"fields.b.list-agg-delimiter": ";", "fields.b.distinct": "true"},
        [
            ([1, "a", "a;b"], [1, "a", "a;b"]),
            ([1, N, N], [1, "a", "a;b"]),
            ([1, "", ""], [1, "a", "a;b"]),
            ([1, "b", "b;c"], [1, "a,b", "a;b;c"]),
            ([1, "a", "a"], [1, "a,b,a", "a;b;c"]),
        ],
    ),
    "M-42": (
        "k a:ARRAY<STRING> b:ARRAY<STRING>",
        _functions(a="collect", b="collect") | {"fields.b.distinct": "true"},
        [
            ([1, ["A", "B"], ["A", "B"]], [1, ["A", "B"], ["A", "B"]]),
            ([1, ["A"], ["A"]], [1, ["A", "B", "A"], ["A", "B"]]),
            (("-U", [1, ["A"], ["A"]]), [1, ["B", "A"], ["B"]]),
        ],
    ),
    "M-43": (
        "k m:MAP<INT,STRING>",
        _functions(m="merge_map"),
        [
            ([1, [(1, "A")]], [1, [(1, "A")]]),
            ([1, [(1, "B"), (2, "C")]], [1, [(1, "B"), (2, "C")]]),
            (("-D", [1, [(1, "B")]]), [1, [(2, "C")]]),
        ],
    ),
    "M-46": (
        {"k": "INT", "m": "MAP<STRING, ROW<v STRING, t BIGINT>>"},
        _functions(m="merge_map_with_keytime"),
        [
            ([1, _timed(n=("iPhone", 100), c=("Black", 100))], [1, _timed(n=("iPhone", 100), c=("Black", 100))]),
            (
                [1, _timed(n=("iPad", 200), p=("999", 200))],
                [1, _timed(n=("iPad", 200), c=("Black", 100), p=("999", 200))],
            ),
            ([1, _timed(c=("White", 50))], [1, _timed(n=("iPad", 200), c=("Black", 100), p=("999", 200))]),
        ],
    ),
    "M-47": (
        {"k": "INT", "v": ITEMS},
        _functions(v="nested_update") | {"fields.v.nested-key": "id"},
        [
            ([1, _items(_1="a")], [1, _items(_1="a")]),
            ([1, _items(_2="b")], [1, _items(_1="a", _2="b")]),
            ([1, _items(_1="c")], [1, _items(_1="c", _2="b")]),
            (("-D", [1, _items(_2="b")]), [1, _items(_1="c")]),
        ],
    ),
    "M-48": (
        {"k": "INT", "v": ITEMS},
        _functions(v="nested_update") | {"fields.v.count-limit": "2"},
        [
            ([1, _items(_1="a")], [1, _items(_1="a")]),
            ([1, _items(_1="a", _2="b")], [1, [*_items(_1="a"), *_items(_1="a")]]),
        ],
    ),
    "M-49": (
        "k a b",
        AGGREGATION | {"aggregation.remove-record-on-delete": "true"},
        [
            ([[1, 3, 3], [1, 1, 1], [1, 2, 2]], [1, 2, 2]),
            (("-U", [1, 2, 2]), [1, N, N]),
            (("+U", [1, 2, 3]), [1, 2, 3]),
            (("-D", [1, 2, 3]), N),
            ([1, 2, 2], [1, 2, 2]),
        ],
    ),
    "M-22, of a sum": (
        "k n",
        _functions(n="sum") | {"aggregation.remove-record-on-delete": "true"},
        [([1, 10], [1, 10]), (("-D", [1, 10]), N), ([1, 5], [1, 5])],
    ),
    "N-47": (
        {"order_id": "INT", "user_name": "STRING", "address": "STRING", "sub_orders": ITEMS},
        _functions(sub_orders="nested-update") | {"fields.sub_orders.nested-key": "id"},
        [
            ([1, "user1", "shanghai", N], [1, "user1", "shanghai", N]),
            ([1, N, N, _items(_1="iphone")], [1, "user1", "shanghai", _items(_1="iphone")]),
            ([1, N, N, _items(_2="ipad")], [1, "user1", "shanghai", _items(_1="iphone", _2="ipad")]),
        ],
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, mode: str) -> None:
    """After each commit the table shows the row that the example says."""
    play(EXAMPLES[example], mode)


@pytest.mark.parametrize("mode", ["as-written", "universal"])
def test_m_32_and_m_33_retracts_first(mode: str) -> None:
    """M-32, M-33: a lone retract is passed on untouched and shows nothing; with a second record it counts."""
    table = create("k n", _functions(n="sum"), mode)
    write(table, ("-D", [1, 5]), mode)
    assert shown(table) == []
    write(table, [1, 8], mode)
    assert shown(table) == [[1, 3]]
    other = create("k n", _functions(n="sum"), mode)
    write(other, ("-D", [2, 5]), mode)
    write(other, ("-D", [2, 3]), mode)
    assert shown(other) == [[2, -8]]


def test_m_32_a_lone_retract_ends_with_a_full_compaction() -> None:
    """M-32 and 5.7: nothing older can be below the highest level, so the retract is dropped, not counted later."""
    table = create("k n", _functions(n="sum"), "compacted")
    write(table, ("-D", [1, 5]), "compacted")
    write(table, [1, 8], "compacted")
    assert shown(table) == [[1, 8]]


def test_m_45_max_can_not_take_back() -> None:
    """M-45: a retract that the function can not do is an error that names the way out, before it is in the table."""
    table = create("k n", _functions(n="max"))
    write(table, [1, 9])
    for retract in (("-D", [1, 9]), ("-U", [1, 9]), ("-D", [2, 9])):
        with pytest.raises(InvalidData, match="ignore-retract"):
            write(table, retract)
    assert shown(table) == [[1, 9]]


def test_m_22_a_delete_is_a_barrier_in_one_commit_too() -> None:
    """M-22: what comes after a delete begins anew, also if all of it came in one commit."""
    table = create("k n", _functions(n="sum") | {"aggregation.remove-record-on-delete": "true"})
    write(table, [[1, 10], ("-D", [1, 10]), [1, 5]])
    assert shown(table) == [[1, 5]]


# --- notes -----------------------------------------------------------------------------------------------------------

TAKES_BACK: dict[str, tuple[str, Any, Any]] = {
    "sum": ("INT", 6, 0),
    "product": ("INT", 6, 1),
    "last_value": ("INT", 6, N),
    "last_non_null_value": ("INT", 6, N),
    "collect": ("ARRAY<INT>", [6], []),
    "merge_map": ("MAP<INT,INT>", [(6, 6)], []),
    "nested_update": (ITEMS, _items(_6="x"), []),
}
TAKES_NOTHING_BACK = {
    "max": ("INT", 6),
    "min": ("INT", 6),
    "first_value": ("INT", 6),
    "first_non_null_value": ("INT", 6),
    "bool_and": ("BOOLEAN", True),
    "bool_or": ("BOOLEAN", True),
    "listagg": ("STRING", "x"),
    "merge_map_with_keytime": ("MAP<INT, ROW<v INT, t INT>>", [(1, {"v": 1, "t": 1})]),
    "nested_partial_update": (ITEMS, _items(_6="x")),
}


def _needs(function: str) -> dict[str, str]:
    return {"fields.v.nested-key": "id"} if function == "nested_partial_update" else {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", TAKES_BACK)
def test_n_48_functions_that_take_back(function: str, mode: str) -> None:
    """N-48: a value that is taken back leaves nothing of itself; the row stays."""
    kind, value, nothing = TAKES_BACK[function]
    steps = [([1, value], [1, value]), (("-U", [1, value]), [1, nothing])]
    play(({"k": "INT", "v": kind}, _functions(v=function), steps), mode)


@pytest.mark.parametrize("function", TAKES_NOTHING_BACK)
def test_n_48_functions_that_do_not(function: str) -> None:
    """N-48: other functions refuse a retract by name, unless the column ignores it."""
    kind, value = TAKES_NOTHING_BACK[function]
    columns, options = {"k": "INT", "v": kind}, _functions(v=function) | _needs(function)
    table = create(columns, options)
    write(table, [1, value])
    with pytest.raises(InvalidData, match=f"`{function}`"):
        write(table, ("-U", [1, value]))
    assert shown(table) == [[1, value]]
    steps = [([1, value], [1, value]), (("-D", [1, value]), [1, value])]
    play((columns, options | {"fields.v.ignore-retract": "true"}, steps), "as-written")


@pytest.mark.parametrize(
    ("spelled", "stored"),
    [
        ("last-value", "last_value"),
        ("bool-and", "bool_and"),
        ("first_not_null_value", "first_non_null_value"),
        ("first-non-null-value", "first_non_null_value"),
        ("nested-update", "nested_update"),
        ("count", "sum"),
    ],
)
def test_n_46_names_of_functions(spelled: str, stored: str) -> None:
    """N-46: old and dashed names are taken, and what is stored is the name that other engines know."""
    kind = {"bool_and": "BOOLEAN", "nested_update": ITEMS}.get(stored, "BIGINT")
    table = create({"k": "INT", "v": kind}, _functions(v=spelled))
    assert table.options["fields.v.aggregate-function"] == stored


def test_n_45_the_default_function_can_be_changed() -> None:
    """N-45: columns without a function of their own take the table's default one."""
    table = create("k a b c", _functions(c="max") | {"fields.default-aggregate-function": "sum"})
    for row in ([1, 1, 2, 3], [1, 4, 5, 2]):
        write(table, row)
    assert shown(table) == [[1, 5, 7, 3]]


def test_g_12_options_of_columns_that_do_not_exist() -> None:
    """G-12: an option for a column that is not there is refused by name, so is one for a member of a ROW."""
    for name in ("nope", "r.x"):
        with pytest.raises(lakebed.errors.InvalidOption, match=f"`{name}`|`fields.{name}"):
            create({"k": "INT", "r": "ROW<x INT>"}, AGGREGATION | {f"fields.{name}.aggregate-function": "sum"})
