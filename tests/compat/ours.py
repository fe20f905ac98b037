"""Lakebed's side of the compatibility tests: tables made, filled and read through the public API, rows canonical."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed

from .judges import Row, canonical_rows
from .judges.canonical import arrow_table
from .matrix_data import IDENTITY, Column, Layout

DATABASE = "db"


def create(warehouse: Path, name: str, schema: dict[str, str], **arguments: Any) -> lakebed.Table:
    """A new table in the database that all tests use."""
    lake = lakebed.connect(warehouse)
    lake.create_database(DATABASE, if_not_exists=True)
    return lake.create_table(f"{DATABASE}.{name}", schema, **arguments)


def open_table(warehouse: Path, name: str) -> lakebed.Table:
    """A table that exists."""
    return lakebed.connect(warehouse).table(f"{DATABASE}.{name}")


def create_matrix(
    warehouse: Path, name: str, layout: Layout, columns: list[Column], options: dict[str, str]
) -> lakebed.Table:
    """A table of the matrix: `id` and `part`, then these columns."""
    return create(
        warehouse,
        name,
        IDENTITY | {column.name: column.type for column in columns},
        primary_key=layout.primary_key,
        partition_by=layout.partition_by,
        options=layout.options | options,
    )


def write(table: lakebed.Table, rows: list[Row], kinds: list[str] | None = None, **arguments: Any) -> None:
    """One commit; `kinds` gives the row kind of each row, else all are +I."""
    data = arrow_table(rows, table.arrow_schema)
    if kinds is not None:
        data = data.append_column("_kind", pa.array(kinds, pa.string()))
        arguments["row_kind"] = "_kind"
    table.write(data, **arguments)


def read(table: lakebed.Table, **arguments: Any) -> list[Row]:
    """The table's rows."""
    return canonical_rows(table.to_arrow(**arguments))


class Model:
    """What a table must hold: rows by key, or simply all rows of a table without a key."""

    def __init__(self, layout: Layout) -> None:
        self._keys = layout.primary_key
        self._rows: dict[Any, Row] = {}

    def upsert(self, rows: list[Row]) -> None:
        for row in rows:
            self._rows[self._key(row)] = row

    def delete(self, rows: list[Row]) -> None:
        for row in rows:
            self._rows.pop(self._key(row), None)

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def _key(self, row: Row) -> Any:
        return tuple(row[name] for name in self._keys) if self._keys else len(self._rows)
