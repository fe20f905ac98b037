"""Which rows random histories leave out: those whose outcome the semantics let depend on when a compaction ran.

Every other row is in, and the table must equal its model whatever compaction did. `test_compaction_matters.py` shows
both outcomes of the cases that are left out here. Ids are those of the semantics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lakebed.testing.model import ModelSchema, ModelTable, Record, Row
from lakebed.testing.model_aggregates import (
    FirstNonNullValue,
    FirstValue,
    LastNonNullValue,
    LastValue,
    ListAgg,
    ModelAggregate,
    Product,
)
from lakebed.testing.model_engines import Aggregation, FirstRow, PartialUpdate
from lakebed.testing.strategies import TableDefinition

ORDER_DEPENDENT = (FirstValue, FirstNonNullValue, LastNonNullValue, ListAgg)
"""Functions whose result changes when a late row meets rows that are merged already."""


class Objection(Enum):
    """Why a row is left out."""

    REFUSED = "2.1, M-45: the engine or a function takes nothing back: an error as soon as two records meet"
    RETRACT_FIRST = "G-03, M-32, M-33, M-36: a retract with nothing before it counts, or is dropped by compaction"
    RETRACT_APART = "M-33, M-36: a retract merged apart from what it takes back is lost on the function"
    LATE_AFTER_DELETE = "5.7: a late row after a delete that compaction may have dropped"
    LATE = "2.4: a late row, once rows before and after it are merged"
    MIXED_SEQUENCE = "2.3, 3.1: a merged row holds the last known value of each sequence column, a tuple nobody wrote"
    LATE_REMOVAL = "2.3: a -D below its group's stored order removes rows it is merged with, but not older ones"
    AFTER_REMOVAL = "G-03, 2.4: a function changes what it is given first, but not in a lone row"
    WITHOUT_ORDER = "G-03: values of a group without an order stay in a lone row, and are ignored by a merge"


@dataclass(frozen=True)
class Admission:
    """Judges rows one by one, in order of arrival. `merges_whole`: files only ever merge all together."""

    definition: TableDefinition
    model: ModelTable
    merges_whole: bool = False

    def admitted(
        self,
        schema: ModelSchema,
        own: Sequence[Record],
        rows: Sequence[Row],
        kinds: Sequence[str],
        *,
        replaces: bool = False,
    ) -> list[int]:
        """Places of the rows that may come after a writer's `own` records, and in place of all others if `replaces`."""
        taken, places = list(own), []
        for place, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
            accepted = self.model.accept(schema, row, kind)
            if accepted is not None:
                record = Record(*accepted, _later(len(taken)))
                if self._objection_to(taken, record, replaces=replaces) is not None:
                    continue
                taken.append(record)
            places.append(place)
        return places

    def admits(self, records: Iterable[Record]) -> bool:
        """Whether records that were fit when they were written still are, on top of what is there now."""
        taken: list[Record] = []
        for record in records:
            if self._objection_to(taken, record) is not None:
                return False
            taken.append(record)
        return True

    def _objection_to(self, own: Sequence[Record], record: Record, *, replaces: bool = False) -> Objection | None:
        key = self.model.key_of(record.cells)
        beside = [each for each in own if self.model.key_of(each.cells) == key]
        return self.objection([] if replaces else self.model.history(record.cells), beside, record)

    def objection(self, before: Sequence[Record], beside: Sequence[Record], record: Record) -> Objection | None:
        """`before`: the key's records of earlier commits; `beside`: those of the same commit."""
        return (
            self._to_retract(before, beside, record)
            or self._to_sequence(before, beside, record)
            or self._to_group(before, beside, record)
        )

    # --- retracts ---

    def _to_retract(self, before: Sequence[Record], beside: Sequence[Record], record: Record) -> Objection | None:
        engine = self.model.engine
        if isinstance(engine, FirstRow):
            return Objection.REFUSED if record.is_retract else None
        if not isinstance(engine, PartialUpdate | Aggregation):
            return None
        if not record.is_retract:
            if self._needs_company(engine) and any(self._takes_back(each) for each in beside):
                return Objection.RETRACT_APART
            return Objection.AFTER_REMOVAL if self._changes_alone([*before, *beside], record) else None
        if not self._takes_back(record):
            return None
        if isinstance(engine, PartialUpdate) and not engine.groups:
            return Objection.REFUSED
        if any(not function.can_retract and not function.ignore_retract for function in self._functions(engine)):
            return Objection.REFUSED
        if not self._is_there([*before, *beside]) and not self._may_remove(record):
            return Objection.RETRACT_FIRST
        if self._needs_company(engine) and (beside or not self.merges_whole):
            return Objection.RETRACT_APART
        return None

    def _changes_alone(self, earlier: Sequence[Record], record: Record) -> bool:
        """Whether a row looks different if compaction has dropped what removed the rows before it."""
        if not isinstance(self.model.engine, Aggregation) or not earlier or self._is_there(earlier):
            return False
        schema = self.model.schema
        alone, merged = (self.model.merged(records, schema) for records in ([record], [*earlier, record]))
        return [schema.row(each) for each in alone] != [schema.row(each) for each in merged]

    def _takes_back(self, record: Record) -> bool:
        """Whether the record retracts values, rather than remove the row or do nothing."""
        engine = self.model.engine
        assert isinstance(engine, PartialUpdate | Aggregation)
        if engine.removes_on_delete and (record.kind == "-D" or isinstance(engine, PartialUpdate)):
            return False
        return record.is_retract

    def _functions(self, engine: PartialUpdate | Aggregation) -> list[ModelAggregate]:
        if isinstance(engine, PartialUpdate):
            protected = [column for group in engine.groups for column in group.protected]
            return [engine.functions[column] for column in protected if column in engine.functions]
        others = [column.id for column in self.model.schema.columns if column.id not in engine.key]
        # A column may be added any time: the default function counts even where no column has it yet.
        return [*(engine.functions.get(column, engine.default) for column in others), engine.default]

    def _needs_company(self, engine: PartialUpdate | Aggregation) -> bool:
        """Whether a retract must be merged together with all that came before it."""
        functions = self._functions(engine)
        if isinstance(engine, PartialUpdate):
            # Records that only take back fold into one -D, which holds no sum of what they take.
            # One that is ignored still moves its group on, and then stands there with a value of null.
            return any(not each.ignore_retract or isinstance(each, FirstValue | LastValue) for each in functions)
        # A retract leaves null in the columns of `sequence.field`, and null goes before everything.
        return bool(self.model.sequence_fields) or any(
            isinstance(function, LastValue)
            if function.ignore_retract
            else isinstance(function, Product | LastNonNullValue)
            for function in functions
        )

    def _is_there(self, records: Sequence[Record]) -> bool:
        merged = self.model.merged(records, self.model.schema)
        return bool(merged) and not merged[0].is_retract

    def _may_remove(self, record: Record) -> bool:
        engine, schema = self.model.engine, self.model.schema
        return (
            isinstance(engine, PartialUpdate)
            and record.kind == "-D"
            and any(group.removes_record and group.place(record, schema) is not None for group in engine.groups)
        )

    # --- late rows ---

    def _to_sequence(self, before: Sequence[Record], beside: Sequence[Record], record: Record) -> Objection | None:
        engine, schema = self.model.engine, self.model.schema
        if not self.model.sequence_fields:
            return None
        sequence = [schema.cell(record, column) for column in self.model.order.sequence]
        if isinstance(engine, PartialUpdate) and len(sequence) > 1 and None in sequence:
            return Objection.MIXED_SEQUENCE
        # Rows of one flush are merged in order, so only those of earlier ones can be late for.
        is_strict = "write-buffer-size" in self.definition.layout or (
            isinstance(engine, PartialUpdate) and engine.groups
        )
        earlier = [*before, *beside] if is_strict else list(before)
        ordered = self.model.order.oldest_first([*earlier, record], schema.cell)
        if ordered[-1] is record:
            return Objection.LATE if self._keeps_values_of_late_rows([*before, *beside], record) else None
        if not isinstance(engine, PartialUpdate | Aggregation):
            return Objection.LATE_AFTER_DELETE if ordered[-1].is_retract and not record.is_retract else None
        if any(each.is_retract for each in (*before, *beside, record)):
            return Objection.LATE_AFTER_DELETE
        return Objection.LATE if self._depends_on_order(engine, [*before, *beside, record]) else None

    def _depends_on_order(self, engine: PartialUpdate | Aggregation, records: Sequence[Record]) -> bool:
        if isinstance(engine, Aggregation):
            return any(isinstance(function, ORDER_DEPENDENT) for function in self._functions(engine))
        # Where all rows are complete, the newest one is the row.
        schema = self.model.schema
        columns = [column.id for column in schema.columns if column.id not in self.model.order.sequence]
        is_complete = all(schema.cell(record, column) is not None for record in records for column in columns)
        return bool(engine.groups) or not is_complete

    def _keeps_values_of_late_rows(self, earlier: Sequence[Record], record: Record) -> bool:
        """Whether a row that lacks values comes after rows out of order: merged with the last of them first, it takes
        the values of a row that is late, and makes them the newest.
        """
        if not isinstance(self.model.engine, PartialUpdate) or not self._depends_on_order(self.model.engine, [record]):
            return False
        ordered = self.model.order.oldest_first(earlier, self.model.schema.cell)
        return [each.number for each in ordered] != [each.number for each in earlier]

    def _to_group(self, before: Sequence[Record], beside: Sequence[Record], record: Record) -> Objection | None:
        engine, schema = self.model.engine, self.model.schema
        if not isinstance(engine, PartialUpdate) or not engine.groups:
            return None
        earlier = [*before, *beside]
        if earlier and not record.is_retract and not self._is_there(earlier) and self._lacks_order(engine, record):
            return Objection.WITHOUT_ORDER  # compaction may have dropped the earlier ones
        state = engine.folded(self.model.order.oldest_first(earlier, schema.cell), schema) or {}
        for group in engine.groups:
            if not engine.is_late(group, state, record, schema):
                continue
            if record.kind == "-D" and group.removes_record:
                return Objection.LATE_REMOVAL
            if any(isinstance(engine.functions.get(column), ORDER_DEPENDENT) for column in group.protected):
                return Objection.LATE
        return None

    def _lacks_order(self, engine: PartialUpdate, record: Record) -> bool:
        """Whether a group's values are given, but not where they stand."""
        schema = self.model.schema
        return any(
            group.place(record, schema) is None
            and any(schema.cell(record, column) is not None for column in group.protected)
            for group in engine.groups
        )


def _later(place: int) -> int:
    """A number above that of every committed record."""
    return (1 << 40) + place
