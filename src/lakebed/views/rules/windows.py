"""Windows: partitions in which a row changed are computed anew, before and after."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.relations import Relation, Window
from lakebed.expressions.nodes import Column, Expression
from lakebed.views.rules.program import Program, Restriction, narrowed_to, restricted
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Keys, Together, Version, weighted


def common_partition(node: Window) -> tuple[Expression, ...]:
    """What all windows of a relation are partitioned by."""
    first, *others = node.values
    texts = [{each.spelled() for each in other.partition} for other in others]
    return tuple(each for each in first.partition if all(each.spelled() in known for known in texts))


def affected_partitions(program: Program, node: Window) -> Keys | None:
    """The partitions in which a row came or went."""
    given = program.delta(node.input)
    return None if given is None else program.keys(given, common_partition(node))


def window_delta(program: Program, node: Window) -> Relation | None:
    """The rows of these partitions as they are, less those rows as they were."""
    keys = affected_partitions(program, node)
    if keys is None:
        return None
    parts = []
    for version, weight in ((Version.NEW, 1), (Version.OLD, -1)):
        rows = program.state_where(node.input, version, common_partition(node), keys)
        parts.append(program.keep(weighted(replace(node, input=rows), weight), "windows", (keys.name,)))
    columns = (*node.columns, WEIGHT)
    return Consolidated(columns=columns, input=Together(columns=columns, parts=tuple(parts)))


def window_state(program: Program, node: Window, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down if whole partitions have them: a row needs its partition to know its place in it."""
    partition = {each.id for each in common_partition(node) if isinstance(each, Column)}
    pushed, is_all = narrowed_to(restriction, partition)
    found = replace(node, input=program.state(node.input, version, pushed))
    return found if is_all else restricted(found, restriction)
