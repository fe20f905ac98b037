"""Rows deleted, replaced and added in one commit, for a table without a primary key, from Arrow data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.fileio.base import FileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.schema.system_columns import ROW_ID
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
        with Attempt(self.context.fileio) as attempt:
            if self.context.options[DATA_EVOLUTION_ENABLED]:
                return self._commit_columns(deleted, replacing, added, attempt)
            messages = [
                *self._files(replacing, attempt.fileio, carries_ids=self.context.tracks_rows),
                *self._files(added, attempt.fileio, carries_ids=False),
            ]
            return RowChanges(self.context, self.base, self.operation).commit(deleted, messages, attempt=attempt)

    def _commit_columns(
        self,
        deleted: Deleted,
        replacing: pa.Table | None,
        added: pa.Table | None,
        attempt: Attempt,
    ) -> Snapshot | None:
        """Where columns of rows have files of their own, rows that are replaced stay, and get new columns."""
        changes = ColumnChanges(self.context, self.base, attempt.fileio)
        replaced = changes.places(replacing.column(ROW_ID.name)) if replacing is not None else {}
        gone = without_places(deleted, replaced)
        if gone:
            refuse_deletes(self.context)
        changed = changes.messages(replacing) if replacing is not None and replacing.num_rows else []
        messages = [*changed, *self._files(added, attempt.fileio, carries_ids=False)]
        change = RowChanges(self.context, self.base, self.operation, replaced=replaced)
        return change.commit(gone, messages, attempt=attempt)

    def _files(self, rows: pa.Table | None, fileio: FileIO, *, carries_ids: bool) -> Sequence[CommitMessage]:
        if rows is None or not rows.num_rows:
            return []
        with FileMaker(
            self.context,
            row_kind=None,
            overwrite=None,
            states=lambda: BucketStates.load(self.context.stores, self.base),
            fileio=fileio,
            carries_ids=carries_ids,
        ) as maker:
            maker.write(rows, lambda: None)
            return maker.finish()


def without_places(places: Deleted, others: Deleted) -> Deleted:
    """Positions of rows by the names of their files, without those of the others."""
    left = {}
    for path, positions in places.items():
        name = path.rpartition("/")[2]
        remaining = np.setdiff1d(
            np.asarray(positions, dtype=np.int64), np.asarray(others.get(name, ()), dtype=np.int64)
        )
        if len(remaining):
            left[name] = remaining
    return left


__all__ = ["ReplaceRows", "without_places"]
