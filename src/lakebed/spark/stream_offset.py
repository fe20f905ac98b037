"""Where a streaming query stands, as Spark keeps it in the query's checkpoint: a stream position, and what proves it.

A position inside a snapshot counts pieces, so it holds only while the snapshot is cut into the same pieces: the offset
names what lies behind it. And Spark forgets where a query began: if the first batch fails and the query is started
again, it asks for the beginning once more, which may be elsewhere by then. So the end of the first batch knows it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.errors import InvalidArgument
from lakebed.table.stream_position import StreamPosition
from lakebed.table.stream_splits import ChangeSplit


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """`behind` is the fingerprint of the pieces of the snapshot that are read already, 0 if there are none."""

    position: StreamPosition
    behind: int = 0
    is_first: bool = False
    """Whether the query begins here."""
    began: StreamPosition | None = None
    """Where the query began, if this is the end of its first batch."""

    def to_members(self) -> dict[str, Any]:
        """As JSON takes it."""
        members = self.position.to_members()
        if self.behind:
            members["behind"] = self.behind
        if self.is_first:
            members["first"] = True
        if self.began is not None:
            members["began"] = self.began.to_members()
        return members

    @staticmethod
    def from_members(members: Any) -> StreamOffset:
        """The offset that `to_members` gave."""
        if not isinstance(members, Mapping):
            raise InvalidArgument(f"{members!r} is no offset of a stream", hint="start with a new checkpoint directory")
        rest = dict(members)
        behind, is_first, began = rest.pop("behind", 0), rest.pop("first", False), rest.pop("began", None)
        return StreamOffset(
            StreamPosition.from_members(rest),
            int(behind),
            bool(is_first),
            None if began is None else StreamPosition.from_members(began),
        )

    def begins(self, end: StreamOffset) -> StreamOffset:
        """Where the batch that ends there begins: here, unless this is only where the query would begin by now."""
        return StreamOffset(end.began, is_first=True) if self.is_first and end.began is not None else self


def fingerprint(pieces: Iterable[ChangeSplit]) -> int:
    """A number that tells these pieces from others, and from none."""
    number = 0
    for piece in pieces:
        number = zlib.crc32(" ".join(file.file_name for file in piece.split.files).encode() + b"\n", number)
    return number


__all__ = ["StreamOffset", "fingerprint"]
