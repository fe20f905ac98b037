"""Values that stand in a statement, worked out here: numbers, texts, dates, arrays, casts of them.

    CAST('7' AS INT), DATE '2024-01-01', ARRAY[1, 2], ROW(1, 'a'), -1.5, X'01AB'

Anything else (functions, subqueries, casts whose outcome depends on settings) is `NotLiteral`: Spark works it out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from lakebed.errors import LakebedError
from lakebed.sql.words.conversion import convert
from lakebed.sql.words.values import Items, Members, NotLiteral, Pairs, Scalar, Value
from lakebed.types.logical import DataType, TypeRoot, parse_type

_INTEGER = re.compile(r"\d+")
_FIXED = re.compile(r"\d*\.\d*")
_SUFFIXES = {
    "TINYINT": TypeRoot.TINYINT,
    "SMALLINT": TypeRoot.SMALLINT,
    "INT": TypeRoot.INT,
    "BIGINT": TypeRoot.BIGINT,
    "FLOAT": TypeRoot.FLOAT,
    "DOUBLE": TypeRoot.DOUBLE,
}


def evaluate(node: exp.Expression) -> Value:
    """The value of an expression; raises NotLiteral if only Spark can tell."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return Scalar(TypeRoot.BOOLEAN, bool(node.this))
        case exp.Literal():
            return Scalar(TypeRoot.VARCHAR, node.this) if node.is_string else number(str(node.this))
        case exp.HexString():
            return _bytes(str(node.this))
        case exp.Paren():
            return evaluate(node.this)
        case exp.Neg():
            return negative(evaluate(node.this))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node)
        case exp.Cast():  # TRY_CAST is one, too
            return _cast(node)
        case exp.Array():
            return Items(tuple(evaluate(part) for part in node.expressions))
        case exp.Struct():
            parts = [part.expression if isinstance(part, exp.PropertyEQ) else part for part in node.expressions]
            return Members(tuple(evaluate(part.this if isinstance(part, exp.Alias) else part) for part in parts))
        case exp.VarMap() | exp.Map():
            return _map(node)
        case _:
            raise NotLiteral


def number(text: str) -> Scalar:
    """A number as Spark reads it: whole, with a point (exact), or with an exponent."""
    if _INTEGER.fullmatch(text):
        number = int(text)
        if number < 1 << 31:
            return Scalar(TypeRoot.INT, number)
        return Scalar(TypeRoot.BIGINT if number < 1 << 63 else TypeRoot.DECIMAL, number)
    if _FIXED.fullmatch(text) and text != ".":
        return Scalar(TypeRoot.DECIMAL, Decimal(text))
    try:
        return Scalar(TypeRoot.DOUBLE, float(text))
    except ValueError:
        raise NotLiteral from None


def _bytes(text: str) -> Scalar:
    try:
        return Scalar(TypeRoot.VARBINARY, bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}"))
    except ValueError:
        raise NotLiteral from None


def negative(value: Value) -> Value:
    """A number with its sign changed."""
    if isinstance(value, Scalar) and isinstance(value.value, int | float | Decimal) and value.root != TypeRoot.BOOLEAN:
        is_widest = value.root == TypeRoot.BIGINT and value.value == 1 << 31
        return Scalar(TypeRoot.INT if is_widest else value.root, -value.value)
    if value is None:
        return None
    raise NotLiteral


def _arithmetic(node: exp.Binary) -> Value:
    """Sums, differences and products of whole numbers; what overflows is left to Spark's settings."""
    left, right = evaluate(node.this), evaluate(node.expression)
    if not (isinstance(left, Scalar) and isinstance(right, Scalar)):
        raise NotLiteral
    if {left.root, right.root} - {TypeRoot.INT, TypeRoot.BIGINT}:
        raise NotLiteral
    root = TypeRoot.BIGINT if TypeRoot.BIGINT in (left.root, right.root) else TypeRoot.INT
    a, b = int(left.value), int(right.value)
    number = a + b if isinstance(node, exp.Add) else a - b if isinstance(node, exp.Sub) else a * b
    limit = 1 << (63 if root == TypeRoot.BIGINT else 31)
    if not -limit <= number < limit:
        raise NotLiteral
    return Scalar(root, number)


