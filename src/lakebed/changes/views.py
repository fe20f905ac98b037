"""How events look to a reader: as plain rows, with their kinds (`t$audit_log`), or one row per change (`t$binlog`).

Each form knows its columns, which table columns it takes to show some of them, and what a filter on it says of the
table's rows. Where the events come from is no matter of this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lakebed.definition.context import AUDIT_LOG, BINLOG, TableContext
from lakebed.errors import InvalidOption
from lakebed.merge.binlog import packed_events, packed_schema
from lakebed.options import READ_CHANGELOG, TABLE_READ_SEQUENCE_NUMBER_ENABLED
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types import predicate as predicates
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.key_value import KIND_FIELD, SEQUENCE_FIELD, SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.logical import DataField
from lakebed.types.predicate import Predicate
from lakebed.types.row_kind import is_retract, kinds_from_text, kinds_to_text

ROWKIND_FIELD = pa.field(system_columns.ROW_KIND.name, pa.string(), nullable=False)
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class ChangeView(ABC):
    """One form of events."""

    context: TableContext

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """All columns that the view has."""

    @abstractmethod
    def shown(self, events: Batches) -> Batches:
        """The events in this form, with those of the columns that were read."""

    @property
    def tells_pairs(self) -> bool:
        """Whether a comparison of two states tells the old row of an update."""
        return False

    def fields_for(self, names: frozenset[str]) -> tuple[DataField, ...]:
        """What must be read to show these columns."""
        return tuple(field for field in self.context.schema.fields if field.name in names)

    def table_part(self, predicate: Predicate | None) -> Predicate | None:
        """What a filter on the view says of the rows of the table."""
        if predicate is None:
            return None
        return predicates.project_onto(predicate, frozenset(self.context.schema.field_names))


class PlainRows(ChangeView):
    """Rows that came, without those that went."""

    @property
    def schema(self) -> pa.Schema:
        """See `ChangeView.schema`."""
        return to_arrow_schema(self.context.schema.fields)

    def shown(self, events: Batches) -> Batches:
        """See `ChangeView.shown`."""
        for batch in events:
            retracts = is_retract(key_value.kinds(batch))
            rows = batch.filter(pa.array(~retracts)) if np.any(retracts) else batch
            yield key_value.without_system_columns(rows)


class AuditLog(ChangeView):
    """All rows, the kind in front; the sequence number behind it if the table's options ask for it."""

    @property
    def schema(self) -> pa.Schema:
        """See `ChangeView.schema`."""
        numbers = [SEQUENCE_FIELD] if self.has_numbers else []
        return pa.schema([ROWKIND_FIELD, *numbers, *to_arrow_schema(self.context.schema.fields)])

    @property
    def has_numbers(self) -> bool:
        """Whether rows come with their sequence numbers."""
        return _asks_for_numbers(self.context)

    def fields_for(self, names: frozenset[str]) -> tuple[DataField, ...]:
        """See `ChangeView.fields_for`."""
        numbers = (system_columns.SEQUENCE_NUMBER,) if SEQUENCE_NUMBER in names else ()
        return (*numbers, *super().fields_for(names))

    def shown(self, events: Batches) -> Batches:
        """See `ChangeView.shown`."""
        return map(kind_first, events)


def _asks_for_numbers(context: TableContext) -> bool:
    asked = context.options[TABLE_READ_SEQUENCE_NUMBER_ENABLED]
    if asked and not context.has_key:
        raise InvalidOption(
            f"table `{context.name}` has no primary key: its rows have no sequence number to show",
            hint=f"leave `{TABLE_READ_SEQUENCE_NUMBER_ENABLED.key}` out",
        )
    return asked


class DiffRows(AuditLog):
    """All rows with their kinds, and no numbers: what is compared are rows."""

    @property
    def has_numbers(self) -> bool:
        """See `AuditLog.has_numbers`."""
        return False


class Binlog(ChangeView):
    """One row per change; updates hold the values before and after, and the sequence number of the latter."""

    @property
    def schema(self) -> pa.Schema:
        """See `ChangeView.schema`."""
        numbers = [SEQUENCE_FIELD] if self.has_numbers else []
        arrays = list(packed_schema(to_arrow_schema(self.context.schema.fields)))[1:]
        return pa.schema([ROWKIND_FIELD, *numbers, *arrays])

    @property
    def has_numbers(self) -> bool:
        """See `AuditLog.has_numbers`."""
        return _asks_for_numbers(self.context)

    @property
    def tells_pairs(self) -> bool:
        """See `ChangeView.tells_pairs`."""
        return True

    def fields_for(self, names: frozenset[str]) -> tuple[DataField, ...]:
        """See `ChangeView.fields_for`: pairs are found by their key."""
        numbers = (system_columns.SEQUENCE_NUMBER,) if SEQUENCE_NUMBER in names else ()
        return (*numbers, *super().fields_for(names | frozenset(self.context.schema.primary_keys)))

    def table_part(self, predicate: Predicate | None) -> Predicate | None:
        """See `ChangeView.table_part`: filters are about arrays."""
        return None

    def shown(self, events: Batches) -> Batches:
        """See `ChangeView.shown`."""
        dropped = [] if self.has_numbers else [SEQUENCE_NUMBER]
        rows = (batch.drop_columns([name for name in batch.schema.names if name in dropped]) for batch in events)
        return (_numbered(kind_first(batch)) for batch in packed_events(rows, self.context.schema.primary_keys))


class _PackedRows(Binlog):
    """One row per change, and no numbers: what was read before has none."""

    @property
    def has_numbers(self) -> bool:
        """See `AuditLog.has_numbers`."""
        return False


def _numbered(events: pa.RecordBatch) -> pa.RecordBatch:
    """The events with one sequence number each, the last, in place of those of both rows."""
    place = events.schema.get_field_index(SEQUENCE_NUMBER)
    if place < 0:
        return events
    numbers = events.column(place)
    ends = np.asarray(numbers.offsets)[1:] - 1
    return events.set_column(place, SEQUENCE_FIELD, numbers.values.take(pa.array(ends)))


def view_of(context: TableContext) -> ChangeView:
    """The form that the table's name asks for, or an option."""
    return {AUDIT_LOG: AuditLog, BINLOG: Binlog}.get(_form(context), PlainRows)(context)


def shows_changes(context: TableContext) -> bool:
    """Whether another form than plain rows is asked for."""
    return _form(context) in (AUDIT_LOG, BINLOG)


def _form(context: TableContext) -> str:
    return AUDIT_LOG if not context.view and context.options[READ_CHANGELOG] else context.view


def packed_changes(context: TableContext, changes: pa.Table) -> pa.Table:
    """Changes with their kinds in front as `t$binlog` shows them."""
    events = (
        batch.set_column(0, KIND_FIELD, kinds_from_text(batch.column(0), ROWKIND_FIELD.name))
        for batch in changes.to_batches()
    )
    view = _PackedRows(context)
    return pa.Table.from_batches(list(view.shown(events)), schema=view.schema)


def kind_first(events: pa.RecordBatch) -> pa.RecordBatch:
    """The events with their kinds spelled out, in front."""
    rows = events.drop_columns([VALUE_KIND])
    kinds = kinds_to_text(events.column(VALUE_KIND))
    return pa.RecordBatch.from_arrays([kinds, *rows.columns], schema=pa.schema([ROWKIND_FIELD, *rows.schema]))


__all__ = [
    "ROWKIND_FIELD",
    "AuditLog",
    "Binlog",
    "ChangeView",
    "DiffRows",
    "PlainRows",
    "kind_first",
    "packed_changes",
    "shows_changes",
    "view_of",
]
