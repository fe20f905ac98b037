"""The prompt of `lakebed sql`: statements of several lines, editing, and a history that lasts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lakebed.cli.statements import split_statements

readline: Any
try:
    import readline
except ImportError:  # not on every system; lines can then not be edited
    readline = None

_LEAVE = {"exit", "quit", "\\q"}
_HISTORY_LINES = 2000


def typed_statements(database: Callable[[], str]) -> Iterator[str]:
    """Statements as they are typed, each ended by a semicolon, until the end of input."""
    print("Statements end with a semicolon; `exit` or Ctrl-D leaves.", file=sys.stderr)  # noqa: T201
    with _history():
        waiting = ""
        while True:
            try:
                line = input(f"{database()}> " if not waiting.strip() else "   ...> ")
            except EOFError:
                print(file=sys.stderr)  # noqa: T201
                return
            except KeyboardInterrupt:
                print(file=sys.stderr)  # noqa: T201
                waiting = ""  # forget what was begun
                continue
            if not waiting.strip() and line.strip().rstrip(";").lower() in _LEAVE:
                return
            statements, waiting = split_statements(f"{waiting}{line}\n")
            yield from statements


@contextmanager
def _history() -> Iterator[None]:
    """Loads what was typed in earlier sessions, and keeps what is typed in this one."""
    if readline is None:
        yield
        return
    path = history_file()
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with suppress(OSError):  # a history that can not be kept is no reason to fail
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
            path.chmod(0o600)


def history_file() -> Path:
    """Where the history is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lakebed" / "sql_history"


__all__ = ["history_file", "typed_statements"]
