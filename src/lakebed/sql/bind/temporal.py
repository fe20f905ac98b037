"""Temporal joins: `JOIN rates FOR SYSTEM_TIME AS OF o.order_time AS r` joins each row with the version of its partner
that was valid at a time of the row.

A version is valid from its own time on, until the next version of its key. So the right side gets one column more, the
time of the next version, and the join compares the time of the row with both. That is a window and a join, which is
answered and followed like any other: a version or a row that comes late corrects what it concerns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lakebed.algebra.equalities import equalities, origin_of
from lakebed.algebra.relations import Filter, Join, JoinKind, Latest, Project, Relation, Scan, Window
from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.expressions import kinds
from lakebed.expressions.aggregates.rankings import RANKINGS
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Aggregation, Call, Column, Constant, Expression
from lakebed.records import dataclass
from lakebed.sql.bind.scope import Ids, Names, missing_column

_PROCESSING = ("proctime", "proc_time")
"""Columns that no table has to have: the time at which a row is worked on."""
_TIMES = (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ, kinds.DATE)
_EQUAL = "({0} = {1})"
_PLACE = "CAST(row_number()"
_KEEP = "keep its versions in a table with PRIMARY KEY (key, time), the time a TIMESTAMP"
_NEWEST = (
    "join a query for the newest rows: WHERE rn = 1 over ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC) AS rn"
)
_OTHERWISE = (
    "leave FOR SYSTEM_TIME AS OF out to join with what there is now; a streaming INSERT may say "
    "FOR SYSTEM_TIME AS OF PROCTIME(), which is what there is when a row comes"
)


def is_processing_name(column: str) -> bool:
    """Whether a column that no table has means the time at which a row is worked on."""
    return column.lower() in _PROCESSING


def row_time(asked: exp.Expression, left: Names) -> Expression | None:
    """The time of a row of the left side that the clause names; None if it is the time at which a row is worked on."""
    if isinstance(asked, exp.Anonymous):  # PROCTIME(): the parser lets no other function through
        return None
    path = [part.name for part in asked.parts] if isinstance(asked, exp.Column) else []
    found = left.find(path)
    if found is None:
        if is_processing_name(path[-1]) and any(each.answers_to(path[:-1]) for each in left.sources):
            return None
        raise missing_column(path, left)
    if found.type not in _TIMES:
        raise InvalidArgument(
            f"FOR SYSTEM_TIME AS OF {'.'.join(path)}: the column is of type {kinds.spark_name(found.type)}, no time",
            hint="name a column of type TIMESTAMP, TIMESTAMP_LTZ or DATE of what stands left of the JOIN",
        )
    return found


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows of the right side, each valid `since` a time, `until` another one (null: to this day)."""

    name: str
    relation: Relation
    key: tuple[str, ...]
    """What the versions of a row have in common: the columns of which those of the relation come."""
    names: tuple[str, ...]
    """Of the key's columns."""
    since: Column
    until: Column

    def joined(self, node: Relation, time: Expression) -> Join:
        """A join with these rows that looks only for the version of a time."""
        assert isinstance(node, Join)
        if node.kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise Unsupported(
                f"the version of `{self.name}` that was valid at a time is found by JOIN or LEFT JOIN with ON, not by "
                f"{node.kind.value}",
                hint=f"write JOIN {self.name} FOR SYSTEM_TIME AS OF ... AS v ON ... = v.{self.names[0]}",
            )
        same = self._check_key(node)
        is_over = FUNCTIONS["isnull"]("isnull", [self.until])
        is_before = FUNCTIONS["<"]("<", [time, self.until])
        has_begun = FUNCTIONS[">="](">=", [time, self.since])
        condition = node.condition
        assert condition is not None
        for each in (has_begun, FUNCTIONS["or"]("or", [is_over, is_before])):
            condition = FUNCTIONS["and"]("and", [condition, each])
        latest = has_begun
        for each in same:
            latest = FUNCTIONS["and"]("and", [each, latest])
        return replace(node, condition=condition, latest=Latest(latest, self.since))

    def _check_key(self, node: Join) -> list[Expression]:
        """What ON says of the key.

        INVARIANT: all of the key is given, or a row would have a partner of each key, and rows that are told apart by
        the key of the left side would overwrite each other."""
        same = equalities(node)
        given: dict[str, Expression] = {}
        for theirs, mine in zip(same.left, same.right, strict=True):
            column = _itself(mine)
            if column is not None:
                given.setdefault(origin_of(self.relation, column), FUNCTIONS["="]("=", [theirs, mine]))
        missing = [name for name, each in zip(self.names, self.key, strict=True) if each not in given]
        if missing:
            raise InvalidArgument(
                f"ON says nothing of `{missing[0]}`, which tells rows of `{self.name}` apart",
                hint=f"compare each of ({', '.join(self.names)}) with a column of the left side: ON a = b AND ...",
            )
        return [given[each] for each in self.key]


