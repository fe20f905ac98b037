"""The process of a judge: one JSON command per line in, one JSON answer per line out.

Started at the first command and kept until the session ends, because starting costs far more than most commands.
"""

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from typing import Any

ANSWER_TIMEOUT_S = 600
STDERR_TAIL_BYTES = 4000


class JudgeError(Exception):
    """The judge refused or failed a command; the message is its own, `trace` where in its code it happened."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class JudgeProcess:
    """Commands and answers over the standard streams of one child process."""

    def __init__(self, name: str, command: tuple[str, ...]) -> None:
        self.name = name
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in close()

    def ask(self, do: str, **arguments: Any) -> Any:
        """Send one command and return its answer; raise JudgeError when the judge reports a failure or dies."""
        child = self._running()
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            raise self._died(do) from None
        answer = json.loads(self._line(child, do))
        if "error" in answer:
            raise JudgeError(f"{self.name}: {answer['error']}", answer.get("trace", ""))
        return answer["ok"]

    def close(self) -> None:
        """End the process and release its streams; the next command would start it again."""
        if self._child is not None:
            self._stop(self._child)
        self._stderr.close()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._child is None:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, "PYTHONPATH": ""},
            )
        return self._child

    def _line(self, child: "subprocess.Popen[bytes]", do: str) -> bytes:
        assert child.stdout is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while b"\n" not in self._pending:
            ready, _, _ = select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._stop(child)
                raise JudgeError(f"{self.name}: no answer to {do} within {ANSWER_TIMEOUT_S} s")
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self._died(do)
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _died(self, do: str) -> JudgeError:
        assert self._child is not None
        self._stop(self._child)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - STDERR_TAIL_BYTES))
        said = self._stderr.read().decode(errors="replace")
        return JudgeError(f"{self.name}: the process ended during {do}; it said:\n{said}")

    def _stop(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()  # the end of input is the polite request to leave
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
        self._child, self._pending = None, b""
