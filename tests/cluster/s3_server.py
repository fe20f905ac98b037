"""A real S3 server for tests: versitygw, which keeps objects as files, on an address that all hosts reach.

It is built by `go install`, once, into `.oracles`; or is on the PATH, or where LAKEBED_VERSITYGW says.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.compat.judges import environments
from tests.compat.judges.environments import JudgeUnavailable

from lakebed.testing.ports import free_port

_VERSION = "v1.1.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@{_VERSION}"
_START_S = 30.0
ACCESS_KEY = "lakebedtests"
SECRET_KEY = "sEcReT-of-the-store-0451"
"""It would show where somebody forgets to hide it."""
BUCKET = "lake"


def program() -> Path:
    """The server's program; JudgeUnavailable says what is missing if there is none and none can be built."""
    given = os.environ.get("LAKEBED_VERSITYGW") or shutil.which("versitygw")
    if given:
        return Path(given)
    return environments.prepare_go_program("versitygw", _MODULE)


class S3Server:
    """A server process and its objects. The bucket `lake` is there from the beginning."""

    def __init__(self, home: Path, address: str = "127.0.0.1", prefix: Sequence[str] = ()) -> None:
        self._home = home
        self._address, self._port = address, free_port()
        self._prefix = list(prefix)  # what runs a command on the host with that address
        self._process: subprocess.Popen[bytes] | None = None
        self.bucket = BUCKET

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"http://{self._address}:{self._port}"

    @property
    def options(self) -> dict[str, str]:
        """What `lakebed.connect` needs."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key": ACCESS_KEY,
            "s3.secret-key": SECRET_KEY,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }

    @property
    def files(self) -> Path:
        """Where the objects of the bucket lie, as files of this machine."""
        return self._home / "objects" / BUCKET

    def start(self) -> Self:
        """Starts it, on its old objects if there are any, and waits until it answers."""
        self.files.mkdir(parents=True, exist_ok=True)
        command = [
            *self._prefix,
            str(program()),
            "--access",
            ACCESS_KEY,
            "--secret",
            SECRET_KEY,
            "--port",
            f":{self._port}",
        ]
        with (self._home / "s3.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--quiet", "posix", str(self._home / "objects")], stdout=log, stderr=log, cwd=self._home
            )
        self._wait()
        return self

    def stop(self) -> None:
        """Ends it; its objects stay."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def pause(self) -> None:
        """Lets it answer nobody."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Lets it answer again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection((self._address, self._port), 1).close()
                return
            except OSError:
                if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self._home / "s3.log").read_text(errors="replace")[-800:]
                    raise JudgeUnavailable(f"versitygw did not start: {said}") from None
                time.sleep(0.05)


__all__ = ["ACCESS_KEY", "SECRET_KEY", "S3Server", "program"]
