"""Writes a commit as the tasks of a large micro-batch do, one after the other, without Spark. Only tests use this."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import lakebed
from lakebed.commit.attempt import Attempt
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.context import TableContext
from lakebed.definition.incoming import to_batches
from lakebed.definition.memory import TableMemory
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.follow_up import FollowUp
from lakebed.table.plans import plan_write
from lakebed.write.commit import WriteCommit
from lakebed.write.conform import Conformer
from lakebed.write.files import FileMaker
from lakebed.write.placement.kept_keys import KeptPlace
from lakebed.write.placement.table_keys import TableKeys, shares_of
from lakebed.write.sequence import BucketStates


@dataclass
class SharedWriter:
    """A writer whose rows are shared by key among `parts` tasks that keep their keys under a name.

    With `is_taught` the keys of the table are brought to the tasks. With `is_repeated` every task is begun twice, and
    the first attempt is given up when it has placed its rows.
    """

    table: lakebed.Table
    row_kind: str | None
    parts: int
    scope: str
    is_taught: bool = False
    is_repeated: bool = False
    given: list[pa.RecordBatch] = field(default_factory=list)

    def write(self, data: Any) -> None:
        """Adds rows."""
        self.given += to_batches(data)

    def abort(self) -> None:
        """Gives up."""

    def commit(self) -> Snapshot | None:
        """The snapshot, or None if there was nothing to commit."""
        context, identity = plan_write(self.table)
        attempt = Attempt(context.fileio)
        commit = WriteCommit(context, overwrite=None, identity=identity, attempt=attempt)
        states = commit.states().without_runs()
        messages: list[CommitMessage] = []
        for number in range(self.parts):
            part = WritePart(number, self.parts)
            if self.is_repeated:
                maker = self._fed(context, attempt.fileio, part, states)
                maker.abort()
            messages += self._fed(context, attempt.fileio, part, states).finish()
        committed = commit.run(messages)
        if committed is None:
            return None
        FollowUp(committed).run()
        return committed.snapshot

    def _fed(self, context: TableContext, fileio: Any, part: WritePart, states: BucketStates) -> FileMaker:
        there = replace(context, memory=TableMemory())
        maker = FileMaker(
            there,
            row_kind=self.row_kind,
            overwrite=None,
            states=lambda: states,
            fileio=fileio,
            part=part,
            is_taught=self.is_taught,
            kept_keys=KeptPlace(self.scope),
        )
        keys = TableKeys(there)
        for split in keys.splits(states.snapshot) if self.is_taught else ():
            for known in keys.in_split(split):
                maker.learn(known.of_part(part), len(known.keys))
        conformer = Conformer(there.name, there.schema.fields, extra=self.row_kind)
        for batch in self.given:
            hashes, _ = keys.hashed(conformer.conform(batch)[0])
            mine = batch.filter(pa.array(shares_of(hashes, part.count) == part.number))
            if mine.num_rows:
                maker.write(mine, lambda: None)
        return maker
