"""Errors say what happened and what to do, survive a trip between processes, and find the nearest word."""

from __future__ import annotations

import inspect
import pickle

import pytest

from lakebed import errors
from lakebed.errors import FileMissing, InvalidOption, LakebedError, OutcomeUnknown, StorageError, did_you_mean

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LakebedError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_text_and_parts(kind: type[LakebedError]) -> None:
    """The text is the message and the hint, and both can be had alone."""
    error = kind("table `t` is gone", hint="create it again")
    assert str(error) == "table `t` is gone\n  -> create it again"
    assert (error.message, error.hint) == ("table `t` is gone", "create it again")
    assert kind.__doc__


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_travel_between_processes(kind: type[LakebedError]) -> None:
    """Kind, message and hint are the same after pickling."""
    error = pickle.loads(pickle.dumps(kind("what", hint="next")))
    assert type(error) is kind
    assert str(error) == "what\n  -> next"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_error_without_a_next_step(kind: type[LakebedError]) -> None:
    """The hint can not be left out."""
    with pytest.raises(TypeError):
        kind("what")  # type: ignore[call-arg]


def test_the_tree() -> None:
    """One root catches all; what a retry may cure is a StorageError; every kind is exported."""
    assert {kind.__name__ for kind in KINDS} | {"did_you_mean"} == set(errors.__all__)
    assert issubclass(FileMissing, StorageError)
    assert issubclass(OutcomeUnknown, StorageError)
    with pytest.raises(LakebedError):
        raise InvalidOption("what", hint="next")


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("bukcet", ["bucket", "branch"], "did you mean `bucket`?"),
        ("zzz", ["b", "a", "a"], "valid choices: `a`, `b`"),
        ("zzz", [], "check the spelling"),
        ("zzz", [f"name {number}" for number in range(13)], "check the spelling"),
        ("bucket", ["bucket"], "did you mean `bucket`?"),
    ],
)
def test_did_you_mean(word: str, known: list[str], said: str) -> None:
    """The nearest word if one is near, all of them if they are few, else a plain request."""
    assert did_you_mean(word, known) == said
