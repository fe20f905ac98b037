"""Temporary views on tables of the lake, which show the tables as they are when the view is used.

Spark keeps the plan of a view, and a plan belongs to one snapshot. So the text of the view is kept here, and the plan
is made anew before a statement uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakebed.sql.statements import Sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class _View:
    text: Sql
    plan: int
    """Tells whether Spark still has the plan that we gave it: others may have replaced the view."""


_VIEWS: WeakKeyDictionary[Any, dict[str, _View]] = WeakKeyDictionary()


def remember(lake: Any, name: str, text: Sql, frame: DataFrame) -> None:
    """Notes what a view stands for. `frame` is what Spark has for it."""
    _VIEWS.setdefault(lake, {})[name.lower()] = _View(text, frame.semanticHash())


def refresh(lake: Any, name: str, plan: Callable[[Sql], DataFrame]) -> None:
    """Gives Spark a new plan for the view of that name, if it is one of ours."""
    views = _VIEWS.get(lake, {})
    view = views.get(name.lower())
    if view is None:
        return
    spark = lake.spark
    if not spark.catalog.tableExists(name) or spark.table(name).semanticHash() != view.plan:
        del views[name.lower()]
        return
    frame = plan(view.text)
    frame.createOrReplaceTempView(name)
    view.plan = spark.table(name).semanticHash()
