"""FROM: tables, queries in brackets, joins and arrays that become rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from lakebed.algebra.relations import Join, JoinKind, Numbers, Relation, Rows, Unnest
from lakebed.errors import InvalidArgument
from lakebed.expressions import kinds
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Expression, NotProven, call
from lakebed.records import dataclass
from lakebed.sql.bind.expressions import ExpressionBinder
from lakebed.sql.bind.literals import constant_of
from lakebed.sql.bind.queries import QueryBinder, truth
from lakebed.sql.bind.scope import Bound, Named, Names, Source, missing_column
from lakebed.sql.bind.temporal import row_time, versions_of

_GENERATORS = {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "unnest"}
_PLAIN_ARGS = {"this", "alias", "db", "catalog", "joins", "laterals", "hint", "version", "when"}


@dataclass(frozen=True, slots=True)
class From:
    """Rows that a SELECT reads, and what their columns are called."""

    relation: Relation
    names: Names

    def beside(self, other: From, join: Relation) -> From:
        """Both, side by side."""
        names = Names(
            (*self.names.sources, *other.names.sources),
            (*self.names.merged, *other.names.merged),
        )
        return From(join, names)


class FromBinder:
    """Binds the FROM clause of one SELECT."""

    def __init__(self, queries: QueryBinder) -> None:
        self._queries = queries

    def bind(self, select: exp.Select) -> From:
        """All that is read, joined."""
        origin = select.args.get("from_")
        if origin is None:
            found = From(Rows(columns=(), rows=((),)), Names())
        else:
            _refuse_alone(origin.this)
            found = self._joined(origin.this)
        for join in select.args.get("joins") or []:
            found = self._join(found, join)
        for lateral in select.args.get("laterals") or []:
            found = self._lateral_view(found, lateral)
        return found

    def _joined(self, node: exp.Expression) -> From:
        """A source with joins of its own: `(a JOIN b ...)`."""
        found = self._source(node)
        for join in node.args.get("joins") or []:
            found = self._join(found, join)
        for lateral in node.args.get("laterals") or []:
            found = self._lateral_view(found, lateral)
        return found

    # --- sources -------------------------------------------------------------------------------------------------

    def _source(self, node: exp.Expression) -> From:
        if isinstance(node, exp.Table):
            return self._table(node)
        alias = node.args.get("alias")
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):  # (a JOIN b)
            if alias is not None:
                raise NotProven("an alias of several tables")
            _refuse_alone(node.this)
            return self._joined(node.this)
        if node.args.get("sample") or node.args.get("pivots"):
            instead = "write sum(a) FILTER (WHERE b = 'x') AS x for a pivot, t.sample(n) for a sample"
            raise NotProven("a sample or a pivot", instead=instead)
        if isinstance(node, exp.Subquery):
            inner = replace(self._queries, outer=None)  # it sees nothing of its neighbours
            return self._named(inner.bind(node), alias)
        if isinstance(node, exp.Values):
            return self._named(self._queries.values(node), alias)
        raise NotProven(f"`{node.sql('spark')}` in FROM")

    def _table(self, node: exp.Table) -> From:
        extra = [key for key, value in node.args.items() if value and key not in _PLAIN_ARGS]
        if extra:
            raise NotProven(f"`{extra[0].upper()}` of a table")
        alias = node.args.get("alias")
        if isinstance(node.this, exp.Anonymous) and str(node.this.this).lower() in {*_GENERATORS, "range"}:
            return self._function(node.this, alias)
        common = self._queries.common.get(node.name.lower()) if not node.args.get("db") else None
        if common is not None and not isinstance(node.this, exp.Func):
            return self._named(common(), alias or exp.TableAlias(this=exp.to_identifier(node.name)))
        view = self._queries.view(node)
        if view is not None:
            return self._named(view, alias or exp.TableAlias(this=exp.to_identifier(node.name)))
        table, scan, named = self._queries.scan(node)
        shown, hidden = named[: len(table.columns)], named[len(table.columns) :]
        path = table.path if alias is None else (alias.name,)
        columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        if columns:
            shown = _renamed(shown, columns, path[-1])
        return From(scan, Names((Source(path, shown, hidden),)))

    def _function(self, node: exp.Anonymous, alias: exp.TableAlias | None) -> From:
        """`FROM explode(array(1, 2))` and `FROM range(10)`."""
        nothing = From(Rows(columns=(), rows=((),)), Names())
        if str(node.this).lower() != "range":
            return self._exploded(nothing, node, alias)
        given = [_whole(each) for each in node.expressions]
        if not 1 <= len(given) <= 3 or (len(given) == 3 and given[2] == 0):
            raise NotProven(f"`{node.sql('spark')}`")
        start, end, step = [0, given[0], 1] if len(given) == 1 else [*given, 1][:3]
        column = self._queries.ids.new(kinds.BIGINT, nullable=False)
        numbers = Numbers(columns=(column,), start=start, stop=end, step=step)
        columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        shown = _renamed((Named("id", column),), columns, "range") if columns else (Named("id", column),)
        return From(numbers, Names((Source((alias.name,) if alias is not None and alias.name else (), shown),)))

    def _named(self, found: Bound, alias: exp.TableAlias | None) -> From:
        shown = found.columns()
        columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        if columns:
            shown = _renamed(shown, columns, alias.name if alias is not None else "")
        path = (alias.name,) if alias is not None and alias.name else ()
        return From(found.relation, Names((Source(path, shown),)))

    # --- joins ---------------------------------------------------------------------------------------------------

    def _join(self, left: From, join: exp.Join) -> From:
        if join.args.get("match_condition") or join.args.get("pivots"):
            raise NotProven("such a join")
        if str(join.method or "").upper() not in ("", "NATURAL"):
            raise NotProven(f"a join that is {join.method}")
        if isinstance(join.this, exp.Lateral):
            return self._lateral(left, join)
        right = self._joined(join.this)
        asked = join.this.meta.get("as_of")
        if asked is not None:
            return self._as_of(left, right, join, asked)
        return self._plain(left, right, join)

    def _as_of(self, left: From, right: From, join: exp.Join, asked: exp.Expression) -> From:
        """`JOIN t FOR SYSTEM_TIME AS OF o.ts`: the version of that time; or what is there when a row comes."""
        clause = f"FOR SYSTEM_TIME AS OF {asked.sql('spark')}"
        time = row_time(asked, left.names)
        if time is None:
            self._queries.looked_up(right.relation, clause)
            return self._plain(left, right, join)
        name = join.this.name if isinstance(join.this, exp.Table) else join.this.alias or "the query"
        versions = versions_of(name, right.relation, self._queries.ids, f"`{asked.sql('spark')}`")
        found = self._plain(left, replace(right, relation=versions.relation), join)
        return replace(found, relation=versions.joined(found.relation, time))

    def _plain(self, left: From, right: From, join: exp.Join) -> From:
        kind = _kind(join)
        using = [each.name for each in join.args.get("using") or []]
        if str(join.method or "").upper() == "NATURAL":
            theirs = {name.lower() for name in right.names.all_names()}
            using = [name for name in left.names.all_names() if name.lower() in theirs]
        both = left.beside(right, left.relation)
        if using:
            return self._using(left, right, kind, using)
        on = join.args.get("on")
        condition = None
        if on is not None:
            condition = truth(self._binder(both.names).bind(on), "ON")
            kind = JoinKind.INNER if kind is JoinKind.CROSS else kind
        elif kind is JoinKind.INNER:
            kind = JoinKind.CROSS
        return self._side_by_side(left, right, kind, condition)

    def _side_by_side(self, left: From, right: From, kind: JoinKind, condition: Expression | None) -> From:
        is_half = kind in (JoinKind.SEMI, JoinKind.ANTI)
        nulls_left, nulls_right = kind in (JoinKind.RIGHT, JoinKind.FULL), kind in (JoinKind.LEFT, JoinKind.FULL)
        columns = left.relation.columns if is_half else (*left.relation.columns, *right.relation.columns)
        join = Join(columns=columns, left=left.relation, right=right.relation, kind=kind, condition=condition)
        if is_half:
            return From(join, left.names)
        ours = _nullable(left, join) if nulls_left else replace(left, relation=join)
        theirs = _nullable(right, join) if nulls_right else replace(right, relation=join)
        return ours.beside(theirs, join)

    def _using(self, left: From, right: From, kind: JoinKind, using: Sequence[str]) -> From:
        pairs = []
        for name in using:
            ours, theirs = left.names.find([name]), right.names.find([name])
            if ours is None or theirs is None:
                raise missing_column([name], right.names if theirs is None else left.names)
            pairs.append((name, ours, theirs))
        condition: Expression | None = None
        for _, ours, theirs in pairs:
            equal = FUNCTIONS["="]("=", [ours, theirs])
            condition = equal if condition is None else FUNCTIONS["and"]("and", [condition, equal])
        found = self._side_by_side(left, right, kind, condition)
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return found
        merged = []
        for name, ours, theirs in pairs:
            if kind is JoinKind.RIGHT:
                value = theirs
            elif kind is JoinKind.FULL:
                value = FUNCTIONS["coalesce"]("coalesce", [ours, theirs])
            else:
                value = ours
            merged.append(Named(name, value))
        known = {name.lower() for name in using}
        rest = [each for each in found.names.merged if each.name.lower() not in known]
        return replace(found, names=replace(found.names, merged=(*merged, *rest)))

    def _binder(self, names: Names) -> ExpressionBinder:
        return ExpressionBinder(NamesScope(self._queries, names))

    # --- arrays as rows ------------------------------------------------------------------------------------------

    def _lateral(self, left: From, join: exp.Join) -> From:
        """`JOIN LATERAL explode(a) AS u(x)`, and `CROSS JOIN LATERAL (query)`."""
        lateral = join.this
        kind = _kind(join)
        alias = lateral.args.get("alias")
        if isinstance(lateral.this, exp.Subquery):
            if kind not in (JoinKind.CROSS, JoinKind.INNER, JoinKind.LEFT):
                raise NotProven("such a lateral join")
            inside = self._queries.inside(lambda path: NamesScope(self._queries, left.names).find(path))
            right = self._named(inside.bind(lateral.this), alias)
            on, condition = join.args.get("on"), None
            if on is not None:
                kind = JoinKind.INNER if kind is JoinKind.CROSS else kind
                condition = truth(self._binder(left.beside(right, left.relation).names).bind(on), "ON")
            found = self._side_by_side(left, right, kind, condition)
            assert isinstance(found.relation, Join)
            return replace(found, relation=replace(found.relation, is_lateral=True))
        on = join.args.get("on")
        is_plain = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
        if kind not in (JoinKind.CROSS, JoinKind.INNER) or not is_plain:
            # Spark leaves out rows without elements even in a LEFT JOIN.
            raise NotProven("such a join with an array", "write LATERAL VIEW OUTER explode(...)")
        return self._exploded(left, lateral.this, alias, is_join=True)

    def _lateral_view(self, left: From, lateral: exp.Lateral) -> From:
        return self._exploded(left, lateral.this, lateral.args.get("alias"), is_outer=bool(lateral.args.get("outer")))

    def _exploded(
        self,
        left: From,
        node: exp.Expression,
        alias: exp.TableAlias | None,
        *,
        is_outer: bool = False,
        is_join: bool = False,
    ) -> From:
        columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        name = alias.name if alias is not None else ""
        called = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if called not in _GENERATORS or len(node.expressions) != 1:
            raise NotProven(f"`{node.sql('spark')}` as rows")
        array = self._binder(left.names).bind(node.expressions[0])
        if is_join and called == "inline" and pa.types.is_map(array.type):
            called = "explode"  # `UNNEST(map) AS u(k, v)`
        unnested, found = self.unnest(left.relation, array, called, is_outer)
        if columns:
            found = _renamed(found, columns, name)
        names = Names((*left.names.sources, Source((name,) if name else (), found)), left.names.merged)
        return From(unnested, names)

    def unnest(
        self,
        rows: Relation,
        array: Expression,
        called: str,
        is_outer: bool,
    ) -> tuple[Relation, tuple[Named, ...]]:
        """A generator over the rows of a relation, and the columns that it adds."""
        is_outer = is_outer or called.endswith("_outer")
        has_place, has_members = called.startswith("pos"), called.startswith("inline")
        names = ["pos"] if has_place else []
        if pa.types.is_map(array.type) and not has_members:
            entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
            array = call("map_entries({0})", array, type=kinds.array_of(entry, False))
            has_members = True
        if not pa.types.is_list(array.type):
            raise NotProven(f"`{called}` of {kinds.spark_name(array.type)}")
        element = array.type.value_type
        if has_members:
            if not pa.types.is_struct(element):
                raise NotProven(f"`{called}` of {kinds.spark_name(array.type)}")
            names += [member.name for member in element]
            types = [member.type for member in element]
        else:
            names.append("col")
            types = [element]
        given = [kinds.INT, *types] if has_place else types
        outputs = tuple(self._queries.ids.new(kind) for kind in given)
        relation = Unnest(
            columns=(*rows.columns, *outputs),
            input=rows,
            array=array,
            outputs=outputs,
            is_outer=is_outer,
            has_place=has_place,
            has_members=has_members,
        )
        return relation, tuple(Named(name, each) for name, each in zip(names, outputs, strict=True))


@dataclass(frozen=True, slots=True)
class NamesScope:
    """The sources of FROM; then the queries around."""

    queries: QueryBinder
    names: Names

    def find(self, path: Sequence[str]) -> Expression | None:
        """What a name means here or around; None if nothing."""
        found = self.names.find(path)
        if found is None and self.queries.outer is not None:
            found = self.queries.outer(path)
        return found

    def column(self, path: Sequence[str]) -> Expression:
        """What a name means."""
        found = self.find(path)
        if found is None:
            raise missing_column(path, self.names)
        return found

    def aggregate(self, node: exp.Expression) -> Expression:
        """None here."""
        raise InvalidArgument(
            f"`{node.sql('spark')}` stands where rows are not grouped yet", hint="write it in HAVING or SELECT"
        )

    def window(self, node: exp.Window) -> Expression:
        """None here."""
        raise InvalidArgument("a window function stands in WHERE, ON or GROUP BY", hint="write it in SELECT")

    def subquery(self, node: exp.Expression) -> Expression:
        """A query as a value; it sees these names."""
        return self.queries.subquery(node, ExpressionBinder(self), self.find)


def _refuse_alone(node: exp.Expression) -> None:
    """Raises for FOR SYSTEM_TIME AS OF a time of rows where no rows are joined."""
    asked = node.meta.get("as_of")
    if asked is not None:
        raise InvalidArgument(
            f"FOR SYSTEM_TIME AS OF {asked.sql('spark')} names a time of rows, and none are joined with the table",
            hint="write it behind JOIN; a fixed time is a constant: TIMESTAMP '2024-05-14 13:45:00'",
        )


def _whole(node: exp.Expression) -> int:
    found = constant_of(node)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool):
        raise NotProven(f"`range` of `{node.sql('spark')}`")
    return found.value


def _kind(join: exp.Join) -> JoinKind:
    side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
    if kind in ("SEMI", "ANTI"):
        if side == "RIGHT":
            raise NotProven(f"RIGHT {kind} JOIN")
        return JoinKind[kind]
    if side in ("LEFT", "RIGHT", "FULL"):
        return JoinKind[side]
    if kind == "CROSS" or not (join.args.get("on") or join.args.get("using") or join.method):
        return JoinKind.CROSS
    return JoinKind.INNER


def _renamed(columns: Sequence[Named], names: Sequence[str], table: str) -> tuple[Named, ...]:
    if len(columns) != len(names):
        raise InvalidArgument(
            f"`{table}` is given {len(names)} column names, it has {len(columns)} columns",
            hint="name as many columns as there are",
        )
    return tuple(Named(name, each.value) for name, each in zip(names, columns, strict=True))


def _nullable(side: From, join: Relation) -> From:
    """The names of a side whose rows may be missing."""

    def relaxed(columns: tuple[Named, ...]) -> tuple[Named, ...]:
        return tuple(Named(each.name, replace(each.value, nullable=True)) for each in columns)

    names = side.names
    sources = tuple(Source(each.path, relaxed(each.columns), relaxed(each.hidden)) for each in names.sources)
    return From(join, Names(sources, relaxed(names.merged)))
