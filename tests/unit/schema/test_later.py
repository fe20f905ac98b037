"""The table of what may change later: it is complete, and judges what differs between two schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebed.options import OPTIONS, Option
from lakebed.options.later import Later, rule_of
from lakebed.schema.changes import (
    AddColumn,
    DropColumn,
    First,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    apply_changes,
)
from lakebed.schema.later import COLUMN_RULES, Difference, handle_verdicts, judged
from lakebed.schema.later_page import later_page
from lakebed.schema.table_schema import TableSchema
from lakebed.schema.type_steps import folds_alike, keeps_order, keeps_values, may_not_fit
from lakebed.types.logical import DataField, parse_type

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "changes.md"


def table(options: dict[str, str] | None = None, *, keys: tuple[str, ...] = ("k",)) -> TableSchema:
    """k, p, v, s and t, partitioned by p."""
    types = {"k": "INT NOT NULL", "p": "INT NOT NULL", "v": "INT", "s": "INT", "t": "STRING"}
    fields = tuple(DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(types.items()))
    primary = (*keys, "p") if keys else ()
    return TableSchema(0, fields, 4, ("p",), primary, options or {"bucket": "2"}, None, 0)


def verdicts(before: TableSchema, *changes: SchemaChange) -> list[tuple[str, Later]]:
    """What the changes ask for; free ones are left out."""
    after = apply_changes(before, changes, has_snapshots=False, time_millis=1)
    return [(verdict.what, verdict.later) for verdict in judged(before, after)]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_option_is_in_the_table(option: Option[object]) -> None:
    """Every option has an entry whose last line always applies, and every line says why, and what to do instead."""
    cases = rule_of(option)
    assert [bool(case.when) for case in cases[:-1]] == [True] * (len(cases) - 1)
    assert cases[-1].when == "" or cases[-1].later is Later.EMPTY
    assert all(case.reason for case in cases)
    assert all(case.instead for case in cases if case.later in (Later.EMPTY, Later.NEVER))
    is_fixed = all(case.later in (Later.EMPTY, Later.NEVER) for case in cases)
    assert is_fixed or not option.immutable
    assert option.immutable or not is_fixed or not option.honoured or option.key in ("manifest.format", "path")


def test_every_difference_of_columns_is_in_the_table() -> None:
    """Every kind of difference has lines, of which the last always applies."""
    assert set(COLUMN_RULES) == set(Difference)
    for cases in COLUMN_RULES.values():
        assert [bool(case.when) for case in cases] == [True] * (len(cases) - 1) + [False]
        assert all(case.reason and case.instead for case in cases)


def test_the_page_is_fresh() -> None:
    """docs/reference/changes.md is what the tables give; `make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == later_page()


@pytest.mark.parametrize(
    "change",
    [
        AddColumn("n", parse_type("INT")),
        DropColumn("v"),
        RenameColumn("v", "w"),
        RenameColumn("k", "key"),
        UpdateColumnPosition("v", First()),
        UpdateColumnType("v", parse_type("BIGINT")),
        UpdateColumnType("v", parse_type("STRING")),
        UpdateColumnComment("v", "text"),
        UpdateColumnDefault("v", "3"),
        SetOption("file.format", "orc"),
        SetOption("changelog-producer", "input"),
        SetOption("my.own", "1"),
        SetOption("merge-engine", "DEDUPLICATE"),
        SetOption("fields.v.aggregate-function", "sum"),
    ],
    ids=str,
)
def test_what_is_free(change: SchemaChange) -> None:
    """These change nothing that stored rows mean."""
    assert verdicts(table(), change) == []


def test_columns_are_followed_by_their_ids() -> None:
    """An option follows the columns it names: if two of them swap names, the order of rows is the same."""
    before = table({"bucket": "2", "sequence.field": "v,s", "merge-engine": "aggregation", "fields.v.distinct": "true"})
    swap = (RenameColumn("v", "x"), RenameColumn("s", "v"), RenameColumn("x", "s"))
    after = apply_changes(before, swap, has_snapshots=False, time_millis=1)
    assert after.options["sequence.field"] == "s,v"
    assert judged(before, after) == []
    assert verdicts(before, *swap, SetOption("sequence.field", "v,s")) == [
        ("option `sequence.field`", Later.COMPACTION)
    ]


def test_changes_are_judged_together() -> None:
    """What one option means may depend on another that changes with it."""
    before = table({"bucket": "2", "changelog-producer": "full-compaction"})
    assert verdicts(before, SetOption("num-sorted-run.compaction-trigger", "9"))[0][1] is Later.EMPTY
    assert verdicts(before, SetOption("num-sorted-run.compaction-trigger", "9"), SetOption("num-levels", "6")) == []
    both = (SetOption("deletion-vectors.enabled", "true"), SetOption("deletion-vectors.modifiable", "true"))
    assert [later for _, later in verdicts(table(), *both)] == [Later.COMPACTION]
    assert [later for _, later in verdicts(table(), both[0])] == [Later.EMPTY]


def test_types_of_columns_with_a_part() -> None:
    """A column that orders or folds rows may not get any type."""
    ordered = table({"bucket": "2", "sequence.field": "s"})
    assert verdicts(ordered, UpdateColumnType("s", parse_type("BIGINT"))) == []
    assert [later for _, later in verdicts(ordered, UpdateColumnType("s", parse_type("STRING")))] == [Later.EMPTY]
    assert [later for _, later in verdicts(ordered, UpdateColumnType("s", parse_type("SMALLINT")))] == [
        Later.COMPACTION
    ]
    grouped = table({"bucket": "2", "merge-engine": "partial-update", "fields.s.sequence-group": "v"})
    assert [later for _, later in verdicts(grouped, UpdateColumnType("s", parse_type("STRING")))] == [Later.EMPTY]
    assert [later for _, later in verdicts(grouped, UpdateColumnType("v", parse_type("STRING")))] == [Later.COMPACTION]
    assert verdicts(grouped, UpdateColumnType("v", parse_type("BIGINT"))) == []
    assert [later for _, later in verdicts(table(), UpdateColumnType("v", parse_type("SMALLINT")))] == [Later.FITTING]
    required = apply_changes(
        table({"bucket": "2", "alter-column-null-to-not-null.disabled": "false"}),
        [UpdateColumnNullability("v", False)],
        has_snapshots=False,
        time_millis=1,
    )
    assert [verdict.later for verdict in judged(table(), required)] == [Later.FITTING]


def test_removing_an_option_is_going_to_its_default() -> None:
    """An option that is taken away is judged like one that is set to its default, also under an older name."""
    before = table({"bucket": "2", "deduplicate.ignore-delete": "true"})
    assert verdicts(before, RemoveOption("deduplicate.ignore-delete")) == [("option `ignore-delete`", Later.EMPTY)]
    assert judged(before, table({"bucket": "2", "ignore-delete": "true"})) == []


def test_options_of_one_handle() -> None:
    """A handle may repeat what the table has, in any spelling, and set what is free."""
    stored = table({"bucket": "2", "sequence.field": "v"})
    assert handle_verdicts(stored, {"sequence.field": " v", "target-file-size": "1 mb"}) == []
    assert [verdict.key for verdict in handle_verdicts(stored, {"bucket": "3"})] == ["bucket"]
    assert [verdict.key for verdict in handle_verdicts(stored, {"sequence.field": "s"})] == ["sequence.field"]


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        # keeps values, keeps order, may not fit, folds alike
        ("INT", "BIGINT", (True, True, False, True)),
        ("BIGINT", "INT", (False, True, True, False)),
        ("INT", "DOUBLE", (True, True, False, False)),
        ("BIGINT", "DOUBLE", (False, True, False, False)),
        ("INT", "DECIMAL(10, 0)", (True, True, False, False)),
        ("INT", "DECIMAL(9, 0)", (False, True, True, False)),
        ("DECIMAL(5, 2)", "DECIMAL(6, 3)", (True, True, False, False)),
        ("DECIMAL(6, 3)", "DECIMAL(6, 2)", (False, True, True, False)),
        ("INT", "STRING", (False, False, False, False)),
        ("STRING", "INT", (False, False, True, False)),
        ("VARCHAR(5)", "STRING", (True, True, False, True)),
        ("STRING", "VARCHAR(5)", (False, False, False, False)),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", (False, True, False, False)),
        ("CHAR(5)", "VARCHAR(5)", (True, True, False, True)),
        ("DATE", "TIMESTAMP(3)", (True, True, False, False)),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", (True, True, False, False)),
        ("TIMESTAMP(3)", "TIMESTAMP(9)", (False, True, True, False)),
        ("TIMESTAMP(3)", "INT", (False, False, True, False)),
        ("DOUBLE", "FLOAT", (False, True, True, False)),
        ("BOOLEAN", "INT", (False, False, False, False)),
        ("BYTES", "STRING", (False, False, True, False)),
        ("ARRAY<INT>", "ARRAY<BIGINT>", (True, True, False, True)),
        ("MAP<STRING, BIGINT>", "MAP<STRING, INT>", (False, True, True, False)),
        ("ARRAY<INT>", "STRING", (False, False, False, False)),
    ],
)
def test_what_a_type_makes_of_values(old: str, new: str, facts: tuple[bool, bool, bool, bool]) -> None:
    """Whether values are all kept, stay in order, may not fit, and may be folded before or after."""
    pair = parse_type(old), parse_type(new)
    assert (keeps_values(*pair), keeps_order(*pair), may_not_fit(*pair), folds_alike(*pair)) == facts
