"""New copies of tables that somebody asks for: small files beside the checkpoint, until the sync has planned them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Final

from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import FileMissing

_SUFFIX: Final = ".json"


class CopyRequests:
    """The requests of one sync. A table is named by its schema, or its database where there are none, and its name."""

    def __init__(self, state: str, storage: Storage = PLAIN) -> None:
        self._fileio, root = storage.open(state)
        self._root = f"{root}/requests"

    def ask(self, tables: Sequence[tuple[str, str]]) -> None:
        """Asks for a new copy of tables, which takes the place of the old one."""
        self._fileio.make_directory(self._root)
        body = json.dumps({"tables": [list(table) for table in tables]}, ensure_ascii=False)
        self._fileio.create_exclusive(f"{self._root}/{uuid.uuid4().hex}{_SUFFIX}", body.encode())

    def all(self) -> dict[str, list[tuple[str, str]]]:
        """What was asked for and is not planned yet, by the id of the request."""
        found = {}
        for entry in self._fileio.list_directory(self._root):
            if entry.name.endswith(_SUFFIX):
                try:
                    body = json.loads(self._fileio.read_bytes(f"{self._root}/{entry.name}"))
                except FileMissing:
                    continue
                found[entry.name.removesuffix(_SUFFIX)] = [(schema, table) for schema, table in body["tables"]]
        return found

    def forget(self, request: str) -> None:
        """A request is planned."""
        self._fileio.delete(f"{self._root}/{request}{_SUFFIX}")


__all__ = ["CopyRequests"]
