"""What an aggregate function is on the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.expressions.nodes import Aggregation, Expression, NotProven
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`build` makes the aggregation of its arguments, without DISTINCT, FILTER, order and window."""

    build: Callable[..., Aggregation]
    least: int = 1
    most: int = 1
    takes_distinct: bool = True
    takes_order: bool = False
    """Whether the order of rows matters to it, so that it must be said, and is honoured."""
    value_is_in_order: bool = False
    """Whether its value stands in WITHIN GROUP (ORDER BY value); it is the first argument then."""
    goes_over_windows: bool = True
    takes_frame: bool = True
    """Whether the frame of a window says which rows it sees."""
    shown: str | None = None

    def __call__(self, name: str, arguments: Sequence[Expression]) -> Aggregation:
        """The aggregation; NotProven names the function."""
        if not self.least <= len(arguments) <= self.most:
            raise NotProven(f"`{name}` with {len(arguments)} arguments")
        return self.build(*arguments)
