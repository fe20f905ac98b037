"""Spark's errors in our own words: without stacks and plans, and without names that only we know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakebed.errors import InvalidArgument, LakebedError
from lakebed.spark.causes import is_worker_late, worker_late

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Print each error with the names of views and the whole plan, before anybody can catch it."""
_PLACE = re.compile(r"\s*(?:;\s*)?line \d+,? pos(?:ition)? \d+;?.*", re.DOTALL)
_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\] ")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")


@contextmanager
def spark_errors(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turns Spark's errors into ours; `names` are those of views, with what stands for them."""
    from pyspark.errors import PySparkException  # heavy: only when it is used
    from pyspark.logger import PySparkLogger

    # Asked for in this way: a logger that Python makes first is not the kind that Spark needs.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    except PySparkException as error:
        raise translated_error(error, names or {}) from error
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def translated_error(error: Any, names: Mapping[str, str]) -> LakebedError:
    """Spark's message without its view names, stack and plan."""
    if is_worker_late(error):
        return worker_late()
    text = str(error).split("\nJVM stacktrace")[0].split("\n\nDriver stacktrace")[0]
    text = _PLACE.sub("", text.split("\n== SQL")[0]).strip()
    kind = _CLASS.match(text)
    text = _SQLSTATE.sub("", _CLASS.sub("", text)).strip()
    for name, shown in names.items():
        text = re.sub(rf"`?{name}\b`?", f"`{shown}`", text)
    hint = f"Spark calls this {kind.group(1)}" if kind else "correct the statement"
    return InvalidArgument(text or "Spark refused the statement", hint=hint)
