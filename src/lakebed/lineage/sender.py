"""Takes events away, in a thread of its own: to a server of lineage, or to a file, one event in each line.

Nobody waits for it but the end of the program, and that not for long. What can not be sent is dropped, and said once.
"""

from __future__ import annotations

import atexit
import http.client
import json
import logging
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_log = logging.getLogger(__name__)

_MOST_WAITING = 1000
"""Events that wait to be sent; later ones are dropped."""
_ANSWER_S = 5.0
_END_S = 5.0
"""How long the end of a program waits for the last events."""
_ENDPOINT = "/api/v1/lineage"
_KEY_VARIABLE = "OPENLINEAGE_API_KEY"


class Sender:
    """Sends to one place, from one process."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(_MOST_WAITING)
        self._has_warned = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="lakebed-lineage", daemon=True)
        self._thread.start()
        atexit.register(self.flush)

    def send(self, event: dict[str, Any]) -> None:
        """Has it sent some time; returns at once."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._warn("more events wait than can be sent")

    def flush(self, seconds: float = _END_S) -> bool:
        """Waits until all is sent, or so long; whether it is. A child after a fork has nothing to wait for."""
        if os.getpid() != self._process:
            return True
        end = time.monotonic() + seconds
        with self._waiting.all_tasks_done:
            while self._waiting.unfinished_tasks and (left := end - time.monotonic()) > 0:
                self._waiting.all_tasks_done.wait(left)
            return not self._waiting.unfinished_tasks

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                self._deliver(json.dumps(event, ensure_ascii=False))
            except (OSError, ValueError, http.client.HTTPException) as error:
                self._warn(_reason(error))
            finally:
                self._waiting.task_done()

    def _deliver(self, text: str) -> None:
        if not self._place.startswith(("http://", "https://")):
            with open(self._place.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(text + "\n")
            return
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(_KEY_VARIABLE)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(_url(self._place), text.encode(), headers)
        with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
            answer.read()

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning("lineage is not told to %s, work goes on without: %s", _shown(self._place), why)


def _url(place: str) -> str:
    parts = urlsplit(place)
    return urlunsplit(parts if parts.path.strip("/") else parts._replace(path=_ENDPOINT))


def _shown(place: str) -> str:
    """The place without what may be a secret: user, password, and what follows the path."""
    parts = urlsplit(place)
    if not parts.scheme.startswith("http"):
        return place
    return f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.port else f"{parts.scheme}://{parts.hostname}"


def _reason(error: Exception) -> str:
    """What is wrong, in words that hold no address."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__


_senders: dict[tuple[int, str], Sender] = {}
"""By process: after a fork the thread is not there any more."""


def sender_to(place: str) -> Sender:
    """Who sends to a place from this process."""
    key = os.getpid(), place
    if key not in _senders:
        _senders[key] = Sender(place)
    return _senders[key]


__all__ = ["Sender", "sender_to"]
