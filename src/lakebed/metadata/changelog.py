"""Changelogs that outlive their snapshots: a copy of the snapshot's JSON file, under a name and with hints of its own.

Where changelogs are kept longer than snapshots, expiry leaves such a copy, so that readers of changes still find what
the snapshot added. Ids go on where those of the snapshots begin. This store moves the small JSON files only; the files
they name are the business of whoever expires them.
"""

from __future__ import annotations

from lakebed.errors import NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.numbered_files import NumberedFiles
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import Snapshot, numbered_snapshot

_PREFIX = "changelog"


class ChangelogStore:
    """The long-lived changelogs of one branch of a table. A changelog has the members of the snapshot it was."""

    def __init__(self, fileio: FileIO, paths: TablePaths) -> None:
        self._fileio = fileio
        self._paths = paths
        self._files = NumberedFiles(
            fileio,
            paths.changelog_directory,
            _PREFIX,
            paths.changelog_file,
            paths.changelog_latest_hint,
            paths.changelog_earliest_hint,
        )

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
        return numbered_snapshot(self._files, snapshot_id)

    def ids(self) -> list[int]:
        """Ids of all changelogs, ascending, by listing the directory."""
        return self._files.ids()

    def earliest_id(self) -> int | None:
        """Id of the oldest changelog; `None` when there is none."""
        return self._files.earliest_id()

    def latest_id(self) -> int | None:
        """Id of the newest changelog; `None` when there is none."""
        return self._files.latest_id()

    # For expiry only

    def put(self, snapshot: Snapshot) -> None:
        """Leave a copy of a snapshot. A second time it replaces the same content, so a repeated expiry is harmless."""
        self._fileio.overwrite(self._paths.changelog_file(snapshot.id), snapshot.to_file())

    def delete(self, snapshot_id: int) -> bool:
        """Delete a changelog file, and only that; false when there was none."""
        return self._files.delete(snapshot_id)

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Say which changelog is the newest. Only once it is there: other readers trust this blindly."""
        self._files.write_latest_hint(snapshot_id)

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Say which changelog is the oldest."""
        self._files.write_earliest_hint(snapshot_id)

    def delete_hints(self) -> None:
        """Say nothing about newest and oldest: before the last changelog goes."""
        self._fileio.delete(self._paths.changelog_latest_hint)
        self._fileio.delete(self._paths.changelog_earliest_hint)
