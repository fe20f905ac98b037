"""What has to outlive a restart beside Spark's checkpoint: where the slot began, the parts of the copy, their rows.

A part of a table is copied once and kept as a file until the stream is past it. A batch that is read a second time,
after a crash or by a second attempt, so gives the very same rows under the very same snapshot; the first attempt to
publish its file wins. Everything is published by exclusive create; nothing is changed afterwards.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa

from lakebed.cdc.envelope import ENVELOPE, Chunk, chunks_to_arrow
from lakebed.cdc.payloads import PayloadFile
from lakebed.cdc.sources.requests import CopyRequests
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import FileMissing, InvalidData
from lakebed.fileio import FileIO
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.sync_later import SyncLater
from lakebed.records import dataclass

WAITING: Final = "waiting"
"""A small file: tables that match and can not be followed just now, and why."""
_PAYLOADS: Final = ".payloads"
"""Behind the name of the file of a copied part: the file of its payloads."""


@dataclass(frozen=True, slots=True)
class CopyPart:
    """A part of a table: rows with `lower <= key < upper`, in the order of the key's first column. None is no bound."""

    index: int
    oid: int
    schema: str
    table: str
    key_column: str | None = None
    key_spelling: str | None = None
    lower: str | None = None
    upper: str | None = None
    is_again: bool = False
    """A table that was rewritten is copied again. The stream then goes over it once more: nothing is filtered."""
    takes_place: bool = False
    """The table has the name of one that was dropped: whose rows go first."""


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """A part that was copied: under which snapshot, where the log was then, and in which file its rows are."""

    file: str
    snapshot: str
    lsn: int
    rows: int


