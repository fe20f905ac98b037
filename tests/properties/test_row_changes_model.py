"""Random histories of appends, deletes and updates of tables without a key, against a plain list of rows.

Whether rows are marked or files rewritten, hashed into buckets or not, partitioned or not: the table shows the rows of
the list, and where rows have ids, each keeps its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.row_statements import Update, update_where

import lakebed
from lakebed.errors import CommitConflict


@dataclass(frozen=True)
class Row:
    """A row of the list; `row_id` and `sequence` are what the table should give it."""

    id: int
    p: int
    v: str
    row_id: int
    sequence: int


LAYOUTS = {
    "rewriting": {},
    "marking": {"deletion-vectors.enabled": "true"},
    "wide marks": {
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": "true",
        "deletion-vector.index-file.target-size": "100 b",
    },
    "buckets": {"bucket": "2", "bucket-key": "id"},
    "marking buckets": {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"},
    "ids": {"row-tracking.enabled": "true"},
    "ids, marking": {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"},
}

rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=12)
chosen = st.sets(st.integers(0, 9), min_size=1, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("delete"), chosen),
        st.tuples(st.just("update"), chosen),
        st.tuples(st.just("both delete"), st.tuples(chosen, chosen)),
        st.tuples(st.just("overwrite"), rows),
        st.tuples(st.just("compact"), st.booleans()),
        st.tuples(st.just("compact meanwhile"), chosen),
    ),
    min_size=1,
    max_size=8,
)


class History:
    """A table and the list of rows beside it."""

    def __init__(self, layout: str, partitioned: bool) -> None:
        lake = lakebed.connect(f"memory://{uuid4().hex}/warehouse")
        columns = {"id": "INT", "p": "INT", "v": "STRING"}
        options = {**LAYOUTS[layout], "target-file-row-num": "5", "compaction.min.file-num": "3"}
        self.table = lake.create_table("t", columns, partition_by=["p"] if partitioned else (), options=options)
        self.rows: list[Row] = []
        self.tracks = "row-tracking.enabled" in options
        self.partitioned = partitioned
        self._next_id = 0
        self._texts = 0

    def append(self, given: list[tuple[int, int]], **how: object) -> None:
        self._texts += 1
        table = pa.table(
            {
                "id": pa.array([number for number, _ in given], pa.int32()),
                "p": pa.array([part for _, part in given], pa.int32()),
                "v": [f"v{self._texts}"] * len(given),
            }
        )
        self.table.write(table, **how)
        if self.partitioned:
            first_seen = list(dict.fromkeys(part for _, part in given))
            given = sorted(given, key=lambda row: first_seen.index(row[1]))
        for number, part in given:
            self.rows.append(Row(number, part, f"v{self._texts}", self._next_id, self._now))
            self._next_id += 1

    def delete(self, ids: set[int]) -> None:
        self.table.delete_where(pc.field("id").isin(sorted(ids)))
        self.rows = [row for row in self.rows if row.id not in ids]

    def update(self, ids: set[int]) -> None:
        self._texts += 1
        text = f"u{self._texts}"
        change = lambda found: found.set_column(2, "v", pa.array([text] * found.num_rows, pa.string()))  # noqa: E731
        if update_where(self.table, pc.field("id").isin(sorted(ids)), change) is not None:
            now = self._now
            self.rows = [replace(row, v=text, sequence=now) if row.id in ids else row for row in self.rows]

    def both_delete(self, given: tuple[set[int], set[int]]) -> None:
        """Two deletes that read the same state, one after the other."""
        first, second = (
            Update(self.table, pc.field("id").isin(sorted(ids)), lambda found: found.slice(0, 0)) for ids in given
        )
        first.commit()
        gone = set(given[0])
        try:
            second.commit()
            gone |= given[1]
        except CommitConflict:
            # Marks of different rows never collide.
            assert "deletion-vectors.enabled" not in self.table.options or given[0] & given[1]
        self.rows = [row for row in self.rows if row.id not in gone]

    def compact(self, full: bool) -> None:
        self.table.compact(full=full)

    def compact_meanwhile(self, ids: set[int]) -> None:
        """A delete that reads the table before a compaction, and commits after it."""
        delete = Update(self.table, pc.field("id").isin(sorted(ids)), lambda found: found.slice(0, 0))
        compacted = self.table.compact(full=True)
        try:
            delete.commit()
            self.rows = [row for row in self.rows if row.id not in ids]
        except CommitConflict:
            assert compacted is not None

    def overwrite(self, given: list[tuple[int, int]]) -> None:
        replaced = {part for _, part in given} if self.partitioned else {row.p for row in self.rows}
        kept = [row for row in self.rows if row.p not in replaced]
        self.append(given, overwrite=True)
        self.rows = kept + self.rows[len(self.rows) - len(given) :]

    def check(self) -> None:
        columns = ["id", "p", "v", *(("_ROW_ID", "_SEQUENCE_NUMBER") if self.tracks else ())]
        shown = self.table.to_arrow(columns=columns)
        found = sorted(zip(*(column.to_pylist() for column in shown.columns), strict=True))
        wanted = [(row.id, row.p, row.v, *((row.row_id, row.sequence) if self.tracks else ())) for row in self.rows]
        assert found == sorted(wanted)
        some = self.table.to_arrow(columns=["v"], filter=pc.field("id") >= 5)
        assert sorted(some.column("v").to_pylist()) == sorted(row.v for row in self.rows if row.id >= 5)

    @property
    def _now(self) -> int:
        latest = self.table.latest_snapshot()
        return 0 if latest is None else latest.id


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=12)
@given(steps=steps, partitioned=st.booleans())
def test_the_table_shows_the_rows_of_the_list(layout: str, steps: list, partitioned: bool) -> None:
    """After every step rows, ids and sequence numbers are those of the list."""
    check_steps(layout, steps, partitioned)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=500, derandomize=False)
@given(steps=steps, partitioned=st.booleans())
def test_the_table_shows_the_rows_of_the_list_for_a_night(layout: str, steps: list, partitioned: bool) -> None:
    """The same many times; other steps each time."""
    check_steps(layout, steps, partitioned)


def check_steps(layout: str, steps: list, partitioned: bool) -> None:
    """The table beside the list, step by step."""
    history = History(layout, partitioned)
    for name, argument in steps:
        getattr(history, name.replace(" ", "_"))(argument)
        history.check()


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=8)
@given(steps=steps)
def test_every_earlier_state_stays(layout: str, steps: list) -> None:
    """Deleted rows are still there in the snapshots before."""
    history = History(layout, partitioned=True)
    states = {}
    for name, argument in steps:
        getattr(history, name.replace(" ", "_"))(argument)
        states[history._now] = sorted((row.id, row.p, row.v) for row in history.rows)
    for snapshot, wanted in states.items():
        if snapshot:
            shown = history.table.at(snapshot=snapshot).to_arrow()
            assert sorted(zip(*(column.to_pylist() for column in shown.columns), strict=True)) == wanted


@pytest.mark.parametrize("changes", [40, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("layout", ["ids", "ids, marking"])
def test_ids_stay_through_many_changes(layout: str, changes: int) -> None:
    """Appends, updates, deletes and compactions in any order: every row has the id that it was given first."""
    chance = random.Random(layout)
    history = History(layout, partitioned=True)
    for number in range(changes):
        some = {chance.randrange(10) for _ in range(3)}
        step = chance.choice(["append", "append", "append", "delete", "update", "update", "compact"])
        argument: object = some
        if step == "append":
            argument = [(chance.randrange(10), chance.randrange(3)) for _ in range(chance.randrange(1, 12))]
        elif step == "compact":
            argument = chance.random() < 0.5
        getattr(history, step)(argument)
        if number % 5 == 4:
            history.check()
