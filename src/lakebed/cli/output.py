"""What commands print: rows and records, as a table, as JSON or as CSV.

Tables are drawn with rich on a terminal and are plain text elsewhere, so that pipes see no boxes, colours or cut-off
values. JSON and CSV hold all columns with their own names; a table may leave some out or show them more readably.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from lakebed.cells import plain, text, to_json

FORMATS: Final = ("table", "json", "csv")
Show = Callable[[Any], str]
"""How a table shows the values of a column."""
_NO_SHOWS: Mapping[str, Show] = {}
_SHORT: Final = 20
"""As long as a time."""


class Output:
    """Prints in the format that was asked for, on standard output."""

    def __init__(self, form: str) -> None:
        self.form = form

    @property
    def is_terminal(self) -> bool:
        """Whether a person is looking at a table."""
        return self.form == "table" and sys.stdout.isatty()

    def rows(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        shown: Mapping[str, str] | None = None,
        shows: Mapping[str, Show] = _NO_SHOWS,
        null: str = "",
    ) -> None:
        """Many things of one kind. In a table only the columns `shown` (all), with headings; `shows` spells values."""
        if self.form == "json":
            self._json_rows(columns, rows)
        elif self.form == "csv":
            self.csv_lines([columns, *rows])
        else:
            self._table(columns, list(rows), shown or dict(zip(columns, columns, strict=True)), shows, null)

    def record(self, members: Mapping[str, object], sentence: str) -> None:
        """One thing. In a table it is the sentence."""
        self.records([members], [sentence], is_one=True)

    def records(
        self, members: Sequence[Mapping[str, object]], sentences: Iterable[str], *, is_one: bool = False
    ) -> None:
        """Some things, each told by a sentence in a table; several are a list in JSON."""
        if self.form == "json":
            self.line(to_json(members[0] if is_one else list(members)))
        elif self.form == "csv":
            self.csv_lines([list(members[0]) if members else [], *(list(item.values()) for item in members)])
        else:
            for sentence in sentences:
                self.line(sentence)

    def line(self, line: str) -> None:
        """One line, at once."""
        print(line, flush=True)  # noqa: T201

    def csv_lines(self, lines: Iterable[Sequence[object]]) -> None:
        """Lines of CSV, nulls empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for line in lines:
            writer.writerow([_csv_text(value) for value in line])
        print(buffer.getvalue(), end="", flush=True)  # noqa: T201

    def _json_rows(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        lines = [to_json(dict(zip(columns, row, strict=True))) for row in rows]
        self.line("[\n  " + ",\n  ".join(lines) + "\n]" if lines else "[]")

    def _table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        shown: Mapping[str, str],
        shows: Mapping[str, Show],
        null: str,
    ) -> None:
        names = list(shown.values())
        places = [columns.index(name) for name in shown]
        numeric = [_are_numbers([row[place] for row in rows]) for place in places]
        functions = [shows.get(name, text) for name in shown]
        lines = [
            [null if row[place] is None else show(row[place]) for place, show in zip(places, functions, strict=True)]
            for row in rows
        ]
        if self.is_terminal:
            draw(names, lines, numeric)
            return
        for line in aligned([names, *lines], numeric):
            print(line)  # noqa: T201
        sys.stdout.flush()


def aligned(rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> list[str]:
    """Lines of plain text in which columns stand below one another, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]


def draw(names: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """Draws a table for a person."""
    from rich import box  # takes as long to load as a short command takes to run
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for n, (name, is_number) in enumerate(zip(names, numeric, strict=True)):
        # Where the terminal is too narrow, long texts are folded rather than numbers and times.
        is_short = all(len(row[n]) <= _SHORT for row in rows)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=is_short)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # not as markup: a key is written `[1]`
    console = Console()
    if rows and _least_width(names, rows) > console.width:
        show(standing(names, rows))
        return
    with console.capture() as drawn:
        console.print(table)
        if not rows:
            console.print("no rows", style="dim")
    show(drawn.get())


def _least_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table must be to be read: long texts can be folded, short ones can not."""
    return sum(min(_SHORT, max(map(len, column))) + 3 for column in zip(names, *rows, strict=True))


def standing(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of more columns than a line has room for: each column on a line of its own."""
    width = max(map(len, names))
    lines = [
        "\n".join([f"--- row {n}", *(f"{name:<{width}}  {cell}" for name, cell in zip(names, row, strict=True))])
        for n, row in enumerate(rows, 1)
    ]
    return "\n".join(lines) + "\n"


def show(drawn: str) -> None:
    """Prints what was drawn; page by page if it is taller than the terminal, with $PAGER or whatever there is."""
    is_taller = drawn.count("\n") >= shutil.get_terminal_size().lines
    if not (is_taller and sys.stdin.isatty() and sys.stdout.isatty()):
        print(drawn, end="", flush=True)  # noqa: T201
        return
    import pydoc  # only for a person with much to read

    # Colours as they are, and the page stays on the screen when the pager is left.
    os.environ.setdefault("LESS", "-RFX")
    pydoc.pager(drawn)


def _are_numbers(values: Sequence[object]) -> bool:
    return all(isinstance(value, int | float | Decimal | None) and not isinstance(value, bool) for value in values)


def _csv_text(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return to_json(value)
    if isinstance(value, str):
        return value
    return text(plain(value))


__all__ = ["FORMATS", "Output", "Show", "aligned", "draw", "show", "standing"]
