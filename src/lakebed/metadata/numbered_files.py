"""Files named by the ids of snapshots, and the two hints that name the oldest and the newest of them.

A hint is only a hint: a file that is there, and nothing after it, proves it; otherwise the directory is listed.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import FileMissing
from lakebed.fileio.base import FileIO
from lakebed.fileio.glance import newest_number
from lakebed.fileio.local import list_names
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """The files `<prefix>-<id>` of a directory. `path_of` gives the path of an id."""

    fileio: FileIO
    directory: str
    prefix: str
    path_of: Callable[[int], str]
    latest_hint: str
    earliest_hint: str

    def exists(self, number: int) -> bool:
        """Whether the file is there."""
        return self.fileio.exists(self.path_of(number))

    def read(self, number: int) -> bytes | None:
        """What is in the file; `None` when it is not there."""
        try:
            return self.fileio.read_bytes(self.path_of(number))
        except FileMissing:
            return None

    def delete(self, number: int) -> bool:
        """Delete the file, and only that; false when there was none."""
        return self.fileio.delete(self.path_of(number))

    def ids(self) -> list[int]:
        """All ids, ascending, by listing the directory."""
        names = list_names(self.fileio, self.directory)
        return sorted(
            int(number)
            for prefix, _, number in (name.partition("-") for name in names)
            if prefix == self.prefix and number.isascii() and number.isdigit()
        )

    def latest_id(self) -> int | None:
        """The largest id; `None` when there is no file."""
        seen = newest_number(self.fileio, self.directory)
        if seen is not None:
            return seen
        hint = self.hint(self.latest_hint)
        if hint is not None and self.exists(hint) and not self.exists(hint + 1):
            return hint
        return max(self.ids(), default=None)

    def earliest_id(self) -> int | None:
        """The smallest id; `None` when there is no file."""
        hint = self.hint(self.earliest_hint) or 1  # nothing is older than the first
        if self.exists(hint):
            return hint
        return min(self.ids(), default=None)

    def write_latest_hint(self, number: int) -> None:
        """Say which is the newest. Only once it is there: other readers trust this blindly."""
        self.write_hint(self.latest_hint, number)

    def write_earliest_hint(self, number: int) -> None:
        """Say which is the oldest."""
        self.write_hint(self.earliest_hint, number)

    def hint(self, path: str) -> int | None:
        """The id in a hint; `None` when it is not there, or says nothing of use."""
        try:
            text = self.fileio.read_bytes(path).strip()
        except FileMissing:
            return None
        # At most 19 digits: an id is a 64-bit number, anything longer is garbage.
        return int(text) if text.isdigit() and len(text) < 20 else None

    def write_hint(self, path: str, number: int) -> None:
        """Make a hint say an id."""
        self.fileio.overwrite(path, str(number).encode())


__all__ = ["NumberedFiles"]
