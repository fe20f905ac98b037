"""Hands DataFrames to a statement under names of their own, and keeps these names out of what users see.

Spark takes them as temporary views. A classic session looks names up when the statement is read, so they can go at
once; Spark Connect looks them up each time the result is used, so there the last ones stay.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakebed.cleanup import on_failure
from lakebed.records import dataclass
from lakebed.spark.errors import spark_errors
from lakebed.sql.statements import Sql

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
        if _is_connect(self.spark):
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


def _is_connect(spark: Any) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


# --- Temporary views on tables of the lake, which show the tables as they are when the view is used ---------------
#
# Spark keeps the plan of a view, and a plan belongs to one snapshot. So the text of the view is kept here, and the
# plan is made anew before a statement uses it. Without a session the text is all there is.


@dataclass
class _View:
    text: Sql
    plan: int | None = None
    """Tells whether Spark still has the plan that we gave it: others may have replaced the view. None: it has none."""


_VIEWS: WeakKeyDictionary[Any, dict[str, _View]] = WeakKeyDictionary()


def remember(lake: Any, name: str, text: Sql, frame: DataFrame | None = None) -> None:
    """Notes what a view stands for. `frame` is what Spark has for it."""
    plan = None if frame is None else frame.semanticHash()
    _VIEWS.setdefault(lake, {})[name.lower()] = _View(text, plan)


def forget(lake: Any, name: str) -> None:
    """The view is no more."""
    _VIEWS.get(lake, {}).pop(name.lower(), None)


def view_text(lake: Any, name: str) -> Sql | None:
    """What the view of that name stands for; None if there is none."""
    view = _VIEWS.get(lake, {}).get(name.lower())
    return None if view is None else view.text


def view_names(lake: Any) -> list[str]:
    """Names of all views, in the order in which they were defined."""
    return list(_VIEWS.get(lake, {}))


def refresh(lake: Any, name: str, plan: Callable[[Sql], DataFrame]) -> None:
    """Gives Spark a new plan for the view of that name, if it is one of ours."""
    views = _VIEWS.get(lake, {})
    view = views.get(name.lower())
    if view is None:
        return
    spark = lake.spark
    is_known = view.plan is not None
    if is_known and (not spark.catalog.tableExists(name) or spark.table(name).semanticHash() != view.plan):
        del views[name.lower()]
        return
    frame = plan(view.text)
    frame.createOrReplaceTempView(name)
    view.plan = spark.table(name).semanticHash()
