"""Tags: names for snapshots, which keep what they need from expiring.

A tag file is a copy of the snapshot, so a tag outlives the snapshot's own file. A tag may carry the time after which
it may be removed; whoever removes expired tags decides, not this store.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal

from lakebed.checksums import sealed_json
from lakebed.errors import AlreadyExists, FileMissing, NotFound, did_you_mean
from lakebed.fileio.base import FileIO
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass

_PREFIX = "tag-"


@dataclass(frozen=True, slots=True)
class Tag:
    """A named snapshot. `create_time` is local time, and known only for tags with a time to live (`retained`)."""

    name: str
    snapshot: Snapshot
    create_time: datetime | None = None
    retained: timedelta | None = None

    def to_json(self) -> str:
        """The text of the tag's file."""
        members = self.snapshot.to_members()
        if self.create_time is not None:
            created = self.create_time
            members["tagCreateTime"] = [*created.timetuple()[:6], created.microsecond * 1000]
        if self.retained is not None:
            members["tagTimeRetained"] = self.retained.total_seconds()
        return json.dumps(members, indent=2)

    def to_file(self) -> bytes:
        """The file: the text and its checksum."""
        return sealed_json(self.to_json()).encode()

    @staticmethod
    def from_json(name: str, text: bytes | str, path: str) -> Tag:
        """The tag in a file; `CorruptFile` names `path` when it is not one."""
        file = JsonFile(text, path)
        return Tag(name, Snapshot.from_file(file), _create_time(file), _retained(file))


def _create_time(file: JsonFile) -> datetime | None:
    parts = file.optional_integers("tagCreateTime")
    if parts is None:
        return None
    try:
        # Java leaves out trailing parts that are zero.
        moment = datetime(*parts[:6]) if len(parts) >= 3 else None  # type: ignore[arg-type]
        if moment is None or len(parts) > 7:
            raise ValueError("a date and time have three to seven parts")
        return moment.replace(microsecond=parts[6] // 1000 if len(parts) == 7 else 0)
    except (ValueError, OverflowError) as error:
        raise file.wrong("tagCreateTime", "year, month, day, hour, minute, second and nanoseconds") from error


def _retained(file: JsonFile) -> timedelta | None:
    seconds = file.optional_number("tagTimeRetained")
    if seconds is None:
        return None
    try:
        return timedelta(microseconds=int(seconds * Decimal(1_000_000)))
    except (ArithmeticError, ValueError) as error:
        raise file.wrong("tagTimeRetained", "a number of seconds") from error


class TagStore:
    """The tags of one branch of a table."""

    def __init__(self, fileio: FileIO, paths: TablePaths) -> None:
        self._fileio = fileio
        self._paths = paths

    def names(self) -> tuple[str, ...]:
        """Names of all tags, in alphabetical order."""
        return tuple(sorted(self.modified_ms()))

    def exists(self, name: str) -> bool:
        """Whether there is such a tag."""
        return self._fileio.exists(self._paths.tag_file(name))

    def get(self, name: str) -> Tag:
        """A tag; `NotFound` names the nearest one there is."""
        tag = self._find(name)
        if tag is None:
            raise NotFound(
                f"tag `{name}` of {self._paths.branch_root} does not exist", hint=did_you_mean(name, self.names())
            )
        return tag

    def create(
        self, name: str, snapshot: Snapshot, *, create_time: datetime | None = None, retained: timedelta | None = None
    ) -> Tag:
        """Tag a snapshot; `AlreadyExists` when the name is taken. Without `retained` the tag lives until deleted."""
        tag = _new_tag(name, snapshot, create_time, retained)
        if not self._fileio.create_exclusive(self._paths.tag_file(name), tag.to_file()):
            raise self._taken(name)
        return tag

    def replace(
        self, name: str, snapshot: Snapshot, *, create_time: datetime | None = None, retained: timedelta | None = None
    ) -> Tag:
        """Let an existing tag name another snapshot, or live for another time."""
        self.get(name)
        tag = _new_tag(name, snapshot, create_time, retained)
        self._fileio.overwrite(self._paths.tag_file(name), tag.to_file())
        return tag

    def rename(self, name: str, new_name: str) -> None:
        """Give a tag another name. For a moment it has both, so that nobody finds what it keeps without a tag."""
        tag = self.get(name)
        body = Tag(new_name, tag.snapshot, tag.create_time, tag.retained).to_file()
        if not self._fileio.create_exclusive(self._paths.tag_file(new_name), body):
            raise self._taken(new_name)
        self.delete(name)

    def modified_ms(self) -> dict[str, int]:
        """When each tag's file was written."""
        found = self._fileio.list_directory(self._paths.tag_directory)
        # Markers of tags are in a directory whose name begins like that of a tag.
        files = (s for s in found if s.name.startswith(_PREFIX) and not s.is_directory)
        return {s.name.removeprefix(_PREFIX): s.modified_ms for s in files}

    def delete(self, name: str) -> bool:
        """Delete a tag; false when there was none."""
        return self._fileio.delete(self._paths.tag_file(name))

    def list(self) -> tuple[Tag, ...]:
        """All tags, ordered by snapshot and name."""
        found = (self._find(name) for name in self.names())
        return tuple(sorted(filter(None, found), key=lambda tag: (tag.snapshot.id, tag.name)))

    def find(self, name: str) -> Tag | None:
        """As `get`, but `None` when there is no such tag."""
        return self._find(name)

    def _taken(self, name: str) -> AlreadyExists:
        return AlreadyExists(
            f"tag `{name}` of {self._paths.branch_root} exists already",
            hint="choose another name, or delete or replace the tag",
        )

    def _find(self, name: str) -> Tag | None:
        path = self._paths.tag_file(name)
        try:
            return Tag.from_json(name, self._fileio.read_bytes(path), path)
        except FileMissing:
            return None


def _new_tag(name: str, snapshot: Snapshot, create_time: datetime | None, retained: timedelta | None) -> Tag:
    # The time of creation serves only to tell when the time to live is over.
    created = (create_time or datetime.now()) if retained is not None else None
    return Tag(name, snapshot, created, retained)
