"""Values of statements, as they stand there: before they have the type of a column."""

from __future__ import annotations

from typing import Any, TypeAlias

from lakebed.records import dataclass
from lakebed.types.logical import TypeRoot


class NotLiteral(Exception):
    """This can not be worked out here."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value.

    Moments are nanoseconds since 1970 on a clock without a zone, times of day nanoseconds since midnight, dates `date`.
    """

    root: TypeRoot
    value: Any


@dataclass(frozen=True, slots=True)
class Items:
    """An array."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A map."""

    keys: tuple[Value, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """A row or struct."""

    values: tuple[Value, ...]


Value: TypeAlias = Scalar | Items | Pairs | Members | None
"""None is NULL."""
