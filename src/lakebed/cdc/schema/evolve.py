"""Brings a table of the lake in line with all that a batch says about its sources, and says how rows fit in then.

All changes of a batch are one new schema version, made before any of its rows is written. Rows of chunks from before a
change are written under the new schema too: a column that came later has the value there that the source gives to rows
it had already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakebed.cdc.envelope import SCHEMA, STREAM, Chunk, Description, SourceName, SourceTable
from lakebed.cdc.routing import Target
from lakebed.cdc.rows.keeping import CHANGES
from lakebed.cdc.rows.shape import RowShape
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.links import Links, TableLinks, shape_text
from lakebed.cdc.schema.sync import IGNORE, Naming, SchemaStep, plan_step
from lakebed.cdc.schema.targets import added_types
from lakebed.cdc.schema.types import evolved
from lakebed.errors import CommitConflict
from lakebed.options import CDC_UPDATE_AS, LAKEBED_CDC_BACKFILL, LAKEBED_CDC_COLUMNS, Options
from lakebed.records import dataclass
from lakebed.schema.changes import AddColumn, SchemaChange, SetOption, apply_changes
from lakebed.schema.table_schema import TableSchema
from lakebed.table.plans import plan_write
from lakebed.types.logical import with_nullable

if TYPE_CHECKING:
    from lakebed.table.table import Table

_MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class EvolvedTable:
    """How rows of a batch fit into a table: a shape for each description, and which one each chunk has."""

    shapes: tuple[RowShape, ...]
    shape_of: dict[int, int]
    """By the ordinal of the chunk."""
    changes: int
    """How many changes the columns went through."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One description in its turn."""

    source: SourceName
    description: Description
    fields: dict[str, int]
    known: frozenset[int]
    """Fields that the log has named up to then."""


def evolve(
    table: Table,
    target: Target,
    chunks: Sequence[Chunk],
    rules: SyncRules,
    user: str,
    identifier: int,
    key: tuple[str, ...] | None = None,
) -> EvolvedTable:
    """Changes the table's columns as the chunks, in their order, ask for. `key`: the source's, if it has another.

    A commit that is repeated after its changes were made begins where it began the first time: what its first rows
    were called may mean something else by now.
    """
    made = TableLinks.from_text(table.schema.options.get(LAKEBED_CDC_COLUMNS.key), user)
    before = made.schema_before(identifier)
    if before is not None:
        schemas = plan_write(table, user, identifier)[0].schemas
        plan = _Plan(table, target, rules, user, identifier, schemas.get(before), key)
        for chunk in chunks:
            plan.take(chunk)
        if plan.is_carried_out():
            return plan.result(made)
    for _ in range(_MOST_ATTEMPTS):
        plan = _Plan(table, target, rules, user, identifier, table.schema, key)
        for chunk in chunks:
            plan.take(chunk)
        if plan.carry_out():
            return plan.result(plan.links)
    raise CommitConflict(
        f"table `{target}`: its columns are being changed by others all the time", hint="start the sync again"
    )


