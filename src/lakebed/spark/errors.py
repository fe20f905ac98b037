"""What made a job or a query fail, in our own words: errors of ours that Spark has wrapped, also those of its workers.

A worker's error comes back as text, stack and all. Ours end with what to do next; that is found and taken out. Of
Spark's own there is one kind that nothing of the user's has caused: a worker that did not answer in time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lakebed.errors import InvalidArgument, InvalidData, LakebedError, MissingDependency, StorageError, told_in
from lakebed.expressions.spark_functions import no_function
from lakebed.spark.session import import_pyspark
from lakebed.version import VERSION

_LATE: Final = re.compile(
    "Python worker failed to connect back|waiting for the Python worker to connect back"
    "|Python daemon failed to launch worker|STREAMING_PYTHON_RUNNER_INITIALIZATION_TIMEOUT_FAILURE"
    "|CANNOT_OPEN_SOCKET.*timed out",
    re.DOTALL,
)
"""What Spark tells of workers started one by one (ten seconds), of forks of its daemon (a minute), of `foreachBatch` on
Spark Connect (five), of a result that was fetched too late (fifteen seconds)."""


_LACKS: Final = re.compile(r"ModuleNotFoundError: No module named '(lakebed|pyarrow|numpy|fastavro|sqlglot)[.']")
"""What Python says on a machine on which Lakebed, or what it always needs, is not installed."""


_BROKEN: Final = re.compile(
    r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor \S+\): "
    r"(ExecutorLostFailure[^\n]*|FetchFailed[^\n]*|java\.(?:nio\.file|io)\.(?![^\n]*://)[^\n]*)"
)
"""What Spark says of a machine on which a task failed too often, for reasons that no row or statement can have."""


def is_worker_late(error: BaseException) -> bool:
    """Whether Spark has given up because a Python worker did not answer in time. What we say ourselves is final."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, LakebedError):
        if _LATE.search(str(seen)) is not None:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def worker_late() -> LakebedError:
    """The error to raise when that was tried often enough."""
    return LakebedError(
        "Spark's Python workers did not start in time: the machine is too busy",
        hint="nothing was committed that is not whole: run it again when less is going on, a stream with the same "
        "checkpoint; on Spark Connect start the server with PYSPARK_PYTHON=$(python -m lakebed.spark.worker_python)",
    )


def lacks_lakebed(error: BaseException) -> LakebedError | None:
    """The error to raise if a machine of the cluster could not run our code, since it has not got it."""
    found = _LACKS.search(str(error))
    if found is None or isinstance(error, LakebedError):
        return None
    return MissingDependency(
        f"a machine that runs Spark's tasks has no Python package `{found[1]}`",
        hint=f'install Lakebed on all of them, with: pip install "lakebed[spark]=={VERSION}"; or name a Python that '
        "has it everywhere, with PYSPARK_PYTHON",
    )


def machine_broke(error: BaseException) -> LakebedError | None:
    """The error to raise if Spark has given up because a machine lost its disk, its memory or its connection."""
    found = _BROKEN.search(str(error))
    if found is None or isinstance(error, LakebedError):
        return None
    return StorageError(
        f"machine {found[1]}, which runs tasks of Spark, failed again and again: {found[2]}",
        hint="run it again, a stream with the same checkpoint: nothing was committed that is not whole; "
        "with spark.excludeOnFailure.enabled=true Spark goes on without such a machine",
    )


def cause_of(error: BaseException) -> BaseException:
    """The error of ours behind one of Spark's, or for a worker that was late; else the error itself."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, LakebedError):
            return seen
        seen = seen.__cause__ or seen.__context__
    told = told_in(str(error))
    known = told or lacks_lakebed(error) or machine_broke(error)
    return known or (worker_late() if is_worker_late(error) else error)


# --- Spark's errors in our own words: without stacks and plans, and without names that only we know ---------------


_JAVA = re.compile(r"^An error occurred while calling .*?\n: (?:[\w.$]+: )?")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Print each error with the names of views and the whole plan, before anybody can catch it."""
_PLACE = re.compile(r"\s*(?:[;(]\s*)?line \d+,? pos(?:ition)? \d+;?.*", re.DOTALL)
_CLASS = re.compile(r"^\[([A-Z_.0-9]+)\] ")
_SQLSTATE = re.compile(r"\s*SQLSTATE: (\w+)")
_OF_VALUES = ("22", "P0001")
"""Beginnings of the states of errors that values of rows have caused, not the statement."""
_NO_FUNCTION = re.compile(r"Cannot resolve routine `(\w+)`")


@contextmanager
def spark_errors(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turns Spark's errors into ours; `names` are those of views, with what stands for them."""
    import_pyspark()
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
    except java_errors() as error:  # what pyspark has no class for, such as Spark's own mistakes
        broken = machine_broke(error)
        if broken is not None:
            raise broken from error
        raise translated_error(_JAVA.sub("", str(error)).partition("\n\tat ")[0], names or {}) from error
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def java_errors() -> tuple[type[Exception], ...]:
    """Errors of the JVM that pyspark passes on as they are; none on Spark Connect, which has no JVM in this process."""
    bridge = sys.modules.get("py4j.protocol")
    return () if bridge is None else (bridge.Py4JJavaError,)


def translated_error(error: Any, names: Mapping[str, str]) -> LakebedError:
    """Spark's message without its view names, stack and plan."""
    if isinstance(error, BaseException) and is_worker_late(error):
        return worker_late()
    broken = machine_broke(error) if isinstance(error, BaseException) else None
    if broken is not None:
        return broken
    text = str(error).split("\nJVM stacktrace")[0].split("\n\nDriver stacktrace")[0]
    text = _PLACE.sub("", text.split("\n== SQL")[0].split("\n== DataFrame")[0]).strip()
    kind, state = _CLASS.match(text), _SQLSTATE.search(str(error))
    text = _SQLSTATE.sub("", _CLASS.sub("", text)).strip()
    for name, shown in names.items():
        text = re.sub(rf"`?{name}\b`?", f"`{shown}`", text)
    hint = f"Spark calls this {kind.group(1)}" if kind else "correct the statement"
    unknown = _NO_FUNCTION.match(text)
    if unknown is not None:
        return no_function(unknown[1])
    if "to_timestamp_ltz(" in text:
        hint = "to_timestamp_ltz reads text here: write timestamp_millis(n), or timestamp_seconds(n), for a number"
    is_setting = kind is not None and kind[1].startswith("INVALID_CONF_VALUE")
    is_value = state is not None and state[1].startswith(_OF_VALUES) and not is_setting
    return (InvalidData if is_value else InvalidArgument)(text or "Spark refused the statement", hint=hint)


__all__ = ["cause_of", "is_worker_late", "java_errors", "lacks_lakebed", "machine_broke", "worker_late"]
