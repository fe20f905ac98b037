"""The merge engines of the model: how the records of one key become one, told record by record.

Engines are made of the options that a table is created with, read here on their own. Columns are known by id, so they
keep their meaning when they are renamed. `Deduplicate` is in `model_records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from lakebed.errors import InvalidData, NotFound
from lakebed.records import dataclass
from lakebed.testing.model_aggregates import DEFAULT_FUNCTION, NOTHING, Accumulator, ModelAggregate, model_aggregate
from lakebed.testing.model_records import Deduplicate, ModelEngine, ModelSchema, Record, Value, order_of
from lakebed.types.logical import AtomicType

State = dict[int, Accumulator]
"""A row in the making, by column id; what is not in it has not been reached by any value."""


def _as_record(state: State, records: Sequence[Record], schema: ModelSchema, key: frozenset[int]) -> Record:
    """A visible row; key columns and number are those of the newest record."""
    newest = records[-1]
    cells: dict[int, tuple[AtomicType, Value]] = {}
    for column in schema.columns:
        value = schema.cell(newest, column.id) if column.id in key else _value(state.get(column.id, NOTHING))
        cells[column.id] = (column.type, value)
    return Record("+I", cells, newest.number)


def _value(accumulator: Accumulator) -> Value:
    return None if accumulator is NOTHING else accumulator


# --- first-row -------------------------------------------------------------------------------------------------------


class FirstRow(ModelEngine):
    """The oldest record is the key's record; nothing can be taken back."""

    def merge(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        if any(record.is_retract for record in records):
            raise InvalidData("a first-row table takes no retracts", hint="set `ignore-delete`")
        return replace(records[0], kind="+I")


# --- aggregation -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregation(ModelEngine):
    """One function per column. Without `removes_on_delete` a row stays, whatever is taken back."""

    key: frozenset[int]
    functions: Mapping[int, ModelAggregate]
    default: ModelAggregate
    removes_on_delete: bool = False

    def merge(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        state: State = {}
        is_there = False
        for record in records:
            if self.removes_on_delete and record.kind == "-D":
                state, is_there = {}, False
                continue
            is_there = True
            for column in schema.columns:
                if column.id in self.key:
                    continue
                function = self.functions.get(column.id, self.default)
                apply = function.retract if record.is_retract else function.add
                old = state.get(column.id, NOTHING)
                state[column.id] = apply(old, schema.cell(record, column.id), column.type)
        return _as_record(state, records, schema, self.key) if is_there else records[-1]


# --- partial-update --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns that change together, when their ordering columns do not go back."""

    ordering: tuple[int, ...]
    protected: tuple[int, ...]
    removes_record: bool = False

    def place(self, record: Record, schema: ModelSchema) -> tuple[tuple[object, ...], ...] | None:
        """Where a record stands in the group's order; None when it does not speak of the group."""
        values = [schema.cell(record, column) for column in self.ordering]
        return None if all(value is None for value in values) else tuple(order_of(value) for value in values)

    def stored_place(self, state: State) -> tuple[tuple[object, ...], ...]:
        """Where the row stands."""
        return tuple(order_of(_value(state.get(column, NOTHING))) for column in self.ordering)


@dataclass(frozen=True, slots=True)
class PartialUpdate(ModelEngine):
    """Columns are updated one by one, or group by group."""

    key: frozenset[int]
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[int, ModelAggregate] = field(default_factory=dict)
    removes_on_delete: bool = False

    def merge(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        state = self.folded(records, schema)
        return self._gone(records, schema) if state is None else _as_record(state, records, schema, self.key)

    def _gone(self, records: Sequence[Record], schema: ModelSchema) -> Record:
        """What stands for a key that is not there: it takes back, or removes, what all of the records do."""
        newest = records[-1]
        removal = self._strongest_removal(records, schema)
        if removal is not None:
            return replace(removal, number=newest.number)
        if not self.groups:
            return replace(newest, kind="-D" if any(record.kind == "-D" for record in records) else "-U")
        state = self.folded([replace(record, kind="+I") for record in records], schema)
        assert state is not None
        kind = "-U" if any(group.removes_record for group in self.groups) else newest.kind
        return replace(_as_record(state, records, schema, self.key), kind=kind)

    def _strongest_removal(self, records: Sequence[Record], schema: ModelSchema) -> Record | None:
        """The record that removed the row: of several the one with the greatest place, if one group decides."""
        removing = [group for group in self.groups if group.removes_record]
        state: State = {}
        strongest: Record | None = None
        for record in records:
            if not record.is_retract:
                self._add(state, record, schema)
            elif self.groups and self._removes(state, record, schema):
                state = {}
                place = removing[0].place(record, schema)
                before = None if strongest is None else removing[0].place(strongest, schema)
                if len(removing) > 1 or place is None or before is None or place >= before:
                    strongest = record
            elif self.groups:
                self._retract(state, record, schema)
        return strongest

    def folded(self, records: Iterable[Record], schema: ModelSchema) -> State | None:
        """The row as it stands after all records; None when it is not there."""
        state: State = {}
        is_there = False
        for record in records:
            if not record.is_retract:
                self._add(state, record, schema)
                is_there = True
            elif self._removes(state, record, schema):
                state, is_there = {}, False  # nothing of before shows afterwards
            else:
                self._retract(state, record, schema)
        return state if is_there else None

    def is_late(self, group: SequenceGroup, state: State, record: Record, schema: ModelSchema) -> bool:
        """Whether a record comes after one of its group that it should have come before."""
        place = group.place(record, schema)
        return place is not None and place < group.stored_place(state)

    def _add(self, state: State, record: Record, schema: ModelSchema) -> None:
        in_groups = {column for group in self.groups for column in (*group.ordering, *group.protected)}
        for column in schema.columns:
            value = schema.cell(record, column.id)
            if column.id not in in_groups and column.id not in self.key and value is not None:
                state[column.id] = value
        for group in self.groups:
            if group.place(record, schema) is None:
                continue
            is_late = self.is_late(group, state, record, schema)
            for column_id in group.protected:
                value, old = schema.cell(record, column_id), state.get(column_id, NOTHING)
                function, data_type = self.functions.get(column_id), schema.by_id(column_id).type
                if function is not None:
                    combine = function.add_before if is_late else function.add
                    state[column_id] = combine(old, value, data_type)
                elif not is_late:
                    state[column_id] = value
            if not is_late:
                state.update({column_id: schema.cell(record, column_id) for column_id in group.ordering})

    def _removes(self, state: State, record: Record, schema: ModelSchema) -> bool:
        if record.kind != "-D":
            return False
        return self.removes_on_delete or any(
            group.removes_record
            and group.place(record, schema) is not None
            and not self.is_late(group, state, record, schema)
            for group in self.groups
        )

    def _retract(self, state: State, record: Record, schema: ModelSchema) -> None:
        if not self.groups and not self.removes_on_delete:
            raise InvalidData("a partial-update table takes no retracts", hint="set `ignore-delete`")
        for group in self.groups:
            if group.place(record, schema) is None:
                continue
            is_late = self.is_late(group, state, record, schema)
            for column_id in group.protected:
                function, data_type = self.functions.get(column_id), schema.by_id(column_id).type
                if function is not None:
                    old = state.get(column_id, NOTHING)
                    state[column_id] = function.retract(old, schema.cell(record, column_id), data_type)
                elif not is_late:
                    state[column_id] = None
            if not is_late:
                state.update({column_id: schema.cell(record, column_id) for column_id in group.ordering})


# --- from options ----------------------------------------------------------------------------------------------------


def model_engine(options: Mapping[str, str], columns: Sequence[str], constant: Sequence[str]) -> ModelEngine:
    """The engine that a table's options ask for. Ids are the places of columns in the table's first schema.

    `constant` are the columns that are nothing to merge: those of the primary key, and those of partitions.
    """
    ids = {name: place for place, name in enumerate(columns)}
    key = frozenset(ids[name] for name in constant)
    match options.get("merge-engine", "deduplicate"):
        case "deduplicate":
            return Deduplicate()
        case "first-row":
            return FirstRow()
        case "aggregation":
            functions = {ids[name]: function for name, function in _functions(options, columns).items()}
            functions |= {ids[name]: model_aggregate("last_value") for name in names_in(options, "sequence.field")}
            default = model_aggregate(options.get("fields.default-aggregate-function", DEFAULT_FUNCTION))
            removes = options.get("aggregation.remove-record-on-delete") == "true"
            return Aggregation(key, functions, default, removes)
        case "partial-update":
            return _partial_update(options, columns, ids, key)
        case other:
            raise NotFound(f"the model has no merge engine `{other}`", hint="it has all that tables have")


def _partial_update(
    options: Mapping[str, str], columns: Sequence[str], ids: Mapping[str, int], key: frozenset[int]
) -> PartialUpdate:
    removing = {ids[name] for name in names_in(options, "partial-update.remove-record-on-sequence-group")}
    groups = []
    for option, protected in options.items():
        if option.endswith(".sequence-group"):
            ordering = [ids[name] for name in option.removeprefix("fields.").removesuffix(".sequence-group").split(",")]
            members = [ids[name] for name in protected.split(",")]
            groups.append(SequenceGroup(tuple(ordering), tuple(members), bool(removing & set(ordering))))
    by_name = _functions(options, columns)
    if "fields.default-aggregate-function" in options:
        default = model_aggregate(options["fields.default-aggregate-function"])
        by_name = dict.fromkeys(columns, default) | by_name
    functions = {ids[name]: function for name, function in by_name.items()}
    removes = options.get("partial-update.remove-record-on-delete") == "true"
    return PartialUpdate(key, tuple(groups), functions, removes)


def names_in(options: Mapping[str, str], option: str) -> list[str]:
    """The columns that an option lists."""
    return [name for name in options.get(option, "").split(",") if name]


def _functions(options: Mapping[str, str], columns: Sequence[str]) -> dict[str, ModelAggregate]:
    return {
        name: model_aggregate(
            options[f"fields.{name}.aggregate-function"],
            ignore_retract=options.get(f"fields.{name}.ignore-retract") == "true",
            distinct=options.get(f"fields.{name}.distinct") == "true",
            delimiter=options.get(f"fields.{name}.list-agg-delimiter", ","),
        )
        for name in columns
        if f"fields.{name}.aggregate-function" in options
    }


__all__ = ["Aggregation", "FirstRow", "PartialUpdate", "SequenceGroup", "model_engine", "names_in"]
