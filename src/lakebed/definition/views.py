"""What may not be done with a materialized table: its rows and columns are those of its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument
from lakebed.options import LAKEBED_VIEW_QUERY, VIEW_OPTIONS
from lakebed.schema.changes import RemoveOption, SchemaChange, SetOption, UpdateComment


class ViewOptions(dict[str, object]):
    """Options of a table that is made to be a materialized one: nobody else gives it a query."""


def refuse_view_options(options: Mapping[str, object], name: str) -> None:
    """Raises if options would make an ordinary table look like a materialized one."""
    own = next((key for key in options if key in VIEW_OPTIONS), None)
    if own is not None and not isinstance(options, ViewOptions):
        raise InvalidArgument(
            f"table `{name}`: option `{own}` is not set by hand",
            hint="use CREATE MATERIALIZED TABLE ... AS SELECT ...",
        )


def is_view(context: TableContext) -> bool:
    """Whether a table is the result of a query."""
    return context.options[LAKEBED_VIEW_QUERY] is not None


def refuse_view(context: TableContext) -> None:
    """Raises if somebody else than its refresh would write a materialized table."""
    if is_view(context):
        raise InvalidArgument(
            f"`{context.name}` is a materialized table: its rows are those of its query",
            hint=f"change the tables that it reads, then REFRESH MATERIALIZED VIEW {context.name}",
        )


def refuse_view_changes(context: TableContext, changes: Sequence[SchemaChange]) -> None:
    """Raises if changes would give a materialized table other columns, or make a table one."""
    for change in changes:
        if isinstance(change, SetOption | RemoveOption):
            if change.key not in VIEW_OPTIONS:
                continue
            raise InvalidArgument(
                f"table `{context.name}`: option `{change.key}` is not set by hand",
                hint="use CREATE MATERIALIZED TABLE, or ALTER MATERIALIZED TABLE ... AS SELECT ...",
            )
        if is_view(context) and not isinstance(change, UpdateComment):
            raise InvalidArgument(
                f"`{context.name}` is a materialized table: its columns are those of its query",
                hint=f"ALTER MATERIALIZED TABLE {context.name} AS SELECT ... gives it another query",
            )
