"""Changes of a PostgreSQL database: its tables as they are, then its log from there on.

A row's way: `planner` decides what a batch reads; a task copies a part of a table (`copy/read`) or gets raw messages of
the log (`log/peek`, `log/replication`), which `log/pgoutput` decodes to columns of text, `values/values` turns into
values, `copy/filter` rids of what the copy holds already, and `log/chunk_rows` puts into the envelope.
"""

from __future__ import annotations

from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.source import PostgresSource

__all__ = ["PostgresSettings", "PostgresSource"]
