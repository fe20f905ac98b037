"""Hints lead somewhere: what they name exists, and what they name instead of a refused option works."""

from pathlib import Path

import pytest
from tests.house.hints import hints, missing, named_options, python_on_the_command_line, stale_hints
from tests.house.planted import planted
from tests.house.source import SOURCE

from lakebed.options import OPTIONS


def test_hints_name_what_exists() -> None:
    """Options, methods and their arguments, procedures, commands and extras of all hints are there."""
    assert len(hints(SOURCE)) > 800
    assert stale_hints(SOURCE) == []


def test_hints_speak_the_language_of_the_command_line(tmp_path: Path) -> None:
    """Printed there, no hint names a call or an argument of Python; one that does is found."""
    assert python_on_the_command_line(SOURCE) == []
    code = "raise E(hint='pass strict=True')\nraise E(hint='use t.compact()')\nraise E(hint='see t.nothing()')\n"
    found = python_on_the_command_line(planted(tmp_path, "table/x.py", code))
    assert [line.partition(" in: ")[0] for line in found] == [
        "table/x.py:1 says strict=True",
        "table/x.py:3 says t.nothing",
    ]


def test_what_stands_in_for_a_refused_option_is_honoured() -> None:
    """Nobody is sent from one refusal to the next."""
    honoured = {option.key for option in OPTIONS if option.honoured}
    refused = {option.key for option in OPTIONS} - honoured
    for option in OPTIONS:
        others = named_options(option.instead) - {option.key}
        assert not others & refused, f"{option.key}: {option.instead}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("set `sequence.feild`", "`sequence.feild`"),
        ("set `fields.v.sequence-groups`", "`fields.v.sequence-groups`"),
        ("use t.compactify()", "Table.compactify"),
        ("use t.compact(order=...)", "Table.compact(order=)"),
        ("use lake.make_table(...)", "Lake.make_table"),
        ("run CALL sys.compact_all(...)", "sys.compact_all"),
        ("see `lakebed mend --help`", "`lakebed mend`"),
        ("call lakebed.open(...)", "lakebed.open"),
        ('pip install "lakebed[everything]"', "lakebed[everything]"),
    ],
)
@pytest.mark.parametrize("how", ["hint={!r}", "instead={!r}", "hint=f{!r}", "hint=_HINT", "hint=x if y else {!r}"])
def test_a_stale_hint_is_found(text: str, what: str, how: str, tmp_path: Path) -> None:
    """However the text is given."""
    code = f"_HINT = {text!r}\nraise E({how.format(text)})\n"
    assert stale_hints(planted(tmp_path, "table/x.py", code)) == [f"table/x.py:2 names {what}"]


@pytest.mark.parametrize(
    "text",
    [
        "set `sequence.field`",
        "set `fields.{}.sequence-group` or `fields.total.aggregate-function`",
        "use t.compact(order_by=...)",
        "call lakebed.cdc.sync(...) or lakebed.connect(...)",
        "run CALL sys.compact(...)",
        "type SELECT * FROM sys.tables",
        'pip install "lakebed[cdc]", then `lakebed cdc --help`',
    ],
)
def test_a_good_hint_is_none(text: str) -> None:
    """What exists is found under its name."""
    assert list(missing(text)) == []
