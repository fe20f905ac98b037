"""Run by `worker_python` in place of `python -m <a worker of Spark>`: connects to Spark first, imports afterwards.

Spark waits ten seconds for some of its workers and there is no setting for it. They import all they need before they
connect: up to two seconds of CPU time, which is more than ten seconds on a busy machine. How long a worker that is
connected takes to answer, Spark does not mind. Whatever is not as expected is left to the worker itself.

The daemon, which has time, is run by it as well, with the name of its workers' module as another argument.

Stands alone: it is run as a file, by the Python of the workers, which need not have this package.
"""

import contextlib
import os
import runpy
import socket
import struct
import sys
from importlib import util
from typing import Any

_CONNECT_S = 60.0
_CONNECT = "local_connect_and_auth"
"""PySpark's function that connects, in `pyspark.util`: the worker calls it once it is ready."""
_ARCHIVE = os.path.join(os.sep, "python", "lib", "pyspark.zip")
"""The archive, in the directory of the package."""


def connected() -> socket.socket | None:
    """A connection that Spark has accepted; None if none is expected, or PySpark would not know how to take it over."""
    path, port = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH"), os.environ.get("PYTHON_WORKER_FACTORY_PORT")
    if (path is None and port is None) or not _can_hand_over():
        return None
    if path is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_CONNECT_S)
        connection.connect(path)
        return connection
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true" else "127.0.0.1"
    connection = socket.create_connection((host, int(port or 0)), _CONNECT_S)
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    connection.sendall(struct.pack("!i", len(secret)) + secret)
    answer = _read(connection, struct.unpack("!i", _read(connection, 4))[0])
    if answer != b"ok":
        raise OSError(f"Spark answered {answer!r}")
    return connection


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise OSError("Spark hung up")
        found += piece
    return found


def _can_hand_over() -> bool:
    """Whether PySpark connects as we know it: read, as importing it is what must wait."""
    found = util.find_spec("pyspark")
    read = getattr(getattr(found, "loader", None), "get_data", None)  # a directory, or an archive
    if found is None or read is None:
        return False
    for place in found.submodule_search_locations or []:
        with contextlib.suppress(OSError):
            return f"def {_CONNECT}(".encode() in read(os.path.join(place, "util.py"))
    return False


def _prefer_compiled() -> None:
    """Takes PySpark from where it is installed, not from the archive in there that Spark puts in front.

    It is the same code. Nothing in an archive is compiled, so that every worker would do it again: 0.3 s of CPU time.
    """
    for place in list(sys.path):
        package = place.removesuffix(_ARCHIVE)
        if package != place and os.path.dirname(package) in sys.path:
            sys.path.remove(place)


def hand_over(connection: socket.socket) -> None:
    """Gives the connection to the first who asks PySpark for one, which is the worker."""
    from pyspark import util as pyspark_util  # heavy: only now

    connect, waiting = getattr(pyspark_util, _CONNECT), [connection]

    def first_time(place: Any, secret: Any) -> tuple[Any, Any]:
        if not waiting:
            return connect(place, secret)  # type: ignore[no-any-return]
        ready = waiting.pop()
        ready.settimeout(int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", "15")))
        return ready.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))), ready

    for name, module in list(sys.modules.items()):
        if name.startswith("pyspark") and getattr(module, _CONNECT, None) is connect:
            setattr(module, _CONNECT, first_time)


def main(module: str, *, is_awaited: bool) -> None:
    """Runs a module of PySpark as `python -m` does; Spark waits for it to connect, or it is the daemon."""
    connection = None
    if is_awaited:
        try:
            connection = connected()
        except OSError as error:
            sys.exit(f"{module} could not connect to Spark: {error}")  # Spark is gone, or has given up on this worker
    _prefer_compiled()
    if connection is not None:
        hand_over(connection)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        sys.path[0] = os.getcwd()
    del sys.argv[:2]  # this file and `-m`: the module's name stands where its file will be
    main(sys.argv[0], is_awaited=len(sys.argv) == 1)
