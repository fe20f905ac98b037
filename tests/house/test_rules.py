"""The source keeps the rules of the house, and each rule finds a planted breach."""

from pathlib import Path

import pytest
from tests.house.rules import broad_handlers

SOURCE = Path(__file__).parents[2] / "src" / "lakebed"


def planted(root: Path, place: str, text: str) -> Path:
    """A source tree with one module."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


def test_broad_handlers_are_in_named_files_only() -> None:
    """What catches everything hides faults: it is allowed where its reason is known."""
    assert broad_handlers(SOURCE) == []


@pytest.mark.parametrize(
    "handler", ["except BaseException:", "except:", "except Exception as error:", "except (ValueError, Exception):"]
)
def test_a_broad_handler_is_found(handler: str, tmp_path: Path) -> None:
    """In a module that is not named."""
    text = f"def f():\n    try:\n        pass\n    {handler}\n        raise\n"
    assert len(broad_handlers(planted(tmp_path, "table/x.py", text))) == 1


def test_a_suppressed_error_of_any_class_is_found(tmp_path: Path) -> None:
    """`suppress` is a handler too."""
    text = "from contextlib import suppress\nwith suppress(Exception):\n    pass\n"
    assert broad_handlers(planted(tmp_path, "sql/x.py", text)) == ["sql/x.py:2 catches Exception"]
