"""Texts cut into statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cli.statements import all_statements, split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; \n;", []),
        ("select 1", ["select 1"]),
        ("select 1; select 2;", ["select 1", "select 2"]),
        ("select ';' ; x", ["select ';'", "x"]),
        ("select 'it''s; fine'; x", ["select 'it''s; fine'", "x"]),
        (r"select 'a\';b'; x", [r"select 'a\';b'", "x"]),
        ('select ";" ; x', ['select ";"', "x"]),
        ("select `a;b`; x", ["select `a;b`", "x"]),
        ("a -- b; c\n; d", ["a -- b; c", "d"]),
        ("a /* b; */ ; d", ["a /* b; */", "d"]),
        ("-- only a comment\n", []),
        ("a; /* only a comment */", ["a"]),
    ],
)
def test_statements(text: str, statements: list[str]) -> None:
    """Semicolons in quotes and comments do not end a statement; what holds nothing is none."""
    assert all_statements(text) == statements


@pytest.mark.parametrize("begun", ["select 'open", "select `open", "a /* open", 'a "open'])
def test_what_is_not_complete_waits(begun: str) -> None:
    """An open quote or comment swallows semicolons until it is closed."""
    assert split_statements(f"x; {begun};") == (["x"], f" {begun};")


@given(st.text(alphabet="ab;'\"`-/* \n\\", max_size=40))
def test_nothing_is_lost(text: str) -> None:
    """Statements and the rest hold every character of the text but semicolons and blanks, in order."""
    complete, rest = split_statements(text)
    for part in [*complete, rest]:
        assert part in text
    assert split_statements(text + rest[:0]) == (complete, rest)
