"""Every error lakebed raises on purpose, and what the caller should do about each.

    LakebedError
    ├── InvalidArgument      a call's argument is wrong           → correct the call
    │   └── AccessDenied     a server does not let us in          → correct user, password or the server's rules
    ├── InvalidOption        unknown, ill-typed or unhonoured option → correct the option
    ├── InvalidSchema        a schema or schema change is not allowed → correct the schema
    ├── InvalidData          rows do not fit the table            → correct the rows
    ├── NotFound             database, table, snapshot, … missing → check the name, or create it
    ├── AlreadyExists        database, table, tag, … is there     → choose another name
    ├── CommitConflict       another commit came in between       → read again and redo the write
    ├── Unsupported          valid in Paimon, not honoured here   → see the hint for what works instead
    ├── MissingDependency    an optional package is not installed → install the named extra
    ├── CorruptFile          a file's bytes can not be right      → restore it, or roll back
    └── StorageError         the file system failed               → retry; nothing was lost
        ├── FileMissing      a file that should exist does not
        └── OutcomeUnknown   a write may or may not have happened → read back before retrying

Each message names the table, option, column or file concerned; `hint` is the next step and is part of the text.
A call that raises one of these has changed nothing that a reader can see.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = [
    "AccessDenied",
    "AlreadyExists",
    "CommitConflict",
    "CorruptFile",
    "FileMissing",
    "InvalidArgument",
    "InvalidData",
    "InvalidOption",
    "InvalidSchema",
    "LakebedError",
    "MissingDependency",
    "NotFound",
    "OutcomeUnknown",
    "StorageError",
    "Unsupported",
    "did_you_mean",
]


class LakebedError(Exception):
    """Root of all errors of this package: `except LakebedError` catches them all."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and errors travel back from worker processes.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(kind: type[LakebedError], message: str, hint: str) -> LakebedError:
    return kind(message, hint=hint)


class InvalidArgument(LakebedError):
    """An argument of the call is wrong: correct the call."""


class AccessDenied(InvalidArgument):
    """A server does not let us in: correct user, password or the server's rules. Work under way tries again."""


class InvalidOption(LakebedError):
    """An option is unknown, ill-typed, out of range, unhonoured or clashes with another: correct the option."""


class InvalidSchema(LakebedError):
    """A schema, or a change to one, is not allowed: correct the schema."""


class InvalidData(LakebedError):
    """Rows do not fit the table (missing column, null key, overflow, …): correct the rows."""


class NotFound(LakebedError):
    """A database, table, snapshot, tag or column does not exist: check the name, or create it."""


class AlreadyExists(LakebedError):
    """A database, table, tag or branch exists already: choose another name, or drop the old one."""


class CommitConflict(LakebedError):
    """Another commit changed what this one rests on: read the table again and redo the write."""


class Unsupported(LakebedError):
    """Paimon knows this, lakebed does not honour it: the hint says what works instead."""


class MissingDependency(LakebedError):
    """An optional package is needed for this: install the extra that the hint names."""


class CorruptFile(LakebedError):
    """A file's content can not be right (truncated, bit-flipped, foreign): restore it, or roll back past it."""


class StorageError(LakebedError):
    """The file system or object store failed: retry. What was committed before is still there."""


class FileMissing(StorageError):
    """A file that should exist is gone: somebody expired or deleted it; read the table again."""


class OutcomeUnknown(StorageError):
    """A write may or may not have taken effect: read back before trying again, and delete nothing."""


_TOLD = re.compile(r"lakebed\.errors\.(\w+): (.*?)\n  -> ([^\n]*)", re.DOTALL)


def told_in(text: str) -> LakebedError | None:
    """The error of ours whose stack an engine has made part of its own message; None if there is none."""
    for name, message, hint in reversed(_TOLD.findall(text)):
        if _kind(name) is not None:
            return rebuilt(name, message.strip(), hint.strip())
    return None


def rebuilt(name: str, message: str, hint: str) -> LakebedError:
    """The error whose class has that name."""
    return (_kind(name) or LakebedError)(message, hint=hint)


def _kind(name: str) -> type[LakebedError] | None:
    kind = globals().get(name)
    return kind if isinstance(kind, type) and issubclass(kind, LakebedError) else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A sentence that names the nearest valid choice, or lists the choices when they are few."""
    choices = sorted(set(known))
    near = difflib.get_close_matches(str(word), choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    if 0 < len(choices) <= 12:
        return "valid choices: " + ", ".join(f"`{choice}`" for choice in choices)
    return "check the spelling"
