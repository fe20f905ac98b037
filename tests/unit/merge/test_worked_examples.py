"""Worked examples of partial-update tables, through real tables, one commit for each row.

Every example runs without compaction, fully compacted after each commit, and compacted as it comes due: all show the
same.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.table.worked_tables import MODES, Example, N, create, play, shown, write

import lakebed
from lakebed.types.logical import parse_type

GROUPS = {"fields.g_1.sequence-group": "a,b", "fields.g_2.sequence-group": "c,d"}
WIDE = "k a b g_1 c d g_2"


def _partial(**options: str) -> dict[str, str]:
    return {"merge-engine": "partial-update", **options}


# columns, options, (row, visible row afterwards) pairs; a kind may stand in front of the row
EXAMPLES: dict[str, Example] = {
    "M-10 and N-39": (
        "k a:DOUBLE b c:STRING",
        _partial(),
        [
            ([1, 23.0, 10, N], [1, 23.0, 10, N]),
            ([1, N, N, "This is a book"], [1, 23.0, 10, "This is a book"]),
            ([1, 25.2, N, N], [1, 25.2, 10, "This is a book"]),
        ],
    ),
    "M-11 (N-42) and M-12": (
        WIDE,
        _partial(**GROUPS),
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
        WIDE,
        _partial(**GROUPS, **{"partial-update.remove-record-on-sequence-group": "g_2"}),
        [
            ([1, 2, 2, 2, 3, 3, 3], [1, 2, 2, 2, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, N]), [1, N, N, 3, 3, 3, 3]),
            (("-D", [1, 1, 1, 3, 1, 1, 4]), N),
            ([1, 4, 4, 4, 5, 5, 5], [1, 4, 4, 4, 5, 5, 5]),
        ],
    ),
    "M-14": (
        "k a b g1 c d g2 g3",
        _partial(**{"fields.g1.sequence-group": "a,b", "fields.g2,g3.sequence-group": "c,d"}),
        [
            ([1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]),
            ([1, 2, 2, 2, 2, 2, 1, N], [1, 2, 2, 2, 1, 1, 1, 1]),
            ([1, 3, 3, 1, 3, 3, 3, 1], [1, 2, 2, 2, 3, 3, 3, 1]),
        ],
    ),
    "M-15 (N-43)": (
        "k a b c d",
        _partial(
            **{
                "fields.a.sequence-group": "b",
                "fields.b.aggregate-function": "first_value",
                "fields.c.sequence-group": "d",
                "fields.d.aggregate-function": "sum",
            }
        ),
        [
            ([1, 1, 1, N, N], [1, 1, 1, N, N]),
            ([1, N, N, 1, 1], [1, 1, 1, 1, 1]),
            ([1, 2, 2, N, N], [1, 2, 1, 1, 1]),
            ([1, N, N, 2, 2], [1, 2, 1, 2, 3]),
        ],
    ),
    "M-16": (
        "k a b g1 c:STRING g2 g3",
        _partial(
            **{
                "fields.a.aggregate-function": "sum",
                "fields.g1,g3.sequence-group": "a",
                "fields.g2.sequence-group": "c",
            }
        ),
        [
            ([1, 1, 1, 1, "1", 1, 1], [1, 1, 1, 1, "1", 1, 1]),
            ([1, 2, 2, 2, "2", N, 2], [1, 3, 2, 2, "1", 1, 2]),
            ([1, 3, 3, 2, "3", 3, 1], [1, 6, 3, 2, "3", 3, 2]),
        ],
    ),
    "M-17": (
        "k s fv:STRING lnn:STRING la:STRING su",
        _partial(
            **{
                "fields.s.sequence-group": "fv,lnn,la,su",
                "fields.fv.aggregate-function": "first_value",
                "fields.lnn.aggregate-function": "last_non_null_value",
                "fields.la.aggregate-function": "listagg",
                "fields.su.aggregate-function": "sum",
            }
        ),
        [
            ([1, 10, "a", "a", "a", 1], [1, 10, "a", "a", "a", 1]),
            ([1, 20, "b", "b", "b", 2], [1, 20, "a", "b", "a,b", 3]),
            ([1, 5, "c", "c", "c", 4], [1, 20, "c", "b", "c,a,b", 7]),
        ],
    ),
    "M-18": (
        "k a b c d",
        _partial(
            **{
                "fields.a.sequence-group": "b",
                "fields.c.sequence-group": "d",
                "fields.default-aggregate-function": "last_non_null_value",
                "fields.d.aggregate-function": "sum",
            }
        ),
        [
            ([1, 1, 1, N, N], [1, 1, 1, N, N]),
            ([1, N, N, 1, 1], [1, 1, 1, 1, 1]),
            ([1, 2, 2, N, N], [1, 2, 2, 1, 1]),
            ([1, N, N, 2, 2], [1, 2, 2, 2, 3]),
        ],
    ),
    "M-19 and M-20": (
        "k s v:STRING",
        _partial(**{"fields.s.sequence-group": "v"}),
        [
            ([1, 1, "x"], [1, 1, "x"]),
            ([1, 1, "y"], [1, 1, "y"]),
            ([1, 2, N], [1, 2, N]),
        ],
    ),
    "M-21 and M-22": (
        "k a:STRING b:STRING",
        _partial(**{"partial-update.remove-record-on-delete": "true"}),
        [
            ([1, "a", "b"], [1, "a", "b"]),
            (("-U", [1, "a", "b"]), [1, "a", "b"]),
            (("-D", [1, "a", "b"]), N),
            ([1, N, "c"], [1, N, "c"]),
        ],
    ),
}


def _group(function: str | None = None) -> dict[str, str]:
    """Column v protected by s, with an aggregate function if one is given."""
    functions = {} if function is None else {"fields.v.aggregate-function": function}
    return _partial(**{"fields.s.sequence-group": "v"}, **functions)


LATE_AFTER_RETRACT: dict[str, Example] = {
    "last_non_null_value": (
        "k s v:STRING",
        _group("last_non_null_value"),
        [([1, 2, "a"], [1, 2, "a"]), (("-D", [1, 3, "a"]), [1, 3, N]), ([1, 1, "b"], [1, 3, "b"])],
    ),
    "merge_map": (
        "k s v:MAP<INT,STRING>",
        _group("merge_map"),
        [
            ([1, 2, [(1, "a")]], [1, 2, [(1, "a")]]),
            (("-D", [1, 3, [(1, "a")]]), [1, 3, []]),
            ([1, 1, [(1, "b")]], [1, 3, [(1, "b")]]),
        ],
    ),
    "collect": (
        "k s v:ARRAY<INT>",
        _group("collect"),
        [
            ([1, 2, [1]], [1, 2, [1]]),
            (("-U", [1, 3, [1]]), [1, 3, []]),
            ([1, 1, [2]], [1, 3, [2]]),
            (("-U", [1, 3, [2]]), [1, 3, []]),
            ([1, 1, [3]], [1, 3, [3]]),
        ],
    ),
}
RETRACT_FIRST: dict[str, Example] = {
    "no sequence": (
        "k s v e",
        _group(),
        [(("-D", [1, N, 5, 7]), N), ([1, N, N, N], [1, N, 5, 7])],
    ),
    "late add": (
        "k s v e",
        _group(),
        [(("-D", [1, 2, 5, 7]), N), ([1, 1, 9, N], [1, 2, N, 7])],
    ),
    "sum": (
        "k s v e",
        _group("sum"),
        [(("-D", [1, 2, 5, 7]), N), ([1, 3, 8, N], [1, 3, 8, 7])],
    ),
    "two and a sum": (
        "k s v e",
        _group("sum"),
        [(("-D", [1, 2, 5, 7]), N), (("-D", [1, 3, 6, 7]), N), ([1, 4, 8, N], [1, 4, 2, 7])],
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", LATE_AFTER_RETRACT)
def test_2_3_late_add_after_a_retract(function: str, mode: str) -> None:
    """2.3 rule 4: what was taken back before a late add came does not take the late value back."""
    play(LATE_AFTER_RETRACT[function], mode)


@pytest.mark.parametrize("example", RETRACT_FIRST)
def test_2_3_a_retract_first_primes_the_row(example: str) -> None:
    """2.3: a first record that takes away gives the row its values first; a full compaction drops it instead (5.7)."""
    play(RETRACT_FIRST[example], "as-written")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, mode: str) -> None:
    """After each commit the table shows the row that the example says."""
    play(EXAMPLES[example], mode)


def test_m_22_a_delete_is_a_barrier_in_one_merge_too() -> None:
    """M-22: rows before and after the delete that come in one commit give what separate commits give."""
    table = create("k a:STRING b:STRING", _partial(**{"partial-update.remove-record-on-delete": "true"}))
    write(table, [[1, "a", "b"], ("-D", [1, "a", "b"]), [1, N, "c"]])
    assert shown(table) == [[1, N, "c"]]


def test_n_40_changes_are_the_partial_rows() -> None:
    """N-40: without a changelog, whoever follows the table gets the rows as written, nulls included, not merged."""
    table = create("k a:STRING b:STRING", _partial())
    write(table, [1, "a", N])
    write(table, [1, N, "b"])
    assert [list(row.values()) for row in table.changes().to_pylist()] == [["+I", 1, "a", N], ["+I", 1, N, "b"]]
    assert shown(table) == [[1, "a", "b"]]


def test_n_41_partial_update_says_what_to_do_with_deletes() -> None:
    """N-41: without an option for them, deletes are refused before they are in the table, and the options are named."""
    table = create("k n", _partial())
    write(table, [1, 9])
    for key in (1, 2):
        with pytest.raises(lakebed.errors.InvalidData, match=r"ignore-delete.*remove-record-on-delete"):
            write(table, ("-D", [key, 9]))
    assert table.to_arrow().num_rows == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", ["ignore-delete", "partial-update.ignore-delete"])
def test_n_41_deletes_may_be_ignored(key: str, mode: str) -> None:
    """N-41: both names of the option drop retracts before they are stored."""
    steps = [
        ([1, 9, N], [1, 9, N]),
        (("-D", [1, 9, N]), [1, 9, N]),
        (("-U", [1, 9, N]), [1, 9, N]),
        ([1, N, 2], [1, 9, 2]),
    ]
    play(("k a b", _partial(**{key: "true"}), steps), mode)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("TINYINT", 1, 2),
        ("BIGINT", 1, 2),
        ("DOUBLE", 1.0, 1.5),
        ("DECIMAL(5,2)", "1.00", "1.50"),
        ("DATE", "2024-01-01", "2024-01-02"),
        ("TIMESTAMP(6)", "2024-01-01 00:00:00", "2024-01-01 00:00:01"),
        ("STRING", "a", "b"),
    ],
)
def test_n_42_types_that_order_a_group(kind: str, low: object, high: object) -> None:
    """N-42: numbers, times and texts order a sequence group; the smaller one does not update."""
    table = create({"k": "INT", "s": kind, "v": "STRING"}, _partial(**{"fields.s.sequence-group": "v"}))
    names = table.arrow_schema.names
    for ordering, value in ((high, "new"), (low, "old")):
        data = pa.table(
            [pa.array([1], pa.int32()), pa.array([ordering]).cast(table.arrow_schema.field("s").type), [value]], names
        )
        table.write(data)
    assert shown(table, columns=["k", "v"]) == [[1, "new"]]


def test_n_43_functions_need_a_group() -> None:
    """N-43: a column outside every sequence group takes no function but `last_non_null_value`."""
    create("k a b", _partial(**{"fields.a.aggregate-function": "last_non_null_value"}))
    with pytest.raises(lakebed.errors.InvalidOption, match=r"`a`.*sequence group"):
        create("k a b", _partial(**{"fields.a.aggregate-function": "sum"}))


def test_n_43_a_function_for_all_columns_needs_all_in_groups() -> None:
    """N-43: the default function is one of each column, at CREATE and ALTER: a column in no group must have its own."""
    every = {"fields.g.sequence-group": "a,b", "fields.default-aggregate-function": "last_value"}
    table = create("k a b g", _partial(**every))
    with pytest.raises(lakebed.errors.InvalidOption, match=r"default-aggregate-function` is `last_value`.*`n`"):
        table.alter(lakebed.AddColumn("n", parse_type("INT")))
    own = {"fields.b.aggregate-function": "last_non_null_value", "fields.g.sequence-group": "a"}
    create("k a b g", _partial(**(every | own)))
    with pytest.raises(lakebed.errors.InvalidOption, match=r"default-aggregate-function` is `sum`.*`a`"):
        create("k a b", _partial(**{"fields.default-aggregate-function": "sum"}))
    plain = create("k a b", _partial())
    with pytest.raises(lakebed.errors.InvalidOption, match=r"default-aggregate-function` is `max`.*`a`"):
        plain.alter(lakebed.SetOption("fields.default-aggregate-function", "max"))
