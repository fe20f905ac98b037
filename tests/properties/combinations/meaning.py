"""What a table holds, and what of it may be seen: the row-by-row model with the few things that histories add to it.

All statements speak to the model's list of live records. Beside it stands what each key may look like to a reader right
now: where level 0 or waiting rows are hidden until a compaction, a key may still look as it did after any commit since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace

from tests.properties.admission import Admission, Objection
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding

from lakebed.testing.model import Commit, ModelSchema, ModelTable, Record, Row, Value, order_of
from lakebed.testing.model_arrow import tally
from lakebed.testing.model_engines import Aggregation, FirstRow, PartialUpdate, model_engine
from lakebed.testing.model_records import ModelEngine, ModelOrder

Key = tuple[object, ...]
Possible = Mapping[Key, tuple[Record | None, ...]]
"""What each key may look like, the newest last; None: not there."""


_UNSET = {"sequence.field.sort-order": "ascending", "ignore-delete": "false", "ignore-update-before": "false"}
"""What options mean that are not set, of those that change the meaning of rows."""


@dataclass(frozen=True)
class Rules:
    """What rows mean together: how those of one key are merged."""

    engine: ModelEngine
    order: ModelOrder
    ignore_delete: bool
    ignore_update_before: bool

    @staticmethod
    def of(model: ModelTable) -> Rules:
        return Rules(model.engine, model.order, model.ignore_delete, model.ignore_update_before)

    def agree(self, other: Rules) -> bool:
        """Whether rows that are stored mean the same under both."""
        same = self.engine == other.engine if is_dataclass(self.engine) else type(self.engine) is type(other.engine)
        return same and replace(self, engine=other.engine) == other


@dataclass(frozen=True)
class Saved:
    """All that is to come back with a snapshot."""

    schema: ModelSchema
    live: tuple[Record, ...]
    visible: Possible
    told: Possible
    told_rows: Mapping[Key, Mapping[int, Value]] | None
    """The rows that the changelog up to here comes to, by column id."""
    schema_id: int = -1
    identifiers: Mapping[str, int] = field(default_factory=dict)
    rules: Rules | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """How rows were merged, and the options of then."""


@dataclass
class Meaning:
    """The model of one table, or of one branch of it."""

    configuration: Configuration
    options: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.options = self.options or dict(self.configuration.options)
        definition = self.configuration.definition()
        self.model: ModelTable = definition.model()
        self.model.hides_new = False
        self.admission = Admission(definition, self.model)
        self.visible: Possible = {}
        self.told: Possible = {}
        self.told_rows: dict[Key, dict[int, Value]] | None = {}

    # --- what kind of table it is ---

    @property
    def has_key(self) -> bool:
        return bool(self.configuration.primary_key)

    @property
    def engine(self) -> str:
        return self.options.get("merge-engine", "deduplicate") if self.has_key else ""

    @property
    def producer(self) -> str:
        return self.options.get("changelog-producer", "none")

    @property
    def tells_all(self) -> bool:
        """Whether the changelog is complete: whoever replays it has the table."""
        return self.has_key and self.producer in ("lookup", "full-compaction")

    @property
    def is_write_only(self) -> bool:
        return self.options.get("write-only") == "true"

    @property
    def ignores_deletes(self) -> bool:
        return self.has_key and self.options.get("ignore-delete") == "true"

    @property
    def hides(self) -> bool:
        """Whether readers see some rows after a compaction only, or until one."""
        marks = self.options.get("deletion-vectors.enabled") == "true"
        merges = self.options.get("deletion-vectors.merge-on-read") == "true"
        expires = "record-level.expire-time" in self.options
        return self.has_key and (self.engine == "first-row" or (marks and not merges) or self.postpones or expires)

    @property
    def postpones(self) -> bool:
        return self.options.get("bucket") == "-2"

    @property
    def compacts_at_once(self) -> bool:
        """Whether a write leaves nothing hidden and nothing untold."""
        return not self.is_write_only and not self.postpones

    @property
    def key_names(self) -> list[str]:
        """The primary key under its names of now."""
        return [self.model.schema.by_id(each).name for each in self.model._key]

    @property
    def partition_name(self) -> str | None:
        return self.configuration.partition_by[0] if self.configuration.partition_by else None

    # --- state ---

    @property
    def live(self) -> tuple[Record, ...]:
        return self.model.commits[-1].live if self.model.commits else ()

    def rows(self) -> list[Row]:
        """All that is stored, folded."""
        return self.model.rows()

    def current(self) -> dict[Key, Record]:
        """The record of each key that is there."""
        merged = self.model.merged(self.live, self.model.schema)
        return {self.model.key_of(record.cells): record for record in merged if not record.is_retract}

    def set_live(self, live: Iterable[Record]) -> None:
        self.model.commits = [Commit(self.model.schema, tuple(live), (), True, frozenset())]

    def next_number(self) -> int:
        self.model._next_number += 1
        return self.model._next_number - 1

    def save(self) -> Saved:
        rows = None if self.told_rows is None else {key: dict(row) for key, row in self.told_rows.items()}
        rules, options = Rules.of(self.model), dict(self.options)
        return Saved(self.model.schema, self.live, self.visible, self.told, rows, rules=rules, options=options)

    def restore(self, saved: Saved, *, told: bool) -> None:
        """Makes an earlier state the current one; schemas stay. `told`: what was told then is what was told now."""
        self.set_live(saved.live)
        now = Rules.of(self.model)
        if saved.rules is not None and not saved.rules.agree(now):
            # Rows mean what they meant: they are folded so before they meet others.
            self.model.engine, self.model.order = saved.rules.engine, saved.rules.order
            self.collapse()
            self.model.engine, self.model.order = now.engine, now.order
        self.visible = saved.visible
        if told:
            self.told = saved.told
            rows = saved.told_rows
            self.told_rows = None if rows is None else {key: dict(row) for key, row in rows.items()}

    # --- what may be seen ---

    def note(self, *, gone: Callable[[Record], bool] | None = None) -> None:
        """After a commit: keys that changed may look new; those of replaced partitions (`gone`) no longer old."""
        if not self.has_key:
            return
        current = self.current()
        self.visible = self._noted(self.visible, current, gone)
        told = dict(self.told)
        for key, states in self.told.items():
            if gone is not None and any(each is not None and gone(each) for each in states):
                told[key] = (*states, None)  # what is replaced may be told as deleted before the new row is told
        self.told = self._noted(told, current, None)

    def _noted(
        self, possible: Possible, current: Mapping[Key, Record], gone: Callable[[Record], bool] | None
    ) -> Possible:
        found: dict[Key, tuple[Record | None, ...]] = {}
        for key in {*possible, *current}:
            states = possible.get(key, (None,))
            if gone is not None:
                states = distinct(None if each is not None and gone(each) else each for each in states)
            new = current.get(key)
            if not self._same(states[-1], new):
                states = (*states, new)
            found[key] = states
        return found

    def _same(self, left: Record | None, right: Record | None) -> bool:
        if left is None or right is None:
            return left is right
        schema = self.model.schema
        return tally([schema.row(left)]) == tally([schema.row(right)])

    def settle(
        self, *, visible: bool = True, told: bool = True, partition: Value = None, keys: set[Key] | None = None
    ) -> None:
        """After a compaction: nothing hidden, nothing untold (of a partition, of some keys)."""
        if not self.has_key:
            return
        current = self.current()
        if visible:
            self.visible = self._settled(self.visible, current, partition, keys)
        if told:
            self.told = self._settled(self.told, current, partition, keys)

    def _settled(
        self, possible: Possible, current: Mapping[Key, Record], partition: Value, keys: set[Key] | None
    ) -> Possible:
        if keys is not None:
            return {key: (current.get(key),) if key in keys else states for key, states in possible.items()}
        if partition is None:
            return {key: (record,) for key, record in current.items()}
        column = self.model._partition[0]

        def lies_elsewhere(record: Record | None) -> bool:
            return record is not None and record.cells[column][1] != partition

        return {
            key: states if any(lies_elsewhere(each) for each in states) else (current.get(key),)
            for key, states in possible.items()
        }

    @property
    def is_certain(self) -> bool:
        """Whether reads must show everything."""
        return all(len(states) == 1 for states in self.visible.values())

    def check_rows(self, rows: Sequence[Row], possible: Possible, oracle: str) -> None:
        """Raises unless every key looks as it may."""
        schema, names = self.model.schema, self.key_names
        found: dict[Key, Row] = {}
        for row in rows:
            key = tuple(order_of(row[name]) for name in names)
            if key in found:
                raise Finding("a key is there twice", f"{oracle}: {found[key]} and {row}")
            found[key] = row
        for key in {*possible, *found}:
            states, row = possible.get(key, (None,)), found.get(key)
            wanted = [None if state is None else schema.row(state) for state in states]
            if not any(_alike(row, each) for each in wanted):
                raise Finding(oracle, f"key {key}: {row}, expected {' or '.join(map(str, wanted))}")

    # --- what statements do ---

    def objection(self, row: Row, kind: str) -> Objection | None:
        """Why the row would be left out of a history."""
        accepted = self.model.accept(self.model.schema, row, kind)
        if accepted is None:
            return None
        record = Record(*accepted, 1 << 40)
        return self.admission.objection(self.model.history(record.cells), [], record) if self.has_key else None

    def key_of_row(self, row: Row) -> Key:
        """The key of a row under the columns of now."""
        accepted = self.model.accept(self.model.schema, row, "+I")
        assert accepted is not None
        return self.model.key_of(accepted[1])

    def leaves_groups_alone(self, row: Row) -> bool:
        """Whether there are sequence groups, and the row has nothing to order one of them by."""
        engine, names = self.model.engine, {column.id: column.name for column in self.model.schema.columns}
        return isinstance(engine, PartialUpdate) and any(
            all(row.get(names.get(each, "")) is None for each in group.ordering) for group in engine.groups
        )

    def takes_back_all(self) -> bool:
        """Whether every function that a column has now takes back; one that columns to come would have may not."""
        engine = self.model.engine
        columns = [column.id for column in self.model.schema.columns]
        return isinstance(engine, Aggregation) and all(
            function.can_retract or function.ignore_retract
            for function in (engine.functions.get(each, engine.default) for each in columns if each not in engine.key)
        )

    def fitting(
        self, rows: Sequence[Row], kinds: Sequence[str], *, replaces: bool = False, own: Sequence[Record] = ()
    ) -> tuple[list[Row], list[str]]:
        """The rows whose outcome does not depend on when a compaction runs, under the columns of now."""
        given = [self.fitted(row) for row in rows]
        if not self.has_key:
            return given, ["+I"] * len(given)
        homes: dict[Key, Value] = {}
        given = [self._in_home(row, homes) for row in given]
        places = self.admission.admitted(self.model.schema, own, given, kinds, replaces=replaces)
        return [given[i] for i in places], [kinds[i] for i in places]

    def fitted(self, row: Row) -> Row:
        """The row under the columns of now; those that it does not know are null, or 0 where null may not be."""
        found: Row = {}
        for column in self.model.schema.columns:
            value = row.get(column.name)
            if "BOOLEAN" in str(column.type) and not isinstance(value, bool):
                value = None
            if value is None and not column.type.nullable:
                value = "x" if "VARCHAR" in str(column.type) or "STRING" in str(column.type) else 1
            if isinstance(value, int) and not isinstance(value, bool) and "STRING" in str(column.type):
                value = str(value)
            if value == "" and self.options.get(f"fields.{column.name}.aggregate-function") == "listagg":
                value = "e"  # blank texts are left out, or stay if a row was never merged: it depends on compactions
            found[column.name] = value
        engine = self.model.engine
        if isinstance(engine, PartialUpdate):
            names = {column.id: column.name for column in self.model.schema.columns}
            for group in engine.groups:
                brings = any(
                    found.get(names.get(i, "")) is not None or i in self.model.counted_ids for i in group.protected
                )
                if brings and all(found[names[i]] is None for i in group.ordering):
                    texts = {column.id for column in self.model.schema.columns if "STRING" in str(column.type)}
                    found |= {names[i]: "9" if i in texts else 9 for i in group.ordering}
        return found

    def _in_home(self, row: Row, homes: dict[Key, Value]) -> Row:
        """Where a key that is there stays in its partition, the row goes there; `homes`: of rows before it."""
        if not self.configuration.crosses_partitions or isinstance(self.model.engine, FirstRow):
            return row
        if not isinstance(self.model.engine, PartialUpdate | Aggregation):
            return row
        accepted = self.model.accept(self.model.schema, row, "+I")
        assert accepted is not None
        assert self.partition_name is not None
        key, history = self.model.key_of(accepted[1]), self.model.history(accepted[1])
        home = history[0].cells[self.model._partition[0]][1] if history else row[self.partition_name]
        return {**row, self.partition_name: homes.setdefault(key, home)}

    def write(self, rows: Sequence[Row], kinds: Sequence[str] | None) -> list[Record]:
        """Adds records; which of them come to a file, so that a compaction of their bucket may follow."""
        before = self.live
        self.model.write(rows, kinds)
        written = list(self.live[len(before) :])
        return [record for record in written if not self._is_left_out(record)]

    def _is_left_out(self, record: Record) -> bool:
        """Whether the key has its first row in another partition: nothing is written then."""
        if not self.configuration.crosses_partitions or not isinstance(self.model.engine, FirstRow):
            return False
        first, column = self.model.history(record.cells)[0], self.model._partition[0]
        return first.cells[column][1] != record.cells[column][1]

    def overwrite(self, rows: Sequence[Row], spec: Mapping[str, Value] | None) -> Callable[[Record], bool]:
        """Replaces partitions; tells which records were replaced."""
        if self.configuration.crosses_partitions:
            self.collapse()
        dynamic = self.options.get("dynamic-partition-overwrite") != "false"
        if spec is None and not (self.partition_name and dynamic):
            spec = {}
        if spec is None:
            # A row that is dropped on its way replaces nothing.
            kept = [row for row in rows if self.model.accept(self.model.schema, row, "+I") is not None]
            values = {row[self.partition_name] for row in kept if self.partition_name}
        else:
            values = set(spec.values())

        def gone(record: Record) -> bool:
            return spec == {} or record.cells[self.model._partition[0]][1] in values

        self.set_live(record for record in self.live if not gone(record))
        self.model.write(rows)
        return gone

    def remove(self, gone: Callable[[Record], bool]) -> None:
        """Takes records away for good."""
        if self.configuration.crosses_partitions:
            self.collapse()
        self.set_live(record for record in self.live if not gone(record))

    def in_partition(self, value: Value) -> Callable[[Record], bool]:
        column = self.model._partition[0]
        return lambda record: record.cells[column][1] == value

    def collapse(self) -> None:
        """Each key is one record now: what it has come to. A delete may still be stored, and go before late rows."""
        if self.has_key:
            merged = self.model.merged(self.live, self.model.schema)
            stays = not isinstance(self.model.engine, Aggregation | PartialUpdate | FirstRow)
            self.set_live(record for record in merged if stays or not record.is_retract)

    def replace_row(self, old: Record, new: Row) -> None:
        """A statement sets the row of a key (or, without one, of a record)."""
        cells = {column.id: (column.type, new[column.name]) for column in self.model.schema.columns}
        record = Record("+I", cells, self.next_number() if self.has_key else old.number)
        self._replace(old, [record])

    def delete_row(self, old: Record, *, leaves_nothing: bool = False) -> None:
        """A statement takes the row of a key away. Where rows say so, the one that does stays, for late ones."""
        engine = self.model.engine
        takes = (self.has_key and not leaves_nothing) and (
            not isinstance(engine, Aggregation | PartialUpdate | FirstRow)
            or getattr(engine, "removes_on_delete", False)
        )
        record = Record("-D", old.cells, self.next_number())
        self._replace(old, [record] if takes else [])

    def _replace(self, old: Record, new: list[Record]) -> None:
        if self.has_key:
            key = self.model.key_of(old.cells)
            kept = [record for record in self.live if self.model.key_of(record.cells) != key]
        else:
            kept = [record for record in self.live if record.number != old.number]
        self.set_live([*kept, *new])

    # --- options ---

    def set_option(self, key: str, value: str | None) -> None:
        """An option changes. What is stored keeps its meaning, and the rows to come have the new one."""
        before = self.options.get(key, _UNSET.get(key))
        if value is None:
            self.options.pop(key, None)
        else:
            self.options[key] = value
        if self.options.get(key, _UNSET.get(key)) == before:
            return  # it is said, or no longer said, what was meant all the time: nothing is folded for that
        folds = self.engine in ("aggregation", "partial-update")  # no other engine looks at options of columns
        if key in ("ignore-delete", "ignore-update-before", "merge-engine") or key.startswith(
            ("sequence.field", "aggregation.", "partial-", *(["fields."] if folds else []))
        ):
            self.collapse()
            self.rebuild()
        if key == "record-level.expire-time":
            self.expire()

    def expire(self) -> None:
        """Rows that are too old now go with a compaction, and are seen until then; no new row meets them any more.

        REQUIRES: a table that looks old rows up as new ones are compacted, and times in seconds.
        """
        days = int(self.options["record-level.expire-time"].removesuffix(" d"))
        column = self.model.schema.column(self.options["record-level.time-field"]).id
        cutoff = time.time() - days * 86_400
        self.collapse()
        times = {record.number: record.cells[column][1] for record in self.live}
        old = {number for number, at in times.items() if isinstance(at, int) and at < cutoff}
        gone = {self.model.key_of(record.cells) for record in self.live if record.number in old}
        self.set_live(record for record in self.live if record.number not in old)
        self.visible = {key: (*states, None) if key in gone else states for key, states in self.visible.items()}

    def rebuild(self) -> None:
        """Reads the rules of merging from the options once more."""
        schema, model = self.model.schema, self.model
        names = [f"gone {i}" for i in range(model._next_id)]
        for column in schema.columns:
            names[column.id] = column.name
        model.engine = model_engine(self.options, names, [*self.key_names, *self.configuration.partition_by])
        sequence = [name for name in self.options.get("sequence.field", "").split(",") if name]
        model.order = replace(
            model.order,
            sequence=tuple(schema.column(name).id for name in sequence),
            descending=self.options.get("sequence.field.sort-order") == "descending",
        )
        model.sequence_fields = sequence
        model.ignore_delete = self.options.get("ignore-delete") == "true"
        model.ignore_update_before = self.options.get("ignore-update-before") == "true"
        # Functions that count do so from the table's creation on.
        self.admission = Admission(self.configuration.definition(), model)

    def renamed(self, old: str, new: str) -> None:
        """Options follow the names of columns."""

        def follow(text: str) -> str:
            return ",".join(new if part == old else part for part in text.split(","))

        found = {}
        for key, text in self.options.items():
            if key.startswith("fields."):
                middle, _, last = key.removeprefix("fields.").rpartition(".")
                key = f"fields.{follow(middle)}.{last}" if middle else key
                text = follow(text) if last == "sequence-group" else text
            elif key in (
                "sequence.field",
                "rowkind.field",
                "bucket-key",
                "partial-update.remove-record-on-sequence-group",
                "file-index.bloom-filter.columns",
            ):
                text = follow(text)
            found[key] = text
        self.options = found


def distinct(states: Iterable[Record | None]) -> tuple[Record | None, ...]:
    """Each state once; of several the last place counts."""
    found: list[Record | None] = []
    for state in states:
        if state in found:
            found.remove(state)
        found.append(state)
    return tuple(found)


def _alike(left: Row | None, right: Row | None) -> bool:
    if left is None or right is None:
        return left is right
    return tally([left]) == tally([right])


__all__ = ["Key", "Meaning", "Possible", "Saved", "distinct"]
