"""One table's part of a batch: its files, made here or by tasks of a Spark job, and the one commit that shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.cdc.rows.assemble import ROW_KIND
from lakebed.cleanup import on_failure
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.spark.tasks import message_paths, remove_leftovers
from lakebed.table.follow_up import catch_up
from lakebed.table.plans import plan_write
from lakebed.write.commit import Committed, WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.sequence import BucketStates

if TYPE_CHECKING:
    from lakebed.table.table import Table


class TableCommit:
    """The commit of one table in one batch. Nothing is visible before `run`, and nothing is left if that fails."""

    def __init__(self, table: Table, user: str, identifier: int, properties: Mapping[str, str]) -> None:
        self.context, identity = plan_write(table, user, identifier)
        self.job = self.context.ids.new_id()
        self.user = user
        self._attempt = Attempt(self.context.fileio)
        self._commit = WriteCommit(self.context, overwrite=None, identity=identity, attempt=self._attempt)
        self._commit.properties = dict(properties)
        self._maker: FileMaker | None = None
        self._messages: list[CommitMessage] = []
        self._is_from_tasks = False

    def states(self) -> BucketStates | None:
        """Where sequence numbers stand, for tasks; None if the table has no need of them."""
        if not self.context.bucket_mode.has_buckets:
            return None
        return self._commit.states().without_runs()

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes rows here."""
        if self._maker is None:
            self._maker = FileMaker(
                self.context,
                row_kind=ROW_KIND if self.context.has_key else None,
                overwrite=None,
                states=self._commit.states,
                fileio=self._attempt.fileio,
                commit_user=self.user,
            )
        self._maker.write(rows, lambda: None)

    def take(self, messages: list[CommitMessage]) -> None:
        """Adds what tasks have made under the name of `job`."""
        self._messages += messages
        if not self._is_from_tasks:
            self._attempt.when_given_up(lambda: remove_leftovers(self.context, self.job))
        self._is_from_tasks = True
        self._attempt.note(message_paths(self.context, messages))

    def run(self) -> Committed | None:
        """Commits; None if there was nothing, or if the batch is in the table already."""
        with on_failure(self.abort):
            if self._maker is not None:
                self._messages += self._maker.finish()
            committed = self._commit.run(self._messages)
        if committed is None:
            return None
        if self._maker is not None:
            self._maker.remember(committed.snapshot)
        if self._is_from_tasks:
            remove_leftovers(self.context, self.job, self._messages)
        return committed

    def abort(self) -> None:
        """Gives everything up, unless it may be visible already."""
        if self._maker is not None:
            self._maker.abort()
        self._attempt.give_up()


def is_committed(table: Table, user: str, identifier: int) -> bool:
    """Whether the table has this batch, or a later one of the same sync. What it makes due is made up for."""
    context, identity = plan_write(table, user, identifier)
    commit = WriteCommit(context, overwrite=None, identity=identity, attempt=Attempt(context.fileio))
    if not commit.is_committed():
        return False
    catch_up(context, identity)
    return True


__all__ = ["TableCommit", "is_committed"]
