"""Consumers: how far a stream reader has come, kept in the table so that expiration spares what it has yet to read.

A consumer file holds the next snapshot to read, and is overwritten in place as the reader advances.
"""

from __future__ import annotations

import json

from lakebed.checksums import sealed_json
from lakebed.errors import FileMissing, InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.paths import TablePaths
from lakebed.records import dataclass

_PREFIX = "consumer-"
_LAST_LIST = "lakebedLastDeltaManifestList"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A stream reader's progress; `modified_ms` is when it last recorded it."""

    id: str
    next_snapshot: int
    modified_ms: int


class ConsumerStore:
    """The consumers of one branch of a table."""

    def __init__(self, fileio: FileIO, paths: TablePaths) -> None:
        self._fileio = fileio
        self._paths = paths

    def next_snapshot(self, consumer_id: str) -> int | None:
        """The next snapshot that a consumer will read; `None` when it never recorded any progress."""
        path = self._paths.consumer_file(consumer_id)
        try:
            return JsonFile(self._fileio.read_bytes(path), path).integer("nextSnapshot")
        except FileMissing:
            return None

    def last_list(self, consumer_id: str) -> str | None:
        """The delta manifest list of the snapshot that a consumer has read last; `None` when it is not known.

        Ids come again after a rollback, names of manifest lists never do. Other engines neither know nor mind this.
        """
        path = self._paths.consumer_file(consumer_id)
        try:
            return JsonFile(self._fileio.read_bytes(path), path).optional_text(_LAST_LIST)
        except FileMissing:
            return None

    def record(self, consumer_id: str, next_snapshot: int, last_list: str | None = None) -> None:
        """Record progress, forward or backward, and what the snapshot before was, if that is known."""
        if next_snapshot < 1:
            raise InvalidArgument(
                f"consumer `{consumer_id}` can not continue at snapshot {next_snapshot}", hint="ids begin at 1"
            )
        members: dict[str, int | str] = {"nextSnapshot": next_snapshot}
        if last_list is not None:
            members[_LAST_LIST] = last_list
        self._fileio.overwrite(self._paths.consumer_file(consumer_id), sealed_json(json.dumps(members)).encode())

    def delete(self, consumer_id: str) -> bool:
        """Forget a consumer; false when there was none."""
        return self._fileio.delete(self._paths.consumer_file(consumer_id))

    def list(self) -> tuple[Consumer, ...]:
        """All consumers, by id."""
        consumers = []
        for status in self._fileio.list_directory(self._paths.consumer_directory):
            if status.name.startswith(_PREFIX):
                consumer_id = status.name.removeprefix(_PREFIX)
                next_snapshot = self.next_snapshot(consumer_id)
                if next_snapshot is not None:
                    consumers.append(Consumer(consumer_id, next_snapshot, status.modified_ms))
        return tuple(sorted(consumers, key=lambda consumer: consumer.id))

    def min_next_snapshot(self) -> int | None:
        """The oldest snapshot that any consumer has yet to read; `None` without consumers."""
        return min((consumer.next_snapshot for consumer in self.list()), default=None)
