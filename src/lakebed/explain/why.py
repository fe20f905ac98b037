"""`t.why(keys)`: every stored version of some rows, which of them gave each column its value, and by which rule.

The versions are folded by the table's own engine, which tells on the way what becomes of each of them (`merge.trace`):
what is said here is what a read does. All keys are read and folded together; records are made when they are looked at.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import RecordExpiry, lowest_level_counts
from lakebed.definition.shown_defaults import with_defaults
from lakebed.errors import InvalidArgument
from lakebed.explain.origins import Origins
from lakebed.explain.records import ColumnWhy, KeyWhy, Version
from lakebed.explain.texts import number_of
from lakebed.explain.versions import BucketVersions, FilesRead, State, VersionReader
from lakebed.merge.base import Groups, value_columns
from lakebed.merge.levels import counting
from lakebed.merge.trace import Role, Roles
from lakebed.metadata.data_file import FileSource
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import POSTPONE_MERGE_ON_READ, RECORD_LEVEL_EXPIRE_TIME
from lakebed.read.keyed_reader import ranked
from lakebed.read.lookup import distinct_keys, refuse_unreachable
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value, ordering
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import DataField
from lakebed.types.row_kind import is_retract, kinds_to_text

_Numbers = npt.NDArray[np.int64]
_NO_KEY = -1


def explain_keys(context: TableContext, snapshot: Snapshot | None, keys: Any, *, history: bool = True) -> Why:
    """Why the rows of these keys are as they are at a snapshot; with `history` also what was merged away since."""
    if not context.has_key:
        raise InvalidArgument(
            f"table `{context.name}` has no primary key: its rows are never merged, so each is as it was written",
            hint="with `row-tracking.enabled`, `t$row_tracking` tells the snapshot that last wrote each row",
        )
    refuse_unreachable(context)
    distinct, ranks = distinct_keys(context, keys)
    reader = VersionReader(context, snapshot, distinct)
    origins = Origins.of(context, snapshot)
    parts = [_merged(context, found) for found in reader.stored()]
    parts += [_unmerged(context, found, 1) for found in reader.waiting()]
    if history:
        parts += [_unmerged(context, found, 2) for found in reader.gone(origins)]
    files = sum((part.found.read for part in parts), FilesRead(reader.file_count()))
    return Why(context, snapshot, distinct, ranks, tuple(parts), origins, files)


@dataclass(frozen=True)
class _Part:
    """The versions of one bucket: what became of them, and the row of each of its keys."""

    found: BucketVersions
    stage: int
    """0 for what is stored in buckets, 1 for what waits, 2 for what is gone."""
    order: _Numbers
    """Rows by key, oldest first."""
    roles: Mapping[str, Roles]
    shown: pa.RecordBatch | None = None
    """Rows that reads show, with defaults in place of null."""


def _merged(context: TableContext, found: BucketVersions) -> _Part:
    """Folds versions as a read does, and asks the engine why."""
    rows = found.rows.drop_columns([system_columns.ROW_INDEX.name])
    names = value_columns(rows, context.reading_engine.setup.key)
    roles = {name: np.full(rows.num_rows, Role.UNSEEN, np.int8) for name in names}
    every = context.merge_order.group(rows) if rows.num_rows else None
    if every is None:
        return _Part(found, 0, np.zeros(0, np.int64), roles)
    seen = np.flatnonzero(found.states == State.MERGED)
    if not len(seen):
        return _Part(found, 0, every.order, roles)
    part = rows.take(pa.array(seen))
    groups = context.merge_order.group(part)
    if lowest_level_counts(context):
        counted = counting(found.levels[seen], groups)
        left_out = np.setdiff1d(groups.order, counted.order)
        groups = counted
    else:
        left_out = np.zeros(0, np.int64)
    trace = context.reading_engine.trace(part, groups)
    for name in names:
        roles[name][seen] = trace.roles[name]
        roles[name][seen[left_out]] = Role.IN_LOWER_LEVEL
    return _Part(found, 0, every.order, roles, _shown(context, part, groups))


def _shown(context: TableContext, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
    merged = context.reading_engine.merge(rows, groups)
    visible = merged.filter(pa.array(~is_retract(key_value.kinds(merged))))
    return visible.select(context.schema.field_names)


def _unmerged(context: TableContext, found: BucketVersions, stage: int) -> _Part:
    rows = found.rows
    names = value_columns(rows, context.reading_engine.setup.key)
    roles = {name: np.full(rows.num_rows, Role.UNSEEN, np.int8) for name in names}
    if stage == 1 or not rows.num_rows:  # they count in the order in which they came
        return _Part(found, stage, np.arange(rows.num_rows), roles)
    order = context.merge_order.group(rows.drop_columns([system_columns.ROW_INDEX.name])).order
    return _Part(found, stage, order, roles)


class Why(Sequence[KeyWhy]):
    """The answer for some keys, in the order in which they were asked for; a key that is stored nowhere is in it too.

    `to_arrow` gives all versions as one table: the rows of `t$why`.
    """

    def __init__(
        self,
        context: TableContext,
        snapshot: Snapshot | None,
        keys: pa.RecordBatch,
        ranks: _Numbers,
        parts: tuple[_Part, ...],
        origins: Origins,
        files: FilesRead,
    ) -> None:
        self.table = context.name
        self.snapshot_id = None if snapshot is None else snapshot.id
        self.files = files
        """How many files there are, and which were opened."""
        self._context = context
        self._keys = keys
        self._ranks = ranks
        self._parts = parts
        self._origins = origins
        self._known: dict[int, KeyWhy] = {}

    # --- as a sequence of records --------------------------------------------------------------------------------

    @overload
    def __getitem__(self, place: int) -> KeyWhy: ...

    @overload
    def __getitem__(self, place: slice) -> list[KeyWhy]: ...

    def __getitem__(self, place: int | slice) -> KeyWhy | list[KeyWhy]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        key = int(self._ranks[place])
        if key not in self._known:
            self._known[key] = self._record(key)
        return self._known[key]

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[KeyWhy]:
        return (self[number] for number in range(len(self)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "files": self.files.to_dict(),
            "keys": [each.to_dict() for each in self],
        }

    @property
    def sentence(self) -> str:
        """What was read to answer."""
        at = "no snapshot" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        read = number_of(len(self.files.read), "file")
        earlier = f", {len(self.files.earlier)} of earlier snapshots" if self.files.earlier else ""
        return f"{self.table} at {at}: {read} read of {self.files.all}{earlier}"

    def __repr__(self) -> str:
        return "\n\n".join([*map(repr, self), self.sentence])

    def _repr_html_(self) -> str:
        return f"<div>{''.join(each._repr_html_() for each in self)}<p>{escape(self.sentence)}</p></div>"

    # --- as a table ----------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """All versions, one row each, by key: those that are stored, then those that are gone."""
        return self._versions.table

    @cached_property
    def _versions(self) -> _Versions:
        return _Versions.of(self._context, self._keys, self._parts, self._origins)

    @cached_property
    def _rows(self) -> tuple[pa.Table, _Numbers]:
        """What reads show, and for each row the number of its key."""
        schema = self._context.schema.arrow_schema
        batches = [part.shown.cast(schema) for part in self._parts if part.shown is not None]
        rows = pa.Table.from_batches(batches, schema=schema)
        return rows, _key_numbers(self._context, self._keys, rows.combine_chunks().to_batches())

    # --- one key -------------------------------------------------------------------------------------------------

    def _record(self, key: int) -> KeyWhy:
        versions = self._versions
        start, stop = np.searchsorted(versions.keys, (key, key + 1))
        records = [versions.record(self._context, row) for row in range(int(start), int(stop))]
        stored = tuple(each for each in records if each.state != State.GONE)
        gone = tuple(each for each in records if each.state == State.GONE)
        rows, numbers = self._rows
        at = np.flatnonzero(numbers == key)
        values = self._keys.slice(key, 1).to_pylist()[0]
        if not len(at):
            return KeyWhy(values, None, _why_nothing(stored, gone), (), stored, gone)
        batch = rows.slice(int(at[0]), 1).combine_chunks().to_batches()[0]
        stored_row = batch.to_pylist()[0]
        row = with_defaults(batch, self._context.shown_defaults).to_pylist()[0]
        columns = tuple(self._column(name, row[name], stored_row[name], stored) for name in row)
        merged = sum(each.state == State.MERGED for each in stored)
        outcome = "shown as its only version" if merged == 1 else f"merged from {merged} versions"
        return KeyWhy(values, row, f"{outcome} by merge engine {_engine(self._context)}", columns, stored, gone)

    def _column(self, name: str, value: Any, stored: Any, versions: Sequence[Version]) -> ColumnWhy:
        schema = self._context.schema
        if name in schema.primary_keys or name in schema.partition_keys:
            said = "key" if name in schema.primary_keys else "partition"
            return ColumnWhy(name, value, None, (), said, "")
        roles = [(each.number, each.roles[name]) for each in versions]
        counts = Counter(role for _, role in roles)
        source = next((number for number, role in roles if role is Role.VALUE), None)
        parts = tuple(number for number, role in roles if role in (Role.VALUE, Role.COUNTED, Role.TAKES_BACK))
        rule = self._context.reading_engine.rule(name)
        if stored is None and name in self._context.shown_defaults:
            return ColumnWhy(name, value, None, (), "default in place of null", rule)
        return ColumnWhy(name, value, source, parts, rule, _note(counts, source))


def _engine(context: TableContext) -> str:
    return f"`{context.merge_engine.name}`"


def _note(counts: Mapping[Role, int], source: int | None) -> str:
    """What else there is to say of a column: how many values count, and why others do not."""
    said = []
    if source is None and counts.get(Role.COUNTED):
        said.append(f"of {number_of(counts[Role.COUNTED], 'value')}")
    if source is None and not counts.get(Role.COUNTED):
        said.append("no version has a value")
    if counts.get(Role.TAKES_BACK):
        said.append(f"{counts[Role.TAKES_BACK]} taken back")
    if counts.get(Role.NO_VALUE):
        said.append(f"{number_of(counts[Role.NO_VALUE], 'null')} did not overwrite")
    if counts.get(Role.LATE):
        said.append(f"{number_of(counts[Role.LATE], 'version')} came late")
    if counts.get(Role.NO_SEQUENCE):
        said.append(f"{number_of(counts[Role.NO_SEQUENCE], 'version')} said nothing of the group")
    if counts.get(Role.IGNORED):
        said.append(f"{number_of(counts[Role.IGNORED], 'retract')} ignored")
    if counts.get(Role.FORGOTTEN):
        said.append(f"{number_of(counts[Role.FORGOTTEN], 'version')} forgotten by a -D")
    return "; ".join(said)


def _why_nothing(stored: Sequence[Version], gone: Sequence[Version]) -> str:
    """Why reads show no row."""
    states = Counter(each.state for each in stored)
    if states.get(State.MERGED):
        newest = [each for each in stored if each.state == State.MERGED][-1]
        return f"not shown: deleted, its newest version is {newest.kind}"
    if states.get(State.HIDDEN):
        return "not shown yet: its versions lie on level 0, which reads of this table see after compaction"
    if states.get(State.WAITING):
        return f"not shown yet: it waits for a bucket, which compaction gives it ({POSTPONE_MERGE_ON_READ.key})"
    if states.get(State.DELETED):
        return "not shown: its row is marked as deleted by a deletion vector"
    if gone:
        return f"not there: the last file that held it went in snapshot {gone[-1].replaced_in}"
    return "not there: no file holds the key, as far as snapshots are kept"


# --- All versions as one table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Versions:
    """All versions by key, in the order in which they count; what is gone comes last."""

    table: pa.Table
    keys: _Numbers
    """For each row the number of its key."""
    roles: Mapping[str, Roles]

    @staticmethod
    def of(context: TableContext, keys: pa.RecordBatch, parts: Sequence[_Part], origins: Origins) -> _Versions:
        batches = [_batch(context, part, origins) for part in parts if part.found.rows.num_rows]
        schema = pa.schema([*context.schema.arrow_schema, *_META])
        table = pa.Table.from_batches(batches, schema=schema)
        used = [part for part in parts if part.found.rows.num_rows]
        stages = np.repeat([part.stage for part in used], [part.found.rows.num_rows for part in used]).astype(np.int64)
        numbers = _key_numbers(context, keys, table.combine_chunks().to_batches())
        ages = np.concatenate([_ages(part) for part in used]) if used else np.zeros(0, np.int64)
        keep = np.flatnonzero(numbers != _NO_KEY)
        order = keep[np.lexsort((ages[keep], stages[keep], numbers[keep]))]
        names = list(used[0].roles) if used else []
        roles = {name: np.concatenate([part.roles[name] for part in used])[order] for name in names}
        numbers, stages = numbers[order], stages[order]
        table = table.take(pa.array(order))
        if 2 in stages:
            is_new = _first_told(table, numbers, stages)
            table, numbers, stages = table.filter(pa.array(is_new)), numbers[is_new], stages[is_new]
            roles = {name: each[is_new] for name, each in roles.items()}
        table = table.set_column(table.schema.get_field_index("_version"), _META[0], pa.array(_places(numbers, stages)))
        for place, (name, array) in enumerate((("_gives", _gives(roles)), ("_roles", _role_texts(roles)))):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, _META[3 + place], array if roles else pa.nulls(0, _META[3 + place].type))
        return _Versions(table, numbers, roles)

    def record(self, context: TableContext, row: int) -> Version:
        """One version as plain values."""
        cells = self.table.slice(row, 1).to_pylist()[0]
        roles = {name: Role(int(each[row])) for name, each in self.roles.items()}
        meta = {name.removeprefix("_"): cells.pop(name) for name in [each.name for each in _META]}
        note = meta.pop("note") or _uniform(roles)
        meta.pop("gives")
        meta.pop("roles")
        return Version(
            number=meta.pop("version"),
            values=cells,
            roles=roles,
            note=note,
            commit_time=meta.pop("commit_time"),
            **meta,
        )


def why_fields(context: TableContext) -> tuple[DataField, ...]:
    """The columns of `to_arrow` as a table's: those of the table first. Where a name is taken, ours gets longer."""
    schema = context.schema
    told: list[DataField] = []
    for field in from_arrow_schema(pa.schema(_META)):
        name = field.name
        while name in schema.field_names:
            name = f"_{name}"
        told.append(replace(field, id=schema.highest_field_id + 1 + len(told), name=name))
    return (*schema.fields, *told)


