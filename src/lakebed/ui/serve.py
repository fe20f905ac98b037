"""Runs the application on this machine, for this machine, until somebody ends it."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable

import uvicorn

from lakebed.errors import InvalidArgument
from lakebed.lake import Lake
from lakebed.ui.app import make_app
from lakebed.ui.guard import Tokens

_LOOPBACK = "127.0.0.1"


def serve(
    lake: Lake, told: Callable[[str], None], *, port: int = 0, open_browser: bool = True, allow_changes: bool = False
) -> None:
    """Serves a lake on a loopback address; `told` gets the address with the token once it can be opened."""
    listener = _listening(port)
    port = listener.getsockname()[1]
    names = frozenset({f"{_LOOPBACK}:{port}", f"localhost:{port}"})
    tokens = Tokens()
    app = make_app(lake, tokens, lambda: names, allow_changes=allow_changes)
    address = f"http://{_LOOPBACK}:{port}/?token={tokens.token}"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=2, server_header=False
    )
    told(address)
    if open_browser:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listener.close()
        hint = "give another one with --port, or none for one that is free"
        raise InvalidArgument(f"port {port} can not be used: {error}", hint=hint) from error
    listener.listen(64)
    return listener


__all__ = ["serve"]
