"""Small manifests that were read lately: a writer that commits again and again need not decode them each time.

Manifests never change under their names, so what was read once stays true. Large ones are left out: they are read
seldom, and would push out the many small ones that each commit looks at.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebed.metadata.manifest import ManifestEntry

_LARGEST_BYTES = 128 << 10
_MOST_BYTES = 2 << 20
"""Of the files; the entries in memory take about ten times as much."""


class ManifestCache:
    """Entries of manifests by path, the least recently used ones forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, tuple[ManifestEntry, ...]]] = OrderedDict()
        self._size_bytes = 0

    def get(self, path: str, size_bytes: int | None) -> list[ManifestEntry] | None:
        """The entries, if they are known and the file is as large as it should be."""
        with self._lock:
            found = self._kept.get(path)
            if found is None or size_bytes not in (None, found[0]):
                return None
            self._kept.move_to_end(path)
            return list(found[1])

    def put(self, path: str, size_bytes: int, entries: Sequence[ManifestEntry]) -> None:
        """Keeps the entries of a file."""
        if size_bytes > _LARGEST_BYTES:
            return
        with self._lock:
            if path not in self._kept:
                self._size_bytes += size_bytes
            self._kept[path] = (size_bytes, tuple(entries))
            while self._size_bytes > _MOST_BYTES:
                _, (gone_bytes, _) = self._kept.popitem(last=False)
                self._size_bytes -= gone_bytes


__all__ = ["ManifestCache"]
