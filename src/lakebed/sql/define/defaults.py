"""DEFAULT clauses of columns: constants, as the texts that schemas keep.

5 -> 5    'a' -> a    ARRAY(1, 2) -> [1, 2]    MAP('k', 1) -> {k -> 1}    STRUCT(1, 'a') -> {1, a}
"""

from __future__ import annotations

from sqlglot import exp

from lakebed.errors import Unsupported
from lakebed.sql.statements import Sql


def default_text(value: Sql, column: str) -> str | None:
    """The text of a constant; None for NULL, which is no default."""
    if isinstance(value.tree, exp.Null):
        return None
    return _text(value.tree, value, column)


def _text(node: exp.Expression, value: Sql, column: str) -> str:
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(node, exp.Null):
        return "null"
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Cast | exp.Paren):
        return _text(node.this, value, column)
    if isinstance(node, exp.Array):
        return f"[{', '.join(_text(part, value, column) for part in node.expressions)}]"
    if isinstance(node, exp.Struct):
        parts = [part.expression if isinstance(part, exp.PropertyEQ) else part for part in node.expressions]
        return f"{{{', '.join(_text(part, value, column) for part in parts)}}}"
    if isinstance(node, exp.Map | exp.VarMap):
        keys, values = node.args["keys"].expressions, node.args["values"].expressions
        pairs = zip(keys, values, strict=True)
        return f"{{{', '.join(f'{_text(k, value, column)} -> {_text(v, value, column)}' for k, v in pairs)}}}"
    raise Unsupported(
        f"DEFAULT {value.text} of column `{column}` is no constant",
        hint="use a literal, or ARRAY(...), MAP(...) or STRUCT(...) of literals",
    )
