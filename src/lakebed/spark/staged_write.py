"""Writes whose tasks can not choose buckets: they write rows down as they come, and one process does the rest.

`df.write.format("lakebed")` can not have rows brought together by key, and an index of keys can not be shared between
tasks that get any rows. So rows wait in files of their partitions, as rows of postponed buckets do, but only until the
commit: nothing refers to these files, and they go with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakebed.commit.message import CommitMessage
from lakebed.fileio.base import FileIO
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import BUCKET, POSTPONE_BATCH_WRITE_FIXED_BUCKET, Options
from lakebed.schema.system_columns import VALUE_KIND
from lakebed.spark.write import WriteTask
from lakebed.table.bucket_state import BucketStates
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.postponed import in_writing_order
from lakebed.table.read import SplitReader
from lakebed.table.splits import Split
from lakebed.table.write_files import FileMaker


@dataclass(frozen=True)
class StagedWrite:
    """One such write."""

    context: TableContext
    job: str

    def task(self, row_kind: str | None, overwrite: bool | None) -> WriteTask:
        """What each task does."""
        waiting = {BUCKET.key: str(POSTPONE_BUCKET), POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "false"}
        context = self.context.with_schema(self.context.schema, Options({**self.context.options.raw, **waiting}))
        return WriteTask(context, row_kind, overwrite, None, self.job)

    def placed(
        self,
        staged: Sequence[CommitMessage],
        overwrite: Overwrite | None,
        states: Callable[[], BucketStates],
        fileio: FileIO,
    ) -> list[CommitMessage]:
        """The rows that tasks have written down, in files of their buckets."""
        reader = SplitReader(self.context, (VALUE_KIND, *self.context.schema.fields))
        files: dict[bytes, list[DataFile]] = defaultdict(list)
        for message in staged:
            files[message.partition] += message.new_files
        with FileMaker(self.context, row_kind=None, overwrite=overwrite, states=states, fileio=fileio) as maker:
            for partition, found in files.items():
                sections = tuple(Section((SortedRun((file,)),)) for file in in_writing_order(found))
                for batch in reader.read_stored(Split(partition, POSTPONE_BUCKET, sections)):
                    maker.write_stored(batch.drop_columns([VALUE_KIND.name]), batch.column(VALUE_KIND.name))
            return maker.finish()


__all__ = ["StagedWrite"]
