"""Snapshots: one small JSON file per version of a table, and the rules by which the newest one is found.

Publishing a snapshot file is the moment a commit happens, so `publish` creates it exclusively and nothing else writes
one. `LATEST` and `EARLIEST` are hints only: a process may die between a snapshot and its hint, and other writers may
leave them behind or ahead, so a hint is believed only where the files beside it bear it out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from lakebed.checksums import sealed_json
from lakebed.errors import FileMissing, NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.json_file import INT64_MAX, JsonFile
from lakebed.metadata.numbered_files import NumberedFiles
from lakebed.metadata.operation import readable_members, split_operation
from lakebed.metadata.paths import TablePaths
from lakebed.notebook import html_table, moment
from lakebed.records import dataclass

BATCH_COMMIT_IDENTIFIER = INT64_MAX
"""Commit identifier of a commit that is not part of a stream."""
_MOST_PARSED = 16
_ATTEMPTS = 10
"""How often to start over when snapshots expire, or are rolled back, while we look at them."""


class CommitKind(StrEnum):
    """What a commit did."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One version of a table. State = base list + delta list; the delta list alone is what this commit changed."""

    id: int
    schema_id: int
    base_manifest_list: str
    base_manifest_list_size: int | None = None
    delta_manifest_list: str
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None
    writer_version: str | None = None
    uuid: str | None = None
    version: int = 3

    def __repr__(self) -> str:
        return (
            f"<snapshot {self.id}: {self.operation or self.commit_kind}, {self.delta_record_count:+} records "
            f"of {self.total_record_count}, {moment(self.time_millis)}>"
        )

    def _repr_html_(self) -> str:
        return Snapshots([self])._repr_html_()

    @staticmethod
    def before_first(schema_id: int) -> Snapshot:
        """What a table shows before its first commit: no rows. It is in no file, and has no lists."""
        return Snapshot(
            id=0,
            schema_id=schema_id,
            base_manifest_list="",
            delta_manifest_list="",
            commit_user="",
            commit_identifier=0,
            commit_kind=CommitKind.APPEND,
            time_millis=0,
            total_record_count=0,
            delta_record_count=0,
        )

    def to_members(self) -> dict[str, Any]:
        """The JSON members of the file, those without a value left out."""
        members = {
            "version": self.version,
            "uuid": self.uuid,
            "id": self.id,
            "schemaId": self.schema_id,
            "baseManifestList": self.base_manifest_list,
            "baseManifestListSize": self.base_manifest_list_size,
            "deltaManifestList": self.delta_manifest_list,
            "deltaManifestListSize": self.delta_manifest_list_size,
            "changelogManifestList": self.changelog_manifest_list,
            "changelogManifestListSize": self.changelog_manifest_list_size,
            "indexManifest": self.index_manifest,
            "commitUser": self.commit_user,
            "commitIdentifier": self.commit_identifier,
            "commitKind": str(self.commit_kind),
            "timeMillis": self.time_millis,
            "totalRecordCount": self.total_record_count,
            "deltaRecordCount": self.delta_record_count,
            "changelogRecordCount": self.changelog_record_count,
            "watermark": self.watermark,
            "statistics": self.statistics,
            "properties": None if self.properties is None else dict(self.properties),
            "nextRowId": self.next_row_id,
            "operation": self.operation,
            "writerVersion": self.writer_version,
        }
        return readable_members({key: value for key, value in members.items() if value is not None})

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(self.to_members(), indent=2)

    def to_file(self) -> bytes:
        """The file: the text and its checksum."""
        return sealed_json(self.to_json()).encode()

    @staticmethod
    def from_json(text: bytes | str, path: str) -> Snapshot:
        """The snapshot in a file; `CorruptFile` names `path` when it is not one."""
        return Snapshot.from_file(JsonFile(text, path))

    @staticmethod
    def from_file(file: JsonFile) -> Snapshot:
        """The snapshot in a parsed file, which may be a tag as well."""
        kind = file.text("commitKind")
        if kind not in CommitKind.__members__:
            raise file.wrong("commitKind", "one of " + ", ".join(CommitKind))
        writer = file.optional_text("writerVersion")
        operation, properties = split_operation(
            file.optional_text("operation"), file.optional_text_map("properties"), writer
        )
        return Snapshot(
            version=file.optional_integer("version") or 3,
            uuid=file.optional_text("uuid"),
            id=file.integer("id"),
            schema_id=file.integer("schemaId"),
            base_manifest_list=file.text("baseManifestList"),
            base_manifest_list_size=file.optional_integer("baseManifestListSize"),
            delta_manifest_list=file.text("deltaManifestList"),
            delta_manifest_list_size=file.optional_integer("deltaManifestListSize"),
            changelog_manifest_list=file.optional_text("changelogManifestList"),
            changelog_manifest_list_size=file.optional_integer("changelogManifestListSize"),
            index_manifest=file.optional_text("indexManifest"),
            commit_user=file.text("commitUser"),
            commit_identifier=file.integer("commitIdentifier"),
            commit_kind=CommitKind(kind),
            time_millis=file.integer("timeMillis"),
            total_record_count=file.integer("totalRecordCount"),
            delta_record_count=file.integer("deltaRecordCount"),
            changelog_record_count=file.optional_integer("changelogRecordCount"),
            watermark=file.optional_integer("watermark"),
            statistics=file.optional_text("statistics"),
            properties=properties,
            next_row_id=file.optional_integer("nextRowId"),
            operation=operation,
            writer_version=writer,
        )


