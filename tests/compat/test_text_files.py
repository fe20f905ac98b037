"""CSV, JSON and text data files: those of Paimon Java are read as it reads them, and it reads ours."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidSchema
from lakebed.schema.changes import AddColumn, DropColumn, RenameColumn, SetOption

from . import ours
from .judges import JavaJudge, Row, assert_same_rows, canonical_rows

ATOMS: dict[str, tuple[str, list[Any]]] = {
    "id": ("INT", [1, -2147483648, 2147483647]),
    "t": ("TINYINT", [-128, None, 127]),
    "b": ("BIGINT", [-(2**63), None, 2**63 - 1]),
    "yes": ("BOOLEAN", [True, None, False]),
    "f": ("FLOAT", [1.5, None, "NaN"]),
    "d": ("DOUBLE", [1e-10, None, 1.7976931348623157e308]),
    "dec": ("DECIMAL(38, 10)", ["1.2000000000", None, "-9999999999999999999999999999.9999999999"]),
    "day": ("DATE", ["1960-02-29", None, "9999-12-31"]),
    "tm": ("TIME(3)", ["03:04:05.120000", None, "23:59:59"]),
    "ts0": ("TIMESTAMP(0)", ["1969-12-31T23:59:59", None, "2020-01-02T03:04:05"]),
    "ts3": ("TIMESTAMP(3)", ["2020-01-02T03:04:05.120000", None, "2020-01-02T03:04:05"]),
    "ts6": ("TIMESTAMP(6)", ["2020-01-02T03:04:05.000001", None, "0001-01-01T00:00:00"]),
    "ts9": ("TIMESTAMP(9)", ["2020-01-02T03:04:05.123456789", None, "1700-01-01T00:00:00"]),
    "bin": ("BYTES", ["base64:AP8=", None, "base64:eA=="]),
    "c": ("CHAR(4)", ["ab", None, "é"]),
    "s": ("STRING", ['a,b "quoted" ü😀\t', None, "plain"]),
}
NESTED: dict[str, tuple[str, list[Any]]] = {
    "a": ("ARRAY<INT>", [[1, None], None, []]),
    "m": ("MAP<STRING, TIMESTAMP(3)>", [[["k", "2020-01-02T03:04:05"], ["l", None]], None, []]),
    "mi": ("MAP<INT, ARRAY<STRING>>", [[[7, ["x", None]]], None, [[8, None]]]),
    "r": ("ROW<x INT, y ROW<z STRING>>", [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}]),
    "lines": ("STRING", ["a\nb\r\n\\ \u0001", None, ""]),
}
SETTINGS = {
    "csv.field-delimiter": ";",
    "csv.quote-character": "'",
    "csv.null-literal": "NULL",
    "csv.include-header": "true",
}
CASES: dict[str, tuple[dict[str, str], dict[str, tuple[str, list[Any]]]]] = {
    "csv": ({"file.format": "csv", "file.compression": "none"}, ATOMS),
    "csv set": ({"file.format": "csv", "file.compression": "none", **SETTINGS}, ATOMS),
    "csv gzip": ({"file.format": "csv", "file.compression": "gzip"}, ATOMS),
    "json": ({"file.format": "json", "file.compression": "none"}, ATOMS | NESTED),
    "json bzip2": ({"file.format": "json", "file.compression": "bzip2"}, ATOMS | NESTED),
    "json deflate": ({"file.format": "json", "file.compression": "deflate"}, ATOMS | NESTED),
    "text": ({"file.format": "text", "file.compression": "none"}, {"s": ("STRING", ["x", "", "y,é"])}),
}


def _written(judge: JavaJudge, warehouse: Path, case: str, **keys: Any) -> list[Row]:
    options, columns = CASES[case]
    fields = [(name, kind, name not in keys.get("primary_keys", ())) for name, (kind, _) in columns.items()]
    judge.create(warehouse, ours.DATABASE, "t", fields, options=options | keys.pop("more", {}), **keys)
    rows = [{name: values[at] for name, (_, values) in columns.items()} for at in range(3)]
    judge.append(warehouse, ours.DATABASE, "t", rows[:2])
    judge.append(warehouse, ours.DATABASE, "t", rows[2:])
    return canonical_rows(rows)


def _formats(case: str) -> list[Row]:
    """What `t$files` says after a compaction."""
    return [{"file_format": CASES[case][0]["file.format"]}]


@pytest.mark.parametrize("release", ["java_judge", "java2_judge"])
@pytest.mark.parametrize("case", CASES)
def test_text_files_of_paimon(case: str, release: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every value comes out as it went in, which is what Paimon reads too, also when we write and rewrite them."""
    judge: JavaJudge = request.getfixturevalue(release)
    rows = _written(judge, tmp_path, case)
    table = ours.open_table(tmp_path, "t")
    assert_same_rows(ours.read(table), rows)
    assert_same_rows(judge.read(tmp_path, ours.DATABASE, "t"), rows)
    ours.write(table, rows)
    table.compact(full=True)
    assert_same_rows(ours.read(ours.open_table(tmp_path, "t$files"), columns=["file_format"]), _formats(case))
    assert_same_rows(ours.read(table), canonical_rows(rows * 2))
    assert_same_rows(judge.read(tmp_path, ours.DATABASE, "t"), canonical_rows(rows * 2))


