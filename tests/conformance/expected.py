"""Values of the conformance cases: from JSON to what is written, and to what is compared with rows that were read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Value = Any
Rows = Sequence[Sequence[Value]]


def from_json(value: Value) -> Value:
    """A value as a case writes it: plain JSON, or an object whose one key names the type."""
    if not isinstance(value, dict):
        return value
    ((kind, body),) = value.items()
    if kind in ("array", "row"):
        return [from_json(item) for item in body]
    if kind == "map":
        return [(from_json(key), from_json(item)) for key, item in body]
    return {
        "decimal": Decimal,
        "date": dt.date.fromisoformat,
        "ts": dt.datetime.fromisoformat,
        "hex": bytes.fromhex,
    }[kind](body)


def expected(value: Value, unordered: bool) -> Value:
    """What a case expects, in the form of `found`."""
    if not isinstance(value, dict):
        return found(value, unordered)
    ((kind, body),) = value.items()
    if kind == "map":
        pairs = ((expected(key, unordered), expected(item, unordered)) for key, item in body)
        return ("map" if body else "array", tuple(sorted(pairs, key=repr)))
    if kind in ("array", "row"):
        items = [expected(item, unordered) for item in body]
        return (kind, tuple(sorted(items, key=repr) if unordered and kind == "array" else items))
    return found(from_json(value), unordered)


def found(value: Value, unordered: bool) -> Value:
    """A value that was read, in one form: numbers as floats, maps sorted, arrays too if their order is left open."""
    if isinstance(value, Mapping):
        return ("row", tuple(found(item, unordered) for item in value.values()))
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        pairs = ((found(key, unordered), found(item, unordered)) for key, item in value)
        return ("map", tuple(sorted(pairs, key=repr)))
    if isinstance(value, list):
        items = [found(item, unordered) for item in value]
        return ("array", tuple(sorted(items, key=repr) if unordered else items))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return round(float(value), 5) + 0.0  # a FLOAT has no more digits; plus zero makes -0.0 look like 0.0
    return value


def assert_same(got: Rows, want: Rows, *, ordered: bool, unordered_arrays: bool) -> None:
    """The rows that were read are those a case expects, in its order if it gives one."""
    have = [tuple(found(value, unordered_arrays) for value in row) for row in got]
    need = [tuple(expected(value, unordered_arrays) for value in row) for row in want]
    if not ordered:
        have, need = sorted(have, key=repr), sorted(need, key=repr)
    assert have == need


def assert_same_changes(got: Rows, want: Rows, *, key_columns: int, unordered_arrays: bool) -> None:
    """The changes of each key are those a case expects, in order; changes of different keys have none."""
    by_key = [(row[1 : 1 + key_columns], row) for row in got], [(row[1 : 1 + key_columns], row) for row in want]
    for key in {repr([expected(value, False) for value in key]) for side in by_key for key, _ in side}:
        have, need = (
            [row for k, row in side if repr([expected(value, False) for value in k]) == key] for side in by_key
        )
        assert_same(have, need, ordered=True, unordered_arrays=unordered_arrays)
