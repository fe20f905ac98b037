"""Histories of a table whose columns have files of their own, beside a plain dict of its rows.

Every row has a number `k` of its own, so that the table can be compared with the dict row by row, and a row's id with
the id that it was given first.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import lakebed
from lakebed.errors import CommitConflict
from lakebed.rewrite.rows_by_place import ReplaceRows
from lakebed.table.plans import plan_write

OPTIONS = {
    "row-tracking.enabled": "true",
    "data-evolution.enabled": "true",
    "deletion-vectors.enabled": "true",
    "target-file-row-num": "5",
    "compaction.min.file-num": "3",
    "snapshot.num-retained.min": "100",
    "write-only": "true",
}
LAYOUTS = {
    "marks": {},
    "wide marks": {"deletion-vectors.bitmap64": "true", "deletion-vector.index-file.target-size": "100 b"},
    "small files": {"target-file-size": "1 kb"},
    "other ids": {"data-evolution.compaction.rewrite-row-ids": "true"},
}
PLACES = ["_ROW_ID", "__paimon_file_path", "__paimon_row_index"]

some = st.sets(st.integers(0, 6), min_size=1, max_size=4)
"""Rows are chosen by the remainders of their numbers."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 12)),
        st.tuples(st.just("append"), st.integers(1, 12)),
        st.tuples(st.just("delete"), some),
        st.tuples(st.just("delete"), some),
        st.tuples(st.just("update"), some),
        st.tuples(st.just("merge"), st.tuples(some, some, st.integers(0, 3))),
        st.tuples(st.just("compact"), st.booleans()),
        st.tuples(st.just("stale_change"), st.tuples(some, some)),
        st.tuples(st.just("stale_delete"), st.tuples(some, some)),
        st.tuples(st.just("compact_meanwhile"), some),
        st.tuples(st.just("add_column"), st.just(None)),
        st.tuples(st.just("drop_column"), st.just(None)),
        st.tuples(st.just("rename_column"), st.just(None)),
        st.tuples(st.just("roll_back"), st.integers(0, 9)),
        st.tuples(st.just("overwrite"), st.integers(1, 3)),
        st.tuples(st.just("tag"), st.just(None)),
        st.tuples(st.just("reopen"), st.just(None)),
        st.tuples(st.just("reassign"), st.just(None)),
    ),
    min_size=1,
    max_size=12,
)


