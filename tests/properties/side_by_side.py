"""A real table and its model, given the same operations and compared. Only tests import this."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from tests.properties.admission import Admission

import lakebed
from lakebed.errors import CommitConflict, InvalidData, Unsupported
from lakebed.testing.model import KINDS, Deduplicate, ModelSchema, ModelWriter, Record, Row, Value, widened
from lakebed.testing.model_arrow import (
    changes_from_arrow,
    from_arrow,
    tally,
    tally_changes,
    to_arrow_array,
    to_arrow_table,
    types_of,
)
from lakebed.testing.model_engines import Aggregation
from lakebed.testing.strategies import Filter, TableDefinition
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import AtomicType

OP = "op"
"""The column that carries row kinds to `Table.write`; tables of these tests have no column of that name."""

_names = itertools.count()


@dataclass
class OpenWriter:
    """A writer that has not committed yet, with the columns it was opened under."""

    real: lakebed.TableWriter
    model: ModelWriter
    kinds: bool

    @property
    def records(self) -> list[Record]:
        """What was written so far."""
        return [Record(kind, cells, (1 << 40) + i) for i, (kind, cells) in enumerate(self.model.accepted)]


@dataclass
class SideBySide:
    """Creates both, forwards operations to both, and asserts that both answer alike."""

    definition: TableDefinition
    on_disk: bool = False
    full_only: bool = False
    """Whether compactions are always full ones; the table must be write-only then."""
    judges: bool = False
    """Whether rows whose outcome depends on compaction are left out."""
    writers: list[OpenWriter] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._directory = tempfile.mkdtemp(prefix="lakebed-model-") if self.on_disk else None
        self.url = self._directory or f"memory://model-{next(_names)}"
        self.model = self.definition.model()
        self.definition.create(lakebed.connect(self.url), "t")
        self.handles = [self.open(), self.open()]
        columns = {column.name: column.id for column in self.model.schema.columns}
        types = self.definition.columns
        self._pools = {columns[name]: (types[name], pool) for name, pool in self.definition.pools.items()}
        self.fixed = {columns[name] for name in (*self.definition.primary_key, *self.definition.partition_by)}
        self._mentioned = {columns[name] for name in _mentioned(self.definition)}
        self._admission = Admission(self.definition, self.model, self.full_only)
        self._rowkind = columns[self.definition.rowkind_field] if self.definition.rowkind_field else None
        self.snapshots: list[int] = []
        self.compacted: list[tuple[int, ModelSchema, list[Row]]] = []
        self._turn = 0

    def open(self) -> lakebed.Table:
        """A fresh handle, as another process would have it."""
        return lakebed.connect(self.url).table("t")

    def close(self) -> None:
        """Leaves nothing behind."""
        for writer in self.writers:
            writer.real.abort()
        if self._directory:
            shutil.rmtree(self._directory)
        else:
            lakebed.connect(self.url).drop_table("t")

    # --- what random rows need to know ---

    def pools(self, schema: ModelSchema) -> dict[str, Sequence[Value]]:
        """The values of key columns by their names and in their types under this schema."""
        return {
            column.name: [widened(value, first, column.type) for value in pool]
            for column in schema.columns
            if column.id in self._pools
            for first, pool in [self._pools[column.id]]
        }

    def known_values(self, schema: ModelSchema) -> dict[str, list[Value]]:
        """What rows hold or held in each column: a filter that finds outdated rows is the interesting one."""
        live = self.model.commits[-1].live if self.model.commits else ()
        rows = [schema.row(record) for record in live if self._is_known(record, schema)]
        return {name: [row[name] for row in rows] for name in schema.names}

    def _is_known(self, record: Record, schema: ModelSchema) -> bool:
        # An older schema may have narrower types than the record.
        return all(record.cells[column.id][0] == column.type for column in schema.columns if column.id in record.cells)

    def rowkind(self, schema: ModelSchema) -> str | None:
        """Current name of the column that holds row kinds."""
        return next((column.name for column in schema.columns if column.id == self._rowkind), None)

    def free_columns(self) -> list[str]:
        """Columns that may be dropped; never the last one."""
        if len(self.model.schema.columns) == 1:
            return []
        bound = {*self.fixed, *self._mentioned, self._rowkind}
        return [column.name for column in self.model.schema.columns if column.id not in bound]

    def retypable_columns(self) -> list[str]:
        """Columns that may be widened."""
        bound = {*self.fixed, self._rowkind}
        return [column.name for column in self.model.schema.columns if column.id not in bound]

    def renamable_columns(self) -> list[str]:
        """All but partition columns."""
        bound = self.definition.partition_by
        return [column.name for column in self.model.schema.columns if column.name not in bound]

    # --- operations ---

    def write(
        self,
        batches: Sequence[Sequence[Row]],
        kinds: Sequence[str] | None = None,
        overwrite: bool | Mapping[str, Value] | None = None,
        handle: int = 0,
    ) -> None:
        """One commit of several batches."""
        writer = self.open_writer(kinds is not None, overwrite, handle)
        start = 0
        for rows in batches:
            self.feed(writer, rows, None if kinds is None else kinds[start : start + len(rows)])
            start += len(rows)
        if writer in self.writers:
            self.commit(writer)

    def overwrite(self, rows: Sequence[Row]) -> None:
        """Replaces the whole table."""
        writer = self.open_writer(overwrite={} if self.definition.partition_by else True)
        self.feed(writer, rows)
        self.commit(writer)

    def open_writer(
        self, kinds: bool = False, overwrite: bool | Mapping[str, Value] | None = None, handle: int = 0
    ) -> OpenWriter:
        """Starts a commit on both sides."""
        real_overwrite: Any = overwrite
        if isinstance(overwrite, Mapping):
            real_overwrite = {name: self._scalar(name, value) for name, value in overwrite.items()}
        table = self.handles[handle % len(self.handles)]
        real = table.writer(row_kind=OP if kinds else None, overwrite=real_overwrite)
        writer = OpenWriter(real, self.model.writer(overwrite), kinds)
        self.writers.append(writer)
        return writer

    def feed(self, writer: OpenWriter, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Gives rows to both; both take them, or both refuse (and the writer is given up)."""
        if self.judges:
            rows, kinds = self._admitted(writer, rows, kinds)
        table = to_arrow_table(rows, types_of(writer.model.schema))
        if writer.kinds:
            table = table.append_column(OP, pa.array(kinds or [], pa.string()))
        try:
            writer.model.write(rows, kinds if writer.kinds else None)
        except InvalidData:
            self._expect_refusal(writer, table)
            self.writers.remove(writer)
            return
        writer.real.write(table)

    def _admitted(
        self, writer: OpenWriter, rows: Sequence[Row], kinds: Sequence[str] | None
    ) -> tuple[list[Row], list[str] | None]:
        given = kinds if writer.kinds and kinds is not None else ["+I"] * len(rows)
        try:
            places = self._admission.admitted(
                writer.model.schema, writer.records, rows, given, replaces=writer.model.is_overwrite
            )
        except InvalidData:
            return list(rows), None if kinds is None else list(kinds)  # both are about to refuse them
        return [rows[i] for i in places], None if kinds is None else [kinds[i] for i in places]

    def _expect_refusal(self, writer: OpenWriter, table: pa.Table) -> None:
        try:
            writer.real.write(table)
        except InvalidData:
            writer.real.abort()
            return
        raise AssertionError("the model refuses these rows, the table takes them")

    def commit(self, writer: OpenWriter) -> None:
        """Publishes on both sides."""
        self.writers.remove(writer)
        if self.judges and not writer.model.is_overwrite and not self._admission.admits(writer.records):
            writer.real.abort()  # fit on its own, but not after what others have committed meanwhile
            return
        was_empty = not self.model.rows()
        try:
            snapshot = writer.real.commit()
        except CommitConflict as conflict:
            # A change of what rows mean came in between: the writer has to begin anew.
            if "since this began" not in conflict.message:
                raise
            return
        expected = writer.model.commit()
        if snapshot is None and writer.model.is_overwrite and was_empty and not writer.model.accepted:
            # Rows that were there and are deleted may be gone for good, and then there is nothing to replace.
            self.model.forget(expected)
            expected = None
        assert (snapshot is None) == (expected is None), f"committed {snapshot}, the model {expected}"
        if snapshot is not None:
            self.snapshots.append(snapshot.id)
        if self.definition.layout.get("write-only") != "true":
            self.model.compact()
        self.check_levels()

    def compact(self, full: bool, handle: int = 0) -> None:
        """Compacts the table; the model only shows what was hidden."""
        snapshot = self.handles[handle % len(self.handles)].compact(full=full or self.full_only)
        self.model.compact()
        if snapshot is not None:
            self.compacted.append((snapshot.id, self.model.schema, self.model.rows()))
        self.check_levels()

    def abort(self, writer: OpenWriter) -> None:
        """Gives up on both sides."""
        self.writers.remove(writer)
        writer.real.abort()

    def _scalar(self, name: str, value: Value) -> pa.Scalar:
        return to_arrow_array([value], self.model.schema.column(name).type)[0]

    def add_column(self, name: str, data_type: AtomicType) -> None:
        """A new nullable column."""
        self.handles[0].alter(lakebed.AddColumn(name, data_type))
        self.model.add_column(name, data_type)

    def drop_column(self, name: str) -> None:
        """One column less."""
        self.handles[0].alter(lakebed.DropColumn(name))
        self.model.drop_column(name)

    def rename_column(self, name: str, new_name: str) -> None:
        """Another name."""
        self.handles[0].alter(lakebed.RenameColumn(name, new_name))
        self.model.rename_column(name, new_name)

    def widen_column(self, name: str, data_type: AtomicType) -> None:
        """A wider type."""
        self.handles[0].alter(lakebed.UpdateColumnType(name, data_type))
        self.model.widen_column(name, data_type)

    # --- comparisons ---

    def check_table(self) -> None:
        """Everything visible now: all columns under one handle, each column in turn under the other."""
        expected, schema = self.model.rows(), self.model.schema
        self._check_rows(self.handles[0].to_arrow(), expected, schema)
        name = schema.names[self._turn % len(schema.names)]
        self._turn += 1
        found = from_arrow(self.handles[1].to_arrow([name]))
        _same(found, [{name: row[name]} for row in expected], f"column {name} alone")

    def check_past(self, number: int) -> None:
        """Everything visible at the model's snapshot of that number."""
        past = self.handles[0].at(snapshot=self.snapshots[number - 1])
        self._check_rows(past.to_arrow(), self.model.rows(at=number), self.model.commits[number - 1].schema)

    def check_compacted(self, number: int) -> None:
        """What a compaction left, the n-th one."""
        snapshot, schema, rows = self.compacted[number]
        self._check_rows(self.handles[1].at(snapshot=snapshot).to_arrow(), rows, schema)

    def check_levels(self) -> None:
        """The files of every bucket keep the rules of the tree."""
        if self.definition.primary_key:
            assert self.handles[0].check() == []

    def check_filtered(self, condition: Filter, columns: Sequence[str], at: int | None = None) -> None:
        """A filtered and projected read, streamed and in one piece; and the plan opens no file that it need not."""
        table = self.handles[0] if at is None else self.handles[0].at(snapshot=self.snapshots[at - 1])
        expected = self.model.rows(at, condition.holds, columns)
        found = table.to_arrow(list(columns), condition.expression)
        assert found.column_names == list(columns)
        _same(from_arrow(found), expected, f"where {condition}")
        streamed = [row for batch in table.to_batches(list(columns), condition.expression) for row in from_arrow(batch)]
        _same(streamed, expected, f"batches where {condition}")
        planned = {file.file_name for file in table.scan(condition.expression).files}
        assert planned <= {file.file_name for file in table.scan().files}

    def check_changes(self, since: int, until: int) -> None:
        """What each commit in between did, and that the commits' changes stand one after the other."""
        table = self.handles[0]
        if isinstance(self.model.engine, Aggregation) and table.options.get("changelog-producer", "none") == "none":
            with pytest.raises(Unsupported, match="no changelog producer"):
                table.changes()
            return
        together = []
        expected = self.model.changes(since, until)
        for number, wanted in zip(range(since + 1, until + 1), expected, strict=True):
            real_id = self.snapshots[number - 1]
            told = changes_from_arrow(table.changes(real_id - 1, real_id))
            commit = self.model.commits[number - 1]
            arrived = [(record.kind, self.model.schema.row(record)) for record in commit.brought]
            if isinstance(self.model.engine, Deduplicate):
                assert tally_changes(told) <= tally_changes(arrived), "a change that nobody wrote"
            _same_tally(tally_changes(self.model.folded(told)), tally_changes(wanted), f"changes of commit {number}")
            together += told
        ends = [0 if number == 0 else self.snapshots[number - 1] for number in (since, until)]
        assert [kind for kind, _ in together] == table.changes(*ends).column("rowkind").to_pylist()
        assert tally_changes(together) == tally_changes(changes_from_arrow(table.changes(*ends)))
        assert all(kind in KINDS for kind, _ in together)

    def _check_rows(self, found: pa.Table, expected: list[Row], schema: ModelSchema) -> None:
        types = types_of(schema)
        wanted = pa.schema([pa.field(n, to_arrow_type(t), nullable=t.nullable) for n, t in types.items()])
        assert found.schema.equals(wanted), f"{found.schema} instead of {wanted}"
        _same(from_arrow(found), expected, "the whole table")


def _mentioned(definition: TableDefinition) -> set[str]:
    """Columns that options name."""
    texts = [text for option, text in definition.meaning.items() if option.startswith(("sequence", "partial"))]
    for option, text in definition.meaning.items():
        if option.startswith("fields."):
            texts += [option.removeprefix("fields.").rpartition(".")[0], text]
    return {name for text in texts for name in text.split(",") if name in definition.columns}


def _same(found: Sequence[Row], expected: Sequence[Row], what: str) -> None:
    _same_tally(tally(found), tally(expected), what)


def _same_tally(found: Any, expected: Any, what: str) -> None:
    missing, extra = expected - found, found - expected
    assert not missing, f"{what}: missing {dict(missing)}, instead {dict(extra)}"
    assert not extra, f"{what}: too much {dict(extra)}"
