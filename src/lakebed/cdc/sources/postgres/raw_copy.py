"""COPY … TO STDOUT in blocks of rows, each row as the server sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.connect import first_line
from lakebed.cdc.sources.postgres.copy_frames import CopyFrames, CopyRefused
from lakebed.cdc.sources.postgres.messages import Messages
from lakebed.cleanup import on_failure

if TYPE_CHECKING:
    import psycopg

_WAIT_S = 1.0


def copy_out(connection: psycopg.Connection[Any], query: str, most_rows: int, most_bytes: int) -> Iterator[bytes]:
    """What a COPY sends, in blocks of whole rows, of about that size. The server sends each row as one message."""
    import psycopg

    try:
        frames = CopyFrames(connection, query)
    except CopyRefused as refused:
        raise psycopg.OperationalError(first_line(refused)) from refused
    # What is still under way when this is given up belongs to nothing, so the connection goes with it.
    with closing(frames), on_failure(connection.close):
        waiting: list[Messages] = []
        while not frames.is_over:
            arrived = frames.receive(_WAIT_S)
            if len(arrived):
                waiting.append(arrived)
            rows, size_bytes = sum(map(len, waiting)), sum(len(some.data) for some in waiting)
            if waiting and (frames.is_over or rows >= most_rows or size_bytes >= most_bytes):
                yield b"".join(some.bodies() for some in waiting)
                waiting = []


__all__ = ["copy_out"]
