"""A copy of the pages to send to somebody: plain files that any browser opens, without a server and without scripts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lakebed.errors import InvalidArgument, LakebedError
from lakebed.lake import Lake
from lakebed.notebook import moment
from lakebed.ui import facts

_POLICY = "default-src 'none'; style-src 'self' file:; img-src 'self' data:"


def export(lake: Lake, folder: str | os.PathLike[str], *, rows: int = 20) -> list[str]:
    """Writes a page for the lake and one for each table; gives the names of the tables.

    `rows` of each table are in it, so that one may send it without them: 0 leaves them out.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidArgument(f"{place} is there already", hint="name a directory that is new, or empty")
    place.mkdir(parents=True, exist_ok=True)
    for name in ("style.css", "icon.svg"):
        (place / name).write_bytes(files("lakebed.ui").joinpath("static", name).read_bytes())
    names = [f"{database}.{name}" for database in lake.databases() for name in lake.tables(database)]
    lines = []
    for number, name in enumerate(names):
        summary = facts.table_summary(lake, name)
        file = f"{number + 1:04}-{''.join(c if c.isalnum() else '-' for c in name)[:60]}.html"
        if "error" in summary:
            lines.append((escape(name), escape(summary["error"]), "", "", ""))
            continue
        (place / file).write_text(_page(name, _table(lake, name, rows)), encoding="utf-8")
        latest = summary["snapshot"]
        link = f'<a href="{escape(quote(file))}">{escape(name)}</a>'
        told = ("", "") if latest is None else (f"{latest['total_rows']:,}", moment(latest["time_ms"]))
        lines.append((link, escape(summary["kind"]), escape(", ".join(summary["key"]) or "–"), *told))
    body = [
        "<h1>Tables</h1>",
        f"<p class='faint'>A copy of the lake at {escape(lake.location)}</p>",
        _grid(("table", "kind", "key", "records stored", "latest snapshot"), lines),
    ]
    (place / "index.html").write_text(_page("Lakebed", body), encoding="utf-8")
    return names


def _table(lake: Lake, name: str, rows: int) -> list[str]:
    table, found = lake.table(name), facts.table_facts(lake, name)
    parts = [f"<p><a href='index.html'>← all tables</a></p><h1>{escape(name)}</h1>"]
    if found["comment"]:
        parts.append(f"<p>{escape(found['comment'])}</p>")
    parts += ["<h2>Snapshots</h2>", f"<div class='picture'>{table.timeline().to_svg()}</div>"]
    parts += ["<h2>Files</h2>", f"<div class='picture'>{table.lsm().to_svg()}</div>"]
    columns = (
        (each["name"], each["type"], "primary key" if each["in_key"] else "", each["comment"] or "")
        for each in found["columns"]
    )
    parts += ["<h2>Columns</h2>", _cells(("column", "type", "", "comment"), columns)]
    parts += ["<h2>Options</h2>", _cells(("option", "value"), found["options"].items())]
    if rows:
        try:
            shown = facts.rows_of(lake, name, limit=rows)
            parts += ["<h2>Some rows</h2>", _cells(shown["columns"], shown["rows"])]
        except LakebedError as error:
            parts.append(f"<p class='error'>{escape(error.message)}</p>")
    return parts


def _page(title: str, body: Iterable[str]) -> str:
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)} – Lakebed</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        "<meta name='color-scheme' content='light dark'>"
        f"<link rel='stylesheet' href='style.css'><link rel='icon' href='icon.svg'></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _cells(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return _grid(header, ([("null" if cell is None else escape(str(cell))) for cell in row] for row in rows))


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


__all__ = ["export"]
