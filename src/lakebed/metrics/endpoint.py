"""The page that Prometheus scrapes: a small server in a thread beside the work, on a loopback address by default."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import AF_INET, AF_INET6
from socketserver import TCPServer
from types import TracebackType
from typing import Self

from lakebed.errors import InvalidArgument
from lakebed.metrics.prometheus import CONTENT_TYPE

_LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:]*):)?(?P<port>[0-9]{1,5})")
_PATH = "/metrics"
_LOOK_S = 0.2
"""How often the server looks whether it is to end."""
_NEAR = {"localhost", "127.0.0.1", "[::1]"}


def address_argument(address: str) -> tuple[str, int]:
    """Host and port of an address such as `127.0.0.1:9464`; of `9464` or `:9464` the host is this machine's own."""
    found = _ADDRESS.fullmatch(address.strip()) if isinstance(address, str) else None
    port = -1 if found is None else int(found["port"])
    if found is None or not 0 <= port <= 65535:
        raise InvalidArgument(
            f"`{address}` is no address to show metrics at",
            hint="write host:port such as 127.0.0.1:9464; port 0 is any",
        )
    return (found["host"] or _LOOPBACK).strip("[]"), port


class Endpoint:
    """Shows metrics to who scrapes them, until it is stopped or its `with` block ends."""

    def __init__(self, address: str, text: Callable[[], str]) -> None:
        host, port = address_argument(address)
        self._server = _listening(host, port, text)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{self._server.server_address[1]}"
        """Where it listens, with the port that was chosen."""
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_LOOK_S,), name="lakebed-metrics", daemon=True
        )
        self._thread.start()
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: None if (found := this()) is None else found._let_go())

    @property
    def url(self) -> str:
        """What to scrape."""
        return f"http://{self.address}{_PATH}"

    def stop(self) -> None:
        """Ends it."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _let_go(self) -> None:
        """In a child after a fork: nobody answers here, and the port is the parent's."""
        self._server.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<metrics at {self.url}>"


def _listening(host: str, port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    try:
        return _Server((host, port), text)
    except OSError as error:
        raise InvalidArgument(
            f"metrics can not be shown at {host}:{port}: {error.strerror or error}",
            hint="choose another port, or 0 for one that is free, such as 127.0.0.1:0",
        ) from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, place: tuple[str, int], text: Callable[[], str]) -> None:
        self.address_family = AF_INET6 if ":" in place[0] else AF_INET
        self.text = text
        super().__init__(place, _Handler)
        self.is_near = ip_address(str(self.server_address[0])).is_loopback

    def server_bind(self) -> None:
        """Without the question to a name server that the class above asks, and nobody waits for."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever scraped has gone away: nothing to say on the terminal of a command."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10
    server_version = "lakebed"
    sys_version = ""

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if self.server.is_near and host not in _NEAR:
            # A page of another name that leads here must not read what is for this machine.
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", f"this is for programs of this machine, not for {host}\n")
        elif self.path.partition("?")[0] != _PATH:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", f"metrics are at {_PATH}\n")
        else:
            self._answer(HTTPStatus.OK, CONTENT_TYPE, self.server.text())

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's name for it
        """A scrape every few seconds is not worth a line."""


__all__ = ["Endpoint", "address_argument"]
