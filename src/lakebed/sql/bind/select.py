"""SELECT: what is read, which rows, grouped how, with which windows, which columns, in what order.

Expressions are bound before the relations around them are made: an aggregate or a window that one of them holds is
noted, and stands in it as the column that it will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import chain, combinations

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Distinct, Group, Project, Relation, Sort, Window
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Column, Expression, NotProven, Ordering, call
from lakebed.records import dataclass
from lakebed.sql.bind.aggregates import bind_aggregate, bind_window
from lakebed.sql.bind.expressions import ExpressionBinder
from lakebed.sql.bind.from_clause import From, FromBinder, NamesScope
from lakebed.sql.bind.names import shown_name
from lakebed.sql.bind.queries import (
    LookedUp,
    QueryBinder,
    Tables,
    Views,
    check_told_apart,
    conjuncts,
    filtered,
    place_of,
    refuse_lookup,
    truth,
)
from lakebed.sql.bind.scope import Bound, Named, is_aggregate, member_of, missing_column

_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer")


@dataclass
class _Stage:
    """Where expressions of SELECT, HAVING and ORDER BY are bound: over rows of FROM, or over groups."""

    queries: QueryBinder
    rows: NamesScope
    keys: list[tuple[Expression, Column]] = field(default_factory=list)
    aggregates: list[tuple[Aggregation | Expression, Column]] = field(default_factory=list)
    windows: list[tuple[Aggregation, Column]] = field(default_factory=list)
    named_windows: dict[str, exp.Window] = field(default_factory=dict)
    is_grouped: bool = False
    has_sets: bool = False
    earlier: list[Named] = field(default_factory=list)
    """Columns of SELECT before the one that is bound: later ones may name them."""

    def column(self, path: Sequence[str]) -> Expression:
        found = self.rows.names.find(path)
        if found is None:
            aliases = [each.value for each in self.earlier if len(path) == 1 and each.name.lower() == path[0].lower()]
            if len(aliases) > 1:
                raise InvalidArgument(
                    f"`{path[0]}` is ambiguous: {len(aliases)} columns of SELECT have that name",
                    hint="give them other names",
                )
            if aliases:
                return aliases[0]
            outer = self.queries.outer(path) if self.queries.outer is not None else None
            if outer is None:
                raise missing_column(path, self.rows.names)
            return outer
        return self._grouped(found, ".".join(path)) if self.is_grouped else found

    def _grouped(self, found: Expression, name: str) -> Expression:
        key = self.key_of(found)
        if key is None:
            raise InvalidArgument(
                f"column `{name}` is neither grouped by nor inside of an aggregate function",
                hint="add it to GROUP BY, or write any_value(...) if any value will do",
            )
        return key

    def key_of(self, value: Expression) -> Column | None:
        """The column of the grouping key that a value is; None if it is none."""
        text = value.spelled()
        return next((column for key, column in self.keys if key.spelled() == text), None)

    def outer_of_subquery(self, path: Sequence[str]) -> Expression | None:
        """What a name in a subquery means here; None if nothing."""
        if self.rows.names.find(path) is None:
            return self.queries.outer(path) if self.queries.outer is not None else None
        return self.column(path)

    def aggregate(self, node: exp.Expression) -> Expression:
        if not self.is_grouped:
            raise InvalidArgument(f"`{node.sql('spark')}` stands where rows are not grouped", hint="write it in SELECT")
        inner = ExpressionBinder(self.rows)
        return self._noted(bind_aggregate(node, inner))

    def _noted(self, found: Aggregation | Expression) -> Column:
        text = found.spelled()
        for known, column in self.aggregates:
            if known.spelled() == text:
                return column
        column = self.queries.ids.new(found.type, nullable=found.nullable)
        self.aggregates.append((found, column))
        return column

    def grouping(self, node: exp.Anonymous) -> Expression:
        """`grouping(a)` and `grouping_id(a, b)`: which keys are left out of a row's grouping set."""
        if not self.has_sets:
            raise InvalidArgument(
                f"`{node.this}` needs GROUPING SETS, ROLLUP or CUBE", hint="write GROUP BY ROLLUP(...)"
            )
        inner = ExpressionBinder(self.rows)
        keys = [self.key_of(inner.bind(each)) for each in node.expressions] or [column for _, column in self.keys]
        if None in keys:
            raise InvalidArgument(f"`{node.this}` is asked of what is no key of GROUP BY", hint="name its keys")
        is_one = str(node.this).lower() == "grouping"
        kind = kinds.TINYINT if is_one else kinds.BIGINT
        known = [key for key in keys if key is not None]
        if is_one and len(known) != 1:
            raise InvalidArgument("`grouping` takes one column", hint="write grouping_id(a, b) for several")
        places = ", ".join(f"{{{n}}}" for n in range(len(known)))
        return self._noted(
            call(f"CAST(grouping({places}) AS {kinds.duckdb_name(kind)})", *known, type=kind, nullable=False)
        )

    def window(self, node: exp.Window) -> Expression:
        found = bind_window(node, _StageBinder(self), self.named_windows)
        text = found.spelled()
        for known, column in self.windows:
            if known.spelled() == text:
                return column
        column = self.queries.ids.new(found.type, nullable=found.nullable)
        self.windows.append((found, column))
        return column

    def subquery(self, node: exp.Expression) -> Expression:
        found = self.queries.subquery(node, _StageBinder(self), self.outer_of_subquery)
        if self.is_grouped and node.meta["outer"]:
            raise NotProven("a query within a grouped one that names its columns")
        return found

    def _has_earlier(self, name: str) -> bool:
        return any(each.name.lower() == name.lower() for each in self.earlier)

    def shown_path(self, path: Sequence[str]) -> str:
        """A column within the name of another: without its table; an alias of this SELECT is said to be one."""
        if self.rows.names.find(path) is None:
            return (
                f"lateralAliasReference({path[0]})" if len(path) == 1 and self._has_earlier(path[0]) else ".".join(path)
            )
        return ".".join(path[self.rows.names.qualifiers(path) :])


