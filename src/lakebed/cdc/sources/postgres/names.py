"""Names and values in SQL text: the one place that quotes them.

Whatever a database calls its schemas, tables and columns must reach the server as a name, never as SQL. Statements
with parameters are preferred; these functions serve where the server takes none (DDL, COPY, replication commands).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.errors import InvalidArgument, InvalidData
from lakebed.records import dataclass


def quote_name(name: str) -> str:
    """A name in double quotes."""
    _refuse_zero(name)
    return '"' + name.replace('"', '""') + '"'


def quote_table(schema: str, table: str) -> str:
    """A qualified table name."""
    return f"{quote_name(schema)}.{quote_name(table)}"


def quote_value(text: str) -> str:
    """A string literal that means the same whatever `standard_conforming_strings` says."""
    _refuse_zero(text)
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if "\\" not in text else " E" + quoted.replace("\\", "\\\\")


def quote_option(text: str) -> str:
    """A string literal of a replication command, whose grammar knows doubled quotes only: backslashes are plain."""
    _refuse_zero(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_zero(text: str) -> None:
    if "\0" in text:
        raise InvalidArgument("a name or value holds a zero byte", hint="PostgreSQL has no such names; remove it")


# --- Positions in the write-ahead log: 64-bit numbers, written as two hexadecimal halves --------------------------


def parse_lsn(text: str) -> int:
    """The number of a position such as `16/B374D848`."""
    high, slash, low = text.partition("/")
    try:
        if not slash:
            raise ValueError(text)
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise InvalidData(f"`{text}` is no position in the log", hint="a position looks like 16/B374D848") from None


def format_lsn(lsn: int) -> str:
    """The text of a position."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


# --- How far a stream is: how many parts of the copy are done, and up to where the log is read --------------------
#
# Spark writes it down before a batch is read, so it may hold nothing that only reading tells. Both numbers only grow;
# a batch moves one of them.


@dataclass(frozen=True, slots=True)
class Offset:
    """Parts of the copy before `chunks` are done, transactions before `lsn` are read."""

    chunks: int
    lsn: int

    def to_json(self) -> dict[str, Any]:
        """The object that Spark stores."""
        return {"chunks": self.chunks, "lsn": format_lsn(self.lsn)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Offset:
        """Inverse of `to_json`."""
        try:
            return cls(int(body["chunks"]), parse_lsn(str(body["lsn"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidData(
                f"{dict(body)} is no position of a PostgreSQL source",
                hint="the checkpoint belongs to another source; choose a new one",
            ) from error


__all__ = ["Offset", "format_lsn", "parse_lsn", "quote_name", "quote_option", "quote_table", "quote_value"]
