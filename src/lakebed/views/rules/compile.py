"""The program of a refresh: which rules there are, and what is asked for at the root of the query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    Numbers,
    Project,
    Relation,
    Rows,
    Scan,
    SetOperation,
    Unnest,
    Window,
)
from lakebed.expressions.nodes import Aggregation, Column
from lakebed.records import dataclass
from lakebed.views.rules.groups import affected_groups, group_delta, group_state
from lakebed.views.rules.joins import join_delta, join_state
from lakebed.views.rules.program import Delta, Program, Restriction, SourceRules, State, Statement
from lakebed.views.rules.single_rows import (
    filter_delta,
    filter_state,
    project_delta,
    project_state,
    unnest_delta,
    unnest_state,
)
from lakebed.views.rules.sources import constant_delta, constant_state, scan_delta, scan_state
from lakebed.views.rules.unions import union_delta, union_state
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Keys, Stored, Version
from lakebed.views.rules.windows import affected_partitions, common_partition, window_delta, window_state

_DELTAS: dict[type[Relation], Delta] = {
    Scan: scan_delta,
    Rows: constant_delta,
    Numbers: constant_delta,
    Filter: filter_delta,
    Project: project_delta,
    Unnest: unnest_delta,
    SetOperation: union_delta,
    Join: join_delta,
    Group: group_delta,
    Window: window_delta,
}
_STATES: dict[type[Relation], State] = {
    Scan: scan_state,
    Rows: constant_state,
    Numbers: constant_state,
    Filter: filter_state,
    Project: project_state,
    Unnest: unnest_state,
    SetOperation: union_state,
    Join: join_state,
    Group: group_state,
    Window: window_state,
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """Statements, and what they end with.

    With `replaced` the last one has the new rows of the result for which some columns (`by`) have these values; all
    other rows stay. Without, it has the delta of the result.
    """

    statements: tuple[Statement, ...]
    result: Stored | None
    """None: nothing has changed."""
    replaced: Keys | None = None
    by: tuple[Column, ...] = ()
    added: Group | None = None
    """With it the result is the change of what is kept of these groups, to be added to what is stored."""


def compiled(
    root: Relation,
    sources: Mapping[str, SourceRules],
    changed: Collection[str] | None = None,
    added: tuple[Group, tuple[Aggregation, ...]] | None = None,
    *,
    replaces: bool = True,
) -> Compiled:
    """What computes the change of a query's result from changes of its tables.

    `replaces`: of groups at its end the new rows are enough; otherwise the old ones are told as well.
    """
    program = Program(_DELTAS, _STATES, sources, changed)
    if added is not None:
        return _added(program, *added)
    top, carried = top_of(root) if replaces else (None, ())
    if top is not None:
        keys = affected_groups(program, top) if isinstance(top, Group) else affected_partitions(program, top)
        if keys is None:
            return Compiled(tuple(program.statements), None)
        rows = program.state(root, Version.NEW, Restriction(carried, keys))
        kept = program.keep(rows, "result", (keys.name,))
        return Compiled(tuple(program.statements), kept, keys, carried)
    found = program.rows(root)
    if found is None:
        return Compiled((), None)
    result = program.keep(Consolidated(columns=(*root.columns, WEIGHT), input=found), "result")
    return Compiled(tuple(program.statements), result)


def _added(program: Program, states: Group, changes: tuple[Aggregation, ...]) -> Compiled:
    """The change of what is kept of groups: that of their rows, summed with the weights."""
    given = program.delta(states.input)
    if given is None:
        return Compiled(tuple(program.statements), None)
    kept = program.keep(replace(states, input=given, aggregates=changes), "result", (given.name,))
    return Compiled(tuple(program.statements), kept, added=states)


def top_of(root: Relation) -> tuple[Group | Window | None, tuple[Column, ...]]:
    """The grouping or the windows with which a query ends, and the columns of the result that have the keys of its
    groups or partitions; None if it ends otherwise.

    Rows of such a result are replaced group by group. That is right even where a value depends on the order in which
    rows are read (sums of fractions, the first of several), since nothing is asked of the old one.
    """
    node, steps = root, []
    while isinstance(node, Project | Filter):
        steps.append(node)
        node = node.input
    if isinstance(node, Group) and node.keys and node.sets is None:
        carried: list[Column] = list(node.columns[: len(node.keys)])
    elif isinstance(node, Window):
        partition = common_partition(node)
        carried = [each for each in partition if isinstance(each, Column)]
        if not partition or len(carried) < len(partition):
            return None, ()
    else:
        return None, ()
    for step in reversed(steps):
        if isinstance(step, Project):
            above = {
                value.id: each
                for each, value in zip(step.columns, step.values, strict=True)
                if isinstance(value, Column)
            }
            if any(each.id not in above for each in carried):
                return None, ()
            carried = [above[each.id] for each in carried]
    return node, tuple(carried)
