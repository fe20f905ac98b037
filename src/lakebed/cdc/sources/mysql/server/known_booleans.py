"""Which columns are or once were TINYINT(1): the log only says TINYINT, and the catalog forgets what is dropped.

Rows that were logged before a boolean column was dropped or renamed would come as numbers, which do not fit what the
lake has. So names are noted while the catalog has them, and are never taken away.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.server import Server, rows
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import FileMissing

_FILE: Final = "booleans.json"
_REFRESH_S: Final = 10.0
_QUERY: Final = """
SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE data_type = 'tinyint' AND column_type LIKE 'tinyint(1)%'
"""

Booleans = dict[str, list[str]]
"""Names of columns by `[database, table]`, as a JSON text."""


def table_key(database: str, table: str) -> str:
    """What stands for a table."""
    return json.dumps([database, table], ensure_ascii=False)


class KnownBooleans:
    """The notes of one stream, in a directory beside its checkpoint if there is one."""

    def __init__(self, directory: str | None, storage: Storage = PLAIN) -> None:
        self.names: Booleans = {}
        self._asked = float("-inf")
        self._fileio: Any = None
        if directory is not None:
            self._fileio, self._root = storage.open(directory)
            try:
                self.names = json.loads(self._fileio.read_bytes(f"{self._root}/{_FILE}"))
            except FileMissing:
                self.names = {}

    def refresh(self, server: Server, follow: Follow) -> None:
        """Notes what the catalog has now, unless it was asked a moment ago."""
        now = time.monotonic()
        if now - self._asked < _REFRESH_S:
            return
        self._asked = now
        is_new = False
        for database, table, column in rows(server.connection, _QUERY):
            if follow.matches(database, table):
                known = self.names.setdefault(table_key(database, table), [])
                if column not in known:
                    known.append(column)
                    is_new = True
        if is_new and self._fileio is not None:
            self._fileio.make_directory(self._root)
            content = json.dumps(self.names, ensure_ascii=False).encode()
            self._fileio.overwrite(f"{self._root}/{_FILE}", content)


__all__ = ["Booleans", "KnownBooleans", "table_key"]
