"""Constants of a query with Spark's types."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Constant, NotProven

_INT, _BIGINT = 1 << 31, 1 << 63


def text_constant(value: str) -> Constant:
    """A text."""
    if "\0" in value:
        raise NotProven("a text with a zero byte")
    return Constant(type=kinds.STRING, nullable=False, value=value, text="'" + value.replace("'", "''") + "'")


def _number_constant(text: str, *, is_negative: bool = False) -> Constant:
    """A number: INT or BIGINT if whole and small enough, else DECIMAL; with an exponent DOUBLE."""
    sign = "-" if is_negative else ""
    if re.fullmatch(r"\d+", text):
        value = int(sign + text)
        if -_INT <= value < _INT:
            return Constant(type=kinds.INT, nullable=False, value=value, text=f"CAST({value} AS INTEGER)")
        if -_BIGINT <= value < _BIGINT:
            return Constant(type=kinds.BIGINT, nullable=False, value=value, text=f"CAST({value} AS BIGINT)")
        return _decimal_constant(Decimal(value))
    if "e" in text.lower():
        return Constant(
            type=kinds.DOUBLE, nullable=False, value=float(sign + text), text=f"CAST({sign}{text} AS DOUBLE)"
        )
    return _decimal_constant(Decimal(sign + text))


def _decimal_constant(value: Decimal) -> Constant:
    """A decimal with as many digits as are written."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise NotProven(f"a number of {precision} digits")
    kind = kinds.decimal(precision, scale)
    return Constant(type=kind, nullable=False, value=value, text=f"CAST('{value:f}' AS {kinds.duckdb_name(kind)})")


def _boolean_constant(value: bool) -> Constant:
    """TRUE or FALSE."""
    return Constant(type=kinds.BOOLEAN, nullable=False, value=value, text="TRUE" if value else "FALSE")


def _untyped_null() -> Constant:
    """NULL, of no type yet."""
    return Constant(type=kinds.NULL, nullable=True, value=None, text="NULL")


def constant_of(node: exp.Expression) -> Constant | None:
    """The constant that a node is; None if it is none."""
    match node:
        case exp.Null():
            return _untyped_null()
        case exp.Boolean():
            return _boolean_constant(bool(node.this))
        case exp.Literal() if node.is_string:
            return text_constant(str(node.this))
        case exp.Literal():
            return _number_constant(str(node.this))
        case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number_constant(str(node.this.this), is_negative=True)
        case exp.HexString():
            digits = str(node.this)
            raw = bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
            text = "".join(f"\\x{byte:02X}" for byte in raw)
            return Constant(type=kinds.BINARY, nullable=False, value=raw, text=f"'{text}'::BLOB")
    return None
