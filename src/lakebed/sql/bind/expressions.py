"""Expressions of a query: each node of the syntax tree becomes a call from the list, with types, or is not proven.

What depends on where an expression stands (columns, aggregates, windows, subqueries) is asked of a `Scope`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from lakebed.expressions.aggregates import AGGREGATES, RANKINGS
from lakebed.expressions.casts import cast
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Expression, Lambda, NotProven, Parameter
from lakebed.sql.bind.literals import constant_of, text_constant
from lakebed.sql.bind.types import type_of

_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "is distinct from",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
}
"""Operators with two sides, by the names under which they are on the list."""
_WITHOUT_BRACKETS = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
}


class Scope(Protocol):
    """Where an expression stands."""

    def column(self, path: Sequence[str]) -> Expression:
        """The column of a name, with qualifiers in front and members of structs behind."""
        ...

    def aggregate(self, node: exp.Expression) -> Expression:
        """An aggregate function: the node is the call, with FILTER and the like around it."""
        ...

    def window(self, node: exp.Window) -> Expression:
        """A function over a window."""
        ...

    def subquery(self, node: exp.Expression) -> Expression:
        """A scalar subquery, EXISTS, or IN with a query."""
        ...


def function_of(node: exp.Expression) -> exp.Anonymous | None:
    """The call itself, without FILTER, IGNORE NULLS or WITHIN GROUP around it."""
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None


class ExpressionBinder:
    """Binds expressions in one scope. `parameters` are those of the lambdas around."""

    def __init__(self, scope: Scope, parameters: dict[str, Parameter] | None = None) -> None:
        self._scope = scope
        self._parameters = parameters or {}

    def bind(self, node: exp.Expression) -> Expression:
        """The expression of a node."""
        constant = constant_of(node)
        if constant is not None:
            return constant
        if isinstance(node, exp.Paren | exp.Alias):
            return self.bind(node.this)
        if type(node) in _OPERATORS and not isinstance(node.expression, exp.Any | exp.All):
            found = self._named(_OPERATORS[type(node)], [node.this, node.expression])
            return self._named_of("not", [found]) if node.args.get("negate") else found
        if type(node) in _WITHOUT_BRACKETS:
            return self._named(_WITHOUT_BRACKETS[type(node)], [])
        return self._other(node)

    def _other(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Column() | exp.Identifier() | exp.Dot():
                return self._column(node)
            case exp.Window():
                return self._scope.window(node)
            case exp.Subquery() | exp.Exists() | exp.Query():
                return self._scope.subquery(node)
            case exp.In() if node.args.get("query") is not None:
                return self._scope.subquery(node)
            case exp.Anonymous() | exp.Filter() | exp.IgnoreNulls() | exp.RespectNulls() | exp.WithinGroup():
                return self._function(node)
            case exp.Neg():
                return self._named("negative", [node.this])
            case exp.BitwiseNot():
                return self._named("~", [node.this])
            case exp.Not():
                return self._named("not", [node.this])
            case exp.Is():
                return self._is(node)
            case exp.Between():
                low = self._named(">=", [node.this, node.args["low"]])
                return self._named_of("and", [low, self._named("<=", [node.this, node.args["high"]])])
            case exp.In():
                return self._named("in", [node.this, *node.expressions])
            case exp.Escape():
                name = _OPERATORS.get(type(node.this), "")
                return self._named(name, [node.this.this, node.this.expression, node.expression])
            case exp.Cast():  # TryCast is one, too
                is_try = bool(node.args.get("safe"))
                return cast(self.bind(node.this), type_of(node.to), is_try=is_try)
            case exp.Case():
                return self._case(node)
            case exp.Extract():
                return self._named_of(
                    "extract", [text_constant(node.name or node.this.name), self.bind(node.expression)]
                )
            case exp.Substring():
                given = [node.this, node.args.get("start"), node.args.get("length")]
                return self._named("substring", [each for each in given if each is not None])
            case exp.Trim():
                return self._trim(node)
            case exp.StrPosition():
                given = [node.args["substr"], node.this, node.args.get("position")]
                return self._named("position", [each for each in given if each is not None])
            case exp.Bracket() if len(node.expressions) == 1:
                return self._named("[]", [node.this, node.expressions[0]])
            case exp.Interval():
                unit = node.args["unit"].sql().upper()
                return self._named_of("interval", [text_constant(str(node.this.this)), text_constant(unit)])
        raise NotProven(f"`{node.sql('spark')}`")

    # --- parts ---------------------------------------------------------------------------------------------------

    def _named(self, name: str, nodes: Sequence[exp.Expression]) -> Expression:
        return self._named_of(name, [self.bind(node) for node in nodes])

    def _named_of(self, name: str, arguments: Sequence[Expression]) -> Expression:
        function = FUNCTIONS.get(name)
        if function is None:
            raise NotProven(f"`{name}`")
        return function(name, arguments)

    def _column(self, node: exp.Expression) -> Expression:
        if isinstance(node, exp.Identifier) and node.name.lower() in self._parameters:
            return self._parameters[node.name.lower()]
        if isinstance(node, exp.Dot):
            return self._member(node)
        if isinstance(node, exp.Column):
            first = node.parts[0].name.lower()
            if first in self._parameters:
                found: Expression = self._parameters[first]
                for part in node.parts[1:]:
                    found = self._named_of(".", [found, text_constant(part.name)])
                return found
            return self._scope.column([part.name for part in node.parts])
        return self._scope.column([node.name])

    def _member(self, node: exp.Dot) -> Expression:
        if not isinstance(node.expression, exp.Identifier):
            raise NotProven(f"`{node.sql('spark')}`")
        return self._named_of(".", [self.bind(node.this), text_constant(node.expression.name)])

    def _function(self, node: exp.Expression) -> Expression:
        called = function_of(node)
        if called is None:
            raise NotProven(f"`{node.sql('spark')}`")
        name = str(called.this).lower()
        if name in AGGREGATES:
            return self._scope.aggregate(node)
        if name in RANKINGS:
            raise NotProven(f"`{name}`", "it needs a window: OVER (...)")
        if called is not node or name not in FUNCTIONS:
            raise NotProven(f"`{name}`")
        if name in (
            "struct",
            "arrays_zip",
            "timestampdiff",
            "timestampadd",
            "date_diff",
            "date_add",
            "dateadd",
            "datediff",
        ):
            return self._with_words(name, called)
        return self._named_of(name, self._arguments(name, called.expressions))

    def _with_words(self, name: str, called: exp.Anonymous) -> Expression:
        """Arguments that are words: names of members, units of time."""
        given = called.expressions
        if name in ("struct", "arrays_zip"):
            naming = _member_name if name == "struct" else _zipped_name
            names = [naming(argument, n) for n, argument in enumerate(given)]
            pairs = [
                part for pair in zip(names, given, strict=True) for part in (text_constant(pair[0]), self.bind(pair[1]))
            ]
            return self._named_of("named_struct" if name == "struct" else name, pairs)
        if len(given) == 3 and isinstance(given[0], exp.Column | exp.Var):
            rest = [self.bind(each) for each in given[1:]]
            return self._named_of(name, [text_constant(given[0].name.upper()), *rest])
        return self._named(name, given)

    def _arguments(self, name: str, nodes: Sequence[exp.Expression]) -> list[Expression]:
        """Arguments from left to right; a lambda gets its types from what stands before it."""
        found: list[Expression] = []
        for node in nodes:
            found.append(self._lambda(name, node, found) if isinstance(node, exp.Lambda) else self.bind(node))
        return found

    def _lambda(self, name: str, node: exp.Lambda, before: Sequence[Expression]) -> Lambda:
        parameter_types = FUNCTIONS[name].lambda_types
        if parameter_types is None:
            raise NotProven(f"`{name}` with a lambda")
        types = parameter_types(list(before), len(node.expressions))
        if len(types) != len(node.expressions):
            raise NotProven(f"`{name}` with a lambda of {len(node.expressions)} parameters")
        # Numbers go on from those around, also where a name hides one of them.
        first = 1 + max((int(known.id[1:]) for known in self._parameters.values()), default=-1)
        parameters = tuple(Parameter(type=kind, id=f"p{first + n}") for n, kind in enumerate(types))
        inner = {found.name.lower(): parameter for found, parameter in zip(node.expressions, parameters, strict=True)}
        body = ExpressionBinder(self._scope, {**self._parameters, **inner}).bind(node.this)
        return Lambda(type=body.type, nullable=body.nullable, can_fail=body.can_fail, parameters=parameters, body=body)

    def _is(self, node: exp.Is) -> Expression:
        expected, is_negated = node.expression, False
        if isinstance(expected, exp.Not):
            expected, is_negated = expected.this, True
        if isinstance(expected, exp.Null):
            return self._named("isnotnull" if is_negated else "isnull", [node.this])
        if isinstance(expected, exp.Boolean):
            found = self._named("<=>", [node.this, expected])
            return self._named_of("not", [found]) if is_negated else found
        raise NotProven(f"`{node.sql('spark')}`")

    def _case(self, node: exp.Case) -> Expression:
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            condition = self._named("=", [node.this, branch.this]) if node.this is not None else self.bind(branch.this)
            parts += [condition, self.bind(branch.args["true"])]
        default = node.args.get("default")
        parts.append(self.bind(exp.Null() if default is None else default))
        return self._named_of("case", parts)

    def _trim(self, node: exp.Trim) -> Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        characters = node.args.get("expression")
        if characters is None:
            return self._named(name, [node.this])
        return self._named(f"{name} characters", [node.this, characters])


def _member_name(node: exp.Expression, place: int) -> str:
    """The name of a member of `struct(...)`: that of the column or alias, else by its place."""
    return node.alias_or_name if isinstance(node, exp.Column | exp.Alias) else f"col{place + 1}"


def _zipped_name(node: exp.Expression, place: int) -> str:
    """The name of a member of `arrays_zip(...)`: that of the column, else its place."""
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return node.name if isinstance(node, exp.Column | exp.Alias) else str(place)