def test_a_table_leaves_text_files_behind(java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Once `file.format` is another, rows can be added, and a compaction rewrites the text files."""
    rows = _written(java2_judge, tmp_path, "json")
    table = ours.open_table(tmp_path, "t")
    table.alter(SetOption("file.format", "parquet"), SetOption("file.compression", "zstd"))
    table = ours.open_table(tmp_path, "t")
    ours.write(table, rows)
    table.compact(full=True)
    assert_same_rows(ours.read(table), canonical_rows(rows * 2))
    assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), canonical_rows(rows * 2))


@pytest.mark.parametrize("case", ["csv", "json"])
def test_keyed_text_files(case: str, java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Files of a table with a key have columns of the engine in front, which count as places in a CSV line."""
    rows = _written(java2_judge, tmp_path, case, primary_keys=["id"], more={"bucket": "1", "write-only": "true"})
    table = ours.open_table(tmp_path, "t")
    assert_same_rows(ours.read(table), rows)
    if case == "json":
        assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), rows)
        return
    # Paimon itself reads other columns in their places once they are compacted.
    with pytest.raises(InvalidSchema, match="csv is no format"):
        ours.write(table, rows)
    table.alter(SetOption("file.format", "parquet"), SetOption("file.compression", "zstd"))
    table.compact(full=True)
    assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), rows)


