"""Fixtures of the compatibility tier: one process per judge and session, and the marker on every test here."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from .judges import JavaJudge, Judge, PypaimonJudge, RustJudge
from .judges.at_hand import prepared

J = TypeVar("J", bound=Judge)

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this directory `compat`; the hook sees those of the whole session."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.compat)


def _session(kind: type[J], name: str) -> Iterator[J]:
    judge = kind(prepared(name))
    yield judge
    judge.close()


@pytest.fixture(scope="session")
def pypaimon_judge() -> Iterator[PypaimonJudge]:
    """pypaimon in its own environment."""
    yield from _session(PypaimonJudge, "pypaimon")


@pytest.fixture(scope="session")
def rust_judge() -> Iterator[RustJudge]:
    """The Rust implementation in its own environment."""
    yield from _session(RustJudge, "rust")


@pytest.fixture(scope="session")
def java_judge() -> Iterator[JavaJudge]:
    """Paimon Java in its own process: release 1.4.2, or the one that LAKEBED_JAVA_JUDGE names."""
    yield from _session(JavaJudge, os.environ.get("LAKEBED_JAVA_JUDGE", "java"))


@pytest.fixture(scope="session")
def java2_judge() -> Iterator[JavaJudge]:
    """The newest release of Paimon Java in its own process."""
    yield from _session(JavaJudge, "java2")