def versions_of(name: str, relation: Relation, ids: Ids, time: str) -> Versions:
    """The versions that a table, or the query for the newest row of each key, has. `time` is how the clause says it."""
    above, core = _apart(relation)
    if isinstance(core, Scan):
        return _of_table(name, above, core, ids, time)
    newest = _newest(core)
    if newest is None:
        raise Unsupported(
            f"the versions of `{name}` are not known: it is no table, and no query for the newest row of each key",
            hint=f"{_KEEP}; or {_NEWEST}; or {_OTHERWISE}",
        )
    return _of_newest(name, above, newest, ids, time)


# --- a table whose key has a time ------------------------------------------------------------------------------------


def _of_table(name: str, above: Sequence[Project], scan: Scan, ids: Ids, time: str) -> Versions:
    key: tuple[str, ...] = getattr(scan.source, "key", ())
    by_name = dict(zip(scan.names, scan.columns, strict=True))
    times = [each for each in key if each in by_name and by_name[each].type in _TIMES]
    others = tuple(each for each in key if each not in times)
    if len(times) != 1 or not others or not all(each in by_name for each in key):
        raise _without_versions(name, key, times, time)
    columns = tuple(by_name[each] for each in others)
    since, until = by_name[times[0]], ids.new(by_name[times[0]].type)
    window = _with_ends(scan, columns, since, until, ())
    return Versions(
        name, _on_top(window, above, (since, until)), tuple(each.id for each in columns), others, since, until
    )


def _without_versions(name: str, key: Sequence[str], times: Sequence[str], time: str) -> LakebedError:
    listed = ", ".join(key)
    if not key:
        why = "it has no primary key that tells its versions apart"
    elif not times:
        why = f"of each ({listed}) it keeps the newest row only"
    elif len(times) > 1:
        why = f"its primary key ({listed}) has several times"
    else:
        why = f"its primary key is ({listed}), with nothing that versions have in common"
    instead = f"PRIMARY KEY ({listed}, valid_from)" if key and not times else "PRIMARY KEY (key, time)"
    newest = "" if key else f"; or {_NEWEST}"
    return Unsupported(
        f"what `{name}` was at {time} is not known: {why}",
        hint=f"keep its versions in a table with {instead}, the time a TIMESTAMP{newest}; or {_OTHERWISE}",
    )


# --- the newest row of each key: ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC) = 1 -------------------------


@dataclass(frozen=True, slots=True)
class _Newest:
    """Such a query: the window that numbers rows, what is computed before and after the rows are chosen."""

    window: Window
    between: tuple[Project, ...]
    time: Column


def _newest(node: Relation) -> _Newest | None:
    if not isinstance(node, Filter) or len(node.conditions) != 1:
        return None
    between, window = _apart(node.input)
    if not isinstance(window, Window) or len(window.values) != 1:
        return None
    (place,) = window.values
    order = place.window[len(place.partition) :]
    is_place = place.template.startswith(_PLACE) and place.condition is None
    is_newest = len(order) == 1 and isinstance(order[0], Column) and place.over.endswith("DESC NULLS LAST)")
    if not is_place or not is_newest or not place.partition or order[0].type not in _TIMES:
        return None
    if not all(isinstance(each, Column) for each in place.partition):
        return None
    condition = node.conditions[0]
    if not isinstance(condition, Call) or condition.template != _EQUAL:
        return None
    sides = condition.arguments
    number = next((each for each in sides if isinstance(each, Constant) and each.value == 1), None)
    placed = next((each for each in sides if isinstance(each, Column)), None)
    if number is None or placed is None or origin_of(node.input, placed) != window.columns[-1].id:
        return None
    assert isinstance(order[0], Column)
    return _Newest(window, tuple(between), order[0])


