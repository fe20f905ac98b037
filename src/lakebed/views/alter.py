"""Changes a materialized table: another query, or whether it is refreshed."""

from __future__ import annotations

from lakebed.options import CHANGELOG_PRODUCER, VIEW_DEFINITION, VIEW_OPTIONS
from lakebed.schema.changes import SetOption
from lakebed.sql.session import SqlLake
from lakebed.table.alter import alter_table
from lakebed.views.define import ViewRequest, replaced_view
from lakebed.views.result import Refreshed
from lakebed.views.store import definition_of


def alter_view(lake: SqlLake, name: str, query: str | None, suspended: bool | None) -> Refreshed | None:
    """Gives it another query, and computes it; or stops and resumes its refreshes."""
    table = lake.table(name)
    definition = definition_of(table)
    if suspended is not None:
        options = definition.changed(is_suspended=suspended).to_options()
        alter_table(table, [SetOption(VIEW_DEFINITION.key, options[VIEW_DEFINITION.key])], of_view=True)
    if query is None:
        return None
    own = {*VIEW_OPTIONS, CHANGELOG_PRODUCER.key}
    request = ViewRequest(
        name,
        query,
        definition.freshness,
        definition.policy,
        partition_by=table.partition_by,
        options={key: value for key, value in table.schema.options.items() if key not in own},
        comment=table.comment,
        spelling=definition.spelling,
    )
    return replaced_view(lake, request)
