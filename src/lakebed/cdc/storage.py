"""How what lies beside a checkpoint is opened: with the options of the lake, wherever that is done.

Payloads and the notes of a source are written and read by the driver and by tasks. They can lie where the lake does, in
an object store, whose keys must be in no option of a stream: Spark shows those in plans and logs. So the options travel
inside of what is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakebed.fileio import FileIO, open_fileio


class Storage:
    """Opens files with options that it shows to nobody.

    What lies below `root` is opened once, where the storage is made: keys that the environment has there go along.
    """

    def __init__(self, options: Mapping[str, str] | None = None, root: str | None = None) -> None:
        self._options = dict(options or {})
        self._root = None if root is None else root.rstrip("/")
        self._opened = None if self._root is None else open_fileio(self._root, self._options)

    def open(self, url: str) -> tuple[FileIO, str]:
        """The file system of a path or URL, and the path to use with it."""
        if self._opened is not None and self._root is not None and url.startswith(f"{self._root}/"):
            fileio, path = self._opened
            return fileio, f"{path}{url.removeprefix(self._root)}".rstrip("/")
        return open_fileio(url, self._options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and (other._options, other._root) == (self._options, self._root)

    def __hash__(self) -> int:
        return hash((frozenset(self._options.items()), self._root))

    def __repr__(self) -> str:
        return "<Storage>"


PLAIN: Final = Storage()
"""What needs no options: a local directory, or a store whose keys the environment has."""

__all__ = ["PLAIN", "Storage"]
