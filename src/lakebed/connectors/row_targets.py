"""Where rows of an INSERT go, with the position that they were read up to: a table of the lake, or a sink.

A table keeps the position in the properties of the snapshot that holds the rows, a topic in the transaction of its
messages. Other sinks keep nothing: the position lasts as long as the process, so that one that is started again begins
anew.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from lakebed.commit.replay import INSERT_PREFIX, CommitIdentity, insert_properties
from lakebed.connectors.registry import sink
from lakebed.connectors.sink_target import sent_fields, with_kinds
from lakebed.errors import InvalidArgument
from lakebed.records import dataclass
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.query.references import open_target
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Target
from lakebed.table.opened import opened_of
from lakebed.table.table import Table
from lakebed.table.writer import TableWriter
from lakebed.types.logical import DataField
from lakebed.write.placement.postponed import for_stream


@dataclass(frozen=True)
class InsertState:
    """How far an INSERT is: how many steps it has made, and where the next one begins."""

    step: int = 0
    position: str | None = None


class RowTarget(Protocol):
    """What an INSERT of rows asks of its target."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that it takes."""
        ...

    @property
    def says(self) -> str:
        """How rows get there, where that is not plain."""
        ...

    def state(self, *, begins: bool = False) -> InsertState:
        """How far the INSERT is. Unless a step `begins`, no other system is asked."""
        ...

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Takes the rows that lead to a state; says whether they count, and which snapshot holds them, if one does."""
        ...

    def close(self) -> None:
        """Lets go of what is held."""
        ...


class TableTarget:
    """A table of the lake, as it is now."""

    def __init__(self, lake: SqlLake, name: str, insert: str, source: ConnectorTable) -> None:
        self._table: Table = open_target(lake, Target(name))
        self._name = name
        self._insert = insert
        self._source = _words_of(source)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of the table."""
        return tuple(self._table.schema.fields)

    @property
    def says(self) -> str:
        """Nothing more."""
        return ""

    def state(self, *, begins: bool = False) -> InsertState:
        """What the newest snapshot says."""
        told = insert_properties(opened_of(self._table).current().stores.snapshots, self._table.latest_snapshot())
        step, source = told.get(self._property("step")), told.get(self._property("source"))
        if source is not None:
            _check_source(self._insert, self._name, source, self._source)
        return InsertState(0 if step is None else int(step), told.get(self._property("position")))

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Commits rows and position together."""
        # INVARIANT: rows and position are of one commit, whose number follows from the state that they were read from.
        # Of two runners that began with the same state one is dropped as a replay, or its rows would be in twice.
        writer = TableWriter(
            for_stream(opened_of(self._table).folded()),
            identity=CommitIdentity(self._insert, state.step),
            properties={
                self._property("position"): state.position or "",
                self._property("step"): str(state.step),
                self._property("source"): self._source,
            },
        )
        with writer:
            writer.write(rows)
            snapshot = writer.commit()
        return snapshot is not None, None if snapshot is None else snapshot.id

    def close(self) -> None:
        """Nothing is held."""

    def _property(self, word: str) -> str:
        return f"{INSERT_PREFIX}{self._insert}.{word}"


class SinkTarget:
    """A sink: rows come with their kinds, and are gone."""

    def __init__(self, table: ConnectorTable, insert: str, source: ConnectorTable) -> None:
        self._sink = sink(table, insert)
        self._table = table
        self._insert = insert
        self._source = _words_of(source)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that are defined."""
        return sent_fields(self._table)

    @property
    def says(self) -> str:
        """How rows get there."""
        return self._sink.says

    def state(self, *, begins: bool = False) -> InsertState:
        """What the sink keeps."""
        words = self._sink.begin() if begins else self._sink.known()
        if words is None:
            return InsertState()
        _check_source(self._insert, self._table.full_name, words.get("source", "tables of the lake"), self._source)
        return InsertState(int(words["step"]), words["position"])

    def send(self, rows: pa.Table, state: InsertState) -> tuple[bool, int | None]:
        """Hands the rows over."""
        kinds = pa.chunked_array([pa.repeat("+I", rows.num_rows)])
        words = {"step": str(state.step), "position": state.position or "", "source": self._source}
        self._sink.write(with_kinds(self._table, rows, kinds), words)
        return True, None

    def close(self) -> None:
        """Lets go of the sink."""
        self._sink.close()


def _words_of(source: ConnectorTable) -> str:
    return f"{source.connector} {source.full_name}"


def _check_source(insert: str, target: str, read: str, source: str) -> None:
    if read != source:
        raise InvalidArgument(
            f"INSERT `{insert}` into `{target}` has read {read}, not {source}",
            hint="give the INSERT another name, or the source its old one",
        )
