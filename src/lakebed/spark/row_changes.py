"""Large UPDATE, DELETE and MERGE statements as jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as sf

from lakebed.commit.committer import Progress
from lakebed.commit.message import CommitMessage
from lakebed.commit.written_files import WrittenFiles
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.spark.distribute import distributed
from lakebed.spark.leftovers import remove_leftovers
from lakebed.spark.types import to_precision
from lakebed.spark.write import WriteTask, message_paths, run_tasks
from lakebed.table.bucket_state import BucketStates
from lakebed.table.context import TableContext
from lakebed.table.replace_rows import ReplaceRows
from lakebed.table.row_changes import RowChanges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TASKS = 8


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
class ReplaceJob:
    """Deletes, replaces and adds rows of a table without a primary key in one commit."""

    context: TableContext
    base: Snapshot | None
    operation: str

    def run(self, deleted: Mapping[str, Any], replacing: DataFrame, added: DataFrame) -> Snapshot | None:
        """`replacing` are new versions of deleted rows, with their ids where rows have ids; `added` are new rows."""
        context = self.context
        if context.options[DATA_EVOLUTION_ENABLED]:
            # Columns of a range of rows make one file, so these few columns are brought together anyway.
            fields = context.schema.fields
            rows, new = (to_precision(frame.toArrow(), fields) for frame in (replacing, added))
            return ReplaceRows(context, self.base, self.operation).commit(deleted, rows, new)
        prefixes = (context.new_data_file_prefix(), context.new_changelog_file_prefix())
        _, written = WrittenFiles.watch(context.fileio)
        progress = Progress()
        try:
            messages = [
                *self._files(replacing, prefixes, carries_ids=context.tracks_rows),
                *self._files(added, prefixes, carries_ids=False),
            ]
            written.note(message_paths(context, messages))
            snapshot = RowChanges(context, self.base, self.operation).commit(deleted, messages, progress=progress)
        except BaseException:
            if not progress.may_be_visible:
                written.take_back()
                remove_leftovers(context, prefixes)
            raise
        remove_leftovers(context, prefixes, messages)
        return snapshot

    def _files(self, frame: DataFrame, prefixes: tuple[str, str], *, carries_ids: bool) -> list[CommitMessage]:
        placed = distributed(self.context, frame, _TASKS)
        states = BucketStates.load(self.context.stores, self.base)
        task = WriteTask(self.context, None, None, states, prefixes, placed.parts, carries_ids=carries_ids)
        return run_tasks(task, placed.frame)
