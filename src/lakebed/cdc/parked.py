"""Tables of a sync that are parked: left as they are because of a trouble of their own, while the others go on.

What is parked, why and since which position stands in a file beside the checkpoint, so that a restart knows, and that
`lakebed cdc status` and `resume` know without asking the sync.

INVARIANT: a table is in the file before the batch that it lacks is noted as done. A batch that is noted is never asked
for again, so only a new copy of the table, which begins with a TRUNCATE, may take it out of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from lakebed.cdc.storage import PLAIN, Storage
from lakebed.clock import SystemClock
from lakebed.errors import FileMissing, LakebedError
from lakebed.records import dataclass

_FILE: Final = "lakebed-parked.json"


@dataclass(frozen=True, slots=True)
class ParkedTable:
    """A table of the lake that does not follow its source just now."""

    table: str
    sources: tuple[str, ...]
    why: str
    hint: str
    position: str | None
    """The end of the first batch that it lacks, in the words of the checkpoint."""
    since_ms: int


class ParkedTables:
    """The file of one sync. Only the process that makes its batches writes it."""

    def __init__(self, checkpoint: str, storage: Storage = PLAIN) -> None:
        self._checkpoint = checkpoint
        self._storage = storage
        self._known: dict[str, ParkedTable] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_checkpoint": self._checkpoint, "_storage": self._storage, "_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __contains__(self, table: str) -> bool:
        return table in self.all()

    def all(self) -> dict[str, ParkedTable]:
        """All of them, by the name in the lake."""
        if self._known is None:
            self._known = read_parked(self._checkpoint, self._storage) if self._checkpoint else {}
        return self._known

    def park(self, table: str, sources: Iterable[str], error: LakebedError, position: str | None) -> ParkedTable:
        """Notes that a table lacks a batch; what was said of one that is parked already stays, but for the reason."""
        known = self.all().get(table)
        parked = ParkedTable(
            table,
            tuple(sorted({*sources, *(known.sources if known is not None else ())})),
            error.message,
            error.hint,
            known.position if known is not None else position,
            known.since_ms if known is not None else SystemClock().now_ms(),
        )
        if known is None or (known.why, known.sources) != (parked.why, parked.sources):
            self._write({**self.all(), table: parked})
        return parked

    def take_back(self, tables: Iterable[str]) -> None:
        """Tables that have been copied anew follow their sources again."""
        gone = {*tables} & self.all().keys()
        if gone:
            self._write({name: parked for name, parked in self.all().items() if name not in gone})

    def _write(self, tables: dict[str, ParkedTable]) -> None:
        if self._checkpoint:
            fileio, root = self._storage.open(self._checkpoint)
            fileio.make_directory(root)
            body = {name: asdict(parked) for name, parked in sorted(tables.items())}
            fileio.overwrite(f"{root}/{_FILE}", json.dumps(body, ensure_ascii=False, indent=2).encode())
        self._known = tables  # not before: what is not in the file is not parked


def read_parked(checkpoint: str, storage: Storage = PLAIN) -> dict[str, ParkedTable]:
    """The tables that are parked, as the sync has written it last."""
    fileio, root = storage.open(checkpoint)
    try:
        body = json.loads(fileio.read_bytes(f"{root}/{_FILE}"))
    except FileMissing:
        return {}
    return {name: ParkedTable(**{**each, "sources": tuple(each["sources"])}) for name, each in body.items()}


__all__ = ["ParkedTable", "ParkedTables", "read_parked"]
