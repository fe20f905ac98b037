"""How far a stream is: how many parts of the copy are done, and up to where the log is read.

Spark writes it down before a batch is read, so it may hold nothing that only reading tells. Both numbers only grow; a
batch moves one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.cdc.sources.postgres.lsn import format_lsn, parse_lsn
from lakebed.errors import InvalidData


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


__all__ = ["Offset"]
