"""UPDATE as a statement would run it, with nothing but what the table offers for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lakebed import Table
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader
from lakebed.rewrite.rows_by_place import Deleted, ReplaceRows, RowChanges
from lakebed.schema.system_columns import PLACE_FIELDS, TRACKED_SEQUENCE_NUMBER, TRACKING_FIELDS
from lakebed.types.predicate_parse import to_predicate
from lakebed.write.files import FileMaker
from lakebed.write.sequence import BucketStates

Change = Callable[[pa.Table], pa.Table]


class Update:
    """An update that has read the table and written its new files, and is yet to be committed."""

    def __init__(self, table: Table, condition: object, change: Change) -> None:
        self._context: TableContext = table._opened.writable()
        self._base = self._context.stores.snapshots.latest()
        self._replacing: list[pa.Table] = []
        self._deleted, self._messages = self._run(condition, change)

    def commit(self) -> Snapshot | None:
        """Makes it visible."""
        if self._context.options[DATA_EVOLUTION_ENABLED]:
            replacing = pa.concat_tables(self._replacing) if self._replacing else None
            return ReplaceRows(self._context, self._base, "UPDATE").commit(self._deleted, replacing)
        return RowChanges(self._context, self._base, "UPDATE").commit(self._deleted, self._messages)

    def _run(self, condition: object, change: Change) -> tuple[Deleted, list[CommitMessage]]:
        context = self._context
        predicate = to_predicate(condition, context.arrow_schema_with_hidden)
        ids = TRACKING_FIELDS if context.tracks_rows else ()
        reader = SplitReader(context, (*context.schema.fields, *ids, *PLACE_FIELDS), predicate)
        deleted: dict[str, list[np.ndarray]] = defaultdict(list)
        maker = FileMaker(
            context,
            row_kind=None,
            overwrite=None,
            states=lambda: BucketStates.load(context.stores, self._base),
            fileio=context.fileio,
            carries_ids=context.tracks_rows,
        )
        for batch in reader.read_all(plan_scan(context, self._base, predicate).splits):
            path, positions = (batch.column(field.name) for field in PLACE_FIELDS)
            deleted[path[0].as_py()].append(np.asarray(positions))
            rows = change(pa.Table.from_batches([batch]).drop_columns([field.name for field in PLACE_FIELDS]))
            if context.tracks_rows:
                place = rows.schema.get_field_index(TRACKED_SEQUENCE_NUMBER.name)
                rows = rows.set_column(place, rows.schema.field(place), pa.nulls(rows.num_rows, pa.int64()))
            if context.options[DATA_EVOLUTION_ENABLED]:
                self._replacing.append(rows)
            else:
                maker.write(rows, maker.abort)
        return {path: np.concatenate(parts) for path, parts in deleted.items()}, maker.finish()


def update_where(table: Table, condition: object, change: Change) -> Snapshot | None:
    """Changes the rows for which the condition is true."""
    return Update(table, condition, change).commit()
