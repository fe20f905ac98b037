"""`t$consumers`: one row for each stream reader that keeps its progress in the table."""

from __future__ import annotations

from lakebed.metadata.consumer import Consumer
from lakebed.table.system.base import SystemTable, TableState, each

CONSUMERS = SystemTable[TableState, Consumer](
    "consumers",
    lambda state: state.context.stores.consumers.list(),
    (
        each("consumer_id", "STRING NOT NULL", lambda consumer: consumer.id),
        each("next_snapshot_id", "BIGINT NOT NULL", lambda consumer: consumer.next_snapshot),
    ),
)

__all__ = ["CONSUMERS"]
