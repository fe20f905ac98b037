"""TCP ports for servers of tests: chosen where nobody else takes any.

A port that the system gives (`bind` to 0) lies in the range of which every outgoing connection gets one as well.
Between the choice and the moment when a server listens, or while a server restarts, such a port may be gone; so ours
come from below that range.
"""

from __future__ import annotations

import random
import socket
from typing import Final

_FIRST, _LAST = 15_000, 31_999
_TURNS: Final = 1000
_random = random.SystemRandom()


def free_port() -> int:
    """A TCP port nobody listens on, and that no outgoing connection gets."""
    for _ in range(_TURNS):
        port = _random.randint(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError(f"none of the ports {_FIRST} to {_LAST} is free")


__all__ = ["free_port"]
