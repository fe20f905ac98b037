"""The source has no public name that nobody needs; the rule finds planted ones."""

from pathlib import Path

import pytest
from tests.house.names import INSIDE, OUTSIDE, unused_names
from tests.house.planted import planted
from tests.house.source import SOURCE

TESTS = Path(__file__).parents[1]


def test_public_names_are_used() -> None:
    """What only its module uses has an underscore, and what nobody uses is not there."""
    assert unused_names(SOURCE, TESTS) == []


def test_exceptions_are_there() -> None:
    """A name that has gone needs no exception."""
    for place, names in (*OUTSIDE.items(), *INSIDE.items()):
        assert [name for name in names if name not in (SOURCE / place).read_text()] == []


@pytest.mark.parametrize(
    "text",
    [
        "def spare():\n    pass\n",
        "class spare:\n    pass\n",
        "spare = 1\n",
        "spare: int = 1\n",
        "spare = 1\n__all__ = ['spare']\n",
        "spare = 1\n\n\ndef _inside():\n    return spare\n",
    ],
)
def test_a_name_that_nobody_uses_is_found(text: str, tmp_path: Path) -> None:
    """Whatever it names; a list of what the module offers is no use."""
    assert unused_names(planted(tmp_path, "table/x.py", text)) == ["table/x.py:1 spare"]


def test_a_name_that_only_tests_use_is_found(tmp_path: Path) -> None:
    """A test keeps nothing alive; it may only look at a part that its module uses."""
    tests = planted(tmp_path / "tests", "test_x.py", "from lakebed.table.x import dead, part\n")
    source = planted(tmp_path / "src", "table/x.py", "dead = 1\npart = 2\n\n\ndef _f():\n    return part\n")
    assert unused_names(source, tests) == ["table/x.py:1 dead"]


def test_what_others_have_in_hand_is_used(tmp_path: Path) -> None:
    """A class that a public function returns is known to its callers, also without an import."""
    text = "class Answer:\n    pass\n\n\ndef ask() -> Answer:\n    return Answer()\n"
    planted(tmp_path, "table/x.py", text)
    assert unused_names(planted(tmp_path, "lake.py", "from lakebed.table.x import ask\nask()\n")) == []
