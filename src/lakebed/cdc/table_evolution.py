"""Brings a table of the lake in line with all that a batch says about its sources, and says how rows fit in then.

All changes of a batch are one new schema version, made before any of its rows is written. Rows of chunks from before a
change are written under the new schema too: a column that came later has the value there that the source gives to rows
it had already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakebed.cdc.column_links import Links, TableLinks, shape_text
from lakebed.cdc.envelope import SCHEMA, STREAM, Chunk, Description, SourceName, SourceTable
from lakebed.cdc.routing import Target
from lakebed.cdc.rows import RowShape
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema_sync import IGNORE, SchemaStep, plan_step
from lakebed.cdc.target_tables import added_types
from lakebed.errors import CommitConflict
from lakebed.options import CDC_UPDATE_AS, LAKEBED_CDC_BACKFILL, LAKEBED_CDC_COLUMNS, Options
from lakebed.schema.changes import AddColumn, SchemaChange, SetOption, apply_changes
from lakebed.schema.table_schema import TableSchema
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
    """One description in its turn, and which columns the log has named up to then."""

    source: SourceName
    description: Description
    fields: dict[str, int]
    named: frozenset[str]


def evolve(
    table: Table, target: Target, chunks: Sequence[Chunk], rules: SyncRules, user: str, identifier: int
) -> EvolvedTable:
    """Changes the table's columns as the chunks, in their order, ask for."""
    for _ in range(_MOST_ATTEMPTS):
        plan = _Plan(table, target, rules, user, identifier)
        for chunk in chunks:
            plan.take(chunk)
        if plan.carry_out():
            return plan.result()
    raise CommitConflict(
        f"table `{target}`: its columns are being changed by others all the time", hint="start the sync again"
    )


class _Plan:
    """All steps of a batch for one table."""

    def __init__(self, table: Table, target: Target, rules: SyncRules, user: str, identifier: int) -> None:
        self._table = table
        self._target = target
        self._rules = rules
        self._identifier = identifier
        self._base = table.schema
        self._schema = self._base
        stored = self._base.options.get(LAKEBED_CDC_COLUMNS.key)
        self._stored_text = stored
        self._links = self._base_links = TableLinks.from_text(stored, user)
        self._changes: list[SchemaChange] = []
        self._added: dict[int, str] = {}
        self._named: dict[SourceName, frozenset[str]] = {}
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
        shape = shape_text(Description.from_text(chunk.columns))
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
            table=str(self._target),
            lower_case=self._rules.routing.lowers,
            reserved=self._rules.added_names,
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
        self._shapes.append((chunk.name, shape_text(description)))
        if chunk.phase == STREAM:
            named |= set(step.keys.values())
            self._named[chunk.name] = named
        self._latest[chunk.name] = (chunk.columns, chunk.phase, len(self._steps))
        self._steps.append(_Step(chunk.name, description, dict(step.fields), named))

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

    def carry_out(self) -> bool:
        """Makes the changes; False if the table's columns have changed meanwhile, and all is to be planned anew."""
        changes = list(self._changes)
        for source, shape in dict(self._shapes).items():
            last = self._base_links.shape(source).after_commit(self._identifier, shape)
            self._links = self._links.with_shape(source, last)
        text = self._links.to_text()
        if text != self._stored_text:
            changes.append(SetOption(LAKEBED_CDC_COLUMNS.key, text))
        backfill = self._backfill()
        if backfill is not None:
            changes.append(SetOption(LAKEBED_CDC_BACKFILL.key, backfill))
        if not changes:
            return True
        if self._table.schema.id != self._base.id:
            return False
        self._table.alter(*changes)
        now = self._table.schema
        return _columns(now) == _columns(self._schema)

    def _backfill(self) -> str | None:
        """The option's new text, if rows that are there are to get values in new columns."""
        present = {field.id for field in self._schema.fields}
        added = {str(field): text for field, text in self._added.items() if field in present}
        if not added or self._table.latest_snapshot() is None:
            return None
        waiting = json.loads(self._base.options.get(LAKEBED_CDC_BACKFILL.key) or "{}")
        return json.dumps(waiting | added, ensure_ascii=False)

    def result(self) -> EvolvedTable:
        """The shapes, under the columns that the table has now."""
        schema = self._table.schema
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
            schema.primary_keys,
            columns,
            self._fills(step, columns),
            computed,
            metadata,
            lenient=rules.policies.incompatible == IGNORE,
            lower_case=rules.routing.lowers,
            keeps_updates=Options(schema.options)[CDC_UPDATE_AS] == "update",
            needs_old_rows=self._needs_old_rows(step, schema),
        )

    def _fills(self, step: _Step, columns: dict[int, str]) -> dict[int, str]:
        """Values of columns that the source has added after the rows of this description."""
        links: Links = self._links.of(step.source)
        return {
            link.field_id: link.default
            for key, link in links.items()
            if link.default is not None
            and link.field_id not in columns
            and key not in step.named
            and not link.is_streamed_before(self._identifier)
        }

    def _needs_old_rows(self, step: _Step, schema: TableSchema) -> bool:
        """Whether a key of the table can change although that of the source does not."""
        rules = self._rules
        fixed = {rules.name(name) for name in step.description.primary_key}
        fixed |= {each.name for each in rules.computed if each.column is None or rules.name(each.column) in fixed}
        fixed |= {each.name for each in rules.metadata if each.kind != "op_ts"}
        return not set(schema.primary_keys) <= fixed


def _columns(schema: TableSchema) -> list[tuple[int, str]]:
    return [(field.id, field.name) for field in schema.fields]


__all__ = ["EvolvedTable", "evolve"]
