"""How far a sync is with all of its tables together: a small file beside them, in the directory of their database.

A sync commits each batch to each table by itself, and a batch without rows for a table is no commit there. So no table
can say which state of the others goes with its own; this file does.

INVARIANT: it is written when all tables have the batch that it names, never before: it may be behind the tables, and
who reads no more than it names never sees half of a transaction. It is the sync's alone to write, lies in no table, and
so goes with the database only; no cleaning of a table touches it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from lakebed.checksums import sealed_json
from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO
from lakebed.metadata.corruption import corrupt
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.paths import TablePaths, escape
from lakebed.records import dataclass

_DIRECTORY = ".syncs"
_SUFFIX = ".json"
_MOST_STRETCHES = 256
"""So many stretches of batches are remembered; a new one begins only after tables were copied."""


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """A table of a sync: the last batch that is a commit there (0: none), and which tables of the source it holds."""

    last: int = 0
    sources: tuple[str, ...] = ()
    lost: str = ""
    """Why it lacks changes that the others have; empty if it does not."""


@dataclass(frozen=True, slots=True)
class SyncNote:
    """What is written down of a sync."""

    user: str
    """Who commits its batches."""
    source: str
    """The kind of source."""
    started_ms: int
    keeps_transactions: bool
    """Whether a batch ends where a transaction of the source does."""
    batch: int = 0
    """The last batch that all tables have."""
    position: str | None = None
    """Where the source was at the last batch at which all tables are as of one position, in the source's words."""
    stretches: tuple[tuple[int, int], ...] = ()
    """First and last of batches in a row at which all tables are as of one position; not while tables are copied."""
    tables: Mapping[str, SyncedTable] = field(default_factory=dict)

    def cut_at(self, most: int | None = None) -> int | None:
        """The newest batch, up to one, at which all tables are as of one position; None if there is none."""
        for first, last in reversed(self.stretches):
            if most is None or most >= first:
                return last if most is None else min(most, last)
        return None

    def after(self, batch: int, position: str | None) -> SyncNote:
        """With one more batch; `position` is None if the tables are not as of one position then."""
        if position is None:
            return replace(self, batch=batch)
        *others, (first, last) = self.stretches or ((batch, batch),)
        grown = (*others, (first, max(last, batch))) if batch <= last + 1 else (*others, (first, last), (batch, batch))
        return replace(self, batch=batch, position=position, stretches=grown[-_MOST_STRETCHES:])

    def with_tables(self, tables: Mapping[str, SyncedTable]) -> SyncNote:
        """With other things known of some tables."""
        return replace(self, tables={**self.tables, **tables})

    def to_file(self) -> bytes:
        """The content of the file."""
        members = {
            "user": self.user,
            "source": self.source,
            "startedMillis": self.started_ms,
            "keepsTransactions": str(self.keeps_transactions).lower(),
            "batch": self.batch,
            "position": self.position,
            "stretches": {str(first): last for first, last in self.stretches},
            "tables": {
                name: {"last": each.last, "sources": list(each.sources), "lost": each.lost}
                for name, each in sorted(self.tables.items())
            },
        }
        return sealed_json(json.dumps(members, ensure_ascii=False, indent=2)).encode()

    @staticmethod
    def from_file(content: bytes, path: str) -> SyncNote:
        """Inverse of `to_file`."""
        file = JsonFile(content, path)
        try:
            return SyncNote(
                file.text("user"),
                file.text("source"),
                file.integer("startedMillis"),
                file.text("keepsTransactions") == "true",
                file.integer("batch"),
                file.optional_text("position"),
                tuple((int(first), int(last)) for first, last in (file.optional_object("stretches") or {}).items()),
                {name: _table(each) for name, each in (file.optional_object("tables") or {}).items()},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise corrupt(path, f"it is no note of a sync ({error})") from error


def _table(members: Mapping[str, Any]) -> SyncedTable:
    return SyncedTable(int(members["last"]), tuple(map(str, members["sources"])), str(members["lost"]))


class SyncNoteStore:
    """The notes of all syncs into one database."""

    def __init__(self, fileio: FileIO, database: str) -> None:
        self._fileio = fileio
        self.directory = f"{database}/{_DIRECTORY}"

    @staticmethod
    def beside(fileio: FileIO, table: TablePaths) -> SyncNoteStore:
        """That of the database in which a table lies."""
        return SyncNoteStore(fileio, table.root.rpartition("/")[0])

    def read(self, user: str) -> SyncNote | None:
        """The note of a sync; None if it has written none."""
        path = self._path(user)
        try:
            return SyncNote.from_file(self._fileio.read_bytes(path), path)
        except FileMissing:
            return None

    def all(self) -> list[SyncNote]:
        """The notes of all syncs, that of the last one to begin first."""
        found = []
        for entry in self._fileio.list_directory(self.directory):
            if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                try:
                    found.append(SyncNote.from_file(self._fileio.read_bytes(entry.path), entry.path))
                except FileMissing:
                    continue  # its database is being dropped
        return sorted(found, key=lambda note: (note.started_ms, note.user), reverse=True)

    def write(self, note: SyncNote) -> None:
        """Puts a note in the place of the sync's last one."""
        self._fileio.make_directory(self.directory)
        self._fileio.overwrite(self._path(note.user), note.to_file())

    def _path(self, user: str) -> str:
        return f"{self.directory}/{escape(user)}{_SUFFIX}"


__all__ = ["SyncNote", "SyncNoteStore", "SyncedTable"]
