"""Names of databases, tables and branches: what is allowed, how it is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lakebed.catalog.names import TableName, check_branch_name, check_name, parse_table_name
from lakebed.errors import InvalidArgument, NotFound

TRICKS: list[Any] = [
    "",
    " ",
    " a",
    "a ",
    ".",
    "..",
    "../x",
    "..\\x",
    "/etc",
    "a/b",
    "a\\b",
    ".hidden",
    "a.b",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "a:b",
    "a*",
    "a?",
    'a"b',
    "a'b",
    "a<b",
    "a|b",
    "a%2Fb",
    "a#b",
    "a$b",
    "`a`",
    "x" * 201,
    "ü" * 101,
    None,
    5,
    b"a",
    ["a"],
]


@pytest.mark.parametrize("name", ["a", "A_1", "with space", "ünï", "日本", "a-b", "x" * 200, "con", "~", "1"])
def test_names_that_are_fine(name: str) -> None:
    """Letters of any script, digits, blanks inside and dashes are allowed."""
    assert check_name(name, "table") == name


@pytest.mark.parametrize("name", TRICKS, ids=repr)
@pytest.mark.parametrize("what", ["table", "database"])
def test_names_that_are_refused(name: Any, what: str) -> None:
    """Nothing that a path could read differently is let through, and the message shows the name."""
    with pytest.raises(InvalidArgument) as raised:
        check_name(name, what)
    assert what in raised.value.message
    assert repr(name)[:10] in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("name", ["main", "7", *TRICKS], ids=repr)
def test_branch_names_that_are_refused(name: Any) -> None:
    """A branch is not called `main`, nor a number, nor what no directory may be called."""
    with pytest.raises(InvalidArgument, match="branch"):
        check_branch_name(name)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("t", TableName("current", "t")),
        ("db.t", TableName("db", "t")),
        ("`db`.`t`", TableName("db", "t")),
        ("`my table`", TableName("current", "my table")),
        ("db.t$branch_b1", TableName("db", "t", "b1")),
        ("t$branch_b1", TableName("current", "t", "b1")),
    ],
)
def test_parsing(text: str, parsed: TableName) -> None:
    """A name has a database, which may be left out, and may have a branch."""
    assert parse_table_name(text, "current") == parsed


def test_names_print_as_they_are_written() -> None:
    """The text of a full name is what parses to it again."""
    for name in (TableName("db", "t"), TableName("db", "t", "b1")):
        assert parse_table_name(str(name), "other") == name


@pytest.mark.parametrize(
    "text", ["a.b.c", "..", "a..b", "../x", "t$branch_", "t$branch_main", "t$branch_a/b", "$x", "."]
)
def test_texts_that_name_no_table(text: str) -> None:
    """Too many parts, empty parts and bad branches are refused."""
    with pytest.raises(InvalidArgument):
        parse_table_name(text, "current")


@pytest.mark.parametrize("view", ["snapshots", "files", "ro", "audit_log"])
def test_system_tables(view: str) -> None:
    """The name of a system table or view stands last, in any case, and is printed as it parses."""
    assert parse_table_name(f"t${view}", "db") == TableName("db", "t", view=view)
    assert parse_table_name(f"`t$branch_b${view.upper()}`", "db") == TableName("db", "t", "b", view)
    assert parse_table_name(str(TableName("db", "t", "b", view)), "x") == TableName("db", "t", "b", view)


@pytest.mark.parametrize("text", ["t$snapshot", "t$", "t$files$files", "t$branch_b$x", "t$files$branch_b"])
def test_unknown_system_tables(text: str) -> None:
    """Another name is refused, with those that there are."""
    with pytest.raises(NotFound, match="snapshots") as raised:
        parse_table_name(text, "current")
    assert text in raised.value.message
