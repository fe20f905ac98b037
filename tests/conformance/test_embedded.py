"""The same cases with queries answered in this process: what the embedded engine takes gives the rows of the case."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.expected import assert_same
from tests.conformance.test_cases import CASES, FAILING, run, run_step

import lakebed
from lakebed.errors import LakebedError, Unsupported
from lakebed.spark.session import Session

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_NEEDS_SPARK = ("stream_write",)


@pytest.mark.nightly
def test_queries_of_cases_give_the_same_embedded(tmp_path: Path) -> None:
    """Rows of every SELECT that is not refused are those of the case; how many were, and why not, is printed."""
    taken, refused, wrong = 0, Counter[str](), []
    for number, (case_id, case) in enumerate(CASES.items()):
        if case_id in FAILING or any(key in step for step in case["steps"] for key in _NEEDS_SPARK):
            continue
        lake = lakebed.connect(tmp_path / str(number))
        for place, step in enumerate(case["steps"]):
            if not _is_query(step):
                if not _carried_out(lake, tmp_path / f"{number}-{place}", step):
                    break  # a statement that needs Spark: what follows would see other rows
                continue
            try:
                found = lake.query(step["sql"], engine="duckdb").fetchall()
                found = [tuple(map(_local, row)) for row in found]
            except Unsupported as error:
                refused[error.message.partition("; ")[2] or error.message] += 1
                continue
            except LakebedError as error:
                if "error" not in step:
                    wrong.append(f"{case_id} {place}: {error}")
                continue
            if "error" in step:
                wrong.append(f"{case_id} {place}: no error")
                continue
            taken += 1
            try:
                unordered = step.get("unordered_arrays", False)
                assert_same(found, step["rows"], ordered=step.get("ordered", False), unordered_arrays=unordered)
            except AssertionError as error:
                wrong.append(f"{case_id} {place}: {step['sql']}: {error}")
    print(f"{taken} taken, {refused.total()} refused: {refused.most_common()}")
    assert not wrong, "\n".join(wrong)
    assert taken > 10 * refused.total()


def _local(value: Any) -> Any:
    """A moment as the clock of this machine shows it, as cases write it."""
    is_moment = isinstance(value, dt.datetime) and value.tzinfo is not None
    return value.astimezone().replace(tzinfo=None) if is_moment else value


def _is_query(step: dict[str, Any]) -> bool:
    return "rows" in step and step.get("sql", "").lstrip("( \n").upper().startswith(_QUERIES)


def _carried_out(lake: lakebed.Lake, home: Path, step: dict[str, Any]) -> bool:
    """Whether a step ran, or failed as it should, without Spark."""
    if "changes" in step:
        return True
    try:
        run_step(lake, home, {key: value for key, value in step.items() if key != "rows" or "write" in step})
    except LakebedError:
        return "error" in step
    return not lake.is_spark_started


_CHANGES = ("UPDATE", "DELETE", "MERGE", "INSERT")


class _AskedForSpark(Exception):
    """What a statement runs into that has to start a session."""


class _NoSpark(Session):
    def get(self) -> Any:
        raise _AskedForSpark


def _statement_cases() -> list[Any]:
    """Cases whose statements change rows; by default a few of them."""
    found = [
        case_id
        for case_id, case in CASES.items()
        if case_id not in FAILING
        and any(step.get("sql", "").lstrip().startswith(_CHANGES[:3]) for step in case["steps"])
    ]
    return [pytest.param(case_id, marks=() if n % 6 == 0 else pytest.mark.nightly) for n, case_id in enumerate(found)]


@pytest.mark.parametrize("case_id", _statement_cases())
def test_statements_of_cases_do_the_same_embedded(case_id: str, tmp_path: Path) -> None:
    """Steps of a case give what it says without Spark, up to the first one that needs it."""
    lake = lakebed.connect(tmp_path / "lake", spark=_NoSpark())
    with contextlib.suppress(_AskedForSpark):
        run(lake, tmp_path, CASES[case_id], compacts=False)


@pytest.mark.nightly
def test_most_statements_of_cases_need_no_spark(tmp_path: Path) -> None:
    """Of statements that change rows, all but those that add columns or reorder members are carried out here."""
    taken, left = Counter[str](), Counter[str]()
    for number, (case_id, case) in enumerate(CASES.items()):
        lake = lakebed.connect(tmp_path / str(number), spark=_NoSpark())
        for place, step in enumerate(case["steps"] if case_id not in FAILING else ()):
            word = step.get("sql", "write").split()[0].upper()
            try:
                with contextlib.suppress(LakebedError):
                    run_step(lake, tmp_path / f"{number}-{place}", step)
            except _AskedForSpark:
                left[word] += 1
                break
            taken[word] += 1
    print({word: (taken[word], left[word]) for word in _CHANGES})
    assert left["UPDATE"] == left["DELETE"] == 0
    assert all(taken[word] > 2 * left[word] for word in _CHANGES)
