"""Columns that the sync adds to a table, computed from columns of the source: `dt=date_format(created, yyyy-MM-dd)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from lakebed.cdc.computed_functions import FUNCTIONS, Argument, Function
from lakebed.cdc.envelope import Description
from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import STRING, DataType

_FORM: Final = re.compile(r"\s*([^=\s][^=]*?)\s*=\s*([A-Za-z_]+)\s*\((.*)\)\s*", re.DOTALL)
_HINT: Final = "write it like `dt=date_format(created_at, yyyy-MM-dd)`"


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """One column: its name, its function, the source's column that it works on, and the arguments after it."""

    name: str
    function: str
    column: str | None
    arguments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The column that a text such as `y=year(created_at)` describes."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidArgument(f"computed column {text!r} is not understood", hint=_HINT)
        name, function_name, inside = found.group(1), found.group(2).lower(), found.group(3).strip()
        function = FUNCTIONS.get(function_name)
        if function is None:
            raise InvalidArgument(
                f"computed column `{name}`: there is no function `{function_name}`",
                hint=did_you_mean(function_name, FUNCTIONS),
            )
        given = _split(inside)
        column = given.pop(0) if function.takes_column and given else None
        if (function.takes_column and not column) or not function.fewest <= len(given) <= function.most:
            raise InvalidArgument(
                f"computed column `{name}`: {function_name}({inside}) has the wrong number of arguments", hint=_HINT
            )
        try:
            function.check(given)
        except InvalidArgument as error:
            raise InvalidArgument(f"computed column `{name}`: {error.message}", hint=error.hint) from error
        return cls(name, function_name, column, tuple(given))

    def type_in(self, description: Description, *, lower_case: bool = False) -> DataType | None:
        """The column's type over a source table; None if that lacks the argument and the type depends on it."""
        name = self._found(description.names, lower_case)
        column = description.column(name) if name is not None else None
        if column is None and self.function == "truncate":
            return None
        return self._function.result(column.type if column is not None else None, self.arguments)

    def is_missing_in(self, description: Description, *, lower_case: bool = False) -> bool:
        """Whether the source table lacks the column that this one is computed from."""
        return self.column is not None and self._found(description.names, lower_case) is None

    def evaluate(
        self,
        columns: Mapping[str, pa.Array],
        types: Mapping[str, DataType],
        count: int,
        wanted: DataType,
        *,
        lower_case: bool = False,
    ) -> pa.Array:
        """Values for some rows of the source. Without the argument's column they are NULL."""
        if self.column is None:
            return self._function.evaluate(Argument(pa.nulls(count), STRING), self.arguments)
        name = self._found(types, lower_case)
        if name is None:
            return pa.nulls(count, to_arrow_type(wanted))
        try:
            return self._function.evaluate(Argument(columns[name], types[name]), self.arguments)
        except (InvalidData, InvalidArgument) as error:
            raise InvalidData(f"computed column `{self.name}`: {error.message}", hint=error.hint) from error
        except pa.ArrowException as error:
            raise InvalidData(
                f"computed column `{self.name}`: {error}", hint=f"look at the values of column `{name}` in the source"
            ) from error

    def argument_in(self, names: tuple[str, ...], *, lower_case: bool = False) -> str | None:
        """The source's column that this one is computed from, if there is one."""
        return self._found(names, lower_case)

    @property
    def _function(self) -> Function:
        return FUNCTIONS[self.function]

    def _found(self, names: Mapping[str, object] | tuple[str, ...], lower_case: bool) -> str | None:
        if self.column in names:
            return self.column
        if not lower_case or self.column is None:
            return None
        return next((name for name in names if name.lower() == self.column.lower()), None)


def _split(inside: str) -> list[str]:
    """Arguments between commas; those inside parentheses (as in `DECIMAL(10, 2)`) or quotes are no separators."""
    parts, depth, quoted, start = [], 0, "", 0
    for place, sign in enumerate(inside):
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'`" and not inside[start:place].strip():
            quoted = sign
        elif sign in "(<":
            depth += 1
        elif sign in ")>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(inside[start:place])
            start = place + 1
    if not inside:
        return []
    return [_unquoted(part.strip()) for part in (*parts, inside[start:])]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`" else text


__all__ = ["ComputedColumn"]
