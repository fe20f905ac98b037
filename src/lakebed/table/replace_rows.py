"""Rows deleted, replaced and added in one commit, for a table without a primary key, from Arrow data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebed.commit.committer import Progress
from lakebed.commit.message import CommitMessage
from lakebed.commit.written_files import WrittenFiles
from lakebed.fileio.base import FileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.table.bucket_state import BucketStates
from lakebed.table.column_files import ColumnChanges, refuse_deletes
from lakebed.table.context import TableContext
from lakebed.table.row_changes import Deleted, RowChanges
from lakebed.table.write_files import FileMaker


@dataclass(frozen=True)
class ReplaceRows:
    """Changes to the rows of one snapshot.

    `replacing` are new versions of deleted rows; where rows have ids they bring them along. `added` are new rows.
    """

    context: TableContext
    base: Snapshot | None
    operation: str

    def commit(
        self, deleted: Deleted, replacing: pa.Table | None = None, added: pa.Table | None = None
    ) -> Snapshot | None:
        """Makes the changes visible as one snapshot; None when there are none."""
        fileio, written = WrittenFiles.watch(self.context.fileio)
        progress = Progress()
        try:
            if self.context.options[DATA_EVOLUTION_ENABLED]:
                return self._commit_columns(deleted, replacing, added, fileio, progress)
            messages = [
                *self._files(replacing, fileio, carries_ids=self.context.tracks_rows),
                *self._files(added, fileio, carries_ids=False),
            ]
            return RowChanges(self.context, self.base, self.operation).commit(deleted, messages, progress=progress)
        except BaseException:
            if not progress.may_be_visible:
                written.take_back()
            raise

    def _commit_columns(
        self,
        deleted: Deleted,
        replacing: pa.Table | None,
        added: pa.Table | None,
        fileio: FileIO,
        progress: Progress,
    ) -> Snapshot | None:
        """Where columns of rows have files of their own, old rows stay, and get new columns."""
        places = sum(len(np.unique(np.asarray(positions))) for positions in deleted.values())
        if places > (replacing.num_rows if replacing is not None else 0):
            refuse_deletes(self.context)
        changes = ColumnChanges(self.context, self.base, fileio)
        changed = changes.messages(replacing) if replacing is not None and replacing.num_rows else []
        messages = [*changed, *self._files(added, fileio, carries_ids=False)]
        guarded = RowChanges(self.context, self.base, self.operation, changes.guard(changed))
        return guarded.commit({}, messages, progress=progress)

    def _files(self, rows: pa.Table | None, fileio: FileIO, *, carries_ids: bool) -> Sequence[CommitMessage]:
        if rows is None or not rows.num_rows:
            return []
        maker = FileMaker(
            self.context,
            row_kind=None,
            overwrite=None,
            states=lambda: BucketStates.load(self.context.stores, self.base),
            fileio=fileio,
            carries_ids=carries_ids,
        )
        try:
            maker.write(rows, lambda: None)
            return maker.finish()
        except BaseException:
            maker.abort()
            raise
