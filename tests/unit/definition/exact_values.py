"""What an Arrow value means, free of the type that holds it: the yardstick for conversions that must change nothing."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY_NANOS = 86_400 * 10**9


def exact(value: pa.Scalar) -> Any:
    """A Python value that is equal for two Arrow values if, and only if, they mean the same."""
    kind = value.type
    if not value.is_valid or types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        return exact(value.value)
    if types.is_map(kind):
        entries = value.values
        return "map", [(exact(key), exact(item)) for key, item in zip(entries.field(0), entries.field(1), strict=True)]
    if types.is_struct(kind):
        return "row", {member.name: exact(value[member.name]) for member in kind}
    if types.is_nested(kind):
        return "list", [exact(element) for element in value.values]
    return _exact_atom(value, kind)


def _exact_atom(value: pa.Scalar, kind: pa.DataType) -> Any:
    if types.is_boolean(kind):
        return "truth", value.as_py()
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number", _exact_number(value.as_py())
    if types.is_date32(kind):
        return "wall", value.value * _DAY_NANOS
    if types.is_date64(kind):
        return "wall", value.value * 10**6
    if types.is_time(kind):
        return "time of day", value.value * _NANOS[kind.unit]
    if types.is_timestamp(kind):
        return "wall" if kind.tz is None else "instant", value.value * _NANOS[kind.unit]
    if types.is_duration(kind):
        return "duration", value.value * _NANOS[kind.unit]
    return "text" if isinstance(value.as_py(), str) else "bytes", value.as_py()


def _exact_number(number: Any) -> Any:
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    with decimal.localcontext() as context:
        context.prec = 2000
        return Decimal(number).normalize()