class _Plan:
    """All steps of a batch for one table."""

    def __init__(
        self,
        table: Table,
        target: Target,
        rules: SyncRules,
        user: str,
        identifier: int,
        base: TableSchema,
        key: tuple[str, ...] | None,
    ) -> None:
        self._key = key
        self._table = table
        self._target = target
        self._rules = rules
        self._identifier = identifier
        self._base = self._schema = base
        stored = self._base.options.get(LAKEBED_CDC_COLUMNS.key)
        self._stored_text = stored
        self._links = self._base_links = TableLinks.from_text(stored, user)
        self._changes: list[SchemaChange] = []
        self._added: dict[int, str] = {}
        self._named: dict[SourceName, frozenset[str]] = {}
        self._known: dict[SourceName, frozenset[int]] = {}
        self._latest: dict[SourceName, tuple[str, str, int]] = {}
        self._steps: list[_Step] = []
        self._shapes: list[tuple[SourceName, str]] = []
        self._shape_of: dict[int, int] = {}

    def take(self, chunk: Chunk) -> None:
        """The next chunk."""
        known = self._latest.get(chunk.name)
        if known is None or known[:2] != (chunk.columns, chunk.phase):
            if chunk.kind == SCHEMA and self._is_outdated(chunk):
                return
            self._step(chunk)
        self._shape_of[chunk.ordinal] = self._latest[chunk.name][2]

    def _is_outdated(self, chunk: Chunk) -> bool:
        """Whether columns that came without rows are those from before changes that rows of this batch have brought.

        Sources that look at their catalogue now and then may tell late what they saw. If the columns have really
        become what they were, the next row says so too.
        """
        description = Description.from_text(chunk.columns)
        if description.changes is not None:
            return False
        shape = shape_text(description)
        seen = [each for source, each in self._shapes if source == chunk.name]
        if not seen or shape == seen[-1]:
            return False
        before = self._base_links.shape(chunk.name).before_commit(self._identifier)
        return shape in seen or shape == before

    def _planned(self, chunk: Chunk, description: Description, named: frozenset[str]) -> SchemaStep:
        return plan_step(
            self._schema,
            self._links.of(chunk.name),
            self._rules.mapped(description),
            chunk.phase,
            self._rules.policies,
            self._identifier,
            seen=named,
            naming=Naming(str(self._target), self._rules.routing.lowers, frozenset(self._rules.added_names)),
        )

    def _step(self, chunk: Chunk) -> None:
        description = Description.from_text(chunk.columns)
        self._add_own_columns(SourceTable(chunk.name, description))
        named = self._named.get(chunk.name, frozenset())
        step = self._planned(chunk, description, named)
        self._schema = step.schema
        self._changes += step.changes
        self._added |= step.added
        self._links = self._links.with_links(chunk.name, step.links)
        if description.changes is None and not description.partial:
            self._shapes.append((chunk.name, shape_text(description)))
        known = self._known.get(chunk.name, frozenset())
        if chunk.phase == STREAM:
            self._named[chunk.name] = named | set(step.keys.values())
            known = self._known[chunk.name] = known | set(step.fields.values())
        self._latest[chunk.name] = (chunk.columns, chunk.phase, len(self._steps))
        self._steps.append(_Step(chunk.name, description, dict(step.fields), known))

    def _add_own_columns(self, source: SourceTable) -> None:
        """Computed and metadata columns of a table that was there before the sync."""
        if set(self._rules.added_names) <= set(self._schema.field_names):
            return
        for name, data_type in added_types(self._target, [source], self._rules).items():
            if name not in self._schema.field_names:
                change = AddColumn((name,), with_nullable(data_type, True))
                changed = apply_changes(self._schema, [change], has_snapshots=True, time_millis=0)
                self._schema = replace(changed, id=self._schema.id)
                self._changes.append(change)

    def is_carried_out(self) -> bool:
        """Whether the table has all that the plan asks for: columns that are missing were there, and were dropped."""
        now = {field.id: field for field in self._table.schema.fields}
        before = {field.id for field in self._base.fields}
        for planned in self._schema.fields:
            have = now.get(planned.id)
            if have is None and planned.id in before:
                continue
            if have is None or evolved(have.type, with_nullable(planned.type, have.type.nullable)) != have.type:
                return False
        return True

    def carry_out(self) -> bool:
        """Makes the changes; False if the table's columns have changed meanwhile, and all is to be planned anew."""
        changes = list(self._changes)
        for source, shape in dict(self._shapes).items():
            last = self._base_links.shape(source).after_commit(self._identifier, shape)
            self._links = self._links.with_shape(source, last)
        is_linked_anew = self._links.to_text() != self._stored_text
        backfill = self._backfill()
        if backfill is not None:
            changes.append(SetOption(LAKEBED_CDC_BACKFILL.key, backfill))
        if not changes and not is_linked_anew:
            return True
        if self._table.schema.id != self._base.id:
            return False
        text = replace(self._links, altered=(self._identifier, self._base.id)).to_text()
        changes.append(SetOption(LAKEBED_CDC_COLUMNS.key, text))
        self._table.alter(*changes)
        now = self._table.schema
        return _columns(now) == _columns(self._schema)

    def _backfill(self) -> str | None:
        """The option's new text, if rows that are there are to get values in new columns."""
        present = {field.id for field in self._schema.fields}
        added = {str(field): text for field, text in self._added.items() if field in present}
        if not added or self._table.latest_snapshot() is None or self._target.form == CHANGES:
            return None
        waiting = json.loads(self._base.options.get(LAKEBED_CDC_BACKFILL.key) or "{}")
        return json.dumps(waiting | added, ensure_ascii=False)

    @property
    def links(self) -> TableLinks:
        """The links after all steps."""
        return self._links

    def result(self, links: TableLinks) -> EvolvedTable:
        """The shapes, under the columns and links that the table has now."""
        schema, self._links = self._table.schema, links
        shapes = tuple(self._shape(step, schema) for step in self._steps)
        return EvolvedTable(shapes, self._shape_of, len(self._changes))

    def _shape(self, step: _Step, schema: TableSchema) -> RowShape:
        rules = self._rules
        by_name = {field.name: field.id for field in schema.fields}
        columns = {field: name for name, field in step.fields.items()}
        computed = {by_name[each.name]: each for each in rules.computed if each.name in by_name}
        metadata = {by_name[each.name]: each for each in rules.metadata if each.name in by_name}
        return RowShape(
            step.source,
            step.description,
            str(self._target),
            schema.fields,
            schema.primary_keys if self._key is None else self._key,
            columns,
            self._fills(step, columns),
            computed,
            metadata,
            lenient=rules.policies.incompatible == IGNORE,
            lower_case=rules.routing.lowers,
            keeps_updates=Options(schema.options)[CDC_UPDATE_AS] == "update",
            needs_old_rows=self._needs_old_rows(step, schema),
            old_rows=None if rules.keeping.mark(self._target.form) is None else self._target.form == CHANGES,
        )

    def _fills(self, step: _Step, columns: dict[int, str]) -> dict[int, str]:
        """Values of columns that the source has added after the rows of this description."""
        links: Links = self._links.of(step.source)
        return {
            link.field_id: link.default
            for link in links.values()
            if link.default is not None
            and link.field_id not in columns
            and link.field_id not in step.known
            and not link.is_streamed_before(self._identifier)
        }

    def _needs_old_rows(self, step: _Step, schema: TableSchema) -> bool:
        """Whether a key of the table can change although that of the source does not."""
        rules = self._rules
        fixed = {rules.name(name) for name in step.description.primary_key}
        fixed |= {each.name for each in rules.computed if each.column is None or rules.name(each.column) in fixed}
        fixed |= {each.name for each in rules.metadata if each.is_fixed}
        return not set(schema.primary_keys if self._key is None else self._key) <= fixed


def _columns(schema: TableSchema) -> list[tuple[int, str]]:
    return [(field.id, field.name) for field in schema.fields]


__all__ = ["EvolvedTable", "evolve"]