_TEXTS = pa.map_(pa.string(), pa.string())
_META = (
    pa.field("_version", pa.int32()),
    pa.field("_kind", pa.string()),
    pa.field("_state", pa.string()),
    pa.field("_gives", pa.list_(pa.string())),
    pa.field("_roles", _TEXTS),
    pa.field("_sequence_number", pa.int64()),
    pa.field("_level", pa.int32()),
    pa.field("_bucket", pa.int32()),
    pa.field("_partition", pa.string()),
    pa.field("_file", pa.string()),
    pa.field("_row", pa.int64()),
    pa.field("_file_source", pa.string()),
    pa.field("_snapshot_id", pa.int64()),
    pa.field("_commit_user", pa.string()),
    pa.field("_commit_kind", pa.string()),
    pa.field("_commit_time", pa.timestamp("ms", "UTC")),
    pa.field("_source_position", pa.string()),
    pa.field("_replaced_in", pa.int64()),
    pa.field("_note", pa.string()),
)
"""What is told of a version beside its values."""


def _batch(context: TableContext, part: _Part, origins: Origins) -> pa.RecordBatch:
    """The versions of a bucket with what is known of their files."""
    found = part.found
    rows = found.rows
    count = rows.num_rows
    files, at = found.files, pa.array(found.file_of)
    brought = [origins.brought.get(file.file_name) for file in files]

    def of_file(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(at)

    def of_snapshot(name: str, kind: pa.DataType) -> pa.Array:
        return of_file([None if each is None else getattr(each, name) for each in brought], kind)

    times = [None if each is None else dt.datetime.fromtimestamp(each.time_millis / 1000, dt.UTC) for each in brought]
    gone = [origins.gone.get(file.file_name) if part.stage == 2 else None for file in files]
    made_by = ["compaction" if file.file_source == FileSource.COMPACT else "write" for file in files]
    meta = [
        pa.nulls(count, pa.int32()),
        kinds_to_text(rows.column(system_columns.VALUE_KIND.name)),
        pa.array([str(state) for state in found.states], pa.string()),
        pa.nulls(count, _META[3].type),
        pa.nulls(count, _TEXTS),
        rows.column(system_columns.SEQUENCE_NUMBER.name),
        of_file([file.level for file in files], pa.int32()),
        pa.array(np.full(count, found.bucket, np.int32)),
        pa.array([context.partition_directory(found.partition)] * count, pa.string()),
        of_file([file.file_name for file in files], pa.string()),
        rows.column(system_columns.ROW_INDEX.name),
        of_file(made_by, pa.string()),
        of_snapshot("id", pa.int64()),
        of_snapshot("commit_user", pa.string()),
        of_file([None if each is None else str(each.commit_kind) for each in brought], pa.string()),
        of_file(times, pa.timestamp("ms", "UTC")),
        of_file([None if each is None else origins.positions.get(each.id) for each in brought], pa.string()),
        of_file([None if each is None else each[1].id for each in gone], pa.int64()),
        _notes(context, part, origins),
    ]
    values = [rows.column(name) for name in context.schema.field_names]
    return pa.RecordBatch.from_arrays([*values, *meta], schema=pa.schema([*context.schema.arrow_schema, *_META]))


def _notes(context: TableContext, part: _Part, origins: Origins) -> pa.Array:
    """What is to say of versions that are not simply merged."""
    found = part.found
    notes = np.full(found.rows.num_rows, "", object)
    notes[found.states == State.DELETED] = "marked by a deletion vector"
    notes[found.states == State.HIDDEN] = "level 0: shown after compaction"
    notes[found.states == State.WAITING] = "waits for compaction to give it a bucket"
    for number, file in enumerate(found.files):
        if part.stage == 2 and file.file_name in origins.gone:
            went = origins.gone[file.file_name][1]
            notes[found.file_of == number] = f"its file went in snapshot {went.id} ({went.commit_kind})"
    expiry = RecordExpiry.of(context.schema, context.options, context.clock.now_ms())
    if expiry is not None and part.stage == 0:
        is_old = ~expiry.is_young(found.rows) & (found.states == State.MERGED)
        notes[is_old] = f"expired by {RECORD_LEVEL_EXPIRE_TIME.key}: gone after the next compaction of its file"
    return pa.array(notes.tolist(), pa.string())


def _ages(part: _Part) -> _Numbers:
    """For each row its place among those of its bucket."""
    ages = np.empty(len(part.order), np.int64)
    ages[part.order] = np.arange(len(part.order))
    return ages


def _key_numbers(context: TableContext, keys: pa.RecordBatch, rows: Sequence[pa.RecordBatch]) -> _Numbers:
    """For each row the number of its key; _NO_KEY if it was not asked for."""
    count = sum(batch.num_rows for batch in rows)
    if not count or not keys.num_rows:
        return np.full(count, _NO_KEY, np.int64)
    names = context.schema.primary_keys
    ranks = ranked([pa.concat_arrays([keys.column(name), *(batch.column(name) for batch in rows)]) for name in names])
    numbers = np.full(int(ranks.max()) + 1, _NO_KEY, np.int64)
    numbers[ranks[: keys.num_rows]] = np.arange(keys.num_rows)
    return numbers[ranks[keys.num_rows :]]


def _places(keys: _Numbers, stages: _Numbers) -> npt.NDArray[np.int32]:
    """Each version's number among those of its key that are stored, or that are gone."""
    if not len(keys):
        return np.zeros(0, np.int32)
    starts = ordering.changes([keys, stages == 2])
    begin = np.flatnonzero(starts)
    return (np.arange(len(keys)) - np.repeat(begin, np.diff(np.append(begin, len(keys)))) + 1).astype(np.int32)


def _first_told(table: pa.Table, keys: _Numbers, stages: _Numbers) -> npt.NDArray[np.bool_]:
    """Leaves out what compactions wrote of versions that are told as they were written."""
    sequence = np.asarray(table.column("_sequence_number"))
    is_gone = stages == 2
    is_copy = is_gone & np.asarray(table.column("_file_source").combine_chunks() == "compaction")
    told = is_gone & ~is_copy
    pairs = np.stack([keys, sequence], axis=1)
    known = {tuple(pair) for pair in pairs[told].tolist()}
    copies = [tuple(pair) in known for pair in pairs.tolist()]
    return np.asarray(~(is_copy & np.array(copies, np.bool_)))


def _gives(roles: Mapping[str, Roles]) -> pa.Array:
    """For each version the columns of the result that have its value."""
    names = list(roles)
    is_source = np.stack([each == Role.VALUE for each in roles.values()], axis=1) if names else np.zeros((0, 0))
    rows, columns = np.nonzero(is_source)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(is_source)))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names, pa.string()).take(pa.array(columns)))


def _role_texts(roles: Mapping[str, Roles]) -> pa.Array:
    """For each version its part in each column, in words."""
    names = list(roles)
    numbers = np.stack(list(roles.values()), axis=1) if names else np.zeros((0, 0), np.int8)
    texts = pa.array([role.text for role in Role], pa.string())
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * len(names)
    columns = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), len(numbers))))
    return pa.MapArray.from_arrays(pa.array(offsets), columns, texts.take(pa.array(numbers.ravel())))


def _uniform(roles: Mapping[str, Role]) -> str:
    """The part that a version plays in all columns alike, unless that goes without saying."""
    distinct = set(roles.values())
    if len(distinct) != 1:
        return ""
    role = distinct.pop()
    return "" if role in (Role.OLDER, Role.VALUE, Role.UNSEEN, Role.COUNTED) else role.text


__all__ = ["Why", "explain_keys", "why_fields"]
