"""Whether tests go without a judge that is missing: on a developer's machine, never where releases are decided."""

import os
from pathlib import Path

import pytest

from .environments import Environment, JudgeUnavailable, prepare, prepare_jars


def prepared(name: str) -> Environment:
    """The environment of a judge; skips the test without one, or fails it in CI."""
    try:
        return prepare(name)
    except JudgeUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the {name} judge is not available: {reason}", pytrace=False)
        pytest.skip(f"the {name} judge is not available: {reason}")


def prepared_jars(name: str) -> list[Path]:
    """The jars of a server or a peer; skips the test without them, or fails it in CI."""
    try:
        return prepare_jars(name)
    except JudgeUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} can not be had: {reason}", pytrace=False)
        pytest.skip(f"{name} can not be had: {reason}")
