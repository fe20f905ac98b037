"""Writes what UPDATE, DELETE and MERGE have found: rows with what is to be done with each, as one commit.

A table with a primary key gets rows of kinds. Of a table without one, the old rows are deleted where they lie, and new
versions and new rows are written, all in one snapshot. If others have changed the same rows meanwhile, nothing is.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.definition.elsewhere import place_of_work
from lakebed.errors import InvalidData
from lakebed.fileio.scratch import ScratchFileIO
from lakebed.options import LAKEBED_COUNT_FIELDS, ROWKIND_FIELD, SNAPSHOT_IGNORE_EMPTY_COMMIT
from lakebed.records import dataclass
from lakebed.rewrite.rows_by_key import RowRewrite, knowing_keys_only
from lakebed.rewrite.rows_by_place import ReplaceRows
from lakebed.schema.system_columns import FILE_PATH, ROW_ID, ROW_INDEX, TRACKED_SEQUENCE_NUMBER
from lakebed.spark.errors import spark_errors
from lakebed.spark.late_workers import until_workers_come
from lakebed.sql.change.finder import KIND, Found
from lakebed.sql.words.names import quoted
from lakebed.table.follow_up import FollowUp, after_rows_changed
from lakebed.table.opened import opened_of
from lakebed.table.plans import plan_write
from lakebed.table.table import Table
from lakebed.table.writer import TableWriter
from lakebed.write.files import FileMaker
from lakebed.write.read_state import ReadState
from lakebed.write.sequence import BucketStates
from lakebed.write.waiting_rows import WaitingRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ChangedRows:
    """The result of a statement on the rows of `table`, which was read as `pinned` shows it.

    The rows have all columns of the table, KIND, and where there is no primary key the place of the old row.
    """

    table: Table
    pinned: Table
    operation: str
    is_unique: bool = False
    """Whether an old row can turn up no more than once."""
    rewrites: bool = False
    """Whether rows take the place of stored ones of their keys, instead of being merged with them."""

    @staticmethod
    def place_columns(table: Table) -> list[str]:
        """Hidden columns that the rows have to have beside those of the table."""
        if table.primary_key:
            return []
        names = [FILE_PATH.name, ROW_INDEX.name]
        return [*names, ROW_ID.name] if ROW_ID.name in table.hidden_schema.names else names

    def write(self, rows: Found) -> None:
        """Commits the changes."""
        if isinstance(rows, pa.Table):
            self._write_here(self._with_counts(rows) if self.rewrites else rows)
        elif self.table.primary_key:
            self._write_keyed(self._with_counts_of(rows) if self.rewrites else rows)
        else:
            self._write_placed(rows)

    @property
    def _counting(self) -> set[str]:
        return set(opened_of(self.table).writable().options[LAKEBED_COUNT_FIELDS])

    def _with_counts(self, rows: pa.Table) -> pa.Table:
        """Rows are stored as they are, which new versions should be; a new row has values that its table counts."""
        is_new = pc.equal(rows.column(KIND), "+I")
        for name in self._counting & set(rows.schema.names):
            index = rows.schema.get_field_index(name)
            column = rows.column(index)
            none, one = (pa.scalar(_number(each, column.type), column.type) for each in (0, 1))
            counted = pc.if_else(pc.is_valid(column), one, none)
            rows = rows.set_column(index, name, pc.if_else(is_new, counted, column))
        return rows

    def _with_counts_of(self, frame: DataFrame) -> DataFrame:
        """The same of many rows."""
        counting = self._counting
        if not counting:
            return frame

        def counted(name: str) -> str:
            column, kind = quoted(name), frame.schema[name].dataType.simpleString()
            if name not in counting:
                return column
            return f"CASE WHEN {KIND} = '+I' THEN CAST({column} IS NOT NULL AS {kind}) ELSE {column} END AS {column}"

        with spark_errors():
            return frame.selectExpr(*map(counted, frame.columns))

    def is_needed(self, rows: Found) -> bool:
        """Whether there are changes, found out without any. Raises what `write` would raise of rows that do not fit.

        Many rows are not looked at one by one, nor at all where some wait for their bucket: these were placed on this
        machine to be read, and tasks may run on others.
        """
        if isinstance(rows, pa.Table):
            if rows.num_rows:
                self._check_unique(rows)
                self._check_fits(rows)
            return bool(rows.num_rows)
        if WaitingRows(opened_of(self.table).writable()).files(self.pinned.fixed_to):
            return True
        with spark_errors():
            return not until_workers_come(rows.isEmpty)

    def _check_fits(self, rows: pa.Table) -> None:
        """REQUIRES: the table has a primary key."""
        context = opened_of(self.table).writable()
        maker = FileMaker(
            knowing_keys_only(context) if self.rewrites else context,
            row_kind=KIND,
            overwrite=None,
            states=lambda: BucketStates.load(context.stores, self.pinned.fixed_to),
            fileio=ScratchFileIO.over(context.fileio),
        )
        try:
            maker.write(self._kinds_in_rows(rows), lambda: None)
        finally:
            maker.abort()

    def note_nothing(self) -> None:
        """A statement that changes nothing makes no snapshot, unless the table asks for one."""
        if str(self.table.options.get(SNAPSHOT_IGNORE_EMPTY_COMMIT.key)).lower() == "false":
            self.table.write(self.table.arrow_schema.empty_table())

    @property
    def _read(self) -> ReadState:
        return ReadState(self.pinned.fixed_to)

    # --- in this process -----------------------------------------------------------------------------------------

    def _write_here(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            self.note_nothing()
            return
        self._check_unique(rows)
        if self.table.primary_key:
            self._write_rows(self._kinds_in_rows(_new_rows_last(rows)))
            return
        context, _ = plan_write(self.table)
        kinds, names = rows.column(KIND), [field.name for field in self.table.schema.fields]
        replacing = rows.filter(pc.equal(kinds, "+U")).select([*names, *self._id_columns()])
        if self._id_columns():
            nulls = pa.nulls(replacing.num_rows, pa.int64())
            replacing = replacing.append_column(TRACKED_SEQUENCE_NUMBER.name, nulls)
        added = rows.filter(pc.equal(kinds, "+I")).select(names)
        changes = ReplaceRows(context, self.pinned.fixed_to, self.operation)
        after_rows_changed(context, changes.commit(_places(rows), replacing, added))

    def _write_rows(self, rows: pa.Table) -> None:
        context, identity = plan_write(self.table)
        if self.rewrites:
            committed = RowRewrite(context, self.pinned.fixed_to, identity).write(rows, KIND)
            if committed is not None:
                FollowUp(committed).run(place_of_work(committed.context))
            return
        with TableWriter(context, row_kind=KIND, identity=identity, read=self._read) as writer:
            writer.write(rows)

    def _id_columns(self) -> list[str]:
        return [name for name in self.place_columns(self.table) if name == ROW_ID.name]

    def _kinds_in_rows(self, rows: pa.Table) -> pa.Table:
        """Where a column of the table says the kind of a row, deletes have to say so there."""
        column = self.table.options.get(ROWKIND_FIELD.key)
        if column is None:
            return rows
        index = rows.schema.get_field_index(column)
        return rows.set_column(index, column, rows.column(KIND))

    def _check_unique(self, rows: pa.Table) -> None:
        if self.is_unique:
            return
        keys = list(self.table.primary_key) or [FILE_PATH.name, ROW_INDEX.name]
        old = rows.filter(pc.not_equal(rows.column(KIND), "+I")).select(keys)
        if old.group_by(keys).aggregate([]).num_rows < old.num_rows:
            raise _matched_twice(self.table.name)

    # --- as jobs -------------------------------------------------------------------------------------------------

    def _write_keyed(self, frame: DataFrame) -> None:
        from lakebed.spark.row_changes import checked_once, kinds_in_rows  # pyspark is heavy: only when it is used

        column = self.table.options.get(ROWKIND_FIELD.key)
        if not self.is_unique:
            frame = checked_once(frame, list(self.table.primary_key), KIND, str(_matched_twice(self.table.name)))
        from lakebed.spark.write import RewriteJob, WriteJob

        context, identity = plan_write(self.table)
        with spark_errors():
            rows = kinds_in_rows(frame, KIND, column)
            if self.rewrites:
                RewriteJob(RowRewrite(context, self.pinned.fixed_to, identity), KIND).run(frame.sparkSession, rows)
            else:
                WriteJob(context, KIND, None, identity, self._read).run(frame.sparkSession, rows)

    def _write_placed(self, frame: DataFrame) -> None:
        from lakebed.spark.row_changes import OldRows, ReplaceJob

        context, _ = plan_write(self.table)
        names, ids = [quoted(field.name) for field in self.table.schema.fields], self._id_columns()
        # Computed once: the places of old rows and the new ones must be of the same run.
        frame = frame.persist()
        try:
            with spark_errors():
                old = OldRows.of(frame, KIND)
                if not self.is_unique and old.has_twice:
                    raise _matched_twice(self.table.name)
                replacing = frame.filter(f"{KIND} = '+U'").select(*names, *ids)
                if ids:
                    replacing = replacing.selectExpr("*", f"CAST(NULL AS BIGINT) AS {TRACKED_SEQUENCE_NUMBER.name}")
                added = frame.filter(f"{KIND} = '+I'").select(*names)
                job = ReplaceJob(context, self.pinned.fixed_to, self.operation)
                if job.run(frame.sparkSession, old, replacing, added) is None:
                    self.note_nothing()
        finally:
            frame.unpersist()


def _new_rows_last(rows: pa.Table) -> pa.Table:
    """A MERGE may insert the key of a row that it changes: the new row is the later one, whoever has found them."""
    is_new = pc.fill_null(pc.equal(rows.column(KIND), "+I"), False)
    return pa.concat_tables([rows.filter(pc.invert(is_new)), rows.filter(is_new)])


def _number(value: int, kind: pa.DataType) -> int | Decimal:
    return Decimal(value) if pa.types.is_decimal(kind) else value


def _matched_twice(table: str) -> InvalidData:
    """The error of a MERGE whose source has several rows for one of the table."""
    return InvalidData(
        f"a row of table `{table}` matches more than one row of the source",
        hint="make the source unique in the columns of the ON clause",
    )


def _places(rows: pa.Table) -> dict[str, Any]:
    """Positions of old rows, by file."""
    old = rows.filter(pc.not_equal(rows.column(KIND), "+I"))
    if not old.num_rows:
        return {}
    paths = old.column(FILE_PATH.name).combine_chunks().dictionary_encode()
    codes, positions = np.asarray(paths.indices), np.asarray(old.column(ROW_INDEX.name))
    return {str(path): positions[codes == code] for code, path in enumerate(paths.dictionary.to_pylist())}
