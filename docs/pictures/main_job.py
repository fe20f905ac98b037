"""The main job: a database in use on the left, its tables in the lake, who reads and who follows them on the right."""

from __future__ import annotations

from docs.pictures.drawing import ROW, Drawing

_MEANING = (
    "A database is used: two orders are inserted, one is paid, one is deleted. The command lakebed cdc brings every "
    "change into a table of the lake, exactly once. The table holds the paid order now and both orders at snapshot 1. "
    "Data frames, SQL and other engines read it; streams follow it and are told each change with its old row."
)


def pictures() -> dict[str, str]:
    """Names of files, and what they hold."""
    return {"main-job.svg": _picture()}


def _picture() -> str:
    drawing = Drawing(920, 340, "A database in use becomes tables that can be read and followed", _MEANING)
    _database(drawing)
    _table(drawing)
    _readers(drawing)
    drawing.text(460, 320, "Apache Paimon tables on local disk, S3, Google Cloud or Azure", "soft", "middle")
    return drawing.svg()


def _database(drawing: Drawing) -> None:
    drawing.text(24, 40, "a database in use", "head")
    drawing.text(24, 60, "PostgreSQL, MySQL, MariaDB, Kafka", "soft small")
    drawing.card(24, 74, 226, 216)
    steps = [
        ("+I", "three", "INSERT 1, 'new'"),
        ("+I", "three", "INSERT 2, 'new'"),
        ("+U", "one", "UPDATE 1, 'paid'"),
        ("-D", "gone", "DELETE 2"),
    ]
    for place, (kind, colour, statement) in enumerate(steps):
        drawing.row(32, 86 + 34 * place, [kind, statement], (48, 160), [colour, ""])
    drawing.text(40, 252, "and whatever comes next,", "soft small")
    drawing.text(40, 270, "changes of columns included", "soft small")
    drawing.arrow(258, 168, 356, 168)
    drawing.text(306, 156, "lakebed cdc", "fixed", "middle")
    drawing.text(306, 190, "exactly once", "soft small", "middle")


def _table(drawing: Drawing) -> None:
    drawing.text(364, 40, "a table of the lake", "head")
    drawing.text(364, 60, "key id: the newest row wins", "soft small")
    drawing.card(364, 74, 208, 216)
    drawing.text(378, 100, "now", "soft")
    drawing.row(370, 108, ["1", "paid"], (50, 100), ["", "one"])
    drawing.text(378, 160, "at snapshot 1", "soft")
    drawing.row(370, 168, ["1", "new"], (50, 100), ["", "three"])
    drawing.row(370, 168 + ROW, ["2", "new"], (50, 100), ["", "three"])
    drawing.text(378, 252, "tags, branches, rollback,", "soft small")
    drawing.text(378, 270, "compaction by itself", "soft small")


def _readers(drawing: Drawing) -> None:
    drawing.arrow(580, 121, 644, 121)
    drawing.text(610, 111, "read", "soft small", "middle")
    drawing.text(652, 40, "rows for everybody", "head")
    drawing.text(652, 60, "in Python and in other engines", "soft small")
    drawing.card(652, 74, 244, 82)
    drawing.lines(666, 98, ["SQL, pyarrow, pandas, polars,", "DuckDB, Spark, Flink, Trino,", "Doris, StarRocks"])
    drawing.arrow(580, 243, 644, 243)
    drawing.text(610, 233, "follow", "soft small", "middle")
    drawing.text(652, 186, "changes for streams", "head")
    drawing.card(652, 198, 244, 92)
    events = [("-U", "two", "1, new"), ("+U", "one", "1, paid"), ("-D", "gone", "2, new")]
    for place, (kind, colour, row) in enumerate(events):
        drawing.row(658, 205 + ROW * place, [kind, row], (48, 120), [colour, ""])
