"""What rules of changes are given of the tables of a query: what changed in them, and how their old state is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakebed.algebra.relations import Scan
from lakebed.embedded.program import Run
from lakebed.expressions import kinds
from lakebed.table.opened import opened_of
from lakebed.views.changes import CHANGE, ChangesGone, Steps
from lakebed.views.plan.build import key_columns
from lakebed.views.rules.program import SourceRules, Statement
from lakebed.views.rules.sources import changes_name
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Stored
from lakebed.views.sources import Source, source_of


def source_rules(scan: Scan, steps: Mapping[str, Steps]) -> SourceRules:
    """How the old state of a scan's table is found: by its key, or in its old snapshot."""
    source = source_of(scan)
    key = key_columns(scan)
    if key or steps[source.table.name].way == "none":
        return SourceRules(key)
    before = steps[source.table.name].before
    if before is not None and opened_of(source.table).current().stores.snapshots.find(before.id) is None:
        raise ChangesGone(f"snapshot {before.id} of `{source.table.name}` has expired")
    old = Source(source.table, source.path, before, source.names)
    return SourceRules(old=Scan(columns=scan.columns, source=old, view=f"old_{scan.view}", names=scan.names))


def names_of(scans: Sequence[Scan], name: str) -> tuple[str, ...]:
    """The columns of a table that any of its scans reads."""
    found = [source_of(scan).names for scan in scans if source_of(scan).table.name == name]
    return tuple(dict.fromkeys(column for names in found for column in names))


def give_changes(run: Run, scan: Scan, rows: pa.Table) -> None:
    """The changes of a scan's table: of the columns that it reads, consolidated."""
    raw = f"raw_{scan.view}"
    run.give(raw, rows)
    consolidate(run, scan, raw)


def consolidate(run: Run, scan: Scan, raw: str) -> None:
    """The same of changes that are there under a name."""
    pairs = zip(scan.names, scan.columns, strict=True)
    chosen = ", ".join([*(f"{kinds.quoted(name)} AS {each.id}" for name, each in pairs), f"{CHANGE} AS w"])
    given = Stored(columns=(*scan.columns, WEIGHT), name=f"(SELECT {chosen} FROM {raw})")
    run.make(Statement(changes_name(scan), Consolidated(columns=given.columns, input=given)))
