"""The same three commits, and what each changelog producer tells of them: asked of real tables, commit by commit."""

from __future__ import annotations

import pyarrow as pa
from docs.pictures.drawing import ROW, Drawing

import lakebed

_COMMITS = [
    [("+I", 1, "new"), ("+I", 2, "new")],
    [("+I", 1, "paid"), ("+I", 1, "packed")],
    [("+I", 1, "sent"), ("-D", 2, "new")],
]
_KINDS = {"+I": "three", "-U": "two", "+U": "one", "-D": "gone"}
_EVERY = len(_COMMITS)

_PRODUCERS = {
    "none": ({}, ["Each commit's rows as they lie in its files:", "the last one of a key, no old values."]),
    "input": ({}, ["Every row that came in, as it came;", "for sources that tell their changes."]),
    "lookup": ({}, ["Each commit's changes with their old rows,", "which are looked up before it ends."]),
    "full-compaction": (
        {"full-compaction.delta-commits": str(_EVERY)},
        ["The difference between full compactions,", f"here every {_EVERY} commits."],
    ),
}


def pictures() -> dict[str, str]:
    """Names of files, and what they hold."""
    return {f"changelog-{producer}.svg": _picture(producer) for producer in _PRODUCERS}


def _picture(producer: str) -> str:
    options, rule = _PRODUCERS[producer]
    told = _told(producer, options)
    heights = [
        max(ROW * max(len(rows), len(events)) + 12, ROW + 12) for rows, events in zip(_COMMITS, told, strict=True)
    ]
    drawing = Drawing(700, 100 + sum(heights) + 14 * len(heights), f"Changelog producer {producer}", _spoken(told))
    drawing.text(24, 36, producer, "title")
    drawing.lines(340, 30, rule, "soft")
    drawing.text(116, 84, "what is written", "head")
    drawing.text(450, 84, "what a stream is told", "head")
    y = 94
    for number, (rows, events, height) in enumerate(zip(_COMMITS, told, heights, strict=True), 1):
        drawing.text(24, y + 24, f"commit {number}", "head")
        _events(drawing, 116, y, rows)
        drawing.arrow(328, y + 19, 444, y + 19)
        if events:
            _events(drawing, 450, y, events)
        else:
            drawing.text(456, y + 24, "nothing yet", "soft")
        if producer == "lookup" and number > 1:
            drawing.text(384, y + 12, "old rows?", "soft small", "middle")
        if producer == "full-compaction" and events:
            drawing.text(384, y + 12, "compaction", "soft small", "middle")
        y += height + 14
    return drawing.svg()


def _events(drawing: Drawing, x: float, y: float, rows: list[tuple[str, int, str]]) -> None:
    widths = (48, 44, 100)
    drawing.card(x, y, sum(widths) + 12, ROW * len(rows) + 12)
    for place, (kind, key, state) in enumerate(rows):
        drawing.row(x + 6, y + 6 + ROW * place, [kind, str(key), state], widths, [_KINDS[kind], "", ""])


def _told(producer: str, options: dict[str, str]) -> list[list[tuple[str, int, str]]]:
    """What a stream that was there from the beginning is told after each commit."""
    table = lakebed.connect(f"memory://pictures-changelog-{producer}").create_table(
        "orders",
        {"id": "BIGINT NOT NULL", "state": "STRING"},
        primary_key=["id"],
        options={"bucket": "1", "changelog-producer": producer, **options},
    )
    told, seen = [], 0
    for number, rows in enumerate(_COMMITS, 1):
        kinds, keys, states = map(list, zip(*rows, strict=True))
        with table.writer(row_kind="kind", commit_user="pictures", commit_identifier=number) as writer:
            writer.write(pa.table({"id": keys, "state": states, "kind": kinds}))
        told.append([tuple(event.values()) for event in table.changes(since=seen).to_pylist()])
        latest = table.latest_snapshot()
        assert latest is not None
        seen = latest.id
    return told


def _spoken(told: list[list[tuple[str, int, str]]]) -> str:
    def of(events: list[tuple[str, int, str]]) -> str:
        return ", ".join(f"{kind} ({key}, {state})" for kind, key, state in events) or "nothing"

    return "A stream is told " + "; ".join(
        f"after commit {number}: {of(events)}" for number, events in enumerate(told, 1)
    )
