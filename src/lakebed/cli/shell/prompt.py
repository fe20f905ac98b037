"""The prompt of `lakebed sql`: statements of several lines, editing, completion, and a history that lasts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.cli.shell.completion import DELIMITERS, Completer
from lakebed.cli.statements import is_inside, split_statements
from lakebed.sql.words.secrets import without_secrets

if TYPE_CHECKING:
    from lakebed.lake import Lake

readline: Any
try:
    import readline
except ImportError:  # not on every system; lines can then not be edited
    readline = None

_LEAVE = {"exit", "quit", "\\q"}
_HELP = {"help", "\\?", "\\h", "?"}
_HISTORY_LINES = 2000
_COMMANDS = {
    "\\d": ("SHOW TABLES", "DESCRIBE {}"),
    "\\dt": ("SHOW TABLES", "SHOW TABLES LIKE '{}'"),
    "\\dv": ("SHOW VIEWS", "SHOW VIEWS LIKE '{}'"),
    "\\l": ("SHOW DATABASES", "SHOW DATABASES LIKE '{}'"),
    "\\c": ("SHOW CURRENT DATABASE", "USE {}"),
}
"""What stands for a statement: by itself, and with a name behind it."""

_TOLD = """\
Statements end with a semicolon and may have several lines. On a line of their own:
  \\d          tables                  \\d t   columns and keys of a table
  \\l          databases               \\c db  go to another one
  \\dv         views                   help   this
  exit, \\q    leave; so does Ctrl-D
Tab completes keywords and names. Ctrl-C forgets what was begun, or stops what is running.

Some to begin with:
  CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
  INSERT INTO t VALUES (1, 'a'), (2, 'b');
  SELECT * FROM t;   SHOW CREATE TABLE t;   DESCRIBE HISTORY t;   SHOW PROCEDURES;
  SET 'execution.runtime-mode' = 'streaming';   then SELECT and INSERT INTO ... SELECT go on; SHOW JOBS;"""


def typed_statements(lake: Lake) -> Iterator[str]:
    """Statements as they are typed, each ended by a semicolon, until the end of input."""
    _say("Statements end with a semicolon; `help` lists what else there is; `exit` or Ctrl-D leaves.")
    waiting = ""
    with _line_editing(Completer(lake, lambda: waiting)):
        while True:
            try:
                line = input(f"{lake.current_database}> " if not waiting.strip() else "   ...> ")
            except EOFError:
                _say("")
                return
            except KeyboardInterrupt:
                _say("")
                waiting = ""  # forget what was begun
                continue
            word = line.strip().rstrip(";").rstrip().lower()
            if word in _LEAVE and not is_inside(waiting):
                if waiting.strip():
                    _say("what was begun is not run")
                return
            if not waiting.strip() and (word in _HELP or word.startswith("\\")):
                yield from _command(line.strip().rstrip(";"))
                continue
            statements, waiting = split_statements(f"{waiting}{line}\n")
            yield from statements


def _command(line: str) -> Iterator[str]:
    """The statement that a short command stands for; what is none is said."""
    word, _, rest = line.partition(" ")
    name = rest.strip()
    if word.lower() in _HELP:
        _say(_TOLD)
    elif word.rstrip("+") in _COMMANDS:
        alone, with_name = _COMMANDS[word.rstrip("+")]
        yield with_name.format(name) if name else alone
    else:
        _say(f"there is no command {word}; `help` lists them")


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


@contextmanager
def _line_editing(completer: Completer) -> Iterator[None]:
    """Loads what was typed in earlier sessions, keeps what is typed in this one, and completes words."""
    if readline is None:
        yield
        return
    path = history_file()
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    before = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(completer)
    readline.set_completer_delims(DELIMITERS)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before[0])
        readline.set_completer_delims(before[1])
        with suppress(OSError):  # a history that can not be kept is no reason to fail
            path.parent.mkdir(parents=True, exist_ok=True)
            _hide_secrets()
            readline.write_history_file(path)
            path.chmod(0o600)


def _hide_secrets() -> None:
    """Takes passwords out of what was typed: the history is a file."""
    for number in range(readline.get_current_history_length()):
        line = readline.get_history_item(number + 1) or ""  # counted from 1, and replaced from 0
        if (shown := without_secrets(line)) != line:
            readline.replace_history_item(number, shown)


def history_file() -> Path:
    """Where the history is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lakebed" / "sql_history"


__all__ = ["history_file", "typed_statements"]
