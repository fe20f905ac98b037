"""Empties a table for good: rows, history, tags, branches and consumers go, and every file that they kept.

For who must be sure that nothing is left of what was in a table. The table itself stays, with its schema and options.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.definition.branch import list_branches
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument
from lakebed.maintenance.branches import drop_branches
from lakebed.maintenance.consumers import clear_consumers
from lakebed.maintenance.expiry import expire_table
from lakebed.maintenance.orphans import Orphans, remove_orphans
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.snapshots import expire_changelogs
from lakebed.maintenance.table_files import table_files
from lakebed.maintenance.tags import remove_tags
from lakebed.metadata.json_file import INT64_MAX
from lakebed.metadata.paths import MAIN_BRANCH


def purge(context: TableContext, truncate: Callable[[], object]) -> Orphans:
    """Removes everything but the table; which files were left without an owner, and are gone too.

    Branches first: an option that names one is found before anything goes. Nobody may be writing: what is not
    committed yet has no owner either.
    """
    if context.paths.branch != MAIN_BRANCH:
        raise InvalidArgument(
            f"`{context.name}` is a branch, and its files may be of the table's other branches too",
            hint="purge the table itself, which takes its branches away; or delete the branch",
        )
    drop_branches(context, list_branches(context))
    stores = context.stores
    names = stores.tags.names()
    if names:
        remove_tags(context, tuple(names))
    clear_consumers(stores, None, None)
    truncate()
    files = table_files(context)
    expire_changelogs(files, RetentionRules.of(context.options, context.clock.now_ms()), everything=True)
    ids = stores.snapshots.ids()
    if len(ids) > 1:
        expire_table(context, context.clock.now_ms(), 1, 1, len(ids))
        # Where changelogs outlive their snapshots, the expiry has left some.
        expire_changelogs(files, RetentionRules.of(context.options, context.clock.now_ms()), everything=True)
    return remove_orphans(files, len(context.schema.partition_keys), INT64_MAX, dry_run=False)


__all__ = ["purge"]
