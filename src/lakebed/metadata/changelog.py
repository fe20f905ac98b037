"""Changelogs that outlive their snapshots: a copy of the snapshot's JSON file, under a name and with hints of its own.

Where changelogs are kept longer than snapshots, expiry leaves such a copy, so that readers of changes still find what
the snapshot added. Ids go on where those of the snapshots begin. This store moves the small JSON files only; the files
they name are the business of whoever expires them.
"""

from __future__ import annotations

from dataclasses import replace

from lakebed.errors import FileMissing, NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import Snapshot

_PREFIX = "changelog"


class ChangelogStore:
    """The long-lived changelogs of one branch of a table. A changelog has the members of the snapshot it was."""

    def __init__(self, fileio: FileIO, paths: TablePaths) -> None:
        self._fileio = fileio
        self._paths = paths

    def get(self, snapshot_id: int) -> Snapshot:
        """The snapshot behind a changelog; `NotFound` says which changelogs there are."""
        found = self.find(snapshot_id)
        if found is None:
            ids = self.ids()
            there_are = f"there are changelogs {ids[0]} to {ids[-1]}" if ids else "no changelog outlived its snapshot"
            raise NotFound(
                f"changelog {snapshot_id} of {self._paths.branch_root} does not exist",
                hint=f"{there_are}: choose one of these, or a snapshot",
            )
        return found

    def find(self, snapshot_id: int) -> Snapshot | None:
        """As `get`, but `None` when there is no such changelog."""
        path = self._paths.changelog_file(snapshot_id)
        try:
            snapshot = Snapshot.from_json(self._fileio.read_bytes(path), path)
        except FileMissing:
            return None
        return snapshot if snapshot.id == snapshot_id else replace(snapshot, id=snapshot_id)

    def ids(self) -> list[int]:
        """Ids of all changelogs, ascending, by listing the directory."""
        names = (status.name for status in self._fileio.list_directory(self._paths.changelog_directory))
        return sorted(
            int(number)
            for prefix, _, number in (name.partition("-") for name in names)
            if prefix == _PREFIX and number.isascii() and number.isdigit()
        )

    def earliest_id(self) -> int | None:
        """Id of the oldest changelog; `None` when there is none."""
        hint = self._hint(self._paths.changelog_earliest_hint)
        if hint is not None and self._fileio.exists(self._paths.changelog_file(hint)):
            return hint
        return min(self.ids(), default=None)

    def latest_id(self) -> int | None:
        """Id of the newest changelog; `None` when there is none."""
        hint = self._hint(self._paths.changelog_latest_hint)
        if hint is not None and self._exists(hint) and not self._exists(hint + 1):
            return hint
        return max(self.ids(), default=None)

    # For expiry only

    def put(self, snapshot: Snapshot) -> None:
        """Leave a copy of a snapshot. A second time it replaces the same content, so a repeated expiry is harmless."""
        self._fileio.overwrite(self._paths.changelog_file(snapshot.id), snapshot.to_json().encode())

    def delete(self, snapshot_id: int) -> bool:
        """Delete a changelog file, and only that; false when there was none."""
        return self._fileio.delete(self._paths.changelog_file(snapshot_id))

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Say which changelog is the newest. Only once it is there: other readers trust this blindly."""
        self._fileio.overwrite(self._paths.changelog_latest_hint, str(snapshot_id).encode())

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Say which changelog is the oldest."""
        self._fileio.overwrite(self._paths.changelog_earliest_hint, str(snapshot_id).encode())

    def delete_hints(self) -> None:
        """Say nothing about newest and oldest: before the last changelog goes."""
        self._fileio.delete(self._paths.changelog_latest_hint)
        self._fileio.delete(self._paths.changelog_earliest_hint)

    # Private

    def _exists(self, snapshot_id: int) -> bool:
        return self._fileio.exists(self._paths.changelog_file(snapshot_id))

    def _hint(self, path: str) -> int | None:
        try:
            text = self._fileio.read_bytes(path).strip()
        except FileMissing:
            return None
        return int(text) if text.isdigit() and len(text) < 20 else None
