"""A micro-batch as the pipeline sees it: chunks to look at, payloads to fetch, and a way to run a job over all of them.

The pipeline itself knows no DataFrame, so that all it decides can be tried without Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from lakebed.cdc.envelope import ENVELOPE, ROWS, Chunk, chunks_from_arrow, size_at
from lakebed.cdc.payloads import INLINE_BYTES, MARKS_DDL, payload_marks
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import SYNC_POSITION
from lakebed.records import dataclass
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.write import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.cdc.batch.job import BatchJob


@dataclass(frozen=True, slots=True)
class Counts:
    """How many changes there are, and when the last of them was made in the source."""

    rows: int
    latest_ms: int | None


@dataclass(frozen=True, slots=True)
class Marks:
    """What a look into the payloads tells, by the ordinal of the chunk."""

    rows: dict[int, int]
    latest_ms: dict[int, int | None]
    unchanged: frozenset[int]
    """Chunks in which values are missing."""

    @classmethod
    def told_by(cls, chunks: Sequence[Chunk]) -> Marks | None:
        """What the source has told of the payloads of some chunks; None if it has not told all."""
        with_rows = [chunk for chunk in chunks if chunk.kind == ROWS]
        if any(chunk.count is None for chunk in with_rows):
            return None
        return cls(
            {chunk.ordinal: chunk.count or 0 for chunk in with_rows},
            {chunk.ordinal: chunk.latest_ms for chunk in with_rows},
            frozenset(chunk.ordinal for chunk in with_rows if chunk.lacks_values),
        )

    def counts(self, chunks: Sequence[Chunk]) -> Counts:
        """Of some chunks together."""
        times = [self.latest_ms.get(chunk.ordinal) for chunk in chunks]
        known = [moment for moment in times if moment is not None]
        return Counts(sum(self.rows.get(chunk.ordinal, 0) for chunk in chunks), max(known, default=None))


class Batch(Protocol):
    """The envelope rows of one micro-batch."""

    spark: SparkSession | None
    """The session that work may be given to; None where there is none."""

    @property
    def workers(self) -> int:
        """How many tasks work at a time, about."""
        ...

    def chunks(self) -> tuple[list[Chunk], dict[int, int]]:
        """All chunks in their order, those with little payload complete, and the sizes of all payloads."""
        ...

    def payloads(self, ordinals: Sequence[int]) -> dict[int, bytes]:
        """Payloads of some chunks."""
        ...

    def marks(self) -> Marks:
        """A look into all payloads."""
        ...

    def run(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """What a job makes of all chunks, by the number of the table."""
        ...

    def run_apart(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """The same for a job that knows where all payloads lie: nothing goes from task to task."""
        ...


class SparkBatch:
    """A micro-batch that is a DataFrame, which should be kept: it is read more than once."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self.spark: SparkSession | None = frame.sparkSession

    @property
    def workers(self) -> int:
        """How many tasks work at a time, about."""
        return parallelism(self._frame.sparkSession)

    def chunks(self) -> tuple[list[Chunk], dict[int, int]]:
        """All chunks in their order, those with little payload complete, and the sizes of all payloads."""
        from pyspark.sql import functions as sf

        size = sf.coalesce(sf.length("payload"), sf.lit(0))
        inline = sf.when(size <= INLINE_BYTES, sf.col("payload")).alias("payload")
        columns = [inline if name == "payload" else sf.col(name) for name in ENVELOPE.names]
        told = self._frame.select(*columns, size.alias("size"))
        rows = until_workers_come(told.toArrow).sort_by("ordinal")
        chunks = chunks_from_arrow(rows)
        sizes = {
            chunk.ordinal: size_bytes if chunk.place is None else size_at(chunk.place)
            for chunk, size_bytes in zip(chunks, rows.column("size").to_pylist(), strict=True)
        }
        return chunks, sizes

    def payloads(self, ordinals: Sequence[int]) -> dict[int, bytes]:
        """Payloads of some chunks."""
        from pyspark.sql import functions as sf

        wanted = self._frame.where(sf.col("ordinal").isin(list(ordinals)))
        rows = until_workers_come(wanted.select("ordinal", "payload").toArrow)
        return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))

    def marks(self) -> Marks:
        """A look into all payloads, by workers."""
        frame = self._frame.select("ordinal", "payload").mapInArrow(payload_marks, MARKS_DDL)
        return marks_of(until_workers_come(frame.toArrow).to_pylist())

    def run(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """What a job makes of all chunks, by the number of the table."""
        return job.run(self._frame)

    def run_apart(self, job: BatchJob) -> dict[int, list[CommitMessage]]:
        """The same for a job that knows where all payloads lie: nothing goes from task to task."""
        return job.run_apart(self._frame.sparkSession)


def marks_of(rows: Sequence[dict[str, int]]) -> Marks:
    """Marks from the rows of `payload_marks`."""
    return Marks(
        {row["ordinal"]: row["rows"] for row in rows},
        {row["ordinal"]: row["latest_ms"] for row in rows},
        frozenset(row["ordinal"] for row in rows if row["unchanged"]),
    )


# --- How far a source was read: the offset that Spark has noted for a batch before it hands the batch out ---------
#
# The text is kept in the snapshots that the batch makes, so that data and position can not disagree.


POSITION: Final = SYNC_POSITION
SOURCE: Final = "lakebed.cdc.source"
"""Property of a snapshot: the kind of source."""


def position_of(spark: SparkSession, checkpoint: str, batch_id: int) -> str | None:
    """The end of a batch, as the text of an offset; None if Spark's notes are not there."""
    lines = _lines(spark, f"{checkpoint.rstrip('/')}/offsets/{batch_id}")
    # A version, what Spark notes for itself, and one offset for each source.
    return lines[-1] if len(lines) > 2 else None


def _lines(spark: SparkSession, path: str) -> list[str]:
    local = Path(path.removeprefix("file://").removeprefix("file:"))
    if local.exists():
        return local.read_text().splitlines()
    if "://" not in path or path.startswith("file:"):
        return []
    return [row[0] for row in spark.read.text(path).collect()]


__all__ = ["POSITION", "SOURCE", "Batch", "Counts", "Marks", "SparkBatch", "marks_of", "position_of"]
