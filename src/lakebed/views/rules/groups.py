"""GROUP BY: groups in which a row changed are computed anew, before and after."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.relations import Group, Relation
from lakebed.views.rules.program import Program, Restriction, narrowed_to, restricted
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Keys, Together, Version, weighted


def affected_groups(program: Program, node: Group) -> Keys | None:
    """The keys of groups in which a row came or went."""
    given = program.delta(node.input)
    return None if given is None else program.keys(given, node.keys)


def group_delta(program: Program, node: Group) -> Relation | None:
    """The groups of these keys as they are, less those groups as they were."""
    keys = affected_groups(program, node)
    if keys is None:
        return None
    parts = []
    for version, weight in ((Version.NEW, 1), (Version.OLD, -1)):
        rows = program.state_where(node.input, version, node.keys, keys)
        parts.append(program.keep(weighted(replace(node, input=rows), weight), "groups", (keys.name,)))
    columns = (*node.columns, WEIGHT)
    return Consolidated(columns=columns, input=Together(columns=columns, parts=tuple(parts)))


def group_state(program: Program, node: Group, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down as the values by which the input is grouped."""
    values = {each.id: value for each, value in zip(node.columns, node.keys, strict=False)}
    pushed, is_all = narrowed_to(restriction, values)
    if pushed is None:
        return restricted(replace(node, input=program.state(node.input, version)), restriction)
    rows = program.state_where(node.input, version, tuple(values[each.id] for each in pushed.columns), pushed.keys)
    found = replace(node, input=rows)
    return found if is_all else restricted(found, restriction)
