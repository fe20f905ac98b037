"""`filesystem`: rows of files in a directory, each file once, in the order of their names.

A position names the files that are done, by a short hash of their paths, and the row that is next in the file under
way. Files are taken as they are when they are first seen: whoever adds one moves it there when it is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, Final

import pyarrow as pa

from lakebed.errors import CorruptFile, InvalidData, Unsupported
from lakebed.fileio import open_fileio
from lakebed.fileio.base import FileStatus
from lakebed.formats import FORMATS, Written
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import DURATION, ConnectorOption, refused
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.types.arrow import to_arrow_schema

_FORMATS: Final = ("parquet", "csv", "json", "orc")
_HIDDEN = (".", "_")
"""How names of files begin that are not complete, or no data."""
_MONITORED = "source.monitor-interval"
_HASH_LETTERS = 12


def _check(table: ConnectorTable) -> None:
    if table.primary_key:
        raise Unsupported(
            f"table `{table.full_name}` has a primary key, but rows of files only come",
            hint="leave PRIMARY KEY out",
        )


FILESYSTEM = ConnectorDefinition(
    "filesystem",
    "files in a directory",
    (
        ConnectorOption("path", "the directory, or one file", is_required=True),
        ConnectorOption("format", "what the files are", is_required=True, choices=_FORMATS),
        ConnectorOption(_MONITORED, "look for new files for ever; without it those that are there are read", DURATION),
        ConnectorOption("csv.*", "how CSV files are spelled, as for a table of the lake"),
        ConnectorOption("json.*", "how JSON files are spelled, as for a table of the lake"),
        ConnectorOption("fs.*", "an option of the file system, such as `fs.s3.endpoint`"),
        ConnectorOption("landing.*", "an option of the table of the lake that rows land in"),
        refused("source.path.regex-pattern", "put the files into a directory of their own"),
        refused("partition.*", "leave it out: directories below `path` are read as they are"),
        refused("sink.*", "leave it out: files are read, not written"),
        refused("auto-compaction", "leave it out: files are read, not written"),
    ),
    is_source=True,
    check=_check,
    is_bounded=lambda table: _MONITORED not in table.options,
)


class FilesReader:
    """Reads rows of files from a position on."""

    def __init__(self, table: ConnectorTable) -> None:
        self._table = table
        self._fileio, self._root = open_fileio(table.required("path"), table.below("fs."))
        self._format = FORMATS[table.required("format")]
        self._is_bounded = FILESYSTEM.is_bounded(table)
        self._under_way: tuple[str, Iterator[pa.RecordBatch]] | None = None
        """The position whose next rows come from an open file, so that it is not read from its beginning again."""
        self.schema = to_arrow_schema(table.columns)
        """The columns of what it reads."""

    def read(self, position: str | None, limit_rows: int) -> tuple[pa.Table, str, bool]:
        """Rows from a position on, the position after them, and whether they were the last."""
        place: dict[str, Any] = json.loads(position or '{"done": [], "file": null, "size": 0, "row": 0}')
        found: list[pa.RecordBatch] = []
        left = limit_rows
        while left > 0:
            if place["file"] is None and not self._begin_next(place):
                break
            rows = self._rows_from(place)
            batch = next(rows, None)
            if batch is None:
                place = _done(place)
                continue
            taken = batch.slice(0, left)
            place["row"] += taken.num_rows
            left -= taken.num_rows
            found.append(taken)
            left_over = batch.slice(taken.num_rows) if taken.num_rows < batch.num_rows else next(rows, None)
            if left_over is None:
                place = _done(place)
            else:
                self._under_way = (_place_of(place), _first_then(left_over, rows))
        is_end = self._is_bounded and left > 0
        return pa.Table.from_batches(found, schema=self.schema), json.dumps(place), is_end

    def progress(self, position: str | None) -> tuple[int, int]:
        """Files that are read, and how many there are."""
        done = set() if position is None else set(json.loads(position)["done"])
        there = [_hash(self._relative(each.path)) for each in self._files()]
        return sum(each in done for each in there), len(there)

    def _begin_next(self, place: dict[str, Any]) -> bool:
        done = set(place["done"])
        for status in self._files():
            name = self._relative(status.path)
            if _hash(name) not in done:
                place |= {"file": name, "size": status.size_bytes, "row": 0}
                return True
        return False

    def _files(self) -> list[FileStatus]:
        """All files, by their names."""
        listed = [each for each in self._fileio.list_recursive(self._root) if not each.is_directory]
        if not listed and self._fileio.exists(self._root):  # `path` is one file
            listed = [FileStatus(self._root, self._fileio.size(self._root), 0, False)]
        shown = [each for each in listed if not self._is_hidden(each.path)]
        return sorted(shown, key=lambda each: each.path)

    def _is_hidden(self, path: str) -> bool:
        return any(part.startswith(_HIDDEN) for part in self._relative(path).split("/"))

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._root).strip("/")

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    def _rows_from(self, place: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        # INVARIANT: rows that fail to come are not under way. An iterator that has raised gives nothing more, as one at
        # the end of its file does: the file would count as read when it is tried again, and its rows be lost.
        known, self._under_way = self._under_way, None
        if known is not None and known[0] == _place_of(place):
            return known[1]
        return self._file_rows(place["file"], place["size"], place["row"])

    def _file_rows(self, name: str, size_bytes: int, first: int) -> Iterator[pa.RecordBatch]:
        """Rows of a file from one of them on."""
        path = self._path(name)
        if first and self._fileio.size(path) != size_bytes:
            # INVARIANT: rows that were read stay where they were, or the rest of the file would be other rows.
            raise InvalidData(
                f"table `{self._table.full_name}`: file {path} was changed while it was read",
                hint="move files to `path` when they are complete, and leave them as they are",
            )
        if size_bytes == 0:
            return
        written = Written(self._table.columns, {**self._table.options})
        try:
            with ExitStack() as stack:
                source = stack.enter_context(closing(self._fileio.open_input(path)))
                reader = stack.enter_context(self._format.open_reader(source, path, written))
                for at, batch in reader.read(self._table.columns):
                    if at + batch.num_rows > first:
                        yield batch.slice(max(0, first - at)).cast(self.schema)
        except CorruptFile as error:
            raise InvalidData(
                f"table `{self._table.full_name}`: {error.message}",
                hint="correct the columns of the definition, or take the file away",
            ) from error


def _first_then(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _done(place: dict[str, Any]) -> dict[str, Any]:
    """The place behind the file that was under way."""
    return {"done": sorted([*place["done"], _hash(place["file"])]), "file": None, "size": 0, "row": 0}


def _place_of(place: dict[str, Any]) -> str:
    return f"{place['file']}@{place['row']}"


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_HASH_LETTERS]
