"""Rows of one bucket that deletion vectors mark: those that are gone already, and those that a compaction replaces.

A compaction that brings new rows up finds the old rows of their keys in files that stay, and marks them there instead
of rewriting the files. Used from several threads at once.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import NO_POSITIONS, DeletionVectorStore, Positions
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.table.context import TableContext
from lakebed.table.vectors import mark_rows


class BucketMarks:
    """Marks of one bucket, on top of those that the index files of a snapshot hold."""

    def __init__(self, context: TableContext, store: DeletionVectorStore, entries: Sequence[IndexEntry]) -> None:
        self._context = context
        self._store = store
        self._entries = entries
        self.vectors = store.places(entries)
        self._before: dict[str, Positions] = {}
        self._marked: dict[str, list[Positions]] = defaultdict(list)
        self._lock = threading.Lock()

    def is_marked(self, file: DataFile) -> bool:
        """Whether rows of a file are gone."""
        return file.file_name in self.vectors

    def alive(self, file: DataFile, positions: Positions) -> npt.NDArray[np.bool_]:
        """Which of these rows of a file were there when the compaction began."""
        place = self.vectors.get(file.file_name)
        if place is None:
            return np.ones(len(positions), dtype=np.bool_)
        with self._lock:
            before = self._before.get(file.file_name)
            if before is None:
                before = self._before[file.file_name] = self._store.read(place)
        return ~np.isin(positions, before)

    def mark(self, file: DataFile, positions: Positions) -> None:
        """Says that rows of a file are replaced."""
        if len(positions):
            with self._lock:
                self._marked[file.file_name].append(positions)

    def index_files(
        self, partition: bytes, bucket: int, gone: Collection[str]
    ) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
        """Index files that come, and those that go for them; `gone` are data files that need no marks any more."""
        vectors = {
            name: np.union1d(self._vector(name), np.concatenate(parts))
            for name, parts in self._marked.items()
            if name not in gone
        }
        if not vectors:
            return (), ()
        removed, added = mark_rows(self._context, self._store, self._entries, {(partition, bucket): vectors}, gone)
        return tuple(added), tuple(removed)

    def _vector(self, name: str) -> Positions:
        place = self.vectors.get(name)
        return NO_POSITIONS if place is None else self._store.read(place)


__all__ = ["BucketMarks"]
