"""Inserts rows of sources until they end: `python -m tests.faults.row_insert_worker WAREHOUSE FILES`, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

import lakebed
from lakebed.connectors import RowInsert
from lakebed.sql.session import connector_tables

ROWS = 1800
TARGETS = {"made": "g", "files": "f"}
"""Tables of the lake, and the source of each."""
_DEFINITIONS = f"""
CREATE TABLE g (id BIGINT, v STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '0',
  'number-of-rows' = '{ROWS}', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}',
  'fields.v.length' = '8');
CREATE TABLE f (id BIGINT, v STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{{files}}');
"""


def inserts(lake: lakebed.Lake, files: Path) -> list[RowInsert]:
    """An INSERT into each target."""
    lake.sql(_DEFINITIONS.format(files=files))
    tables = connector_tables(lake)
    return [
        RowInsert(lake, tables["default", source], target, f"SELECT * FROM {source}", name=target, database="default")
        for target, source in TARGETS.items()
    ]


def main(warehouse: str, files: str) -> None:
    """Steps in turn, with a word for each."""
    left = inserts(lakebed.connect(warehouse), Path(files))
    while left:
        for each in left:
            print(each.step(101), flush=True)
        left = [each for each in left if not each.has_ended]


if __name__ == "__main__":
    main(*sys.argv[1:])