class SourceState:
    """The directory of one stream."""

    def __init__(self, url: str, storage: Storage = PLAIN) -> None:
        self._fileio: FileIO
        self._fileio, self.root = storage.open(url)
        self._storage = storage
        self._url = url.rstrip("/")
        self.requests = CopyRequests(url, storage)
        self._parts: list[CopyPart] | None = None
        self._planned: frozenset[str] = frozenset()

    # --- beginnings -------------------------------------------------------------------------------------------------

    def read(self, name: str) -> dict[str, Any] | None:
        """A small file of the state, if it is there."""
        try:
            body: dict[str, Any] = json.loads(self._fileio.read_bytes(f"{self.root}/{name}.json"))
        except FileMissing:
            return None
        return body

    def publish(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Writes a small file unless it is there; what is there now."""
        path = f"{self.root}/{name}.json"
        self._fileio.make_directory(path.rpartition("/")[0])
        if self._fileio.create_exclusive(path, json.dumps(body, ensure_ascii=False).encode()):
            return body
        found = self.read(name)
        if found is None:
            raise FileMissing(f"{path} was there and is gone", hint="somebody cleans up the checkpoint; stop that")
        return found

    def replace(self, name: str, body: dict[str, Any]) -> None:
        """Writes a small file in place of what is there."""
        self._fileio.make_directory(self.root)
        self._fileio.overwrite(f"{self.root}/{name}.json", json.dumps(body, ensure_ascii=False).encode())

    # --- parts of the copy ------------------------------------------------------------------------------------------

    def parts(self) -> list[CopyPart]:
        """All parts, in order: those of the beginning, then those of later plans, for tables that came afterwards."""
        if self._parts is None:
            begun = self.read("source")
            if begun is None:
                return []
            files = [entry.name for entry in self._fileio.list_directory(f"{self.root}/plans")]
            plans = [
                self.read(f"plans/{name.removesuffix('.json')}") for name in sorted(files) if name.endswith(".json")
            ]
            found = [body for body in (begun, *plans) if body is not None]
            self._parts = [CopyPart(**part) for body in found for part in body["parts"]]
            self._planned = frozenset(body["request"] for body in found if "request" in body)
        return self._parts

    def planned(self) -> frozenset[str]:
        """Requests whose parts are planned."""
        self.parts()
        return self._planned

    def tables(self) -> list[tuple[int, str, str]]:
        """Tables that are or were followed: id, schema and name, in the order in which they came."""
        begun = self.read("source") or {"tables": []}
        first = [(oid, schema, name) for oid, schema, name in begun["tables"]]
        return first + [(part.oid, part.schema, part.table) for part in self.parts()]

    def plan(self, parts: Sequence[CopyPart], request: str = "") -> None:
        """Adds parts, which are numbered on from those there are, perhaps because somebody asked for them."""
        name = f"plans/{parts[0].index:09d}"
        body = {"parts": [asdict(part) for part in parts]} | ({"request": request} if request else {})
        if self.publish(name, body) != body:
            raise InvalidData(
                f"{self.root}/{name}.json was written by somebody else", hint="run one sync on a checkpoint at a time"
            )
        self._parts = None

    def copied(self, index: int) -> CopiedPart | None:
        """What is known of a part that was copied; None if it was not."""
        body = self.read(f"copied/{index:09d}")
        return None if body is None else CopiedPart(**body)

    def store(self, index: int, snapshot: str, lsn: int, chunks: Iterator[Chunk]) -> CopiedPart:
        """Keeps the rows of a part. If another attempt was first, its rows count and ours are removed."""
        name = f"copied/{index:09d}-{uuid.uuid4().hex}.arrow"
        path = f"{self.root}/{name}"
        self._fileio.make_directory(f"{self.root}/copied")
        rows = 0
        payloads = PayloadFile(f"{self._url}/{name}{_PAYLOADS}", is_durable=True, storage=self._storage)
        with self._fileio.open_output(path) as output, pa.ipc.new_stream(output.stream, ENVELOPE) as writer:
            for batch in payloads.through(chunks_to_arrow([chunk]) for chunk in chunks):
                rows += 1
                writer.write_batch(batch)
        part = CopiedPart(name, snapshot, lsn, rows)
        body = self.publish(f"copied/{index:09d}", asdict(part))
        if body["file"] != name:
            self.forget(part)
        return CopiedPart(**body)

    def rows(self, part: CopiedPart) -> Iterator[pa.RecordBatch]:
        """The envelope rows of a part."""
        with self._fileio.open_input(f"{self.root}/{part.file}") as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def forget(self, part: CopiedPart) -> None:
        """Removes the rows of a part that the stream is past; that it was copied stays written down."""
        for name in (part.file, part.file + _PAYLOADS):
            self._fileio.delete(f"{self.root}/{name}")

    # --- payloads ---------------------------------------------------------------------------------------------------

    def payload_file(self, end: int) -> PayloadFile:
        """A file for what a task reads of a batch that ends there."""
        return PayloadFile(f"{self._url}/payloads/{end:016x}/{uuid.uuid4().hex}", storage=self._storage)

    def delete_payloads(self, end: int) -> None:
        """Removes what the tasks of a batch have left, once it is committed."""
        self._fileio.delete_directory(f"{self.root}/payloads/{end:016x}")

    def clear_payloads(self) -> None:
        """Removes what an earlier run left."""
        self._fileio.delete_directory(f"{self.root}/payloads")

    # --- raw messages -----------------------------------------------------------------------------------------------

    def write_segment(self, pieces: Sequence[bytes | memoryview]) -> str:
        """Keeps raw messages for tasks; the path."""
        path = f"{self.root}/spool/{uuid.uuid4().hex}"
        with SyncLater.of(self._fileio)[0].open_output(path) as output:  # what is lost is received again
            for piece in pieces:
                output.write(piece)
        return path

    def read_segment(self, path: str) -> bytes | memoryview:
        """Inverse of `write_segment`."""
        if not isinstance(self._fileio, LocalFileIO):
            return self._fileio.read_bytes(path)
        with pa.memory_map(path) as mapped:
            return memoryview(mapped.read_buffer())

    def delete_segment(self, path: str) -> None:
        """Removes raw messages."""
        self._fileio.delete(path)

    def clear_segments(self) -> None:
        """Removes what an earlier run left."""
        self._fileio.delete_directory(f"{self.root}/spool")


__all__ = ["WAITING", "CopiedPart", "CopyPart", "SourceState"]
