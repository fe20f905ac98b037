"""Hands DataFrames to a statement under names of their own, and keeps these names out of what users see.

Spark takes them as temporary views. A classic session looks names up when the statement is read, so they can go at
once; Spark Connect looks them up each time the result is used, so there the last ones stay.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakebed.cleanup import on_failure
from lakebed.spark.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX = "lakebed_view_"
_KEPT = 512
_NUMBERS = itertools.count(1)
_RINGS: WeakKeyDictionary[Any, deque[str]] = WeakKeyDictionary()


class Views:
    """Views of one statement: made for it, named after the tables that users know."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._names: dict[str, str] = {}

    def add(self, frame: DataFrame, shown: str) -> str:
        """The name of a new view; `shown` is what errors call it."""
        name = f"{_PREFIX}{next(_NUMBERS)}"
        frame.createOrReplaceTempView(name)
        self._names[name] = shown
        return name

    def sql(self, text: str, *, keep: bool = False) -> DataFrame:
        """Runs the statement. With `keep` the views stay, for statements that Spark remembers as text."""
        with self.translated():
            frame = self.spark.sql(text)
        if not keep:
            self.drop()
        return frame

    def drop(self) -> None:
        """Takes the views away, as soon as that can be."""
        if is_connect(self.spark):
            ring = _RINGS.setdefault(self.spark, deque())
            ring.extend(self._names)
            gone = [ring.popleft() for _ in range(len(ring) - _KEPT)]
        else:
            gone = list(self._names)
        for name in gone:
            self.spark.catalog.dropTempView(name)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Says what Spark finds wrong in the user's own names."""
        with on_failure(self.drop), spark_errors(self._names):
            yield


def is_connect(spark: Any) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def quoted(name: str) -> str:
    """A name in the quotes of SQL."""
    return "`" + name.replace("`", "``") + "`"
