"""Statistics give the same on Spark and embedded up to rounding.

Both engines add up rows in an order that nobody has said, and combine parts of a group when they are done; each step is
rounded. Two runs of one engine may differ in the last digits, so that more than nine equal ones can not be asked.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.differential.engines import Embedded, plain_type, spark_answers
from tests.differential.test_expressions import TABLES, embedded, expressions, on_spark

__all__ = ["embedded", "on_spark"]

STATISTICS = sorted((Path(__file__).parent / "expressions" / "floating").glob("*.sql"))


def is_close(ours: Any, theirs: Any) -> bool:
    """Equal up to the ninth digit; NaN, infinities and nulls are themselves."""
    if ours is None or theirs is None or "inf" in (ours, theirs) or "-inf" in (ours, theirs) or "nan" in (ours, theirs):
        return bool(ours == theirs)
    return math.isclose(float(ours), float(theirs), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("table", list(TABLES))
@pytest.mark.parametrize("path", STATISTICS, ids=lambda path: path.stem)
def test_statistics_agree_up_to_rounding(path: Path, table: str, embedded: Embedded, on_spark: Any) -> None:
    """Every statistic of every group has Spark's type and Spark's first nine digits."""
    texts, is_group = expressions(path), path.stem.startswith("aggregates")
    found = []
    for text, expected in zip(texts, spark_answers(on_spark, texts, table, is_group), strict=True):
        ours = embedded.answer(text, table, is_group)
        assert ours.type is not None, f"{text}: {ours.error}"
        assert expected.type is not None, f"{text}: Spark {expected.error}"
        pairs = list(zip(ours.values, expected.values, strict=True))
        if plain_type(ours.type) != plain_type(expected.type) or not all(is_close(*pair) for pair in pairs):
            found.append(f"{text}: {ours.type}, Spark {expected.type}: {pairs}")
    assert not found, "\n" + "\n".join(found)