def numbered_snapshot(files: NumberedFiles, snapshot_id: int) -> Snapshot | None:
    """The snapshot in one of these files; `None` when it is not there."""
    content = files.read(snapshot_id)
    return None if content is None else _parsed(content, files, snapshot_id)


def _parsed(content: bytes, files: NumberedFiles, snapshot_id: int) -> Snapshot:
    snapshot = Snapshot.from_json(content, files.path_of(snapshot_id))
    # The file's name decides: the next commit takes the name after it, whatever the content says.
    return snapshot if snapshot.id == snapshot_id else replace(snapshot, id=snapshot_id)


class Snapshots(list[Snapshot]):
    """Snapshots in their order; a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = (
            (each.id, moment(each.time_millis), each.operation or each.commit_kind, each.delta_record_count)
            for each in reversed(self)
        )
        return html_table("snapshots", ("id", "committed", "operation", "records"), rows, len(self))


class SnapshotStore:
    """The snapshots of one branch of a table."""

    def __init__(self, fileio: FileIO, paths: TablePaths) -> None:
        self._fileio = fileio
        self._paths = paths
        self._files = NumberedFiles(
            fileio,
            paths.snapshot_directory,
            "snapshot",
            paths.snapshot_file,
            paths.latest_hint,
            paths.earliest_hint,
        )
        self._parsed: dict[int, tuple[bytes, Snapshot]] = {}
        """What the newest files that were read say, by their bytes: after a rollback a number may come again."""

    # One snapshot

    def exists(self, snapshot_id: int) -> bool:
        """Whether the snapshot is there."""
        return self._files.exists(snapshot_id)

    def get(self, snapshot_id: int) -> Snapshot:
        """A snapshot; `NotFound` says which ones there are."""
        snapshot = self._find(snapshot_id)
        if snapshot is None:
            raise NotFound(
                f"snapshot {snapshot_id} of {self._paths.branch_root} does not exist", hint=self._what_there_is()
            )
        return snapshot

    def publish(self, snapshot: Snapshot) -> bool:
        """Make a snapshot visible, if its id is still free. False: another commit took the id, and nothing happened."""
        path = self._paths.snapshot_file(snapshot.id)
        return self._fileio.create_exclusive(path, snapshot.to_file())

    def delete(self, snapshot_id: int) -> bool:
        """Delete a snapshot file, and only that; false when there was none."""
        return self._files.delete(snapshot_id)

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Say which snapshot is the newest. Only after it was published: other readers trust this blindly."""
        self._files.write_latest_hint(snapshot_id)

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Say which snapshot is the oldest."""
        self._files.write_earliest_hint(snapshot_id)

    def announce_expiry(self, first_kept: int) -> None:
        """Say, before any file is deleted, that the snapshots below this one are about to go."""
        if self.first_not_expiring() < first_kept:
            self._files.write_hint(self._paths.expiring_hint, first_kept)

    def withdraw_expiry(self, first_kept: int) -> None:
        """Take an announcement back from this snapshot on: a rollback makes it the newest."""
        if self.first_not_expiring() > first_kept:
            self._files.write_hint(self._paths.expiring_hint, first_kept)

    def first_not_expiring(self) -> int:
        """The oldest id that no expiry has announced to delete; 0 when none ever announced anything."""
        return self._files.hint(self._paths.expiring_hint) or 0

    def find(self, snapshot_id: int) -> Snapshot | None:
        """As `get`, but `None` when there is no such snapshot."""
        return self._find(snapshot_id)

    # The newest and the oldest

    def ids(self) -> list[int]:
        """Ids of all snapshots, ascending, by listing the directory."""
        return self._files.ids()

    def kept_ids(self) -> list[int]:
        """As `ids`, without those that an expiry has announced to delete: of these any file may be gone by now.

        What was announced beyond the newest snapshot is of a history that was rolled back, and says nothing.
        """
        first_kept = self.first_not_expiring()  # before the listing, which then has at least one that is kept
        ids = self.ids()
        return [each for each in ids if each >= first_kept or first_kept > ids[-1]]

    def latest_id(self) -> int | None:
        """Id of the newest snapshot; `None` for a table without any."""
        return self._files.latest_id()

    def latest(self) -> Snapshot | None:
        """The newest snapshot; `None` for a table without any."""
        return self._first_found(self.latest_id)

    def earliest_id(self) -> int | None:
        """Id of the oldest snapshot; `None` for a table without any."""
        return self._files.earliest_id()

    def earliest(self) -> Snapshot | None:
        """The oldest snapshot; `None` for a table without any."""
        return self._first_found(self.earliest_id)

    # By time and by user

    def at_or_before_time(self, time_ms: int) -> Snapshot | None:
        """The newest snapshot committed at that time or earlier; `None` when all are later."""
        return self._search(time_ms, after=False)

    def first_at_or_after_time(self, time_ms: int) -> Snapshot | None:
        """The oldest snapshot committed at that time or later; `None` when all are earlier."""
        return self._search(time_ms, after=True)

    def newest_first(self, down_to: int = 1) -> Iterator[Snapshot]:
        """Snapshots from the newest down to an id, ending early at the first that has expired."""
        snapshot = self.latest()
        while snapshot is not None and snapshot.id >= down_to:
            yield snapshot
            snapshot = self._find(snapshot.id - 1)

    def newest_of_user(self, commit_user: str, down_to: int = 1) -> Snapshot | None:
        """The newest snapshot that this user committed, not looking at ids below `down_to`."""
        return next((s for s in self.newest_first(down_to) if s.commit_user == commit_user), None)

    # Private

    def _find(self, snapshot_id: int) -> Snapshot | None:
        content = self._files.read(snapshot_id)
        if content is None:
            return None
        known = self._parsed.get(snapshot_id)
        if known is not None and known[0] == content:
            return known[1]
        snapshot = _parsed(content, self._files, snapshot_id)
        self._parsed[snapshot_id] = content, snapshot
        if len(self._parsed) > _MOST_PARSED:
            self._parsed.pop(min(self._parsed), None)
        return snapshot

    def _first_found(self, choose: Callable[[], int | None]) -> Snapshot | None:
        for _ in range(_ATTEMPTS):
            snapshot_id = choose()
            if snapshot_id is None:
                return None
            snapshot = self._find(snapshot_id)
            if snapshot is not None:
                return snapshot
        raise self._unsettled()

    def _search(self, time_ms: int, *, after: bool) -> Snapshot | None:
        """Binary search by commit time, which never decreases from one snapshot to the next."""
        for _ in range(_ATTEMPTS):
            ids = self.ids()
            low, high = 0, len(ids)
            best: Snapshot | None = None
            while low < high:
                middle = (low + high) // 2
                snapshot = self._find(ids[middle])
                if snapshot is None:
                    break
                is_late = snapshot.time_millis >= time_ms if after else snapshot.time_millis > time_ms
                if is_late == after:
                    best = snapshot
                if is_late:
                    high = middle
                else:
                    low = middle + 1
            else:
                return best
        raise self._unsettled()

    def _unsettled(self) -> FileMissing:
        return FileMissing(
            f"the snapshots of {self._paths.branch_root} vanish while they are being read",
            hint="try again when expiration or rollback is done",
        )

    def _what_there_is(self) -> str:
        ids = self.ids()
        if not ids:
            return "the table holds no snapshot: write to it first"
        return f"the table holds snapshots {ids[0]} to {ids[-1]}: choose one of these, or a tag"
