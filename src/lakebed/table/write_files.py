"""Turns rows into new files of their buckets: what a writer does in place, and what each task of a Spark job does.

Rows are fitted to the schema, routed to partitions and buckets, and written as they come. What comes out are messages
for the one who commits; nothing is visible before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.merge.first_row import FirstRow
from lakebed.options import IGNORE_DELETE, IGNORE_UPDATE_BEFORE, LAKEBED_COUNT_FIELDS, ROWKIND_FIELD
from lakebed.table.bucket_state import BucketStates
from lakebed.table.bucket_writers import Bucket, BucketWriters
from lakebed.table.conform import Conformer, to_batches
from lakebed.table.context import TableContext
from lakebed.table.overwrite import Overwrite
from lakebed.table.routing import Router
from lakebed.table.write_rules import changelog_write_rules, write_rules
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text


class FileMaker:
    """Files of one commit, or of one task's part of it.

    `states` tells where sequence numbers stand, and is asked only if it matters; `prefixes` are how the names of data
    and changelog files begin.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        row_kind: str | None,
        overwrite: Overwrite | None,
        states: Callable[[], BucketStates],
        fileio: FileIO,
        prefixes: tuple[str, str] | None = None,
    ) -> None:
        self._context = context
        self._row_kind = row_kind
        self._overwrite = overwrite
        self._states = states
        self._base_snapshot_id = 0
        self._fileio = fileio
        _check_row_kind(context, row_kind)
        counting = frozenset(context.options[LAKEBED_COUNT_FIELDS])
        self._conformer = Conformer(context.name, context.schema.fields, extra=row_kind, counting=counting)
        self._router = Router(context)
        self._rules = write_rules(context)
        self._changelog_rules = changelog_write_rules(context)
        self._layout = file_layout(context)
        self._buckets = BucketWriters(context, self._new_writer, self._next_sequence_number, self._new_changelog_writer)
        self._counter = itertools.count()
        data, changelog = prefixes or (context.new_data_file_prefix(), context.new_changelog_file_prefix())
        self._prefix, self._changelog_prefix = data, changelog

    def write(self, data: Any, on_failure: Callable[[], None]) -> None:
        """Adds rows. A row that does not fit raises before any row of its batch is taken.

        `on_failure` is called when some rows of a batch are taken and others are not: no commit can be right then.
        """
        for batch in to_batches(data):
            rows, kind_column = self._conformer.conform(batch)
            rows, kinds = self._with_kinds(rows, kind_column)
            groups = list(self._router.route(rows, kinds))
            if self._overwrite is not None:
                for routed in groups:
                    self._overwrite.check(routed.partition)
            try:
                for routed in groups:
                    self._buckets.take(routed)
            except BaseException:
                on_failure()
                raise

    def finish(self) -> list[CommitMessage]:
        """Writes what is left, and says what was made."""
        written = self._buckets.finish()
        return [
            CommitMessage(
                partition, bucket, self._router.total_buckets, self._base_snapshot_id, files.data, files.changelog
            )
            for (partition, bucket), files in written.items()
        ]

    def abort(self) -> None:
        """Gives up open files. Finished ones are the caller's to remove."""
        self._buckets.abort()

    # --- inside --------------------------------------------------------------------------------------------------

    def _new_file_name(self) -> str:
        return f"{self._prefix}-{next(self._counter)}.{self._rules.format.name}"

    def _with_kinds(self, rows: pa.RecordBatch, given: pa.Array | None) -> tuple[pa.RecordBatch, pa.Array]:
        """Kinds of all rows, and the rows that the table's options let through."""
        options = self._context.options
        kind_field = options[ROWKIND_FIELD]
        if kind_field is not None and self._context.has_key:
            kinds = kinds_from_text(rows.column(kind_field), kind_field)
        elif given is not None and self._row_kind is not None:
            kinds = kinds_from_text(given, self._row_kind)
        else:
            return rows, pa.array(np.zeros(rows.num_rows, dtype=np.int8))
        numbers = np.asarray(kinds)
        drop = np.zeros(len(numbers), dtype=np.bool_)
        if options[IGNORE_DELETE]:
            drop |= is_retract(numbers)
        if options[IGNORE_UPDATE_BEFORE]:
            drop |= numbers == RowKind.UPDATE_BEFORE
        if self._context.is_first_row:
            FirstRow.refuse_retracts(is_retract(numbers) & ~drop)
        if np.any(drop):
            keep = pa.array(~drop)
            return rows.filter(keep), kinds.filter(keep)
        return rows, kinds

    def _next_sequence_number(self, bucket: Bucket) -> int:
        if self._overwrite is not None or self._router.total_buckets < 0:
            return 0
        states = self._states()
        self._base_snapshot_id = states.snapshot_id
        states.check_bucket_count(self._context.name, bucket[0], self._router.total_buckets)
        return states.next_sequence_number(*bucket)

    def _path_in(self, bucket: Bucket) -> Callable[[str], str]:
        return lambda name: self._context.data_file_path(*bucket, name)

    def _new_writer(self, bucket: Bucket) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            self._new_file_name,
            self._layout,
            self._rules,
            self._context.clock,
            first_sequence_number=0 if self._context.has_key else self._next_sequence_number(bucket),
        )

    def _new_changelog_writer(self, bucket: Bucket) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            lambda: f"{self._changelog_prefix}-{next(self._counter)}.{self._changelog_rules.format.name}",
            self._layout,
            self._changelog_rules,
            self._context.clock,
        )


def file_layout(context: TableContext) -> FileLayout:
    """What new files of a table look like inside."""
    key = context.key_fields if context.has_key else ()
    return FileLayout(context.schema.id, context.schema.fields, key)


def _check_row_kind(context: TableContext, row_kind: str | None) -> None:
    if row_kind is None:
        return
    if not context.has_key:
        raise InvalidArgument(
            f"table `{context.name}` has no primary key, so its rows have no kinds",
            hint="write without row_kind, or create the table with a primary key",
        )
    if row_kind in context.schema.field_names:
        raise InvalidArgument(
            f"row_kind names column `{row_kind}` of table `{context.name}` itself",
            hint="use a column that is not in the table, or set the option `rowkind.field`",
        )
