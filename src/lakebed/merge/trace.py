"""What became of every stored row while an engine folded the rows of its key, column by column.

An engine that is handed a `Trace` tells it at the place where it decides: the rule stands once, and who asks why a row
is as it is hears it from the rule itself. Nothing is told, and nothing is paid, unless somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Roles = npt.NDArray[np.int8]


class Role(IntEnum):
    """The part that a stored row plays in one column of the result."""

    OLDER = 0
    VALUE = 1
    COUNTED = 2
    TAKES_BACK = 3
    NO_VALUE = 4
    LATE = 5
    NO_SEQUENCE = 6
    IGNORED = 7
    FORGOTTEN = 8
    REMOVES = 9
    LATER = 10
    IN_LOWER_LEVEL = 11
    UNSEEN = 12

    @property
    def text(self) -> str:
        """In words."""
        return _TEXTS[self]


_TEXTS: Mapping[Role, str] = {
    Role.OLDER: "a newer version has the say",
    Role.VALUE: "its value is shown",
    Role.COUNTED: "its value is part of the result",
    Role.TAKES_BACK: "takes a value back",
    Role.NO_VALUE: "null: changes nothing",
    Role.LATE: "its sequence group is older than what was there",
    Role.NO_SEQUENCE: "says nothing of the sequence group",
    Role.IGNORED: "a retract that is ignored",
    Role.FORGOTTEN: "forgotten: a later -D removed the row",
    Role.REMOVES: "removes the row",
    Role.LATER: "an earlier version stays",
    Role.IN_LOWER_LEVEL: "a lower level holds all of it",
    Role.UNSEEN: "not merged",
}


class Trace:
    """Roles of the rows of a batch, by column."""

    def __init__(self, row_count: int, columns: Sequence[str]) -> None:
        self.roles: dict[str, Roles] = {name: np.zeros(row_count, np.int8) for name in columns}

    def note(self, rows: npt.NDArray[Any], role: Role, column: str | None = None) -> None:
        """Gives rows, by their numbers, a role in a column, or in all of them. A later word replaces an earlier one."""
        for name in self.roles if column is None else (column,):
            self.roles[name][rows] = role

    def demote(self, rows: npt.NDArray[Any], role: Role, column: str) -> None:
        """Gives another role to those of the rows whose values would have counted."""
        roles = self.roles[column]
        roles[rows[roles[rows] == Role.COUNTED]] = role


__all__ = ["Role", "Roles", "Trace"]
