"""Every query of the corpus gives the same on Spark and embedded: names, types, rows, and where neither answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.differential.engines import as_python, plain_type
from tests.differential.lake import fill

import lakebed
from lakebed.errors import LakebedError, Unsupported
from lakebed.sql.bind.syntax import verbatim
from lakebed.sql.words.spelling import to_spark

FOLDER = Path(__file__).parent / "queries"
APART = ("errors", "refused")
CORPUS = sorted(path for path in FOLDER.glob("*.sql") if path.stem not in APART)


@dataclass(frozen=True)
class Rows:
    """The answer to a query."""

    names: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


Answer = Rows | Exception


def queries(path: Path) -> list[tuple[str, str]]:
    """The queries of a file, each with the remark before it."""
    found = []
    for part in re.split(r";[ \t]*(?:\n|$)", path.read_text(encoding="utf-8")):
        lines = part.strip().splitlines()
        remarks = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        text = "\n".join(line for line in lines if not line.startswith("--"))
        if text:
            found.append((text, " ".join(remarks)))
    return found


def answered(ask: Callable[[], pa.Table]) -> Answer:
    """What is given, in a form that can be compared; an error of ours if it is refused."""
    try:
        table = ask()
    except (LakebedError, PySparkException, Py4JJavaError) as error:  # of a value, which Spark sees too late for us
        return error
    columns = [list(as_python(table.column(n), field.type)) for n, field in enumerate(table.schema)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    return Rows(table.schema.names, [plain_type(field.type) for field in table.schema], rows)


def all_answers(lake: lakebed.Lake, texts: list[str], engine: str) -> list[Answer]:
    """The answers of an engine; Spark is asked several things at once, since most of the time it waits."""
    with ThreadPoolExecutor(3 if engine == "spark" else 1) as pool:
        return list(pool.map(lambda text: answered(lambda: lake.query(text, engine=engine).arrow()), texts))


def difference(text: str, ours: Answer, theirs: Answer) -> str | None:
    """In what two answers differ; None if they do not."""
    if not isinstance(ours, Rows) or not isinstance(theirs, Rows):
        shown = [f"{len(each.rows)} rows" if isinstance(each, Rows) else str(each) for each in (ours, theirs)]
        return f"embedded {shown[0]}; Spark {shown[1]}"
    if ours.names != theirs.names:
        return f"names {ours.names}, Spark {theirs.names}"
    if ours.types != theirs.types:
        return f"types {ours.types}, Spark {theirs.types}"
    if verbatim(to_spark(text)).args.get("order") is not None:
        return None if ours.rows == theirs.rows else f"rows in order {ours.rows[:9]}, Spark {theirs.rows[:9]}"
    mine, others = (Counter(map(repr, each.rows)) for each in (ours, theirs))
    return None if mine == others else f"only embedded {(mine - others)}, only Spark {(others - mine)}"


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> lakebed.Lake:
    """The lake of the comparison, the same for both engines."""
    found = lakebed.connect(tmp_path_factory.mktemp("lake"), spark=spark)
    fill(found)
    return found


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_both_engines_agree(path: Path, lake: lakebed.Lake) -> None:
    """Names, types and rows of every query of a file are equal; in order if the query has one."""
    texts = [text for text, _ in queries(path)]
    pairs = zip(all_answers(lake, texts, "duckdb"), all_answers(lake, texts, "spark"), strict=True)
    found = [(text, difference(text, ours, theirs)) for text, (ours, theirs) in zip(texts, pairs, strict=True)]
    assert not [f"{text}\n    {what}" for text, what in found if what is not None]


def test_what_is_wrong_is_wrong_on_both(lake: lakebed.Lake) -> None:
    """A query that means nothing is refused by both engines."""
    texts = [text for text, _ in queries(FOLDER / "errors.sql")]
    for engine in ("duckdb", "spark"):
        given = [
            text for text, each in zip(texts, all_answers(lake, texts, engine), strict=True) if isinstance(each, Rows)
        ]
        assert not given, engine


def test_what_is_not_proven_is_named(lake: lakebed.Lake) -> None:
    """What the embedded engine leaves to Spark it refuses with words that say what it is."""
    for text, named in queries(FOLDER / "refused.sql"):
        with pytest.raises(Unsupported) as caught:
            lake.query(text, engine="duckdb")
        assert named.split(" -- ")[0] in caught.value.message, text


def test_the_corpus_is_large() -> None:
    """Nobody has emptied it."""
    assert sum(len(queries(path)) for path in CORPUS) > 400
