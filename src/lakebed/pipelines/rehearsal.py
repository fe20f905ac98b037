"""A lake that is thrown away: a pipeline is tried on it, so that what is wrong is known before anything is made.

It has the definitions of the real tables and none of their rows, and lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebed.catalog.names import parse_table_name
from lakebed.clock import RandomIds
from lakebed.lake import connect
from lakebed.options import VIEW_OPTIONS

if TYPE_CHECKING:
    from lakebed.lake import Lake


@contextmanager
def rehearsed(lake: Lake) -> Iterator[Lake]:
    """An empty lake with the databases and settings of a real one."""
    scratch = connect(f"memory://rehearsal-{RandomIds().new_id()}")
    for database in lake.databases():
        scratch.create_database(database, if_not_exists=True)
    scratch.create_database(lake.current_database, if_not_exists=True)
    scratch.use(lake.current_database)
    scratch.settings.update(lake.settings)
    scratch.other_tables.update(lake.other_tables)
    try:
        yield scratch
    finally:
        for database in scratch.databases():
            scratch.drop_database(database, cascade=True, if_exists=True)


def adopt(scratch: Lake, lake: Lake, name: str) -> None:
    """Gives a real table's definition to the rehearsal, unless the pipeline has made a table of that name there."""
    place = parse_table_name(name.split("$")[0], scratch.current_database)
    full = f"`{place.database}`.`{place.table}`"
    if scratch.has_table(full) or not lake.has_table(full):
        return
    table = lake.table(full)
    options = {key: value for key, value in table.schema.options.items() if key not in VIEW_OPTIONS}
    scratch.create_table(
        full,
        table.schema.fields,
        primary_key=table.primary_key,
        partition_by=table.partition_by,
        options=options,
        comment=table.comment,
    )
