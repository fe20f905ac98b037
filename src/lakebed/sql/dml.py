"""Statements that change rows: one place for who carries them out."""

from __future__ import annotations

from lakebed.sql.delete import delete
from lakebed.sql.insert import insert, insert_query
from lakebed.sql.merge import merge
from lakebed.sql.update import update

__all__ = ["delete", "insert", "insert_query", "merge", "update"]