class _StageBinder(ExpressionBinder):
    """Binds over rows, or over groups: an expression that is a key of the grouping is that key's column."""

    def __init__(self, stage: _Stage) -> None:
        super().__init__(stage)
        self._stage = stage

    def bind(self, node: exp.Expression) -> Expression:
        """The expression of a node."""
        stage = self._stage
        if stage.is_grouped and stage.keys and not isinstance(node, exp.Column | exp.Literal):
            key = self._as_key(node)
            if key is not None:
                return key
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("grouping", "grouping_id"):
            return stage.grouping(node)
        return super().bind(node)

    def _as_key(self, node: exp.Expression) -> Expression | None:
        if is_aggregate(node) or node.find(exp.Window, exp.Query):
            return None
        try:
            return self._stage.key_of(ExpressionBinder(self._stage.rows).bind(node))
        except (NotProven, LakebedError):
            return None


def bind_query(
    node: exp.Expression, tables: Tables, views: Views = lambda _: None, looked_up: LookedUp = refuse_lookup
) -> Bound:
    """A query as a relation, with the names of its columns."""
    binder = QueryBinder(
        tables, lambda queries, select: _SelectBinder(queries, select).bind(), views=views, looked_up=looked_up
    )
    return binder.bind(node)


class _SelectBinder:
    """Binds one SELECT."""

    def __init__(self, queries: QueryBinder, node: exp.Select) -> None:
        self._queries = queries
        self._node = node

    def bind(self) -> Bound:
        """The relation, and the names of its columns."""
        node, queries = self._node, self._queries
        origin = FromBinder(queries).bind(node)
        rows = NamesScope(queries, origin.names)
        relation = origin.relation
        where = node.args.get("where")
        if where is not None:
            relation = filtered(relation, [ExpressionBinder(rows).bind(each) for each in conjuncts(where.this)])
        items = list(node.expressions)
        relation, origin, items = self._generated(relation, origin, items)
        rows = NamesScope(queries, origin.names)
        stage = _Stage(queries, rows, named_windows=self._named_windows())
        group = node.args.get("group")
        having = node.args.get("having")
        # SORT BY and CLUSTER BY ask for less than an order of all rows, which they are given.
        order = node.args.get("order") or node.args.get("sort") or node.args.get("cluster")
        outputs_of_order = order.expressions if order is not None else []
        stage.is_grouped = (
            group is not None or having is not None or any(map(is_aggregate, [*items, *outputs_of_order]))
        )
        sets = self._keys(stage, group, items) if group is not None else None
        outputs = self._outputs(stage, items, origin)
        conditions = [] if having is None else self._having(stage, having, outputs)
        qualify = node.args.get("qualify")
        kept = [] if qualify is None else self._having(stage, qualify, outputs)
        orders = self._order(stage, outputs, outputs_of_order)
        if stage.is_grouped:
            relation = self._group(relation, stage, sets)
            relation = filtered(relation, conditions)
        if stage.windows:
            relation = Window(
                columns=(*relation.columns, *(column for _, column in stage.windows)),
                input=relation,
                values=tuple(value for value, _ in stage.windows),
            )
        return self._finished(filtered(relation, kept), outputs, orders)

    # --- columns -------------------------------------------------------------------------------------------------

    def _generated(
        self, relation: Relation, origin: From, items: list[exp.Expression]
    ) -> tuple[Relation, From, list[exp.Expression]]:
        """`SELECT a, explode(b) AS x`: the array becomes rows first."""
        places = [n for n, item in enumerate(items) if _generator(item) is not None]
        if not places:
            return relation, origin, items
        if len(places) > 1:
            raise NotProven("several generators in one SELECT")
        if self._node.args.get("group") is not None or any(map(is_aggregate, items)):
            raise NotProven("a generator among aggregates")
        item = items[places[0]]
        called = _generator(item)
        assert called is not None
        binder = ExpressionBinder(NamesScope(self._queries, origin.names))
        array = binder.bind(called.expressions[0])
        unnested, found = FromBinder(self._queries).unnest(relation, array, str(called.this).lower(), False)
        aliases = (
            [item.alias]
            if isinstance(item, exp.Alias)
            else [each.name for each in item.expressions]
            if isinstance(item, exp.Aliases)
            else []
        )
        if aliases and len(aliases) != len(found):
            raise InvalidArgument(
                f"`{called.this}` gives {len(found)} columns, {len(aliases)} names are given", hint="name each of them"
            )
        names = aliases or [each.name for each in found]
        made = [_Given(each.value, name) for name, each in zip(names, found, strict=True)]
        return unnested, From(unnested, origin.names), [*items[: places[0]], *made, *items[places[0] + 1 :]]

    def _outputs(self, stage: _Stage, items: Sequence[exp.Expression], origin: From) -> list[Named]:
        outputs: list[Named] = []
        binder = _StageBinder(stage)
        for item in items:
            if isinstance(item, _Given):
                outputs.append(Named(item.name, item.value))
            elif isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                outputs += self._starred(item, stage, origin)
            else:
                value = binder.bind(item)
                outputs.append(Named(shown_name(item, stage.shown_path, stage.named_windows), value))
            stage.earlier = list(outputs)
        return outputs

    def _starred(self, item: exp.Expression, stage: _Stage, origin: From) -> list[Named]:
        star = item if isinstance(item, exp.Star) else item.this
        left_out = {each.name.lower() for each in star.args.get("except_") or []}
        if star.args.get("replace") or star.args.get("rename"):
            raise NotProven("a star with REPLACE or RENAME")
        names = origin.names
        found: list[Named] = []
        if isinstance(item, exp.Column):
            qualifier = [part.name for part in item.parts[:-1]]
            sources = [source for source in names.sources if source.answers_to(qualifier)]
            found = [each for source in sources for each in source.columns]
            if not sources:
                found = _members(names.find(qualifier), qualifier)
        else:
            if not names.sources:
                raise InvalidArgument("`*` has nothing to stand for: the query reads no table", hint="add FROM")
            merged = {each.name.lower() for each in names.merged}
            found = [*names.merged]
            found += [each for s in names.sources for each in s.columns if each.name.lower() not in merged]
        unknown = left_out - {each.name.lower() for each in found}
        if unknown:
            raise missing_column([min(unknown)], names)
        found = [each for each in found if each.name.lower() not in left_out]
        if stage.is_grouped:
            return [Named(each.name, stage._grouped(each.value, each.name)) for each in found]
        return found

    # --- groups --------------------------------------------------------------------------------------------------

    def _keys(self, stage: _Stage, group: exp.Group, items: Sequence[exp.Expression]) -> list[tuple[int, ...]] | None:
        if group.args.get("totals"):
            raise NotProven("GROUP BY WITH TOTALS")
        if group.args.get("all") or [each.name.upper() for each in group.expressions] == ["ALL"]:
            if any(isinstance(each, exp.Star) for each in items):
                raise NotProven("GROUP BY ALL of `*`")
            self._add_keys(stage, [each.unalias() for each in items if not is_aggregate(each)], items)
            return None
        spreading = [each for each in group.expressions if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets)]
        plain = self._add_keys(stage, [each for each in group.expressions if each not in spreading], items)
        factors: list[list[tuple[int, ...]]] = []
        for each in spreading:
            given = each.expressions if isinstance(each, exp.GroupingSets) else [each]
            factors.append(list(chain.from_iterable([self._sets(stage, item, items) for item in given])))
        for clause, spread in (("rollup", _rollup), ("cube", _cube)):
            for each in group.args.get(clause) or []:
                nodes = each.expressions or group.expressions
                # `GROUP BY a, b WITH ROLLUP`: the keys are those before it
                keys = self._add_keys(stage, nodes, items) if each.expressions else plain
                factors.append(spread([(key,) for key in keys]))
                plain = plain if each.expressions else []
        for each in group.args.get("grouping_sets") or []:
            found = [self._sets(stage, item, items) for item in each.expressions]
            factors.append(list(chain.from_iterable(found)))
        if not factors:
            return None
        stage.has_sets = True
        sets: list[tuple[int, ...]] = [tuple(plain)]
        for factor in factors:
            sets = [tuple(dict.fromkeys((*before, *more))) for before in sets for more in factor]
        return sets

    def _sets(self, stage: _Stage, item: exp.Expression, items: Sequence[exp.Expression]) -> list[tuple[int, ...]]:
        if isinstance(item, exp.Rollup | exp.Cube):
            keys = self._add_keys(stage, item.expressions, items)
            return (_rollup if isinstance(item, exp.Rollup) else _cube)([(key,) for key in keys])
        nodes = (
            item.expressions if isinstance(item, exp.Tuple) else [item.this] if isinstance(item, exp.Paren) else [item]
        )
        return [tuple(self._add_keys(stage, nodes, items))]

    def _add_keys(self, stage: _Stage, nodes: Sequence[exp.Expression], items: Sequence[exp.Expression]) -> list[int]:
        places = []
        for node in nodes:
            value = self._key(stage, node, items)
            check_told_apart(value.type, "a grouping")
            text = value.spelled()
            known = [n for n, (key, _) in enumerate(stage.keys) if key.spelled() == text]
            if not known:
                stage.keys.append((value, self._queries.ids.new(value.type)))
            places.append(known[0] if known else len(stage.keys) - 1)
        return places

    def _key(self, stage: _Stage, node: exp.Expression, items: Sequence[exp.Expression]) -> Expression:
        binder = ExpressionBinder(stage.rows)
        place = place_of(node, len(items), "GROUP BY")
        if place is not None:
            if any(isinstance(each, exp.Star) for each in items[: place + 1]):
                raise NotProven("GROUP BY the place of a column behind `*`")
            item = items[place]
            if is_aggregate(item):
                raise InvalidArgument(f"GROUP BY {place + 1} is an aggregate", hint="group by columns")
            return binder.bind(item)
        if isinstance(node, exp.Column) and len(node.parts) == 1 and stage.rows.names.find([node.name]) is None:
            aliased = [
                item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower()
            ]
            if aliased:
                return binder.bind(aliased[0].this)
        return binder.bind(node)

    def _having(self, stage: _Stage, having: exp.Expression, outputs: Sequence[Named]) -> list[Expression]:
        binder = _StageBinder(stage)
        stage.earlier = list(outputs)
        return [truth(binder.bind(each), "HAVING") for each in conjuncts(having.this)]

    def _group(self, relation: Relation, stage: _Stage, sets: list[tuple[int, ...]] | None) -> Relation:
        keys = [column for _, column in stage.keys]
        values = [column for _, column in stage.aggregates]
        return Group(
            columns=(*keys, *values),
            input=relation,
            keys=tuple(value for value, _ in stage.keys),
            aggregates=tuple(value for value, _ in stage.aggregates),
            sets=None if sets is None else tuple(sets),
        )

    def _named_windows(self) -> dict[str, exp.Window]:
        return {each.name.lower(): each for each in self._node.args.get("windows") or []}

    # --- order, and the end --------------------------------------------------------------------------------------

    def _order(self, stage: _Stage, outputs: Sequence[Named], nodes: Sequence[exp.Ordered]) -> list[Ordering]:
        """ORDER BY: a name is that of a result's column, or else what it means in the query."""
        is_distinct = self._node.args.get("distinct") is not None
        if any(node.find(exp.Window) for node in nodes):
            raise NotProven("a window in ORDER BY")
        binder = _OrderBinder(stage, outputs, is_distinct)
        return [self._queries.ordered(node, outputs, binder) for node in nodes]

    def _finished(self, relation: Relation, outputs: Sequence[Named], orders: Sequence[Ordering]) -> Bound:
        node, queries = self._node, self._queries
        names = tuple(each.name for each in outputs)
        values = [each.value for each in outputs]
        columns = [queries.ids.new(value.type, nullable=value.nullable) for value in values]
        is_distinct = node.args.get("distinct") is not None
        if is_distinct:
            if node.args["distinct"].args.get("on"):
                raise NotProven("DISTINCT ON")
            for value in values:
                check_told_apart(value.type, "DISTINCT")
        order, extra = self._order_columns(values, columns, orders)
        projected: Relation = Project(
            columns=(*columns, *(column for _, column in extra)),
            input=relation,
            values=(*values, *(value for value, _ in extra)),
        )
        if is_distinct:
            projected = Distinct(columns=projected.columns, input=projected)
        if order:
            projected = Sort(columns=projected.columns, input=projected, order=tuple(order))
        projected = queries.limited(projected, node)
        if extra:
            fresh = tuple(queries.ids.new(each.type, nullable=each.nullable) for each in columns)
            projected = Project(columns=fresh, input=projected, values=tuple(columns))
        return Bound(projected, names)

    def _order_columns(
        self, values: Sequence[Expression], columns: Sequence[Column], orders: Sequence[Ordering]
    ) -> tuple[list[Ordering], list[tuple[Expression, Column]]]:
        """The order by columns of the result, and columns that only the order needs."""
        by_text = {value.spelled(): column for value, column in zip(values, columns, strict=True)}
        order: list[Ordering] = []
        extra: list[tuple[Expression, Column]] = []
        for each in orders:
            column = by_text.get(each.value.spelled())
            if column is None:
                column = self._queries.ids.new(each.value.type, nullable=each.value.nullable)
                by_text[each.value.spelled()] = column
                extra.append((each.value, column))
            order.append(Ordering(column, each.is_descending, each.nulls_first))
        return order, extra


