"""COPY … TO STDOUT, read straight from libpq: a third of the time that psycopg's own iterator takes for a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.connect import first_line

if TYPE_CHECKING:
    import psycopg


def copy_out(connection: psycopg.Connection[Any], query: str, most_rows: int, most_bytes: int) -> Iterator[bytes]:
    """What a COPY sends, in blocks of whole rows. The server sends each row as one message."""
    import psycopg
    from psycopg.pq import ExecStatus

    raw = connection.pgconn
    result = raw.exec_(query.encode())
    if result.status != ExecStatus.COPY_OUT:
        raise psycopg.OperationalError(first_line(Exception(result.get_error_message())))
    rows: list[bytes] = []
    size_bytes, get = 0, raw.get_copy_data
    while True:
        length, data = get(0)
        if length <= 0:
            break
        rows.append(bytes(data))
        size_bytes += length
        if len(rows) >= most_rows or size_bytes >= most_bytes:
            yield b"".join(rows)
            rows, size_bytes = [], 0
    while (ended := raw.get_result()) is not None:
        if ended.status != ExecStatus.COMMAND_OK:
            raise psycopg.OperationalError(first_line(Exception(ended.get_error_message())))
    if rows:
        yield b"".join(rows)


__all__ = ["copy_out"]
