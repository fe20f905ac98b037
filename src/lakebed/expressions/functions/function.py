"""What a function is on the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lakebed.expressions.nodes import Expression, NotProven
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """`build` makes the call of its arguments; `shown` is its name in the names of columns, if not the one it is on."""

    build: Callable[..., Expression]
    least: int
    most: int
    shown: str | None = None
    lambda_types: Callable[[list[Expression], int], Sequence[pa.DataType]] | None = None
    """Types of a lambda's parameters, of the arguments before it and how many there are; None: it takes none."""

    def __call__(self, name: str, arguments: Sequence[Expression]) -> Expression:
        """The call; NotProven names the function."""
        if not self.least <= len(arguments) <= self.most:
            raise NotProven(f"`{name}` with {len(arguments)} arguments")
        return self.build(*arguments)


MANY = 1 << 10
"""As many arguments as there are."""
