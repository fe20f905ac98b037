"""The difference between what is stored of a materialized table and what it should be: rows with their kinds.

Made in one process, from DuckDB's tables: in the one that refreshes, or in a task of Spark's that has some of the rows.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.algebra.relations import Group
from lakebed.embedded.program import Run
from lakebed.expressions import kinds
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.table.table import Table
from lakebed.types.transfer import to_transfer
from lakebed.views.apply import (
    COUNT,
    HASH,
    KIND,
    TARGET,
    Layout,
    counted_difference,
    given_rows,
    keyed_difference,
    less_stored,
)
from lakebed.views.found_rows import is_worth_a_search
from lakebed.views.plan.build import ViewPlan, carried_by, with_rows
from lakebed.views.rules.compile import Compiled
from lakebed.views.rules.program import Statement
from lakebed.views.rules.weighted import WEIGHT, Stored
from lakebed.views.sources import Source, pinned_at


@dataclass(frozen=True)
class Difference:
    """To what is stored at a snapshot (None: nothing). `key` tells the rows of the query apart, if anything does."""

    table: Table
    base: Snapshot | None
    layout: Layout
    key: tuple[str, ...] | None

    # --- from changes --------------------------------------------------------------------------------------------

    def of(self, run: Run, program: Compiled, plan: ViewPlan) -> pa.Table | None:
        """What a program has found; None if what is stored does not fit it."""
        result = program.result
        if result is None:
            return self.nothing()
        if program.added is not None:
            return self.of_added(run, result.name, program.added, plan)
        ids = [each.id for each in plan.root.columns]
        if program.replaced is not None:
            given_rows(run, self.layout, result.name, ids)
            return self._replaced(run, self._stored_of(run, program, plan))
        given_rows(run, self.layout, result.name, ids, weight=WEIGHT.id)
        return self.of_weighted(run)

    def of_weighted(self, run: Run) -> pa.Table | None:
        """Of rows that came and went, in `TARGET` with their weights."""
        if self.layout.is_numbered:
            return counted_difference(run, self.layout, self._stored_hashes(run))
        names = ", ".join(kinds.quoted(name) for name in self.layout.primary_key)
        keys = run.table(f"SELECT DISTINCT {names} FROM {TARGET}")
        run.execute(f"CREATE TEMP TABLE new_rows AS SELECT * EXCLUDE ({COUNT}) FROM {TARGET} WHERE {COUNT} > 0")
        return keyed_difference(run, self.layout, self._looked_up(keys), "new_rows")

    def of_added(self, run: Run, changes: str, states: Group, plan: ViewPlan) -> pa.Table | None:
        """The stored groups with the change of their parts added; None if one would have less than no rows."""
        names = {each.id: name for each, name in zip(plan.root.columns, plan.names, strict=True)}
        stored = {each.id: names[above.id] for each in states.columns if (above := carried_by(plan.root, each))}
        keys, parts = states.columns[: len(states.keys)], states.columns[len(states.keys) :]
        typed = [f"CAST({k.id} AS {kinds.duckdb_name(k.type)}) AS {kinds.quoted(stored[k.id])}" for k in keys]
        listed = ", ".join(typed) or "1 AS one"
        run.execute(f"CREATE TEMP TABLE replaced_keys AS SELECT DISTINCT {listed} FROM {changes}")
        self._find_stored(run, [stored[each.id] for each in keys])
        same = [f"s.{kinds.quoted(stored[each.id])} IS NOT DISTINCT FROM d.{each.id}" for each in keys]
        added = [
            f"CAST(d.{each.id} + coalesce(s.{kinds.quoted(stored[each.id])}, 0) AS {kinds.duckdb_name(each.type)}) "
            f"AS {each.id}"
            for each in parts
        ]
        chosen = ", ".join([*(f"d.{each.id}" for each in keys), *added])
        run.execute(
            f"CREATE TEMP TABLE new_states AS SELECT {chosen} FROM {changes} AS d "
            f"LEFT JOIN found_rows AS s ON {' AND '.join(same) or 'TRUE'}"
        )
        rows = parts[0].id
        if run.table(f"SELECT count(*) AS c FROM new_states WHERE {rows} < 0").column("c")[0].as_py():
            return None
        left = f" WHERE {rows} > 0" if keys else ""  # a group of all rows is there without any
        run.execute(f"CREATE TEMP TABLE kept_states AS SELECT * FROM new_states{left}")
        root = with_rows(plan.root, Stored(columns=states.columns, name="kept_states"))
        run.make(Statement("new_result", root))
        given_rows(run, self.layout, "new_result", [each.id for each in plan.root.columns])
        return keyed_difference(run, self.layout, "found_rows")

    def _replaced(self, run: Run, stored: str) -> pa.Table | None:
        """Groups of rows, in `TARGET`: those stored of the groups go, the new ones come."""
        if not self.layout.is_numbered:
            return keyed_difference(run, self.layout, stored)
        less_stored(run, self.layout, stored)
        return counted_difference(run, self.layout, self._stored_hashes(run))

    # --- from all rows -------------------------------------------------------------------------------------------

    def of_everything(self, run: Run, source: str, ids: list[str]) -> pa.Table:
        """Of all new rows."""
        given_rows(run, self.layout, source, ids)
        self._define_stored(run)
        if not self.layout.is_numbered:
            return keyed_difference(run, self.layout, "stored_all")
        less_stored(run, self.layout, "stored_all")
        found = counted_difference(run, self.layout, run.table(f"SELECT {HASH} FROM stored_all"))
        assert found is not None
        return found

    # --- what is stored ------------------------------------------------------------------------------------------

    def _stored_of(self, run: Run, program: Compiled, plan: ViewPlan) -> str:
        """The stored rows of the groups that are replaced, under a name."""
        keys = program.replaced
        assert keys is not None
        names = {each.id: name for each, name in zip(plan.root.columns, plan.names, strict=True)}
        by = [names[each.id] for each in program.by]
        schema = self.layout.columns
        typed = ", ".join(
            f"CAST({key.id} AS {kinds.duckdb_name(schema.field(name).type)}) AS {kinds.quoted(name)}"
            for key, name in zip(keys.columns, by, strict=True)
        )
        run.execute(f"CREATE TEMP TABLE replaced_keys AS SELECT DISTINCT {typed} FROM {keys.name}")
        self._find_stored(run, by)
        return "found_rows"

    def _find_stored(self, run: Run, by: list[str]) -> None:
        """Stored rows whose columns have the values of `replaced_keys`, as `found_rows`: by their key if that tells."""
        if self.key is not None and set(by) == set(self.key) and self._finds_by(by):
            listed = HASH if self.layout.has_hash else ", ".join(kinds.quoted(n) for n in self.layout.primary_key)
            chosen = f"{self.layout.hash_of()} AS {HASH}" if self.layout.has_hash else listed
            run.give("found_rows", self._looked_up(run.table(f"SELECT {chosen} FROM replaced_keys")))
            return
        self._define_stored(run)
        same = " AND ".join(f"s.{kinds.quoted(name)} IS NOT DISTINCT FROM k.{kinds.quoted(name)}" for name in by)
        run.execute(
            f"CREATE TEMP TABLE found_rows AS SELECT s.* FROM stored_all AS s SEMI JOIN replaced_keys AS k ON {same}"
        )

    def _finds_by(self, by: list[str]) -> bool:
        """Whether the primary key follows from these columns."""
        return all(name == HASH or name in by for name in self.layout.primary_key)

    def _define_stored(self, run: Run) -> None:
        names = tuple(self.layout.stored_schema().names)
        run.define("stored_all", Source(self.table, (), self.base, names))

    def _looked_up(self, keys: pa.Table) -> pa.Table:
        """The stored rows of these primary keys."""
        schema = self.layout.stored_schema()
        if self.base is None or not keys.num_rows:
            return schema.empty_table()
        found = pinned_at(self.table, self.base).lookup(keys, list(schema.names))
        batches = [to_transfer(batch, schema) for batch in found.combine_chunks().to_batches()]
        return pa.Table.from_batches(batches, schema=schema)

    def _stored_hashes(self, run: Run) -> pa.Table:
        """The hash of each stored row that has one of those in `TARGET`."""
        asked = run.table(f"SELECT DISTINCT {HASH} FROM {TARGET}")
        if self.base is not None and is_worth_a_search(asked.num_rows, self.base):
            return pinned_at(self.table, self.base).lookup(asked, [HASH], by=[HASH])
        run.define("stored_hashes", Source(self.table, (), self.base, (HASH,)))
        run.give("asked_hashes", asked)
        return run.table(f"SELECT s.{HASH} FROM stored_hashes AS s SEMI JOIN asked_hashes AS k ON s.{HASH} = k.{HASH}")

    def nothing(self) -> pa.Table:
        """No difference."""
        return pa.schema([pa.field(KIND, pa.string()), *self.layout.stored_schema()]).empty_table()


__all__ = ["Difference"]
