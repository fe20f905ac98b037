"""The README as a program: its code, what that is said to print, and which extra each part says to install."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INSTALL = re.compile(r'^pip install "?lakebed(?:\[([\w-]+)\])?"?$', re.MULTILINE)
_END = "--- end of a step ---"


@dataclass(frozen=True)
class Step:
    """A block of Python, the text that follows it as its output, and the extra that was named before it."""

    code: str
    output: str
    extra: str


def code_blocks(document: str) -> list[tuple[str, str]]:
    """Languages and texts of all fenced blocks, in their order."""
    return _FENCE.findall(document)


def steps(document: str) -> list[Step]:
    """What a reader types and sees, in its order."""
    found: list[Step] = []
    extra = ""
    blocks = code_blocks(document)
    for place, (language, text) in enumerate(blocks):
        if language == "sh" and (named := _INSTALL.search(text)):
            extra = named.group(1) or ""
        elif language == "python":
            follows = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
            found.append(Step(text, follows[1] if follows[0] == "text" else "", extra))
    return found


def printed(python: Path | str, wanted: list[Step], folder: Path, env: dict[str, str] | None = None) -> list[str]:
    """What these steps print, one after the other in one process that starts in an empty folder."""
    folder.mkdir(exist_ok=True)
    program = "".join(f"{step.code}\nprint({_END!r}, flush=True)\n" for step in wanted)
    done = subprocess.run(
        [str(python), "-c", program], cwd=folder, capture_output=True, text=True, check=False, env=env, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(_END + "\n")[:-1]
