"""What a command is, and the parser that turns wrong arguments into the same errors as everything else."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NoReturn

from lakebed.cli.output import Output
from lakebed.errors import InvalidArgument
from lakebed.records import dataclass

OK, FOUND_SOMETHING, FAILED, INTERRUPTED = 0, 1, 2, 130
"""How a command may end. FOUND_SOMETHING is what a check says that found something wrong."""


_HABITS = {
    **dict.fromkeys((("lakebed sql", "-e"), ("lakebed sql", "-c"), ("lakebed sql", "-q")), "lakebed sql 'SELECT ...'"),
    **dict.fromkeys((("lakebed sql", "--execute"), ("lakebed sql", "--query")), "lakebed sql 'SELECT ...'"),
    **dict.fromkeys((("lakebed cdc", "--tables"), ("lakebed cdc", "--include")), "--including PATTERN"),
    **dict.fromkeys((("lakebed cdc", "--including-tables"), ("lakebed cdc", "-t")), "--including PATTERN"),
    **dict.fromkeys((("lakebed cdc", "--exclude"), ("lakebed cdc", "--excluding-tables")), "--excluding PATTERN"),
    **dict.fromkeys((("lakebed cdc", "--slot"), ("lakebed cdc", "--slot-name")), "--option slot=NAME"),
    **dict.fromkeys((("lakebed expire", "--keep"), ("lakebed expire", "--retain")), "--retain-max N"),
}
"""Options of other programs, and what to type."""
_HABITS_ANYWHERE = {
    **dict.fromkeys(("-w", "--lake", "--path", "--root"), "--warehouse PATH"),
    **dict.fromkeys(("-o", "--output"), "--format table, json or csv"),
    "--json": "--format json",
    "--csv": "--format csv",
    **dict.fromkeys(("-V", "-v"), "lakebed --version"),
}
"""The same of every command."""


class Parser(argparse.ArgumentParser):
    """Raises instead of ending the program, and takes no abbreviations: scripts must not break by a new option."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, description=description, epilog=epilog, allow_abbrev=False, formatter_class=form)

    def error(self, message: str) -> NoReturn:
        """Raises what is wrong with the arguments."""
        hint = f"see `{self.prog} --help`"
        unknown = re.match(r"unrecognized arguments: (-[\w-]+)", message)
        if unknown is not None:
            typed = unknown[1]
            near = difflib.get_close_matches(typed, self._option_string_actions, n=1, cutoff=0.75)
            instead = _HABITS.get((self.prog, typed)) or (near[0] if near else _HABITS_ANYWHERE.get(typed))
            hint = hint if instead is None else f"type {instead}; {hint}"
        raise InvalidArgument(message, hint=hint)


@dataclass(frozen=True, slots=True)
class Command:
    """What a command takes and does. `run` returns how it ended."""

    arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace, Output], int]
    words: Mapping[str, tuple[Command, str]] = field(default_factory=dict)
    """Commands of their own, with what they do, that a first word of its arguments stands for."""


def whole_number(text: str) -> int:
    """An argument that counts something."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidArgument(f"`{text}` is not a whole number", hint="write it with digits only, such as 5")
    return value


def names(text: str) -> list[str]:
    """An argument that lists names, with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def sentence_of(error: Exception) -> str:
    """What an error of somebody else says, on one line: query plans and stack traces come behind."""
    return f"{type(error).__name__}: {error}".partition("\n")[0].rstrip()


_INTERRUPTED_QUERY = "Query interrupted"
"""DuckDB's own words for Ctrl-C, where the signal met it before Python."""


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C is behind it: whoever tidies up after one may fail, and Spark does."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt) and str(seen) != _INTERRUPTED_QUERY:
        seen = seen.__cause__ or seen.__context__
    return seen is not None


__all__ = [
    "FAILED",
    "FOUND_SOMETHING",
    "INTERRUPTED",
    "OK",
    "Command",
    "Parser",
    "is_interruption",
    "names",
    "sentence_of",
    "whole_number",
]
