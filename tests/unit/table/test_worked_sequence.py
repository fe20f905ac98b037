"""Worked examples of deduplicate tables, sequence fields, row kinds from a column, and defaults that are written."""

from __future__ import annotations

import pytest
from tests.unit.table.worked_tables import MODES, Example, N, create, levels, play, shown, write

import lakebed
from lakebed.errors import InvalidData, InvalidOption

PLAIN, TIMED = "k v:STRING", "k v:STRING s"
SEQUENCE = {"sequence.field": "s"}

EXAMPLES: dict[str, Example] = {
    "M-01 (N-38)": (PLAIN, {}, [([1, "a"], [1, "a"]), ([1, "b"], [1, "b"])]),
    "M-02 (N-38)": (PLAIN, {}, [([1, "a"], [1, "a"]), (("-D", [1, "a"]), N)]),
    "M-03": (PLAIN, {}, [([1, "a"], [1, "a"]), (("-U", [1, "a"]), N), (("+U", [1, "b"]), [1, "b"])]),
    "M-04": (PLAIN, {"ignore-delete": "true"}, [([1, "a"], [1, "a"]), (("-D", [1, "a"]), [1, "a"])]),
    "M-04 by its old name": (
        PLAIN,
        {"deduplicate.ignore-delete": "true"},
        [([1, "a"], [1, "a"]), (("-D", [1, "a"]), [1, "a"])],
    ),
    "M-05": (PLAIN, {}, [(("-D", [1, "x"]), N)]),
    "M-06": (TIMED, SEQUENCE, [([1, "a", 5], [1, "a", 5]), (("-D", [1, "a", 3]), [1, "a", 5])]),
    "Q-01": (TIMED, SEQUENCE, [([1, "a", 5], [1, "a", 5]), ([1, "b", 3], [1, "a", 5])]),
    "Q-02": (TIMED, SEQUENCE, [([1, "a", 5], [1, "a", 5]), ([1, "b", 5], [1, "b", 5])]),
    "Q-03": (
        TIMED,
        SEQUENCE,
        [([1, "a", N], [1, "a", N]), ([1, "b", 1], [1, "b", 1]), ([1, "c", N], [1, "b", 1])],
    ),
    "Q-03, nulls among themselves": (TIMED, SEQUENCE, [([1, "a", N], [1, "a", N]), ([1, "b", N], [1, "b", N])]),
    "Q-04": (
        TIMED,
        SEQUENCE | {"sequence.field.sort-order": "descending"},
        [([1, "a", 5], [1, "a", 5]), ([1, "b", 3], [1, "b", 3]), ([1, "c", N], [1, "b", 3])],
    ),
    "Q-05": (
        "k v:STRING t n",
        {"sequence.field": "t,n"},
        [([1, "a", 1, 9], [1, "a", 1, 9]), ([1, "b", 2, 1], [1, "b", 2, 1]), ([1, "c", 2, 0], [1, "b", 2, 1])],
    ),
    "D-01 and D-02 (N-44)": (
        "k a b c",
        {"merge-engine": "partial-update", "fields.b.default-value": "0"},
        [
            ([1, 1, N, N], [1, 1, 0, N]),
            ([1, N, N, 1], [1, 1, 0, 1]),
            ([1, N, 7, N], [1, 1, 7, 1]),
            ([1, N, N, N], [1, 1, 7, 1]),
        ],
    ),
    "N-44 without the option": (
        "k a b c",
        {"merge-engine": "partial-update"},
        [([1, 1, N, N], [1, 1, N, N]), ([1, N, N, 1], [1, 1, N, 1])],
    ),
    "3.3 row kind from a column": (
        "k v:STRING op:STRING",
        {"rowkind.field": "op"},
        [
            ([1, "a", "+I"], [1, "a", "+I"]),
            ([1, "b", "+U"], [1, "b", "+U"]),
            ([1, "b", "-D"], N),
            ([1, "c", "+I"], [1, "c", "+I"]),
            ([1, "c", "-U"], N),
        ],
    ),
    "3.3 and then ignore-delete": (
        "k v:STRING op:STRING",
        {"rowkind.field": "op", "ignore-delete": "true"},
        [([1, "a", "+I"], [1, "a", "+I"]), ([1, "b", "-D"], [1, "a", "+I"])],
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, mode: str) -> None:
    """After each commit the table shows the row that the example says."""
    play(EXAMPLES[example], mode)


@pytest.mark.parametrize("example", [name for name in EXAMPLES if "name" not in name])
def test_example_in_one_commit(example: str) -> None:
    """The rows of an example show at the end what they show one by one, if they all come in one commit."""
    columns, options, steps = EXAMPLES[example]
    table = create(columns, options)
    write(table, [change if isinstance(change, tuple) else ("+I", change) for change, _ in steps])
    visible = steps[-1][1]
    assert shown(table) == ([] if visible is None else [visible])


def test_q_02_tie_between_files_written_and_compacted() -> None:
    """Q-02: of equal sequence values the later arrival wins, also against a row in a higher level."""
    table = create(TIMED, SEQUENCE)
    write(table, [1, "a", 5], "compacted")
    assert levels(table) == [5]
    write(table, [1, "b", 5])
    assert shown(table) == [[1, "b", 5]]
    assert shown(table, columns=["k", "v"]) == [[1, "b"]]


@pytest.mark.parametrize("mode", MODES)
def test_g_08_projection_does_not_change_the_winner(mode: str) -> None:
    """G-08: a read without the sequence column shows the same winner."""
    table = create(TIMED, SEQUENCE, mode)
    for row in ([1, "a", 5], [1, "b", 3], [2, "c", N], [2, "d", 0], [2, "e", N]):
        write(table, row, mode)
    assert shown(table, columns=["k", "v"]) == [[1, "a"], [2, "d"]]
    assert shown(table, columns=["v"]) == [["a"], ["d"]]


@pytest.mark.parametrize("mode", MODES)
def test_g_07_a_filter_brings_no_old_row_back(mode: str) -> None:
    """G-07: a filter on a column that holds in an older row only finds nothing."""
    table = create(TIMED, {}, mode)
    for row in ([1, "a", 5], [1, "b", 3]):
        write(table, row, mode)
    assert shown(table, filter=[("s", "=", 5)]) == []
    assert shown(table, filter=[("v", "=", "b")]) == [[1, "b", 3]]


@pytest.mark.parametrize("mode", MODES)
def test_sequence_field_may_be_altered(mode: str) -> None:
    """3.1: the order counts for merges from then on; what was merged before stays."""
    table = create("k v:STRING s t", SEQUENCE, mode)
    write(table, [1, "a", 5, 1], mode)
    table.alter(lakebed.SetOption("sequence.field", "t"))
    write(table, [1, "b", 3, 2], mode)
    assert shown(table) == [[1, "b", 3, 2]]
    write(table, [1, "c", 9, 1], mode)
    assert shown(table) == [[1, "b", 3, 2]]


def test_g_11_options_that_can_not_change() -> None:
    """G-11: what decides how stored rows are read is fixed with the first snapshot."""
    table = create("k v:STRING op:STRING", {})
    write(table, [1, "a", "+I"])
    for key, value in {
        "merge-engine": "aggregation",
        "primary-key.nullable": "true",
        "rowkind.field": "op",
        "bucket-key": "k",
        "partial-update.remove-record-on-delete": "true",
    }.items():
        with pytest.raises(InvalidOption, match=key):
            table.alter(lakebed.SetOption(key, value))


# --- row kinds from a column -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "I", "delete", ""])
def test_row_kind_must_be_one(kind: str | None) -> None:
    """3.3: null and other texts are errors that name the column; nothing is written."""
    table = create("k v:STRING op:STRING", {"rowkind.field": "op"})
    with pytest.raises(InvalidData, match="`op`"):
        write(table, [1, "a", kind])
    assert table.latest_snapshot() is None


def test_row_kind_after_defaults() -> None:
    """3.3: a column default is filled in before the kind is looked at."""
    table = create("k v:STRING op:STRING", {"rowkind.field": "op"})
    table.alter(lakebed.UpdateColumnDefault("op", "+I"))
    write(table, [1, "a", None])
    assert shown(table) == [[1, "a", "+I"]]


# --- column defaults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_d_03_defaults_count_from_when_they_are_set(mode: str) -> None:
    """D-03: null is stored as the default of the moment it is written."""
    table = create("a b", {}, mode)
    table.alter(lakebed.UpdateColumnDefault("b", "2"))
    write(table, [1, N], mode)
    table.alter(lakebed.UpdateColumnDefault("b", "3"))
    write(table, [2, N], mode)
    assert shown(table) == [[1, 2], [2, 3]]


@pytest.mark.parametrize("mode", MODES)
def test_column_default_overwrites_in_partial_update(mode: str) -> None:
    """3.4, N-44: the default is a value as any other, so it takes the place of the one that was there."""
    table = create("k b", {"merge-engine": "partial-update"}, mode)
    table.alter(lakebed.UpdateColumnDefault("b", "0"))
    write(table, [1, 5], mode)
    assert shown(table) == [[1, 5]]
    write(table, [1, N], mode)
    assert shown(table) == [[1, 0]]


def test_null_check_comes_before_the_default() -> None:
    """3.4: null into a NOT NULL column fails although the column has a default."""
    table = create({"k": "INT", "b": "INT NOT NULL"}, {})
    table.alter(lakebed.UpdateColumnDefault("b", "0"))
    with pytest.raises(InvalidData, match="`b`"):
        write(table, [1, N])


def test_new_columns_have_no_default_for_old_rows() -> None:
    """3.4: rows written before a column was added show null in it."""
    table = create("k a", {})
    write(table, [1, 1])
    table.alter(lakebed.AddColumn("b", "INT"), lakebed.UpdateColumnDefault("b", "7"))
    write(table, [2, 2, N])
    assert shown(table) == [[1, 1, N], [2, 2, 7]]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_a_column_that_orders_rows_has_no_function(engine: str) -> None:
    """Paimon opens no table with a function for a column of `sequence.field`, idle or not: refused at CREATE, ALTER."""
    function = {"fields.s.aggregate-function": "last_non_null_value"}
    with pytest.raises(InvalidOption, match=r"`s` of `sequence.field` has an aggregate function"):
        create("k s v", {"merge-engine": engine, "sequence.field": "s", **function})
    table = create("k s v", {"merge-engine": engine, **function})
    with pytest.raises(InvalidOption, match=r"`s` of `sequence.field` has an aggregate function"):
        table.alter(lakebed.SetOption("sequence.field", "s"))
