"""Writes rows into a table: many batches, one commit. Nothing is visible until `commit`; an error or `abort` removes
every file made.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from lakebed.commit.replay import CommitIdentity
from lakebed.commit.written_files import WrittenFiles
from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.write_commit import WriteCommit
from lakebed.table.write_files import FileMaker


class TableWriter:
    """One commit in the making. Use it in a `with` block: committed at its end, nothing left behind on an error."""

    def __init__(
        self,
        context: TableContext,
        *,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | Overwrite | None = None,
        identity: CommitIdentity,
    ) -> None:
        self._name = context.name
        if overwrite is None or isinstance(overwrite, Overwrite):
            replaced = overwrite
        else:
            replaced = Overwrite.parse(context, overwrite)
        fileio, self._written = WrittenFiles.watch(context.fileio)
        self._commit = WriteCommit(
            context,
            overwrite=replaced,
            identity=identity,
            fileio=fileio,
            written=self._written,
        )
        self._files = FileMaker(
            context,
            row_kind=row_kind,
            overwrite=replaced,
            states=self._commit.states,
            fileio=fileio,
            commit_user=identity.user,
        )
        self._is_open = True

    def write(self, data: Any) -> None:
        """Adds rows. A row that does not fit raises before any row of its batch is taken."""
        self._check_open()
        self._files.write(data, self.abort)

    def write_stored(self, rows: pa.RecordBatch) -> None:
        """Adds rows that this table has already: nothing is conformed or counted again."""
        self._check_open()
        self._files.write_stored(rows, pa.array(np.zeros(rows.num_rows, dtype=np.int8)))

    def commit(self) -> Snapshot | None:
        """Makes the rows visible as one snapshot; None when there was nothing to commit."""
        self._check_open()
        try:
            if self._commit.is_committed():
                self.abort()
                self._commit.catch_up()
                return None
            messages = self._files.finish()
            snapshot = self._commit.run(messages)
        except BaseException:
            self.abort()
            raise
        self._is_open = False
        if snapshot is not None:
            self._files.remember(snapshot)
            self._commit.follow_up(messages)
        return snapshot

    def abort(self) -> None:
        """Gives everything up and removes the files, unless they may be part of the table. Nothing after a commit."""
        if not self._is_open:
            return
        self._is_open = False
        self._files.abort()
        if not self._commit.may_be_visible:
            self._written.take_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            if self._is_open:
                self.commit()
        else:
            self.abort()

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument(
                f"this writer of table `{self._name}` is done", hint="open another one with t.writer()"
            )
