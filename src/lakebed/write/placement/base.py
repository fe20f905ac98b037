"""A placement finds the bucket of every row of one write, and writes what has to be remembered of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import BucketMode, WritePart
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Overwrite, Partitions
from lakebed.errors import InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import Bucket
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.write.placement.kept_keys import KeptPlace
from lakebed.write.placement.table_keys import KnownKeys
from lakebed.write.sequence import BucketStates

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows as they are to be written, with their kinds and the bucket of each."""

    rows: pa.RecordBatch
    kinds: pa.Array
    buckets: Numbers
    partitions: Partitions | None = None
    """Those of the rows, if they were looked at."""


@dataclass(frozen=True, slots=True)
class PlacementSetup:
    """What a placement may need to know of one write.

    `states` tells where sequence numbers stand, and so the snapshot that the write starts from. `part` is set where
    several writers share a commit, `bucket_counts` for partitions whose postponed buckets are decided. With `is_taught`
    somebody brings the keys that an index of all keys would be read for; with `kept_keys` that index stays on this
    machine's disk.
    """

    context: TableContext
    fileio: FileIO
    states: Callable[[], BucketStates]
    overwrite: Overwrite | None = None
    part: WritePart | None = None
    bucket_counts: Mapping[bytes, int] = field(default_factory=dict)
    is_taught: bool = False
    kept_keys: KeptPlace | None = None

    @property
    def base(self) -> Callable[[], Snapshot | None] | None:
        """Asked for the snapshot to start from; None for a write that replaces what it writes to."""
        return None if self.overwrite is not None else lambda: self.states().snapshot


class Placement(ABC):
    """Places the rows of one write. One class for each bucket mode, registered in `PLACEMENTS`."""

    mode: ClassVar[BucketMode]

    def __init__(self, setup: PlacementSetup) -> None:
        self.setup = setup
        self.context = setup.context

    @abstractmethod
    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        """Rows with their buckets. Some may be kept back until `kept_back`, and rows may be added, to delete others."""

    def total_buckets(self, partition: bytes) -> int:
        """What manifests record as the number of buckets of a partition: -1 where it does not say where a key is."""
        return -1

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys of the table lie, before any row of theirs comes."""
        raise InvalidArgument(
            f"table `{self.context.name}` does not look for keys",
            hint="bring keys only where a placement asks for them",
        )

    def kept_back(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Rows that can be placed now that all have come, with their kinds: to be placed again."""
        return iter(())

    def finish(self) -> None:  # noqa: B027 - few have something to do
        """To be called after the last row."""

    def index_files(self, buckets: Collection[Bucket]) -> Mapping[Bucket, IndexEntry]:
        """Writes what has to be remembered of the keys that came to these buckets."""
        return {}

    def remember(self, snapshot: Snapshot) -> None:  # noqa: B027 - few have something to do
        """Lets the next write of this handle start from here: what was written is committed."""

    def abort(self) -> None:  # noqa: B027 - few have something to do
        """To be called if the rows are given up."""

    def file_prefix(self, prefix: str) -> str:
        """How names of data files begin."""
        return prefix

    def check_replaced(self, partitions: Partitions) -> None:
        """Refuses rows outside of what a static overwrite replaces, before any has left a trace."""
        if self.setup.overwrite is not None:
            for partition in partitions[1]:
                self.setup.overwrite.check(partition)

    @property
    def base_snapshot_id(self) -> int | None:
        """The snapshot that an overwrite was found to fit to, if it matters what others have committed since."""
        return None

    @classmethod  # noqa: B027 - few have something to do
    def check_overwrite(
        cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None
    ) -> None:
        """As `check_commit`, for rows that replace others, where partitions stay that are not replaced."""

    @classmethod  # noqa: B027 - few have something to do
    def check_commit(cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
        """Raises if what others have committed meanwhile makes these places wrong.

        INVARIANT: no commit may bring a key to a second bucket. Rows of one key in two buckets are never merged again.
        """


__all__ = ["Numbers", "PlacedRows", "Placement", "PlacementSetup"]