class _OrderBinder(_StageBinder):
    """Names of the result's columns go before those of the tables."""

    def __init__(self, stage: _Stage, outputs: Sequence[Named], is_distinct: bool) -> None:
        super().__init__(stage)
        self._outputs = outputs
        self._is_distinct = is_distinct

    def bind(self, node: exp.Expression) -> Expression:
        """The expression of a node."""
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            found = [each.value for each in self._outputs if each.name.lower() == node.name.lower()]
            if found:
                return found[0]
        found_value = super().bind(node)
        if self._is_distinct and isinstance(node, exp.Column):
            texts = {each.value.spelled() for each in self._outputs}
            if found_value.spelled() not in texts:
                raise InvalidArgument(
                    f"ORDER BY `{node.sql('spark')}` is no column of SELECT DISTINCT", hint="select it, too"
                )
        return found_value


class _Given(exp.Expression):  # type: ignore[misc]
    """A column of SELECT that is bound already."""

    def __init__(self, value: Expression, name: str) -> None:
        super().__init__()
        self.value = value
        self._name = name

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name


def _members(value: Expression | None, path: Sequence[str]) -> list[Named]:
    """`s.*`: the members of a struct."""
    if value is None or not pa.types.is_struct(value.type):
        raise InvalidArgument(
            f"`{'.'.join(path)}.*`: no table of the query has that name", hint="name a table of FROM, or a struct"
        )
    return [Named(member.name, member_of(value, [member.name])) for member in value.type]


def _generator(item: exp.Expression) -> exp.Anonymous | None:
    node = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    is_one = isinstance(node, exp.Anonymous) and str(node.this).lower() in _GENERATORS and len(node.expressions) == 1
    return node if is_one else None


def _rollup(keys: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    flat = [key for each in keys for key in each]
    return [tuple(flat[:length]) for length in range(len(flat), -1, -1)]


def _cube(keys: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    flat = [key for each in keys for key in each]
    return list(chain.from_iterable(combinations(flat, length) for length in range(len(flat), -1, -1)))
