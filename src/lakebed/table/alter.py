"""Changes a table's schema: as a user asks for it, or as the rows of a write do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakebed.definition.aggregate_names import stored_options
from lakebed.definition.arguments import changes_argument
from lakebed.definition.branch import list_branches
from lakebed.definition.guards import warn_of_unguarded
from lakebed.definition.new_settings import check_new_settings
from lakebed.definition.validate import validate_table
from lakebed.definition.views import refuse_view_changes
from lakebed.errors import InvalidOption, NotFound, did_you_mean
from lakebed.options import PARTITION, PRIMARY_KEY, Options, check_options
from lakebed.read.other_branch import check_other_branch
from lakebed.rewrite.fold_first import fold_stored, prepare_change
from lakebed.schema.changes import RemoveOption, SchemaChange, SetOption
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import Holder, opened_of
from lakebed.types.arrow import from_arrow_schema
from lakebed.write.make_room import SchemaMerge, relaxed


def alter_table(table: Holder, changes: Sequence[SchemaChange], *, of_view: bool = False) -> None:
    """Applies changes as one new schema version; all of them or none. `of_view`: of a materialized table by itself."""
    context = opened_of(table).writable()
    changes = tuple(kept for change in changes_argument(changes) if (kept := _canonical(change)) is not None)
    if not of_view:
        refuse_view_changes(context, changes)
    known = {*context.schema.options, *(change.key for change in changes if isinstance(change, SetOption))}
    for change in changes:
        if isinstance(change, RemoveOption) and change.key not in known:
            hint = did_you_mean(change.key, known)
            raise NotFound(f"table `{context.name}` has no option `{change.key}`", hint=hint)

    def check(before: TableSchema, after: TableSchema) -> None:
        added = {key: value for key, value in after.options.items() if before.options.get(key) != value}
        check_options(added, for_create=False, columns=after.field_names)
        validate_table(after, Options(after.options), context.name)
        check_other_branch(Options(added), list_branches(context), context.name)
        # An option that goes may leave another without what it needs.
        moved = {*added, *(key for key in before.options if key not in after.options)}
        check_new_settings(Options(after.options), context.name, moved)
        prepare_change(context, before, after)

    has_snapshots = context.stores.snapshots.latest_id() is not None
    changed = context.schemas.commit_changes(changes, has_snapshots, context.clock.now_ms(), check)
    # What others have committed between the last look and the change was written under the old schema.
    fold_stored(context.with_schema(changed, Options(changed.options)))
    warn_of_unguarded(context.name, Options(changed.options), Options(context.schema.options))


def make_room(table: Holder, incoming: pa.Schema, row_kind: str | None = None) -> None:
    """Adds the columns that rows of this schema have and the table has not, if `write.merge-schema` is set.

    `write.merge-schema.type-widening` and `write.merge-schema.explicit-cast` change types of columns as well.
    """
    context = opened_of(table).current()
    merge = SchemaMerge.of_options(context.options)
    if merge.adds:
        given = from_arrow_schema(pa.schema([field for field in incoming if field.name != row_kind]))
        changes = merge.changes_of(context.schema, [replace(field, type=relaxed(field.type)) for field in given])
        if changes:
            alter_table(table, changes)


def _canonical(change: SchemaChange) -> SchemaChange | None:
    """The change with an option's canonical key and text, as a schema file keeps it; None if it means nothing."""
    if isinstance(change, SetOption):
        is_key = change.key in (PRIMARY_KEY.key, PARTITION.key)  # a table without data may still get its keys
        checked = stored_options(check_options({change.key: change.value}, for_create=is_key, columns=None), ())
        if len(checked) > 1:
            raise InvalidOption(
                f"option `{change.key}`: a column can not begin to count once the table exists",
                hint="create the table with aggregate function `count`, or count with `sum` over ones",
            )
        return next((SetOption(key, value) for key, value in checked.items()), None)
    return change


__all__ = ["alter_table", "make_room"]
