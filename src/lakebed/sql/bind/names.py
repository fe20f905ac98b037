"""What Spark calls a column of SELECT that has no name: the expression, in Spark's own spelling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from lakebed.expressions import kinds
from lakebed.expressions.aggregates import AGGREGATES, RANKINGS
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import NotProven
from lakebed.sql.bind.types import type_of

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
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_CALLED_BY_SIGN: dict[type[exp.Expression], str] = {
    exp.DPipe: "concat",
    exp.RegexpLike: "RLIKE",
}
_LOUD = {
    *(
        "rank",
        "dense_rank",
        "percent_rank",
        "floor",
        "ceil",
        "power",
        "signum",
        "pi",
        "e",
        "sqrt",
        "degrees",
        "radians",
    ),
    *("rlike", "regexp", "regexp_like"),
}
"""Functions that Spark shows in capitals."""
_ADDED = {
    ("months_between", 2): ("true",),
    ("unix_timestamp", 1): ("yyyy-MM-dd HH:mm:ss",),
    ("to_unix_timestamp", 1): ("yyyy-MM-dd HH:mm:ss",),
    ("from_unixtime", 1): ("yyyy-MM-dd HH:mm:ss",),
    ("round", 1): ("0",),
    ("listagg", 1): ("NULL",),
    ("string_agg", 1): ("NULL",),
    ("replace", 2): ("",),
    ("bround", 1): ("0",),
    ("sort_array", 1): ("true",),
    ("percentile", 2): ("1",),
    ("substring", 2): ("2147483647",),
    ("substr", 2): ("2147483647",),
    ("split", 2): ("-1",),
    ("array_join", 2): (),
    ("regexp_extract", 2): ("1",),
    ("regexp_extract_all", 2): ("1",),
    ("regexp_replace", 3): ("1",),
    ("locate", 2): ("1",),
    ("lpad", 2): (" ",),
    ("rpad", 2): (" ",),
    ("lag", 1): ("1", "NULL"),
    ("lead", 1): ("1", "NULL"),
    ("lag", 2): ("NULL",),
    ("lead", 2): ("NULL",),
}
"""Arguments that Spark shows though nobody wrote them, by function and how many were written."""
_CASTS = {
    "bigint",
    "binary",
    "boolean",
    "date",
    "decimal",
    "double",
    "float",
    "int",
    "smallint",
    "string",
    "timestamp",
    "tinyint",
}
"""Functions that are casts; their columns are called by what is cast."""

Path = Callable[[Sequence[str]], str]
"""How a column is shown within the name of another."""


def shown_name(node: exp.Expression, path: Path = ".".join, windows: Mapping[str, exp.Expression] | None = None) -> str:
    """The name of a column: its alias, its own, or its text. `windows` are those of the WINDOW clause."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        return str(node.name)
    inner = _uncast(node)
    if inner is not node and isinstance(_bare(inner), exp.Column):
        return str(_bare(inner).name)
    return _Texts(path, windows or {}).of(node)


def _uncast(node: exp.Expression) -> exp.Expression:
    """What a CAST is of; the node itself if it is none."""
    if isinstance(node, exp.Cast):
        return node.this
    is_call = isinstance(node, exp.Anonymous) and str(node.this).lower() in _CASTS and len(node.expressions) == 1
    return node.expressions[0] if is_call else node


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


