"""Gives rows that are there the value that a source gives them in a column it has added.

A source says nothing of the rows that an added column with a DEFAULT changes, so they are written anew. A default that
reads put in place of NULL would be cheaper, but other engines do not know it, and NULLs that are meant would not show.
What is to be done stands in an option of the table, which is set together with the column and removed afterwards: a
crash in between is made up for by the next batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebed.cdc.rows.past import Past
from lakebed.cdc.rows.shape import fill_value
from lakebed.definition.context import TableContext
from lakebed.options import CDC_UPDATE_AS, CHANGELOG_PRODUCER, LAKEBED_CDC_BACKFILL, MERGE_ENGINE
from lakebed.schema.casts import filled
from lakebed.schema.changes import RemoveOption
from lakebed.table.plans import plan_write
from lakebed.types.logical import STRING, DataField
from lakebed.types.predicate import Predicate
from lakebed.types.row_kind import RowKind, kinds_to_text
from lakebed.types.transfer import to_precision

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebed.table.table import Table

_USER = ":backfill"
_KIND = "_lakebed_row_kind"
_HERE_ROWS = 200_000
"""So many rows are written here; more go through Spark."""


def fill_waiting(
    table: Table, user: str, identifier: int, spark: SparkSession | None, past: Past | None = None
) -> bool:
    """Writes what the option says, once; whether there was anything to do.

    Only rows get them that the source has: of a history versions that are current, no deleted ones.
    """
    text = table.schema.options.get(LAKEBED_CDC_BACKFILL.key)
    if text is None:
        return False
    context, _ = plan_write(table)
    values = _values(context, json.loads(text))
    present = None if past is None else past.present()
    snapshot = table.latest_snapshot()
    if values and snapshot is not None and context.options[MERGE_ENGINE] != "first-row":
        if spark is None or snapshot.total_record_count <= _HERE_ROWS:
            _fill_here(table, context, values, user + _USER, identifier, present)
        else:
            _fill_on_spark(table, context, values, user + _USER, identifier, spark, present)
    table.alter(RemoveOption(LAKEBED_CDC_BACKFILL.key))
    return True


def _values(context: TableContext, texts: Mapping[str, str]) -> dict[str, pa.Scalar]:
    """Values by column; columns that are gone again are left out."""
    by_id = {str(field.id): field for field in context.schema.fields}
    return {by_id[key].name: fill_value(by_id[key], text) for key, text in texts.items() if key in by_id}


def _fill_here(
    table: Table,
    context: TableContext,
    values: Mapping[str, pa.Scalar],
    user: str,
    identifier: int,
    condition: Predicate | None,
) -> None:
    with table.writer(row_kind=_KIND, commit_user=user, commit_identifier=identifier) as writer:
        for batch in table.to_batches(filter=condition):
            for piece in _new_rows(context, batch, values):
                writer.write(piece)


def _fill_on_spark(
    table: Table,
    context: TableContext,
    values: Mapping[str, pa.Scalar],
    user: str,
    identifier: int,
    spark: SparkSession,
    condition: Predicate | None,
) -> None:
    from lakebed.spark.types import spark_schema
    from lakebed.spark.write import write_frame
    from lakebed.types.transfer import to_transfer, transfer_schema

    fields = context.schema.fields
    sent = (*fields, DataField(-1, _KIND, STRING))
    plain = dict(values)

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = transfer_schema(sent)
        for batch in batches:
            for rows in to_precision(pa.Table.from_batches([batch]), fields).combine_chunks().to_batches():
                for piece in _new_rows(context, rows, plain):
                    yield to_transfer(piece, wanted)

    frame = table.to_spark(filter=condition).mapInArrow(fill, spark_schema(sent))
    write_frame(spark, table, frame, _KIND, None, user, identifier)


def _new_rows(
    context: TableContext, batch: pa.RecordBatch, values: Mapping[str, pa.Scalar]
) -> Iterator[pa.RecordBatch]:
    """The rows with their new values and their kinds, after the old ones if somebody reads the input.

    Where rows of one key are folded into one, only the key and the new values are written: the rest counts already.
    """
    engine = context.options[MERGE_ENGINE]
    names = batch.schema.names
    keeps = {*context.schema.primary_keys, *context.schema.partition_keys, *values}
    columns = []
    for name in names:
        column = batch.column(name)
        if name in values:
            column = filled(column, values[name])
        elif engine != "deduplicate" and name not in keeps:
            column = pa.nulls(batch.num_rows, column.type)
        columns.append(column)
    if engine == "deduplicate" and context.options[CHANGELOG_PRODUCER] == "input":
        keeps_updates = context.options[CDC_UPDATE_AS] == "update"
        yield _with_kind(batch, RowKind.UPDATE_BEFORE if keeps_updates else RowKind.DELETE)
        new = pa.RecordBatch.from_arrays(columns, names=names)
        yield _with_kind(new, RowKind.UPDATE_AFTER if keeps_updates else RowKind.INSERT)
    else:
        yield _with_kind(pa.RecordBatch.from_arrays(columns, names=names), RowKind.INSERT)


def _with_kind(batch: pa.RecordBatch, kind: RowKind) -> pa.RecordBatch:
    kinds = kinds_to_text(pa.array(np.full(batch.num_rows, kind, np.int8)))
    return pa.RecordBatch.from_arrays([*batch.columns, kinds], names=[*batch.schema.names, _KIND])


__all__ = ["fill_waiting"]
