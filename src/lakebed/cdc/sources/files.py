"""Change messages in files: a directory to which files of JSON lines are added, each read once, in the order they came.

Spark's own file stream remembers which files it has seen. A file must be complete when it appears: write it elsewhere
and move it in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import ENVELOPE_DDL, SourceTable, chunks_to_arrow
from lakebed.cdc.formats import format_class, message_format
from lakebed.cdc.rules import type_modes
from lakebed.cdc.sources.base import ChangeSource, no_transactions, truth
from lakebed.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA: Final = "path string, modificationTime timestamp, length bigint, content binary"
_MOST_CHUNKS: Final = 1 << 24
"""Ordinals of one file are below those of the next by so many."""
_BLOCK_MESSAGES: Final = 16_384


class FilesSource(ChangeSource):
    """Files of JSON lines in a directory, and with `recursive` in those below it. With `skip_corrupt_records` lines
    that can not be read are left out, counted and told in the progress.

    Lines of the format `json` are rows, whose table is called like the directory that the file is in.
    """

    name = "files"
    place = "path"

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "debezium-json",  # noqa: A002
        *,
        files_per_batch: int | None = None,
        type_mapping: Collection[str] = (),
        name_pattern: str = "*.json*",
        skip_corrupt_records: bool | str = False,
        recursive: bool | str = False,
    ) -> None:
        self._path = os.fspath(path)
        self._modes = type_modes(type_mapping)
        self._format = _text_format(format)
        self._is_recursive = truth("recursive", recursive)
        self._files_per_batch = files_per_batch
        self._pattern = name_pattern
        self._skips = truth("skip_corrupt_records", skip_corrupt_records)
        if files_per_batch is not None and files_per_batch < 1:
            raise InvalidArgument(f"files_per_batch is {files_per_batch}", hint="pass a number from 1, or leave it out")

    def check(self) -> None:
        """The directory has to be there."""
        if "://" not in self._path and not Path(self._path).is_dir():
            raise NotFound(f"directory {self._path} does not exist", hint="create it, or correct the path")

    def tell_times(self, *, changes: bool) -> None:
        """Messages have the time of their change. Not all of them tell of a transaction."""
        if changes:
            raise no_transactions(self.name)

    def tables(self) -> list[SourceTable]:
        """Tables show with their first message."""
        return []

    def stream(self, spark: SparkSession) -> DataFrame:
        """Whole files with their contents."""
        reader = spark.readStream.format("binaryFile").schema(_SCHEMA).option("pathGlobFilter", self._pattern)
        if self._is_recursive:
            reader = reader.option("recursiveFileLookup", "true")
        if self._files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", str(self._files_per_batch))
        return reader.load(self._path)

    def envelopes(self, batch: DataFrame) -> DataFrame:
        """Files by their time and name; messages by their line."""
        rows = batch.select("path", "modificationTime").collect()
        order = {row[0]: number for number, row in enumerate(sorted(rows, key=lambda row: (row[1], row[0])))}
        return batch.select("path", "content").mapInArrow(
            _reader(order, self._format, self._modes, self._skips), ENVELOPE_DDL
        )

    def __repr__(self) -> str:
        return f"<FilesSource {self._path}>"


def _reader(
    order: dict[str, int], name: str, modes: Collection[str], skips: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        form = message_format(name, modes)
        chunks_of = form.readable_chunks if skips else form.all_chunks
        for batch in batches:
            for path, content in zip(batch.column(0), batch.column(1), strict=True):
                ordinal = order[path.as_py()] * _MOST_CHUNKS
                for block in message_blocks(content):
                    chunks = chunks_of(block, ordinal, _about(path.as_py(), block) if form.takes_keys else None)
                    ordinal += len(chunks)
                    yield chunks_to_arrow(chunks)

    return read


def _text_format(name: str) -> str:
    """The name of a format whose messages are lines."""
    kind = format_class(name)
    if kind.is_binary:
        raise InvalidArgument(
            f"messages of the format `{kind.name}` are no lines of a file", hint="follow the topic with source `kafka`"
        )
    return kind.name


def _about(path: str, block: pa.Array) -> pa.RecordBatch:
    """What stands for the topic of lines: the directory."""
    place = unquote(path.rstrip("/").split("/")[-2])
    return pa.RecordBatch.from_pydict({"topic": pa.array([place] * len(block), pa.string())})


def message_blocks(content: Any) -> Iterator[pa.Array]:
    """Lines of a file that are not empty, some thousand at a time."""
    if not content.is_valid:
        return
    lines = pc.split_pattern(pa.array([content.as_py()], pa.binary()).cast(pa.large_string()), "\n").flatten()
    lines = lines.filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(lines)), 0))
    for start in range(0, len(lines), _BLOCK_MESSAGES):
        yield lines.slice(start, _BLOCK_MESSAGES).cast(pa.string())


__all__ = ["FilesSource", "message_blocks"]
