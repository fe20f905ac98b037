"""Statements one after the other on one connection, over rows that are given and rows that earlier ones have made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from lakebed.algebra.relations import Relation, scans
from lakebed.embedded.engine import Work, connected, shaped
from lakebed.expressions.nodes import ArrowFunction


class Step(Protocol):
    """Puts the rows of a relation under a name; there are none if one of those it needs has none."""

    @property
    def name(self) -> str:
        """Under what name."""
        ...

    @property
    def relation(self) -> Relation:
        """Which rows."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Names without whose rows there is nothing to compute."""
        ...


class Source(Protocol):
    """A table that can show its rows to DuckDB."""

    def define(self, connection: Any, view: str) -> None:
        """Shows them under a name."""
        ...


class Run:
    """A connection on which statements run. Nothing of it is seen elsewhere, and it goes with the block."""

    def __init__(self, connection: Any, work: Work) -> None:
        self._connection = connection
        self._work = work
        self._counts: dict[str, int] = {}
        self._defined: set[str] = set()

    def give(self, name: str, rows: Any) -> None:
        """Rows under a name: an Arrow table or a stream that can be read again."""
        self._connection.register(name, rows)

    def define(self, name: str, source: Source) -> None:
        """The rows of a table under a name."""
        source.define(self._connection, name)

    def execute(self, text: str) -> None:
        """Runs a statement."""
        self._work.do(lambda: self._connection.execute(text))

    def table(self, text: str, schema: pa.Schema | None = None) -> pa.Table:
        """The rows of a query; with the types of a schema if one is given."""
        found = self._work.do(lambda: self._connection.sql(text).to_arrow_table())
        if schema is None:
            return found
        batches = [shaped(batch, schema) for batch in found.to_batches()]
        return pa.Table.from_batches(batches, schema=schema)

    def make(self, step: Step) -> int:
        """Carries a step out; how many rows it has."""
        for scan in scans(step.relation):
            if scan.view not in self._defined:
                scan.source.define(self._connection, scan.view)
                self._defined.add(scan.view)
        nothing = " LIMIT 0" if any(self._counts.get(name) == 0 for name in step.needs) else ""
        text = f"SELECT * FROM ({step.relation.spelled()}){nothing}"
        self._counts[step.name] = self._made(f"CREATE TEMP TABLE {step.name} AS {text}")
        return self._counts[step.name]

    def _made(self, text: str) -> int:
        """Makes a table; how many rows it has."""
        return int(self._work.do(lambda: self._connection.execute(text).fetchone())[0])

    def count(self, name: str) -> int:
        """Rows under a name, counted once."""
        if name not in self._counts:
            self._counts[name] = int(self.table(f"SELECT count(*) AS n FROM {name}").column("n")[0].as_py())
        return self._counts[name]


@contextmanager
def running(
    relations: Sequence[Relation], zone: str | None = None, functions: Sequence[ArrowFunction] = ()
) -> Iterator[Run]:
    """A connection that knows the functions of these relations, and some more."""
    with connected(relations, zone, functions, defines_tables=False) as connection, Work(connection) as work:
        yield Run(connection, work)


__all__ = ["Run", "running"]
