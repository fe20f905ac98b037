"""The commits that are made to fail at every single file operation, each with a model of what it does to the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.fault_tables import SCHEMA, Row, data

from lakebed.lake import Lake
from lakebed.table.table import Table

Rows = list[Row]

USER = "job"
IDENTIFIER = 7
OTHERS = [*((2, key, key) for key in range(100, 120)), (2, 1, 201), (2, 9, 209)]
"""What somebody else commits in between: enough rows to have higher sequence numbers than the commit under test."""


@dataclass(frozen=True)
class Scenario:
    """A table, what is in it, and the commit under test."""

    name: str
    own: Sequence[Row]
    primary_key: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[Sequence[Row]] = ((),)
    overwrite: bool | Mapping[str, Any] | None = None
    is_stream: bool = False
    meddling: str | None = None
    """When somebody else commits: `writing` (rows written, not committed), `publishing` (just before the snapshot)."""

    def create(self, lake: Lake) -> Table:
        """The table with what is in it before."""
        table = lake.create_table(
            "t", SCHEMA, primary_key=self.primary_key, partition_by=self.partition_by, options=self.options
        )
        for rows in self.before:
            table.write(data(rows))
        return table

    def commit(self, table: Table, meddle: Callable[[], None] = lambda: None) -> object:
        """The commit under test."""
        identity = {"commit_user": USER, "commit_identifier": IDENTIFIER} if self.is_stream else {}
        with table.writer(overwrite=self.overwrite, **identity) as writer:
            writer.write(data(self.own))
            if self.meddling == "writing":
                meddle()
            return writer.commit()

    # The model

    def initial(self) -> Rows:
        """Rows before the commit."""
        rows: Rows = []
        for added in self.before:
            rows = self.add(rows, added)
        return sorted(rows)

    def add(self, rows: Rows, added: Sequence[Row]) -> Rows:
        """Rows after an append."""
        if not self.primary_key:
            return sorted([*rows, *added])
        return sorted({row[:2]: row for row in [*rows, *added]}.values())

    def applied(self, rows: Rows) -> Rows:
        """Rows after the commit under test."""
        if self.overwrite is None:
            return self.add(rows, self.own)
        if isinstance(self.overwrite, Mapping):
            gone = {self.overwrite["p"]}
        else:
            gone = {row[0] for row in (self.own if self.partition_by else rows)}
        return self.add([row for row in rows if row[0] not in gone], self.own)


_APPEND = {"before": [[(1, 1, 11), (1, 2, 12)], [(2, 3, 13)]], "own": [(1, 4, 14), (2, 5, 15)]}
_KEYED = {
    "primary_key": ["p", "id"],
    "options": {"bucket": "2", "file.format": "avro"},
    "before": [[(1, key, key) for key in range(6)], [(2, 1, 21)]],
    "own": [(1, key, 100 + key) for key in range(4)] + [(2, 1, 101), (2, 2, 102)],
}
# Avro files take fewer writes than Parquet files, hence fewer runs.
_ONE_BUCKET = {**_KEYED, "options": {"bucket": "1", "file.format": "avro"}}
_COMPACTED = {
    **_KEYED,
    "options": {"bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "2"},
    "before": [[(1, key, key) for key in range(6)], [(1, 1, 21)]],
    "own": [(1, key, 100 + key) for key in range(4)],
}
_INDEXES = {
    "file-index.bloom-filter.columns": "v",
    "file-index.bloom-filter.v.items": "10",
    "file-index.in-manifest-threshold": "0 b",
}
_PARTITIONED = {**_ONE_BUCKET, "partition_by": ["p"]}
_DYNAMIC = {
    **_PARTITIONED,
    "options": {"file.format": "avro", "dynamic-bucket.target-row-num": "4"},
}
_MANY = [[(1, number, number)] for number in range(4)]

SCENARIOS = {
    scenario.name: scenario
    for scenario in [
        Scenario("first-commit", own=[(1, 1, 1)], before=[]),
        Scenario("append", **_APPEND),
        Scenario("append-stream", **_APPEND, is_stream=True),
        Scenario("keyed-buckets", **_KEYED, is_stream=True),
        Scenario("compact", **_COMPACTED, is_stream=True),
        Scenario("dynamic-buckets", **_DYNAMIC, is_stream=True),
        Scenario("dynamic-overwrite", **{**_DYNAMIC, "own": [(1, 7, 107), (1, 1, 101)]}, overwrite=True),
        Scenario("restamp", **_ONE_BUCKET, is_stream=True, meddling="writing"),
        Scenario(
            "indexed-restamp",
            **{**_ONE_BUCKET, "options": {**_ONE_BUCKET["options"], **_INDEXES}},
            is_stream=True,
            meddling="writing",
        ),
        Scenario("indexed-compact", **{**_COMPACTED, "options": {**_COMPACTED["options"], **_INDEXES}}, is_stream=True),
        Scenario("overtaken", **_ONE_BUCKET, is_stream=True, meddling="publishing"),
        Scenario("append-overtaken", **_APPEND, meddling="publishing"),
        Scenario(
            "merge-manifests",
            own=[(1, 9, 9)],
            before=_MANY,
            options={"manifest.merge-min-count": "2"},
            is_stream=True,
        ),
        Scenario(
            "merge-all-manifests",
            own=[(2, 9, 9)],
            before=[*_MANY, [(2, 1, 1)]],
            partition_by=["p"],
            options={"manifest.merge-min-count": "100", "manifest.full-compaction-threshold-size": "1 kb"},
            overwrite=True,
        ),
        Scenario("overwrite-whole", **_APPEND, overwrite=True, is_stream=True),
        Scenario("overwrite-static", **{**_PARTITIONED, "own": [(1, 7, 107)]}, overwrite={"p": 1}, is_stream=True),
        Scenario("overwrite-dynamic", **{**_PARTITIONED, "own": [(2, 7, 207)]}, overwrite=True),
        Scenario(
            "overwrite-overtaken", **{**_PARTITIONED, "own": [(2, 7, 207)]}, overwrite=True, meddling="publishing"
        ),
    ]
}
