"""From the new rows of a materialized table to the rows that are written: the difference to what is stored, with kinds.

What is stored decides: a row that is there as it should be is not written, one that differs is told with its old
values. So the changelog is complete, whichever way the new rows were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakebed.embedded.program import Run
from lakebed.errors import InvalidData
from lakebed.expressions import kinds
from lakebed.records import dataclass
from lakebed.views.plan.build import HIDDEN_PREFIX
from lakebed.views.row_hashes import hashed
from lakebed.views.rules.weighted import differs

HASH, NUMBER = f"{HIDDEN_PREFIX}key", f"{HIDDEN_PREFIX}n"
"""Columns of the hash of a key or row, and of the number of one of several equal rows."""
KIND, COUNT = f"{HIDDEN_PREFIX}kind", f"{HIDDEN_PREFIX}count"
"""Columns of rows on their way: what they do to the table, and how many they are."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The stored columns of a materialized table: those of its query and of its key, with their types."""

    table: str
    columns: pa.Schema
    """Without those that are made here: the hash, and the number."""
    key: tuple[str, ...] | None
    has_hash: bool
    primary_key: tuple[str, ...]

    @property
    def is_numbered(self) -> bool:
        """Whether equal rows are told apart by numbers."""
        return self.key is None

    def hash_of(self, prefix: str = "") -> str:
        """The hash of a row's key, or of all of it."""
        names = self.columns.names if self.key is None else self.key
        return hashed([(f"{prefix}{kinds.quoted(name)}", self.columns.field(name).type) for name in names])

    def stored_schema(self) -> pa.Schema:
        """All columns."""
        more = [pa.field(HASH, pa.string(), False)] if self.has_hash else []
        more += [pa.field(NUMBER, pa.int64(), False)] if self.is_numbered else []
        return pa.schema([*self.columns, *more])

    def chosen(self, source: Sequence[str]) -> str:
        """A SELECT list that gives the columns their names and types, and the hash."""
        listed = [
            f"CAST({given} AS {kinds.duckdb_name(each.type)}) AS {kinds.quoted(each.name)}"
            for given, each in zip(source, self.columns, strict=True)
        ]
        return ", ".join(listed)


TARGET, _STORED, _DIFFERENCE = "target_rows", "stored_rows", "difference"


def given_rows(run: Run, layout: Layout, source: str, columns: Sequence[str], *, weight: str | None = None) -> None:
    """New rows, or a delta of rows with a weight, under the names of the table, with their hashes."""
    more = "" if weight is None else f", {weight} AS {COUNT}"
    run.execute(f"CREATE TEMP TABLE named_rows AS SELECT {layout.chosen(columns)}{more} FROM {source}")
    extra = f", {layout.hash_of()} AS {HASH}" if layout.has_hash else ""
    run.execute(f"CREATE TEMP TABLE {TARGET} AS SELECT *{extra} FROM named_rows")


def keyed_difference(run: Run, layout: Layout, stored: pa.Table | str, target: str = TARGET) -> pa.Table:
    """The difference between new rows and stored rows that have a key: both are all that have certain keys."""
    if isinstance(stored, pa.Table):
        run.give(_STORED, stored)
        stored = _STORED
    _check_unique(run, layout, target)
    schema = layout.stored_schema()
    names = [kinds.quoted(name) for name in schema.names]
    same = " AND ".join(f"t.{kinds.quoted(name)} = s.{kinds.quoted(name)}" for name in layout.primary_key)
    first = kinds.quoted(layout.primary_key[0])
    others = [
        differs(f"t.{kinds.quoted(each.name)}", f"s.{kinds.quoted(each.name)}", each.type)
        for each in schema
        if each.name not in layout.primary_key
    ]
    is_other = " OR ".join(others) or "FALSE"
    new, old = (", ".join(f"{side}.{name}" for name in names) for side in ("t", "s"))
    run.execute(
        f"CREATE TEMP TABLE {_DIFFERENCE} AS "
        f"SELECT CASE WHEN s.{first} IS NULL THEN '+I' ELSE '+U' END AS {KIND}, 1 AS __turn, {new} "
        f"FROM {target} AS t LEFT JOIN {stored} AS s ON {same} WHERE s.{first} IS NULL OR {is_other} "
        f"UNION ALL "
        f"SELECT CASE WHEN t.{first} IS NULL THEN '-D' ELSE '-U' END, 0, {old} "
        f"FROM {stored} AS s LEFT JOIN {target} AS t ON {same} WHERE t.{first} IS NULL OR {is_other}"
    )
    order = ", ".join([*(kinds.quoted(name) for name in layout.primary_key), "__turn"])
    text = f"SELECT {KIND}, {', '.join(names)} FROM {_DIFFERENCE} ORDER BY {order}"
    return run.table(text, pa.schema([pa.field(KIND, pa.string()), *schema]))