class _Texts:
    """Texts of expressions, with columns as the query has them."""

    def __init__(self, path: Path, windows: Mapping[str, exp.Expression]) -> None:
        self._path = path
        self._windows = windows

    def of(self, node: exp.Expression) -> str:
        sign = _SIGNS.get(type(node))
        if sign in ("+", "-") and isinstance(node.expression, exp.Interval):
            return f"{self.of(node.this)} {sign} {self.of(node.expression)}"
        if sign is not None:
            return f"({self.of(node.this)} {sign} {self.of(node.expression)})"
        called = _CALLED_BY_SIGN.get(type(node))
        if called is not None:
            return self._call(called, [node.this, node.expression])
        match node:
            case exp.Literal():
                return str(node.this)
            case exp.HexString():
                return f"X'{str(node.this).upper()}'"
            case exp.Column():
                return self._path([part.name for part in node.parts])
            case exp.Identifier():
                return self._path([node.name])
            case exp.Paren():
                return self.of(node.this)
            case exp.Alias():
                return f"{self.of(node.this)} AS {node.alias}"
            case exp.Star():
                return "1"
            case exp.Null():
                return "NULL"
            case exp.Boolean():
                return "true" if node.this else "false"
            case exp.Anonymous():
                return self._function(node)
            case exp.Subquery() | exp.Exists():
                name = "exists" if isinstance(node, exp.Exists) else "scalarsubquery"
                return f"{name}({', '.join(node.meta.get('outer', ()))})"
        return self._condition(node) or self._other(node)

    def _condition(self, node: exp.Expression) -> str | None:
        match node:
            case exp.NEQ():
                return f"(NOT ({self.of(node.this)} = {self.of(node.expression)}))"
            case exp.NullSafeNEQ():
                return f"(NOT ({self.of(node.this)} <=> {self.of(node.expression)}))"
            case exp.Not() if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
                return f"({self.of(node.this.this)} IS NOT NULL)"
            case exp.Not() if isinstance(node.this, exp.Is):
                return f"(NOT {self._is(node.this)})"
            case exp.Not():
                return f"(NOT {self.of(node.this)})"
            case exp.Is():
                return self._is(node)
            case exp.ILike():
                text = f"ilike({self.of(node.this)}, {self.of(node.expression)})"
                return f"(NOT {text})" if node.args.get("negate") else text
            case exp.Like():
                text = f"{self.of(node.this)} LIKE {self.of(node.expression)}"
                return f"(NOT {text})" if node.args.get("negate") else text
            case exp.Escape() if isinstance(node.this, exp.Like):
                return f"{self.of(node.this)} ESCAPE '{node.expression.name}'"
            case exp.Between():
                return self._call("between", [node.this, node.args["low"], node.args["high"]])
            case exp.In() if node.args.get("query") is not None:
                given = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
                values = self._listed(given)
                outer = ", ".join(node.meta.get("outer", ()))
                return f"({f'({values})' if len(given) > 1 else values} IN (listquery({outer})))"
            case exp.In():
                return f"({self.of(node.this)} IN ({self._listed(node.expressions)}))"
        return None

    def _is(self, node: exp.Is) -> str:
        expected, is_negated = node.expression, False
        if isinstance(expected, exp.Not):
            expected, is_negated = expected.this, True
        if isinstance(expected, exp.Null):
            return f"({self.of(node.this)} IS {'NOT ' if is_negated else ''}NULL)"
        text = f"({self.of(node.this)} <=> {self.of(expected)})"
        return f"(NOT {text})" if is_negated else text

    def _other(self, node: exp.Expression) -> str:
        match node:
            case exp.Neg() if isinstance(node.this, exp.Literal):
                return f"-{self.of(node.this)}"
            case exp.Neg():
                return f"(- {self.of(node.this)})"
            case exp.BitwiseNot():
                return f"~{self.of(node.this)}"
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Window():
                return self._window(node)
            case exp.Filter():
                return f"{self.of(node.this)} FILTER (WHERE {self.of(node.expression.this)})"
            case exp.WithinGroup() if _is_percentile(node):
                first = node.expression.expressions[0]
                direction = " DESC" if first.args.get("desc") else ""
                return f"{self.of(node.this)} WITHIN GROUP (ORDER BY {self.of(first.this)}{direction})"
            case exp.WithinGroup():
                return f"{self.of(node.this)} WITHIN GROUP ({self._order(node.expression)})"
            case exp.IgnoreNulls():
                return self.of(node.this).replace("_value(", "(", 1)
            case exp.RespectNulls():
                return self.of(node.this)
            case exp.Distinct():
                return f"DISTINCT {self._listed(node.expressions)}"
            case exp.Dot():
                return f"{self.of(node.this)}.{node.expression.name}"
            case exp.Bracket():
                return f"{self.of(node.this)}[{self.of(node.expressions[0])}]"
            case exp.Lambda():
                parameters = {each.name.lower() for each in node.expressions}
                inner = _Texts(
                    lambda path: _parameter(path) if path[0].lower() in parameters else self._path(path), self._windows
                )
                variables = ", ".join("namedlambdavariable()" for _ in node.expressions)
                return f"lambdafunction({inner.of(node.this)}, {variables})"
            case exp.Extract():
                return f"extract({node.name or node.this.name} FROM {self.of(node.expression)})"
            case exp.Substring():
                given = [node.this, node.args.get("start"), node.args.get("length")]
                return self._call("substring", [each for each in given if each is not None])
            case exp.Trim():
                return self._trim(node)
            case exp.StrPosition():
                return self._call("position", [node.args["substr"], node.this])
            case exp.Interval():
                return _interval(node)
            case exp.CurrentDate() | exp.CurrentTimestamp() | exp.CurrentUser():
                return f"{node.key.replace('current', 'current_')}()"
        return str(node.sql("spark"))

    def _listed(self, nodes: Sequence[exp.Expression]) -> str:
        return ", ".join(self.of(each) for each in nodes)

    def _function(self, node: exp.Anonymous) -> str:
        name = str(node.this).lower()
        if name in _CASTS and len(node.expressions) == 1:
            return self.of(node.expressions[0])
        if name == "if":
            return f"(IF({self._listed(node.expressions)}))"
        if name in ("isnull", "isnotnull"):
            return f"({self.of(node.expressions[0])} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
        given = list(node.expressions)
        if name in ("first", "last", "first_value", "last_value", "any_value") and len(given) == 2:
            given.pop()  # whether nulls are left out is not shown
        return self._call(name, given)

    def _call(self, name: str, given: Sequence[exp.Expression]) -> str:
        known = FUNCTIONS.get(name) or AGGREGATES.get(name) or RANKINGS.get(name)
        name = "listagg" if name == "string_agg" else name
        shown = (known.shown if known is not None else None) or (name.upper() if name in _LOUD else name)
        more: tuple[str, ...] = _ADDED.get((name, len(given)), ())
        return f"{shown}({', '.join([*(self.of(each) for each in given), *more])})"

    def _cast(self, node: exp.Cast) -> str:
        is_constant = isinstance(node.this, exp.Literal) and node.this.is_string and not node.args.get("safe")
        if is_constant and node.to.sql() in ("DATE", "TIMESTAMP_NTZ"):
            return f"{node.to.sql()} '{node.this.name}'"
        try:
            kind = kinds.spark_name(type_of(node.to))
        except NotProven:
            kind = node.to.sql("spark")
        return f"{'TRY_CAST' if node.args.get('safe') else 'CAST'}({self.of(node.this)} AS {kind})"

    def _trim(self, node: exp.Trim) -> str:
        side = str(node.args.get("position") or "").upper()
        characters = node.args.get("expression")
        if characters is None:
            return f"{ {'LEADING': 'ltrim', 'TRAILING': 'rtrim'}.get(side, 'trim') }({self.of(node.this)})"
        return f"TRIM({side or 'BOTH'} {self.of(characters)} FROM {self.of(node.this)})"

    def _case(self, node: exp.Case) -> str:
        parts = ["CASE"]
        for branch in node.args["ifs"]:
            condition = self.of(branch.this)
            if node.this is not None:
                condition = f"({self.of(node.this)} = {condition})"
            parts.append(f"WHEN {condition} THEN {self.of(branch.args['true'])}")
        default = node.args.get("default")
        if default is not None:
            parts.append(f"ELSE {self.of(default)}")
        return " ".join([*parts, "END"])

    def _order(self, node: exp.Expression) -> str:
        parts = []
        for each in node.expressions:
            is_descending = bool(each.args.get("desc"))
            nulls_first = each.args.get("nulls_first")
            first = not is_descending if nulls_first is None else bool(nulls_first)
            direction = f"{'DESC' if is_descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
            parts.append(f"{self.of(each.this)} {direction}")
        return f"ORDER BY {', '.join(parts)}"

    def _window(self, node: exp.Window) -> str:
        alias = node.args.get("alias")
        window = node if alias is None else self._windows.get(alias.name.lower(), node)
        parts = []
        if window.args.get("partition_by"):
            parts.append(f"PARTITION BY {self._listed(window.args['partition_by'])}")
        if window.args.get("order") is not None:
            parts.append(self._order(window.args["order"]))
        return f"{self.of(node.this)} OVER ({' '.join([*parts, self._frame(node.this, window)])})"

    def _frame(self, called: exp.Expression, window: exp.Expression) -> str:
        spec = window.args.get("spec")
        while not isinstance(called, exp.Anonymous):
            called = called.this
        name = str(called.this).lower()
        if spec is None:
            if name in ("lag", "lead"):
                step = self.of(called.expressions[1]) if len(called.expressions) > 1 else "1"
                place = f"{'-' if name == 'lag' else ''}{step}"
                place = place[2:] if place.startswith("--") else "0" if place == "-0" else place
                return f"ROWS BETWEEN {place} FOLLOWING AND {place} FOLLOWING"
            known = {**AGGREGATES, **RANKINGS}.get(name)
            is_ranking = known is not None and not known.takes_frame
            if is_ranking:
                return (
                    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
                    if name == "cume_dist"
                    else "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
                )
            if window.args.get("order") is None:
                return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        bounds = []
        for end in ("start", "end"):
            value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
            if value is None:
                value, side = "CURRENT ROW", ""
            bounds.append(f"{value if isinstance(value, str) else self.of(value)} {side}".strip())
        return f"{str(spec.args.get('kind') or '').upper()} BETWEEN {bounds[0]} AND {bounds[1]}"


def _is_percentile(node: exp.WithinGroup) -> bool:
    return isinstance(node.this, exp.Anonymous) and str(node.this.this).lower().startswith("percentile")


def _parameter(path: Sequence[str]) -> str:
    return ".".join(["namedlambdavariable()", *path[1:]])


def _interval(node: exp.Interval) -> str:
    unit = node.args["unit"].sql().upper().removesuffix("S")
    text = node.this.name
    if unit in ("HOUR", "MINUTE", "SECOND") and text.isdigit() and len(text) == 1:
        text = f"0{text}"
    return f"INTERVAL '{text}' {unit}"
