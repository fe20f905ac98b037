"""Names of tables and databases in statements."""

from __future__ import annotations

from lakebed.errors import InvalidArgument
from lakebed.sql.words.cursor import Cursor

CATALOGS = ("lakebed", "paimon")
"""Names under which statements may call the lake's catalog: `paimon.db.t` is `db.t`."""


def quoted(name: str) -> str:
    """A name in the quotes of SQL."""
    return "`" + name.replace("`", "``") + "`"


def read_table(cursor: Cursor) -> str:
    """A table's name as `Lake.table` takes it: `t`, `db.t`, `db.t$branch_b`."""
    return table_name(cursor.path("a table's name"))


def read_database(cursor: Cursor) -> str:
    """A database's name."""
    return database_name(cursor.path("a database's name"))


def table_name(parts: tuple[str, ...]) -> str:
    """The parts as one name, without the name of the catalog."""
    return ".".join(_within_catalog(parts, 3, "table"))


def database_name(parts: tuple[str, ...]) -> str:
    """The parts as one name, without the name of the catalog."""
    return ".".join(_within_catalog(parts, 2, "database"))


def _within_catalog(parts: tuple[str, ...], most: int, what: str) -> tuple[str, ...]:
    if any("." in part for part in parts):
        raise InvalidArgument(f"{what} name `{'.'.join(parts)}` has a dot within quotes", hint="quote each part alone")
    if len(parts) == most and parts[0].lower() in CATALOGS:
        return parts[1:]
    if len(parts) >= most:
        raise InvalidArgument(
            f"{what} `{'.'.join(parts)}` is in catalog `{parts[0]}`, which is not this lake",
            hint=f"leave the catalog out, or call it `{CATALOGS[0]}`",
        )
    return parts
