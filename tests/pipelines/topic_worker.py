"""Sends to topics until it is killed: `python -m tests.pipelines.topic_worker WAREHOUSE SERVERS`."""

from __future__ import annotations

import sys
import time

import lakebed
from lakebed.connectors import RowInsert, SinkInsertTarget
from lakebed.sql.session import connector_tables
from lakebed.views.insert import StreamingInsert

ROWS = 3000
_DEFINITIONS = f"""
CREATE TABLE g (id BIGINT, v STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '0',
  'number-of-rows' = '{ROWS}', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}',
  'fields.v.length' = '8');
CREATE TABLE r (id BIGINT, v STRING) WITH ('connector' = 'kafka', 'topic' = 'killed-rows', 'format' = 'json',
  'properties.bootstrap.servers' = '{{servers}}');
CREATE TABLE c (cust INT, n BIGINT, total BIGINT, PRIMARY KEY (cust) NOT ENFORCED) WITH ('connector' = 'kafka',
  'topic' = 'killed-changes', 'format' = 'debezium-json', 'properties.bootstrap.servers' = '{{servers}}')
"""


def inserts(lake: lakebed.Lake, servers: str) -> tuple[RowInsert, StreamingInsert]:
    """Rows of a source, and changes of a query."""
    lake.sql(_DEFINITIONS.format(servers=servers))
    tables = connector_tables(lake)
    rows = RowInsert(lake, tables["default", "g"], "r", "SELECT * FROM g", name="killed-r", database="default")
    changes = StreamingInsert(
        lake,
        "c",
        "SELECT cust, count(*), sum(amount) FROM orders GROUP BY cust",
        name="killed-c",
        database="default",
        into=SinkInsertTarget(tables["default", "c"], "killed-c"),
    )
    return rows, changes


def main(warehouse: str, servers: str) -> None:
    """Steps in turn, with a word for each that sent something."""
    rows, changes = inserts(lakebed.connect(warehouse), servers)
    while True:
        for step in (lambda: rows.step(97), changes.step):
            done = step()
            if done.changed:
                print(done, flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
