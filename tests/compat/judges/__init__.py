"""Judges: other implementations of the table format, each in an environment and a process of its own.

Tests use them in both directions: a judge reads what Lakebed wrote, and Lakebed reads what a judge wrote.
All judges speak one canonical row form (see `canonical`), so rows of any two sides can be compared directly.
Nothing in here imports Lakebed: a judge that shared code with the accused would be no judge.
"""

from .canonical import Row, assert_same_rows, canonical_rows
from .environments import Environment, JudgeUnavailable, prepare
from .judge import JavaJudge, Judge, PypaimonJudge, RustJudge
from .process import JudgeError

__all__ = [
    "Environment",
    "JavaJudge",
    "Judge",
    "JudgeError",
    "JudgeUnavailable",
    "PypaimonJudge",
    "Row",
    "RustJudge",
    "assert_same_rows",
    "canonical_rows",
    "prepare",
]
