"""What Spark calls a column of SELECT that has no name: the expression, in Spark's own spelling."""

from __future__ import annotations

from sqlglot import exp

_SIGNS: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.IntDiv: "div",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}


def shown_name(node: exp.Expression) -> str:
    """The name of a column: its alias, its own, or its text."""
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return str(node.expression.name)
    if isinstance(node, exp.Cast) and not node.args.get("safe") and isinstance(node.this, exp.Column):
        return str(node.this.name)
    return _text(node)


def _text(node: exp.Expression) -> str:
    sign = _SIGNS.get(type(node))
    if sign is not None:
        return f"({_text(node.this)} {sign} {_text(node.expression)})"
    match node:
        case exp.Literal():
            return str(node.this)
        case exp.Column():
            return ".".join(part.name for part in node.parts)
        case exp.Identifier():
            return str(node.name)
        case exp.Paren():
            return _text(node.this)
        case exp.Star():
            return "1"
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.NEQ():
            return f"(NOT ({_text(node.this)} = {_text(node.expression)}))"
        case exp.Not():
            return f"(NOT {_text(node.this)})"
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return f"-{_text(node.this)}"
        case exp.Neg():
            return f"(- {_text(node.this)})"
        case exp.DPipe():
            return f"concat({_text(node.this)}, {_text(node.expression)})"
        case exp.Is() if isinstance(node.expression, exp.Null):
            return f"({_text(node.this)} IS NULL)"
        case exp.Case():
            return _case(node)
        case exp.Anonymous():
            return f"{str(node.this).lower()}({', '.join(_text(each) for each in node.expressions)})"
        case exp.Distinct():
            return f"DISTINCT {', '.join(_text(each) for each in node.expressions)}"
        case exp.Bracket():
            return f"{_text(node.this)}[{_text(node.expressions[0])}]"
        case exp.Substring():
            given = [node.this, node.args.get("start"), node.args.get("length")]
            return f"substring({', '.join(_text(each) for each in given if each is not None)})"
        case exp.Trim():
            return f"trim({_text(node.this)})"
    return str(node.sql("spark"))


def _case(node: exp.Case) -> str:
    parts = ["CASE"]
    for branch in node.args["ifs"]:
        condition = _text(branch.this)
        if node.this is not None:
            condition = f"({_text(node.this)} = {condition})"
        parts.append(f"WHEN {condition} THEN {_text(branch.args['true'])}")
    default = node.args.get("default")
    if default is not None:
        parts.append(f"ELSE {_text(default)}")
    return " ".join([*parts, "END"])
