"""The statements that compute a delta, in order: text over named inputs, nothing runs here.

A part that is used more than once, or by whose keys other parts are restricted, is kept under a name. What depends on
rows of which there are none can be skipped by whoever runs the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from itertools import takewhile
from typing import Any

from lakebed.algebra.relations import Relation, Scan, scans
from lakebed.expressions.nodes import Column, Expression
from lakebed.records import dataclass
from lakebed.views.rules.weighted import DistinctValues, Keys, Matching, Stored, Version, matching


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows of a table that have these values in the first columns of its primary key, or in all of it."""

    scan: Scan
    keys: Keys


@dataclass(frozen=True, slots=True)
class Statement:
    """Puts the rows of a relation under a name. They are none if one of those it `needs` has none."""

    name: str
    relation: Relation
    needs: tuple[str, ...] = ()
    lookup: Lookup | None = None
    """How the same rows can be found by their keys, without a look at the others."""

    @property
    def text(self) -> str:
        """What DuckDB is told."""
        return f"CREATE TEMP TABLE {self.name} AS {self.relation.spelled()}"


@dataclass(frozen=True, slots=True)
class SourceRules:
    """What is known of a scan: the key of its rows, and the scan of its old state if that is read by itself."""

    key: tuple[Column, ...] = ()
    old: Scan | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """Only rows are wanted whose columns have values that are among the keys."""

    columns: tuple[Column, ...]
    keys: Keys


Delta = Callable[["Program", Any], Relation | None]
State = Callable[["Program", Any, Version, Restriction | None], Relation]


@dataclass
class Program:
    """Statements in the making. `changed` are the views of scans whose tables have changed (None: of all)."""

    deltas: Mapping[type[Relation], Delta]
    states: Mapping[type[Relation], State]
    sources: Mapping[str, SourceRules]
    changed: Collection[str] | None = None
    statements: list[Statement] = field(default_factory=list)
    _deltas: dict[int, tuple[Relation, Stored | None]] = field(default_factory=dict)
    _found: dict[tuple[str, Keys], Stored] = field(default_factory=dict)

    # --- names ---------------------------------------------------------------------------------------------------

    def keep(self, relation: Relation, label: str, needs: tuple[str, ...] = ()) -> Stored:
        """The relation under a name."""
        if isinstance(relation, Stored):
            return relation
        name = f"{label}_{len(self.statements) + 1}"
        self.statements.append(Statement(name, relation, needs))
        return Stored(columns=relation.columns, name=name)

    def keys(self, rows: Stored, values: tuple[Expression, ...]) -> Keys:
        """The values that expressions have over rows, under a name."""
        columns = tuple(Column(type=each.type, nullable=True, id=f"k{n + 1}") for n, each in enumerate(values))
        kept = self.keep(DistinctValues(columns=columns, input=rows, values=values), "keys", (rows.name,))
        return Keys(kept.name, columns)

    def found(self, scan: Scan, restriction: Restriction | None) -> Relation:
        """The rows of a table that a restriction asks for; by their keys if it names the first columns of those."""
        if restriction is None:
            return scan
        places = {column.id: n for n, column in enumerate(restriction.columns)}
        key = tuple(takewhile(lambda column: column.id in places, self.sources[scan.view].key))
        if not key:
            return restricted(scan, restriction)
        keys = restriction.keys.picked(tuple(places[column.id] for column in key))
        known = self._found.get((scan.view, keys))
        if known is None:
            known = self.keep(matching(scan, key, keys), "found", (keys.name,))
            self.statements[-1] = replace(self.statements[-1], lookup=Lookup(scan, keys))
            self._found[scan.view, keys] = known
        return known if len(key) == len(restriction.columns) else restricted(known, restriction)

    # --- rules ---------------------------------------------------------------------------------------------------

    def has_changed(self, node: Relation) -> bool:
        """Whether a table below has changed."""
        return self.changed is None or any(scan.view in self.changed for scan in scans(node))

    def rows(self, node: Relation) -> Relation | None:
        """The delta of a relation; None if nothing below has changed."""
        known = self._deltas.get(id(node))
        if known is not None:
            return known[1]
        return self.deltas[type(node)](self, node) if self.has_changed(node) else None

    def delta(self, node: Relation) -> Stored | None:
        """The same, computed once."""
        if id(node) not in self._deltas:
            found = self.rows(node)
            kept = None if found is None else self.keep(found, "delta")
            self._deltas[id(node)] = (node, kept)  # with the node, or its id could be another's later
        return self._deltas[id(node)][1]

    def state(self, node: Relation, version: Version, restriction: Restriction | None = None) -> Relation:
        """The rows of a relation before or after, all of them or those with some keys."""
        return self.states[type(node)](self, node, version, restriction)

    def state_where(
        self, node: Relation, version: Version, values: tuple[Expression, ...], keys: Keys | None
    ) -> Relation:
        """The rows of a relation for which expressions have values that are among the keys; all without keys."""
        if keys is None or not values:
            return self.state(node, version)
        plain = tuple(place for place, value in enumerate(values) if isinstance(value, Column))
        if not plain:
            return matching(self.state(node, version), values, keys)
        columns = tuple(value for value in values if isinstance(value, Column))
        found = self.state(node, version, Restriction(columns, keys.picked(plain)))
        return found if len(plain) == len(values) else matching(found, values, keys)


def narrowed_to(restriction: Restriction | None, known: Collection[str]) -> tuple[Restriction | None, bool]:
    """The part of a restriction that is about these columns, and whether that is all of it."""
    if restriction is None:
        return None, True
    places = tuple(n for n, column in enumerate(restriction.columns) if column.id in known)
    if not places:
        return None, False
    columns = tuple(restriction.columns[place] for place in places)
    return Restriction(columns, restriction.keys.picked(places)), len(places) == len(restriction.columns)


def restricted(relation: Relation, restriction: Restriction | None) -> Relation | Matching:
    """The rows that a restriction asks for, whatever the relation is."""
    return relation if restriction is None else matching(relation, restriction.columns, restriction.keys)
