"""Writes made by another process, which stays for many of them: starting one takes a second."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa


@cache
def _connection() -> Connection:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()  # so that the end of either is the end of the connection
    atexit.register(_stop, process, here)
    return here


def write(url: str, data: pa.Table, row_kind: str | None) -> None:
    """Writes rows to table `t` of a lake, in the other process; raises what was raised there."""
    connection = _connection()
    connection.send((url, data, row_kind))
    error = connection.recv()
    if error is not None:
        raise error


def _stop(process: Any, connection: Connection) -> None:
    with contextlib.suppress(BrokenPipeError):  # it may have been ended with this process's other children
        connection.send(None)
    process.join(5)


def _serve(connection: Connection) -> None:
    import lakebed

    while True:
        try:
            asked = connection.recv()
        except EOFError:
            return
        if asked is None:
            return
        url, data, row_kind = asked
        try:
            lakebed.connect(url).table("t").write(data, row_kind=row_kind)
        except Exception as error:  # noqa: BLE001 - raised again by whoever asked
            connection.send(error)
        else:
            connection.send(None)


__all__ = ["write"]
