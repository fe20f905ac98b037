"""Every expression of the corpus gives the same on Spark and embedded: values, types, and where it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.differential.data import extreme, ordinary
from tests.differential.engines import Answer, Embedded, plain_type, spark_answers

from lakebed.expressions.nodes import NotProven
from lakebed.spark.read import arrow_frame
from lakebed.types.arrow import from_arrow_schema

CORPUS = sorted((Path(__file__).parent / "expressions").glob("*.sql"))
TABLES = {"ordinary": ordinary(), "extreme": extreme()}


def expressions(path: Path) -> list[str]:
    """The lines of a file, without remarks."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("--")]


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    """DuckDB with the tables of the comparison."""
    engine = Embedded(TABLES)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def on_spark(spark: Any) -> Any:
    """Spark with the tables of the comparison."""
    for name, rows in TABLES.items():
        arrow_frame(spark, rows, from_arrow_schema(rows.schema)).createOrReplaceTempView(name)
    return spark


@pytest.mark.parametrize("table", list(TABLES))
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_both_engines_agree(path: Path, table: str, embedded: Embedded, on_spark: Any) -> None:
    """All values and types of a file are equal; what one engine refuses to compute, the other refuses too."""
    compare(expressions(path) if table == "ordinary" else expressions(path)[::2], path, table, embedded, on_spark)


@pytest.mark.nightly
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_both_engines_agree_on_the_rest(path: Path, embedded: Embedded, on_spark: Any) -> None:
    """The same for those that the default run leaves out on extreme values: they fail often, and then one by one."""
    compare(expressions(path)[1::2], path, "extreme", embedded, on_spark)


def compare(texts: Sequence[str], path: Path, table: str, embedded: Embedded, on_spark: Any) -> None:
    """Raises if the engines differ about one of the expressions."""
    is_group = path.stem.startswith("aggregates")
    found, given = [], {}
    for text in texts:
        try:
            given[text] = embedded.answer(text, table, is_group)
        except NotProven as reason:
            found.append(f"{text}: not proven: {reason}")
    # What fails here will fail there: asked alone it does not take others with it.
    together = [text for text in given if given[text].error is None]
    groups = [together[start : start + 40] for start in range(0, len(together), 40)]
    for group in (*groups, *([text] for text in given if text not in set(together))):
        for text, expected in zip(group, spark_answers(on_spark, group, table, is_group), strict=True):
            found += difference(text, given[text], expected)
    assert not found, "\n" + "\n".join(found)


def difference(text: str, ours: Answer, expected: Answer) -> list[str]:
    """In what the answers to an expression differ."""
    if (ours.error is None) != (expected.error is None):
        return [f"{text}: embedded {ours.error or 'gives values'}; Spark {expected.error or 'gives values'}"]
    if ours.type is None or expected.type is None:
        return []
    if plain_type(ours.type) != plain_type(expected.type):
        return [f"{text}: type {ours.type}, Spark {expected.type}"]
    pairs = enumerate(zip(ours.values, expected.values, strict=True))
    return [f"{text}: row {row}: {mine!r}, Spark {other!r}" for row, (mine, other) in pairs if mine != other][:1]
