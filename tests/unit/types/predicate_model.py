"""Random filters in three forms that must agree: a row-by-row model, a predicate, and a pyarrow expression.

A filter is a nested tuple, so that each form is built from it independently. Only tests import this.
"""

from __future__ import annotations

import math
import operator
import re
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from lakebed.types.predicate import (
    Always,
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Op,
    Opaque,
    Or,
    Predicate,
    TextMatch,
    conjunction,
    disjunction,
    negate,
)

Filter = tuple[Any, ...]

SCHEMA = pa.schema(
    [
        ("i", pa.int8()),
        ("j", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("y", pa.binary()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("ms")),
    ]
)
NAN = float("nan")

_texts = st.sampled_from(
    ["", "a", "ab", "abc", "b", "é", "éa", "zz", "a%", "a_b", "\uffff", "\U00010000", "A'b", "abcdef"]
)
_moments = st.sampled_from(
    [datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(1970, 1, 1), datetime(2020, 5, 17, 12, 0, 0, 5000)]
)
_numbers = st.sampled_from([0, 1, -1, 2, 5, 127, -128, 100])
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "i": _numbers,
    "j": _numbers | st.sampled_from([2**40, -(2**40)]),
    "f": st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.5, NAN, math.inf, -math.inf, 0.10000000149011612, 5.0]),
    "x": st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.5, NAN, math.inf, -math.inf, 0.1, 5.0, 1e300]),
    "d": st.sampled_from([Decimal(text) for text in ("0", "1.00", "1.50", "-1.00", "0.10", "999.99", "-999.99", "5")]),
    "s": _texts,
    "y": _texts.map(str.encode) | st.just(b"\xff\x00"),
    "b": st.booleans(),
    "t": _moments,
}
_off_grid = st.sampled_from([datetime(2020, 5, 17, 12, 0, 0, 5001), datetime(2020, 5, 17, 12, 0, 0, 4999)])
_any_number = (
    _numbers
    | st.sampled_from([1000, -129, 128, 2**40])
    | st.sampled_from([0.5, 1.0, 0.1, -0.0, NAN, math.inf, -math.inf, 127.5, 1e300])
    | st.sampled_from([Decimal("0.1"), Decimal("1.5"), Decimal("1.505"), Decimal("1000.5")])
)
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys("ijfxd", _any_number),
    "s": _texts,
    "y": CELLS["y"],
    "b": st.booleans(),
    "t": _moments | _off_grid,
}


def rows(max_size: int = 8) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with nulls now and then."""
    return st.lists(st.fixed_dictionaries({name: st.none() | cell for name, cell in CELLS.items()}), max_size=max_size)


def batch_of(some_rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The rows as a batch of the model's schema."""
    return pa.RecordBatch.from_pylist(some_rows, schema=SCHEMA)


def filters() -> st.SearchStrategy[Filter]:
    """Random filters over the model's columns."""
    name = st.sampled_from(SCHEMA.names)
    leaf = st.one_of(
        name.flatmap(lambda n: st.tuples(st.just("compare"), st.just(n), st.sampled_from(list(Op)), LITERALS[n])),
        name.flatmap(lambda n: st.tuples(st.just("isin"), st.just(n), st.lists(st.none() | CELLS[n], max_size=4))),
        st.tuples(st.just("null"), name),
        st.tuples(st.just("text"), st.sampled_from(list(Match)), _texts | st.sampled_from(["a%c", "_", "%b%", "a\\%"])),
        st.tuples(st.just("constant"), st.sampled_from([True, False, None])),
        st.tuples(st.just("flag")),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)),
            st.tuples(st.just("not"), inner),
        ),
        max_leaves=8,
    )


# --- the model: one row, True / False / None -------------------------------------------------------------------------


def holds(what: Filter, row: dict[str, Any]) -> bool | None:
    """Three-valued truth of a filter for a row."""
    match what:
        case ("constant", value):
            return value
        case ("flag",):
            return row["b"]
        case ("null", name):
            return row[name] is None
        case ("compare", name, op, literal):
            return None if row[name] is None else _compares(name, row[name], op, literal)
        case ("isin", name, values):
            if row[name] is None:
                return None in values
            return any(value is not None and _found(row[name], value) for value in values)
        case ("text", match, pattern):
            return None if row["s"] is None else _matches(match, pattern, row["s"])
        case ("not", inner):
            value = holds(inner, row)
            return None if value is None else not value
        case ("and", parts):
            return _kleene([holds(part, row) for part in parts], decisive=False)
        case ("or", parts):
            return _kleene([holds(part, row) for part in parts], decisive=True)
    raise AssertionError(what)


