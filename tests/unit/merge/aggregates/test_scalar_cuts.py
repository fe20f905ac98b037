"""However the rows of a key are cut into merges, the scalar functions give what a fold row by row gives."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.merge.aggregates.scalar_folds import Column, Record, exactly, folded

from lakebed.types import logical as lt

Fold = Callable[[Any, Any], Any]
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)
_CENT = Decimal("0.01")


def started(step: Fold) -> Fold:
    """A step that takes the first value as it is."""
    return lambda total, value: value if total is None else step(total, value)


def on_singles(step: Fold) -> Fold:
    """The step in arithmetic of 32 bits."""

    def rounded(left: float, right: float) -> float:
        with np.errstate(all="ignore"):
            return float(step(np.float32(left), np.float32(right)))

    return rounded


def truncated(left: int, right: int) -> int:
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def doubles_divided(left: float, right: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(left) / np.float64(right))


def in_cents(value: Decimal) -> Decimal:
    return value.quantize(_CENT, context=_WIDE)


def is_greater(left: Any, right: Any) -> bool:
    """Java's order of floats; Python's own order for the rest."""

    def rank(value: Any) -> Any:
        if isinstance(value, float):
            return (value != value, 0.0 if value != value else value, np.copysign(1.0, value))
        return value

    return bool(rank(left) > rank(right))


def distinct(total: str | None, text: str) -> str | None:
    if not text.strip(" "):
        return total
    if total is None:
        return text
    for part in text.split(";"):
        if part.strip(" ") and part not in total.split(";"):
            total = f"{total};{part}"
    return total


def refuse(total: Any, value: Any) -> Any:
    raise AssertionError("no retract is made for this function")


def unless_nothing(step: Fold) -> Fold:
    return lambda total, value: None if total is None else step(total, value)


_FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 1e10, 3e38, float("inf"), float("nan"), 1e-40]).map(
    lambda value: float(np.float32(value))
)
_DOUBLES = st.floats(width=64)
_CENTS = st.integers(-999, 999).map(lambda cents: Decimal(cents).scaleb(-2))
_FACTORS = st.sampled_from([Decimal("1.01"), Decimal("-0.33"), Decimal("2.00"), Decimal("-1.50")])
_TEXTS = st.text("ab; ", max_size=5)
_ADD, _SUBTRACT = started(lambda a, b: a + b), lambda total, value: -value if total is None else total - value
_MAX = started(lambda a, b: b if is_greater(b, a) else a)
_MIN = started(lambda a, b: b if is_greater(a, b) else a)

CASES: dict[str, tuple[Column, st.SearchStrategy[Any], Fold, Fold]] = {
    "sum TINYINT": (Column(lt.TINYINT, "sum"), st.integers(-9, 9), _ADD, _SUBTRACT),
    "sum BIGINT": (Column(lt.BIGINT, "sum"), st.integers(-(2**59), 2**59), _ADD, _SUBTRACT),
    "sum DECIMAL": (Column(lt.decimal(4, 2), "sum"), _CENTS, _ADD, _SUBTRACT),
    "sum FLOAT": (
        Column(lt.FLOAT, "sum"),
        _FLOATS,
        started(on_singles(lambda a, b: a + b)),
        lambda total, value: -value if total is None else on_singles(lambda a, b: a - b)(total, value),
    ),
    "sum DOUBLE": (Column(lt.DOUBLE, "sum"), _DOUBLES, _ADD, _SUBTRACT),
    "product INT": (
        Column(lt.INT, "product"),
        st.sampled_from([1, -1, 2, -3, 5]),
        started(lambda a, b: a * b),
        unless_nothing(truncated),
    ),
    "product DOUBLE": (
        Column(lt.DOUBLE, "product"),
        _DOUBLES,
        started(lambda a, b: a * b),
        unless_nothing(doubles_divided),
    ),
    "product DECIMAL": (
        Column(lt.decimal(20, 2), "product"),
        _FACTORS,
        started(lambda a, b: in_cents(a * b)),
        unless_nothing(lambda a, b: in_cents(_WIDE.divide(a, b))),
    ),
    "max DOUBLE": (Column(lt.DOUBLE, "max"), _DOUBLES, _MAX, refuse),
    "min FLOAT": (Column(lt.FLOAT, "min"), _FLOATS, _MIN, refuse),
    "max STRING": (Column(lt.STRING, "max"), st.text("ab\U0001f600\uffff", max_size=3), _MAX, refuse),
    "min DECIMAL": (Column(lt.decimal(4, 2), "min"), _CENTS, _MIN, refuse),
    "max BIGINT": (Column(lt.BIGINT, "max"), st.integers(-(2**63), 2**63 - 1), _MAX, refuse),
    "bool_and": (Column(lt.BOOLEAN, "bool_and"), st.booleans(), started(lambda a, b: a and b), refuse),
    "bool_or": (Column(lt.BOOLEAN, "bool_or"), st.booleans(), started(lambda a, b: a or b), refuse),
    "listagg": (
        Column(lt.STRING, "listagg"),
        _TEXTS,
        lambda total, text: total if not text.strip(" ") else text if total is None else f"{total},{text}",
        refuse,
    ),
    "listagg distinct": (
        Column(lt.STRING, "listagg", {"distinct": "true", "list-agg-delimiter": ";"}),
        _TEXTS,
        distinct,
        refuse,
    ),
}


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_cut_equals_the_fold_row_by_row(case: str, data: st.DataObject) -> None:
    """Random rows of a few keys, cut at random: merged at once and in pieces they equal the plain definition."""
    column, values, add, take = CASES[case]
    kinds = st.sampled_from(["+I", "+U"] if take is refuse else ["+I", "+U", "+I", "-U", "-D"])
    row = st.tuples(st.integers(0, 2), kinds, st.one_of(st.none(), values, values))
    rows = data.draw(st.lists(row, min_size=1, max_size=12), label="rows")
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4), label="cuts")
    by_key: dict[int, list[Record]] = {}
    for key, kind, value in rows:
        by_key.setdefault(key, []).append((kind, value))
    expected = [(key, *folded(by_key[key], add, take)) for key in sorted(by_key)]
    batch = column.rows(*zip(*rows, strict=True))
    wanted = [(key, kind, repr(value)) for key, kind, value in expected]
    assert exactly(column.merged(batch)) == wanted
    assert exactly(column.merged_in_pieces(batch, cuts)) == wanted
