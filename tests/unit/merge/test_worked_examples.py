"""Worked examples of partial-update and aggregation tables, through real tables, one commit for each row.

Every example runs twice: with the files as they come, and fully compacted after each commit. Both show the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lakebed

N = None
GROUPS = {"fields.g_1.sequence-group": "a,b", "fields.g_2.sequence-group": "c,d"}
WIDE = "k a b g_1 c d g_2"


def _partial(**options: str) -> dict[str, str]:
    return {"merge-engine": "partial-update", **options}


def _sums(*columns: str, **more: str) -> dict[str, str]:
    return {
        "merge-engine": "aggregation",
        **{f"fields.{column}.aggregate-function": "sum" for column in columns},
        **more,
    }


# name: columns (INT unless given), options, (row, visible row afterwards) pairs; a kind may stand in front of the row
EXAMPLES: dict[str, tuple[str, dict[str, str], Sequence[tuple[Any, Any]]]] = {
    "M-10": (
        "k a:DOUBLE b c:STRING",
        _partial(),
        [
            ([1, 23.0, 10, N], [1, 23.0, 10, N]),
            ([1, N, N, "This is a book"], [1, 23.0, 10, "This is a book"]),
            ([1, 25.2, N, N], [1, 25.2, 10, "This is a book"]),
        ],
    ),
    "M-11 and M-12": (
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
    "M-30 (N-45)": (
        "k price:DOUBLE sales:BIGINT",
        {**_sums("sales"), "fields.price.aggregate-function": "max"},
        [([1, 23.0, 15], [1, 23.0, 15]), ([1, 30.2, 20], [1, 30.2, 35])],
    ),
    "M-31": (
        "k n",
        _sums("n"),
        [
            ([1, 10], [1, 10]),
            ([1, 5], [1, 15]),
            (("-U", [1, 5]), [1, 10]),
            (("+U", [1, 7]), [1, 17]),
            (("-D", [1, 7]), [1, 10]),
        ],
    ),
    "M-34": ("k n", _sums("n"), [([1, N], [1, N]), ([1, 5], [1, 5]), ([1, N], [1, 5])]),
    "M-35": (
        "k n",
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "product"},
        [([1, 6], [1, 6]), ([1, 4], [1, 24]), (("-U", [1, 4]), [1, 6])],
    ),
    "M-37": (
        "k a:STRING b:STRING",
        {"merge-engine": "aggregation", "fields.b.aggregate-function": "last_value"},
        [([1, "a", "x"], [1, "a", "x"]), ([1, N, N], [1, "a", N])],
    ),
    "M-38": (
        "k a:STRING",
        {"merge-engine": "aggregation"},
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
    "M-49": (
        "k n",
        {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"},
        [
            ([2, 2], [2, 2]),
            (("-U", [2, 2]), [2, N]),
            (("+U", [2, 3]), [2, 3]),
            (("-D", [2, 3]), N),
            ([2, 2], [2, 2]),
        ],
    ),
}


def _create(columns: str, options: Mapping[str, str]) -> lakebed.Table:
    kinds = dict((*name.split(":"), "INT")[:2] for name in columns.split())
    key = next(iter(kinds))
    lake = lakebed.connect(f"memory://{uuid4()}")
    return lake.create_table(
        "t", {**kinds, key: "INT NOT NULL"}, primary_key=[key], options={"bucket": "1", "write-only": "true", **options}
    )


def _write(table: lakebed.Table, change: Any) -> None:
    kind, row = change if isinstance(change, tuple) else ("+I", change)
    columns = [pa.array([value], field.type) for value, field in zip(row, table.arrow_schema, strict=True)]
    rows = pa.Table.from_arrays(columns, schema=table.arrow_schema)
    table.write(rows.append_column("op", pa.array([kind])), row_kind="op")


@pytest.mark.parametrize("compacts", [False, True], ids=["as-written", "compacted"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, compacts: bool) -> None:
    """After each commit the table shows the row that the example says."""
    columns, options, steps = EXAMPLES[example]
    table = _create(columns, options)
    for change, visible in steps:
        _write(table, change)
        if compacts:
            table.compact(full=True)
        shown = [list(row.values()) for row in table.to_arrow().to_pylist()]
        assert shown == ([] if visible is None else [visible])


def test_m45_max_can_not_take_back() -> None:
    """M-45: a retract that the function can not do is an error that names the way out, when the rows meet."""
    table = _create("k n", {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"})
    _write(table, [1, 9])
    _write(table, ("-D", [1, 9]))
    with pytest.raises(lakebed.errors.InvalidData, match="ignore-retract"):
        table.to_arrow()


def test_partial_update_says_what_to_do_with_deletes() -> None:
    """N-41: without an option for them, deletes are refused when they meet a row, and the options are named."""
    table = _create("k n", _partial())
    _write(table, [1, 9])
    _write(table, ("-D", [1, 9]))
    with pytest.raises(lakebed.errors.InvalidData, match=r"ignore-delete.*remove-record-on-delete"):
        table.to_arrow()


def test_m32_and_m33_retracts_first() -> None:
    """M-32, M-33: a lone retract is passed on untouched and shows nothing; with a second record it counts."""
    table = _create("k n", _sums("n"))
    _write(table, ("-D", [1, 5]))
    assert table.to_arrow().num_rows == 0
    _write(table, [1, 8])
    _write(table, ("-D", [2, 5]))
    _write(table, ("-D", [2, 3]))
    assert table.to_arrow().sort_by("k").to_pylist() == [{"k": 1, "n": 3}, {"k": 2, "n": -8}]