@pytest.mark.parametrize("case", ["csv", "json"])
def test_partitioned_text_files(case: str, java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Columns of the partition stand in the files too, and filters leave out nothing that matches."""
    rows = _written(java2_judge, tmp_path, case, partition_keys=["yes"])
    table = ours.open_table(tmp_path, "t")
    assert_same_rows(ours.read(table), rows)
    assert_same_rows(
        ours.read(table, filter=[("yes", "=", True), ("t", "=", -128)]), [row for row in rows if row["yes"]]
    )


NASTY = [
    *(
        "a,b",
        'say "x"',
        '"',
        "\\",
        "\\\\",
        'x\\"',
        "end\\",
        "'",
        ";",
        "|",
        "\t",
        " ",
        "  a  ",
        "\u00a0",
        "\u3000",
        "\u2028",
    ),
    *(
        "\x01",
        "\x1f",
        "\x7f",
        "\ufeffbom",
        "ü😀",
        "NULL",
        "null",
        "nan",
        "true",
        "0",
        "-",
        "#",
        "\\n",
        "\\N",
        "{}",
        "[1]",
    ),
    *("a" * 3000, '""', '"a","b"', ",", ",,", "\\,", '\\",', "\x00"),
]
"""Texts that mean something to one writer or reader of lines or another."""
LINES = ["", "a\nb", "\r", "\r\n", "\n\n"]
MORE_SETTINGS: dict[str, tuple[dict[str, str], list[str]]] = {
    "csv": ({"csv.null-literal": "~"}, [*NASTY, ""]),
    "csv empty is null": ({}, NASTY),
    "csv other characters": (
        {
            "csv.field-delimiter": ";",
            "csv.quote-character": "'",
            "csv.escape-character": "|",
            "csv.null-literal": "~",
            "csv.include-header": "true",
        },
        [*NASTY, ""],
    ),
    "csv other lines": (
        {"csv.line-delimiter": "<\n>", "csv.null-literal": "~", "csv.include-header": "true"},
        [*NASTY, *LINES, "<", "<\n"],
    ),
    "csv tabs": ({"csv.field-delimiter": "\t", "csv.null-literal": "~"}, [*NASTY, ""]),
    "csv minus": ({"csv.field-delimiter": "-", "csv.quote-character": "1", "csv.null-literal": "~"}, [*NASTY, ""]),
    "json": ({}, [*NASTY, *LINES]),
    "json other lines": ({"json.line-delimiter": "<\n>"}, [*NASTY, *LINES]),
    "text": ({}, [*NASTY, ""]),
    "text other lines": ({"text.line-delimiter": "<\n>"}, [*NASTY, *LINES, "<", "<\n"]),
}


@pytest.mark.parametrize("release", ["java_judge", "java2_judge"])
@pytest.mark.parametrize("case", MORE_SETTINGS)
def test_nasty_texts(case: str, release: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Paimon reads every text that we write as the one that it was, alone in a line, first, last, and beside nulls."""
    judge: JavaJudge = request.getfixturevalue(release)
    options, texts = MORE_SETTINGS[case]
    kind = case.partition(" ")[0]
    columns = {"s": "STRING"} if kind == "text" else {"s": "STRING", "n": "INT", "u": "STRING"}
    rows: list[Row] = [{"s": text} for text in texts]
    if kind != "text":
        rows = [{"s": text, "n": -at, "u": None} for at, text in enumerate(texts)]
        rows += [{"s": None, "n": None, "u": text} for text in texts]
        rows.append({"s": None, "n": None, "u": None})
    with warnings.catch_warnings(action="ignore"):
        table = ours.create(tmp_path, "t", columns, options={"file.format": kind} | options)
        alone = ours.create(tmp_path, "alone", {"s": "STRING"}, options={"file.format": kind} | options)
    ours.write(table, rows)
    single: list[Row] = [{"s": text} for text in texts] + ([] if kind == "text" else [{"s": None}])
    ours.write(alone, single)
    for name, written in (("t", rows), ("alone", single)):
        assert_same_rows(ours.read(ours.open_table(tmp_path, name)), written)
        assert_same_rows(judge.read(tmp_path, ours.DATABASE, name), written)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "first-row"])
