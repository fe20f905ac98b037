"""Worked examples of first-row tables, which show a row once it has left level 0."""

from __future__ import annotations

import pytest
from tests.unit.table.worked_tables import Example, N, create, levels, play, shown, write

from lakebed.errors import InvalidData, InvalidOption

FIRST_ROW = {"merge-engine": "first-row"}
COMPACTING = ["compacted", "universal"]

EXAMPLES: dict[str, Example] = {
    "M-60": ("k v:STRING", FIRST_ROW, [([1, "a"], [1, "a"]), ([1, "b"], [1, "a"]), ([1, N], [1, "a"])]),
    "M-61": ("k v:STRING", FIRST_ROW, [([[1, "a"], [1, "b"]], [1, "a"])]),
    "N-49, deletes ignored": (
        "k v:STRING",
        FIRST_ROW | {"ignore-delete": "true"},
        [(("-D", [1, "x"]), N), ([1, "a"], [1, "a"]), (("-D", [1, "a"]), [1, "a"]), (("-U", [1, "a"]), [1, "a"])],
    ),
    "N-49, deletes ignored by the old name": (
        "k v:STRING",
        FIRST_ROW | {"first-row.ignore-delete": "true"},
        [([1, "a"], [1, "a"]), (("-D", [1, "a"]), [1, "a"])],
    ),
}


@pytest.mark.parametrize("mode", COMPACTING)
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, mode: str) -> None:
    """After each commit, and the compaction that belongs to it, the table shows the row that the example says."""
    play(EXAMPLES[example], mode)


def test_m_62_level_0_is_not_shown() -> None:
    """M-62: a writer that does not compact leaves its rows unseen; the first of all of them is shown afterwards."""
    table = create("k v:STRING", FIRST_ROW)
    write(table, [1, "a"])
    write(table, [[1, "b"], [2, "c"]])
    assert shown(table) == []
    table.compact()
    assert shown(table) == [[1, "a"], [2, "c"]]
    assert 0 not in levels(table)


def test_m_63_changes_show_later_rows_too() -> None:
    """M-63: without a changelog whoever follows the table sees every row that was written."""
    table = create("k v:STRING", FIRST_ROW, "universal")
    for value in "ab":
        write(table, [1, value], "universal")
    assert [list(row.values()) for row in table.changes().to_pylist()] == [["+I", 1, "a"], ["+I", 1, "b"]]
    assert shown(table) == [[1, "a"]]


@pytest.mark.parametrize("kind", ["-D", "-U"])
def test_n_49_deletes_are_refused(kind: str) -> None:
    """N-49: a first row can not be taken back; the option that ignores such rows is named."""
    table = create("k v:STRING", FIRST_ROW)
    write(table, [1, "a"], "compacted")
    with pytest.raises(InvalidData, match="ignore-delete"):
        write(table, (kind, [1, "a"]), "compacted")
    assert shown(table) == [[1, "a"]]


@pytest.mark.parametrize(
    "option",
    [{"sequence.field": "v"}, {"changelog-producer": "input"}, {"changelog-producer": "full-compaction"}],
    ids=str,
)
def test_n_49_what_does_not_go_with_it(option: dict[str, str]) -> None:
    """N-49: arrival says what came first, and only lookups tell which rows are new."""
    with pytest.raises(InvalidOption, match=next(iter(option))):
        create("k v:STRING", FIRST_ROW | option)
