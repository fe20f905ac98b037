"""What a refresh has to say."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Which way a refresh went and why, and how many rows it changed. `snapshot` is None if it committed nothing."""

    table: str
    way: str
    """`incremental`: from changes; `full`: from all rows; `none`: there was nothing to do."""
    reason: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    snapshot: int | None = None

    @property
    def changed(self) -> int:
        """Rows that are new, other or gone."""
        return self.inserted + self.updated + self.deleted

    def __repr__(self) -> str:
        counts = f"{self.inserted} inserted, {self.updated} updated, {self.deleted} deleted"
        where = "" if self.snapshot is None else f", snapshot {self.snapshot}"
        return f"<refreshed {self.table}: {self.way} ({self.reason}), {counts}{where}>"

    @staticmethod
    def nothing(table: str, reason: str) -> Refreshed:
        """Of a refresh that found the table as it should be."""
        return Refreshed(table, "none", reason)

    @staticmethod
    def of(table: str, way: str, reason: str, rows: pa.Table, kind: str, snapshot: Snapshot | None) -> Refreshed:
        """Of a refresh that wrote rows; without a snapshot another one was first."""
        if snapshot is None:
            return Refreshed(table, "none", "another refresh was first")
        return Refreshed.sent(table, way, reason, rows.column(kind), snapshot.id)

    @staticmethod
    def sent(table: str, way: str, reason: str, kinds: pa.ChunkedArray, snapshot: int | None) -> Refreshed:
        """Of rows of these kinds that count, be there a snapshot or not."""
        counts = [pc.sum(pc.equal(kinds, each)).as_py() or 0 for each in ("+I", "+U", "-D")]
        return Refreshed(table, way, reason, counts[0], counts[1], counts[2], snapshot)

    @staticmethod
    def counted(table: str, way: str, reason: str, kinds: Mapping[str, int], snapshot: Snapshot | None) -> Refreshed:
        """The same, given how many rows there were of each kind."""
        if snapshot is None:
            return Refreshed(table, "none", "another refresh was first")
        counts = [kinds.get(each, 0) for each in ("+I", "+U", "-D")]
        return Refreshed(table, way, reason, counts[0], counts[1], counts[2], snapshot.id)