def _of_newest(name: str, above: Sequence[Project], newest: _Newest, ids: Ids, time: str) -> Versions:
    """Each row was the newest once: from its time on. A table that keeps one row of each key has no others."""
    window, rows = newest.window, newest.window.input
    key = tuple(each for each in window.values[0].partition if isinstance(each, Column))
    origins = tuple(origin_of(rows, each) for each in key)
    for scan in (each for each in rows.walk() if isinstance(each, Scan)):
        kept = tuple(getattr(scan.source, "key", ()))
        ids_of = {column.id: name for name, column in zip(scan.names, scan.columns, strict=True)}
        if kept and set(kept) <= {ids_of.get(each) for each in origins}:
            raise _without_versions(name, kept, (), time)
    until = ids.new(newest.time.type)
    others = tuple(each for each in rows.columns if not kinds.is_nested(each.type) and each != newest.time)
    ended = _with_ends(rows, key, newest.time, until, others)
    first = Constant(type=window.columns[-1].type, nullable=False, value=1, text="1")
    columns = (*rows.columns, window.columns[-1], until)
    numbered = Project(columns=columns, input=ended, values=(*rows.columns, first, until))
    relation = _on_top(numbered, (*above, *newest.between), (newest.time, until))
    return Versions(name, relation, origins, _called(relation, origins), newest.time, until)


def _called(relation: Relation, key: Sequence[str]) -> tuple[str, ...]:
    """What columns are called in the table that they come from."""
    names = {
        column.id: name
        for node in relation.walk()
        if isinstance(node, Scan)
        for name, column in zip(node.names, node.columns, strict=True)
    }
    return tuple(names.get(each, f"column {n + 1} of its PARTITION BY") for n, each in enumerate(key))


# --- relations -------------------------------------------------------------------------------------------------------


def _apart(relation: Relation) -> tuple[list[Project], Relation]:
    """What is computed at the end of a relation, the last first, and what it is computed from."""
    found: list[Project] = []
    while isinstance(relation, Project):
        found.append(relation)
        relation = relation.input
    return found, relation


def _on_top(relation: Relation, above: Sequence[Project], more: tuple[Column, ...]) -> Relation:
    """The same computed from other rows, with columns of these beside."""
    for each in reversed(above):
        added = tuple(column for column in more if column.id not in {own.id for own in each.columns})
        relation = replace(each, columns=(*each.columns, *added), input=relation, values=(*each.values, *added))
    return relation


def _with_ends(
    rows: Relation, key: tuple[Column, ...], since: Column, until: Column, ties: tuple[Column, ...]
) -> Relation:
    """Rows with the time of the next one of their key. Of rows of one time the last by `ties` is valid."""
    order = ", ".join(f"{each.spelled()} ASC NULLS FIRST" for each in (since, *ties))
    over = f" OVER (PARTITION BY {', '.join(each.spelled() for each in key)} ORDER BY {order})"
    following = RANKINGS["lead"]("lead", [since])
    assert isinstance(following, Aggregation)
    value = replace(following, over=over, window=(*key, since, *ties), partition=key)
    return Window(columns=(*rows.columns, until), input=rows, values=(value,))


def _itself(value: Expression) -> Column | None:
    """The column that an expression is; a whole number may be a longer one there."""
    if isinstance(value, Call) and len(value.arguments) == 1 and value.template.startswith("CAST({0} AS "):
        (below,) = value.arguments
        return _itself(below) if kinds.is_integral(below.type) and kinds.is_integral(value.type) else None
    return value if isinstance(value, Column) else None