@pytest.mark.parametrize("levels", ["", "0:avro,5:json", "0:json,5:parquet"])
def test_keyed_json_files_of_ours(levels: str, engine: str, java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Upserts, deletes, merges and compactions over files of text give the rows that Paimon sees there."""
    options = {"file.format": "json", "merge-engine": engine, "bucket": "2"}
    options |= {"file.format.per.level": levels} if levels else {"file.compression": "gzip"}
    if engine in ("deduplicate", "first-row"):
        options |= {"changelog-producer": "lookup"}
    columns = {"id": "STRING NOT NULL", "n": "INT", "s": "STRING"}
    with warnings.catch_warnings(action="ignore"):
        table = ours.create(tmp_path, "t", columns, primary_key=["id"], options=options)
    for turn in range(4):
        rows: list[Row] = [{"id": text, "n": turn, "s": text * turn} for text in NASTY[turn:]]
        ours.write(table, rows)
        if engine == "deduplicate":
            ours.write(table, rows[:2], ["-D", "-D"])
        assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), ours.read(table))
    table.compact(full=True)
    seen = ours.read(table)
    assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), seen)
    assert len(seen) == len(NASTY) - (5 if engine == "deduplicate" else 0)
    assert table.check() == []
    changes = java2_judge.read_changes(tmp_path, ours.DATABASE, "t", after=1, until=table.latest_snapshot().id)
    assert "changelog-producer" not in options or changes


@pytest.mark.parametrize(("kind", "key"), [("csv", []), ("json", []), ("json", ["id"])])
def test_columns_that_change_under_text_files(
    kind: str, key: list[str], java2_judge: JavaJudge, tmp_path: Path
) -> None:
    """Added, dropped and renamed columns are found in older files by their places and names of then."""
    columns = {"id": "INT NOT NULL", "a": "STRING", "b": "STRING"}
    options = {"file.format": kind, "csv.null-literal": "~", **({"bucket": "1"} if key else {})}
    with warnings.catch_warnings(action="ignore"):
        table = ours.create(tmp_path, "t", columns, primary_key=key, options=options)
    ours.write(table, [{"id": 1, "a": "a,1", "b": "b"}])
    table.alter(RenameColumn(("a",), "c"), AddColumn(("a",), "INT"))
    ours.write(table, [{"id": 2, "c": "c\\", "b": None, "a": 7}])
    assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), ours.read(table))
    table.alter(DropColumn(("b",)))
    ours.write(table, [{"id": 3, "c": '"', "a": None}])
    expected = [{"id": 1, "c": "a,1", "a": None}, {"id": 2, "c": "c\\", "a": 7}, {"id": 3, "c": '"', "a": None}]
    for _ in range(2):
        assert_same_rows(ours.read(table), expected)
        assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), expected)
        table.compact(full=True)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("tracking", [{"deletion-vectors.enabled": "true"}, {"row-tracking.enabled": "true"}, {}])
def test_rows_of_text_files_are_deleted(
    kind: str, tracking: dict[str, str], java2_judge: JavaJudge, tmp_path: Path
) -> None:
    """Rows marked in vectors, or left out of rewritten files, are gone for Paimon too."""
    with warnings.catch_warnings(action="ignore"):
        table = ours.create(tmp_path, "t", {"id": "INT", "s": "STRING"}, options={"file.format": kind} | tracking)
    ours.write(table, [{"id": at, "s": text} for at, text in enumerate(NASTY)])
    lakebed.connect(tmp_path).sql("DELETE FROM db.t WHERE id IN (1, 5, 6)")
    expected = [{"id": at, "s": text} for at, text in enumerate(NASTY) if at not in (1, 5, 6)]
    assert_same_rows(ours.read(table), expected)
    assert_same_rows(java2_judge.read(tmp_path, ours.DATABASE, "t"), expected)


def test_the_spelling_is_that_of_paimon(java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Of rows that need no more than Paimon's own writer does, our files are the same, byte by byte."""
    for kind, columns in (("csv", ATOMS), ("json", ATOMS | NESTED)):
        kinds = {name: text for name, (text, _) in columns.items()}
        rows = [{name: values[at] for name, (_, values) in columns.items()} for at in range(3)]
        options = {"file.format": kind, "file.compression": "none"}
        with warnings.catch_warnings(action="ignore"):
            ours.write(ours.create(tmp_path, f"ours_{kind}", kinds, options=options), rows)
        fields = [(name, text, True) for name, text in kinds.items()]
        java2_judge.create(tmp_path, ours.DATABASE, f"theirs_{kind}", fields, options=options)
        java2_judge.append(tmp_path, ours.DATABASE, f"theirs_{kind}", rows)
        (first,), (second,) = (list(tmp_path.glob(f"**/{name}_{kind}/bucket-0/*")) for name in ("ours", "theirs"))
        assert first.read_text() == second.read_text()
