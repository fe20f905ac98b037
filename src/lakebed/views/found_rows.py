"""Rows of a table by their keys, in the place of a look at all of them, where that is expected to be quicker."""

from __future__ import annotations

import pyarrow as pa

from lakebed.embedded.program import Run
from lakebed.errors import LakebedError
from lakebed.expressions import kinds
from lakebed.metadata.snapshot import Snapshot
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.views.rules.program import Lookup, Statement
from lakebed.views.sources import pinned_at, source_of

_FEWEST_ROWS = 20_000
"""Tables with less are read as quickly."""
_SHARE = 20
"""One key of so many rows is worth a search."""


def looked_up(run: Run, statement: Statement) -> int | None:
    """Puts the rows of a statement under its name by searching for their keys; how many, or None to read it."""
    lookup = statement.lookup
    if lookup is None:
        return None
    source = source_of(lookup.scan)
    if source.snapshot is None or not is_worth_a_search(run.count(lookup.keys.name), source.snapshot):
        return None
    try:
        found = _rows(run, lookup)
    except LakebedError:  # a table that can not be searched, or a key that it can not have: then it is read
        return None
    named = zip(lookup.scan.names, lookup.scan.columns, strict=True)
    listed = ", ".join(f"{kinds.quoted(name)} AS {each.id}" for name, each in named) or "1 AS nothing"
    run.give(f"raw_{statement.name}", found)
    run.execute(f"CREATE TEMP TABLE {statement.name} AS SELECT {listed} FROM raw_{statement.name}")
    return int(found.num_rows)


def is_worth_a_search(keys: int, snapshot: Snapshot) -> bool:
    """Whether so many keys of a table are better searched for than found among all."""
    return keys * _SHARE <= snapshot.total_record_count >= _FEWEST_ROWS


def _rows(run: Run, lookup: Lookup) -> pa.Table:
    source = source_of(lookup.scan)
    by = source.key[: len(lookup.keys.columns)]
    listed = ", ".join(f"{key.id} AS {kinds.quoted(name)}" for key, name in zip(lookup.keys.columns, by, strict=True))
    keys = run.table(f"SELECT DISTINCT {listed} FROM {lookup.keys.name}")
    names = list(lookup.scan.names)
    by_name = {each.name: each for each in source.table.schema.fields}
    schema = transfer_schema([by_name[name] for name in names])
    asked = None if len(by) == len(source.key) else by
    found = pinned_at(source.table, source.snapshot).lookup(keys, names, by=asked).combine_chunks()
    return pa.Table.from_batches([to_transfer(batch, schema) for batch in found.to_batches()], schema=schema)
