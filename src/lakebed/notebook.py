"""How tables, lakes and snapshots look in a notebook: small HTML tables, made of what is known without reading rows.

Also what is said when somebody asks one of them for a member that it has not, in a notebook the most common mistake.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from itertools import islice

from lakebed.errors import did_you_mean

_MOST_ROWS = 40
_MOST_NAMES = 8
_CLOSE = 0.75
"""How much alike two words are of which one may be meant for the other."""


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    """A table of `count` rows under a caption; of many only the first are shown, and it says so."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join(_html_row(row) for row in islice(rows, _MOST_ROWS))
    more = f"<p>… and {count - _MOST_ROWS} more</p>" if count > _MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if count else ""
    return f"<div><p>{escape(caption)}</p>{table}{more}</div>"


def _html_row(row: Sequence[object]) -> str:
    cells = "".join(f"<td style='text-align:left'>{'' if cell is None else escape(str(cell))}</td>" for cell in row)
    return f"<tr>{cells}</tr>"


def short_list(names: Sequence[str]) -> str:
    """Names with commas; of many the first, and how many there are."""
    if len(names) <= _MOST_NAMES + 2:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])}, … ({len(names)} columns)"


def moment(time_millis: int) -> str:
    """A time as people read it, in UTC."""
    try:
        return dt.datetime.fromtimestamp(time_millis / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{time_millis} ms"


def no_member(holder: object, name: str, habits: Mapping[str, str], otherwise: str | None = None) -> AttributeError:
    """The error for a member that is not there; `habits` are words of other libraries, and what to write here.

    `otherwise` is said of a word that resembles no member closely.
    """
    kind = type(holder).__name__
    said = f"{kind} has no attribute `{name}`"
    if not name.startswith("_"):
        known = [each for each in dir(type(holder)) if not each.startswith("_")]
        hint = f"write {habits[name]}" if name in habits else did_you_mean(name, known)
        if name not in habits and otherwise is not None and not get_close_matches(name, known, cutoff=_CLOSE):
            hint = otherwise
        said = f"{said}\n  -> {hint}"
    return AttributeError(said, name=name, obj=holder)


__all__ = ["html_table", "moment", "no_member", "short_list"]
