"""Consumers: stream readers that keep their progress in the table."""

from __future__ import annotations

from lakebed.sql.procedures.registry import DONE, TABLE, Kind, Parameter, Procedure, Rows, SqlLake


def _reset(lake: SqlLake, table: str, consumer_id: str, next_snapshot_id: int | None = None) -> Rows:
    """Without a snapshot the consumer is deleted."""
    lake.table(table).reset_consumer(consumer_id, next_snapshot_id)
    return DONE


def _clear(
    lake: SqlLake, table: str, including_consumers: str | None = None, excluding_consumers: str | None = None
) -> Rows:
    lake.table(table).clear_consumers(including_consumers, excluding_consumers)
    return DONE


PROCEDURES = (
    Procedure(
        "reset_consumer",
        (TABLE, Parameter("consumer_id", required=True), Parameter("next_snapshot_id", Kind.NUMBER)),
        _reset,
    ),
    Procedure("clear_consumers", (TABLE, Parameter("including_consumers"), Parameter("excluding_consumers")), _clear),
)
