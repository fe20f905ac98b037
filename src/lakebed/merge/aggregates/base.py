"""What an aggregate function is: it folds the values of one column, key by key.

A function sees all rows of all keys at once (`Segments`), oldest first, and answers with one value per key. Values that
were merged before come back as ordinary rows, so a function must give the same result however its input was cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar

import pyarrow as pa

from lakebed.errors import InvalidData, InvalidOption
from lakebed.merge.segments import Segments
from lakebed.records import dataclass
from lakebed.types.logical import DataField, DataType


@dataclass(frozen=True, slots=True)
class AggregateSettings:
    """The `fields.<column>.…` options of one column; each function looks at those it knows."""

    ignore_retract: bool = False
    distinct: bool = False
    list_agg_delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_sequence_field: tuple[str, ...] = ()
    nested_key_null_strategy: str = "merge"
    count_limit: int | None = None
    ts_field: str | None = None


class Picks(Enum):
    """Whether a function's result is one of its values, and by what it is chosen."""

    NONE = "none"
    LAST = "the last row"
    LAST_VALUE = "the last row with a value"
    FIRST = "the first row"
    FIRST_VALUE = "the first row with a value"
    BY_VALUE = "how the values compare"


class Aggregate(ABC):
    """One function on one column."""

    name: ClassVar[str]
    takes: ClassVar[str]
    """The types it takes, in words, for error messages and the reference page."""
    can_retract: ClassVar[bool] = False
    forgets_early_retracts: ClassVar[bool] = False
    """Whether a value that is taken back before one was added is forgotten: among rows that are folded without the
    older ones of their key, as those of one commit are, there is nothing to take it from."""
    takes_newest: ClassVar[bool] = False
    """Whether the result is the newest value, as long as no row is a retract and no value null."""
    keeps_arrival_order: ClassVar[bool] = False
    """Whether late rows of a sequence group stay behind earlier ones for it (only `collect`)."""
    picks: ClassVar[Picks] = Picks.NONE
    """Where it is chosen by place, numbers of rows may be folded instead of values, to learn whose value it is."""

    def __init__(self, field: DataField, settings: AggregateSettings) -> None:
        self.field = field
        self.settings = settings

    @classmethod
    @abstractmethod
    def accepts(cls, data_type: DataType) -> bool:
        """Whether the function works on columns of this type."""

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        """Raises InvalidOption when the function does not fit the column or its settings."""
        if not cls.accepts(field.type):
            raise InvalidOption(
                f"aggregate function `{cls.name}` does not take column `{field.name}` of type {field.type}",
                hint=f"`{cls.name}` takes {cls.takes}; choose another function or another type",
            )

    def reduce(self, column: pa.Array, segments: Segments) -> pa.Array:
        """One value per segment, of the column's type."""
        if segments.has_retracts:
            if self.settings.ignore_retract:
                return self._without_retracts(column, segments)
            if not self.can_retract:
                raise self._refusal()
        return self.fold(column, segments)

    def check_retracted(self, values: pa.Array) -> None:
        """Raises if there are values to be taken back that can not be."""
        if len(values) and not self.can_retract and not self.settings.ignore_retract:
            raise self._refusal()

    def _refusal(self) -> InvalidData:
        return InvalidData(
            f"column `{self.field.name}`: aggregate function `{self.name}` can not take back a value",
            hint=f"set `fields.{self.field.name}.ignore-retract` to true, or send no -U and -D rows",
        )

    def _without_retracts(self, column: pa.Array, segments: Segments) -> pa.Array:
        """Retracts leave the value as it is; a key that has nothing else keeps null."""
        kept, remaining = segments.only(~segments.retracts)
        if not len(kept):
            return pa.nulls(len(segments), column.type)
        return segments.spread(self.fold(column, kept), remaining)

    @abstractmethod
    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        """One value per segment. Retracts are in `segments` only if `can_retract`."""