def _kleene(values: list[bool | None], decisive: bool) -> bool | None:
    return decisive if decisive in values else None if None in values else not decisive


_PYTHON = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compares(name: str, cell: Any, op: Op, literal: Any) -> bool:
    if isinstance(literal, int | float | Decimal) and not isinstance(literal, bool):
        if name == "d" and isinstance(literal, float) and math.isfinite(literal):
            literal = Decimal(repr(literal))
        elif name in "fx" and isinstance(literal, Decimal):
            literal = float(literal)
        cell, literal = _exact(cell), _exact(literal)
    elif isinstance(cell, str):
        cell, literal = cell.encode(), literal.encode()
    return bool(_PYTHON[op](cell, literal))


def _exact(number: Any) -> Any:
    return number if isinstance(number, float) and not math.isfinite(number) else Fraction(number)


def _found(cell: Any, value: Any) -> bool:
    """pyarrow's is_in: bit by bit for floats."""
    if isinstance(cell, float):
        return repr(cell) == repr(value)
    return bool(cell == value)


def _matches(match: Match, pattern: str, text: str) -> bool:
    match match:
        case Match.STARTS_WITH:
            return text.startswith(pattern)
        case Match.ENDS_WITH:
            return text.endswith(pattern)
        case Match.CONTAINS:
            return pattern in text
    signs = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.fullmatch("".join(wild.get(sign) or re.escape(sign[-1]) for sign in signs), text, re.DOTALL) is not None


# --- the same as predicate and as pyarrow expression -----------------------------------------------------------------


def as_predicate(what: Filter) -> Predicate:
    """The filter as a tree made by hand, literals still of their own types."""
    match what:
        case ("constant", value):
            return Always(value)
        case ("flag",):
            return Comparison("b", Op.EQ, pa.scalar(True))
        case ("null", name):
            return IsNull(name)
        case ("compare", name, op, literal):
            return Comparison(name, op, pa.scalar(literal))
        case ("isin", name, values):
            return _membership(name, values)
        case ("text", match, pattern):
            return TextMatch("s", match, pattern)
        case ("not", inner):
            return negate(as_predicate(inner))
        case ("and", parts):
            return And(tuple(as_predicate(part) for part in parts))
        case ("or", parts):
            return Or(tuple(as_predicate(part) for part in parts))
    raise AssertionError(what)


def _membership(name: str, values: list[Any]) -> Predicate:
    present = [value for value in values if value is not None]
    if name in "fx" and any(value == 0 or value != value for value in present):
        # Said with pyarrow's is_in, since equality knows neither NaN nor the sign of zero.
        return Opaque(as_expression(("isin", name, values)), frozenset({name}))
    found = In(name, pa.array(present, SCHEMA.field(name).type))
    return disjunction([IsNull(name), found]) if None in values else conjunction([IsNotNull(name), found])


_TEXT_FUNCTIONS = {
    Match.STARTS_WITH: pc.starts_with,
    Match.ENDS_WITH: pc.ends_with,
    Match.CONTAINS: pc.match_substring,
    Match.LIKE: pc.match_like,
}


def as_expression(what: Filter) -> pc.Expression:
    """The filter as pyarrow users write it."""
    match what:
        case ("constant", value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case ("flag",):
            return pc.field("b")
        case ("null", name):
            return pc.field(name).is_null()
        case ("compare", name, op, literal):
            return _PYTHON[op](pc.field(name), pc.scalar(literal))
        case ("isin", name, values):
            return pc.field(name).isin(pa.array(values, SCHEMA.field(name).type))
        case ("text", match, pattern):
            return _TEXT_FUNCTIONS[match](pc.field("s"), pattern)
        case ("not", inner):
            return ~as_expression(inner)
        case ("and", parts):
            return reduce(operator.and_, [as_expression(part) for part in parts])
        case ("or", parts):
            return reduce(operator.or_, [as_expression(part) for part in parts])
    raise AssertionError(what)


def pyarrow_mask(expression: pc.Expression, batch: pa.RecordBatch) -> list[bool]:
    """Which rows pyarrow itself keeps."""
    numbered = pa.Table.from_batches([batch]).append_column("#", pa.array(range(batch.num_rows), pa.int64()))
    kept = set(numbered.filter(expression)["#"].to_pylist())
    return [row in kept for row in range(batch.num_rows)]
