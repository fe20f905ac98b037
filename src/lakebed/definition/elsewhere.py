"""What a table asks of Spark. The table layer knows no Spark: a lake hands each of its tables an implementation.

Contexts and tables are `Any` here: a context has such an implementation, so naming their classes would close a circle.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lakebed.commit.message import CommitMessage
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.fileio.together import delete_all
from lakebed.metadata.snapshot import Snapshot
from lakebed.units import format_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_Piece = TypeVar("_Piece")

HERE_BYTES = 16 << 20
"""So little is worked through faster here than a job starts."""

MANY_FILES = 20_000
"""So many are deleted by tasks: fewer are gone before a job has started, a thousand of them with each request."""
_FILES_OF_TASK = 4000
_DELETION_BYTES = 16 << 10
"""What deleting a file costs, in bytes that are worked through in the same time."""
_BETWEEN = "\0"
"""No name has it. Paths are much alike, so that together they are a tenth of their length."""

Work = Callable[[Any, _Piece, FileIO], Sequence[CommitMessage]]
"""Makes files from one piece, given the table's context; nothing is visible before somebody commits."""


class Elsewhere(Protocol):
    """Runs work on pieces in other processes; None when so many bytes had better be worked through here."""

    def __call__(
        self, context: Any, pieces: Sequence[_Piece], size_bytes: int, work: Work[_Piece], /
    ) -> list[CommitMessage] | None: ...


class SparkJobs(Protocol):
    """Reads and writes of whole tables as Spark jobs."""

    def read(self, table: Any, columns: Sequence[str] | None, filter: Any) -> DataFrame:  # noqa: A002
        """The table as a DataFrame."""
        ...

    def read_changes(self, planned: Any) -> DataFrame:
        """Changes that are planned already as a DataFrame."""
        ...

    def read_stream(
        self,
        table: Any,
        columns: Sequence[str] | None,
        filter: Any,  # noqa: A002
        options: Mapping[str, object],
    ) -> DataFrame:
        """The table as a streaming DataFrame."""
        ...

    def write(
        self,
        table: Any,
        frame: DataFrame,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Writes a DataFrame as one commit."""
        ...

    def elsewhere(self) -> Elsewhere:
        """Runs work on files as Spark jobs."""
        ...

    def cluster(self) -> str:
        """The master of the session in use, if its tasks run on other machines; empty otherwise, or if none is."""
        ...

    def write_stream(
        self,
        table: Any,
        frame: DataFrame,
        checkpoint: str,
        trigger: str | Mapping[str, Any] | None,
        output_mode: str,
        row_kind: str | None,
        query_name: str | None,
    ) -> StreamingQuery:
        """Writes a streaming DataFrame, each micro-batch as one commit."""
        ...


def place_of_work(context: Any, on_spark: bool | None = None) -> Elsewhere | None:
    """Where files of a table are rewritten, if there is much to do: the one rule.

    In tasks of Spark if the caller asks for them; if nothing is asked, where the lake's session is: in tasks if that
    is a cluster, whose machines together have more hands than this one. None stands for threads of this process.
    """
    if on_spark is None:
        on_spark = context.jobs is not None and bool(context.jobs.cluster())
    return jobs_of(context.name, context.jobs).elsewhere() if on_spark else None


def deleted_elsewhere(context: Any, paths: Sequence[str]) -> bool:
    """Whether very many files of a table were deleted in tasks, by the same rule; False leaves it to the caller.

    Their order is nobody's. What is gone already does not count.
    """
    if len(paths) < MANY_FILES:
        return False
    elsewhere = place_of_work(context)
    if elsewhere is None:
        return False
    starts = range(0, len(paths), _FILES_OF_TASK)
    parts = [zlib.compress(_BETWEEN.join(paths[start : start + _FILES_OF_TASK]).encode()) for start in starts]
    return elsewhere(context, parts, len(paths) * _DELETION_BYTES, _delete_part) is not None


def _delete_part(context: Any, part: bytes, _: FileIO) -> Sequence[CommitMessage]:
    delete_all(context.fileio, zlib.decompress(part).decode().split(_BETWEEN))
    return ()


def told_place(context: Any, on_spark: bool | None = None) -> str:
    """The same rule in words."""
    cluster = "" if context.jobs is None else context.jobs.cluster()
    here = f"rounds of at most {format_size(HERE_BYTES)} in this process: a job starts more slowly than they are done"
    if on_spark or (on_spark is None and cluster):
        why = "on_spark=True asks for it" if on_spark else f"the session is a cluster ({cluster})"
        many = f"expiry and orphan cleaning delete {MANY_FILES:,} files or more in tasks, too"
        return f"files are rewritten in tasks of Spark, since {why}; {here}; {many}"
    why = "on_spark=False asks for it" if on_spark is False else "no session of a cluster is in use"
    return f"files are rewritten in threads of this process, since {why}"


def jobs_of(table: str, jobs: SparkJobs | None) -> SparkJobs:
    """The jobs of a table that was opened through a lake."""
    if jobs is None:
        raise InvalidArgument(
            f"table `{table}` was not opened through a lake, so it has no Spark session",
            hint="open it with lakebed.connect(path).table(name)",
        )
    return jobs


__all__ = [
    "HERE_BYTES",
    "MANY_FILES",
    "Elsewhere",
    "SparkJobs",
    "Work",
    "deleted_elsewhere",
    "jobs_of",
    "place_of_work",
    "told_place",
]
