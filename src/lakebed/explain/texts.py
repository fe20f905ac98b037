"""How answers look to people: columns that stand below one another, small tables of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lakebed.notebook import html_table

_LONGEST = 40


def shown(value: Any) -> str:
    """A value in one line; long ones are cut."""
    text = "null" if value is None else " ".join(str(value).split("\n"))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines of text, each column as wide as its widest cell."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def html_of(caption: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A small table."""
    return html_table(caption, header, rows, len(rows))


def number_of(count: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


__all__ = ["aligned", "html_of", "number_of", "shown"]
