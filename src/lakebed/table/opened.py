"""A table as somebody has opened it: under which options, at which snapshot, and what may be done with it so.

`Table` is what users hold; this is what the parts of Lakebed that plan, write or change a table work with.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Protocol

from lakebed.definition.branch import branch_argument, context_on_branch
from lakebed.definition.context import TableContext, once_per_context
from lakebed.definition.moments import asked_time_ms, is_travelling, resolve_snapshot
from lakebed.definition.validate import check_fixed_options, validate_table
from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.fileio.glance import one_glance
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BRANCH,
    TAG_AUTOMATIC_CREATION,
    Options,
    check_options,
    unhonoured_for_read,
    unhonoured_for_write,
)
from lakebed.records import dataclass
from lakebed.schema.table_schema import TableSchema


@dataclass(eq=False)
class OpenedTable:
    """A table, the options that whoever opened it has set on top of its own, and the snapshot it shows (the latest)."""

    context: TableContext
    overrides: Mapping[str, str] = field(default_factory=dict)
    pinned: Snapshot | None = None
    as_of_ms: int | None = None
    """The time that somebody has gone back to; None if the snapshot was the latest when the table was opened."""
    _last: TableContext | None = field(default=None, init=False, repr=False)
    """The context under the schema that was the latest when somebody last looked."""

    @property
    def name(self) -> str:
        """`database.table`."""
        return self.context.name

    # --- what may be done with it --------------------------------------------------------------------------------

    def under(self, schema: TableSchema) -> TableContext:
        """The table under a version of its schema."""
        return self.context.with_schema(schema, Options({**schema.options, **self.overrides}))

    def current(self) -> TableContext:
        """The table under its latest schema (that of the pinned snapshot, for a view of the past)."""
        if self.pinned is not None:
            return self.under(self.context.schema)
        latest = self.context.schemas.latest()
        if latest is None:
            raise NotFound(f"table `{self.name}` does not exist any more", hint="it was dropped; create it again")
        if self._last is not None and self._last.schema is latest:
            return self._last  # with all that was worked out from it
        context = self.under(latest)
        if self.overrides:
            check_fixed_options(latest, context.options, self.name)  # the table may have changed since they were given
        self._last = context  # not before it is found to be in order, or the next look would not say so
        return context

    def at_a_glance(self) -> AbstractContextManager[None]:
        """Within this the store is asked once for what may have changed, if each answer takes a while."""
        paths = self.context.paths
        return one_glance(self.context.fileio, paths.schema_directory, paths.snapshot_directory)

    def readable(self) -> TableContext:
        """As `current`, for what reads rows: the table's options must let this version read."""
        context = self.current()
        _refuse_unhonoured(context, "read")
        return context

    def changeable(self) -> TableContext:
        """As `current`, if it may be changed."""
        self.refuse_if_read_only()
        return self.current()

    def writable(self) -> TableContext:
        """As `changeable`, for what commits: the table's options must let this version write."""
        from lakebed.maintenance.tags import refuse_callbacks

        context = self.changeable()
        _refuse_unhonoured(context, "write")
        if context.options[TAG_AUTOMATIC_CREATION] != "none":
            refuse_callbacks(context)
        return context

    def folded(self) -> TableContext:
        """As `writable`, once no row is stored that was written under another meaning than the table has now.

        A commit says under which schema the rows of its state are to be understood: the latest.
        """
        from lakebed.rewrite.fold_first import fold_stored

        context = self.writable()
        fold_stored(context)
        return context

    def refuse_if_read_only(self) -> None:
        """Raises for views of the past and for read-only views."""
        if self.context.view:
            table = self.name.removesuffix(f"${self.context.view}")
            raise InvalidArgument(f"`{self.name}` is a read-only view", hint=f"open `{table}` to change the table")
        if self.pinned is not None:
            raise InvalidArgument(
                f"table `{self.name}` is opened at snapshot {self.pinned.id}, which is read only",
                hint="open the table without at(...) to write to it",
            )

    # --- the same table, opened otherwise ------------------------------------------------------------------------

    def at(self, snapshot: Snapshot, as_of_ms: int | None = None) -> OpenedTable:
        """At a snapshot, under the schema it had then; as of a time, if that is what was asked for."""
        time_ms = snapshot.time_millis if as_of_ms is None else as_of_ms
        return OpenedTable(self.under(self.context.schemas.get(snapshot.schema_id)), self.overrides, snapshot, time_ms)

    def now(self) -> OpenedTable:
        """At the latest snapshot, under the current schema."""
        context = self.current()
        latest = context.stores.snapshots.latest() if self.pinned is None else self.pinned
        return OpenedTable(context, self.overrides, latest, self.as_of_ms)

    def with_options(self, given: Mapping[str, object]) -> OpenedTable:
        """With more options on top, which may name another branch, or a snapshot."""
        if BRANCH.key in given:
            others = {key: value for key, value in given.items() if key != BRANCH.key}
            return self.on_branch(str(given[BRANCH.key])).with_options(others)
        checked = check_options(given, for_create=False, columns=self.current().schema.field_names)
        opened = OpenedTable(self.context, {**self.overrides, **checked}, self.pinned, self.as_of_ms)
        current = opened.current()
        validate_table(current.schema, current.options, self.name)
        if self.pinned is None and is_travelling(current.options):
            pinned = resolve_snapshot(current.stores, current.options, self.name)
            if pinned is not None:
                return opened.at(pinned, asked_time_ms(current.options))
        return opened

    def on_branch(self, name: str) -> OpenedTable:
        """On another branch."""
        if self.pinned is not None:
            raise InvalidArgument(f"table `{self.name}` is opened at a snapshot", hint="choose the branch first")
        return OpenedTable(context_on_branch(self.context, branch_argument(name)), self.overrides)


class Holder(Protocol):
    """Who holds an opened table: `Table`, and the parts that it is made of."""

    _opened: OpenedTable


def opened_of(holder: Holder) -> OpenedTable:
    """The opened table behind what a user holds."""
    return holder._opened


@once_per_context
def _refuse_unhonoured(context: TableContext, deed: str) -> None:
    """Raises if another engine's table asks for what this version can not do."""
    raw = context.options.raw
    options = unhonoured_for_read(raw) if deed == "read" else unhonoured_for_write(raw)
    if options:
        key = options[0].key
        raise Unsupported(
            f"table `{context.name}` has `{key}` = `{context.options.raw.get(key)}`, which this version can not {deed}",
            hint=options[0].instead or "use an engine that honours the option",
        )


__all__ = ["Holder", "OpenedTable", "opened_of"]
