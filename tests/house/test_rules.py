"""The source keeps the rules of the house, and each rule finds a planted breach."""

from pathlib import Path

import pytest
from tests.house.planted import planted
from tests.house.rules import (
    ALL_ERRORS,
    EVERY_EXCEPTION,
    FEWEST_LINES,
    MANY_PARAMETERS,
    MOST_PARAMETERS,
    REGISTERED,
    SHORT,
    SLEEPS,
    UNCLOCKED,
    broad_handlers,
    early_dataclasses,
    long_signatures,
    needless_slices,
    unasked_time,
)
from tests.house.source import SOURCE


def test_what_rules_name_is_there() -> None:
    """An exception for a file that has moved would be one for nobody, or for somebody else."""
    named = {*ALL_ERRORS, *EVERY_EXCEPTION, *REGISTERED, *SHORT, *SLEEPS, *UNCLOCKED}
    named |= {each.split(" ")[0] for each in MANY_PARAMETERS}
    assert [place for place in sorted(named) if not (SOURCE / place).exists()] == []


def test_short_modules_that_are_named_are_short() -> None:
    """A reason goes when the module has grown."""
    lines = {place: len((SOURCE / place).read_text().splitlines()) for place in SHORT}
    assert [place for place, count in lines.items() if count >= FEWEST_LINES] == []


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


def test_time_and_names_are_given() -> None:
    """Whoever wants the same input to give the same table twice fixes the clock and the ids, and nothing else."""
    assert unasked_time(SOURCE) == []


@pytest.mark.parametrize(
    "text",
    [
        "import uuid\nx = uuid.uuid4()\n",
        "from uuid import uuid4\nx = uuid4()\n",
        "from uuid import uuid4 as fresh\nx = fresh()\n",
        "import time\nx = time.time()\n",
        "import time as t\nx = t.time_ns()\n",
        "from time import sleep\nsleep(1)\n",
        "import datetime as dt\nx = dt.datetime.now()\n",
        "from datetime import datetime\nx = datetime.utcnow()\n",
        "from datetime import date\nx = date.today()\n",
        "from random import random\nx = random()\n",
    ],
)
def test_a_question_to_the_machine_is_found(text: str, tmp_path: Path) -> None:
    """However the name was imported; in files that may ask it is none."""
    assert len(unasked_time(planted(tmp_path / "a", "table/x.py", text))) == 1
    assert unasked_time(planted(tmp_path / "b", "fileio/x.py", text)) == []


def test_other_clocks_are_no_question(tmp_path: Path) -> None:
    """A clock that is given has a `now` of its own; durations may be measured."""
    text = "import time\n\n\ndef f(board):\n    return board.now, time.monotonic()\n"
    assert unasked_time(planted(tmp_path, "table/x.py", text)) == []


def test_dataclasses_are_ours() -> None:
    """A short command loads hundreds of classes: none makes its methods before somebody uses them."""
    assert early_dataclasses(SOURCE) == []


def test_an_early_dataclass_is_found(tmp_path: Path) -> None:
    """The decorator of the standard library, but not the rest of that module."""
    planted(tmp_path, "table/x.py", "from dataclasses import field, replace\n")
    assert early_dataclasses(planted(tmp_path, "table/y.py", "from dataclasses import dataclass, field\n")) == [
        "table/y.py:1 takes dataclass from dataclasses"
    ]


def test_no_function_takes_too_much() -> None:
    """What belongs together comes as one object."""
    assert long_signatures(SOURCE) == []


def test_a_long_signature_is_found(tmp_path: Path) -> None:
    """`self` aside, whatever kinds of parameters there are."""
    names = ", ".join(f"p{number}" for number in range(MOST_PARAMETERS - 2))
    text = (
        f"class A:\n    def f(self, {names}, *rest, more=1): ...\n    def g(self, {names}, *rest, more=1, **x): ...\n"
    )
    (breach,) = long_signatures(planted(tmp_path, "table/x.py", text))
    assert breach == f"table/x.py:3 A.g takes {MOST_PARAMETERS + 1} parameters"


def test_modules_are_not_slices() -> None:
    """Few and deep: a short module is an entry of a registry, or has a reason."""
    assert needless_slices(SOURCE) == []


def test_a_slice_is_found(tmp_path: Path) -> None:
    """One line too short, in a folder that is no registry."""
    text = "x = 1\n" * (FEWEST_LINES - 1)
    for place in ("lsm/x.py", "lsm/__init__.py", "merge/aggregates/x.py"):
        planted(tmp_path, place, text)
    assert needless_slices(planted(tmp_path, "lsm/y.py", text + "x = 1\n")) == [
        f"lsm/x.py has {FEWEST_LINES - 1} lines"
    ]