def _check_unique(run: Run, layout: Layout, target: str) -> None:
    key = ", ".join(kinds.quoted(name) for name in layout.primary_key)
    twice = run.table(f"SELECT {key} FROM {target} GROUP BY {key} HAVING count(*) > 1 LIMIT 1")
    if twice.num_rows:
        raise refused_twice(layout, twice.slice(0, 1).to_pylist()[0])


def refused_twice(layout: Layout, key: Mapping[str, Any]) -> InvalidData:
    """The error for a key that two rows of a query have."""
    shown = ", ".join(f"{name} = {value!r}" for name, value in key.items())
    return InvalidData(
        f"materialized table `{layout.table}`: two rows of the query have the key {shown}",
        hint="choose a primary key that tells the rows of the query apart, or leave it out",
    )


def counted_difference(run: Run, layout: Layout, counts: pa.Table) -> pa.Table | None:
    """The difference where equal rows are numbered: so many more or less. None if less than none are left.

    `counts` has the hashes of rows that are stored, each as often as it is.
    """
    run.give("counted", counts)
    names = [kinds.quoted(name) for name in layout.columns.names]
    listed = ", ".join(names)
    some = ", ".join(f"first({name}) AS {name}" for name in names)  # rows of one hash are equal
    moved = (
        f"SELECT {HASH}, CAST(sum({COUNT}) AS BIGINT) AS {COUNT}, {some} FROM {TARGET} "
        f"GROUP BY {HASH} HAVING sum({COUNT}) <> 0"
    )
    had = f"SELECT {HASH}, CAST(count(*) AS BIGINT) AS __had FROM counted GROUP BY {HASH}"
    run.execute(
        f"CREATE TEMP TABLE moved AS SELECT m.*, coalesce(h.__had, 0) AS __had, "
        f"coalesce(h.__had, 0) + m.{COUNT} AS __now FROM ({moved}) AS m LEFT JOIN ({had}) AS h USING ({HASH})"
    )
    below = run.table("SELECT count(*) AS c FROM moved WHERE __now < 0").column("c")[0].as_py()
    if below:
        return None
    # The last ones go, and new ones come behind.
    run.execute(
        f"CREATE TEMP TABLE {_DIFFERENCE} AS "
        f"SELECT '+I' AS {KIND}, {listed}, {HASH}, unnest(range(__had + 1, __now + 1)) AS {NUMBER} "
        f"FROM moved WHERE __now > __had UNION ALL "
        f"SELECT '-D', {listed}, {HASH}, unnest(range(__now + 1, __had + 1)) FROM moved WHERE __now < __had"
    )
    schema = pa.schema([pa.field(KIND, pa.string()), *layout.stored_schema()])
    return run.table(f"SELECT {KIND}, {listed}, {HASH}, {NUMBER} FROM {_DIFFERENCE}", schema)


def less_stored(run: Run, layout: Layout, stored: str) -> None:
    """Makes all new rows a delta of the stored ones: those that are stored count the other way."""
    names = ", ".join(kinds.quoted(name) for name in layout.columns.names)
    run.execute(f"ALTER TABLE {TARGET} RENAME TO all_rows")
    run.execute(
        f"CREATE TEMP TABLE {TARGET} AS SELECT {names}, {HASH}, 1 AS {COUNT} FROM all_rows "
        f"UNION ALL SELECT {names}, {HASH}, -1 FROM {stored}"
    )


__all__ = [
    "COUNT",
    "HASH",
    "KIND",
    "NUMBER",
    "TARGET",
    "Layout",
    "counted_difference",
    "given_rows",
    "keyed_difference",
    "less_stored",
    "refused_twice",
]
