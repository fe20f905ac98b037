"""Changes followed in parts without Spark: what its tasks would do, one after the other in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.table.writer import TableWriter
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.transfer import to_transfer, transfer_schema
from lakebed.views import by_spark, shared_delta
from lakebed.views.apply import KIND
from lakebed.views.by_spark import Written
from lakebed.views.changes import CHANGE
from lakebed.views.delta_task import NUMBER, SOURCE, TOLD
from lakebed.views.shared_delta import SharedDelta

Turn = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def share_among(patch: pytest.MonkeyPatch, parts: int) -> None:
    """From now on all changes are followed in so many parts, by Spark."""
    patch.setenv(by_spark.CHANGES, "0")
    patch.setattr(shared_delta, "MOST_PARTS", parts)
    patch.setattr(shared_delta, "PART_ROWS", 1)


def follow_in_parts(patch: pytest.MonkeyPatch, parts: int = 3) -> None:
    """The same by what its tasks would do, here."""
    share_among(patch, parts)
    patch.setattr(SharedDelta, "write", _write)


def _write(
    self: SharedDelta,
    lake: Any,
    context: TableContext,
    identity: CommitIdentity,
    properties: Callable[[int], Mapping[str, str]],
) -> Written:
    task = cloudpickle.loads(cloudpickle.dumps(self.task))
    marks = pa.table({NUMBER: pa.array(range(self.parts), pa.int32()), SOURCE: pa.array([-1] * self.parts, pa.int32())})
    given = [marks.append_column(CHANGE, pa.array([0] * self.parts, pa.int64()))]
    for place, shared in enumerate(self.task.shared):
        rows = _changes(self, shared.scan)
        given.append(pa.Table.from_batches(list(shared.numbered(place, self.parts, task.zone)(iter(rows)))))
    found = _turn(pa.concat_tables(given, promote_options="default"), task.first)
    if task.program.replaced is None:
        found = _turn(found, task.second)
    told = [json.loads(text) for text in found.column(TOLD).drop_null().to_pylist()]
    touched = shared_delta._touched(told)
    events = found.filter(pc.is_null(found.column(TOLD))).drop_columns([TOLD])
    # Old rows come before those in their place, as in the tasks that write.
    order = [(name, "ascending") for name in context.schema.primary_keys]
    events = events.sort_by([*order, (KIND, "descending")])
    with TableWriter(context, row_kind=KIND, identity=identity, properties=properties(touched)) as writer:
        if events.num_rows:
            writer.write(events)
        snapshot = writer.commit()
    counted = events.group_by(KIND).aggregate([(KIND, "count")]).to_pylist()
    return Written(snapshot, {each[KIND]: each[f"{KIND}_count"] for each in counted})


def _changes(shared: SharedDelta, scan: Any) -> Sequence[pa.RecordBatch]:
    table, names = scan.source.table, list(scan.names)
    steps = shared.steps[table.name]
    since = 0 if steps.before is None else steps.before.id
    if steps.way == "comparison":
        rows = table.diff(since, steps.after.id, names)
    else:
        rows = table.changes(since, steps.after.id, columns=names)
    schema = transfer_schema(from_arrow_schema(rows.schema))
    found = [to_transfer(batch, schema) for batch in rows.combine_chunks().to_batches()]
    return found or [pa.RecordBatch.from_pylist([], schema=schema)]


def _turn(rows: pa.Table, work: Turn) -> pa.Table:
    """What tasks make of rows, each of those of one part."""
    made = []
    for part in sorted(set(rows.column(NUMBER).to_pylist())):
        mine = rows.filter(pc.equal(rows.column(NUMBER), part)).combine_chunks()
        made += list(work(iter(mine.to_batches())))
    return pa.Table.from_batches(made)


__all__ = ["follow_in_parts", "share_among"]