class History:
    """A table and its rows as they should be: values by column and number of the row."""

    def __init__(self, warehouse: str, layout: str = "marks", *, partitioned: bool = False) -> None:
        self._warehouse = warehouse
        lake = lakebed.connect(warehouse)
        lake.create_database("db", if_not_exists=True)
        columns = {"k": "INT", "p": "INT", "b": "INT", "c": "STRING"}
        self.table = lake.create_table(
            "db.t", columns, partition_by=["p"] if partitioned else (), options={**OPTIONS, **LAYOUTS[layout]}
        )
        self.columns = list(columns)
        self.rows: dict[int, dict[str, Any]] = {}
        self.ids: dict[int, int] = {}
        self.states: dict[int, tuple[list[str], dict[int, dict[str, Any]]]] = {}
        self.tags: dict[str, tuple[list[str], dict[int, dict[str, Any]]]] = {}
        self._count = 0
        self._texts = 0
        self._partitioned = partitioned
        self._moves_ids = "data-evolution.compaction.rewrite-row-ids" in LAYOUTS[layout]

    def run(self, steps: list[tuple[str, Any]]) -> None:
        """One step after the other, each checked."""
        for name, argument in steps:
            getattr(self, name)(argument)
            self.check()
            latest = self.table.latest_snapshot()
            if latest is not None and latest.id not in self.states:  # it shows the columns that it was made with
                self.states[latest.id] = (list(self.columns), {k: dict(row) for k, row in self.rows.items()})

    # --- steps ---------------------------------------------------------------------------------------------------

    def append(self, count: int) -> None:
        """New rows."""
        added = self._new_rows(count)
        self.table.write(self._arrow(added))
        self.rows |= added

    def overwrite(self, count: int) -> None:
        """New rows in the place of all, or of those of their partitions."""
        added = self._new_rows(count)
        parts = {row["p"] for row in added.values()}
        self.table.write(self._arrow(added), overwrite=True)
        kept = {k: row for k, row in self.rows.items() if self._partitioned and row["p"] not in parts}
        self.rows = kept | added
        self.ids = {k: number for k, number in self.ids.items() if k in self.rows}

    def delete(self, chosen: set[int]) -> None:
        """DELETE."""
        self.table.delete_where(pc.field("k").isin(self._numbers(chosen)))
        self._forget(self._numbers(chosen))

    def update(self, chosen: set[int]) -> None:
        """UPDATE of one or two columns."""
        Change(self, self._numbers(chosen), []).commit()

    def merge(self, given: tuple[set[int], set[int], int]) -> None:
        """MERGE: updates, deletes and new rows in one commit."""
        changed, gone, count = given
        removed = self._numbers(gone)
        numbers = [k for k in self._numbers(changed) if k not in removed]
        Change(self, numbers, removed, self._new_rows(count)).commit()

    def stale_change(self, given: tuple[set[int], set[int]]) -> None:
        """An UPDATE that has read before others deleted rows, the same or others."""
        change = Change(self, self._numbers(given[0]), [])
        before = self.table.scan().files
        self.delete(given[1])
        try:
            change.commit()
        except CommitConflict:
            # Rows that are marked beside those of the change are not in the way.
            assert set(change.changed) & set(change.changed).difference(self.rows) or before != self.table.scan().files

    def stale_delete(self, given: tuple[set[int], set[int]]) -> None:
        """A DELETE that has read before others changed columns, or deleted rows."""
        change = Change(self, [], self._numbers(given[0]))
        self.update(given[1])
        try:
            change.commit()
        except CommitConflict:
            assert given[1]

    def compact(self, full: bool) -> None:
        """A compaction, by which rows may get other ids where the table says so."""
        compacted = self.table.compact(full=full)
        if compacted is not None and self._moves_ids:
            self.ids = {}

    def compact_meanwhile(self, chosen: set[int]) -> None:
        """Changes and deletes that have read before a compaction, and commit after it."""
        numbers = self._numbers(chosen)
        change = Change(self, numbers[::2], numbers[1::2])
        compacted = self.table.compact(full=True)
        if compacted is not None and self._moves_ids:
            self.ids = {}
        try:
            change.commit()
        except CommitConflict:
            assert compacted is not None

    def add_column(self, _: None) -> None:
        """A column that old rows have no value for."""
        self._texts += 1
        name = f"d{self._texts}"
        self.table.alter(lakebed.AddColumn(name, "INT"))
        self.columns.append(name)
        for row in self.rows.values():
            row[name] = None

    def drop_column(self, _: None) -> None:
        """The last column goes, if it is one that was added."""
        if len(self.columns) > 4:
            name = self.columns.pop()
            self.table.alter(lakebed.DropColumn(name))
            for row in self.rows.values():
                del row[name]

    def rename_column(self, _: None) -> None:
        """A column gets another name, its values stay."""
        self._texts += 1
        old, new = self.columns[2], f"b{self._texts}"
        self.table.alter(lakebed.RenameColumn(old, new))
        self.columns[2] = new
        for row in self.rows.values():
            row[new] = row.pop(old)

    def roll_back(self, steps: int) -> None:
        """An older state is the newest again; columns stay as they are."""
        known = [number for number, (columns, _) in self.states.items() if columns == self.columns]
        if not known:
            return
        to = known[-1 - steps % len(known)]
        self.table.rollback_to_as_latest(snapshot=to)
        self.rows = {k: dict(row) for k, row in self.states[to][1].items()}
        self.ids = {}

    def tag(self, _: None) -> None:
        """The state gets a name."""
        latest = self.table.latest_snapshot()
        if latest is not None:
            name = f"t{len(self.tags)}"
            self.table.create_tag(name)
            self.tags[name] = self.states[latest.id]

    def reopen(self, _: None) -> None:
        """Another handle of the same table."""
        self.table = lakebed.connect(self._warehouse).table("db.t")

    def reassign(self, _: None) -> None:
        """Ids of partitions are made to follow one another."""
        if self.rows and self.table.reassign_row_ids() is not None:
            self.ids = {}
            shown = (
                self.table.to_arrow(columns=["p", "_ROW_ID"])
                .group_by("p")
                .aggregate([("_ROW_ID", "min"), ("_ROW_ID", "max")])
            )
            spans = sorted(zip(shown["_ROW_ID_min"].to_pylist(), shown["_ROW_ID_max"].to_pylist(), strict=True))
            assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))

    # --- checks --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Rows, ids, and what of them reads with filters and projections show."""
        shown = self.table.to_arrow(columns=[*self.columns, "_ROW_ID"])
        self._same(shown, self.columns, self.rows)
        ids = dict(zip(shown["k"].to_pylist(), shown["_ROW_ID"].to_pylist(), strict=True))
        latest = self.table.latest_snapshot()
        assert len(set(ids.values())) == len(ids)
        assert all(latest is not None and number < (latest.next_row_id or 0) for number in ids.values())
        assert {k: ids[k] for k in self.ids} == self.ids
        self.ids = ids
        column = self.columns[2]
        some = self.table.to_arrow(columns=["c"], filter=pc.field(column) >= 3)
        wanted = [row["c"] for row in self.rows.values() if row[column] is not None and row[column] >= 3]
        assert sorted(map(str, some["c"].to_pylist())) == sorted(map(str, wanted))
        if ids:
            number, wanted_id = next(iter(ids.items()))
            found = self.table.to_arrow(columns=["k"], filter=pc.field("_ROW_ID") == wanted_id)
            assert found["k"].to_pylist() == [number]
        assert self.table.to_arrow(columns=[]).num_rows == len(self.rows)

    def check_all(self) -> None:
        """What was read once reads the same for ever, and the table is in order."""
        kept = {snapshot.id for snapshot in self.table.snapshots()}
        for number, (columns, rows) in self.states.items():
            if number in kept:
                self._same(self.table.at(snapshot=number).to_arrow(), columns, rows)
        for before, after in itertools.pairwise(number for number in sorted(self.states) if number in kept):
            self._check_difference(before, after)
            self._check_difference(after, before)
        for name, (columns, rows) in self.tags.items():
            self._same(self.table.at(tag=name).to_arrow(), columns, rows)
        assert self.table.check(deep=True) == []

    def _check_difference(self, before: int, after: int) -> None:
        """What `diff` tells makes one state the other."""
        if self.states[before][0] != self.columns or self.states[after][0] != self.columns:
            return  # a difference is told in the columns of now
        told = self.table.diff(before, after).to_pylist()
        rows = {k: dict(row) for k, row in self.states[before][1].items()}
        for row in [row for row in told if row["rowkind"] in ("-D", "-U")]:
            assert rows.pop(row["k"]) == {name: row[name] for name in self.columns}
        for row in [row for row in told if row["rowkind"] in ("+I", "+U")]:
            assert row["k"] not in rows
            rows[row["k"]] = {name: row[name] for name in self.columns}
        assert rows == self.states[after][1]

    @staticmethod
    def _same(shown: pa.Table, columns: list[str], rows: Mapping[int, Mapping[str, Any]]) -> None:
        found = {row["k"]: row for row in shown.select(columns).to_pylist()} if "k" in shown.column_names else {}
        assert shown.num_rows == len(rows)
        assert found == rows

    # --- inside --------------------------------------------------------------------------------------------------

    def _numbers(self, chosen: set[int]) -> list[int]:
        return [k for k in self.rows if k % 7 in chosen]

    def _forget(self, numbers: list[int]) -> None:
        for k in numbers:
            self.rows.pop(k, None)
            self.ids.pop(k, None)

    def _new_rows(self, count: int) -> dict[int, dict[str, Any]]:
        made = {}
        for _ in range(count):
            k = self._count
            self._count += 1
            row = dict.fromkeys(self.columns)
            made[k] = {**row, "k": k, "p": k % 3, self.columns[2]: k % 5, "c": f"c{k}"}
        return made

    def _arrow(self, rows: Mapping[int, Mapping[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(list(rows.values()), self.table.arrow_schema)

    def new_values(self) -> dict[str, Any]:
        """Values for an update that no row has had."""
        self._texts += 1
        column = self.columns[2 + self._texts % (len(self.columns) - 2)]
        new: dict[str, Any] = {column: f"u{self._texts}" if column == "c" else 100 + self._texts}
        return new | ({"c": None} if self._texts % 5 == 0 else {})


class Change:
    """A change that has read the table, and is yet to be committed."""

    def __init__(
        self, history: History, changed: list[int], gone: list[int], added: dict[int, dict[str, Any]] | None = None
    ) -> None:
        self._history = history
        self.changed, self._gone, self._added = changed, gone, added or {}
        self._new = history.new_values()
        self._context, _ = plan_write(history.table)
        self._base = history.table.latest_snapshot()
        names = [field.name for field in history.table.schema.fields]
        old = history.table.to_arrow(columns=[*names, *PLACES], filter=pc.field("k").isin([*changed, *gone]))
        paths = old["__paimon_file_path"].to_pylist()
        self._places = {
            path: old.filter(pc.field("__paimon_file_path") == path)["__paimon_row_index"].to_numpy()
            for path in set(paths)
        }
        rows = old.filter(pc.field("k").isin(pa.array(changed, pa.int32()))).select([*names, "_ROW_ID"])
        for name, value in self._new.items():
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(index, name, pa.array([value] * rows.num_rows, rows.schema.field(index).type))
        self._replacing = rows

    def commit(self) -> None:
        """Makes it visible, in the table and in the dict."""
        history = self._history
        added = history._arrow(self._added) if self._added else None
        ReplaceRows(self._context, self._base, "MERGE").commit(self._places, self._replacing, added)
        for k in self.changed:
            history.rows[k] |= self._new
        history._forget(self._gone)
        history.rows |= self._added
