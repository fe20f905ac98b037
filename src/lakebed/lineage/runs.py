"""Runs of jobs: each tells that it starts, and how it ends, with what it reads and writes."""

from __future__ import annotations

import datetime as dt
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlglot import exp

from lakebed.clock import RandomIds, SystemClock
from lakebed.errors import InvalidData, LakebedError
from lakebed.lineage.datasets import Dataset
from lakebed.lineage.facets import EVENT_SCHEMA, PRODUCER, facet, shape_of
from lakebed.lineage.sender import sender_to
from lakebed.records import dataclass

_log = logging.getLogger(__name__)

_VARIABLE = "LAKEBED_OPENLINEAGE"
_NAMESPACE_VARIABLE = "OPENLINEAGE_NAMESPACE"

_Made = TypeVar("_Made")

_IS_UNTOLD: ContextVar[bool] = ContextVar("whether lineage is told of nothing", default=False)

Datasets = Callable[[], Iterable[Dataset]]
"""Asked when an event is made: at the end there may be a table, or a column, that was not there at the beginning."""


def _is_wanted() -> bool:
    """Whether anybody is told: where to stands in the environment."""
    return bool(os.environ.get(_VARIABLE)) and not _IS_UNTOLD.get()


@dataclass(frozen=True, slots=True)
class Job:
    """What runs: the same name each time it does. `kind` is a word of ours, such as `INSERT` or `SYNC`."""

    name: str
    kind: str
    inputs: Datasets
    outputs: Datasets
    query: exp.Expression | None = None
    is_stream: bool = False

    def facets(self) -> dict[str, Any]:
        """What is said of it."""
        way = "STREAMING" if self.is_stream else "BATCH"
        said = {
            "jobType": facet("JobTypeJobFacet", "2-0-3", processingType=way, integration="LAKEBED", jobType=self.kind)
        }
        query = self.query
        text = None if query is None else _quietly(lambda: shape_of(query))
        if text is not None:
            said["sql"] = facet("SQLJobFacet", "1-1-0", query=text, dialect="spark")
        return said


class Run:
    """One run of a job, told of where the environment says. Its end is told once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._id = RandomIds().new_id()
        self._is_over = False
        self._tell("START")

    def complete(self) -> None:
        """It ends well."""
        self._end("COMPLETE")

    def fail(self, error: BaseException) -> None:
        """It ends with an error."""
        self._end("FAIL", errorMessage=facet("ErrorMessageRunFacet", "1-0-1", **_said(error)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.complete()
        else:
            self.fail(error)

    def _end(self, kind: str, **facets: Any) -> None:
        if not self._is_over:
            self._is_over = True
            self._tell(kind, **facets)

    def _tell(self, kind: str, **facets: Any) -> None:
        place = os.environ.get(_VARIABLE)
        event = _quietly(lambda: self._event(kind, facets))
        if place and event is not None:
            sender_to(place).send(event)

    def _event(self, kind: str, facets: dict[str, Any]) -> dict[str, Any]:
        job = self._job
        now = dt.datetime.fromtimestamp(SystemClock().now_ms() / 1000, dt.UTC)
        return {
            "eventType": kind,
            "eventTime": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "run": {"runId": self._id, "facets": facets},
            "job": {
                "namespace": os.environ.get(_NAMESPACE_VARIABLE) or "lakebed",
                "name": job.name,
                "facets": job.facets(),
            },
            "inputs": _all(job.inputs),
            "outputs": _all(job.outputs),
            "producer": PRODUCER,
            "schemaURL": EVENT_SCHEMA,
        }


def begun(job: Callable[[], Job | None]) -> Run | None:
    """A run that has started; None if nobody is told, or there is nothing to tell."""
    if not _is_wanted():
        return None
    found = _quietly(job)
    return None if found is None else Run(found)


@contextmanager
def untold() -> Iterator[None]:
    """Nothing in the block is told: what is only tried out."""
    token = _IS_UNTOLD.set(True)
    try:
        yield
    finally:
        _IS_UNTOLD.reset(token)


def told(job: Callable[[], Job | None]) -> AbstractContextManager[object]:
    """Tells of the block as a run of a job. The job is made only if somebody is told."""
    run = begun(job)
    return nullcontext() if run is None else run


def _all(datasets: Datasets) -> list[dict[str, Any]]:
    """Those that there are, each once."""
    found = _quietly(lambda: {(each.namespace, each.name): each.to_json() for each in datasets()})
    return list((found or {}).values())


def _said(error: BaseException) -> dict[str, str]:
    """Of errors of ours their message, which holds no secrets, unless it may quote a row; of others only the kind."""
    message = type(error).__name__
    if isinstance(error, LakebedError) and not isinstance(error, InvalidData):
        message = f"{message}: {error.message}"
    return {"message": message, "programmingLanguage": "python"}


def _quietly(make: Callable[[], _Made]) -> _Made | None:
    """What is made; None if that fails: it is only about lineage."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - no statement fails because it can not be told of
        _log.debug("lineage is incomplete", exc_info=error)
        return None


__all__ = ["Job", "Run", "begun", "told", "untold"]
