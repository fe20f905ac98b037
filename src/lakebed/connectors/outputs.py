"""`print` and `blackhole`: sinks that keep nothing. Rows come with their kinds, step by step, to each process anew."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.views.inserts.sink import Takes

ROW_KIND: Final = "_row_kind"
"""The first column of what a sink is given: `+I`, `-U`, `+U` or `-D`."""


class _Forgetful:
    """What lasts as long as the process: how far its INSERT is."""

    takes = Takes.ANYTHING
    anew = "start it again: it begins with all rows"
    says = "nothing is kept: each start begins with all rows"

    def __init__(self) -> None:
        self._words: Mapping[str, str] | None = None

    def known(self) -> Mapping[str, str] | None:
        """How far it is."""
        return self._words

    def begin(self) -> Mapping[str, str] | None:
        """How far it is."""
        return self._words

    def close(self) -> None:
        """Nothing is held."""


class PrintSink(_Forgetful):
    """Prints each row as Flink does: `+I[1, a]`. A step that is done again after a crash is printed again."""

    def __init__(self, table: ConnectorTable, insert: str = "", stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._is_error = table.truth("standard-error")
        identifier = table.option("print-identifier")
        self._before = f"{identifier}> " if identifier else ""

    def write(self, batch: pa.Table, words: Mapping[str, str]) -> None:
        """Prints the rows of a step."""
        check_kinds(batch)
        stream = self._stream or (sys.stderr if self._is_error else sys.stdout)
        kinds, *columns = (column.to_pylist() for column in batch.columns)
        for number, kind in enumerate(kinds):  # a line for each row, for people
            stream.write(f"{self._before}{kind}[{', '.join(_shown(column[number]) for column in columns)}]\n")
        stream.flush()
        self._words = words


class BlackholeSink(_Forgetful):
    """Forgets what it is given."""

    def __init__(self, table: ConnectorTable, insert: str = "") -> None:
        super().__init__()

    def write(self, batch: pa.Table, words: Mapping[str, str]) -> None:
        """Looks at the rows, and lets them go."""
        check_kinds(batch)
        self._words = words


def check_kinds(batch: pa.Table) -> None:
    """Raises if rows come without their kinds."""
    if batch.num_columns == 0 or batch.schema.names[0] != ROW_KIND:
        raise InvalidArgument(f"rows for a sink have no first column `{ROW_KIND}`", hint=f"put `{ROW_KIND}` first")


def _shown(value: Any) -> str:
    """A value as Flink prints it."""
    forms: dict[type, Callable[[Any], str]] = {
        bool: lambda each: str(each).lower(),
        dt.datetime: _moment,
        dt.date: str,
        bytes: lambda each: f"[{', '.join(str(byte) for byte in each)}]",
        list: _listed,
        dict: lambda each: f"+I[{', '.join(_shown(part) for part in each.values())}]",
    }
    form = forms.get(type(value))
    return ("null" if value is None else str(value)) if form is None else form(value)


def _listed(values: list[Any]) -> str:
    if values and all(isinstance(each, tuple) and len(each) == 2 for each in values):  # a map
        return "{" + ", ".join(f"{_shown(key)}={_shown(value)}" for key, value in values) + "}"
    return f"[{', '.join(_shown(each) for each in values)}]"


def _moment(value: dt.datetime) -> str:
    """As Java's: a T between date and time, no zeros behind the last digit that says something; Z for a moment."""
    plain = value.replace(tzinfo=None)
    text = plain.isoformat(timespec="seconds")
    if plain.microsecond:
        digits = f"{plain.microsecond:06}"
        text += f".{digits[:3] if digits.endswith('000') else digits}"
    elif not plain.second:
        text = text.removesuffix(":00")
    return text + ("" if value.tzinfo is None else "Z")