def _map(node: exp.Expression) -> Pairs:
    keys, values = node.args.get("keys"), node.args.get("values")
    if not (isinstance(keys, exp.Array) and isinstance(values, exp.Array)):
        if keys is None and values is None:
            return Pairs((), ())
        raise NotLiteral
    return map_of([evaluate(part) for part in keys.expressions], [evaluate(part) for part in values.expressions])


def map_of(keys: Sequence[Value], values: Sequence[Value]) -> Pairs:
    """A map of these keys and values, unless that is an error."""
    pairs = Pairs(tuple(keys), tuple(values))
    if len(pairs.keys) != len(pairs.values) or len(set(pairs.keys)) < len(pairs.keys) or None in pairs.keys:
        raise NotLiteral  # an error, and Spark knows which
    return pairs


# --- casts -----------------------------------------------------------------------------------------------------------
def _cast(node: exp.Cast) -> Value:
    target = _suffix_root(node)
    if target is not None:
        return target
    return convert(evaluate(node.this), _cast_type(node), explicit=True)


def _suffix_root(node: exp.Cast) -> Scalar | None:
    """`3L`, `1.0D`, `1.5F`: read as casts of the digits, and meant as literals of that type."""
    inner = node.this
    root = _SUFFIXES.get(node.to.this.value) if isinstance(node.to.this, exp.DataType.Type) else None
    if root is None or not isinstance(inner, exp.Literal) or inner.is_string:
        return None
    is_floating = root in (TypeRoot.FLOAT, TypeRoot.DOUBLE)
    if is_floating:
        return Scalar(root, float(inner.this))
    return Scalar(TypeRoot.BIGINT, int(inner.this)) if root == TypeRoot.BIGINT and inner.this.isdigit() else None


def _cast_type(node: exp.Cast) -> DataType:
    """The type that a cast names."""
    try:
        return parse_type(_type_text(node.to))
    except (LakebedError, ValueError):
        raise NotLiteral from None


_NAMES = {
    "TEXT": "STRING",
    "VARCHAR": "VARCHAR",
    "CHAR": "CHAR",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    "DECIMAL": "DECIMAL",
    "DATE": "DATE",
    "TIME": "TIME",
    # A clock without a zone in both: which of the two Spark means depends on a setting, and where a value is a literal
    # the local zone takes it to the same time of day.
    "TIMESTAMP": "TIMESTAMP(6)",
    "TIMESTAMPTZ": "TIMESTAMP(6)",
    "TIMESTAMPLTZ": "TIMESTAMP(6)",
    "TIMESTAMPNTZ": "TIMESTAMP(6)",
    "BINARY": "BYTES",
    "VARBINARY": "BYTES",
}


def _type_text(given: exp.DataType) -> str:
    name = given.this.value if isinstance(given.this, exp.DataType.Type) else ""
    if name == "ARRAY" and len(given.expressions) == 1:
        return f"ARRAY<{_type_text(given.expressions[0])}>"
    if name == "MAP" and len(given.expressions) == 2:
        return f"MAP<{', '.join(_type_text(part) for part in given.expressions)}>"
    if name == "STRUCT":
        members = [f"`{part.name}` {_type_text(part.args['kind'])}" for part in given.expressions]
        return f"ROW<{', '.join(members)}>"
    if name not in _NAMES:
        raise NotLiteral
    parameters = [part.name for part in given.expressions]
    if _NAMES[name] in ("DECIMAL", "VARCHAR", "CHAR") and parameters:
        return f"{_NAMES[name]}({', '.join(parameters)})"
    if name == "DECIMAL":
        return "DECIMAL(10, 0)"
    return "STRING" if name == "VARCHAR" else _NAMES[name]
