"""Where a payload lies that did not come with its envelope row: a part of a file, as a text."""

from __future__ import annotations

import pyarrow as pa

from lakebed.fileio import open_fileio
from lakebed.fileio.local import LocalFileIO


def place_of(start: int, size_bytes: int, url: str) -> str:
    """The text for a part of a file."""
    return f"{start}:{size_bytes}:{url}"


def size_at(place: str) -> int:
    """How many bytes the payload at a place has."""
    return int(place.split(":", 2)[1])


def payload_at(place: str) -> pa.Buffer:
    """The payload at a place. On a local disk it is mapped, not read."""
    start, size, url = place.split(":", 2)
    fileio, path = open_fileio(url)
    with pa.memory_map(path) if isinstance(fileio, LocalFileIO) else fileio.open_input(path) as file:
        file.seek(int(start))
        return file.read_buffer(int(size))


__all__ = ["payload_at", "place_of", "size_at"]
