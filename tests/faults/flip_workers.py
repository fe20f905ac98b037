"""Processes that turn bits over for a test, and what becomes of a flip whose process dies or never answers."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 120
"""Readings of one flip take a fraction of a second; a busy machine gets time."""


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of one file of the table in a folder."""

    sound: Path
    file: str
    bit: int
    deeds: bool


@dataclass(frozen=True, slots=True)
class Result:
    """(reading or deed, outcome) pairs of a flip."""

    flip: Flip
    outcomes: list[tuple[str, str]]

    def bad(self) -> list[tuple[str, str]]:
        """What is neither right nor refused."""
        return [(name, outcome) for name, outcome in self.outcomes if outcome not in ("right", "refused")]


def run(flips: Sequence[Flip], scratch: Path, workers: int = 2) -> list[Result]:
    """The results of all flips, in any order. A worker takes all flips of a table: to know it takes a while."""
    waiting: queue.SimpleQueue[list[Flip]] = queue.SimpleQueue()
    for sound in sorted({flip.sound for flip in flips}):
        waiting.put([flip for flip in flips if flip.sound == sound])
    results: list[Result] = []

    def work(number: int) -> None:
        results.extend(_results(waiting, scratch / f"worker-{number}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == len(flips)
    return results


def _flips(waiting: queue.SimpleQueue[list[Flip]]) -> Iterator[Flip]:
    with contextlib.suppress(queue.Empty):
        while True:
            yield from waiting.get_nowait()


def _results(waiting: queue.SimpleQueue[list[Flip]], scratch: Path) -> Iterator[Result]:
    process: subprocess.Popen[str] | None = None
    try:
        for flip in _flips(waiting):
            if process is None:
                process = _start(scratch)
            answer = _ask(process, flip)
            if answer.startswith("["):
                yield Result(flip, [(name, outcome) for name, outcome in json.loads(answer)])
                continue
            _end(process)
            process = None
            yield Result(flip, [("process", answer)])
    finally:
        if process is not None:
            _end(process)


def _start(scratch: Path) -> subprocess.Popen[str]:
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "stderr").open("a") as complaints:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.flipped_bits", str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])},
            cwd=_ROOT,
        )


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    with contextlib.suppress(BrokenPipeError):
        process.communicate()


def _ask(process: subprocess.Popen[str], flip: Flip) -> str:
    """The worker's line, or a word for what became of it."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps([str(flip.sound), flip.file, flip.bit, flip.deeds]) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return "stranger: the process was gone"
    ready, _, _ = select.select([process.stdout], [], [], _PATIENCE_SECONDS)
    if not ready:
        return "stranger: no answer"
    line = process.stdout.readline()
    return line or f"stranger: the process ended with {process.wait()}"
