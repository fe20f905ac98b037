"""What is read: tables, whose changes are given, and rows that never change."""

from __future__ import annotations

from lakebed.algebra.relations import Numbers, Relation, Rows, Scan
from lakebed.views.rules.program import Program, Restriction, restricted
from lakebed.views.rules.weighted import WEIGHT, Gone, Stored, Together, Version, WithoutKeys


def changes_name(scan: Scan) -> str:
    """Under what name the changes of a scan's table are given, consolidated."""
    return f"changes_{scan.view}"


def scan_delta(program: Program, node: Scan) -> Relation:
    """The changes of the table."""
    return Stored(columns=(*node.columns, WEIGHT), name=changes_name(node))


def scan_state(program: Program, node: Scan, version: Version, restriction: Restriction | None) -> Relation:
    """The table as it is; as it was: without the keys that changed, and with the rows that these had."""
    if version is Version.NEW or not program.has_changed(node):
        return program.found(node, restriction)
    source = program.sources[node.view]
    if source.old is not None:
        return restricted(source.old, restriction)
    delta = Stored(columns=(*node.columns, WEIGHT), name=changes_name(node))
    kept = WithoutKeys(columns=node.columns, input=program.found(node, restriction), delta=delta, keys=source.key)
    gone = restricted(Gone(columns=node.columns, delta=delta), restriction)
    return Together(columns=node.columns, parts=(kept, gone))


def constant_delta(program: Program, node: Rows | Numbers) -> None:
    """None: what stands in the query does not change."""
    return


def constant_state(
    program: Program, node: Rows | Numbers, version: Version, restriction: Restriction | None
) -> Relation:
    """The same at all times."""
    return restricted(node, restriction)
