"""A person at a terminal: the program runs on a pseudo terminal, and keys are pressed in it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

_PATIENCE_S = 120.0
"""A person would have gone by then."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r|\x07")


class Terminal:
    """`with Terminal("sql", lake=path) as terminal: terminal.type("SHOW TABLES;\\n"); terminal.until("orders")`."""

    def __init__(self, *arguments: str, lake: Path, lines: int = 24, **environment: str) -> None:
        self._main, inner = pty.openpty()
        own = {
            "LAKEBED_WAREHOUSE": str(lake),
            "XDG_STATE_HOME": str(lake.parent / "state"),
            "TERM": "xterm",
            "COLUMNS": "120",
            "LINES": str(lines),
            "NO_COLOR": "1",
            "INPUTRC": os.devnull,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lakebed", *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**os.environ, **own, **environment},
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - nothing of ours runs in threads here
        )
        os.close(inner)
        self._text = ""
        self._read = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._main)

    @property
    def screen(self) -> str:
        """All that was shown, without colours and movements."""
        return _ESCAPES.sub("", self._text)

    def type(self, keys: str) -> None:
        """Presses keys; `\\x03` is Ctrl-C, `\\x04` Ctrl-D, `\\t` Tab."""
        os.write(self._main, keys.encode())

    def interrupt(self) -> None:
        """Presses Ctrl-C once the program waits for keys: a prompt is shown a moment before its line is waited for."""
        began, before = time.monotonic(), None
        while before != (now := self._idle_after()) or now is None:
            if time.monotonic() - began > _PATIENCE_S:
                raise AssertionError(f"the program never waited: {self.screen!r}")
            before = now
            time.sleep(0.2)
        self.type("\x03")

    def _idle_after(self) -> str | None:
        """The processor time that the program has used, if it sleeps; None if it works."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] != "S" else f"{fields[11]} {fields[12]}"

    def until(self, text: str) -> str:
        """Waits until the text is shown, after what was waited for before; gives what came up to it."""
        began = time.monotonic()
        while True:
            shown = self.screen
            place = shown.find(text, self._read)
            if place >= 0:
                found, self._read = shown[self._read : place + len(text)], place + len(text)
                return found
            if time.monotonic() - began > _PATIENCE_S or not self._more():
                raise AssertionError(f"{text!r} was not shown after {self._read}: {shown!r}")

    def ended(self) -> int:
        """Waits for the end of the program; its status."""
        began = time.monotonic()
        while self._more() and time.monotonic() - began < _PATIENCE_S:
            continue
        return self.process.wait(_PATIENCE_S)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._main], [], [], 0.2)
        if not ready:
            return self.process.poll() is None
        try:
            read = os.read(self._main, 65536)
        except OSError:  # the other side is closed
            return False
        self._text += read.decode(errors="replace")
        return bool(read)


def _take_terminal() -> None:
    """Ctrl-C goes to the processes of the terminal that is ours."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
