"""Large UPDATE, DELETE and MERGE statements as jobs: rows, and the places of rows, stay in the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as sf

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.fileio.base import FileIO
from lakebed.metadata.deletion_vector import Positions, decode_vector, encode_vector
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.records import dataclass
from lakebed.rewrite.columns import ColumnChanges, refuse_deletes
from lakebed.rewrite.rows_by_place import Deleted, RowChanges, without_places
from lakebed.schema.system_columns import FILE_PATH, ROW_ID, ROW_INDEX
from lakebed.spark.distribute import distributed
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.tasks import answer_batch, answer_of, made_by, message_paths, remove_leftovers, run_pieces
from lakebed.spark.write import WriteTask, run_tasks
from lakebed.table.follow_up import after_rows_changed
from lakebed.types.transfer import to_precision
from lakebed.write.sequence import BucketStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS = 8
_RANGE = "_lakebed_range"


def checked_once(frame: DataFrame, keys: Sequence[str], kind: str, message: str) -> DataFrame:
    """The frame, which fails with the message when it runs and an old row is in it twice."""
    quoted = ["`" + key.replace("`", "``") + "`" for key in keys]
    count = sf.count(sf.when(sf.col(kind) != "+I", 1)).over(Window.partitionBy(*quoted))
    checked = sf.when(count > 1, sf.raise_error(sf.lit(message)).cast("string")).otherwise(sf.col(kind))
    return frame.withColumn(kind, checked)


def kinds_in_rows(frame: DataFrame, kind: str, column: str | None) -> DataFrame:
    """The frame with the kinds in a column of the table, if one says the kinds of rows."""
    return frame if column is None else frame.withColumn(column, sf.col(kind))


@dataclass(frozen=True)
class OldRows:
    """Rows that a statement deletes or replaces: where they lie. Few bytes, however many they are."""

    positions: dict[str, Positions]
    """By file."""
    has_twice: bool
    """Whether one of them turned up more than once."""
    gone: dict[str, Positions]
    """Those without a new version, by file."""
    has_updates: bool
    """Whether there are some with one."""

    @staticmethod
    def of(frame: DataFrame, kind: str) -> OldRows:
        """Those of a frame with the places of rows and what is to become of each."""
        by_file = (
            frame.filter(sf.col(kind) != "+I")
            .select(FILE_PATH.name, ROW_INDEX.name, (sf.col(kind) == "-D").alias("goes"))
            .groupBy(FILE_PATH.name)
            .applyInArrow(_gathered, "path string, vector binary, gone binary, rows long")
        )
        found = until_workers_come(by_file.toArrow)
        paths = found["path"].to_pylist()

        def decoded(column: str) -> dict[str, Positions]:
            vectors = zip(paths, found[column].to_pylist(), strict=True)
            return {path: decode_vector(vector, path) for path, vector in vectors if vector is not None}

        positions, gone = decoded("vector"), decoded("gone")
        places, without_new = sum(map(len, positions.values())), sum(map(len, gone.values()))
        return OldRows(positions, sum(found["rows"].to_pylist()) > places, gone, places > without_new)

    @property
    def replaced(self) -> Deleted:
        """Those with a new version, by the names of their files."""
        return without_places(self.positions, {path.rpartition("/")[2]: gone for path, gone in self.gone.items()})


def _gathered(rows: pa.Table) -> pa.Table:
    """The places of one file as bitmaps."""
    places = np.asarray(rows.column(ROW_INDEX.name))
    gone = np.unique(places[np.asarray(rows.column("goes"))])
    return pa.table(
        {
            "path": rows.column(FILE_PATH.name).slice(0, 1).cast(pa.string()),
            "vector": pa.array([encode_vector(np.unique(places), bits=64)], pa.binary()),
            "gone": pa.array([encode_vector(gone, bits=64) if len(gone) else None], pa.binary()),
            "rows": pa.array([rows.num_rows], pa.int64()),
        }
    )


@dataclass(frozen=True)
class ReplaceJob:
    """Deletes, replaces and adds rows of a table without a primary key in one commit."""

    context: TableContext
    base: Snapshot | None
    operation: str

    def run(self, spark: SparkSession, old: OldRows, replacing: DataFrame, added: DataFrame) -> Snapshot | None:
        """`replacing` are new versions of old rows, with their ids where rows have ids; `added` are new rows."""
        context = self.context
        job = context.ids.new_id()
        changes = RowChanges(context, self.base, self.operation, run_pieces=run_pieces(lambda: spark))
        deleted: dict[str, Any] = dict(old.positions)
        with Attempt(context.fileio) as attempt:
            attempt.when_given_up(lambda: remove_leftovers(context, job))
            if context.options[DATA_EVOLUTION_ENABLED]:
                if old.gone:
                    refuse_deletes(context)
                columns = ColumnChanges(context, self.base, context.fileio)
                messages = self._column_files(columns, replacing, job) if old.has_updates else []
                deleted = dict(old.gone)
                changes = RowChanges(context, self.base, self.operation, replaced=old.replaced)
            else:
                carries_ids = context.tracks_rows
                messages = self._files(replacing, job, carries_ids=carries_ids) if old.has_updates else []
            messages += self._files(added, job, carries_ids=False)
            attempt.note(message_paths(context, messages))
            snapshot = changes.commit(deleted, messages, attempt=attempt)
        remove_leftovers(context, job, messages)
        return after_rows_changed(context, snapshot)

    def _files(self, frame: DataFrame, job: str, *, carries_ids: bool) -> list[CommitMessage]:
        placed = distributed(self.context, frame, _TASKS)
        states = BucketStates.load(self.context.stores, self.base)
        task = WriteTask(self.context, None, None, states, job, placed.parts, carries_ids=carries_ids)
        return run_tasks(task, placed.frame)

    def _column_files(self, changes: ColumnChanges, frame: DataFrame, job: str) -> list[CommitMessage]:
        """New columns of old rows. Those of a range of rows make one file, so a task has all rows of a range."""
        context, base, ranges = self.context, self.base, changes.ranges()
        firsts = np.array([part.first for part in ranges], dtype=np.int64)

        @sf.arrow_udf("int")  # type: ignore[untyped-decorator]
        def range_of(ids: pa.Array) -> pa.Array:
            return pa.array(np.searchsorted(firsts, np.asarray(ids), side="right").astype(np.int32) - 1)

        def write(rows: pa.Table) -> pa.Table:
            part = ranges[rows.column(_RANGE)[0].as_py()]
            new = to_precision(rows.drop_columns([_RANGE]), context.schema.fields)

            def work(named: TableContext, fileio: FileIO) -> list[CommitMessage]:
                return ColumnChanges(named, base, fileio).messages_in(part, new)

            return pa.Table.from_batches([answer_batch(answer_of(context, job, work))])

        numbered = frame.withColumn(_RANGE, range_of(sf.col(ROW_ID.name)))
        answers = numbered.groupBy(_RANGE).applyInArrow(write, "answer string")
        return made_by(row[0] for row in until_workers_come(answers.collect))
