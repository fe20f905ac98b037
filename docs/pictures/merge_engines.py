"""The same three commits, and what each merge engine makes of them: asked of real tables, so the pictures are true."""

from __future__ import annotations

import pyarrow as pa
from docs.pictures.drawing import ROW, TINTS, Drawing

import lakebed

_COMMITS: list[list[tuple[int, str | None, int | None]]] = [
    [(1, "new", 20), (2, "new", 5)],
    [(1, "paid", None)],
    [(1, None, 25)],
]
_COLUMNS = ("id", "state", "amount")

_ENGINES = {
    "deduplicate": ({}, ["The newest row of a key stays,", "as it was written."]),
    "partial-update": ({}, ["A null leaves the column as it is:", "rows are put together from parts."]),
    "aggregation": (
        {"fields.amount.aggregate-function": "sum"},
        ["Each column has a function: here amount", "is a sum, state its last value."],
    ),
    "first-row": ({}, ["The first row of a key stays,", "later ones are left out."]),
}


def pictures() -> dict[str, str]:
    """Names of files, and what they hold."""
    return {f"merge-{engine}.svg": _picture(engine) for engine in _ENGINES}


def _picture(engine: str) -> str:
    options, rule = _ENGINES[engine]
    result = _result(engine, options)
    meaning = f"Three commits of rows with the same keys; a read of the table gives {_spoken(result)}."
    drawing = Drawing(780, 284, f"Merge engine {engine}", meaning)
    drawing.text(24, 36, engine, "title")
    drawing.lines(450, 32, rule, "soft")
    widths, y = (44, 76, 84), 84
    drawing.row(122, y - 26, _COLUMNS, widths, ["", "", ""])
    for number, (rows, colour) in enumerate(zip(_COMMITS, TINTS, strict=True), 1):
        height = ROW * len(rows) + 12
        drawing.card(116, y, sum(widths) + 12, height)
        drawing.text(24, y + 24, f"commit {number}", "head")
        for place, row in enumerate(rows):
            drawing.row(122, y + 6 + ROW * place, [_shown(value) for value in row], widths, [colour] * 3)
        y += height + 14
    table_y = 146
    drawing.arrow(346, table_y + 46, 444, table_y + 46)
    drawing.text(395, table_y + 36, "merge", "soft", "middle")
    drawing.text(450, table_y - 14, "what a read gives", "head")
    drawing.card(450, table_y, sum(widths) + 12, ROW * (len(result) + 1) + 12)
    drawing.row(456, table_y + 6, _COLUMNS, widths, ["", "", ""])
    for place, row in enumerate(result, 1):
        drawing.row(456, table_y + 6 + ROW * place, [_shown(value) for value in row], widths, _origins(row))
    if any("merged" in _origins(row) for row in result):
        drawing.fill(676, table_y + 38, 16, 16, "merged")
        drawing.text(698, table_y + 51, "of several", "soft small")
    return drawing.svg()


def _result(engine: str, options: dict[str, str]) -> list[tuple[int, str | None, int | None]]:
    table = lakebed.connect(f"memory://pictures-merge-{engine}").create_table(
        "orders",
        {"id": "BIGINT NOT NULL", "state": "STRING", "amount": "BIGINT"},
        primary_key=["id"],
        options={"bucket": "1", "merge-engine": engine, **options},
    )
    for rows in _COMMITS:
        columns = zip(*rows, strict=True)
        table.write(pa.table(dict(zip(_COLUMNS, map(list, columns), strict=True)), schema=table.arrow_schema))
    return [tuple(row.values()) for row in table.to_arrow().sort_by("id").to_pylist()]


def _origins(row: tuple[int, str | None, int | None]) -> list[str]:
    """The colour of the commit that each value came from; another one if it came from several."""
    newest = {number: rows for number, rows in enumerate(_COMMITS) if any(each[0] == row[0] for each in rows)}
    whole = [number for number, rows in newest.items() if row in rows]
    if whole:
        return [TINTS[whole[-1]]] * 3
    colours = []
    for place, value in enumerate(row):
        came = [
            number for number, rows in newest.items() for each in rows if each[0] == row[0] and each[place] == value
        ]
        colours.append("" if place == 0 else TINTS[came[-1]] if came else "merged")
    return colours


def _shown(value: object) -> str:
    return "–" if value is None else str(value)


def _spoken(rows: list[tuple[int, str | None, int | None]]) -> str:
    return " and ".join("(" + ", ".join("null" if value is None else str(value) for value in row) + ")" for row in rows)
