"""Applications that sync a database in a process of their own, and are killed with all that they have started."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Application:
    """A sync by its place on disk and its arguments (without secrets: they stand on a command line)."""

    place: Path
    arguments: dict[str, Any]
    worker: str = "sync_worker"
    """The module beside this one that is run."""

    def run_until_death(self, rng: random.Random, *, most_steps: int = 30, most_s: float = 5.0) -> None:
        """Starts it and kills it with its JVM and workers, a while after its stream began or at a step of a batch."""
        with self._started() as (application, said):
            if rng.random() < 0.3:
                time.sleep(rng.uniform(0.0, most_s))
            else:
                for _ in range(rng.randint(1, most_steps)):
                    assert next(said, None), self._errors()
                time.sleep(rng.uniform(0.0, 0.5) if rng.random() < 0.5 else 0.0)
            assert application.poll() is None, self._errors()

    def run_until(self, is_over: Callable[[], Sequence[str]]) -> None:
        """Runs it until nothing differs any more between the lake and a database at rest."""
        with self._started() as (application, said):
            threading.Thread(target=lambda: list(said), daemon=True).start()
            deadline = time.monotonic() + _PATIENCE_S
            while (differing := is_over()) and time.monotonic() < deadline:
                assert application.poll() is None, self._errors()
                time.sleep(1)
            assert not differing

    @contextmanager
    def _started(self) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
        with (self.place / "errors").open("w") as errors:
            application = subprocess.Popen(
                [sys.executable, "-m", f"tests.cdc.{self.worker}", os.fspath(self.place), json.dumps(self.arguments)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        with application:
            assert application.stdout is not None
            said = iter(application.stdout)
            try:
                assert any("started" in line for line in said), self._errors()
                yield application, said
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(application.pid, signal.SIGKILL)

    def _errors(self) -> str:
        return (self.place / "errors").read_text()[-3000:]


__all__ = ["Application"]
