"""MySQL and MariaDB: the binary log by global transaction ids, and a copy of tables that fits it exactly."""

from __future__ import annotations

from lakebed.cdc.sources.mysql.source import MySqlSource

__all__ = ["MySqlSource"]
