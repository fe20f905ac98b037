"""A column of a MySQL or MariaDB table: one description for what the catalog says and what the binary log says.

`kind` is the type's name in `information_schema` (`int`, `varchar`, `datetime`, …). What only the catalog knows (the
display width that makes a TINYINT a boolean, comments, defaults) is borrowed by the log's columns with `informed_by`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from lakebed.records import dataclass

INTEGERS: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
"""Bytes of each kind of whole number."""

TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
"""By the number of bytes of their length, less one."""

GEOMETRIES: Final = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `length` is characters, bytes, bits or decimal digits, as the kind has it; `scale` is digits behind the
    point, of seconds too."""

    name: str
    kind: str
    nullable: bool = True
    unsigned: bool = False
    length: int | None = None
    scale: int = 0
    charset: str | None = None
    members: tuple[str, ...] = ()
    width: int | None = None
    comment: str | None = None
    default: str | None = None
    default_is_now: bool = False
    generated: bool = False

    @property
    def is_boolean(self) -> bool:
        """TINYINT(1) and BIT(1): what MySQL has for booleans."""
        return (self.kind == "tinyint" and self.width == 1) or (self.kind == "bit" and self.length == 1)

    def informed_by(self, catalog: Column | None) -> Column:
        """This column with what only the catalog knows, if the catalog has a column that may be the same."""
        if catalog is None or catalog.kind != self.kind:
            return self
        return replace(self, width=catalog.width, comment=catalog.comment, default=catalog.default)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A table: its name, columns, primary key and comment.

    `cascades` are foreign keys by which the engine changes rows of this table on its own.
    """

    database: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    engine: str | None = None
    is_versioned: bool = False
    cascades: tuple[str, ...] = ()
    row_bytes: int = 0
    """About as long is a row; 0 if not known."""

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    def column(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def with_booleans(self, names: Iterable[str]) -> TableColumns:
        """This table with display width 1 for these TINYINTs, where the width is not known."""
        booleans = set(names)
        columns = tuple(
            replace(column, width=1)
            if column.kind == "tinyint" and column.width is None and column.name in booleans
            else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def informed_by(self, catalog: TableColumns | None) -> TableColumns:
        """This table with what only the catalog knows."""
        if catalog is None:
            return self
        columns = tuple(column.informed_by(catalog.column(column.name)) for column in self.columns)
        key = self.primary_key or tuple(name for name in catalog.primary_key if self.column(name) is not None)
        return replace(catalog, columns=columns, primary_key=key)


__all__ = ["BLOBS", "GEOMETRIES", "INTEGERS", "TEXTS", "Column", "TableColumns"]
